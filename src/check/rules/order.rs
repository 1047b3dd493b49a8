//! L5: per producer offsets rise with the sequence; across clients, if send A completed before send
//! B began, then A lies before B.
//!
//! Per producer this covers every sighting of idempotent values, and acknowledged values that
//! were sent exactly once: a copy that a client re-sent without idempotence may land anywhere.
//! Across clients A's place is the one its acknowledgement named, B's is the lowest it was seen
//! at; an unknown outcome never completes, so it constrains nothing as A, but everything as B.

use std::collections::HashMap;

use super::violation;
use crate::check::ledger::{Ledger, Partition};
use crate::check::report::{Report, Rule};
use crate::check::slots::Seen;
use crate::check::values::{Fate, Known};

pub fn check(ledger: &Ledger, report: &mut Report) {
    for partition in &ledger.partitions {
        per_producer(ledger, partition, report);
        across_clients(ledger, partition, report);
    }
}

fn ordered(known: &Known, seen: &Seen) -> bool {
    let once = known.fate == Fate::Acked && known.attempts == 1;
    (known.fate != Fate::Unsent && known.idempotent) || (once && known.acked_offset == seen.offset)
}

fn per_producer(ledger: &Ledger, partition: &Partition, report: &mut Report) {
    let mut highest: HashMap<u32, (u64, Seen)> = HashMap::new();
    for seen in partition.slots.claimants() {
        let known = ledger.values.get(seen.value);
        if !ordered(known, &seen) {
            continue;
        }
        report.note_checked(Rule::L5, 1);
        let value = known.record.value;
        let before = highest
            .entry(value.producer)
            .or_insert((value.sequence, seen));
        if value.sequence < before.0 {
            let what = format!("{value} lies behind #{} of the same producer", before.0);
            let lines = [before.1.line, seen.line];
            let offsets = [before.1.offset, seen.offset];
            report.note_violation(violation(Rule::L5, partition, what, &offsets, &lines));
        } else {
            *before = (value.sequence, seen);
        }
    }
}

struct Span {
    time_ns: u64,
    offset: i64,
    value: u32,
}

fn across_clients(ledger: &Ledger, partition: &Partition, report: &mut Report) {
    let mut completed = Vec::new();
    let mut begun: HashMap<u32, Span> = HashMap::new();
    for seen in partition.slots.claimants() {
        let known = ledger.values.get(seen.value);
        let (offset, value) = (seen.offset, seen.value);
        if known.fate == Fate::Acked && known.acked_offset == offset {
            completed.push(Span {
                time_ns: known.t_acked,
                offset,
                value,
            });
        }
        if known.fate != Fate::Unsent {
            // Claimants come by offset: the first one is the lowest.
            begun.entry(value).or_insert(Span {
                time_ns: known.t_invoke,
                offset,
                value,
            });
        }
    }
    completed.sort_unstable_by_key(|span| span.time_ns);
    let mut begun: Vec<Span> = begun.into_values().collect();
    begun.sort_unstable_by_key(|span| (span.time_ns, span.offset));
    let mut completed = completed.into_iter().peekable();
    let mut highest: Option<Span> = None;
    for later in begun {
        while let Some(span) = completed.next_if(|span| span.time_ns < later.time_ns) {
            if highest.as_ref().is_none_or(|top| top.offset < span.offset) {
                highest = Some(span);
            }
        }
        let Some(earlier) = &highest else { continue };
        report.note_checked(Rule::L5, 1);
        if earlier.offset > later.offset {
            let (first, second) = (
                ledger.values.get(earlier.value),
                ledger.values.get(later.value),
            );
            let (a, b) = (first.record.value, second.record.value);
            let what = format!("{a} was acknowledged before {b} began, and lies behind it");
            let offsets = [earlier.offset, later.offset];
            let lines = [first.line, second.line];
            report.note_violation(violation(Rule::L5, partition, what, &offsets, &lines));
        }
    }
}
