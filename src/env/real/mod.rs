//! The real side: glommio and the kernel. One executor thread per core.
//!
//! What bites in glommio 0.9.0 is met here, each trap with a comment and a test: a spawned task
//! that is polled inside `spawn`, panics that hang or abort, the executor that parks although work
//! is ready, the ring flags that halve TCP throughput, the IOPOLL misdetection.

pub mod disk;
pub mod executor;
pub mod preflight;
pub mod ring;
pub mod watchdog;

use crate::env::process;
use futures_lite::FutureExt;
use std::cell::RefCell;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// Reaching the reactor takes a timer: `yield_if_needed` returns to it only when the 100 ms preempt
/// timer has fired.
const YIELD_SLEEP: Duration = Duration::from_micros(2);

/// Chance and tasks of one glommio executor.
pub(super) struct RealEnv {
    random: RefCell<fastrand::Rng>,
}

impl RealEnv {
    pub(super) fn new() -> RealEnv {
        let seed = u64::from_le_bytes(process::random_bytes());
        RealEnv {
            random: RefCell::new(fastrand::Rng::with_seed(seed)),
        }
    }

    pub(super) fn random_u64(&self) -> u64 {
        self.random.borrow_mut().u64(..)
    }
}

/// `spawn_local` would poll the task at once, inside the caller; `spawn_local_into` only schedules
/// it. A panic that left a task would end the executor (or abort), with the sockets of its other
/// tasks left open: the process ends here instead.
pub(super) fn spawn(name: &'static str, future: impl Future<Output = ()> + 'static) {
    let guarded = async move {
        if let Err(panic) = AssertUnwindSafe(future).catch_unwind().await {
            process::exit_for_panic(name, &*panic);
        }
    };
    let queue = glommio::executor().current_task_queue();
    glommio::spawn_local_into(guarded, queue)
        .expect("the queue of the running task exists")
        .detach();
}

/// Lets the reactor and everything ready go first.
pub(super) async fn yield_now() {
    glommio::timer::Timer::new(YIELD_SLEEP).await;
}

/// Runs `work` on the executor's pool of blocking threads. A panic on such a thread would hang the
/// caller for ever and kill the pool, so it is caught and ends the process.
pub(super) async fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    let guarded = move || {
        std::panic::catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|panic| process::exit_for_panic("blocking work", &*panic))
    };
    glommio::executor().spawn_blocking(guarded).await
}
