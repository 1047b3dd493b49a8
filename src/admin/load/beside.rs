//! What stands beside a load's own figures: the machine's limit, and what a Penstock broker says of
//! itself meanwhile.

use crate::admin::client::http;
use crate::admin::error::AdminError;
use crate::env::probe::{AlignedBytes, ScratchFile};
use crate::env::process;
use crate::limits;
use crate::load::run::{BrokerSample, Floor, Run, latency_histogram};
use crate::metrics::{Dump, HistogramSnapshot, Reading};
use core::time::Duration;
use std::io;
use std::path::Path;

/// How long a broker may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(5);
const WRITE_BYTES: usize = 4096;
/// Written before anything is measured: a first write changes the file's map too.
const FILE_BYTES: u64 = 16 << 20;

/// A bare 4 KiB write and flush in a folder, for about a second.
///
/// # Errors
/// The folder cannot be written.
pub fn floor(folder: &Path) -> io::Result<Floor> {
    let file = ScratchFile::create(folder)?;
    let large = AlignedBytes::random(1 << 20);
    for position in (0..FILE_BYTES).step_by(1 << 20) {
        file.write_at(&large, position)?;
    }
    file.sync_data()?;
    let small = AlignedBytes::random(WRITE_BYTES);
    let mut times = latency_histogram();
    let start = process::monotonic_ns();
    let mut then = start;
    let mut position = 0;
    while then - start < limits::LOAD_PROBE_MS * 1_000_000 {
        file.write_at(&small, position)?;
        file.sync_data()?;
        let now = process::monotonic_ns();
        times.saturating_record((now - then) / 1000);
        then = now;
        position = (position + WRITE_BYTES as u64) % FILE_BYTES;
    }
    Ok(Floor {
        p50_us: times.value_at_quantile(0.5),
        p99_us: times.value_at_quantile(0.99),
    })
}

/// What was sampled: from, until (microseconds since 1970), and what the broker did between.
type Sample = (u64, u64, BrokerSample);

/// Samples a broker on a thread of its own until it is asked for what it has.
pub struct Sampler {
    samples: flume::Receiver<Sample>,
    version: String,
}

impl Sampler {
    /// Begins to sample.
    ///
    /// # Errors
    /// No broker answers there, in words.
    pub fn start(address: &str, interval_ns: u64) -> Result<Sampler, String> {
        let take = |address: &str| {
            let dump = http::dump(address, PATIENCE).map_err(AdminError::from);
            dump.map_err(|error| error.to_string())
        };
        let mut then = (process::unix_ns() / 1000, take(address)?);
        let version = then.1.version.clone();
        let (sender, samples) = flume::unbounded();
        let address = address.to_owned();
        let body = move || {
            loop {
                process::sleep_blocking(Duration::from_nanos(interval_ns));
                // A broker that is gone for a while leaves a gap.
                let Ok(now) = take(&address) else { continue };
                let now = (process::unix_ns() / 1000, now);
                let seconds = (now.0 - then.0).max(1) as f64 / 1e6;
                let sample = sample(&now.1.since(&then.1), seconds);
                if sender.send((then.0, now.0, sample)).is_err() {
                    return;
                }
                then = now;
            }
        };
        process::spawn_thread("load-sampler", body).map_err(|error| error.to_string())?;
        Ok(Sampler { samples, version })
    }

    /// The broker's name and version.
    #[must_use]
    pub fn broker(&self) -> String {
        format!("penstock {}", self.version)
    }

    /// Gives each interval of the run the sample that was taken around its middle.
    pub fn add_to(self, run: &mut Run) {
        let samples: Vec<Sample> = self.samples.drain().collect();
        for interval in &mut run.intervals {
            let middle_ms = interval.at_ms + interval.length_ms / 2;
            let middle = run.began_unix_us + 1000 * middle_ms;
            let found = samples
                .iter()
                .find(|(from, until, _)| (*from..*until).contains(&middle));
            interval.broker = found.map(|(.., sample)| *sample);
        }
    }
}

/// The figures of a difference of two dumps.
fn sample(difference: &Dump, seconds: f64) -> BrokerSample {
    let total = difference.total();
    let counter = |group, name| match total.reading(group, name) {
        Some(Reading::Counter(count)) => *count,
        _ => 0,
    };
    let histogram = |group, name| -> Option<&HistogramSnapshot> {
        match total.reading(group, name) {
            Some(Reading::Histogram(found)) if !found.counts.is_empty() => Some(found),
            _ => None,
        }
    };
    // With O_DSYNC a block's write is the flush.
    let blocks = counter("journal", "blocks");
    let flushes = match counter("journal", "flushes") {
        0 => blocks,
        flushes => flushes,
    };
    let flush = histogram("journal", "flush").or(histogram("journal", "write"));
    BrokerSample {
        flushes_per_s: flushes as f64 / seconds,
        flush_p99_us: flush.map_or(0, |found| found.counts.value_at_quantile(0.99) / 1000),
        entries_per_block: counter("journal", "entries") as f64 / blocks.max(1) as f64,
        cpu_cores: counter("runtime", "cpu") as f64 / 1e9 / seconds,
    }
}
