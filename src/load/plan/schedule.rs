//! When every message is meant to be sent: arithmetic over the rates, and nothing else.
//!
//! The whole load, however it is split, is one sequence of messages. Message *g* of it belongs to
//! producer *g* mod N and is meant for the moment at which *g* messages should have been sent. So a
//! producer that fell behind needs no memory for what is due: it goes on counting.
//!
//! With Poisson arrivals each producer has a process of its own at 1/N of the rate; together they
//! are one at the whole rate.
//!
//! Invariants: times never decrease along a [`Stream`]; they lie before the schedule's end; they
//! depend on nothing that was measured.

use super::chance::{Chance, mix};
use std::sync::Arc;

/// How messages are spread within a rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Arrivals {
    /// Evenly.
    Constant,
    /// As a Poisson process: bursts as independent users make them.
    Poisson,
}

/// A stretch of one rate, or of one that changes evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// Length, in nanoseconds.
    pub length_ns: u64,
    /// Messages a second at its start, above 0.
    pub rate_start: f64,
    /// Messages a second at its end, above 0.
    pub rate_end: f64,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    at_ns: u64,
    stretch: Stretch,
    /// Messages before it.
    mass: f64,
}

/// The moments of a load, from its start at 0.
#[derive(Clone, Debug)]
pub struct Schedule {
    segments: Vec<Segment>,
    end_ns: u64,
    mass_end: f64,
    arrivals: Arrivals,
    seed: u64,
    /// Messages in all, where the load is limited by number.
    count: u64,
}

impl Schedule {
    /// The schedule of stretches that follow each other; at most `count` messages.
    ///
    /// # Panics
    /// There is no stretch, or a rate is not a positive number.
    #[must_use]
    pub fn new(stretches: &[Stretch], arrivals: Arrivals, seed: u64, count: Option<u64>) -> Self {
        assert!(!stretches.is_empty(), "a schedule has a rate");
        let mut segments = Vec::with_capacity(stretches.len());
        let (mut at_ns, mut mass) = (0u64, 0.0);
        for stretch in stretches {
            let positive = |rate: f64| rate > 0.0 && rate.is_finite();
            assert!(positive(stretch.rate_start) && positive(stretch.rate_end));
            segments.push(Segment {
                at_ns,
                stretch: *stretch,
                mass,
            });
            at_ns = at_ns.saturating_add(stretch.length_ns);
            let mean = 0.5 * (stretch.rate_start + stretch.rate_end);
            mass += mean * stretch.length_ns as f64 / 1e9;
        }
        Schedule {
            segments,
            end_ns: at_ns,
            mass_end: mass,
            arrivals,
            seed,
            count: count.unwrap_or(u64::MAX),
        }
    }

    /// When it ends, from its start.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Messages of it that belong to one of `producers`, if the load is limited by number.
    #[must_use]
    pub fn count_of(&self, producer: u64, producers: u64) -> u64 {
        share(self.count, producer, producers)
    }

    /// When `mass` messages should have been sent; `None` at or after the end. `segment` is where
    /// to look first, and is moved on.
    fn time_at(&self, mass: f64, segment: &mut usize) -> Option<u64> {
        if mass >= self.mass_end {
            return None;
        }
        while self
            .segments
            .get(*segment + 1)
            .is_some_and(|next| next.mass <= mass)
        {
            *segment += 1;
        }
        let Segment {
            at_ns,
            stretch,
            mass: before,
        } = self.segments[*segment];
        let inside = (mass - before).max(0.0);
        let slope = (stretch.rate_end - stretch.rate_start) / (stretch.length_ns as f64 / 1e9);
        let rate = stretch.rate_start;
        // For an even rate the root is the rate itself, and this is inside / rate.
        let root = (rate * rate + 2.0 * slope * inside).max(0.0).sqrt();
        let seconds = 2.0 * inside / (rate + root);
        let time = at_ns.saturating_add((seconds * 1e9) as u64);
        Some(time.min(self.end_ns - 1))
    }
}

/// How many of the numbers 0 to `count` - 1 leave `index` over `modulus`.
#[must_use]
pub fn share(count: u64, index: u64, modulus: u64) -> u64 {
    assert!(index < modulus, "a share is one of its whole");
    count.saturating_sub(index).div_ceil(modulus)
}

/// One producer's messages in order, of which every `step`-th is taken.
#[derive(Clone, Debug)]
pub struct Stream {
    schedule: Arc<Schedule>,
    producer: u64,
    producers: u64,
    /// Number of the next message among the producer's.
    next: u64,
    step: u64,
    segment: usize,
    limit: u64,
    /// Poisson: messages that should have been sent before the next one, and what comes after.
    process: Option<(f64, Chance)>,
}

impl Stream {
    /// Messages `first`, `first` + `step`, … of a producer. With Poisson arrivals each such part
    /// is a process of its own.
    #[must_use]
    pub fn new(
        schedule: &Arc<Schedule>,
        producer: u64,
        producers: u64,
        (first, step): (u64, u64),
    ) -> Stream {
        assert!(first < step, "a part is one of its whole");
        let process = (schedule.arrivals == Arrivals::Poisson).then(|| {
            let key = mix(schedule.seed ^ mix(producer)) ^ mix(first + 1);
            let mut chance = Chance::new(key);
            let mass = chance.next_gap() * (producers * step) as f64;
            (mass, chance)
        });
        Stream {
            schedule: schedule.clone(),
            producer,
            producers,
            next: first,
            step,
            segment: 0,
            limit: schedule.count_of(producer, producers),
            process,
        }
    }

    /// Number, among the producer's, of the next message and when it is meant to be sent.
    pub fn peek(&mut self) -> Option<(u64, u64)> {
        if self.next >= self.limit {
            return None;
        }
        let mass = match &self.process {
            Some((mass, _)) => *mass,
            None => self.mass_of(self.next),
        };
        let time = self.schedule.time_at(mass, &mut self.segment)?;
        Some((self.next, time))
    }

    /// Goes past the next message.
    pub fn advance(&mut self) {
        self.next += self.step;
        if let Some((mass, chance)) = &mut self.process {
            *mass += chance.next_gap() * (self.producers * self.step) as f64;
        }
    }

    /// When the message `ahead` places after the next one is meant to be sent: `None` if there is
    /// none, or if it takes walking there.
    #[must_use]
    pub fn time_ahead(&self, ahead: u64) -> Option<u64> {
        let number = self.next + ahead * self.step;
        if self.process.is_some() || number >= self.limit {
            return None;
        }
        let mut segment = self.segment;
        self.schedule.time_at(self.mass_of(number), &mut segment)
    }

    /// Goes past every message that is meant for a moment before `end_ns`, and says how many those
    /// are. Even arrivals are not walked but found.
    pub fn skip_until(&mut self, end_ns: u64) -> u64 {
        if self.process.is_some() {
            let mut count = 0;
            while self.peek().is_some_and(|(_, time)| time < end_ns) {
                self.advance();
                count += 1;
            }
            return count;
        }
        let before = |ahead: u64| self.time_ahead(ahead).is_some_and(|time| time < end_ns);
        if !before(0) {
            return 0;
        }
        // Invariant: `low` lies before the end, `high` does not.
        let (mut low, mut high) = (0u64, 1u64);
        while before(high) {
            low = high;
            high *= 2;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if before(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.next += high * self.step;
        high
    }

    fn mass_of(&self, number: u64) -> f64 {
        (number * self.producers + self.producer) as f64
    }
}

#[cfg(test)]
mod tests;
