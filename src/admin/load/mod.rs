//! `load`: reads what is wanted, makes the topics ready, lets `load::conduct` run it and hands the
//! outcome to the reports.

mod beside;
mod cluster;
mod intent;
mod texts;
mod watch;

use super::cli::{FromArg, LoadArgs};
use super::client::{Client, Landmark};
use super::error::AdminError;
use super::output::{self, Output};
use crate::base::exit::ExitCode;
use crate::env::process;
use crate::env::real::preflight;
use crate::limits;
use crate::load::conduct::{Conductor, LoadError, World};
use crate::load::honesty::Total;
use crate::load::plan::Target;
use crate::load::run::{About, Counts, Ended, Latencies, Phase, Run, Setup, latency_histogram};
use crate::load::search::{Bound, Next, Search};
use intent::{Intent, Rates};
use std::sync::Arc;

/// Runs the verb.
///
/// # Errors
/// The flags make no sense, the broker cannot be used, or the run did not succeed.
pub fn run(args: &LoadArgs, out: &mut Output) -> Result<(), AdminError> {
    let run = conduct(args)?;
    summary(&run, out)?;
    out.flush()?;
    match verdict(&run) {
        None => Ok(()),
        Some((code, reason)) => Err(AdminError::Ended(code, reason)),
    }
}

/// Runs the load and tells what it was and saw, without a word about it.
///
/// # Errors
/// The flags make no sense, or the broker cannot be used.
pub fn conduct(args: &LoadArgs) -> Result<Run, AdminError> {
    let intent = intent::read(args)?;
    // Each producer has a connection to each broker.
    let _ = preflight::raise_limits();
    let began = process::monotonic_ns();
    let mut client = Client::new(&args.broker);
    let names = names(args);
    if !args.no_create {
        cluster::make_topics(&mut client, &names, args.partitions)?;
    }
    let target = cluster::learn(&mut client, &names, from(args))?;
    let watching = !args.quiet && output::watched();
    let mut plan = intent::plan(args, &intent, target)?;
    plan.watched = watching;
    let plan = Arc::new(plan);
    let setup = Setup {
        connect_ms: (process::monotonic_ns() - began) / 1_000_000,
        ..Setup::default()
    };
    let (interrupt, interrupts) = flume::unbounded();
    process::watch_stop_signals_or(ExitCode::Misuse, move |_| {
        // Nobody listens any more once the load is over.
        let _ = interrupt.send(());
    })
    .map_err(|error| AdminError::Host(error.to_string()))?;
    let mut watch = watch::Watch::new(watching, args.quiet);
    let mut about = about(args, &intent, brokers(&plan.target));
    if let Some(folder) = &args.probe {
        let floor = beside::floor(folder);
        about.floor = Some(floor.map_err(|error| AdminError::Data(error.to_string()))?);
    }
    let sampler = match &args.broker_http {
        Some(address) => {
            let started = beside::Sampler::start(address, intent.interval_ns);
            let sampler = started.map_err(AdminError::Broker)?;
            about.broker = format!("{} at {}", sampler.broker(), about.broker);
            Some(sampler)
        }
        None => None,
    };
    let world = World {
        interrupts,
        ask_leaders: Box::new(move || {
            for name in &names {
                client.forget_topic(name);
            }
            cluster::leaders(&mut client, &names).ok()
        }),
        watch: Box::new(|glimpse| watch.show(glimpse)),
    };
    let mut conductor = Conductor::start(&plan, about, setup, world)?;
    match &intent.rates {
        Rates::Search(bound, from, step_ns) => {
            search(&mut conductor, &intent, (bound, *from, *step_ns));
        }
        _ => drop(conductor.run_stage(&intent.stage(), args.start_at)),
    }
    let mut run = conductor.finish();
    if let Some(sampler) = sampler {
        sampler.add_to(&mut run);
    }
    Ok(run)
}

