//! All cores' metrics as one JSON document, and back.
//!
//! Keys carry their unit; a distribution has its count, mean, percentiles and, for merging without
//! loss, its HdrHistogram V2 encoding. Empty distributions have nothing but a count.

use super::cell::Unit;
use super::labels;
use super::snapshot::{CoreSnapshot, HistogramSnapshot, Reading};
use super::table::{Kind, METRICS, Metric};
use super::topics::{TopicFigures, Topics};
use crate::base::base64;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde_json::{Map, Value, json};

/// Version of the document's layout; it rises when a key changes its meaning or goes away.
pub const SCHEMA: u64 = 2;

/// The metrics of all cores at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Dump {
    /// Version of the broker.
    pub version: String,
    /// When it was taken, milliseconds since 1970.
    pub unix_ms: i64,
    /// How long the process had run, or the length of the interval of a difference, in
    /// milliseconds.
    pub uptime_ms: u64,
    /// What else is worth knowing about the process: an object, put into the document as it is.
    pub process: Value,
    /// The cores, in order.
    pub cores: Vec<CoreSnapshot>,
    /// The topics.
    pub topics: Topics,
}

impl Dump {
    /// The sum over all cores.
    #[must_use]
    pub fn total(&self) -> CoreSnapshot {
        let mut total = CoreSnapshot::zero(0, 0);
        for core in &self.cores {
            total.merge(core);
        }
        total
    }

    /// What happened between `earlier` and this one.
    #[must_use]
    pub fn since(&self, earlier: &Dump) -> Dump {
        let cores = self.cores.iter().map(|now| {
            let then = earlier.cores.iter().find(|then| then.core == now.core);
            then.map_or_else(|| now.clone(), |then| now.since(then))
        });
        let interval_ms = u64::try_from(self.unix_ms - earlier.unix_ms).unwrap_or(0);
        Dump {
            version: self.version.clone(),
            unix_ms: self.unix_ms,
            uptime_ms: interval_ms,
            process: self.process.clone(),
            cores: cores.collect(),
            topics: self.topics.since(&earlier.topics),
        }
    }

    /// Every counter of a difference by the second, for the whole broker and for each core; with
    /// the mean number of cores' worth of CPU time for counters of time.
    #[must_use]
    pub fn rates_to_json(&self) -> Value {
        #[expect(clippy::cast_precision_loss, reason = "a rate is read by people")]
        let seconds = self.uptime_ms.max(1) as f64 / 1000.0;
        let cores = self.cores.iter().map(|core| {
            let mut object = rates_of(core, seconds);
            object.shift_insert(0, "core".into(), json!(core.core));
            Value::Object(object)
        });
        json!({
            "interval_ms": self.uptime_ms,
            "total": rates_of(&self.total(), seconds),
            "cores": cores.collect::<Vec<_>>(),
        })
    }

    /// The document.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let cores: Vec<Value> = self
            .cores
            .iter()
            .map(|core| {
                let mut object = Map::new();
                object.insert("core".into(), json!(core.core));
                object.insert("cpu".into(), json!(core.cpu));
                object.extend(groups_to_json(core));
                Value::Object(object)
            })
            .collect();
        json!({
            "schema": SCHEMA,
            "version": self.version,
            "unix_ms": self.unix_ms,
            "uptime_ms": self.uptime_ms,
            "process": self.process,
            "total": groups_to_json(&self.total()),
            "cores": cores,
            "topics": self.topics.listed.iter().map(TopicFigures::to_json).collect::<Vec<_>>(),
            "topics_omitted": self.topics.omitted,
        })
    }

    /// Reads a document. Metrics that it lacks are zero; others are passed over.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_json(document: &Value) -> Result<Dump, String> {
        let schema = document["schema"]
            .as_u64()
            .ok_or("it has no \"schema\": not a dump")?;
        if schema != SCHEMA {
            return Err(format!(
                "its schema is {schema}, this program reads {SCHEMA}"
            ));
        }
        let cores = document["cores"].as_array().ok_or("it has no \"cores\"")?;
        Ok(Dump {
            version: document["version"].as_str().unwrap_or_default().to_owned(),
            unix_ms: document["unix_ms"]
                .as_i64()
                .ok_or("it has no \"unix_ms\"")?,
            uptime_ms: document["uptime_ms"].as_u64().unwrap_or(0),
            process: document["process"].clone(),
            cores: cores.iter().map(core_from_json).collect::<Result<_, _>>()?,
            topics: topics_from_json(document)?,
        })
    }
}

fn topics_from_json(document: &Value) -> Result<Topics, String> {
    let listed = document["topics"].as_array().into_iter().flatten();
    let listed = listed.map(|topic| TopicFigures::from_json(topic).ok_or("a topic is malformed"));
    Ok(Topics {
        listed: listed.collect::<Result<_, _>>()?,
        omitted: document["topics_omitted"].as_u64().unwrap_or(0),
    })
}

fn groups_to_json(core: &CoreSnapshot) -> Map<String, Value> {
    let mut groups = Map::new();
    for (metric, reading) in METRICS.iter().zip(&core.readings) {
        let group = groups.entry(metric.group).or_insert_with(|| json!({}));
        group[metric.json_key()] = reading_to_json(metric, reading);
    }
    groups
}

