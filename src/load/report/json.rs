//! A run as JSON: schema 1. Keys carry their units (`_us`, `_ms`, `_bytes`, `_per_s`; shares are 0
//! to 1), their order is stable, no number is anything but finite, and a figure without samples is
//! `null`. A percentile's marks are lists beside the plain numbers: `at_least` names those that a
//! message without an answer makes a lower bound, `few_samples` those with fewer than ten samples
//! beyond them.

use super::spectrum::{QUANTILES, Spectrum};
use super::summary::{StepFigures, Summary};
use super::totals::Totals;
use crate::base::units::finite;
use crate::load::run::{Interval, Run};
use serde_json::{Map, Value, json};

/// Version of the layout: changed when a key changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 1;

/// The whole document.
#[must_use]
pub fn document(run: &Run, summary: &Summary) -> Value {
    let verdict = &summary.verdict;
    json!({
        "schema_version": SCHEMA_VERSION,
        "verdict": {
            "kind": verdict.kind().name(),
            "text": verdict.headline(),
            "findings": verdict.findings,
            "notes": verdict.notes,
        },
        "began_unix_us": run.began_unix_us,
        "ended": run.ended,
        "summary": self::summary(summary),
        "thresholds": summary.thresholds.iter().map(|checked| json!({
            "fail_if": checked.text,
            "failed": checked.failed,
            "measured": checked.measured,
            "measured_value": checked.measured_value,
        })).collect::<Vec<_>>(),
        "errors": run.failures,
        "steps": steps(summary),
        "verification": run.verification,
        "setup": run.setup,
        "events": run.events,
        "about": about(run),
        "intervals": run.intervals.iter().map(interval).collect::<Vec<_>>(),
    })
}

/// Several runs, in the order given.
#[must_use]
pub fn documents(runs: &[(String, &Run, &Summary)]) -> Value {
    let document = |(name, run, summary): &(String, &Run, &Summary)| {
        let mut document = document(run, summary);
        if let Some(object) = document.as_object_mut() {
            object.shift_insert(0, "name".to_owned(), json!(name));
        }
        document
    };
    json!({
        "schema_version": SCHEMA_VERSION,
        "runs": runs.iter().map(document).collect::<Vec<_>>(),
    })
}

fn summary(summary: &Summary) -> Value {
    let mut object = Map::new();
    object.insert("over".to_owned(), json!(summary.scope));
    object.insert("warm_up_ms".to_owned(), json!(summary.warm_up_ms));
    object.extend(totals(&summary.totals));
    object.insert(
        "generator_busy_max_share".to_owned(),
        json!(finite(summary.busiest)),
    );
    Value::Object(object)
}

fn totals(totals: &Totals) -> Map<String, Value> {
    let counts = &totals.counts;
    let per_s = |count| json!(totals.per_s(count));
    let mut object = Map::new();
    let mut add = |key: &str, value: Value| object.insert(key.to_owned(), value);
    add("measured_ms", json!(totals.length_ms));
    add("offered", json!(counts.offered));
    add("sent", json!(counts.sent));
    add("unsent", json!(totals.unsent()));
    add("acknowledged", json!(counts.acknowledged));
    add("failed", json!(counts.failed));
    add("unanswered", json!(counts.unanswered));
    add("received", json!(counts.received));
    add("received_before_sent", json!(counts.negative));
    add("offered_per_s", per_s(counts.offered));
    add("sent_per_s", per_s(counts.sent));
    add("acknowledged_per_s", per_s(counts.acknowledged));
    add(
        "acknowledged_meanwhile",
        json!(counts.acknowledged_meanwhile),
    );
    add(
        "acknowledged_meanwhile_per_s",
        per_s(counts.acknowledged_meanwhile),
    );
    add("received_meanwhile", json!(counts.received_meanwhile));
    add("received_meanwhile_per_s", per_s(counts.received_meanwhile));
    add("acknowledged_bytes", json!(counts.acknowledged_bytes));
    add("acknowledged_bytes_per_s", per_s(counts.acknowledged_bytes));
    add(
        "received_meanwhile_bytes_per_s",
        per_s(counts.received_meanwhile_bytes),
    );
    add("in_flight_max", json!(counts.in_flight_max));
    for (name, definition, spectrum) in totals.latencies() {
        add(name, latency(definition, spectrum));
    }
    object
}

