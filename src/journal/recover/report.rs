//! What a recovery found, for the log, for the report file and for `verify`.

use super::CutReason;
use crate::base::ids::{BlockSequence, Offset, Position, TopicPartition};
use crate::journal::format::{DirectoryEntry, EntryKind};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// The tail was cut here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cut {
    /// The segment file.
    pub file: PathBuf,
    /// Where the first block that is gone would start.
    pub position: Position,
    /// Its number.
    pub sequence: BlockSequence,
    /// Why.
    pub reason: CutReason,
}

/// What is damaged.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DamageKind {
    /// Records of one partition.
    Records {
        /// The partition.
        partition: TopicPartition,
        /// Offset of the first record concerned.
        base_offset: Offset,
        /// Offsets concerned.
        record_count: u32,
    },
    /// An entry that holds no records.
    State,
    /// Whole blocks whose content is unknown.
    Blocks {
        /// The first.
        first: BlockSequence,
        /// The last.
        last: BlockSequence,
    },
    /// A block of the journal's own bookkeeping, or padding: nothing of a user's is lost.
    Bookkeeping,
    /// A whole file: of the wrong length, or of unknown identity.
    File,
}

impl DamageKind {
    /// What is lost with an entry.
    pub(in crate::journal) fn of(entry: &DirectoryEntry) -> DamageKind {
        match entry.kind {
            EntryKind::Records => DamageKind::Records {
                partition: entry.partition,
                base_offset: entry.base_offset,
                record_count: entry.record_count,
            },
            kind if kind.is_internal() => DamageKind::Bookkeeping,
            _ => DamageKind::State,
        }
    }
}

/// One damaged place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where in the journal.
    pub position: Position,
    /// Bytes concerned; 0 if unknown.
    pub len_bytes: u64,
    /// What is damaged.
    pub kind: DamageKind,
    /// What is wrong.
    pub what: String,
}

/// What opening a journal found and did.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    /// Whether the journal was made just now.
    pub created: bool,
    /// Number of the checkpoint that was used.
    pub checkpoint: Option<u64>,
    /// Checkpoint files passed over because they are damaged.
    pub checkpoints_damaged: u64,
    /// Where the replay started.
    pub replay_from: Position,
    /// Where the journal ended.
    pub end: Position,
    /// Blocks replayed.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The cut, if the tail was torn.
    pub cut: Option<Cut>,
    /// Damaged places, up to a limit.
    pub damage: Vec<Damage>,
    /// Damaged places in all.
    pub damage_total: u64,
    /// Time from start to end.
    pub duration: Duration,
    /// The report file, if one was written.
    pub file: Option<PathBuf>,
}

impl Cut {
    /// For reports.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "file": self.file.display().to_string(),
            "position": self.position.0,
            "block": self.sequence.0,
            "reason": self.reason.as_str(),
        })
    }
}

impl Damage {
    /// For reports.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut value = json!({
            "file": self.file.display().to_string(),
            "position": self.position.0,
            "len_bytes": self.len_bytes,
            "what": self.what,
        });
        let detail = match &self.kind {
            DamageKind::Records {
                partition,
                base_offset,
                record_count,
            } => json!({
                "kind": "records",
                "topic_id": partition.topic.to_string(),
                "partition": partition.partition.0,
                "base_offset": base_offset.0,
                "record_count": record_count,
            }),
            DamageKind::State => json!({ "kind": "state" }),
            DamageKind::Blocks { first, last } => json!({
                "kind": "blocks",
                "first_block": first.0,
                "last_block": last.0,
            }),
            DamageKind::Bookkeeping => json!({ "kind": "bookkeeping" }),
            DamageKind::File => json!({ "kind": "file" }),
        };
        if let (Value::Object(value), Value::Object(detail)) = (&mut value, detail) {
            value.extend(detail);
        }
        value
    }
}

impl RecoveryReport {
    /// Whether an operator must hear of it.
    #[must_use]
    pub fn is_remarkable(&self) -> bool {
        self.cut.is_some() || self.damage_total > 0 || self.checkpoints_damaged > 0
    }

    /// For the report file.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let damage: Vec<Value> = self.damage.iter().map(Damage::to_json).collect();
        json!({
            "checkpoint": self.checkpoint,
            "checkpoints_damaged": self.checkpoints_damaged,
            "replay_from": self.replay_from.0,
            "end": self.end.0,
            "blocks": self.blocks,
            "bytes": self.bytes,
            "duration_ms": u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
            "cut": self.cut.as_ref().map(Cut::to_json),
            "damage_total": self.damage_total,
            "damage": damage,
        })
    }

    /// Notes one damaged place.
    pub(super) fn damaged(&mut self, damage: Damage) {
        self.damage_total += 1;
        if self.damage.len() < crate::limits::DAMAGE_LISTED_MAX {
            self.damage.push(damage);
        }
        assert!(self.damage.len() as u64 <= self.damage_total);
    }
}
