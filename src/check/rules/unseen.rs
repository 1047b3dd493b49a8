//! L10: every acknowledged value at or above log start is read by a consumer within 60 s of the
//! healing, or of its own acknowledgement if that came later. Judged where consumers polled; the
//! final read does not count, it would hide a consumer that is stuck.

use std::collections::HashMap;

use super::violation;
use crate::check::ledger::{Ledger, Partition, UNSEEN_NS_MAX};
use crate::check::report::{Report, Rule};
use crate::check::slots::{ACKED, TIMELY};

pub fn check(ledger: &Ledger, report: &mut Report) {
    let Some((healed, line)) = ledger.healed else {
        return; // `history` already says so.
    };
    for partition in ledger
        .partitions
        .iter()
        .filter(|partition| partition.polls > 0)
    {
        one(ledger, partition, healed, line, report);
    }
}

fn one(ledger: &Ledger, partition: &Partition, healed: u64, healed_line: u32, report: &mut Report) {
    let start = partition.final_start().unwrap_or(0);
    let mut late: HashMap<i64, u64> = HashMap::new();
    for &(offset, time_ns) in &partition.late_reads {
        let first = late.entry(offset).or_insert(time_ns);
        *first = time_ns.min(*first);
    }
    let acked = partition
        .slots
        .claimants()
        .filter(|seen| seen.marks & ACKED != 0);
    for seen in acked.filter(|seen| seen.offset >= start) {
        report.note_checked(Rule::L10, 1);
        if seen.marks & TIMELY != 0 {
            continue;
        }
        let known = ledger.values.get(seen.value);
        let deadline = healed.max(known.t_acked).saturating_add(UNSEEN_NS_MAX);
        if late
            .get(&seen.offset)
            .is_some_and(|&time_ns| time_ns <= deadline)
        {
            continue;
        }
        let value = known.record.value;
        let what = format!("{value} was acknowledged, and unread 60 s after healing");
        let lines = [known.line, healed_line];
        report.note_violation(violation(
            Rule::L10,
            partition,
            what,
            &[seen.offset],
            &lines,
        ));
    }
}
