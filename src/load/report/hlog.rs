//! `.hlog`: a whole run as a mergeable log, in the format of HdrHistogram's own log writer (version
//! 1.3 of the log, histograms in V2 with deflate), so that a stock library reads the latencies; and
//! the rest of the run in comment lines, so that nothing is lost.
//!
//! ```text
//! #[Histogram log format version 1.3]
//! #[StartTime: 1796078160.000000 (seconds since epoch), 2026-11-30 22:36:00 UTC]
//! #[BaseTime: 1796078160.000000 (seconds since epoch)]
//! "StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
//! #penstock-run {"schema_version":1,"began_unix_us":…,"about":{…},"steps":[…],…}
//! #penstock-interval {"at_ms":0,"length_ms":1000,"step":0,"phase":"measured","counts":{…},…}
//! Tag=response,0.000,1.000,4.123,HISTFAAAA…
//! Tag=service,0.000,1.000,3.984,HISTFAAAA…
//! ```
//!
//! Histograms are in microseconds; the third number of a line is the largest of them in
//! milliseconds, for people. One without samples has no line. Tags: `response`, `service`,
//! `unanswered`, `end_to_end`, `schedule_lag`.

use crate::base::base64;
use crate::base::units::{date_time, finite};
use crate::load::run::{
    About, Counts, Ended, Event, Failure, Interval, LATENCY_DIGITS, LATENCY_US_MAX, LATENCY_US_MIN,
    Latencies, Phase, Run, Setup, Step, Verification, latency_histogram,
};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::{self, Write as _};

const RUN: &str = "#penstock-run ";
const INTERVAL: &str = "#penstock-interval ";
const SCHEMA_VERSION: u32 = 1;
const TAGS: [&str; 5] = [
    "response",
    "service",
    "unanswered",
    "end_to_end",
    "schedule_lag",
];

/// What the largest latency may come back as: a histogram tells the end of its slot.
const LATENCY_REACH_US: u64 = LATENCY_US_MAX + LATENCY_US_MAX / 500;

/// All of a run but its time line.
#[derive(Deserialize, Serialize)]
struct Head<'a> {
    schema_version: u32,
    began_unix_us: u64,
    about: Cow<'a, About>,
    steps: Cow<'a, [Step]>,
    failures: Cow<'a, [Failure]>,
    events: Cow<'a, [Event]>,
    setup: Setup,
    verification: Cow<'a, Option<Verification>>,
    ended: Ended,
}

/// All of an interval but its histograms.
#[derive(Deserialize, Serialize)]
struct IntervalHead {
    at_ms: u64,
    length_ms: u64,
    step: usize,
    phase: Phase,
    counts: Counts,
    broker: Option<crate::load::run::BrokerSample>,
}

/// Why a log cannot be read.
#[derive(Debug)]
pub struct HlogError {
    /// From 1; 0 for the file as a whole.
    line: usize,
    what: What,
}

#[derive(Debug)]
enum What {
    /// Another tool's, or no log at all.
    NoRun,
    /// Written by a later version.
    Version(u32),
    /// Our own comment is damaged.
    Comment(serde_json::Error),
    /// A histogram before the first interval, or with an unknown tag.
    Stray,
    /// A histogram that does not decode.
    Histogram,
    /// An interval names a step that is not there, or lies before the one in front of it.
    Interval,
}

/// Writes a run.
#[must_use]
pub fn text(run: &Run) -> String {
    let start = run.began_unix_us as f64 / 1e6;
    let mut text = format!(
        "#[Histogram log format version 1.3]\n\
         #[StartTime: {start:.6} (seconds since epoch), {}]\n\
         #[BaseTime: {start:.6} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
         \"Interval_Compressed_Histogram\"\n",
        date_time(run.began_unix_us)
    );
    let _ = writeln!(text, "{RUN}{}", json(&head(run)));
    for interval in &run.intervals {
        let head = IntervalHead {
            at_ms: interval.at_ms,
            length_ms: interval.length_ms,
            step: interval.step,
            phase: interval.phase,
            counts: interval.counts,
            broker: interval.broker.map(|mut broker| {
                broker.flushes_per_s = finite(broker.flushes_per_s);
                broker.entries_per_block = finite(broker.entries_per_block);
                broker.cpu_cores = finite(broker.cpu_cores);
                broker
            }),
        };
        let _ = writeln!(text, "{INTERVAL}{}", json(&head));
        let latencies = &interval.latencies;
        for (tag, histogram) in TAGS.into_iter().zip([
            &latencies.response,
            &latencies.service,
            &latencies.unanswered,
            &latencies.end_to_end,
            &latencies.schedule_lag,
        ]) {
            if !histogram.is_empty() {
                let at_s = interval.at_ms as f64 / 1e3;
                let length_s = interval.length_ms as f64 / 1e3;
                let max_ms = histogram.max() as f64 / 1e3;
                let payload = encoded(histogram);
                let _ = writeln!(
                    text,
                    "Tag={tag},{at_s:.3},{length_s:.3},{max_ms:.3},{payload}"
                );
            }
        }
    }
    text
}

/// Figures that are no numbers would come back as none.
fn head(run: &Run) -> Head<'_> {
    let mut about = run.about.clone();
    for share in &mut about.worker_busy {
        *share = finite(*share);
    }
    Head {
        schema_version: SCHEMA_VERSION,
        began_unix_us: run.began_unix_us,
        about: Cow::Owned(about),
        steps: Cow::Borrowed(&run.steps),
        failures: Cow::Borrowed(&run.failures),
        events: Cow::Borrowed(&run.events),
        setup: run.setup,
        verification: Cow::Borrowed(&run.verification),
        ended: run.ended,
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain structures with text keys serialize")
}

