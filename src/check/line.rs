//! The history file: one JSON object a line, flat, short and stable.
//!
//! Every line has `client op t_invoke t_complete outcome kind`; the rest depends on `kind`:
//!
//! | kind | more fields |
//! |---|---|
//! | `send` | `topic partition idempotent acks attempts offset values` |
//! | `poll`, `read` | `topic partition from next records`, if known `log_start high_watermark`, |
//! | | if so `seek generation` |
//! | `final` | `topic partition from next log_start high_watermark records` |
//! | `end-offsets` | `topic partition log_start high_watermark` |
//! | `commit` | `topic partition group generation offset` |
//! | `restart` | `incarnation how` |
//! | `heal` | |
//!
//! A value is `[producer, sequence, length, crc, digest]`; a record has its offset in front. A flat
//! struct instead of serde's tagged enums: those buffer each line in a tree first, which costs
//! three times as much on histories of millions of lines.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::event::{
    Action, Bounds, Committed, Ends, Event, FinalRead, Outcome, Place, Polled, Record, Restarted,
    Sent, Sighting,
};
use super::value::Value;
use crate::base::ids::Offset;

/// Why a line is not an event.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LineError {
    /// Not the JSON of an event.
    Json(String),
    /// The kind needs a field that is not there.
    Missing(&'static str),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineError::Json(why) => write!(f, "not an event: {why}"),
            LineError::Missing(field) => write!(f, "not an event: `{field}` is missing"),
        }
    }
}

impl std::error::Error for LineError {}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Send,
    Poll,
    Read,
    Final,
    EndOffsets,
    Commit,
    Restart,
    Heal,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Ending {
    Ok,
    Fail,
    Info,
}

type ValueTuple = (u32, u64, u32, u32, u32);
type RecordTuple = (i64, u32, u64, u32, u32, u32);

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    client: u32,
    op: u64,
    t_invoke: u64,
    t_complete: Option<u64>,
    outcome: Ending,
    kind: Kind,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    topic: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotent: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    acks: Option<i16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempts: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<Vec<ValueTuple>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seek: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generation: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_start: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    high_watermark: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    records: Option<Vec<RecordTuple>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    group: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    incarnation: Option<u32>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    how: Option<Cow<'a, str>>,
}

/// Appends `event` to `text` as one line, line break included.
pub fn append(event: &Event, text: &mut String) {
    let mut line = Line::head(event);
    match &event.action {
        Action::Send(sent) => line.put_sent(sent),
        Action::Poll(polled) => line.put_polled(Kind::Poll, polled),
        Action::Read(polled) => line.put_polled(Kind::Read, polled),
        Action::Final(part) => line.put_final(part),
        Action::EndOffsets(ends) => {
            line.kind = Kind::EndOffsets;
            line.put_place(&ends.place);
            line.put_bounds(Some(ends.bounds));
        }
        Action::Commit(commit) => {
            line.kind = Kind::Commit;
            line.put_place(&commit.place);
            line.group = Some(Cow::Borrowed(&commit.group));
            line.generation = Some(commit.generation);
            line.offset = Some(commit.offset.0);
        }
        Action::Restart(restart) => {
            line.kind = Kind::Restart;
            line.incarnation = Some(restart.incarnation);
            line.how = Some(Cow::Borrowed(&restart.how));
        }
        Action::Heal => line.kind = Kind::Heal,
    }
    let json = serde_json::to_string(&line).expect("plain numbers and strings always serialise");
    text.push_str(&json);
    text.push('\n');
}

/// Reads one line back.
///
/// # Errors
/// The line is not the JSON of an event, or lacks a field its kind needs.
pub fn parse(text: &str) -> Result<Event, LineError> {
    let line: Line<'_> =
        serde_json::from_str(text).map_err(|error| LineError::Json(error.to_string()))?;
    let outcome = match line.outcome {
        Ending::Ok => Outcome::Ok,
        Ending::Fail => Outcome::Fail,
        Ending::Info => Outcome::Info,
    };
    let (client, op) = (line.client, line.op);
    let (t_invoke, t_complete) = (line.t_invoke, line.t_complete);
    let action = line.action()?;
    Ok(Event {
        client,
        op,
        t_invoke,
        t_complete,
        outcome,
        action,
    })
}

fn need<T>(field: Option<T>, name: &'static str) -> Result<T, LineError> {
    field.ok_or(LineError::Missing(name))
}

