//! Memory units: taken before the bytes they stand for, given back when the answer is written.
//!
//! Invariants: Σ taken ≤ capacity (one oversized batch may overdraw, since a large record must
//! always move); waiters are served in order; no body is read without units. A waiting connection
//! is not read from, and TCP tells its peer: that is the back-pressure. Lives on one core; no lock.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A bounded amount of memory, in bytes.
#[derive(Clone)]
pub struct MemoryPool {
    state: Rc<PoolState>,
}

struct PoolState {
    capacity_bytes: usize,
    /// Negative while an oversized batch overdraws.
    free_bytes: Cell<i64>,
    /// Number of [`Units`] that are out.
    holders: Cell<usize>,
    waiting: RefCell<VecDeque<Rc<Waiter>>>,
    waits: Cell<u64>,
}

struct Waiter {
    bytes: usize,
    phase: Cell<Phase>,
    waker: RefCell<Option<Waker>>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Phase {
    Waiting,
    Granted,
    Abandoned,
}

impl MemoryPool {
    /// A pool of `capacity_bytes`.
    #[must_use]
    pub fn new(capacity_bytes: usize) -> Self {
        assert!(capacity_bytes > 0, "a pool holds something");
        Self {
            state: Rc::new(PoolState {
                capacity_bytes,
                free_bytes: Cell::new(as_i64(capacity_bytes)),
                holders: Cell::new(0),
                waiting: RefCell::default(),
                waits: Cell::new(0),
            }),
        }
    }

    /// Takes `bytes`, or all there is in an idle pool if that is less; waits its turn.
    pub fn take(&self, bytes: usize) -> Take {
        let bytes = bytes.min(self.state.capacity_bytes);
        Take {
            state: Rc::clone(&self.state),
            bytes,
            waiter: None,
        }
    }

    /// Takes up to `wanted` bytes but leaves most of a scarce pool to others: an eighth of what is
    /// free for the first, less the more there are (so that hundreds who never give back cannot
    /// empty it), and `least` at least, waiting for that if it must.
    pub async fn take_share(&self, wanted: usize, least: usize) -> Units {
        let free = usize::try_from(self.state.free_bytes.get()).unwrap_or(0);
        let share = free / (8 + 2 * self.state.holders.get());
        self.take(wanted.min(share.max(least))).await
    }

    /// Whether somebody waits.
    #[must_use]
    pub fn is_scarce(&self) -> bool {
        !self.state.waiting.borrow().is_empty()
    }

    /// Bytes taken now.
    #[must_use]
    pub fn used_bytes(&self) -> i64 {
        as_i64(self.state.capacity_bytes) - self.state.free_bytes.get()
    }

    /// Whether somebody waits now.
    #[must_use]
    pub fn is_waited_for(&self) -> bool {
        !self.state.waiting.borrow().is_empty()
    }

    /// How often somebody had to wait.
    #[must_use]
    pub fn waits(&self) -> u64 {
        self.state.waits.get()
    }
}

fn as_i64(bytes: usize) -> i64 {
    i64::try_from(bytes).expect("memory sizes fit an i64")
}

impl PoolState {
    fn try_take(&self, bytes: usize) -> bool {
        let left = self.free_bytes.get() - as_i64(bytes);
        if left >= 0 {
            self.free_bytes.set(left);
        }
        left >= 0
    }

    fn give_back(&self, bytes: usize) {
        let free = self.free_bytes.get() + as_i64(bytes);
        assert!(
            free <= as_i64(self.capacity_bytes),
            "more was given back than was taken"
        );
        self.free_bytes.set(free);
        self.grant();
    }

