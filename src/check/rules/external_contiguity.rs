//! L7: a poll starts where the same client's last one ended (unless it sought on purpose, or its
//! group moved to a new generation), its records start at that position, and its new position is
//! right behind them: nothing of the final read lies in between.

use super::violation;
use crate::check::ledger::Ledger;
use crate::check::report::{Report, Rule};

pub fn check(ledger: &Ledger, report: &mut Report) {
    for partition in &ledger.partitions {
        report.note_checked(Rule::L7, partition.polls);
        for jump in &partition.jumps {
            let what = format!(
                "the position {} was due and {} came",
                jump.expected, jump.found
            );
            let lines = [jump.line_before, jump.line];
            let offsets = [jump.expected, jump.found];
            report.note_violation(violation(Rule::L7, partition, what, &offsets, &lines));
        }
        for gap in &partition.gaps_between {
            if let Some(skipped) = partition.slots.first_final_in(gap.from, gap.to) {
                let what = format!("a consumer passed over {} to {}", gap.from, gap.to - 1);
                let lines = [gap.line, skipped.line];
                let offsets = [skipped.offset];
                report.note_violation(violation(Rule::L7, partition, what, &offsets, &lines));
            }
        }
    }
}
