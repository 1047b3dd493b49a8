//! What one worker counts, interval by interval. Nothing here is shared: workers hand their
//! tallies over when a stage ends.
//!
//! Invariant: a message is counted in the interval of its intended send; only the counts that go by
//! the clock are not, and those after the stage's end count in its last interval.

use super::Stage;
use super::pace::Pace;
use super::request::Spare;
use crate::env::process;
use crate::load::plan::Plan;
use crate::load::plan::timeline::Timeline;
use crate::load::run::{Counts, Failure, LATENCY_US_MAX, Latencies, growing_histogram};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything of one interval.
#[derive(Debug)]
pub struct Cell {
    /// How many.
    pub counts: Counts,
    /// How long.
    pub latencies: Latencies,
}

impl Default for Cell {
    fn default() -> Self {
        Cell {
            counts: Counts::default(),
            latencies: Latencies::growing(),
        }
    }
}

/// All intervals of one stage, as one worker saw them.
#[derive(Debug, Default)]
pub struct Tally {
    /// By index of the interval; those in which nothing happened are not there.
    pub cells: Vec<Option<Box<Cell>>>,
    /// Failed sends by the error's name; times from the stage's start.
    pub failures: BTreeMap<&'static str, Failure>,
    /// Messages handed over and not answered now.
    pub in_flight: u64,
    /// Messages of this stage that consumers received.
    pub received: u64,
    /// Time spent waiting for sockets while the stage was measured, in nanoseconds.
    pub idle_ns: u64,
    /// When no further message was taken, from the stage's start.
    pub over_ns: u64,
    /// Latencies of what was acknowledged since the last look, if somebody looks.
    pub recent: Option<Histogram<u64>>,
    /// Largest schedule lag since the last look, in nanoseconds.
    pub recent_lag_ns: u64,
    /// From the first fetch until the first record, in nanoseconds, for the quickest reader.
    pub first_fetch_ns: Option<u64>,
}

impl Tally {
    /// Nothing counted.
    #[must_use]
    pub fn new(watched: bool) -> Tally {
        Tally {
            recent: watched.then(growing_histogram),
            ..Tally::default()
        }
    }

    /// The cell of an interval.
    pub fn cell(&mut self, index: usize) -> &mut Cell {
        if self.cells.len() <= index {
            self.cells.resize_with(index + 1, || None);
        }
        self.cells[index].get_or_insert_default()
    }

    /// A request's last byte was handed over for the first time: its messages are sent.
    pub fn sent(&mut self, index: usize, intended: &[u64], free_since: u64, now: u64) {
        let count = intended.len() as u64;
        let cell = self.cell(index);
        cell.counts.sent += count;
        let lag = &mut cell.latencies.schedule_lag;
        // Where the way was free only after the last of them was due, all lag alike.
        if intended.last().is_some_and(|last| *last <= free_since) {
            note(lag, us(now.saturating_sub(free_since)), count);
        } else {
            for time in intended {
                note(lag, us(now.saturating_sub((*time).max(free_since))), 1);
            }
        }
        let first = intended.first().copied().unwrap_or(now).max(free_since);
        self.recent_lag_ns = self.recent_lag_ns.max(now.saturating_sub(first));
    }

    /// Messages are on their way.
    pub fn departed(&mut self, count: u64, clock_index: usize) {
        self.in_flight += count;
        let in_flight = self.in_flight;
        let most = &mut self.cell(clock_index).counts.in_flight_max;
        *most = (*most).max(in_flight);
    }

    /// Messages are no longer on their way.
    pub fn returned(&mut self, count: u64) {
        self.in_flight -= count;
    }

    /// A batch was acknowledged.
    pub fn acknowledged(
        &mut self,
        index: usize,
        clock_index: usize,
        batch: &AcknowledgedBatch<'_>,
        now: u64,
    ) {
        let count = batch.intended.len() as u64;
        let cell = self.cell(index);
        cell.counts.acknowledged += count;
        cell.counts.acknowledged_bytes += batch.bytes;
        let service = us(now.saturating_sub(batch.handed_at));
        note(&mut cell.latencies.service, service, count);
        for time in batch.intended {
            let response = us(now.saturating_sub(*time));
            note(&mut cell.latencies.response, response, 1);
        }
        if let Some(recent) = &mut self.recent {
            for time in batch.intended {
                note(recent, us(now.saturating_sub(*time)), 1);
            }
        }
        self.cell(clock_index).counts.acknowledged_meanwhile += count;
    }

    /// Messages failed for good.
    pub fn failed(&mut self, index: usize, count: u64, error: &'static str, since_begin_ns: u64) {
        self.cell(index).counts.failed += count;
        let at_ms = since_begin_ns / 1_000_000;
        let failure = self.failures.entry(error).or_insert_with(|| Failure {
            error: error.to_owned(),
            count: 0,
            first_ms: at_ms,
            last_ms: at_ms,
        });
        failure.count += count;
        failure.last_ms = failure.last_ms.max(at_ms);
    }

    /// Messages have no answer at the end.
    pub fn unanswered(&mut self, index: usize, intended: &[u64], now: u64) {
        let cell = self.cell(index);
        cell.counts.unanswered += intended.len() as u64;
        for time in intended {
            let least = us(now.saturating_sub(*time));
            note(&mut cell.latencies.unanswered, least, 1);
        }
    }
}

