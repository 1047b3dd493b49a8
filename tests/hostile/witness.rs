//! The good client beside the crowd: produces, reads back, compares, and counts its answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::support::batch::{self, NOBODY};
use crate::support::client::code;
use crate::support::cluster::Cluster;
use crate::support::history;

const TOPIC: &str = "witness";
/// Longest a good client may wait for one answer, whatever the others do.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Rounds that prove something, and how long they may take in the worst crowd.
const ROUNDS_MIN: usize = 30;
const ROUNDS_WAIT_MAX: Duration = Duration::from_secs(20);

/// A running witness.
pub struct Witness {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicUsize>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Witness {
    /// Makes its topic and starts.
    pub fn start(bootstrap: SocketAddr) -> Witness {
        let mut connection = crate::Connection::open(bootstrap, ANSWER_MAX).expect("connected");
        let made = connection
            .create_topic(TOPIC, 2, &[])
            .expect("CreateTopics answers");
        assert_eq!(made, code::NONE);
        let cluster = Cluster::open(bootstrap, &[TOPIC], ANSWER_MAX).expect("Metadata answers");
        assert_eq!(cluster.partitions(TOPIC), 2, "every partition has a leader");
        let stop = Arc::new(AtomicBool::new(false));
        let rounds = Arc::new(AtomicUsize::new(0));
        let (seen, count) = (Arc::clone(&stop), Arc::clone(&rounds));
        Witness {
            stop,
            rounds,
            thread: thread::spawn(move || run(cluster, &seen, &count)),
        }
    }

    /// Stops once it has had its least; every answer was right, or this panics. Prints the latencies.
    pub fn finish(self, what: &str) {
        let deadline = Instant::now() + ROUNDS_WAIT_MAX;
        while self.rounds.load(Ordering::SeqCst) < ROUNDS_MIN && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
        self.stop.store(true, Ordering::SeqCst);
        let mut took = self
            .thread
            .join()
            .expect("the good client was served without an error");
        took.sort_unstable();
        assert!(
            took.len() >= ROUNDS_MIN,
            "{what}: the witness had only {} answers",
            took.len()
        );
        let at = |percent: usize| took[(took.len() - 1) * percent / 100];
        println!(
            "{what}: witness {} rounds, p50 {:?}, p99 {:?}, longest {:?}",
            took.len(),
            at(50),
            at(99),
            at(100)
        );
    }
}

/// Rounds of produce and read back, until told to stop: how long each took.
fn run(mut cluster: Cluster, stop: &AtomicBool, rounds: &AtomicUsize) -> Vec<Duration> {
    let mut took = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let sequence = took.len() as u64;
        let partition = (sequence % 2) as i32;
        let begin = Instant::now();
        let (_, record) = history::make(9, sequence, 100);
        let bytes = batch::build(NOBODY, std::slice::from_ref(&record));
        let connection = cluster
            .to(TOPIC, partition)
            .expect("the leader takes connections");
        let produced = connection
            .produce(TOPIC, partition, -1, &bytes)
            .expect("Produce answers");
        assert_eq!(produced.error, code::NONE, "round {sequence}");
        let from = [(partition, produced.base_offset)];
        let mut fetched = connection
            .fetch(TOPIC, &from, 1000, 1 << 20)
            .expect("Fetch answers");
        let fetched = fetched.pop().expect("one partition was asked for");
        assert_eq!(fetched.error, code::NONE, "round {sequence}");
        let back = batch::parse(&fetched.batches).expect("whole batches");
        let mut expected = record;
        expected.offset = produced.base_offset;
        assert_eq!(back.first(), Some(&expected), "round {sequence}");
        took.push(begin.elapsed());
        rounds.store(took.len(), Ordering::SeqCst);
        thread::sleep(Duration::from_millis(2));
    }
    took
}
