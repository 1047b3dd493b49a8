//! When the last blocks were written and became durable, so that a request can say where its time
//! went without a look at the clock of its own: whoever waited for a ticket asks here what became
//! of its block.
//!
//! A waiter is woken in the turn in which its ticket is released, so a short memory does; what is
//! older is not known, which the asker must bear.

use crate::limits::COMMIT_TIMES_KEPT;
use std::collections::VecDeque;

/// The life of one block, in ns of the executor's clock; never falling from one to the next.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CommitTimes {
    /// Its write was handed to the disk.
    pub began_ns: u64,
    /// The write had completed.
    pub written_ns: u64,
    /// The flush had completed; with `O_DSYNC` there is none, and this is when the write had.
    pub flushed_ns: u64,
    /// Every earlier block was durable too: its tickets were released.
    pub released_ns: u64,
}

/// The times of the blocks released last, by the last ticket of each, in order.
#[derive(Default)]
pub(super) struct RecentTimes(VecDeque<(u64, CommitTimes)>);

impl RecentTimes {
    /// Notes a block that holds tickets up to `stage_last`.
    pub(super) fn note(&mut self, stage_last: u64, times: CommitTimes) {
        let newest = self.0.back().map_or(0, |(stage_last, _)| *stage_last);
        if stage_last == newest {
            return; // A seal or a mark: nobody waits for it.
        }
        assert!(stage_last > newest, "blocks are released in order");
        if self.0.len() == COMMIT_TIMES_KEPT {
            self.0.pop_front();
        }
        self.0.push_back((stage_last, times));
    }

    /// The times of the block that holds `ticket`; `None` if it is too long ago or still to come.
    pub(super) fn of(&self, ticket: u64) -> Option<CommitTimes> {
        let index = self.0.partition_point(|(last, _)| *last < ticket);
        let (_, times) = self.0.get(index)?;
        // The oldest kept block may not be the one of an older ticket.
        (index > 0 || self.0.len() < COMMIT_TIMES_KEPT).then_some(*times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(began_ns: u64) -> CommitTimes {
        CommitTimes {
            began_ns,
            ..CommitTimes::default()
        }
    }

    /// Goal: a ticket finds its own block or none. Method: more blocks of three tickets each than
    /// are kept, a mark among them.
    #[test]
    fn a_ticket_finds_its_block() {
        let mut recent = RecentTimes::default();
        recent.note(3, at(1));
        recent.note(3, at(99));
        recent.note(6, at(2));
        assert_eq!(recent.of(1), Some(at(1)));
        assert_eq!(recent.of(3), Some(at(1)));
        assert_eq!(recent.of(4), Some(at(2)));
        assert_eq!(recent.of(7), None);
        for block in 3..200 {
            recent.note(block * 3, at(block));
        }
        assert_eq!(recent.of(1), None, "forgotten");
        assert_eq!(recent.of(199 * 3), Some(at(199)));
        assert_eq!(recent.of(199 * 3 - 2), Some(at(199)));
    }
}