fn rates_of(core: &CoreSnapshot, seconds: f64) -> Map<String, Value> {
    let mut groups = Map::new();
    for (metric, reading) in METRICS.iter().zip(&core.readings) {
        let Reading::Counter(count) = reading else {
            continue;
        };
        let (suffix, scale) = match (metric.kind, metric.unit) {
            (Kind::Counter, Unit::Time) => ("_s_per_s", 1e-9),
            (Kind::Counter, Unit::Bytes) => ("_bytes_per_s", 1.0),
            _ => ("_per_s", 1.0),
        };
        #[expect(clippy::cast_precision_loss, reason = "a rate is read by people")]
        let rate = *count as f64 * scale / seconds;
        let group = groups.entry(metric.group).or_insert_with(|| json!({}));
        group[format!("{}{suffix}", metric.name)] = json!((rate * 1000.0).round() / 1000.0);
    }
    groups
}

fn core_from_json(document: &Value) -> Result<CoreSnapshot, String> {
    let number = |key: &str| {
        document[key]
            .as_u64()
            .ok_or(format!("a core has no \"{key}\""))
    };
    let core = u16::try_from(number("core")?).map_err(|_| "a core number is too large")?;
    let cpu = u32::try_from(number("cpu")?).map_err(|_| "a CPU number is too large")?;
    let mut snapshot = CoreSnapshot::zero(core, cpu);
    for (metric, reading) in METRICS.iter().zip(&mut snapshot.readings) {
        let value = &document[metric.group][metric.json_key()];
        if !value.is_null() {
            reading_from_json(metric, value, reading)
                .ok_or_else(|| format!("{}.{} is malformed", metric.group, metric.json_key()))?;
        }
    }
    Ok(snapshot)
}

fn reading_to_json(metric: &Metric, reading: &Reading) -> Value {
    match reading {
        Reading::Counter(count) if metric.unit == Unit::Time => json!(microseconds(*count)),
        Reading::Counter(count) => json!(count),
        Reading::Gauge(value) => json!(value),
        Reading::Histogram(histogram) => histogram_to_json(metric.unit, histogram),
        Reading::Family(members) => {
            let named = members.iter();
            let named = named.map(|(i, count)| (labels::name(metric.kind, *i), json!(count)));
            Value::Object(named.collect())
        }
    }
}

fn reading_from_json(metric: &Metric, value: &Value, reading: &mut Reading) -> Option<()> {
    match reading {
        Reading::Counter(count) if metric.unit == Unit::Time => *count = nanoseconds(value)?,
        Reading::Counter(count) => *count = value.as_u64()?,
        Reading::Gauge(gauge) => *gauge = value.as_i64()?,
        Reading::Histogram(histogram) => {
            if value["count"].as_u64()? > 0 {
                let bytes = base64::decode(value["hdr_v2_base64"].as_str()?)?;
                let counts = Deserializer::new()
                    .deserialize(&mut bytes.as_slice())
                    .ok()?;
                // Only counts of the declared bounds can be merged later.
                let mut known = HistogramSnapshot::empty(metric.unit);
                known.counts.add(&counts).ok()?;
                known.sum = match metric.unit {
                    Unit::Time => nanoseconds(&value["sum_us"])?,
                    Unit::Bytes => value["sum_bytes"].as_u64()?,
                    Unit::Count => value["sum"].as_u64()?,
                };
                **histogram = known;
            }
        }
        Reading::Family(members) => {
            for (name, count) in value.as_object()? {
                members.insert(labels::index(metric.kind, name)?, count.as_u64()?);
            }
        }
    }
    Some(())
}

const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99_9", 0.999),
    ("p99_99", 0.9999),
];

fn histogram_to_json(unit: Unit, histogram: &HistogramSnapshot) -> Value {
    let counts = &histogram.counts;
    let mut object = Map::new();
    object.insert("count".into(), json!(counts.len()));
    if counts.is_empty() {
        return Value::Object(object);
    }
    let suffix = match unit {
        Unit::Count => "",
        Unit::Bytes => "_bytes",
        Unit::Time => "_us",
    };
    let mut put = |name: &str, value: u64| {
        let value = if unit == Unit::Time {
            json!(microseconds(value))
        } else {
            json!(value)
        };
        object.insert(format!("{name}{suffix}"), value);
    };
    put("sum", histogram.sum);
    put("mean", histogram.sum / counts.len());
    put("min", counts.min());
    for (name, quantile) in QUANTILES {
        put(name, counts.value_at_quantile(quantile).min(counts.max()));
    }
    put("max", counts.max());
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(counts, &mut bytes)
        .expect("a Vec takes every byte");
    object.insert("hdr_v2_base64".into(), json!(base64::encode(&bytes)));
    Value::Object(object)
}

/// Nanoseconds as a JSON number of microseconds: whole where they are, else with three decimals.
fn microseconds(nanoseconds: u64) -> Value {
    if nanoseconds.is_multiple_of(1000) {
        json!(nanoseconds / 1000)
    } else {
        #[expect(
            clippy::cast_precision_loss,
            reason = "exact up to 104 days of nanoseconds"
        )]
        let microseconds = nanoseconds as f64 / 1000.0;
        json!(microseconds)
    }
}

/// The reverse of `microseconds`.
fn nanoseconds(value: &Value) -> Option<u64> {
    if let Some(whole) = value.as_u64() {
        return whole.checked_mul(1000);
    }
    let microseconds = value.as_f64().filter(|us| (0.0..1e16).contains(us))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked above"
    )]
    let nanoseconds = (microseconds * 1000.0).round() as u64;
    Some(nanoseconds)
}