/// One latency with its marks.
fn latency(definition: &str, spectrum: &Spectrum) -> Value {
    let mut object = Map::new();
    let (mut at_least, mut few_samples) = (Vec::new(), Vec::new());
    object.insert("is".to_owned(), json!(definition));
    object.insert("count".to_owned(), json!(spectrum.count()));
    let min = ("min_us".to_owned(), spectrum.min());
    let points = QUANTILES.iter().map(|(quantile, name)| {
        (
            format!("{}_us", name.replace('.', "_")),
            spectrum.at(*quantile),
        )
    });
    let max = ("max_us".to_owned(), spectrum.max());
    let points: Vec<_> = [min].into_iter().chain(points).chain([max]).collect();
    let mean = spectrum.mean();
    object.insert(
        "mean_us".to_owned(),
        json!(mean.map(|(mean, _)| finite(mean))),
    );
    if mean.is_some_and(|(_, open)| open) {
        at_least.push("mean_us".to_owned());
    }
    for (key, point) in points {
        object.insert(key.clone(), json!(point.map(|point| point.us)));
        if point.is_some_and(|point| point.at_least) {
            at_least.push(key.clone());
        }
        if point.is_some_and(|point| point.few) {
            few_samples.push(key);
        }
    }
    object.insert("at_least".to_owned(), json!(at_least));
    object.insert("few_samples".to_owned(), json!(few_samples));
    Value::Object(object)
}

fn steps(summary: &Summary) -> Value {
    let chosen = summary.chosen();
    let step = |(index, figures): (usize, &StepFigures)| {
        let step = &figures.step;
        let mut object = Map::new();
        object.insert("name".to_owned(), json!(step.name));
        object.insert("verdict".to_owned(), json!(step.verdict));
        object.insert("chosen".to_owned(), json!(chosen == Some(index)));
        object.insert("at_ms".to_owned(), json!(step.at_ms));
        object.insert("length_ms".to_owned(), json!(step.length_ms));
        object.insert("rate_per_s".to_owned(), json!(step.rate_per_s.map(finite)));
        let until = step.rate_until_per_s.map(finite);
        object.insert("rate_until_per_s".to_owned(), json!(until));
        object.extend(totals(&figures.totals));
        Value::Object(object)
    };
    Value::Array(summary.steps.iter().enumerate().map(step).collect())
}

fn about(run: &Run) -> Value {
    let about = &run.about;
    json!({
        "command": about.command,
        "version": about.version,
        "kernel": about.kernel,
        "cpu": about.cpu,
        "broker": about.broker,
        "durability": about.durability,
        "clock_source": about.clock_source,
        "seed": about.seed,
        "worker_busy_share": about.worker_busy.iter().copied().map(finite).collect::<Vec<_>>(),
        "floor": about.floor,
        "plan": about.plan,
    })
}

fn interval(interval: &Interval) -> Value {
    let latencies = &interval.latencies;
    let response = Spectrum::with_unanswered(&latencies.response, latencies.unanswered.clone());
    let answered = |samples: &hdrhistogram::Histogram<u64>| {
        short_latency(&Spectrum::answered(samples.clone()))
    };
    let broker = interval.broker.map(|broker| {
        json!({
            "flushes_per_s": finite(broker.flushes_per_s),
            "flush_p99_us": broker.flush_p99_us,
            "entries_per_block": finite(broker.entries_per_block),
            "cpu_cores": finite(broker.cpu_cores),
        })
    });
    json!({
        "at_ms": interval.at_ms,
        "length_ms": interval.length_ms,
        "step": interval.step,
        "phase": interval.phase,
        "counts": interval.counts,
        "response": short_latency(&response),
        "service": answered(&latencies.service),
        "end_to_end": answered(&latencies.end_to_end),
        "schedule_lag": answered(&latencies.schedule_lag),
        "broker": broker,
    })
}

/// The few figures that a time line shows.
fn short_latency(spectrum: &Spectrum) -> Value {
    if spectrum.count() == 0 {
        return Value::Null;
    }
    let us = |quantile| spectrum.at(quantile).map(|point| point.us);
    json!({
        "count": spectrum.count(),
        "p50_us": us(0.5),
        "p99_us": us(0.99),
        "p99_9_us": us(0.999),
        "max_us": spectrum.max().map(|point| point.us),
    })
}
