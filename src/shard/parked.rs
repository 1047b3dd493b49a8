//! Fetches that found too little and wait for a commit.
//!
//! A fetch parks one [`Parked`] on each of its partitions; a commit wakes all that are parked on
//! the partition and forgets them. There is no polling: an idle consumer costs no CPU. A fetch that
//! gives up simply drops its `Parked`; the dead entries are swept when a list has doubled.
//! Lives on one core.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

/// One waiting fetch. Await it to sleep until any of its partitions has something new.
#[derive(Default)]
pub struct Parked {
    woken: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Parked {
    /// A fetch that is about to wait.
    #[must_use]
    pub fn new() -> Rc<Self> {
        Rc::new(Self::default())
    }

    fn wake(&self) {
        self.woken.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Waits until a partition this fetch is parked on has something new.
    pub fn woken(self: &Rc<Self>) -> Woken {
        Woken {
            parked: Rc::clone(self),
        }
    }
}

/// See [`Parked::woken`].
pub struct Woken {
    parked: Rc<Parked>,
}

impl Future for Woken {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.parked.woken.get() {
            return Poll::Ready(());
        }
        *self.parked.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Length at which a list of parked fetches is swept for the first time.
const SWEEP_AT_FIRST: usize = 8;

/// The fetches parked on one partition.
pub struct ParkedList {
    list: Vec<Weak<Parked>>,
    sweep_at: usize,
}

impl Default for ParkedList {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            sweep_at: SWEEP_AT_FIRST,
        }
    }
}

impl ParkedList {
    /// Parks a fetch here until the next [`ParkedList::wake_all`].
    pub fn park(&mut self, parked: &Rc<Parked>) {
        if self.list.len() >= self.sweep_at {
            self.list.retain(|weak| weak.strong_count() > 0);
            self.sweep_at = (self.list.len() * 2).max(SWEEP_AT_FIRST);
        }
        self.list.push(Rc::downgrade(parked));
    }

    /// Wakes every parked fetch and forgets them.
    pub fn wake_all(&mut self) {
        for weak in self.list.drain(..) {
            if let Some(parked) = weak.upgrade() {
                parked.wake();
            }
        }
        self.sweep_at = SWEEP_AT_FIRST;
    }

    /// How many entries are held, dead ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether nothing is parked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a fetch that gave up leaves nothing behind for ever. Method: park and drop many times.
    #[test]
    fn dropped_fetches_are_swept() {
        let mut list = ParkedList::default();
        let kept = Parked::new();
        list.park(&kept);
        for _ in 0..1_000 {
            list.park(&Parked::new());
        }
        assert!(list.len() <= 2 * SWEEP_AT_FIRST, "{} entries", list.len());
        list.wake_all();
        assert!(kept.woken.get());
        assert!(list.is_empty());
    }
}
