//! `--fail-if 'p99>10ms'`: a threshold on a run, for a build that must fail when it is crossed.
//!
//! ```text
//! threshold  = metric operator value            spaces may stand between
//! operator   = > | >= | < | <=
//! metric     = [latency.] figure                a latency; without its name, of `response`
//!            | count | rate | share
//! latency    = response | service | end_to_end | schedule_lag
//! figure     = min | mean | max | pNN           p50, p99, p99.9, p99.995, …
//! count      = errors (failed + unanswered) | failed | unanswered | unsent | offered | sent
//!            | acknowledged | received | negative
//!            | lost | duplicated | reordered | damaged | foreign     of the verification
//! rate       = offered_rate | sent_rate | acked_rate | received_rate       messages a second
//!            | acked_mb | received_mb                                      MB/s, decimal
//! share      = error_share                      errors of what was sent, `0.1%` or `0.001`
//! value      = number [unit]                    a latency needs one: us, µs, ms, s
//!                                               counts and rates may end in k or M
//! ```
//!
//! What cannot be shown to hold has failed: a percentile of no samples, or one that is "at least"
//! so long where "not longer than" is asked.

use super::spectrum::Spectrum;
use super::summary::Summary;
use crate::base::nearest::nearest;
use crate::base::units::{self, Micro};
use crate::load::run::{About, Verification};
use std::fmt;

/// A threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    text: String,
    metric: Metric,
    operator: Operator,
    /// In the metric's own unit: microseconds, messages, messages a second, MB/s, share.
    value: f64,
}

/// What a threshold made of a run.
#[derive(Clone, Debug)]
pub struct Checked {
    /// As it was written.
    pub text: String,
    /// What the run has, with its unit; "no samples" if nothing.
    pub measured: String,
    /// The same as a number in the metric's unit.
    pub measured_value: Option<f64>,
    /// Whether the run is to fail.
    pub failed: bool,
}

