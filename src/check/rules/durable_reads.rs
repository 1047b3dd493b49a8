//! L8: a value once read by anybody is in the final read, at its offset (at or above log start).

use super::violation;
use crate::check::ledger::Ledger;
use crate::check::report::{Report, Rule};
use crate::check::slots::{FINAL, READ};

pub fn check(ledger: &Ledger, report: &mut Report) {
    for partition in &ledger.partitions {
        let Some(start) = partition.final_start() else {
            continue; // `history` already says that there is no final read.
        };
        let read = partition.slots.all().filter(|seen| seen.marks & READ != 0);
        for seen in read.filter(|seen| seen.offset >= start) {
            report.note_checked(Rule::L8, 1);
            if seen.marks & FINAL == 0 {
                let value = ledger.values.get(seen.value).record.value;
                let what = format!("{value} was read at {} and then lost", seen.offset);
                let lines = [seen.line];
                let offsets = [seen.offset];
                report.note_violation(violation(Rule::L8, partition, what, &offsets, &lines));
            }
        }
    }
}