    /// Serves waiters in order, as far as the room goes.
    fn grant(&self) {
        let mut waiting = self.waiting.borrow_mut();
        while let Some(waiter) = waiting.front() {
            if waiter.phase.get() != Phase::Abandoned {
                if !self.try_take(waiter.bytes) {
                    return;
                }
                waiter.phase.set(Phase::Granted);
                if let Some(waker) = waiter.waker.borrow_mut().take() {
                    waker.wake();
                }
            }
            waiting.pop_front();
        }
    }
}

/// See [`MemoryPool::take`]. May be dropped at any time.
pub struct Take {
    state: Rc<PoolState>,
    bytes: usize,
    waiter: Option<Rc<Waiter>>,
}

impl Future for Take {
    type Output = Units;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Units> {
        let units = |state: &Rc<PoolState>, bytes| {
            state.holders.set(state.holders.get() + 1);
            let state = Rc::clone(state);
            Units { state, bytes }
        };
        if let Some(waiter) = &self.waiter {
            if waiter.phase.get() == Phase::Granted {
                self.waiter = None;
                return Poll::Ready(units(&self.state, self.bytes));
            }
            *waiter.waker.borrow_mut() = Some(context.waker().clone());
            return Poll::Pending;
        }
        let first = self.state.waiting.borrow().is_empty();
        if first && self.state.try_take(self.bytes) {
            return Poll::Ready(units(&self.state, self.bytes));
        }
        self.state.waits.set(self.state.waits.get() + 1);
        let waiter = Rc::new(Waiter {
            bytes: self.bytes,
            phase: Cell::new(Phase::Waiting),
            waker: RefCell::new(Some(context.waker().clone())),
        });
        self.state
            .waiting
            .borrow_mut()
            .push_back(Rc::clone(&waiter));
        self.waiter = Some(waiter);
        Poll::Pending
    }
}

impl Drop for Take {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.take() else {
            return;
        };
        let granted = waiter.phase.replace(Phase::Abandoned) == Phase::Granted;
        if granted {
            self.state.give_back(self.bytes);
        } else {
            self.state.grant();
        }
    }
}

/// Memory that was taken; given back on drop.
pub struct Units {
    state: Rc<PoolState>,
    bytes: usize,
}

impl Units {
    /// How many bytes these stand for.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Makes these stand for `bytes`, overdrawing the pool if they grow: for the one batch that is
    /// larger than was foreseen.
    pub fn resize(&mut self, bytes: usize) {
        if bytes < self.bytes {
            self.state.give_back(self.bytes - bytes);
        } else {
            let more = as_i64(bytes - self.bytes);
            self.state
                .free_bytes
                .set(self.state.free_bytes.get() - more);
        }
        self.bytes = bytes;
    }
}

impl Drop for Units {
    fn drop(&mut self) {
        self.state.holders.set(self.state.holders.get() - 1);
        self.state.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, poll_once};

    /// Goal: the sum never exceeds the pool, and waiters are served in order, small ones included.
    #[test]
    fn waiters_are_served_in_order() {
        let pool = MemoryPool::new(100);
        block_on(async {
            let first = pool.take(80).await;
            let mut large = Box::pin(pool.take(60));
            assert!(poll_once(&mut large).await.is_none());
            let mut small = Box::pin(pool.take(10));
            assert!(poll_once(&mut small).await.is_none(), "nobody overtakes");
            drop(first);
            let large = poll_once(&mut large).await.expect("there is room now");
            let small = poll_once(&mut small).await.expect("there is room now");
            assert_eq!(pool.used_bytes(), 70);
            drop((large, small));
            assert_eq!(pool.used_bytes(), 0);
        });
    }

    /// Goal: a waiter that gives up blocks nobody and leaks nothing. Method: drop one that waits,
    /// and one that was granted but never polled again.
    #[test]
    fn giving_up_leaks_nothing() {
        let pool = MemoryPool::new(100);
        block_on(async {
            let first = pool.take(100).await;
            let mut gone = Box::pin(pool.take(90));
            assert!(poll_once(&mut gone).await.is_none());
            let mut granted = Box::pin(pool.take(50));
            assert!(poll_once(&mut granted).await.is_none());
            drop(gone);
            drop(first);
            assert_eq!(pool.used_bytes(), 50);
            drop(granted);
            assert_eq!(pool.used_bytes(), 0);
        });
    }

    /// Goal: two hundred greedy readers leave room for a good one. Method: take shares, none given
    /// back, and ask once more.
    #[test]
    fn shares_shrink_before_the_pool_is_empty() {
        let pool = MemoryPool::new(64 << 20);
        block_on(async {
            let mut held = Vec::new();
            for _ in 0..200 {
                let units = poll_once(pool.take_share(50 << 20, 64 << 10)).await;
                held.push(units.expect("a share is left"));
            }
            assert!(
                poll_once(pool.take_share(1 << 20, 64 << 10))
                    .await
                    .is_some()
            );
        });
    }
}
