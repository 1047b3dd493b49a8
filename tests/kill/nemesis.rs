//! What kills the broker: at random instants under load, while it starts and while it recovers.

use std::thread;
use std::time::{Duration, Instant};

use penstock::check::event::Restarted;
use penstock::check::{Action, Outcome};

use crate::field::{Field, PARTITIONS, TOPIC};
use crate::support::broker::{Broker, Options, START_MAX};
use crate::support::client::{Connection, code};

/// A start under load on a busy machine. The promise (1 s + 1 s per unsealed GiB) is printed
/// against; this only catches a recovery that is out of all proportion.
const READY_MAX: Duration = Duration::from_secs(60);
/// The contract of SIGTERM (5 s) is `tests/restart.rs`'s affair; here a disk that stands still for
/// seconds, because something else on the host writes, must not end a campaign.
const STOP_MAX: Duration = Duration::from_secs(60);

/// The nemesis and its count.
pub struct Nemesis {
    options: Options,
    random: fastrand::Rng,
    broker: Option<Broker>,
    /// Topics whose making was acknowledged.
    pub created: Vec<(String, i32)>,
    kills: u32,
    kills_in_start: u32,
    stops: u32,
    pauses: u32,
    ready_longest: Duration,
    stop_longest: Duration,
}

impl Nemesis {
    pub fn new(options: Options, seed: u64) -> Nemesis {
        Nemesis {
            options,
            random: fastrand::Rng::with_seed(seed),
            broker: None,
            created: Vec::new(),
            kills: 0,
            kills_in_start: 0,
            stops: 0,
            pauses: 0,
            ready_longest: Duration::ZERO,
            stop_longest: Duration::ZERO,
        }
    }

    /// Starts the broker on an empty folder and makes the topic.
    pub fn start_first(&mut self, field: &Field) {
        self.start(field, "first");
        self.create(field, TOPIC, PARTITIONS);
        assert_eq!(self.created.len(), 1, "the first topic must be made");
    }

    /// Kills and starts `kills` times.
    pub fn rage(&mut self, field: &Field, kills: u32) {
        for cycle in 0..kills {
            let longest = [60, 300, 1500][self.random.usize(0..3)];
            thread::sleep(Duration::from_millis(self.random.u64(0..longest)));
            if self.random.bool() {
                let partitions = self.random.i32(1..4);
                self.create(field, &format!("extra-{cycle}"), partitions);
            }
            match self.random.u32(0..10) {
                0 => {
                    self.restart_gently(field);
                    continue;
                }
                1 => self.pause(),
                _ => {}
            }
            self.kill(field);
            while self.random.u32(0..5) < 2 {
                self.kill_a_start();
            }
            self.start(field, "kill");
        }
        // One more stretch of load on what the last recovery left.
        thread::sleep(Duration::from_millis(300));
    }

    /// SIGTERM under whatever load there is, and a start.
    pub fn restart_gently(&mut self, field: &Field) {
        let broker = self.broker.take().expect("a broker runs");
        let took = broker.stop(STOP_MAX);
        field.set_endpoint(None);
        self.stops += 1;
        self.stop_longest = self.stop_longest.max(took);
        self.start(field, "term");
    }

    /// Ends the campaign: the running broker.
    pub fn finish(&mut self) -> Option<Broker> {
        self.broker.take()
    }

    pub fn summary(&self) -> String {
        format!(
            "{} kills, {} kills of a start, {} pauses, {} clean stops (longest {:?}), \
             longest start {:?}, {} topics",
            self.kills,
            self.kills_in_start,
            self.pauses,
            self.stops,
            self.stop_longest,
            self.ready_longest,
            self.created.len()
        )
    }

    /// Stops the process for a while, as a hypervisor does, before it is killed.
    fn pause(&mut self) {
        let broker = self.broker.as_ref().expect("a broker runs");
        broker.signal(libc::SIGSTOP);
        thread::sleep(Duration::from_millis(self.random.u64(10..400)));
        broker.signal(libc::SIGCONT);
        self.pauses += 1;
    }

    fn kill(&mut self, field: &Field) {
        let broker = self.broker.take().expect("a broker runs");
        broker.kill();
        field.set_endpoint(None);
        self.kills += 1;
    }

    /// Starts the broker only to kill it some milliseconds later.
    fn kill_a_start(&mut self) {
        let mut broker = Broker::spawn(&self.options);
        let longest = [5, 40, 300][self.random.usize(0..3)];
        thread::sleep(Duration::from_micros(self.random.u64(0..longest * 1000)));
        assert!(
            broker.is_alive(),
            "a start ended by itself\n{}",
            broker.log_tail()
        );
        broker.kill();
        self.kills_in_start += 1;
    }

    fn start(&mut self, field: &Field, how: &str) {
        let t_invoke = field.recorder.now();
        let begin = Instant::now();
        let options = self.options.clone().cores(self.random.u32(1..=2));
        let (broker, ready) = Broker::start(&options);
        let took = begin.elapsed();
        assert!(took < READY_MAX.min(START_MAX), "ready only after {took:?}");
        self.ready_longest = self.ready_longest.max(took);
        let incarnation = field.next_incarnation();
        let action = Action::Restart(Restarted {
            incarnation,
            how: how.to_owned(),
        });
        field
            .recorder
            .note(0, u64::from(incarnation), t_invoke, Outcome::Ok, action);
        let endpoint = ready.kafka[self.random.usize(0..ready.kafka.len())];
        field.set_endpoint(Some(endpoint));
        self.broker = Some(broker);
    }

    fn create(&mut self, field: &Field, topic: &str, partitions: i32) {
        let endpoint = field.endpoint().expect("a broker runs");
        let connection = Connection::open(endpoint, Duration::from_secs(10));
        let mut connection = connection.expect("a running broker takes connections");
        match connection.create_topic(topic, partitions, &[]) {
            Ok(code::NONE) => self.created.push((topic.to_owned(), partitions)),
            answer => field.fault(format!("making topic {topic}: {answer:?}")),
        }
    }
}
