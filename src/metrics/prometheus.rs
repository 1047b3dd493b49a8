//! All cores' metrics as Prometheus text exposition (format 0.0.4). Distributions are classic
//! cumulative buckets.
//!
//! The small page is what a person looks at first and a scraper may fetch every few seconds: its
//! size depends on the number of cores only. The full page has every metric, one sample a core, and
//! the busiest topics. A query that sums over cores means the same on both.

use super::cell::Unit;
use super::json::Dump;
use super::labels;
use super::snapshot::{HistogramSnapshot, Reading};
use super::table::{Kind, METRICS, Metric, Page};
use super::topics::TopicFigures;
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
    /// The exposition: the small page, or the full one.
    #[must_use]
    pub fn to_prometheus(&self, full: bool) -> String {
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
        let total = self.total();
        for (index, metric) in METRICS.iter().enumerate() {
            if metric.page == Page::Full && !full {
                continue;
            }
            let name = metric.prometheus_name();
            let kind = match metric.kind {
                Kind::Counter | Kind::ByApi | Kind::ByError => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            header(&mut text, &name, kind, metric.help);
            if metric.page == Page::Sum && !full {
                reading(&mut text, metric, &name, None, &total.readings[index]);
                continue;
            }
            for core in &self.cores {
                let number = core.core.to_string();
                reading(
                    &mut text,
                    metric,
                    &name,
                    Some(&number),
                    &core.readings[index],
                );
            }
        }
        if full {
            self.topics_to_prometheus(&mut text);
        }
        text
    }

    fn topics_to_prometheus(&self, text: &mut String) {
        let omitted = "penstock_topics_omitted";
        header(text, omitted, "gauge", "Topics that are not listed here.");
        line(text, omitted, &[], &self.topics.omitted.to_string());
        for (name, kind, help, of) in TOPIC_METRICS {
            header(text, name, kind, help);
            for topic in &self.topics.listed {
                line(
                    text,
                    name,
                    &[("topic", &topic.name)],
                    &of(topic).to_string(),
                );
            }
        }
    }
}

/// Name, type, help and value of what is told of a topic.
type TopicMetric = (
    &'static str,
    &'static str,
    &'static str,
    fn(&TopicFigures) -> u64,
);

/// What is told of each topic on the full page.
const TOPIC_METRICS: [TopicMetric; 7] = [
    (
        "penstock_topic_partitions",
        "gauge",
        "Partitions of the topic.",
        |topic| topic.partitions,
    ),
    (
        "penstock_topic_records_in_total",
        "counter",
        "Records accepted.",
        |topic| topic.in_records,
    ),
    (
        "penstock_topic_bytes_in_total",
        "counter",
        "Bytes of record batches accepted.",
        |topic| topic.in_bytes,
    ),
    (
        "penstock_topic_records_out_total",
        "counter",
        "Records served.",
        |topic| topic.out_records,
    ),
    (
        "penstock_topic_bytes_out_total",
        "counter",
        "Bytes of record batches served.",
        |topic| topic.out_bytes,
    ),
    (
        "penstock_topic_log_records",
        "gauge",
        "Records that can be read.",
        |topic| topic.log_records,
    ),
    (
        "penstock_topic_log_bytes",
        "gauge",
        "Bytes of the record batches that can be read.",
        |topic| topic.log_bytes,
    ),
];

/// The labels of a sample: the core, unless it is of all of them, and what else there is.
fn labels_of<'a>(
    core: Option<&'a str>,
    other: Option<(&'a str, &'a str)>,
) -> Vec<(&'a str, &'a str)> {
    core.map(|core| ("core", core))
        .into_iter()
        .chain(other)
        .collect()
}

fn reading(text: &mut String, metric: &Metric, name: &str, core: Option<&str>, reading: &Reading) {
    let plain = labels_of(core, None);
    match reading {
        Reading::Counter(count) if metric.unit == Unit::Time => {
            line(text, name, &plain, &seconds(*count));
        }
        Reading::Counter(count) => line(text, name, &plain, &count.to_string()),
        Reading::Gauge(value) => line(text, name, &plain, &value.to_string()),
        Reading::Histogram(snapshot) => histogram(text, metric, name, core, snapshot),
        Reading::Family(members) => {
            for (index, count) in members {
                let member = labels::name(metric.kind, *index);
                let labels = labels_of(core, Some((metric.label(), member.as_str())));
                line(text, name, &labels, &count.to_string());
            }
        }
    }
}

fn histogram(
    text: &mut String,
    metric: &Metric,
    name: &str,
    core: Option<&str>,
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
            &labels_of(core, Some(("le", bound_text))),
            &cumulative.to_string(),
        );
    }
    let count = snapshot.counts.len().to_string();
    let infinite = labels_of(core, Some(("le", "+Inf")));
    line(text, &bucket, &infinite, &count);
    let sum = if metric.unit == Unit::Time {
        seconds(snapshot.sum)
    } else {
        snapshot.sum.to_string()
    };
    let plain = labels_of(core, None);
    line(text, &format!("{name}_sum"), &plain, &sum);
    line(text, &format!("{name}_count"), &plain, &count);
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
