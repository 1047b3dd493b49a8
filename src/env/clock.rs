//! Time: monotonic for durations, wall clock for timestamps; virtual under simulation.

use super::{process, sim};
use std::future::Future;
use std::time::Duration;

/// The clock of one executor.
#[derive(Clone)]
pub struct Clock {
    inner: Inner,
}

#[derive(Clone)]
enum Inner {
    Real,
    Sim(sim::SimClock),
}

impl Clock {
    pub(super) fn real() -> Clock {
        Clock { inner: Inner::Real }
    }

    pub(super) fn simulated(clock: sim::SimClock) -> Clock {
        Clock {
            inner: Inner::Sim(clock),
        }
    }

    /// Nanoseconds on the monotonic clock since an arbitrary start.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        match &self.inner {
            Inner::Real => process::monotonic_ns(),
            Inner::Sim(clock) => clock.now_ns(),
        }
    }

    /// Milliseconds since 1970 on the wall clock.
    #[must_use]
    pub fn unix_ms(&self) -> i64 {
        match &self.inner {
            Inner::Real => process::unix_ms(),
            Inner::Sim(clock) => clock.unix_ms(),
        }
    }

    /// Sleeps for at least `duration`.
    pub async fn sleep(&self, duration: Duration) {
        match &self.inner {
            Inner::Real => {
                glommio::timer::Timer::new(duration).await;
            }
            Inner::Sim(clock) => clock.sleep(duration).await,
        }
    }

    /// Runs `future` for at most `duration`: `None` if the time ran out first (the future is
    /// dropped, so it must be safe to cancel: never a write, never an accept).
    ///
    /// The future is polled before the timer is armed, so what is ready at once costs no timer.
    pub async fn deadline<T>(
        &self,
        duration: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let outcome = async { Some(future.await) };
        let expiry = async {
            self.sleep(duration).await;
            None
        };
        futures_lite::future::or(outcome, expiry).await
    }
}
