//! What the kernel and the broker itself say of the broker's process at one moment, and what
//! happened between two moments.

use std::net::SocketAddr;
use std::time::Instant;

use crate::support::broker::http_get;
use penstock::metrics::{CoreSnapshot, Dump, Reading};
use serde_json::{Value, json};

/// Ticks of a second in `/proc`, on every Linux that matters here.
const TICKS_PER_S: f64 = 100.0;

/// One moment.
pub struct Sample {
    at: Instant,
    /// All threads that are or were.
    cpu_ticks: u64,
    pub rss_kib: u64,
    /// What went to the device, and came from it.
    written: u64,
    read: u64,
    dump: Dump,
}

/// Between two moments.
pub struct Cost {
    pub seconds: f64,
    /// Processor time of all of the broker's threads.
    pub cpu_s: f64,
    /// Resident memory at the end.
    pub rss_kib: u64,
    pub device_written: u64,
    pub device_read: u64,
    total: CoreSnapshot,
    cores: Value,
}

impl Sample {
    /// The process must be alive.
    pub fn take(pid: u32, http: SocketAddr) -> Sample {
        let read = |name: &str| {
            let path = format!("/proc/{pid}/{name}");
            std::fs::read_to_string(path).expect("the broker lives")
        };
        let stat = read("stat");
        let after_name = stat.rsplit(')').next().expect("a process has a name");
        let field = |index: usize| -> u64 {
            let field = after_name.split_whitespace().nth(index);
            field
                .and_then(|text| text.parse().ok())
                .expect("proc(5) says so")
        };
        let io = read("io");
        let (status, body) = http_get(http, "/dump").expect("the broker answers");
        assert_eq!(status, 200, "/dump: {body}");
        let document: Value = serde_json::from_str(&body).expect("a dump is JSON");
        Sample {
            at: Instant::now(),
            cpu_ticks: field(11) + field(12),
            rss_kib: named(&read("status"), "VmRSS:"),
            written: named(&io, "write_bytes:"),
            read: named(&io, "read_bytes:"),
            dump: Dump::from_json(&document).expect("a dump of this version"),
        }
    }

    /// Bytes that came from the device since the process began.
    pub fn device_read(&self) -> u64 {
        self.read
    }

    /// A gauge of the broker's own, over all cores.
    pub fn gauge(&self, group: &str, name: &str) -> i64 {
        match self.dump.total().reading(group, name) {
            Some(Reading::Gauge(value)) => *value,
            _ => panic!("{group}.{name} is no gauge"),
        }
    }

    /// What happened since `earlier`.
    pub fn since(&self, earlier: &Sample) -> Cost {
        let between = self.dump.since(&earlier.dump);
        let ticks = self.cpu_ticks - earlier.cpu_ticks;
        Cost {
            seconds: (self.at - earlier.at).as_secs_f64(),
            cpu_s: ticks as f64 / TICKS_PER_S,
            rss_kib: self.rss_kib,
            device_written: self.written - earlier.written,
            device_read: self.read - earlier.read,
            total: between.total(),
            cores: between.to_json(),
        }
    }
}

impl Cost {
    /// A counter of the broker's own, over all cores.
    pub fn count(&self, group: &str, name: &str) -> u64 {
        match self.total.reading(group, name) {
            Some(Reading::Counter(count)) => *count,
            _ => panic!("{group}.{name} is no counter"),
        }
    }

    /// Writes that made something durable: a block with `O_DSYNC`, or an `fdatasync`.
    pub fn flushes(&self) -> u64 {
        match self.count("journal", "flushes") {
            0 => self.count("journal", "blocks"),
            flushes => flushes,
        }
    }

    /// Everything, for the report.
    pub fn to_json(&self) -> Value {
        json!({
            "seconds": self.seconds,
            "cpu_s": self.cpu_s,
            "rss_kib": self.rss_kib,
            "device_written_bytes": self.device_written,
            "device_read_bytes": self.device_read,
            "dump": without_histograms(&self.cores),
        })
    }
}

/// The number after a name at the beginning of a line.
fn named(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let digits = line.and_then(|line| line.split_whitespace().next());
    digits
        .and_then(|digits| digits.parse().ok())
        .expect("proc(5) says so")
}

/// A dump whose distributions have their percentiles only.
fn without_histograms(document: &Value) -> Value {
    match document {
        Value::Object(object) => {
            let kept = object.iter().filter(|(key, _)| *key != "hdr_v2_base64");
            let kept = kept.map(|(key, value)| (key.clone(), without_histograms(value)));
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.iter().map(without_histograms).collect(),
        other => other.clone(),
    }
}
