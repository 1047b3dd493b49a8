//! What a run says, in one word, and why. The first line of the table, the JSON and the page begin
//! with it; a figure without it is an anecdote.
//!
//! **Generator-limited** is decided by [`honesty`](crate::load::honesty), for a run without a
//! schedule never.
//!
//! **Overloaded** is a broker that acknowledged less than 98 % of what was offered, by the intended
//! send or by the clock, whichever is less.

use super::spectrum::Spectrum;
use super::totals::Totals;
use crate::base::units::{count, rate, share};
use crate::load::honesty::generator_limit;
use crate::load::run::{Ended, Run, StepVerdict};
use serde::Serialize;

/// More than this share of the offered messages never sent: worth a note. A few are always left
/// when the time is up.
const UNSENT_SHARE_NOTED: f64 = 0.001;
/// Less than this share of the offered messages acknowledged: overloaded.
const ACKNOWLEDGED_SHARE_MIN: f64 = 0.98;

/// What may be said of a run. In the order in which one outranks another.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A payload was lost, doubled, reordered, damaged or foreign, or none could be proven.
    VerificationFailed,
    /// No message was acknowledged.
    NothingAcknowledged,
    /// No connection to the broker came back.
    BrokerLost,
    /// The generator could not keep the schedule.
    GeneratorLimited,
    /// Messages failed or were never answered.
    Errors,
    /// A search in which no rate held.
    NoAnswer,
    /// Answers did not keep up with the offered rate.
    Overloaded,
    /// Ended by Ctrl-C.
    Interrupted,
    /// Nothing stands against the figures.
    Valid,
}

impl Kind {
    /// As in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::VerificationFailed => "verification-failed",
            Kind::NothingAcknowledged => "nothing-acknowledged",
            Kind::BrokerLost => "broker-lost",
            Kind::GeneratorLimited => "generator-limited",
            Kind::Errors => "errors",
            Kind::NoAnswer => "no-answer",
            Kind::Overloaded => "overloaded",
            Kind::Interrupted => "interrupted",
            Kind::Valid => "valid",
        }
    }
}

/// One thing that stands against the figures.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What kind.
    pub kind: Kind,
    /// Why, in one sentence without a full stop.
    pub text: String,
}

/// All that is to be said.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What stands against the figures, worst first; empty for a valid run.
    pub findings: Vec<Finding>,
    /// What a reader must know to read them.
    pub notes: Vec<String>,
    /// What is said when nothing stands against them.
    calm: &'static str,
}

impl Verdict {
    /// Of a run whose summary is over `totals`.
    #[must_use]
    pub fn of(run: &Run, totals: &Totals) -> Verdict {
        let mut findings = Vec::new();
        let mut find = |kind, text: Option<String>| {
            findings.extend(text.map(|text| Finding { kind, text }));
        };
        find(Kind::VerificationFailed, verification(run));
        find(Kind::NothingAcknowledged, nothing(totals));
        find(Kind::BrokerLost, broker_lost(run));
        find(Kind::GeneratorLimited, generator_limited(run, totals));
        find(Kind::Errors, errors(totals));
        find(Kind::NoAnswer, no_answer(run));
        find(Kind::Overloaded, overloaded(run, totals));
        find(Kind::Interrupted, interrupted(run));
        let notes = notes(run, totals);
        let calm = if totals.is_consume_only() {
            "what was consumed was received without a failure"
        } else if is_closed_loop(run) {
            "everything sent was acknowledged"
        } else {
            "the schedule was kept, everything sent was acknowledged"
        };
        Verdict {
            findings,
            notes,
            calm,
        }
    }

    /// The worst of it.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.findings
            .first()
            .map_or(Kind::Valid, |worst| worst.kind)
    }

    /// Whether a kind is among the findings.
    #[must_use]
    pub fn has(&self, kind: Kind) -> bool {
        self.findings.iter().any(|finding| finding.kind == kind)
    }

    /// Why, in one sentence.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.findings.first().map_or(self.calm, |worst| &worst.text)
    }

    /// The first line of everything.
    #[must_use]
    pub fn headline(&self) -> String {
        format!("{}: {}", self.kind().name(), self.reason())
    }
}

