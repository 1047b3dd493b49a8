//! L1: over all acknowledgements, all reads and all incarnations an offset has at most one value.

use super::violation;
use crate::check::ledger::Ledger;
use crate::check::report::{Report, Rule};

pub fn check(ledger: &Ledger, report: &mut Report) {
    for partition in &ledger.partitions {
        report.note_checked(Rule::L1, partition.slots.claimants().count() as u64);
        for rival in partition.slots.rivals() {
            let claimant = partition
                .slots
                .claimant(rival.offset)
                .expect("a rival came after a claimant");
            let what = format!(
                "offset {} was shown as {} and as {}",
                rival.offset,
                ledger.values.get(claimant.value).record.value,
                ledger.values.get(rival.value).record.value,
            );
            let lines = [claimant.line, rival.line];
            report.note_violation(violation(
                Rule::L1,
                partition,
                what,
                &[rival.offset],
                &lines,
            ));
        }
    }
}
