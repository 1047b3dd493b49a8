//! The events of a history: what one client asked, when, and what it was told.
//!
//! Times are nanoseconds on one monotonic clock of the campaign. `Fail` is used only where the
//! protocol proves that nothing was written; a timeout, a reset or a kill is `Info`: it may or may
//! not have happened. The line is appended before the client acts on the answer.

use super::value::Value;
use crate::base::ids::Offset;

/// How an operation ended, as far as its client can know.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The broker said yes.
    Ok,
    /// The broker proved that nothing was written.
    Fail,
    /// Unknown: it may have happened, may happen later, or never.
    Info,
}

/// One line of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The client; a client does one polling operation at a time on a partition.
    pub client: u32,
    /// The client's own count of its operations.
    pub op: u64,
    /// When the client began, ns. No byte was sent before.
    pub t_invoke: u64,
    /// When the client knew the outcome, ns; `None` if it never did.
    pub t_complete: Option<u64>,
    /// The outcome.
    pub outcome: Outcome,
    /// What was done.
    pub action: Action,
}

/// A partition, by the name clients use.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// Topic name.
    pub topic: String,
    /// Partition index.
    pub partition: i32,
}

/// What an event did.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A producer sent one batch of values.
    Send(Sent),
    /// A consumer took the next records from its position.
    Poll(Polled),
    /// Records were looked up at an offset, by a client that keeps no position.
    Read(Polled),
    /// Part of the reading of everything after the last fault.
    Final(FinalRead),
    /// A client asked where a partition begins and ends.
    EndOffsets(Ends),
    /// A group committed its position.
    Commit(Committed),
    /// The broker was started anew.
    Restart(Restarted),
    /// The last fault is over; from here L10's clock runs.
    Heal,
}

/// A value as it was sent or seen, with the fingerprint of its whole record.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Record {
    /// What the payload says of itself.
    pub value: Value,
    /// `value::digest` of key, headers, timestamp and payload.
    pub digest: u32,
}

/// A record at its offset.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sighting {
    /// Where.
    pub offset: Offset,
    /// What.
    pub record: Record,
}

/// One batch of values sent to one partition.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// Where to.
    pub place: Place,
    /// Whether every attempt carried the same producer id and sequence.
    pub idempotent: bool,
    /// 0, 1 or -1. With 0 an `Ok` promises nothing and is taken as `Info`.
    pub acks: i16,
    /// How often the bytes may have reached the broker: 1, and one more for each re-send.
    pub attempts: u16,
    /// The offset of the first value, if the answer named one (a duplicate's may not).
    pub base_offset: Option<Offset>,
    /// The values, at consecutive offsets.
    pub records: Vec<Record>,
}

/// What one fetch gave a consumer; records below `from` are already dropped, as clients do.
#[derive(Clone, Debug, PartialEq)]
pub struct Polled {
    /// Where from.
    pub place: Place,
    /// The position before.
    pub from: Offset,
    /// The position after.
    pub next: Offset,
    /// Whether the client moved its position on purpose just before.
    pub seek: bool,
    /// Group generation, -1 for manual assignment. A new generation may start anywhere.
    pub generation: i32,
    /// The ends as the answer gave them.
    pub ends: Option<Bounds>,
    /// The records, in the order of the answer.
    pub records: Vec<Sighting>,
}

/// First offset kept and first offset not yet durable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bounds {
    /// Log start offset.
    pub log_start: Offset,
    /// High watermark.
    pub high_watermark: Offset,
}

/// The answer to "where does it begin and end".
#[derive(Clone, Debug, PartialEq)]
pub struct Ends {
    /// Which partition.
    pub place: Place,
    /// Its bounds.
    pub bounds: Bounds,
}

/// A part of the final read; together the parts cover `bounds` without a hole.
#[derive(Clone, Debug, PartialEq)]
pub struct FinalRead {
    /// Which partition.
    pub place: Place,
    /// The bounds taken once, before the first part.
    pub bounds: Bounds,
    /// First offset of this part.
    pub from: Offset,
    /// First offset after this part.
    pub next: Offset,
    /// All records of `from..next`.
    pub records: Vec<Sighting>,
}

/// A group's commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// Which partition.
    pub place: Place,
    /// The group.
    pub group: String,
    /// The generation it was made in.
    pub generation: i32,
    /// The next offset to read.
    pub offset: Offset,
}

/// A start of the broker.
#[derive(Clone, Debug, PartialEq)]
pub struct Restarted {
    /// 1 for the first start, one more for each after it.
    pub incarnation: u32,
    /// How the one before ended: `kill`, `term`, `power`, …
    pub how: String,
}