/// Why a threshold cannot be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GateError {
    /// No `>`, `>=`, `<` or `<=`, or nothing on a side of it.
    Shape(String),
    /// Nothing is called so.
    Metric {
        /// What was written.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// No number, or one that cannot be.
    Value(String),
    /// A latency without a unit, or a unit that the metric does not have.
    Unit {
        /// The metric.
        metric: String,
        /// What would do.
        expected: &'static str,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Metric {
    Latency(Latency, Figure),
    Count(&'static str),
    Rate(&'static str),
    Megabytes(&'static str),
    Share(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Latency {
    Response,
    Service,
    EndToEnd,
    ScheduleLag,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    Min,
    Mean,
    Max,
    Quantile(f64),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Operator {
    Above,
    AtLeast,
    Below,
    AtMost,
}

const LATENCIES: [(&str, Latency); 4] = [
    ("response", Latency::Response),
    ("service", Latency::Service),
    ("end_to_end", Latency::EndToEnd),
    ("schedule_lag", Latency::ScheduleLag),
];
const COUNTS: [&str; 14] = [
    "errors",
    "failed",
    "unanswered",
    "unsent",
    "offered",
    "sent",
    "acknowledged",
    "received",
    "negative",
    "lost",
    "duplicated",
    "reordered",
    "damaged",
    "foreign",
];
const RATES: [&str; 4] = ["offered_rate", "sent_rate", "acked_rate", "received_rate"];
const MEGABYTES: [&str; 2] = ["acked_mb", "received_mb"];
const SHARES: [&str; 1] = ["error_share"];
/// The key of the plan under which thresholds travel with the run.
const PLAN_KEY: &str = "fail-if";

impl Gate {
    /// Reads one threshold.
    ///
    /// # Errors
    /// What is wrong, and what may have been meant.
    pub fn parse(text: &str) -> Result<Gate, GateError> {
        let shape = || GateError::Shape(text.trim().to_owned());
        let at = text.find(['<', '>']).ok_or_else(shape)?;
        let (name, rest) = text.split_at(at);
        let (operator, value) = match (rest.strip_prefix(">="), rest.strip_prefix("<=")) {
            (Some(value), _) => (Operator::AtLeast, value),
            (_, Some(value)) => (Operator::AtMost, value),
            _ if rest.starts_with('>') => (Operator::Above, &rest[1..]),
            _ => (Operator::Below, &rest[1..]),
        };
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || value.is_empty() {
            return Err(shape());
        }
        let metric = Metric::parse(name)?;
        Ok(Gate {
            text: text.trim().to_owned(),
            value: metric.value(name, value)?,
            metric,
            operator,
        })
    }

    /// The thresholds that a run carries in its plan. One that cannot be read would have stopped
    /// the run before it began, so it is passed over here.
    #[must_use]
    pub fn of_plan(about: &About) -> Vec<Gate> {
        let texts = about.plan.get(PLAN_KEY).and_then(|value| value.as_array());
        let texts = texts.into_iter().flatten().filter_map(|text| text.as_str());
        texts.filter_map(|text| Gate::parse(text).ok()).collect()
    }

    /// Puts thresholds into a run's plan, instead of what is there.
    pub fn into_plan(gates: &[Gate], about: &mut About) {
        let texts = gates.iter().map(|gate| gate.text.clone().into()).collect();
        about
            .plan
            .insert(PLAN_KEY.to_owned(), serde_json::Value::Array(texts));
    }

    /// As it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The value, if it bounds the response time: in microseconds.
    #[must_use]
    pub fn response_us(&self) -> Option<f64> {
        let bounds = matches!(self.metric, Metric::Latency(Latency::Response, _));
        bounds.then_some(self.value)
    }

    /// Whether the condition is shown to be true, as a search asks of `p99<10ms`: false also where
    /// there are no samples, or where a figure that is "at least" so much is to be below.
    #[must_use]
    pub fn holds(&self, summary: &Summary) -> bool {
        let Some((measured, at_least)) = self.metric.of(summary) else {
            return false;
        };
        match self.operator {
            Operator::Above => measured > self.value,
            Operator::AtLeast => measured >= self.value,
            Operator::Below => measured < self.value && !at_least,
            Operator::AtMost => measured <= self.value && !at_least,
        }
    }

    /// Holds a run against it.
    #[must_use]
    pub fn check(&self, summary: &Summary) -> Checked {
        let Some((measured, at_least)) = self.metric.of(summary) else {
            return Checked {
                text: self.text.clone(),
                measured: "no samples".to_owned(),
                measured_value: None,
                failed: true,
            };
        };
        let crossed = match self.operator {
            Operator::Above => measured > self.value || at_least,
            Operator::AtLeast => measured >= self.value || at_least,
            Operator::Below => measured < self.value,
            Operator::AtMost => measured <= self.value,
        };
        let sign = if at_least { ">= " } else { "" };
        Checked {
            text: self.text.clone(),
            measured: format!("{sign}{}", self.metric.written(measured)),
            measured_value: Some(units::finite(measured)),
            failed: crossed,
        }
    }
}

impl Metric {
    fn parse(name: &str) -> Result<Metric, GateError> {
        let simple = COUNTS.iter().map(|name| (*name, Metric::Count(name)));
        let simple = simple.chain(RATES.iter().map(|name| (*name, Metric::Rate(name))));
        let simple = simple.chain(
            MEGABYTES
                .iter()
                .map(|name| (*name, Metric::Megabytes(name))),
        );
        let mut simple = simple.chain(SHARES.iter().map(|name| (*name, Metric::Share(name))));
        if let Some((_, metric)) = simple.find(|(known, _)| *known == name) {
            return Ok(metric);
        }
        let unknown = || GateError::Metric {
            name: name.to_owned(),
            nearest: nearest_metric(name),
        };
        // The dot of `p99.9` is not the one that ends a latency's name.
        let named = LATENCIES.iter().find_map(|(known, latency)| {
            let figure = name.strip_prefix(known)?.strip_prefix('.')?;
            Some((*latency, figure))
        });
        let (latency, figure) = named.unwrap_or((Latency::Response, name));
        let figure = Figure::parse(figure).ok_or_else(unknown)?;
        Ok(Metric::Latency(latency, figure))
    }

    /// The value in the metric's unit.
    fn value(self, metric: &str, text: &str) -> Result<f64, GateError> {
        let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
        let split = text.find(|letter| !is_number(letter));
        let (digits, unit) = text.split_at(split.unwrap_or(text.len()));
        let number: f64 = digits
            .parse()
            .map_err(|_| GateError::Value(text.to_owned()))?;
        let wrong = |expected| GateError::Unit {
            metric: metric.to_owned(),
            expected,
        };
        let factor = match (self, unit.trim()) {
            (Metric::Latency(..), "us" | "µs" | "μs") => 1.0,
            (Metric::Latency(..), "ms") => 1e3,
            (Metric::Latency(..), "s") => 1e6,
            (Metric::Latency(..), _) => return Err(wrong("us, ms or s, as in p99>10ms")),
            (Metric::Count(_), "") => 1.0,
            (Metric::Count(_), "k") => 1e3,
            (Metric::Count(_), "M") => 1e6,
            (Metric::Count(_), _) => return Err(wrong("no unit, or k or M")),
            (Metric::Rate(_), "" | "/s") => 1.0,
            (Metric::Rate(_), "k" | "k/s") => 1e3,
            (Metric::Rate(_), "M" | "M/s") => 1e6,
            (Metric::Rate(_), _) => return Err(wrong("/s, k/s, M/s or nothing")),
            (Metric::Megabytes(_), "" | "MB/s") => 1.0,
            (Metric::Megabytes(_), _) => return Err(wrong("MB/s or nothing")),
            (Metric::Share(_), "") => 1.0,
            (Metric::Share(_), "%") => 0.01,
            (Metric::Share(_), _) => return Err(wrong("% or nothing")),
        };
        Ok(number * factor)
    }

    /// What a run has, and whether it is "at least" so much.
    fn of(self, summary: &Summary) -> Option<(f64, bool)> {
        let totals = &summary.totals;
        let counts = &totals.counts;
        match self {
            Metric::Latency(latency, figure) => figure.of(match latency {
                Latency::Response => &totals.response,
                Latency::Service => &totals.service,
                Latency::EndToEnd => &totals.end_to_end,
                Latency::ScheduleLag => &totals.schedule_lag,
            }),
            Metric::Count(name) => count(name, summary).map(|count| (count as f64, false)),
            Metric::Rate(name) => {
                let rate = match name {
                    "offered_rate" => totals.per_s(counts.offered),
                    "sent_rate" => totals.per_s(counts.sent),
                    "acked_rate" => totals.acknowledged_per_s(),
                    _ => totals.per_s(counts.received_meanwhile),
                };
                Some((rate, false))
            }
            Metric::Megabytes(name) => {
                let bytes = match name {
                    "acked_mb" => counts.acknowledged_bytes,
                    _ => counts.received_meanwhile_bytes,
                };
                Some((totals.per_s(bytes) / 1e6, false))
            }
            Metric::Share(_) => {
                let share = units::share(totals.errors() as f64, counts.sent as f64);
                Some((share, false))
            }
        }
    }

    fn written(self, value: f64) -> String {
        match self {
            Metric::Latency(..) => units::latency(value, Micro::Ascii),
            Metric::Count(_) => units::count(value as u64),
            Metric::Rate(_) => units::rate(value),
            Metric::Megabytes(_) => units::megabytes_per_s(value * 1e6),
            Metric::Share(_) => units::percent(value),
        }
    }
}

/// `None` for what the run did not look at.
fn count(name: &str, summary: &Summary) -> Option<u64> {
    let counts = &summary.totals.counts;
    let found = |pick: fn(&Verification) -> u64| summary.verification.as_ref().map(pick);
    match name {
        "errors" => Some(summary.totals.errors()),
        "failed" => Some(counts.failed),
        "unanswered" => Some(counts.unanswered),
        "unsent" => Some(summary.totals.unsent()),
        "offered" => Some(counts.offered),
        "sent" => Some(counts.sent),
        "acknowledged" => Some(counts.acknowledged),
        "received" => Some(counts.received),
        "negative" => Some(counts.negative),
        "lost" => found(|found| found.lost),
        "duplicated" => found(|found| found.duplicated),
        "reordered" => found(|found| found.reordered),
        "damaged" => found(|found| found.damaged),
        _ => found(|found| found.foreign),
    }
}

impl Figure {
    fn parse(text: &str) -> Option<Figure> {
        match text {
            "min" => return Some(Figure::Min),
            "mean" => return Some(Figure::Mean),
            "max" => return Some(Figure::Max),
            _ => {}
        }
        let digits = text.strip_prefix('p')?;
        let plain = digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        let percent: f64 = digits.parse().ok().filter(|_| plain)?;
        (0.0..=100.0)
            .contains(&percent)
            .then_some(Figure::Quantile(percent / 100.0))
    }

    fn of(self, spectrum: &Spectrum) -> Option<(f64, bool)> {
        let point = match self {
            Figure::Mean => return spectrum.mean(),
            Figure::Min => spectrum.min(),
            Figure::Max => spectrum.max(),
            Figure::Quantile(quantile) => spectrum.at(quantile),
        };
        point.map(|point| (point.us as f64, point.at_least))
    }
}

fn nearest_metric(name: &str) -> Option<String> {
    let figures = ["min", "mean", "max", "p50", "p90", "p99", "p99.9", "p99.99"];
    let plain = COUNTS.iter().chain(&RATES).chain(&MEGABYTES).chain(&SHARES);
    let mut known: Vec<String> = plain.chain(&figures).map(ToString::to_string).collect();
    for (latency, _) in LATENCIES {
        known.extend(figures.iter().map(|figure| format!("{latency}.{figure}")));
    }
    nearest(name, known.iter().map(String::as_str)).map(ToOwned::to_owned)
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GateError::Shape(text) => write!(
                f,
                "`{text}` is no threshold: write a metric, one of > >= < <=, and a value, as in \
                 p99>10ms or errors>0"
            ),
            GateError::Metric { name, nearest } => {
                write!(f, "nothing is called `{name}`")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
                    None => write!(
                        f,
                        ": there are p50, p99.9, mean, max (of response., service., end_to_end., \
                         schedule_lag.), {}, {}, {}, {}",
                        COUNTS.join(", "),
                        RATES.join(", "),
                        MEGABYTES.join(", "),
                        SHARES.join(", ")
                    ),
                }
            }
            GateError::Value(text) => write!(f, "`{text}` does not begin with a number"),
            GateError::Unit { metric, expected } => {
                write!(f, "a value of `{metric}` is written with {expected}")
            }
        }
    }
}

impl std::error::Error for GateError {}