impl<'a> Line<'a> {
    fn head(event: &Event) -> Line<'a> {
        let outcome = match event.outcome {
            Outcome::Ok => Ending::Ok,
            Outcome::Fail => Ending::Fail,
            Outcome::Info => Ending::Info,
        };
        Line {
            client: event.client,
            op: event.op,
            t_invoke: event.t_invoke,
            t_complete: event.t_complete,
            outcome,
            kind: Kind::Heal,
            topic: None,
            partition: None,
            idempotent: None,
            acks: None,
            attempts: None,
            offset: None,
            values: None,
            from: None,
            next: None,
            seek: None,
            generation: None,
            log_start: None,
            high_watermark: None,
            records: None,
            group: None,
            incarnation: None,
            how: None,
        }
    }

    fn put_place(&mut self, place: &'a Place) {
        self.topic = Some(Cow::Borrowed(&place.topic));
        self.partition = Some(place.partition);
    }

    fn put_bounds(&mut self, bounds: Option<Bounds>) {
        self.log_start = bounds.map(|bounds| bounds.log_start.0);
        self.high_watermark = bounds.map(|bounds| bounds.high_watermark.0);
    }

    fn put_records(&mut self, records: &[Sighting]) {
        let tuple = |sighting: &Sighting| {
            let Record { value, digest } = sighting.record;
            let Value {
                producer,
                sequence,
                length,
                crc,
            } = value;
            (sighting.offset.0, producer, sequence, length, crc, digest)
        };
        self.records = Some(records.iter().map(tuple).collect());
    }

    fn put_sent(&mut self, sent: &'a Sent) {
        self.kind = Kind::Send;
        self.put_place(&sent.place);
        self.idempotent = Some(sent.idempotent);
        self.acks = Some(sent.acks);
        self.attempts = Some(sent.attempts);
        self.offset = sent.base_offset.map(|offset| offset.0);
        let tuple = |record: &Record| {
            let Value {
                producer,
                sequence,
                length,
                crc,
            } = record.value;
            (producer, sequence, length, crc, record.digest)
        };
        self.values = Some(sent.records.iter().map(tuple).collect());
    }

    fn put_polled(&mut self, kind: Kind, polled: &'a Polled) {
        self.kind = kind;
        self.put_place(&polled.place);
        self.from = Some(polled.from.0);
        self.next = Some(polled.next.0);
        self.seek = polled.seek.then_some(true);
        self.generation = (polled.generation >= 0).then_some(polled.generation);
        self.put_bounds(polled.ends);
        self.put_records(&polled.records);
    }

    fn put_final(&mut self, part: &'a FinalRead) {
        self.kind = Kind::Final;
        self.put_place(&part.place);
        self.from = Some(part.from.0);
        self.next = Some(part.next.0);
        self.put_bounds(Some(part.bounds));
        self.put_records(&part.records);
    }

    fn action(self) -> Result<Action, LineError> {
        Ok(match self.kind {
            Kind::Send => Action::Send(self.sent()?),
            Kind::Poll => Action::Poll(self.polled()?),
            Kind::Read => Action::Read(self.polled()?),
            Kind::Final => Action::Final(self.final_read()?),
            Kind::EndOffsets => {
                let bounds = need(self.bounds()?, "high_watermark")?;
                Action::EndOffsets(Ends {
                    place: self.place()?,
                    bounds,
                })
            }
            Kind::Commit => Action::Commit(Committed {
                place: self.place()?,
                group: need(self.group, "group")?.into_owned(),
                generation: need(self.generation, "generation")?,
                offset: Offset(need(self.offset, "offset")?),
            }),
            Kind::Restart => Action::Restart(Restarted {
                incarnation: need(self.incarnation, "incarnation")?,
                how: need(self.how, "how")?.into_owned(),
            }),
            Kind::Heal => Action::Heal,
        })
    }

    fn place(&self) -> Result<Place, LineError> {
        let topic = need(self.topic.as_deref(), "topic")?.to_owned();
        Ok(Place {
            topic,
            partition: need(self.partition, "partition")?,
        })
    }

    fn bounds(&self) -> Result<Option<Bounds>, LineError> {
        match (self.log_start, self.high_watermark) {
            (Some(start), Some(high)) => Ok(Some(Bounds {
                log_start: Offset(start),
                high_watermark: Offset(high),
            })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(LineError::Missing("log_start")),
            (Some(_), None) => Err(LineError::Missing("high_watermark")),
        }
    }

    fn sightings(&self) -> Result<Vec<Sighting>, LineError> {
        let records = need(self.records.as_deref(), "records")?;
        let sighting = |&(offset, producer, sequence, length, crc, digest): &RecordTuple| {
            let value = Value {
                producer,
                sequence,
                length,
                crc,
            };
            Sighting {
                offset: Offset(offset),
                record: Record { value, digest },
            }
        };
        Ok(records.iter().map(sighting).collect())
    }

    fn sent(&self) -> Result<Sent, LineError> {
        let values = need(self.values.as_deref(), "values")?;
        let record = |&(producer, sequence, length, crc, digest): &ValueTuple| {
            let value = Value {
                producer,
                sequence,
                length,
                crc,
            };
            Record { value, digest }
        };
        Ok(Sent {
            place: self.place()?,
            idempotent: need(self.idempotent, "idempotent")?,
            acks: need(self.acks, "acks")?,
            attempts: need(self.attempts, "attempts")?,
            base_offset: self.offset.map(Offset),
            records: values.iter().map(record).collect(),
        })
    }

    fn polled(&self) -> Result<Polled, LineError> {
        Ok(Polled {
            place: self.place()?,
            from: Offset(need(self.from, "from")?),
            next: Offset(need(self.next, "next")?),
            seek: self.seek.unwrap_or(false),
            generation: self.generation.unwrap_or(-1),
            ends: self.bounds()?,
            records: self.sightings()?,
        })
    }

    fn final_read(&self) -> Result<FinalRead, LineError> {
        Ok(FinalRead {
            place: self.place()?,
            bounds: need(self.bounds()?, "high_watermark")?,
            from: Offset(need(self.from, "from")?),
            next: Offset(need(self.next, "next")?),
            records: self.sightings()?,
        })
    }
}
