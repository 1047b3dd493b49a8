//! The log rules, one file each; every rule reads the ledger and adds to the report.

mod durable_reads;
mod external_contiguity;
mod history;
mod internal_contiguity;
mod monotone_ends;
mod no_duplicate;
mod no_invented_read;
mod no_lost_write;
mod one_value;
mod order;
mod unseen;

use super::ledger::{Ledger, Partition};
use super::report::{Report, Rule, Violation};
use super::values::Fate;

/// Applies every rule.
pub fn judge(ledger: &Ledger) -> Report {
    let mut report = Report::default();
    report.totals = ledger.totals;
    report.totals.partitions = ledger.partitions.len() as u64;
    for (_, known) in ledger.values.iter() {
        match known.fate {
            Fate::Unsent => {}
            Fate::Failed => report.totals.failed += 1,
            Fate::Unknown => {
                report.totals.unknown += 1;
                report.totals.unknown_landed += u64::from(known.in_final);
            }
            Fate::Acked => report.totals.acked += 1,
        }
    }
    history::check(ledger, &mut report);
    one_value::check(ledger, &mut report);
    no_lost_write::check(ledger, &mut report);
    no_duplicate::check(ledger, &mut report);
    no_invented_read::check(ledger, &mut report);
    order::check(ledger, &mut report);
    internal_contiguity::check(ledger, &mut report);
    external_contiguity::check(ledger, &mut report);
    durable_reads::check(ledger, &mut report);
    monotone_ends::check(ledger, &mut report);
    unseen::check(ledger, &mut report);
    report
}

/// A violation in `partition`.
fn violation(
    rule: Rule,
    partition: &Partition,
    what: String,
    offsets: &[i64],
    lines: &[u32],
) -> Violation {
    let lines = lines.iter().copied().filter(|&line| line != 0).collect();
    Violation {
        rule,
        place: partition.name(),
        what,
        offsets: offsets.to_vec(),
        lines,
    }
}
