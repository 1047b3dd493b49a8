//! The only door to glommio, the kernel, time and chance.
//!
//! Types here are concrete and real or simulated inside: a branch per I/O costs nothing that can be
//! measured, while a type parameter on every signature would cost every reader. An [`Env`] belongs
//! to the executor (core) that made it and never leaves it.
//!
//! `clock`, `disk`, `buffer` are what a shard needs and are simulated too; `net`, `process`,
//! `blocking` are the host around it and are always real. `real` holds what is glommio, `sim` what
//! is not.

pub mod blocking;
pub mod buffer;
pub mod clock;
pub mod disk;
pub mod error;
pub mod net;
pub mod probe;
pub mod process;
pub mod real;
pub mod sim;

pub use buffer::{Buffer, SharedBuffer};
pub use clock::Clock;
pub use disk::{DirEntry, Disk, File, OpenMode};
pub use error::raw_os_error;

use std::future::Future;
use std::rc::Rc;

/// The surroundings of one executor: clock, disk, chance and tasks. Cheap to clone, `!Send`.
#[derive(Clone)]
pub struct Env {
    inner: Rc<Inner>,
}

enum Inner {
    Real(real::RealEnv),
    Sim(sim::SimEnv),
}

impl Env {
    /// The real surroundings of the executor this is called on (the cores get theirs from
    /// [`real::executor`]). Elsewhere its futures panic.
    #[must_use]
    pub fn real() -> Env {
        Env {
            inner: Rc::new(Inner::Real(real::RealEnv::new())),
        }
    }

    /// Simulated surroundings.
    #[must_use]
    pub fn simulated(sim: sim::SimEnv) -> Env {
        Env {
            inner: Rc::new(Inner::Sim(sim)),
        }
    }

    /// The clock of this executor.
    #[must_use]
    pub fn clock(&self) -> Clock {
        match &*self.inner {
            Inner::Real(_) => Clock::real(),
            Inner::Sim(sim) => Clock::simulated(sim.clock()),
        }
    }

    /// The disk as this executor reaches it.
    #[must_use]
    pub fn disk(&self) -> Disk {
        match &*self.inner {
            Inner::Real(_) => Disk::real(),
            Inner::Sim(sim) => Disk::simulated(sim.disk()),
        }
    }

    /// Starts a task on this executor and lets it run on its own. The task is only scheduled, never
    /// polled inside this call (so a `RefCell` borrow of the caller is no trap). A panic inside it
    /// is a bug of ours: it ends the process with exit code 6, or fails the simulation.
    pub fn spawn(&self, name: &'static str, future: impl Future<Output = ()> + 'static) {
        match &*self.inner {
            Inner::Real(_) => real::spawn(name, future),
            Inner::Sim(sim) => sim.spawn(name, Box::pin(future)),
        }
    }

    /// A random number: the kernel's, or the seed's.
    #[must_use]
    pub fn random_u64(&self) -> u64 {
        match &*self.inner {
            Inner::Real(real) => real.random_u64(),
            Inner::Sim(sim) => sim.random_u64(),
        }
    }

    /// Lets I/O, timers and other tasks go first. Long work calls it every 300 µs or so: under
    /// glommio it is a 2 µs timer, because a bare yield does not reach the reactor.
    pub async fn yield_now(&self) {
        match &*self.inner {
            Inner::Real(_) => real::yield_now().await,
            Inner::Sim(sim) => sim.yield_now().await,
        }
    }

    /// Runs blocking, synchronous `work` (compression of megabytes, DNS) off this executor. A panic
    /// in it ends the process like one in a task.
    pub async fn spawn_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        match &*self.inner {
            Inner::Real(_) => real::spawn_blocking(work).await,
            Inner::Sim(sim) => sim.spawn_blocking(work).await,
        }
    }

    /// Whether a planted bug is switched on: never outside a simulation that asked for it.
    #[must_use]
    pub fn planted(&self, bug: sim::Bug) -> bool {
        match &*self.inner {
            Inner::Real(_) => false,
            Inner::Sim(sim) => sim.planted(bug),
        }
    }

    /// Notes an acknowledgement (or the like) in a simulation's event log; nothing otherwise.
    pub fn mark(&self, note: u64) {
        match &*self.inner {
            Inner::Real(_) => {}
            Inner::Sim(sim) => sim.mark(note),
        }
    }
}