/// Runs the steps of a search, and the full run that confirms its answer.
fn search(
    conductor: &mut Conductor<'_>,
    intent: &Intent,
    (bound, from, step_ns): (&Bound, f64, u64),
) {
    let mut search = Search::new(from, f64::from(limits::LOAD_RATE_MAX));
    let mut number = 0;
    while !conductor.is_ended() {
        let stage = match search.next() {
            Next::Step(rate) => {
                number += 1;
                intent.search_stage(rate, step_ns, &number.to_string())
            }
            Next::Confirm(rate) => intent.search_stage(rate, intent.length_ns, "confirm"),
            Next::Done(_) => return,
        };
        let outcome = conductor.run_stage(&stage, None);
        let verdict = bound.judge(&outcome.total, outcome.busy);
        conductor.note_verdict(verdict);
        search.note(verdict);
    }
}

/// Where reading begins, if anybody reads.
fn from(args: &LoadArgs) -> Option<Landmark> {
    let reads = args.consumers > 0 || args.consume_only;
    reads.then_some(match args.from {
        Some(FromArg::Beginning) => Landmark::Beginning,
        Some(FromArg::End) => Landmark::End,
        None if args.consume_only => Landmark::Beginning,
        None => Landmark::End,
    })
}

/// The addresses of everybody who leads something.
fn brokers(target: &Target) -> String {
    let mut addresses: Vec<String> = Vec::new();
    for address in &target.leaders.addresses {
        let text = address.to_string();
        if !addresses.contains(&text) {
            addresses.push(text);
        }
    }
    addresses.join(", ")
}

fn names(args: &LoadArgs) -> Vec<String> {
    match args.topics {
        0 | 1 => vec![args.topic.clone()],
        count => (0..count).map(|i| format!("{}-{i}", args.topic)).collect(),
    }
}

fn about(args: &LoadArgs, intent: &intent::Intent, brokers: String) -> About {
    About {
        command: process::command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: process::kernel_release(),
        durability: args.durability.clone(),
        cpu: format!(
            "{}, {} CPUs",
            process::cpu_model(),
            process::affinity_cpus().len()
        ),
        clock_source: process::clock_source(),
        broker: brokers,
        seed: intent.seed,
        plan: match serde_json::to_value(args) {
            Ok(serde_json::Value::Object(plan)) => plan,
            _ => serde_json::Map::new(),
        },
        ..About::default()
    }
}

/// Why the run is no success, in order of weight.
fn verdict(run: &Run) -> Option<(ExitCode, String)> {
    let sum = |of: fn(&Counts) -> u64| -> u64 {
        run.intervals
            .iter()
            .map(|interval| of(&interval.counts))
            .sum()
    };
    let acknowledged = sum(|counts| counts.acknowledged);
    if run.about.plan.get("consume-only") == Some(&true.into()) {
        let received = sum(|counts| counts.received_meanwhile);
        let reason = "nothing was received".to_owned();
        return (received == 0).then_some((ExitCode::NothingAcknowledged, reason));
    }
    if acknowledged == 0 {
        let reason = "nothing was acknowledged".to_owned();
        return Some((ExitCode::NothingAcknowledged, reason));
    }
    if run
        .verification
        .as_ref()
        .is_some_and(|found| !found.passed())
    {
        let reason = "the check of the payloads failed".to_owned();
        return Some((ExitCode::VerificationFailed, reason));
    }
    let measured = run
        .intervals
        .iter()
        .filter(|one| one.phase == Phase::Measured);
    let busy = run.about.worker_busy.iter().copied().fold(0.0, f64::max);
    if run.ended == Ended::BrokerLost {
        let reason = "no connection to the broker came back".to_owned();
        return Some((ExitCode::SendsFailed, reason));
    }
    // As fast as the window allows is never late.
    let is_closed = run.steps.iter().all(|step| step.rate_per_s.is_none());
    let is_search = run.steps.iter().any(|step| step.verdict.is_some());
    let limited = Total::of(measured).generator_limit(busy);
    if let Some(reason) = limited.filter(|_| !is_search && !is_closed) {
        let reason = format!("the generator was the limit: {reason}");
        return Some((ExitCode::GeneratorLimited, reason));
    }
    let failed = sum(|counts| counts.failed);
    (failed > 0).then(|| (ExitCode::SendsFailed, format!("{failed} messages failed")))
}

