//! The only door to glommio, the kernel, time and chance.
//!
//! Types here are concrete and real or simulated inside: a branch per I/O costs nothing that can be
//! measured, while a type parameter on every signature would cost every reader. An [`Env`] belongs
//! to the executor (core) that made it and never leaves it.

pub mod buffer;
pub mod clock;
pub mod disk;
pub mod net;
mod real;
pub mod sim;

pub use buffer::{Buffer, SharedBuffer};
pub use clock::Clock;
pub use disk::{Disk, DirEntry, File, OpenMode};

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
    /// The clock of this executor.
    #[must_use]
    pub fn clock(&self) -> Clock {
        unimplemented!()
    }

    /// The disk as this executor reaches it.
    #[must_use]
    pub fn disk(&self) -> Disk {
        unimplemented!()
    }

    /// Starts a task on this executor and lets it run on its own. The task is only scheduled, never
    /// polled inside this call (so a `RefCell` borrow of the caller is no trap). A panic inside it
    /// is a bug of ours: it ends the process with exit code 6, or fails the simulation.
    pub fn spawn(&self, name: &'static str, future: impl Future<Output = ()> + 'static) {
        let _ = (name, future);
        unimplemented!()
    }

    /// A random number: the kernel's, or the seed's.
    #[must_use]
    pub fn random_u64(&self) -> u64 {
        unimplemented!()
    }

    /// Lets I/O, timers and other tasks go first. Long work calls it every 300 µs or so: under
    /// glommio it is a 2 µs timer, because a bare yield does not reach the reactor.
    pub async fn yield_now(&self) {
        unimplemented!()
    }

    /// Runs blocking, synchronous `work` (compression of megabytes, DNS) off this executor.
    pub async fn spawn_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let _ = work;
        unimplemented!()
    }
}
