//! Virtual time: it moves only when a task is polled or nothing is ready.

use super::Core;
use super::executor::{Action, TimerKey};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Wall clock at virtual time 0: 2026-01-01T00:00:00Z.
const UNIX_MS_AT_START: i64 = 1_767_225_600_000;

/// The clock of a simulation.
#[derive(Clone)]
pub struct SimClock {
    pub(super) core: Rc<Core>,
}

impl SimClock {
    /// Virtual nanoseconds since the start.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.core.executor.now_ns()
    }

    /// Virtual milliseconds since 1970.
    #[must_use]
    pub fn unix_ms(&self) -> i64 {
        let passed = i64::try_from(self.now_ns() / 1_000_000).unwrap_or(i64::MAX);
        UNIX_MS_AT_START.saturating_add(passed)
    }

    /// Sleeps; the timer dies with the future.
    #[must_use]
    pub fn sleep(&self, duration: Duration) -> Sleep {
        Sleep {
            core: Rc::clone(&self.core),
            delay_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
            key: None,
        }
    }
}

/// A sleep; starts at its first poll.
pub struct Sleep {
    core: Rc<Core>,
    delay_ns: u64,
    key: Option<TimerKey>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.key {
            None => {
                let action = Action::Wake(context.waker().clone());
                self.key = Some(self.core.executor.timer(self.delay_ns, action));
                Poll::Pending
            }
            Some(key) if self.core.executor.rewake(key, context.waker()) => Poll::Pending,
            Some(_) => {
                self.key = None;
                Poll::Ready(())
            }
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.core.executor.cancel(key);
        }
    }
}
