//! Whether a load says something about the broker at all: whether the generator kept its schedule.
//!
//! Two things give the generator away. Its own lag (from when a message was due *and* could be
//! handed over, until it was) makes up much of what is reported as response time; or messages were
//! left unsent while a worker had no time to spare. Waiting for the broker — a full window, a full
//! socket, a lost connection — is neither.

use super::run::{Counts, Interval, Latencies, latency_histogram};

/// Lag below this is the grain of timers and schedulers, in microseconds.
const LAG_US_MIN: u64 = 5_000;
/// A worker that is busy for this share of the time has none to spare.
const BUSY_SHARE: f64 = 0.9;
/// A rate counts as kept from this share of it on.
const KEPT_SHARE: f64 = 0.99;

/// What some intervals add up to.
#[derive(Debug, Default)]
pub struct Total {
    /// How many.
    pub counts: Counts,
    /// How long.
    pub latencies: Latencies,
}

impl Total {
    /// Adds intervals up.
    #[must_use]
    pub fn of<'a>(intervals: impl IntoIterator<Item = &'a Interval>) -> Total {
        let mut total = Total::default();
        for interval in intervals {
            total.counts.add(&interval.counts);
            total.latencies.add(&interval.latencies);
        }
        total
    }

    /// A quantile of the response time in microseconds, messages without an answer included as "at
    /// least".
    #[must_use]
    pub fn response_us(&self, quantile: f64) -> u64 {
        let mut all = latency_histogram();
        all.add(&self.latencies.response)
            .expect("it takes every latency there is");
        all.add(&self.latencies.unanswered)
            .expect("it takes every latency there is");
        all.value_at_quantile(quantile)
    }

    /// Why the generator was the limit, if it was; `busy` is the share of the busiest worker.
    #[must_use]
    pub fn generator_limit(&self, busy: f64) -> Option<String> {
        let lag_us = self.latencies.schedule_lag.value_at_quantile(0.99);
        generator_limit(&self.counts, lag_us, self.response_us(0.99), busy)
    }
}

/// Why the generator was the limit of a load of these counts, whose own lag and whose response time
/// have these 99th percentiles; `busy` is the share of the busiest worker.
#[must_use]
pub fn generator_limit(
    counts: &Counts,
    lag_p99_us: u64,
    response_p99_us: u64,
    busy: f64,
) -> Option<String> {
    let Counts { offered, sent, .. } = *counts;
    if lag_p99_us >= LAG_US_MIN && 2 * lag_p99_us >= response_p99_us {
        return Some(format!(
            "the generator's own lag (p99 {lag_p99_us} us) makes up half of the response time"
        ));
    }
    let is_kept = sent as f64 >= KEPT_SHARE * offered as f64;
    (!is_kept && busy >= BUSY_SHARE).then(|| {
        format!(
            "{} of {offered} messages were not sent while a worker was busy for {:.0} %",
            offered - sent,
            busy * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(offered: u64, sent: u64, lag_us: u64, response_us: u64) -> Total {
        let mut total = Total::default();
        total.counts.offered = offered;
        total.counts.sent = sent;
        total
            .latencies
            .schedule_lag
            .record_n(lag_us, sent)
            .expect("fits");
        total
            .latencies
            .response
            .record_n(response_us, sent)
            .expect("fits");
        total
    }

    /// Goal: the generator is blamed for what is its own, and for nothing else. Method: a broker
    /// that stalls (long responses, no lag of ours), one that is overloaded (unsent, workers idle),
    /// then our own lag, and a worker without time.
    #[test]
    fn only_what_is_our_own_counts() {
        assert_eq!(total(1000, 1000, 50, 1_000_000).generator_limit(0.2), None);
        assert_eq!(total(1000, 500, 50, 1_000_000).generator_limit(0.3), None);
        assert_eq!(total(1000, 1000, 900, 1000).generator_limit(0.9), None);
        assert!(
            total(1000, 1000, 20_000, 21_000)
                .generator_limit(0.5)
                .is_some()
        );
        assert!(
            total(1000, 500, 900, 1_000_000)
                .generator_limit(0.97)
                .is_some()
        );
    }
}
