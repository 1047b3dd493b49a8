//! L3: with idempotence a value has one offset; without, extra copies exist only of values that
//! the client sent more than once, and no more copies than sendings.

use std::collections::HashMap;

use super::violation;
use crate::check::ledger::{Ledger, Partition};
use crate::check::report::{Report, Rule};
use crate::check::values::{Fate, Known};

pub fn check(ledger: &Ledger, report: &mut Report) {
    let mut copies = vec![0u16; ledger.values.len()];
    for partition in &ledger.partitions {
        for seen in partition.slots.all() {
            let count = &mut copies[seen.value as usize];
            *count = count.saturating_add(1);
        }
    }
    let mut offending = HashMap::new();
    for (number, known) in ledger.values.iter() {
        if known.fate == Fate::Unsent {
            continue; // Invented: L4's affair.
        }
        report.note_checked(Rule::L3, 1);
        let count = copies[number as usize];
        if count > allowed(known) {
            offending.insert(number, (Vec::new(), Vec::new()));
        } else {
            report.totals.copies += u64::from(count.saturating_sub(1));
        }
    }
    if !offending.is_empty() {
        for partition in &ledger.partitions {
            complain(ledger, partition, &mut offending, report);
        }
    }
}

fn allowed(known: &Known) -> u16 {
    if known.idempotent {
        1
    } else {
        known.attempts.max(1)
    }
}

type Places = (Vec<i64>, Vec<u32>);

fn complain(
    ledger: &Ledger,
    partition: &Partition,
    offending: &mut HashMap<u32, Places>,
    report: &mut Report,
) {
    for seen in partition.slots.all() {
        if let Some((offsets, lines)) = offending.get_mut(&seen.value) {
            offsets.push(seen.offset);
            lines.push(seen.line);
        }
    }
    let mut here: Vec<_> = offending
        .iter_mut()
        .filter(|(_, places)| !places.0.is_empty())
        .collect();
    here.sort_by_key(|(number, _)| **number);
    for (&number, places) in here {
        let (offsets, mut lines) = std::mem::take(places);
        let known = ledger.values.get(number);
        lines.insert(0, known.line);
        let value = known.record.value;
        let what = if known.idempotent {
            format!("{value} was sent with idempotence and has more than one offset")
        } else {
            format!(
                "{value} was sent {} times and has more copies",
                known.attempts
            )
        };
        report.note_violation(violation(Rule::L3, partition, what, &offsets, &lines));
    }
}