/// The run in a few lines.
fn summary(run: &Run, out: &mut Output) -> Result<(), AdminError> {
    let mut counts = Counts::default();
    let mut seconds = 0.0;
    let mut latencies = Latencies::new();
    for interval in run
        .intervals
        .iter()
        .filter(|one| one.phase == Phase::Measured)
    {
        counts.add(&interval.counts);
        latencies.add(&interval.latencies);
        seconds += interval.length_ms as f64 / 1e3;
    }
    let rate = |count: u64| count as f64 / seconds.max(1e-3);
    out.line(&format!(
        "offered {:.0}/s  sent {:.0}/s  acknowledged {:.0}/s  {:.1} MB/s  over {seconds:.1} s",
        rate(counts.offered),
        rate(counts.sent),
        rate(counts.acknowledged),
        rate(counts.acknowledged_bytes) / 1e6,
    ))?;
    out.line(&format!(
        "offered {} sent {} acknowledged {} failed {} unanswered {} in flight {}",
        counts.offered,
        counts.sent,
        counts.acknowledged,
        counts.failed,
        counts.unanswered,
        counts.in_flight_max
    ))?;
    rows(&latencies, out)?;
    out.line(&format!(
        "received {:.0}/s {:.1} MB/s ({} of {}, {} negative)",
        rate(counts.received_meanwhile),
        rate(counts.received_meanwhile_bytes) / 1e6,
        counts.received,
        counts.acknowledged,
        counts.negative,
    ))?;
    if let Some(found) = &run.verification {
        out.line(&format!("{found:?}"))?;
    }
    let busy = run.about.worker_busy.iter();
    let busy: Vec<String> = busy.map(|share| format!("{:.0}%", share * 100.0)).collect();
    out.line(&format!("workers busy {}", busy.join(" ")))?;
    for failure in &run.failures {
        let (count, error) = (failure.count, &failure.error);
        out.line(&format!("failed: {count} {error}"))?;
    }
    for step in &run.steps {
        let rate = step.rate_per_s.unwrap_or(0.0);
        out.line(&format!(
            "step {} {rate:.0}/s {:?}",
            step.name, step.verdict
        ))?;
    }
    for event in &run.events {
        out.line(&format!("{} ms: {}", event.at_ms, event.text))?;
    }
    Ok(())
}

/// A line for each kind of latency.
fn rows(latencies: &Latencies, out: &mut Output) -> Result<(), AdminError> {
    let mut answered = latency_histogram();
    answered.add(&latencies.response).expect("the same bounds");
    answered
        .add(&latencies.unanswered)
        .expect("the same bounds");
    let rows = [
        ("response", &answered),
        ("service", &latencies.service),
        ("lag", &latencies.schedule_lag),
        ("end to end", &latencies.end_to_end),
    ];
    for (name, histogram) in rows {
        let at = |q: f64| histogram.value_at_quantile(q);
        out.line(&format!(
            "{name:>10}  p50 {} p90 {} p99 {} p99.9 {} p99.99 {} max {} us ({})",
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            at(0.9999),
            histogram.max(),
            histogram.len(),
        ))?;
    }
    Ok(())
}

impl From<LoadError> for AdminError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Unreachable(reason) => AdminError::Broker(reason),
            LoadError::Host(error) => AdminError::Host(error.to_string()),
            LoadError::Interrupted => AdminError::Failed(error.to_string()),
        }
    }
}
