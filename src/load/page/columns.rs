//! The time line in at most as many columns as a picture has room for: neighbours are summed, and
//! the largest of a column stays its largest.

use crate::load::report::spectrum::{Point, Spectrum};
use crate::load::run::{BrokerSample, Counts, Interval, Phase, Run, latency_histogram};

/// The percentiles that are drawn over time.
pub const PERCENTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// Some intervals that stand beside each other.
pub struct Column {
    /// From the start of the run.
    pub at_ms: u64,
    /// Where it ends.
    pub end_ms: u64,
    /// Sums; `in_flight_max` is the largest.
    pub counts: Counts,
    /// Response times and how many there are of each, those without an answer as "at least". A
    /// whole histogram for each column would be hundreds of megabytes.
    pub samples: Vec<(u64, u64)>,
    /// How many samples.
    pub count: u64,
    /// [`PERCENTILES`] of them.
    pub percentiles: [Option<Point>; 3],
    /// The largest of them.
    pub max: Option<Point>,
    /// 99.9th percentile of the generator's own lag.
    pub lag_p999_us: Option<u64>,
    /// Means of the broker's rates, the largest of its latencies.
    pub broker: Option<BrokerSample>,
    /// Whether any of it is warm-up.
    pub warm_up: bool,
}

impl Column {
    /// Something a second.
    #[must_use]
    pub fn per_s(&self, count: u64) -> f64 {
        crate::base::units::finite(count as f64 * 1e3 / (self.end_ms - self.at_ms) as f64)
    }
}

/// The columns of a run, at most `columns_max`.
#[must_use]
pub fn of(run: &Run, columns_max: usize) -> Vec<Column> {
    let lasting: Vec<&Interval> = run.intervals.iter().filter(|i| i.length_ms > 0).collect();
    let each = lasting.len().div_ceil(columns_max).max(1);
    let end_to_end = is_end_to_end(run);
    lasting
        .chunks(each)
        .map(|part| column(part, end_to_end))
        .collect()
}

/// Whether there is nothing but receipts to show.
#[must_use]
pub fn is_end_to_end(run: &Run) -> bool {
    let sent = |interval: &Interval| {
        interval.latencies.response.len() + interval.latencies.unanswered.len() > 0
    };
    !run.intervals.iter().any(sent)
}

fn column(intervals: &[&Interval], end_to_end: bool) -> Column {
    let (first, last) = (intervals[0], intervals[intervals.len() - 1]);
    let mut counts = Counts::default();
    let mut response = latency_histogram();
    let mut unanswered = latency_histogram();
    let mut lag = latency_histogram();
    for interval in intervals {
        let in_flight_max = counts.in_flight_max.max(interval.counts.in_flight_max);
        counts.add(&interval.counts);
        counts.in_flight_max = in_flight_max;
        let latencies = &interval.latencies;
        for (sum, part) in [
            (
                &mut response,
                if end_to_end {
                    &latencies.end_to_end
                } else {
                    &latencies.response
                },
            ),
            (&mut unanswered, &latencies.unanswered),
            (&mut lag, &latencies.schedule_lag),
        ] {
            sum.add(part).expect("all have the same bounds");
        }
    }
    let response = Spectrum::with_unanswered(&response, unanswered);
    let recorded = response.histogram().iter_recorded();
    Column {
        at_ms: first.at_ms,
        end_ms: last.at_ms + last.length_ms,
        counts,
        samples: recorded
            .map(|value| (value.value_iterated_to(), value.count_at_value()))
            .collect(),
        count: response.count(),
        percentiles: PERCENTILES.map(|quantile| response.at(quantile)),
        max: response.max(),
        lag_p999_us: Spectrum::answered(lag).at(0.999).map(|point| point.us),
        broker: broker(intervals),
        warm_up: intervals
            .iter()
            .any(|interval| interval.phase == Phase::WarmUp),
    }
}

fn broker(intervals: &[&Interval]) -> Option<BrokerSample> {
    let samples: Vec<BrokerSample> = intervals.iter().filter_map(|i| i.broker).collect();
    let count = samples.len() as f64;
    let mean = |pick: fn(&BrokerSample) -> f64| samples.iter().map(pick).sum::<f64>() / count;
    Some(BrokerSample {
        flush_p99_us: samples.iter().map(|sample| sample.flush_p99_us).max()?,
        flushes_per_s: mean(|sample| sample.flushes_per_s),
        entries_per_block: mean(|sample| sample.entries_per_block),
        cpu_cores: mean(|sample| sample.cpu_cores),
    })
}
