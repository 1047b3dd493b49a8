//! What nemesis and clients of a campaign share: where the broker is, whether to go on, what was
//! seen that no broker may do.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use penstock::check::{Action, Outcome};

use crate::support::client::Failure;
use crate::support::cluster::Cluster;
use crate::support::history::Recorder;

/// The topic everybody uses.
pub const TOPIC: &str = "events";
/// Its partitions.
pub const PARTITIONS: i32 = 5;
/// How long a client waits for one answer.
pub const CLIENT_DEADLINE: Duration = Duration::from_secs(10);

/// The field of a campaign.
pub struct Field {
    pub recorder: Recorder,
    pub seed: u64,
    endpoint: Mutex<Option<SocketAddr>>,
    /// No new sends.
    draining: AtomicBool,
    /// The nemesis panicked: everybody goes home.
    abandoned: AtomicBool,
    deadline: Mutex<Option<Instant>>,
    targets: Mutex<Option<HashMap<i32, i64>>>,
    faults: Mutex<Vec<String>>,
    incarnation: AtomicU64,
}

impl Field {
    pub fn new(home: &Path, seed: u64) -> Field {
        Field {
            recorder: Recorder::create(&home.join("history.jsonl")),
            seed,
            endpoint: Mutex::new(None),
            draining: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            deadline: Mutex::new(None),
            targets: Mutex::new(None),
            faults: Mutex::new(Vec::new()),
            incarnation: AtomicU64::new(0),
        }
    }

    /// A random source of one client, from the campaign's seed.
    pub fn random(&self, client: u32) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed ^ u64::from(client) << 32)
    }

    /// The broker moved: `None` while nobody knows where it is.
    pub fn set_endpoint(&self, endpoint: Option<SocketAddr>) {
        *self.endpoint.lock().expect("nobody panics in between") = endpoint;
    }

    pub fn endpoint(&self) -> Option<SocketAddr> {
        *self.endpoint.lock().expect("nobody panics in between")
    }

    pub fn next_incarnation(&self) -> u32 {
        self.incarnation.fetch_add(1, Ordering::SeqCst) as u32 + 1
    }

    /// A client's view of the broker, or `None` while it is down.
    pub fn connect(&self, client: u32) -> Option<Cluster> {
        match Cluster::open(self.endpoint()?, &[TOPIC], CLIENT_DEADLINE) {
            Ok(cluster) if cluster.partitions(TOPIC) == PARTITIONS as usize => Some(cluster),
            Ok(_) | Err(Failure::Io(_)) => None,
            Err(Failure::Malformed(why)) => {
                self.fault(format!("client {client}: Metadata: {why}"));
                None
            }
        }
    }

    /// Notes something that no broker may do and no rule of the checker covers.
    pub fn fault(&self, what: String) {
        let mut faults = self.faults.lock().expect("nobody panics in between");
        if faults.len() < 100 {
            faults.push(what);
        }
    }

    pub fn faults(&self) -> Vec<String> {
        self.faults
            .lock()
            .expect("nobody panics in between")
            .clone()
    }

    /// The last fault is over: no new sends, and what is open ends within `drain`.
    pub fn heal(&self, drain: Duration) {
        let now = self.recorder.now();
        self.recorder.note(0, now, now, Outcome::Ok, Action::Heal);
        *self.deadline.lock().expect("nobody panics in between") = Some(Instant::now() + drain);
        self.draining.store(true, Ordering::SeqCst);
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Whether a client must give up what is still open.
    pub fn is_over(&self) -> bool {
        let deadline = *self.deadline.lock().expect("nobody panics in between");
        let late = deadline.is_some_and(|deadline| Instant::now() > deadline);
        late || self.abandoned.load(Ordering::SeqCst)
    }

    /// Where each partition ends, now that nobody sends: consumers go home when they are there.
    pub fn set_targets(&self, ends: &[(i32, i64, i64)]) {
        let targets = ends
            .iter()
            .map(|&(partition, _, end)| (partition, end))
            .collect();
        *self.targets.lock().expect("nobody panics in between") = Some(targets);
    }

    /// Whether a consumer at `positions` has read all there will ever be.
    pub fn is_all_read(&self, positions: &[i64]) -> bool {
        let targets = self.targets.lock().expect("nobody panics in between");
        let Some(targets) = targets.as_ref() else {
            return false;
        };
        let at = |partition: &i32| positions[*partition as usize];
        targets.iter().all(|(partition, &end)| at(partition) >= end)
    }

    /// Whether the targets are known: what has no goal of its own ends here.
    pub fn is_finished(&self) -> bool {
        self.targets
            .lock()
            .expect("nobody panics in between")
            .is_some()
    }

    /// Lets every client go when the guard is dropped without targets: the nemesis panicked.
    pub fn stop_when_dropped(&self) -> Guard<'_> {
        Guard(self)
    }
}

/// See [`Field::stop_when_dropped`].
pub struct Guard<'a>(&'a Field);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if !self.0.is_finished() {
            self.0.draining.store(true, Ordering::SeqCst);
            self.0.abandoned.store(true, Ordering::SeqCst);
        }
    }
}
