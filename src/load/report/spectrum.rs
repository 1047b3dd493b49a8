//! One latency's percentiles, told honestly: what has no answer counts as "at least", and a
//! percentile with too few samples beyond it says so.
//!
//! Invariants: percentiles grow with the quantile and never pass the maximum; nothing is a number
//! when there is no sample.

use hdrhistogram::Histogram;

/// The percentiles of every table, with their names.
pub const QUANTILES: [(f64, &str); 5] = [
    (0.5, "p50"),
    (0.9, "p90"),
    (0.99, "p99"),
    (0.999, "p99.9"),
    (0.9999, "p99.99"),
];

/// Fewer samples than this beyond a percentile, and it is marked.
pub const SAMPLES_BEYOND_MIN: f64 = 10.0;

/// The samples of one latency, in microseconds.
#[derive(Clone, Debug)]
pub struct Spectrum {
    /// All samples; of those without an answer, the time they waited.
    all: Histogram<u64>,
    /// Those of them that had no answer, if any: a histogram takes room.
    unanswered: Option<Histogram<u64>>,
}

/// One figure of a latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Microseconds.
    pub us: u64,
    /// The true value may be larger: a message without an answer is among those that make it.
    pub at_least: bool,
    /// Fewer than [`SAMPLES_BEYOND_MIN`] samples lie beyond: chance, more than a property.
    pub few: bool,
}

impl Spectrum {
    /// Of messages that were answered.
    #[must_use]
    pub fn answered(samples: Histogram<u64>) -> Spectrum {
        Spectrum {
            all: samples,
            unanswered: None,
        }
    }

    /// Of messages that were answered and of those that waited in vain.
    #[must_use]
    pub fn with_unanswered(answered: &Histogram<u64>, unanswered: Histogram<u64>) -> Spectrum {
        let mut all = answered.clone();
        all.add(&unanswered).expect("both have the same bounds");
        let unanswered = (!unanswered.is_empty()).then_some(unanswered);
        Spectrum { all, unanswered }
    }

    /// Samples.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.all.len()
    }

    /// The samples themselves.
    #[must_use]
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.all
    }

    /// The value that a share `quantile` of all samples does not pass; `None` without samples.
    #[must_use]
    pub fn at(&self, quantile: f64) -> Option<Point> {
        if self.all.is_empty() {
            return None;
        }
        let us = self.all.value_at_quantile(quantile).min(self.all.max());
        let beyond = self.all.len() as f64 * (1.0 - quantile);
        Some(Point {
            us,
            at_least: self.is_open_below(us),
            few: beyond + 1e-6 < SAMPLES_BEYOND_MIN,
        })
    }

    /// The largest sample; `None` without samples. Never marked as of few samples: it is what it
    /// says.
    #[must_use]
    pub fn max(&self) -> Option<Point> {
        let us = (!self.all.is_empty()).then(|| self.all.max())?;
        Some(Point {
            us,
            at_least: self.is_open_below(us),
            few: false,
        })
    }

    /// The smallest sample; `None` without samples.
    #[must_use]
    pub fn min(&self) -> Option<Point> {
        let us = (!self.all.is_empty()).then(|| self.all.min())?;
        Some(Point {
            us,
            at_least: self.is_open_below(us),
            few: false,
        })
    }

    /// The mean in microseconds, and whether it is "at least"; `None` without samples.
    #[must_use]
    pub fn mean(&self) -> Option<(f64, bool)> {
        let mean = self.all.mean().min(self.all.max() as f64);
        (!self.all.is_empty()).then_some((mean, self.unanswered.is_some()))
    }

    /// Whether a message without an answer lies at or below `us`: it may belong above.
    fn is_open_below(&self, us: u64) -> bool {
        let unanswered = self.unanswered.as_ref();
        unanswered.is_some_and(|waits| waits.min() <= waits.highest_equivalent(us))
    }
}
