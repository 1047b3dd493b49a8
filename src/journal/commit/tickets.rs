//! Who waits for which staged item. One number says what is committed; waiters are woken in the
//! order of their tickets, and all of them, with an error, when the journal is poisoned.
//!
//! A waiter that is dropped leaves a stale waker behind, which the ticket's release clears.

use super::super::Poisoned;
use std::cell::{Cell, RefCell};
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::task::{Poll, Waker};

struct Waiter {
    ticket: u64,
    waker: Waker,
}

impl PartialEq for Waiter {
    fn eq(&self, other: &Self) -> bool {
        self.ticket == other.ticket
    }
}

impl Eq for Waiter {}

impl PartialOrd for Waiter {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiter {
    /// Reversed: the heap's greatest is the lowest ticket.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.ticket.cmp(&self.ticket)
    }
}

/// The tickets of one journal.
#[derive(Default)]
pub(in crate::journal) struct Tickets {
    committed: Cell<u64>,
    waiters: RefCell<BinaryHeap<Waiter>>,
    poisoned: RefCell<Option<Poisoned>>,
}

impl Tickets {
    pub(in crate::journal) fn committed(&self) -> u64 {
        self.committed.get()
    }

    pub(in crate::journal) fn poisoned(&self) -> Option<Poisoned> {
        self.poisoned.borrow().clone()
    }

    /// Whether the journal is poisoned, without copying why.
    pub(in crate::journal) fn is_poisoned(&self) -> bool {
        self.poisoned.borrow().is_some()
    }

    /// Releases every ticket up to `ticket`.
    ///
    /// # Panics
    /// If the journal is poisoned, or tickets would go back: bugs.
    pub(in crate::journal) fn release(&self, ticket: u64) {
        assert!(
            !self.is_poisoned(),
            "after a failure no ticket is ever released"
        );
        assert!(
            ticket >= self.committed.get(),
            "tickets are released in order"
        );
        self.committed.set(ticket);
        let mut waiters = self.waiters.borrow_mut();
        while let Some(lowest) = waiters.peek() {
            if lowest.ticket > ticket {
                break;
            }
            if let Some(waiter) = waiters.pop() {
                waiter.waker.wake();
            }
        }
    }

    /// From here on no ticket is released. Returns whether this was the first failure.
    pub(in crate::journal) fn poison(&self, poisoned: Poisoned) -> bool {
        let first = self.poisoned.borrow().is_none();
        if first {
            *self.poisoned.borrow_mut() = Some(poisoned);
        }
        for waiter in self.waiters.borrow_mut().drain() {
            waiter.waker.wake();
        }
        assert!(self.is_poisoned());
        first
    }

    /// Waits for one ticket.
    pub(in crate::journal) async fn wait(&self, ticket: u64) -> Result<(), Poisoned> {
        let mut known: Option<Waker> = None;
        poll_fn(|context| {
            if self.committed.get() >= ticket {
                return Poll::Ready(Ok(()));
            }
            if let Some(poisoned) = self.poisoned() {
                return Poll::Ready(Err(poisoned));
            }
            let waker = context.waker();
            if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
                known = Some(waker.clone());
                let waker = waker.clone();
                self.waiters.borrow_mut().push(Waiter { ticket, waker });
            }
            Poll::Pending
        })
        .await
    }
}
