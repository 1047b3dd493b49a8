//! The time line as CSV: one line an interval, warm-up included, with the unit of each column in
//! its name. A figure that has no samples is an empty cell; nothing is quoted because no cell holds
//! a comma.

use super::spectrum::{Point, Spectrum};
use crate::base::units::finite;
use crate::load::run::{Interval, Phase, Run};
use std::fmt::Write as _;

const COUNTS: &str = "at_s,length_s,step,phase,offered,sent,acknowledged,failed,unanswered,\
    acknowledged_bytes,received,negative,offered_per_s,acknowledged_meanwhile_per_s,\
    received_meanwhile_per_s,received_meanwhile_bytes_per_s,in_flight_max";
const LATENCIES: [&str; 4] = ["response", "service", "end_to_end", "schedule_lag"];
const FIGURES: [&str; 4] = ["p50", "p99", "p99_9", "max"];
const BROKER: &str =
    "broker_flushes_per_s,broker_flush_p99_us,broker_entries_per_block,broker_cpu_cores";

/// The whole file.
#[must_use]
pub fn text(run: &Run) -> String {
    let mut text = COUNTS.to_owned();
    for latency in LATENCIES {
        let _ = write!(text, ",{latency}_count");
        for figure in FIGURES {
            let _ = write!(text, ",{latency}_{figure}_us");
        }
    }
    let _ = writeln!(text, ",{BROKER}");
    for interval in &run.intervals {
        line(&mut text, run, interval);
    }
    text
}

fn line(text: &mut String, run: &Run, interval: &Interval) {
    let counts = &interval.counts;
    let at_s = interval.at_ms as f64 / 1e3;
    let length_s = interval.length_ms as f64 / 1e3;
    let per_s = |count: u64| finite(count as f64 / length_s);
    let step = run.steps.get(interval.step);
    let step = step.map_or_else(String::new, |step| step.name.replace([',', '\n'], " "));
    let phase = match interval.phase {
        Phase::WarmUp => "warm-up",
        Phase::Measured => "measured",
    };
    let _ = write!(text, "{at_s:.3},{length_s:.3},{step},{phase}");
    for count in [
        counts.offered,
        counts.sent,
        counts.acknowledged,
        counts.failed,
        counts.unanswered,
        counts.acknowledged_bytes,
        counts.received,
        counts.negative,
    ] {
        let _ = write!(text, ",{count}");
    }
    for count in [
        counts.offered,
        counts.acknowledged_meanwhile,
        counts.received_meanwhile,
        counts.received_meanwhile_bytes,
    ] {
        let _ = write!(text, ",{:.3}", per_s(count));
    }
    let _ = write!(text, ",{}", counts.in_flight_max);
    let latencies = &interval.latencies;
    let unanswered = latencies.unanswered.clone();
    latency(
        text,
        &Spectrum::with_unanswered(&latencies.response, unanswered),
    );
    for answered in [
        &latencies.service,
        &latencies.end_to_end,
        &latencies.schedule_lag,
    ] {
        latency(text, &Spectrum::answered(answered.clone()));
    }
    match interval.broker {
        Some(broker) => {
            let _ = writeln!(
                text,
                ",{:.3},{},{:.3},{:.3}",
                finite(broker.flushes_per_s),
                broker.flush_p99_us,
                finite(broker.entries_per_block),
                finite(broker.cpu_cores)
            );
        }
        None => text.push_str(",,,,\n"),
    }
}

fn latency(text: &mut String, spectrum: &Spectrum) {
    let _ = write!(text, ",{}", spectrum.count());
    let points = [0.5, 0.99, 0.999].map(|quantile| spectrum.at(quantile));
    for point in points.into_iter().chain([spectrum.max()]) {
        match point {
            Some(Point { us, .. }) => {
                let _ = write!(text, ",{us}");
            }
            None => text.push(','),
        }
    }
}
