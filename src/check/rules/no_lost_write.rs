//! L2: every acknowledged `(offset, value)` at or above log start is in the final read, byte for
//! byte: key, headers, timestamp and payload are all in the identity of a value.

use super::violation;
use crate::check::ledger::{Ledger, Partition};
use crate::check::report::{Report, Rule};
use crate::check::slots::{ACKED, FINAL, Seen};
use crate::check::values::Fate;

pub fn check(ledger: &Ledger, report: &mut Report) {
    for partition in &ledger.partitions {
        let Some(start) = partition.final_start() else {
            continue; // `history` already says that there is no final read.
        };
        let acked = partition.slots.all().filter(|seen| seen.marks & ACKED != 0);
        for seen in acked.filter(|seen| seen.offset >= start) {
            report.note_checked(Rule::L2, 1);
            if seen.marks & FINAL == 0 {
                lost(ledger, partition, seen, report);
            }
        }
    }
    unplaced(ledger, report);
}

fn lost(ledger: &Ledger, partition: &Partition, seen: Seen, report: &mut Report) {
    let known = ledger.values.get(seen.value);
    let value = known.record.value;
    let offset = seen.offset;
    let mut lines = vec![seen.line];
    let what = match partition.slots.at_final(offset) {
        None => format!("{value} was acknowledged at {offset}; the final read has nothing there"),
        Some(found) => {
            lines.push(found.line);
            let other = ledger.values.get(found.value).record;
            let same =
                other.value.producer == value.producer && other.value.sequence == value.sequence;
            if same {
                format!("{value} was acknowledged at {offset}; its bytes are now others: {other:?}")
            } else {
                format!(
                    "{value} was acknowledged at {offset}; there is now {}",
                    other.value
                )
            }
        }
    };
    report.note_violation(violation(Rule::L2, partition, what, &[offset], &lines));
}

/// Values acknowledged without an offset (an old duplicate): they must be anywhere in the final
/// read. Once log start has moved nothing can be said of them.
fn unplaced(ledger: &Ledger, report: &mut Report) {
    for (_, known) in ledger.values.iter() {
        if known.fate != Fate::Acked || known.acked_offset >= 0 {
            continue;
        }
        let partition = &ledger.partitions[known.partition as usize];
        if partition.final_start() != Some(0) {
            continue;
        }
        report.note_checked(Rule::L2, 1);
        if !known.in_final {
            let value = known.record.value;
            let what = format!("{value} was acknowledged and is not in the final read");
            report.note_violation(violation(Rule::L2, partition, what, &[], &[known.line]));
        }
    }
}
