//! Time: monotonic for durations, wall clock for timestamps; virtual under simulation.

use std::future::Future;
use std::time::Duration;

/// The clock of one executor.
#[derive(Clone)]
pub struct Clock {
    _private: (),
}

impl Clock {
    /// Nanoseconds on the monotonic clock since an arbitrary start.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        unimplemented!()
    }

    /// Milliseconds since 1970 on the wall clock.
    #[must_use]
    pub fn unix_ms(&self) -> i64 {
        unimplemented!()
    }

    /// Sleeps for at least `duration`.
    pub async fn sleep(&self, duration: Duration) {
        let _ = duration;
        unimplemented!()
    }

    /// Runs `future` for at most `duration`: `None` if the time ran out first (the future is dropped,
    /// so it must be safe to cancel: never a write, never an accept).
    pub async fn deadline<T>(&self, duration: Duration, future: impl Future<Output = T>) -> Option<T> {
        let _ = (duration, future);
        unimplemented!()
    }
}
