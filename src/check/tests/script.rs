//! A few words to write histories with. Values are named by producer and sequence; every event
//! takes one tick of 1 ms unless it says otherwise.

use crate::base::ids::Offset;
use crate::check::event::{
    Action, Bounds, Ends, Event, FinalRead, Outcome, Place, Polled, Record, Restarted, Sent,
    Sighting,
};
use crate::check::value::{self, Value};

pub const TICK: u64 = 1_000_000;

/// A history in the making.
#[derive(Default)]
pub struct Script {
    pub events: Vec<Event>,
    pub now: u64,
}

/// The value `sequence` of `producer`, as everybody sees it.
pub fn record(producer: u32, sequence: u64) -> Record {
    let (value, payload) = value::build(producer, sequence, 32);
    let none: [(&[u8], Option<&[u8]>); 0] = [];
    let digest = value::digest(None, none, 1, Some(&payload));
    Record { value, digest }
}

/// The same value with a changed key: payload as sent, record not.
pub fn altered(producer: u32, sequence: u64) -> Record {
    let mut record = record(producer, sequence);
    record.digest ^= 1;
    record
}

/// Bytes that nobody made.
pub fn foreign() -> Record {
    Record {
        value: Value::foreign(b"what is this"),
        digest: 9,
    }
}

pub fn place(partition: i32) -> Place {
    Place {
        topic: "t".to_owned(),
        partition,
    }
}

pub fn at(offset: i64, record: Record) -> Sighting {
    Sighting {
        offset: Offset(offset),
        record,
    }
}

/// Producer 1's values from `first_offset` on, numbered from `sequence`.
pub fn run(first_offset: i64, sequence: u64, count: u64) -> Vec<Sighting> {
    let sighting = |index| at(first_offset + index as i64, record(1, sequence + index));
    (0..count).map(sighting).collect()
}

pub fn bounds(log_start: i64, high_watermark: i64) -> Bounds {
    Bounds {
        log_start: Offset(log_start),
        high_watermark: Offset(high_watermark),
    }
}

impl Script {
    pub fn new() -> Script {
        let mut script = Script::default();
        script.restart("first");
        script
    }

    /// An event of `ticks` ticks, starting now.
    pub fn event(
        &mut self,
        client: u32,
        ticks: u64,
        outcome: Outcome,
        action: Action,
    ) -> &mut Self {
        let t_invoke = self.now;
        self.now += ticks * TICK;
        let (op, t_complete) = (self.events.len() as u64, Some(self.now));
        self.events.push(Event {
            client,
            op,
            t_invoke,
            t_complete,
            outcome,
            action,
        });
        self.now += TICK;
        self
    }

    pub fn restart(&mut self, how: &str) -> &mut Self {
        let action = Action::Restart(Restarted {
            incarnation: 1,
            how: how.to_owned(),
        });
        self.event(0, 1, Outcome::Ok, action)
    }

    pub fn heal(&mut self) -> &mut Self {
        self.event(0, 1, Outcome::Ok, Action::Heal)
    }

    /// Sends one value to partition 0; `offset` −1 means that the answer named none.
    pub fn send_as(
        &mut self,
        (producer, sequence): (u32, u64),
        (idempotent, attempts): (bool, u16),
        outcome: Outcome,
        offset: i64,
    ) -> &mut Self {
        let sent = Sent {
            place: place(0),
            idempotent,
            acks: -1,
            attempts,
            base_offset: (offset >= 0).then_some(Offset(offset)),
            records: vec![record(producer, sequence)],
        };
        self.event(producer, 1, outcome, Action::Send(sent))
    }

    /// Producer 1 sends `sequence` with idempotence and is told `offset`.
    pub fn sent(&mut self, sequence: u64, offset: i64) -> &mut Self {
        self.send_as((1, sequence), (true, 1), Outcome::Ok, offset)
    }

    /// Producer 1 sends `count` values, acknowledged at their own numbers.
    pub fn sent_run(&mut self, count: u64) -> &mut Self {
        for sequence in 0..count {
            self.sent(sequence, sequence as i64);
        }
        self
    }

    pub fn polled(from: i64, records: Vec<Sighting>) -> Polled {
        let next = records.last().map_or(from, |record| record.offset.0 + 1);
        Polled {
            place: place(0),
            from: Offset(from),
            next: Offset(next),
            seek: false,
            generation: -1,
            ends: None,
            records,
        }
    }

    /// Consumer 9 polls at `from` and is given `records`.
    pub fn poll(&mut self, from: i64, records: Vec<Sighting>) -> &mut Self {
        self.event(9, 1, Outcome::Ok, Action::Poll(Self::polled(from, records)))
    }

    pub fn ends(&mut self, log_start: i64, high_watermark: i64) -> &mut Self {
        let ends = Ends {
            place: place(0),
            bounds: bounds(log_start, high_watermark),
        };
        self.event(0, 1, Outcome::Ok, Action::EndOffsets(ends))
    }

    /// The whole final read of partition 0, from `log_start` to `end`.
    pub fn last(&mut self, log_start: i64, end: i64, records: Vec<Sighting>) -> &mut Self {
        self.last_of(0, log_start, end, records)
    }

    pub fn last_of(
        &mut self,
        partition: i32,
        log_start: i64,
        end: i64,
        records: Vec<Sighting>,
    ) -> &mut Self {
        let part = FinalRead {
            place: place(partition),
            bounds: bounds(log_start, end),
            from: Offset(log_start),
            next: Offset(end),
            records,
        };
        self.event(0, 1, Outcome::Ok, Action::Final(part))
    }
}
