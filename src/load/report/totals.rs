//! Sums over a stretch of the time line, and the rates that follow from them.

use super::spectrum::Spectrum;
use crate::base::units::finite;
use crate::load::run::{Counts, Interval, Latencies};

/// Everything that happened in some intervals.
#[derive(Clone, Debug)]
pub struct Totals {
    /// Their length together.
    pub length_ms: u64,
    /// Sums; `in_flight_max` is the largest.
    pub counts: Counts,
    /// From the intended send to the acknowledgement, those without an answer as "at least".
    pub response: Spectrum,
    /// From the actual send to the acknowledgement.
    pub service: Spectrum,
    /// From the intended send to the receipt.
    pub end_to_end: Spectrum,
    /// From the intended send to the socket, as far as it is the generator's own doing.
    pub schedule_lag: Spectrum,
}

impl Totals {
    /// Of these intervals.
    pub fn over<'a>(intervals: impl Iterator<Item = &'a Interval>) -> Totals {
        let mut length_ms = 0;
        let mut counts = Counts::default();
        let mut latencies = Latencies::new();
        for interval in intervals {
            let in_flight_max = counts.in_flight_max.max(interval.counts.in_flight_max);
            length_ms += interval.length_ms;
            counts.add(&interval.counts);
            counts.in_flight_max = in_flight_max;
            latencies.add(&interval.latencies);
        }
        Totals {
            length_ms,
            counts,
            response: Spectrum::with_unanswered(&latencies.response, latencies.unanswered),
            service: Spectrum::answered(latencies.service),
            end_to_end: Spectrum::answered(latencies.end_to_end),
            schedule_lag: Spectrum::answered(latencies.schedule_lag),
        }
    }

    /// Offered and never handed to a socket.
    #[must_use]
    pub fn unsent(&self) -> u64 {
        self.counts.offered.saturating_sub(self.counts.sent)
    }

    /// Sent without success: answered with an error, lost, or not answered.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.counts.failed + self.counts.unanswered
    }

    /// `count` over the time measured; 0 for no time.
    #[must_use]
    pub fn per_s(&self, count: u64) -> f64 {
        finite(count as f64 * 1e3 / self.length_ms as f64)
    }

    /// Of what was offered here, acknowledged, a second. Times the length: `acknowledged`.
    #[must_use]
    pub fn acknowledged_per_s(&self) -> f64 {
        self.per_s(self.counts.acknowledged)
    }

    /// The same by the clock: whatever was acknowledged while this time passed.
    #[must_use]
    pub fn acknowledged_meanwhile_per_s(&self) -> f64 {
        self.per_s(self.counts.acknowledged_meanwhile)
    }

    /// The latency that the run is about: `response`, or `end_to_end` where nothing was sent.
    #[must_use]
    pub fn foremost(&self) -> (&'static str, &Spectrum) {
        if self.response.count() == 0 && self.end_to_end.count() > 0 {
            ("end to end", &self.end_to_end)
        } else {
            ("response", &self.response)
        }
    }

    /// Whether the run only consumed.
    #[must_use]
    pub fn is_consume_only(&self) -> bool {
        self.counts.offered == 0 && self.counts.received_meanwhile > 0
    }

    /// The four latencies by name, with what each is.
    #[must_use]
    pub fn latencies(&self) -> [(&'static str, &'static str, &Spectrum); 4] {
        [
            ("response", RESPONSE, &self.response),
            ("service", SERVICE, &self.service),
            ("end_to_end", END_TO_END, &self.end_to_end),
            ("schedule_lag", SCHEDULE_LAG, &self.schedule_lag),
        ]
    }
}

/// What `response` is.
pub const RESPONSE: &str =
    "from the intended send to the acknowledgement; no answer counts as \"at least\"";
/// What `service` is.
pub const SERVICE: &str = "from the actual send to the acknowledgement; answered messages only";
/// What `end_to_end` is.
pub const END_TO_END: &str = "from the intended send to the receipt by a consumer";
/// What `schedule_lag` is.
pub const SCHEDULE_LAG: &str =
    "from the intended send to the socket, as far as the generator is the cause";
