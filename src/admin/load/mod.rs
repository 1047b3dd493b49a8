//! `load`: reads what is wanted, makes the topics ready, lets `load::conduct` run it and hands the
//! outcome to the reports.

mod beside;
mod cluster;
mod intent;
pub mod report;
mod texts;
mod watch;

use super::cli::{FromArg, LoadArgs, ToldVerb};
use super::client::{Client, Landmark};
use super::error::AdminError;
use super::output::{self, Output};
use crate::base::exit::ExitCode;
use crate::env::process;
use crate::env::real::preflight;
use crate::limits;
use crate::load::conduct::{Conductor, LoadError, World};
use crate::load::plan::Target;
use crate::load::report::{Checked, Kind, Summary, table, write_all};
use crate::load::run::{About, Run, Setup};
use crate::load::search::{Bound, Next, Search};
use intent::{Intent, Rates};
use std::sync::Arc;

/// Runs the verb.
///
/// # Errors
/// The flags make no sense, the broker cannot be used, or the run did not succeed.
pub fn run(args: &LoadArgs, out: &mut Output) -> Result<(), AdminError> {
    match &args.told {
        Some(ToldVerb::Report(args)) => report::report(args, out),
        Some(ToldVerb::Compare(args)) => report::compare(args, out),
        None => tell(args, &conduct(args)?, out),
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

/// Writes and shows what the run was, and says whether it is a success.
fn tell(args: &LoadArgs, run: &Run, out: &mut Output) -> Result<(), AdminError> {
    // The files first: a reader that closes our output must not cost the results.
    write_all(run, &args.files.outputs()).map_err(|error| AdminError::Failed(error.to_string()))?;
    out.bytes(table(run).as_bytes())?;
    out.flush()?;
    let summary = Summary::of(run);
    match exit_code(&summary) {
        None => Ok(()),
        Some(code) => Err(AdminError::Ended(code, summary.verdict.headline())),
    }
}

/// Why the run is no success, if it is none. What a gate allows or forbids outranks our own opinion
/// on errors; that the figures say nothing outranks the gates.
fn exit_code(summary: &Summary) -> Option<ExitCode> {
    let has = |kind| summary.verdict.has(kind);
    let gates_errors = |checked: &Checked| checked.text.contains("error");
    if has(Kind::VerificationFailed) {
        Some(ExitCode::VerificationFailed)
    } else if has(Kind::NothingAcknowledged) {
        Some(ExitCode::NothingAcknowledged)
    } else if has(Kind::GeneratorLimited) {
        Some(ExitCode::GeneratorLimited)
    } else if has(Kind::NoAnswer) || summary.thresholds.iter().any(|checked| checked.failed) {
        Some(ExitCode::GateFailed)
    } else if has(Kind::BrokerLost)
        || has(Kind::Errors) && !summary.thresholds.iter().any(gates_errors)
    {
        Some(ExitCode::SendsFailed)
    } else {
        None
    }
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
