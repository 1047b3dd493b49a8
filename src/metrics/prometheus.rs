//! All cores' metrics as Prometheus text exposition (format 0.0.4): one sample a core, so that a
//! query can sum them or find the odd one out. Distributions are classic cumulative buckets.

use super::cell::Unit;
use super::json::Dump;
use super::labels;
use super::snapshot::{HistogramSnapshot, Reading};
use super::table::{Kind, METRICS, Metric};
use std::fmt::Write;

/// The `Content-Type` to serve the text with.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds of time buckets, in nanoseconds, with their text in seconds.
const TIME_BOUNDS: [(u64, &str); 19] = [
    (10_000, "0.00001"),
    (25_000, "0.000025"),
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_500_000_000, "2.5"),
    (5_000_000_000, "5"),
    (10_000_000_000, "10"),
];

/// Upper bounds of other buckets.
const SIZE_BOUNDS: [(u64, &str); 12] = [
    (1, "1"),
    (4, "4"),
    (16, "16"),
    (64, "64"),
    (256, "256"),
    (1024, "1024"),
    (4096, "4096"),
    (16_384, "16384"),
    (65_536, "65536"),
    (262_144, "262144"),
    (1_048_576, "1048576"),
    (4_194_304, "4194304"),
];

impl Dump {
    /// The whole exposition.
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        let mut text = String::with_capacity(64 << 10);
        header(
            &mut text,
            "penstock_build_info",
            "gauge",
            "Version of the broker; always 1.",
        );
        line(
            &mut text,
            "penstock_build_info",
            &[("version", &self.version)],
            "1",
        );
        header(
            &mut text,
            "penstock_uptime_seconds",
            "gauge",
            "Time since the broker started.",
        );
        line(
            &mut text,
            "penstock_uptime_seconds",
            &[],
            &seconds(self.uptime_ms * 1_000_000),
        );
        for (index, metric) in METRICS.iter().enumerate() {
            let name = metric.prometheus_name();
            let kind = match metric.kind {
                Kind::Counter | Kind::ByApi | Kind::ByError => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            header(&mut text, &name, kind, metric.help);
            for core in &self.cores {
                reading(
                    &mut text,
                    metric,
                    &name,
                    &core.core.to_string(),
                    &core.readings[index],
                );
            }
        }
        text
    }
}

fn reading(text: &mut String, metric: &Metric, name: &str, core: &str, reading: &Reading) {
    match reading {
        Reading::Counter(count) if metric.unit == Unit::Time => {
            line(text, name, &[("core", core)], &seconds(*count));
        }
        Reading::Counter(count) => line(text, name, &[("core", core)], &count.to_string()),
        Reading::Gauge(value) => line(text, name, &[("core", core)], &value.to_string()),
        Reading::Histogram(snapshot) => histogram(text, metric, name, core, snapshot),
        Reading::Family(members) => {
            for (index, count) in members {
                let member = labels::name(metric.kind, *index);
                let labels = [("core", core), (metric.label(), member.as_str())];
                line(text, name, &labels, &count.to_string());
            }
        }
    }
}

fn histogram(
    text: &mut String,
    metric: &Metric,
    name: &str,
    core: &str,
    snapshot: &HistogramSnapshot,
) {
    let bounds: &[(u64, &str)] = if metric.unit == Unit::Time {
        &TIME_BOUNDS
    } else {
        &SIZE_BOUNDS
    };
    let mut recorded = snapshot.counts.iter_recorded().peekable();
    let bucket = format!("{name}_bucket");
    let mut cumulative = 0u64;
    for (bound, bound_text) in bounds {
        while let Some(step) = recorded.peek() {
            if snapshot.counts.lowest_equivalent(step.value_iterated_to()) > *bound {
                break;
            }
            cumulative += step.count_since_last_iteration();
            recorded.next();
        }
        line(
            text,
            &bucket,
            &[("core", core), ("le", bound_text)],
            &cumulative.to_string(),
        );
    }
    let count = snapshot.counts.len().to_string();
    line(text, &bucket, &[("core", core), ("le", "+Inf")], &count);
    let sum = if metric.unit == Unit::Time {
        seconds(snapshot.sum)
    } else {
        snapshot.sum.to_string()
    };
    line(text, &format!("{name}_sum"), &[("core", core)], &sum);
    line(text, &format!("{name}_count"), &[("core", core)], &count);
}

fn header(text: &mut String, name: &str, kind: &str, help: &str) {
    let help = help.replace('\\', "\\\\").replace('\n', "\\n");
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a String takes all");
}

fn line(text: &mut String, name: &str, labels: &[(&str, &str)], value: &str) {
    text.push_str(name);
    for (index, (label, value)) in labels.iter().enumerate() {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        let open = if index == 0 { '{' } else { ',' };
        write!(text, "{open}{label}=\"{value}\"").expect("a String takes all");
    }
    if !labels.is_empty() {
        text.push('}');
    }
    text.push(' ');
    text.push_str(value);
    text.push('\n');
}

/// Nanoseconds as exact decimal seconds.
fn seconds(nanoseconds: u64) -> String {
    let text = format!(
        "{}.{:09}",
        nanoseconds / 1_000_000_000,
        nanoseconds % 1_000_000_000
    );
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
