//! Random runs that keep the promises of a run, also the odd ones: empty, one sample, all failed,
//! nothing answered. A run is made from a list of messages, so that it can also be made in halves.

use crate::runs::{empty_run, event, interval, step};
use penstock::load::run::{
    BrokerSample, EventKind, Failure, Interval, LATENCY_US_MAX, Phase, Run, Verification,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// What became of a message.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    Acknowledged(u64),
    Failed,
    Unanswered(u64),
    Unsent,
}

/// An interval and its messages.
#[derive(Clone, Debug)]
pub struct Stretch {
    pub length_ms: u64,
    pub warm_up: bool,
    pub new_step: bool,
    pub messages: Vec<Fate>,
    pub lag_us: Vec<u64>,
    pub received_us: Vec<u64>,
    pub broker: bool,
}

/// A run to be.
#[derive(Clone, Debug)]
pub struct Plan {
    pub closed: bool,
    pub rate: f64,
    pub stretches: Vec<Stretch>,
    pub busy: f64,
    pub verified: Option<u64>,
}

fn latency() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..50,
        50u64..5_000,
        5_000u64..10_000_000,
        Just(LATENCY_US_MAX)
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => latency().prop_map(Fate::Acknowledged),
        1 => Just(Fate::Failed),
        1 => latency().prop_map(Fate::Unanswered),
        1 => Just(Fate::Unsent),
    ]
}

fn stretch() -> impl Strategy<Value = Stretch> {
    let messages = prop_oneof![
        4 => vec(fate(), 0..40),
        1 => vec(Just(Fate::Failed), 1..9),
        1 => vec(latency().prop_map(Fate::Unanswered), 1..9),
        1 => vec(latency().prop_map(Fate::Acknowledged), 1..2),
    ];
    let lengths = prop_oneof![4 => Just(1000u64), 1 => 1u64..1000];
    let lists = (vec(0u64..3000, 0..9), vec(latency(), 0..9));
    (
        lengths,
        any::<bool>(),
        any::<bool>(),
        messages,
        lists,
        any::<bool>(),
    )
        .prop_map(
            |(length_ms, warm_up, new_step, messages, (lag_us, received_us), broker)| Stretch {
                length_ms,
                warm_up,
                new_step,
                messages,
                lag_us,
                received_us,
                broker,
            },
        )
}

/// Any run.
pub fn plan() -> impl Strategy<Value = Plan> {
    let verified = proptest::option::of(0u64..3);
    (
        any::<bool>(),
        0.001f64..1e7,
        vec(stretch(), 0..6),
        0.0f64..1.0,
        verified,
    )
        .prop_map(|(closed, rate, stretches, busy, verified)| Plan {
            closed,
            rate,
            stretches,
            busy,
            verified,
        })
}

impl Plan {
    /// The run; of `Some(half)` the messages of one parity only.
    pub fn run(&self, half: Option<usize>) -> Run {
        let mut run = empty_run();
        let parts = if half.is_some() { 2.0 } else { 1.0 };
        let rate = (!self.closed).then_some(self.rate / parts);
        run.steps = vec![step("1", rate, 0, 0)];
        run.about.worker_busy = vec![self.busy];
        let mine = |index: usize| half.is_none_or(|half| index % 2 == half);
        let mut at_ms = 0;
        for stretch in &self.stretches {
            if stretch.new_step && at_ms > 0 {
                let name = (run.steps.len() + 1).to_string();
                run.steps.push(step(&name, rate, at_ms, 0));
            }
            let index = run.steps.len() - 1;
            run.steps[index].length_ms += stretch.length_ms;
            let phase = if stretch.warm_up {
                Phase::WarmUp
            } else {
                Phase::Measured
            };
            let mut interval = interval(at_ms, stretch.length_ms, index, phase);
            fill(&mut interval, stretch, &mine);
            if interval.counts.failed > 0 {
                run.failures.push(Failure {
                    error: "NOT_LEADER_OR_FOLLOWER".to_owned(),
                    count: interval.counts.failed,
                    first_ms: at_ms,
                    last_ms: at_ms + 1,
                });
            }
            run.intervals.push(interval);
            at_ms += stretch.length_ms;
        }
        one_line_an_error(&mut run);
        run.events
            .push(event(0, EventKind::Stall, "a <stall> & \"more\""));
        run.verification = self.verified.map(|lost| Verification {
            proven: 9,
            lost,
            ..Verification::default()
        });
        run
    }
}

fn fill(interval: &mut Interval, stretch: &Stretch, mine: &dyn Fn(usize) -> bool) {
    let counts = &mut interval.counts;
    let latencies = &mut interval.latencies;
    for (_, fate) in stretch
        .messages
        .iter()
        .enumerate()
        .filter(|(index, _)| mine(*index))
    {
        counts.offered += 1;
        counts.sent += u64::from(!matches!(fate, Fate::Unsent));
        match fate {
            Fate::Acknowledged(us) => {
                counts.acknowledged += 1;
                counts.acknowledged_meanwhile += 1;
                counts.acknowledged_bytes += 100;
                latencies.response.saturating_record(*us);
                latencies.service.saturating_record(us / 2);
            }
            Fate::Failed => counts.failed += 1,
            Fate::Unanswered(us) => {
                counts.unanswered += 1;
                latencies.unanswered.saturating_record(*us);
            }
            Fate::Unsent => {}
        }
    }
    for (_, us) in stretch
        .received_us
        .iter()
        .enumerate()
        .filter(|(index, _)| mine(*index))
    {
        counts.received += 1;
        counts.received_meanwhile += 1;
        counts.received_meanwhile_bytes += 100;
        latencies.end_to_end.saturating_record(*us);
    }
    for (_, us) in stretch
        .lag_us
        .iter()
        .enumerate()
        .filter(|(index, _)| mine(*index))
    {
        latencies.schedule_lag.saturating_record(*us);
    }
    counts.in_flight_max = stretch.messages.len() as u64 / 2;
    interval.broker = stretch.broker.then_some(BrokerSample {
        flushes_per_s: 1_234.567_891,
        flush_p99_us: 321,
        entries_per_block: 1.1,
        cpu_cores: f64::NAN,
    });
}

fn one_line_an_error(run: &mut Run) {
    let failures = std::mem::take(&mut run.failures);
    for failure in failures {
        match run.failures.first_mut() {
            Some(sum) => {
                sum.count += failure.count;
                sum.last_ms = failure.last_ms;
            }
            None => run.failures.push(failure),
        }
    }
}