/// A batch whose answer came.
#[derive(Clone, Copy, Debug)]
pub struct AcknowledgedBatch<'a> {
    /// When each message was meant to be sent.
    pub intended: &'a [u64],
    /// When the request was handed over.
    pub handed_at: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

/// Records a latency so many times.
pub fn note(histogram: &mut Histogram<u64>, latency_us: u64, count: u64) {
    histogram
        .record_n(latency_us, count)
        .expect("latency histograms grow up to the largest latency there is");
}

/// Nanoseconds as the microseconds a histogram takes.
#[must_use]
pub fn us(ns: u64) -> u64 {
    ((ns + 500) / 1000).min(LATENCY_US_MAX)
}

/// What every part of a worker records into and asks: the stage, the clock, the tally.
pub struct Books {
    /// The stage that runs.
    pub stage: Stage,
    /// What it counted so far.
    pub tally: Tally,
    /// The moment at which the events that are being handled can have happened at the earliest.
    pub look_ns: u64,
    /// What the clock said when this turn of the loop began.
    pub now: u64,
    /// Whether somebody believes in another leader than there is.
    pub leaders_wanted: bool,
    /// Buffers to be used again.
    pub spare: Spare,
    /// How often a request that failed is sent again.
    pub retries: u32,
    /// Whether the load was told to stop.
    pub stopped: bool,
    /// Whether this is the last turn, for what was due just before the end.
    pub is_finishing: bool,
    /// Something that whoever watches should hear of.
    pub trouble: Option<String>,
}

impl Books {
    /// Books of a worker that was told no stage yet.
    #[must_use]
    pub fn new(plan: &Plan) -> Books {
        let stage = Stage {
            begin_ns: 0,
            pace: Pace::Silent { length_ns: 1 },
            timeline: Arc::new(Timeline::default()),
            measured_from_ns: 0,
            is_counted: false,
        };
        Books {
            stage,
            tally: Tally::new(plan.watched),
            look_ns: 0,
            now: process::monotonic_ns(),
            leaders_wanted: false,
            spare: Spare::default(),
            retries: plan.produce.as_ref().map_or(0, |produce| produce.retries),
            stopped: false,
            is_finishing: false,
            trouble: None,
        }
    }

    /// Whether no further message is to be taken.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stopped || self.now >= self.stage.end_ns()
    }

    /// The interval of an intended send.
    #[must_use]
    pub fn index(&self, intended: u64) -> usize {
        let since = intended.saturating_sub(self.stage.begin_ns);
        self.stage.timeline.index(since)
    }

    /// The interval of this moment; after the end, the last one.
    #[must_use]
    pub fn clock_index(&self) -> usize {
        let last = self.stage.end_ns().saturating_sub(1);
        self.index(self.now.min(last).max(self.stage.begin_ns))
    }

    /// Time since the stage began.
    #[must_use]
    pub fn since_begin_ns(&self) -> u64 {
        self.now.saturating_sub(self.stage.begin_ns)
    }

    /// Looks at the clock.
    pub fn tick(&mut self) -> u64 {
        self.now = process::monotonic_ns();
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only the generator's own lag counts. Method: messages due at 0, 10 and 20 ms, a
    /// window that had room from 15 ms on, handed over at 25 ms: lags of 10, 10 and 5 ms.
    #[test]
    fn lag_counts_from_when_the_way_was_free() {
        let ms = |ms: u64| ms * 1_000_000;
        let mut tally = Tally::new(false);
        tally.sent(0, &[ms(0), ms(10), ms(20)], ms(15), ms(25));
        let lag = &tally.cell(0).latencies.schedule_lag;
        assert_eq!(lag.len(), 3);
        assert_eq!(lag.count_between(9_900, 10_100), 2);
        assert_eq!(lag.count_between(4_900, 5_100), 1);
        tally.sent(0, &[ms(0), ms(10)], ms(15), ms(25));
        let lag = &tally.cell(0).latencies.schedule_lag;
        assert_eq!((lag.len(), lag.count_between(9_900, 10_100)), (5, 4));
        assert_eq!(tally.cell(0).counts.sent, 5);
    }

    /// Goal: sent is acknowledged + failed + unanswered, whatever happens. Method: some of each.
    #[test]
    fn what_was_sent_is_accounted_for() {
        let mut tally = Tally::new(true);
        tally.sent(2, &[5; 10], 0, 9);
        tally.departed(10, 2);
        let batch = AcknowledgedBatch {
            intended: &[5; 6],
            handed_at: 7,
            bytes: 600,
        };
        tally.acknowledged(2, 3, &batch, 2_000_005);
        tally.failed(2, 3, "CONNECTION_LOST", 5_000_000);
        tally.unanswered(2, &[5], 3_000_005);
        let counts = tally.cell(2).counts;
        assert_eq!(
            counts.sent,
            counts.acknowledged + counts.failed + counts.unanswered
        );
        assert_eq!((counts.acknowledged_bytes, counts.in_flight_max), (600, 10));
        assert_eq!(tally.cell(3).counts.acknowledged_meanwhile, 6);
        assert_eq!(tally.cell(2).latencies.response.len(), 6);
        assert_eq!(
            tally.cell(2).latencies.unanswered.count_between(2990, 3010),
            1
        );
        assert_eq!(tally.failures["CONNECTION_LOST"].first_ms, 5);
    }
}
