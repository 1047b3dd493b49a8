//! The history must be able to prove something: every partition that was sent to or read has a
//! final read whose parts cover it without a hole, something was acknowledged, the broker was
//! started, and the last fault was healed. Without this an empty file would be a clean run.

use super::violation;
use crate::check::ledger::{Ledger, Partition};
use crate::check::report::{Report, Rule, Violation};

pub fn check(ledger: &Ledger, report: &mut Report) {
    report.note_checked(Rule::History, ledger.totals.events);
    let mut whole = |what: &str| {
        report.note_violation(Violation {
            rule: Rule::History,
            place: String::new(),
            what: what.to_owned(),
            offsets: Vec::new(),
            lines: Vec::new(),
        });
    };
    if ledger
        .partitions
        .iter()
        .all(|partition| partition.parts.is_empty())
    {
        whole("there is no final read");
    }
    if ledger
        .values
        .iter()
        .all(|(_, known)| known.t_acked == u64::MAX)
    {
        whole("nothing was acknowledged");
    }
    if ledger.healed.is_none() {
        whole("no event says that the last fault was healed");
    }
    for partition in &ledger.partitions {
        coverage(partition, report);
    }
}

fn coverage(partition: &Partition, report: &mut Report) {
    let mut complain = |what: String, offsets: &[i64], lines: &[u32]| {
        let violation = violation(Rule::History, partition, what, offsets, lines);
        report.note_violation(violation);
    };
    let mut parts: Vec<_> = partition.parts.iter().collect();
    let Some(first) = parts.first() else {
        complain(
            "there is no final read of this partition".to_owned(),
            &[],
            &[],
        );
        return;
    };
    let bounds = first.bounds;
    if let Some(other) = parts.iter().find(|part| part.bounds != bounds) {
        let what = "parts of the final read were made for different bounds".to_owned();
        complain(what, &[], &[first.line, other.line]);
        return;
    }
    parts.sort_by_key(|part| (part.from, part.next));
    let mut reached = bounds.log_start.0;
    for part in parts {
        if part.from != reached || part.next < part.from {
            let what = format!(
                "the final read covers up to {reached}, then a part from {} to {}",
                part.from, part.next
            );
            complain(what, &[reached], &[part.line]);
            return;
        }
        reached = part.next;
    }
    if reached != bounds.high_watermark.0 {
        let end = bounds.high_watermark.0;
        let what = format!("the final read ends at {reached}, the partition at {end}");
        complain(what, &[reached, end], &[]);
    }
}
