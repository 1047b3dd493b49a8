//! What `penstock load` and `penstock probe` said, as the rows read it.

use std::path::PathBuf;
use std::process::Child;

use serde_json::Value;

/// A load that runs.
pub struct Running {
    pub label: String,
    pub child: Child,
    pub file: PathBuf,
}

/// A load that was.
pub struct Load {
    /// `load --json`, without its time line.
    pub document: Value,
}

impl Load {
    /// A number of the summary.
    pub fn figure(&self, name: &str) -> f64 {
        self.document["summary"][name].as_f64().unwrap_or(f64::NAN)
    }

    /// A percentile in microseconds, such as `us("response", "p99")`.
    pub fn us(&self, latency: &str, quantile: &str) -> f64 {
        let value = &self.document["summary"][latency][format!("{quantile}_us")];
        value.as_f64().unwrap_or(f64::NAN)
    }

    /// Of the messages meant for the measured time, acknowledged a second. What was on its way when
    /// that time began is not among them, what was when it ended is.
    pub fn acked_per_s(&self) -> f64 {
        self.figure("acknowledged_per_s")
    }

    /// What it is worth in the generator's own word, if it is not simply good; the JSON says why.
    pub fn doubt(&self) -> Option<&str> {
        let kind = self.document["verdict"]["kind"].as_str().unwrap_or("none");
        (kind != "valid").then_some(kind)
    }

    /// How busy the generator's busiest worker was: near 100 it is what is measured.
    pub fn generator_percent(&self) -> f64 {
        100.0 * self.figure("generator_busy_max_share")
    }
}

/// A probe that was.
pub struct Probed {
    pub document: Value,
}

impl Probed {
    fn row(&self, name: &str) -> &Value {
        let rows = self.document["measurements"].as_array();
        let row = rows.and_then(|rows| rows.iter().find(|row| row["name"] == name));
        row.expect("a probe measures what it was asked for")
    }

    /// MB/s of a measurement.
    pub fn mb_per_s(&self, name: &str) -> f64 {
        let bytes = self.row(name)["bytes_per_second"].as_f64();
        bytes.expect("a probe has rates") / 1e6
    }

    /// A percentile in microseconds.
    pub fn us(&self, name: &str, quantile: &str) -> f64 {
        let value = self.row(name)[format!("{quantile}_us")].as_f64();
        value.expect("a probe has percentiles")
    }

    /// The faster of the two ways to make 4 KiB durable: its p50 and p99, in microseconds.
    pub fn flush_us(&self) -> (f64, f64) {
        let of = |name| (self.us(name, "p50"), self.us(name, "p99"));
        let (flush, dsync) = (of("write_4k_fdatasync"), of("write_4k_dsync"));
        if dsync.0 < flush.0 { dsync } else { flush }
    }
}
