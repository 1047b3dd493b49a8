//! L9: the high watermark told to anybody lies above everything acknowledged, read or told as
//! durable before the question was asked; log start never goes back.
//!
//! A sweep in time: facts enter when they are complete, claims are judged when they begin, so a
//! concurrent answer is never held against the broker.

use super::violation;
use crate::check::ledger::{EndClaim, Ledger, Partition};
use crate::check::report::{Report, Rule};
use crate::check::values::Fate;

/// By `time_ns` somebody knew that the partition reaches `end`.
struct Fact {
    time_ns: u64,
    end: i64,
    log_start: i64,
    line: u32,
    why: &'static str,
}

pub fn check(ledger: &Ledger, report: &mut Report) {
    for partition in &ledger.partitions {
        sweep(partition, facts(ledger, partition), report);
    }
}

fn facts(ledger: &Ledger, partition: &Partition) -> Vec<Fact> {
    let mut facts = Vec::new();
    for seen in partition.slots.all() {
        let known = ledger.values.get(seen.value);
        if known.fate == Fate::Acked && known.acked_offset == seen.offset {
            let (time_ns, end) = (known.t_acked, seen.offset.saturating_add(1));
            facts.push(Fact {
                time_ns,
                end,
                log_start: 0,
                line: known.line,
                why: "acknowledged",
            });
        }
    }
    for read in &partition.reads {
        let (time_ns, end) = (read.t_complete, read.offset.saturating_add(1));
        facts.push(Fact {
            time_ns,
            end,
            log_start: 0,
            line: read.line,
            why: "read",
        });
    }
    for claim in &partition.ends {
        facts.push(Fact {
            time_ns: claim.t_complete,
            end: claim.bounds.high_watermark.0,
            log_start: claim.bounds.log_start.0,
            line: claim.line,
            why: "told as durable",
        });
    }
    facts.sort_unstable_by_key(|fact| fact.time_ns);
    facts
}

fn sweep(partition: &Partition, facts: Vec<Fact>, report: &mut Report) {
    let mut claims: Vec<&EndClaim> = partition.ends.iter().collect();
    claims.sort_unstable_by_key(|claim| claim.t_invoke);
    let mut facts = facts.iter().peekable();
    let (mut top, mut start): (Option<&Fact>, Option<&Fact>) = (None, None);
    for claim in claims {
        while let Some(fact) = facts.next_if(|fact| fact.time_ns < claim.t_invoke) {
            if top.is_none_or(|top| top.end < fact.end) {
                top = Some(fact);
            }
            if start.is_none_or(|start| start.log_start < fact.log_start) {
                start = Some(fact);
            }
        }
        report.note_checked(Rule::L9, 1);
        let (high, low) = (claim.bounds.high_watermark.0, claim.bounds.log_start.0);
        if let Some(fact) = top.filter(|fact| fact.end > high) {
            let Fact { end, why, line, .. } = fact;
            let what = format!("high watermark {high}, but {} was {why} before", end - 1);
            let offsets = [high, *end];
            let lines = [*line, claim.line];
            report.note_violation(violation(Rule::L9, partition, what, &offsets, &lines));
        }
        if let Some(fact) = start.filter(|fact| fact.log_start > low) {
            let what = format!("log start went back from {} to {low}", fact.log_start);
            let offsets = [fact.log_start, low];
            let lines = [fact.line, claim.line];
            report.note_violation(violation(Rule::L9, partition, what, &offsets, &lines));
        }
    }
}
