//! L4 (G1a): every value read was sent, to this partition, with outcome ok or unknown, never with
//! a refusal.

use super::violation;
use crate::check::ledger::Ledger;
use crate::check::report::{Report, Rule};
use crate::check::slots::{FINAL, READ};
use crate::check::values::Fate;

pub fn check(ledger: &Ledger, report: &mut Report) {
    for (at, partition) in (0u32..).zip(&ledger.partitions) {
        for seen in partition
            .slots
            .all()
            .filter(|seen| seen.marks & (READ | FINAL) != 0)
        {
            report.note_checked(Rule::L4, 1);
            let known = ledger.values.get(seen.value);
            let value = known.record.value;
            let offset = seen.offset;
            let what = match known.fate {
                Fate::Unsent if value.is_foreign() => {
                    format!("offset {offset} holds bytes that do not prove themselves: {value}")
                }
                Fate::Unsent => format!("{value} was read at {offset} and never sent like this"),
                Fate::Failed => format!("{value} was refused, and read at {offset}"),
                Fate::Unknown | Fate::Acked if known.partition != at => {
                    let home = ledger.partitions[known.partition as usize].name();
                    format!("{value} was sent to {home}, and read here at {offset}")
                }
                Fate::Unknown | Fate::Acked => continue,
            };
            let lines = [known.line, seen.line];
            report.note_violation(violation(Rule::L4, partition, what, &[offset], &lines));
        }
    }
}
