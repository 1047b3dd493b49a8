//! Every value of a history, numbered, with what is known about its sending.

use std::collections::HashMap;

use super::event::{Outcome, Record};

const NOBODY: u32 = u32::MAX;
/// How far ahead of its producer's known values a sequence may lie and still be kept in the dense
/// index: a wild one (a broker that invents) must not make it huge.
const DENSE_AHEAD_MAX: u64 = 1 << 16;

/// What became of a value's sending, over all its attempts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// No event sent it.
    Unsent,
    /// Every sending was proven to have written nothing.
    Failed,
    /// It may have been written.
    Unknown,
    /// It was acknowledged.
    Acked,
}

/// One value and its sending.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The value and its record's fingerprint: its identity.
    pub record: Record,
    /// Where it was sent to (number of the partition in the ledger).
    pub partition: u32,
    /// Line number of its first sending (0: none).
    pub line: u32,
    /// When its first attempt began, ns.
    pub t_invoke: u64,
    /// When it was first acknowledged, ns.
    pub t_acked: u64,
    /// The offset the first acknowledgement named, or -1.
    pub acked_offset: i64,
    /// How often its bytes may have reached the broker.
    pub attempts: u16,
    /// Its fate.
    pub fate: Fate,
    /// Whether every attempt was idempotent.
    pub idempotent: bool,
    /// Whether the final read of its partition returned it.
    pub in_final: bool,
}

/// One sending of a value, as the ledger passes it on.
#[derive(Clone, Copy)]
pub struct Sending {
    /// Number of the partition.
    pub partition: u32,
    /// History line.
    pub line: u32,
    /// Begin, ns.
    pub t_invoke: u64,
    /// Known outcome, ns.
    pub t_complete: u64,
    /// The outcome; acks 0 is already `Info`.
    pub outcome: Outcome,
    /// The offset acknowledged for this value, or -1.
    pub offset: i64,
    /// Attempts of this sending.
    pub attempts: u16,
    /// Whether this sending was idempotent.
    pub idempotent: bool,
}

/// The table. A read may come before the line of its send, so both sides make entries.
#[derive(Default)]
pub struct Values {
    known: Vec<Known>,
    dense: HashMap<u32, Vec<u32>>,
    odd: HashMap<Record, u32>,
}

impl Values {
    /// The number of `record`, new or old.
    pub fn number(&mut self, record: Record) -> u32 {
        if let Some(number) = self.find_dense(record) {
            if self.known[number as usize].record == record {
                return number;
            }
            return self.odd_number(record);
        }
        let row = self.dense.entry(record.value.producer).or_default();
        if record.value.is_foreign() || record.value.sequence > row.len() as u64 + DENSE_AHEAD_MAX {
            return self.odd_number(record);
        }
        if let Some(&number) = self.odd.get(&record) {
            return number;
        }
        let at = record.value.sequence as usize;
        let number = self.known.len() as u32;
        if row.len() <= at {
            row.resize(at + 1, NOBODY);
        }
        row[at] = number;
        self.known.push(unsent(record));
        number
    }

    /// Everything about the value with this number.
    pub fn get(&self, number: u32) -> &Known {
        &self.known[number as usize]
    }

    /// All values with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Known)> {
        (0u32..).zip(self.known.iter())
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Notes that the final read returned this value.
    pub fn mark_final(&mut self, number: u32) {
        self.known[number as usize].in_final = true;
    }

    /// Adds one sending. A value sent again keeps its first begin, its first acknowledgement and
    /// its best outcome.
    pub fn note_sending(&mut self, number: u32, sending: Sending) {
        let known = &mut self.known[number as usize];
        if known.fate == Fate::Unsent {
            known.partition = sending.partition;
            known.line = sending.line;
            known.t_invoke = sending.t_invoke;
            known.idempotent = sending.idempotent;
        }
        known.t_invoke = known.t_invoke.min(sending.t_invoke);
        known.idempotent &= sending.idempotent;
        known.attempts = known.attempts.saturating_add(sending.attempts);
        known.fate = match (known.fate, sending.outcome) {
            (Fate::Acked, _) | (_, Outcome::Ok) => Fate::Acked,
            (Fate::Unknown, _) | (_, Outcome::Info) => Fate::Unknown,
            (Fate::Failed | Fate::Unsent, Outcome::Fail) => Fate::Failed,
        };
        if sending.outcome == Outcome::Ok && sending.t_complete < known.t_acked {
            known.t_acked = sending.t_complete;
            known.acked_offset = sending.offset;
        }
    }

    fn find_dense(&self, record: Record) -> Option<u32> {
        let row = self.dense.get(&record.value.producer)?;
        let at = usize::try_from(record.value.sequence).ok()?;
        row.get(at).copied().filter(|&number| number != NOBODY)
    }

    fn odd_number(&mut self, record: Record) -> u32 {
        let Values { known, odd, .. } = self;
        *odd.entry(record).or_insert_with(|| {
            known.push(unsent(record));
            (known.len() - 1) as u32
        })
    }
}

fn unsent(record: Record) -> Known {
    Known {
        record,
        partition: NOBODY,
        line: 0,
        t_invoke: u64::MAX,
        t_acked: u64::MAX,
        acked_offset: -1,
        attempts: 0,
        fate: Fate::Unsent,
        idempotent: false,
        in_final: false,
    }
}
