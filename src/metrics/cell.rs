//! The recording side: plain cells that belong to one core. No atomics, no locks, and nothing is
//! allocated after construction.

use super::snapshot::{HistogramSnapshot, Reading};
use hdrhistogram::Histogram as Hdr;
use std::cell::{Cell, RefCell};

/// What a number counts. It decides the suffix of the name in JSON and in Prometheus.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// Things; no suffix.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds as recorded; microseconds in JSON, seconds in Prometheus.
    Time,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(Cell<u64>);

impl Counter {
    /// Counts one.
    pub fn inc(&self) {
        self.add(1);
    }
    /// Counts `amount`.
    pub fn add(&self, amount: u64) {
        self.0.set(self.0.get().wrapping_add(amount));
    }
    /// Takes over a total that is kept elsewhere (a thread's CPU time).
    pub fn set(&self, total: u64) {
        self.0.set(total);
    }
    /// The count so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.get()
    }
    pub(super) fn new(_unit: Unit) -> Counter {
        Counter::default()
    }
    pub(super) fn read(&self) -> Reading {
        Reading::Counter(self.get())
    }
}

/// A number that rises and falls.
#[derive(Debug, Default)]
pub struct Gauge(Cell<i64>);

impl Gauge {
    /// Sets it.
    pub fn set(&self, value: i64) {
        self.0.set(value);
    }
    /// Raises it.
    pub fn add(&self, amount: i64) {
        self.0.set(self.0.get() + amount);
    }
    /// Lowers it.
    pub fn sub(&self, amount: i64) {
        self.0.set(self.0.get() - amount);
    }
    /// Its value.
    #[must_use]
    pub fn get(&self) -> i64 {
        self.0.get()
    }
    pub(super) fn new(_unit: Unit) -> Gauge {
        Gauge::default()
    }
    pub(super) fn read(&self) -> Reading {
        Reading::Gauge(self.get())
    }
}

/// Least value told apart in a time histogram, in nanoseconds.
const TIME_NS_LEAST: u64 = 100;
/// Largest value of a time histogram, in nanoseconds: a minute. Longer ones count as this.
const TIME_NS_MAX: u64 = 60_000_000_000;
/// Largest value of another histogram.
const SIZE_MAX: u64 = 1 << 32;
/// Significant digits: 1 % is finer than any machine repeats, and costs 25 KiB a histogram.
const DIGITS: u8 = 2;

/// An empty histogram of the bounds that all of one unit share, so that they can be merged.
pub(super) fn empty_hdr(unit: Unit) -> Hdr<u64> {
    let (least, most) = match unit {
        Unit::Time => (TIME_NS_LEAST, TIME_NS_MAX),
        Unit::Count | Unit::Bytes => (1, SIZE_MAX),
    };
    Hdr::new_with_bounds(least, most, DIGITS).expect("the bounds are constants that are valid")
}

/// A distribution. Values above its bound count as the bound.
pub struct Histogram {
    counts: RefCell<Hdr<u64>>,
    sum: Cell<u64>,
}

impl Histogram {
    /// Records one value: nanoseconds, bytes or things, as declared.
    pub fn record(&self, value: u64) {
        self.counts.borrow_mut().saturating_record(value);
        self.sum.set(self.sum.get().wrapping_add(value));
    }
    /// Values recorded so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.borrow().len()
    }
    pub(super) fn new(unit: Unit) -> Histogram {
        Histogram {
            counts: RefCell::new(empty_hdr(unit)),
            sum: Cell::new(0),
        }
    }
    pub(super) fn read(&self) -> Reading {
        Reading::Histogram(Box::new(HistogramSnapshot {
            counts: self.counts.borrow().clone(),
            sum: self.sum.get(),
        }))
    }
}

/// Counters by a small number: a Kafka API key, an error code. The last one takes what is beyond.
pub struct Family {
    counts: Box<[Cell<u64>]>,
}

/// Members of a family; above the highest API key and error code that exist.
pub const FAMILY_MEMBERS: usize = 160;

impl Family {
    /// Counts one for member `number`; a negative number (`UNKNOWN_SERVER_ERROR` is -1) is the last
    /// member.
    pub fn inc(&self, number: i16) {
        let last = self.counts.len() - 1;
        let index = usize::try_from(number).map_or(last, |index| index.min(last));
        let cell = &self.counts[index];
        cell.set(cell.get().wrapping_add(1));
    }
    /// The count of one member.
    #[must_use]
    pub fn get(&self, number: i16) -> u64 {
        usize::try_from(number)
            .ok()
            .and_then(|n| self.counts.get(n))
            .map_or(0, Cell::get)
    }
    pub(super) fn new(_unit: Unit) -> Family {
        Family {
            counts: (0..FAMILY_MEMBERS).map(|_| Cell::new(0)).collect(),
        }
    }
    pub(super) fn read(&self) -> Reading {
        let nonzero = self
            .counts
            .iter()
            .enumerate()
            .filter(|(_, count)| count.get() > 0);
        Reading::Family(nonzero.map(|(index, count)| (index, count.get())).collect())
    }
}
