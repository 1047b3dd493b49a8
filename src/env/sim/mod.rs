//! The simulated side of the door: a seeded executor, virtual time, and a disk that can lose power.
//!
//! `Sim::new(seed).run(|env| async move { … })` runs code written for [`Env`](super::Env) with no
//! kernel under it. Equal seeds give equal runs, down to the trace hash. The event log of a run
//! yields its crash images ([`CrashPoints`]).

mod clock;
mod disk;
mod executor;
mod fault;
mod image;
mod media;
mod mishap;
mod planted;
#[cfg(test)]
mod tests;

pub use clock::SimClock;
pub use disk::{SimDisk, SimFile};
pub use executor::{Failure, Run, Sim};
pub use fault::{Fault, FaultPlan, OpKind, Rule};
pub use image::{CrashPoints, Undecided};
pub use media::{Change, DirChange, Entry, Event, InodeId, Media, OpId, SECTOR_BYTES, SyncTarget};
pub use planted::Bug;

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

/// Everything one simulation owns.
pub(super) struct Core {
    executor: executor::Executor,
    disk: RefCell<disk::DiskState>,
    planted: Vec<Bug>,
    instant: bool,
    capacity_bytes: u64,
}

/// Simulated environment. Cheap to clone.
#[derive(Clone)]
pub struct SimEnv {
    core: Rc<Core>,
}

impl SimEnv {
    /// The virtual clock.
    #[must_use]
    pub fn clock(&self) -> SimClock {
        SimClock {
            core: Rc::clone(&self.core),
        }
    }

    /// The simulated disk.
    #[must_use]
    pub fn disk(&self) -> SimDisk {
        SimDisk {
            core: Rc::clone(&self.core),
        }
    }

    /// Starts a task.
    pub fn spawn(&self, name: &'static str, future: Pin<Box<dyn Future<Output = ()>>>) {
        self.core.executor.spawn(name, future);
    }

    /// A number from the seed.
    #[must_use]
    pub fn random_u64(&self) -> u64 {
        self.core.executor.chance(|rng| rng.u64(..))
    }

    /// Lets I/O, timers and other tasks go first: a 2 µs timer, as on the real side.
    pub async fn yield_now(&self) {
        self.clock().sleep(Duration::from_micros(2)).await;
    }

    /// Runs `work` inline, at a random later poll.
    pub async fn spawn_blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        let delay = self.core.executor.chance(|rng| rng.u64(1_000..500_000));
        self.clock().sleep(Duration::from_nanos(delay)).await;
        work()
    }

    /// Whether this simulation has the bug switched on.
    #[must_use]
    pub fn planted(&self, bug: Bug) -> bool {
        self.core.planted.contains(&bug)
    }

    /// Notes something in the disk's event log, for instance an acknowledgement, so that a crash
    /// image knows what had been promised by then.
    pub fn mark(&self, note: u64) {
        self.core.executor.trace(note);
        self.core.disk.borrow_mut().log(Event::Mark(note));
    }
}