/// Whether the run has no schedule: as fast as the window allows.
#[must_use]
pub fn is_closed_loop(run: &Run) -> bool {
    run.steps.iter().any(|step| step.rate_per_s.is_none())
}

fn verification(run: &Run) -> Option<String> {
    let found = run.verification.as_ref()?;
    if found.passed() {
        return None;
    }
    let wrong: Vec<String> = [
        (found.lost, "lost"),
        (found.duplicated, "duplicated"),
        (found.reordered, "reordered"),
        (found.damaged, "damaged"),
        (found.foreign, "foreign"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, what)| format!("{} {what}", count(number)))
    .collect();
    if wrong.is_empty() {
        return Some("no payload could be proven".to_owned());
    }
    Some(format!("payloads {}", wrong.join(", ")))
}

fn nothing(totals: &Totals) -> Option<String> {
    let produced_or_consumed =
        totals.counts.acknowledged > 0 || totals.counts.received_meanwhile > 0;
    (!produced_or_consumed).then(|| "no message was acknowledged".to_owned())
}

fn broker_lost(run: &Run) -> Option<String> {
    let text = "no connection to the broker came back; the figures end there";
    (run.ended == Ended::BrokerLost).then(|| text.to_owned())
}

fn generator_limited(run: &Run, totals: &Totals) -> Option<String> {
    if is_closed_loop(run) {
        return None;
    }
    let p99_us = |spectrum: &Spectrum| spectrum.at(0.99).map_or(0, |point| point.us);
    let busiest = run.about.worker_busy.iter().copied().fold(0.0, f64::max);
    generator_limit(
        &totals.counts,
        p99_us(&totals.schedule_lag),
        p99_us(&totals.response),
        busiest,
    )
}

fn errors(totals: &Totals) -> Option<String> {
    let (failed, unanswered) = (totals.counts.failed, totals.counts.unanswered);
    (failed + unanswered > 0).then(|| {
        format!(
            "{} failed and {} unanswered of {} sent",
            count(failed),
            count(unanswered),
            count(totals.counts.sent)
        )
    })
}

fn no_answer(run: &Run) -> Option<String> {
    let judged: Vec<_> = run.steps.iter().filter_map(|step| step.verdict).collect();
    let held = judged.contains(&StepVerdict::Held);
    (!judged.is_empty() && !held).then(|| "no rate of the search met its bound".to_owned())
}

fn overloaded(run: &Run, totals: &Totals) -> Option<String> {
    if is_closed_loop(run) || super::summary::is_unconfirmed_search(run) {
        return None;
    }
    let counts = &totals.counts;
    let kept_up = counts.acknowledged.min(counts.acknowledged_meanwhile) + counts.failed;
    let offered = counts.offered as f64;
    let behind = offered > 0.0 && (kept_up as f64) < ACKNOWLEDGED_SHARE_MIN * offered;
    (behind && counts.acknowledged > 0).then(|| {
        format!(
            "{} acknowledged of {} offered",
            rate(totals.per_s(kept_up - counts.failed)),
            rate(totals.per_s(counts.offered))
        )
    })
}

fn interrupted(run: &Run) -> Option<String> {
    let text = "ended by Ctrl-C; everything until then is here";
    (run.ended == Ended::Interrupted).then(|| text.to_owned())
}

fn notes(run: &Run, totals: &Totals) -> Vec<String> {
    let mut notes = Vec::new();
    if is_closed_loop(run) {
        notes.push(
            "closed loop: sent as fast as the window allows, so a slow answer delays the next \
             send and the latencies are those of this window, not of a rate"
                .to_owned(),
        );
    }
    if super::summary::is_unconfirmed_search(run) {
        notes.push("a search that was not confirmed: the figures mix all its rates".to_owned());
    }
    if share(totals.unsent() as f64, totals.counts.offered as f64) > UNSENT_SHARE_NOTED {
        notes.push(format!(
            "{} messages were to be sent and never were: their waiting is in no percentile",
            count(totals.unsent())
        ));
    }
    if totals.counts.negative > 0 {
        notes.push(format!(
            "{} messages were received before their intended send by the clocks: two hosts whose \
             clocks differ; their end_to_end is not in the percentiles",
            count(totals.counts.negative)
        ));
    }
    notes
}