/// A histogram as one word: V2, deflated, base64.
#[must_use]
pub fn encoded(histogram: &Histogram<u64>) -> String {
    // All are written with the same bounds, also those that grew.
    let mut full = latency_histogram();
    let whole = full.add(histogram).map_or(histogram, |()| &full);
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(whole, &mut bytes)
        .expect("counts below 2^63 into memory serialize");
    base64::encode(&bytes)
}

/// Reads a run back.
///
/// # Errors
/// The line that is not as it was written.
pub fn parse(text: &str) -> Result<Run, HlogError> {
    let mut run: Option<Run> = None;
    for (index, line) in text.lines().enumerate() {
        let fail = |what| HlogError {
            line: index + 1,
            what,
        };
        if let Some(json) = line.strip_prefix(RUN) {
            run = Some(parse_head(json).map_err(fail)?);
        } else if let Some(json) = line.strip_prefix(INTERVAL) {
            let run = run.as_mut().ok_or_else(|| fail(What::NoRun))?;
            let interval = parse_interval(json, run).map_err(fail)?;
            run.intervals.push(interval);
        } else if !(line.is_empty() || line.starts_with(['#', '"'])) {
            let run = run.as_mut().ok_or_else(|| fail(What::NoRun))?;
            let interval = run.intervals.last_mut().ok_or_else(|| fail(What::Stray))?;
            parse_histogram(line, &mut interval.latencies).map_err(fail)?;
        }
    }
    run.ok_or(HlogError {
        line: 0,
        what: What::NoRun,
    })
}

fn parse_head(json: &str) -> Result<Run, What> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u32,
    }
    let version: Version = serde_json::from_str(json).map_err(What::Comment)?;
    if version.schema_version != SCHEMA_VERSION {
        return Err(What::Version(version.schema_version));
    }
    let head: Head<'_> = serde_json::from_str(json).map_err(What::Comment)?;
    Ok(Run {
        began_unix_us: head.began_unix_us,
        about: head.about.into_owned(),
        steps: head.steps.into_owned(),
        intervals: Vec::new(),
        failures: head.failures.into_owned(),
        events: head.events.into_owned(),
        setup: head.setup,
        verification: head.verification.into_owned(),
        ended: head.ended,
    })
}

fn parse_interval(json: &str, run: &Run) -> Result<Interval, What> {
    let head: IntervalHead = serde_json::from_str(json).map_err(What::Comment)?;
    let end_ms = run
        .intervals
        .last()
        .map_or(0, |last| last.at_ms + last.length_ms);
    let in_order = head.at_ms >= end_ms && head.at_ms.checked_add(head.length_ms).is_some();
    if head.step >= run.steps.len() || !in_order {
        return Err(What::Interval);
    }
    Ok(Interval {
        at_ms: head.at_ms,
        length_ms: head.length_ms,
        step: head.step,
        phase: head.phase,
        counts: head.counts,
        latencies: growing(),
        broker: head.broker,
    })
}

/// Empty histograms that grow to what they are given: a long log has thousands, and one that can
/// hold an hour from the start takes 200 kB.
fn growing() -> Latencies {
    let empty = || {
        let mut histogram = Histogram::new_with_bounds(LATENCY_US_MIN, 2, LATENCY_DIGITS)
            .expect("the bounds are constants that fit");
        histogram.auto(true);
        histogram
    };
    Latencies {
        response: empty(),
        service: empty(),
        unanswered: empty(),
        end_to_end: empty(),
        schedule_lag: empty(),
    }
}

fn parse_histogram(line: &str, latencies: &mut Latencies) -> Result<(), What> {
    let tagged = line.strip_prefix("Tag=").ok_or(What::Stray)?;
    let (tag, rest) = tagged.split_once(',').ok_or(What::Stray)?;
    let payload = rest.rsplit(',').next().unwrap_or_default();
    let bytes = base64::decode(payload.trim()).ok_or(What::Histogram)?;
    let histogram: Histogram<u64> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|_| What::Histogram)?;
    let place = match tag {
        "response" => &mut latencies.response,
        "service" => &mut latencies.service,
        "unanswered" => &mut latencies.unanswered,
        "end_to_end" => &mut latencies.end_to_end,
        "schedule_lag" => &mut latencies.schedule_lag,
        _ => return Err(What::Stray),
    };
    if histogram.max() > LATENCY_REACH_US {
        return Err(What::Histogram);
    }
    // Added rather than kept: digits and least value stay ours whatever the file says.
    place.add(&histogram).map_err(|_| What::Histogram)
}

impl fmt::Display for HlogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        match &self.what {
            What::NoRun => {
                f.write_str("no `#penstock-run` line: not a log that `penstock load --hlog` wrote")
            }
            What::Version(version) => write!(
                f,
                "written by a later version (schema {version}, this one reads {SCHEMA_VERSION})"
            ),
            What::Comment(error) => write!(f, "damaged: {error}"),
            What::Stray => f.write_str("a histogram that belongs to no interval or no latency"),
            What::Histogram => f.write_str("a histogram that does not decode"),
            What::Interval => {
                f.write_str("an interval out of order, or of a step that is not there")
            }
        }
    }
}

impl std::error::Error for HlogError {}
