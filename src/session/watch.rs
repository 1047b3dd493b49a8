//! What is noted of one connection, so that the core's tick can end it from outside: a timer for
//! each wait of each connection would cost more than most requests.

use super::replies::Replies;
use crate::env::net::ConnControl;
use crate::limits::METRICS_TICK;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// The notes of one connection. Shared by its two tasks and the tick, on one core.
#[derive(Default)]
pub struct Watch {
    /// The tick before the write under way began, in ns of the executor's clock; 0 while there is
    /// none.
    pub writing_since_ns: Cell<u64>,
    /// The tick before the next request was waited for; 0 while one is read or started.
    pub waiting_since_ns: Cell<u64>,
    /// The tick has ended it because it asked nothing for too long.
    pub was_idle: Cell<bool>,
}

/// An open connection, as the core's tick knows it.
pub struct OpenConnection {
    /// Ends it.
    pub control: ConnControl,
    /// What it has in flight.
    pub replies: Replies,
    /// What is noted of it.
    pub watch: Rc<Watch>,
}

impl OpenConnection {
    /// Whether it has asked nothing for `patience`, and nothing is owed to it.
    #[must_use]
    pub fn is_idle(&self, now_ns: u64, patience: Duration) -> bool {
        self.replies.is_idle() && longer_than(self.watch.waiting_since_ns.get(), now_ns, patience)
    }

    /// Whether it has left an answer unread for `patience`.
    #[must_use]
    pub fn is_deaf(&self, now_ns: u64, patience: Duration) -> bool {
        longer_than(self.watch.writing_since_ns.get(), now_ns, patience)
    }
}

/// Whether something that began within a tick after `since_ns` lasts longer than `patience` for
/// certain.
fn longer_than(since_ns: u64, now_ns: u64, patience: Duration) -> bool {
    let certain = patience + METRICS_TICK;
    since_ns > 0 && u128::from(now_ns.saturating_sub(since_ns)) > certain.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: nothing under way is never too long; patience is exclusive, and a tick is allowed for.
    #[test]
    fn patience_counts_from_the_beginning() {
        let patience = Duration::from_nanos(100);
        assert!(!longer_than(0, u64::MAX, patience));
        let tick_ns = METRICS_TICK.as_nanos() as u64;
        assert!(!longer_than(50, tick_ns + 150, patience));
        assert!(longer_than(50, tick_ns + 151, patience));
        assert!(!longer_than(500, 150, patience));
    }
}
