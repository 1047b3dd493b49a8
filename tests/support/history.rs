//! The recorder: appends each event to the history file before its client acts on it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use penstock::base::ids::Offset;
use penstock::check::event::{Action, Bounds, Event, Outcome, Place, Polled, Sighting};
use penstock::check::{Checker, Report, Value, event, line, value};

use super::batch;

/// One history, shared by all clients of a campaign.
pub struct Recorder {
    begin: Instant,
    path: PathBuf,
    file: Mutex<File>,
}

impl Recorder {
    pub fn create(path: &Path) -> Recorder {
        let file = File::create(path).expect("the history can be made");
        Recorder {
            begin: Instant::now(),
            path: path.to_owned(),
            file: Mutex::new(file),
        }
    }

    /// Nanoseconds since the campaign began.
    pub fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).expect("a campaign is short")
    }

    /// Appends an event that began at `t_invoke` and is complete now.
    pub fn note(&self, client: u32, op: u64, t_invoke: u64, outcome: Outcome, action: Action) {
        let t_complete = Some(self.now());
        let mut text = String::new();
        line::append(
            &Event {
                client,
                op,
                t_invoke,
                t_complete,
                outcome,
                action,
            },
            &mut text,
        );
        let mut file = self
            .file
            .lock()
            .expect("no recorder panics while it writes");
        file.write_all(text.as_bytes())
            .expect("the history can be written");
    }

    /// Reads the file back and judges it.
    pub fn judge(&self) -> Report {
        let file = BufReader::new(File::open(&self.path).expect("the history is there"));
        let mut checker = Checker::new();
        for text in file.lines() {
            let text = text.expect("the history can be read");
            checker
                .feed_line(&text)
                .expect("the history was written by this test");
        }
        checker.finish()
    }
}

/// A record to send: payload, identity and fingerprint. Every third has a key, every fourth a
/// header, so that those are proven too.
pub fn make(producer: u32, sequence: u64, length_bytes: usize) -> (event::Record, batch::Record) {
    let (value, payload) = value::build(producer, sequence, length_bytes);
    let key = sequence
        .is_multiple_of(3)
        .then(|| format!("key-{producer}-{sequence}").into_bytes());
    let mut headers = Vec::new();
    if sequence.is_multiple_of(4) {
        headers.push((b"attempt".to_vec(), None));
        headers.push((b"".to_vec(), Some(sequence.to_le_bytes().to_vec())));
    }
    let timestamp_ms = 1_700_000_000_000 + i64::from(producer) * 1_000_000 + sequence as i64;
    let record = batch::Record {
        offset: 0,
        timestamp_ms,
        key,
        value: Some(payload),
        headers,
    };
    (
        event::Record {
            value,
            digest: digest(&record),
        },
        record,
    )
}

fn digest(record: &batch::Record) -> u32 {
    let headers = record.headers.iter();
    let headers = headers.map(|(name, value)| (name.as_slice(), value.as_deref()));
    let (key, payload) = (record.key.as_deref(), record.value.as_deref());
    value::digest(key, headers, record.timestamp_ms, payload)
}

/// What a record that was read says of itself.
pub fn sighting(record: &batch::Record) -> Sighting {
    let payload = record.value.as_deref().unwrap_or_default();
    let value = value::parse(payload).unwrap_or_else(|_| Value::foreign(payload));
    let record_seen = event::Record {
        value,
        digest: digest(record),
    };
    Sighting {
        offset: Offset(record.offset),
        record: record_seen,
    }
}

pub fn place(topic: &str, partition: i32) -> Place {
    Place {
        topic: topic.to_owned(),
        partition,
    }
}

pub fn bounds(log_start: i64, high_watermark: i64) -> Bounds {
    Bounds {
        log_start: Offset(log_start),
        high_watermark: Offset(high_watermark),
    }
}

/// What a consumer at `from` makes of a fetch's records: those below its position are dropped.
pub fn polled(place: Place, from: i64, records: &[batch::Record], ends: Option<Bounds>) -> Polled {
    let due = records.iter().filter(|record| record.offset >= from);
    let records: Vec<Sighting> = due.map(sighting).collect();
    let next = records.last().map_or(from, |last| last.offset.0 + 1);
    Polled {
        place,
        from: Offset(from),
        next: Offset(next),
        seek: false,
        generation: -1,
        ends,
        records,
    }
}
