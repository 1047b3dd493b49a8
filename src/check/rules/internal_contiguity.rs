//! L6: inside a poll offsets rise, and what lies between two of its records is not in the final
//! read either (control records, compaction).

use super::violation;
use crate::check::ledger::Ledger;
use crate::check::report::{Report, Rule};

pub fn check(ledger: &Ledger, report: &mut Report) {
    for partition in &ledger.partitions {
        report.note_checked(Rule::L6, partition.polls + partition.parts.len() as u64);
        for fall in &partition.falls {
            let what = format!("offset {} came where {} was due", fall.found, fall.expected);
            let offsets = [fall.expected, fall.found];
            report.note_violation(violation(Rule::L6, partition, what, &offsets, &[fall.line]));
        }
        for gap in &partition.gaps_inside {
            if let Some(skipped) = partition.slots.first_final_in(gap.from, gap.to) {
                let what = format!("a poll left out {} to {}", gap.from, gap.to - 1);
                let lines = [gap.line, skipped.line];
                let offsets = [skipped.offset];
                report.note_violation(violation(Rule::L6, partition, what, &offsets, &lines));
            }
        }
    }
}
