//! The load generator against the real broker: the rules that make it believable, one by one.
//!
//! Method: loads run in this process, so that a test reads the run itself and not a picture of it;
//! where the exit code or a signal is what matters, the real binary runs. Bounds come from the
//! schedule and from what the test itself did to the broker, never from how fast anything was.

mod support;

#[path = "load/ends.rs"]
mod ends;
#[path = "load/honest.rs"]
mod honest;
#[path = "load/proxy.rs"]
mod proxy;
#[path = "load/split.rs"]
mod split;

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use penstock::admin::cli::{Cli, Verb};
use penstock::load::run::{Counts, Interval, Latencies, Phase, Run};
use support::broker::{self, Broker, Options, Ready};

/// A broker of the test's own.
fn start(test: &str, extra: &[&str]) -> (tempfile::TempDir, Broker, Ready) {
    let home = broker::home(test);
    let options = Options::new(home.path()).with(extra);
    let (broker, ready) = Broker::start(&options);
    (home, broker, ready)
}

/// Runs a load in this process.
fn load(ready: &Ready, flags: &str) -> Run {
    let broker = ready.kafka[0].to_string();
    let words = ["penstock", "load", "--quiet", "--broker", &broker];
    let words = words.into_iter().chain(flags.split_whitespace());
    let Verb::Load(args) = Cli::try_parse_from(words).expect("good flags").verb else {
        panic!("the verb is load");
    };
    penstock::admin::load::conduct(&args).expect("the load runs")
}

/// The real binary, about to run a load.
fn binary(ready: &Ready, flags: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PENSTOCK_") {
            command.env_remove(name);
        }
    }
    command
        .args(["load", "--broker", &ready.kafka[0].to_string()])
        .args(flags.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the real binary to its end.
fn ended(ready: &Ready, flags: &str) -> Output {
    binary(ready, flags).output().expect("it starts")
}

/// The sums over some intervals.
fn sums<'a>(intervals: impl IntoIterator<Item = &'a Interval>) -> (Counts, Latencies) {
    let mut sums = (Counts::default(), Latencies::new());
    for interval in intervals {
        sums.0.add(&interval.counts);
        sums.1.add(&interval.latencies);
    }
    sums
}

/// What must hold in every interval of every run, whatever happened.
#[track_caller]
fn assert_consistent(run: &Run) {
    let mut end_ms = 0;
    for interval in &run.intervals {
        let Interval {
            at_ms,
            length_ms,
            counts,
            latencies,
            ..
        } = interval;
        assert!(
            *at_ms >= end_ms && *length_ms > 0,
            "intervals overlap at {at_ms}"
        );
        end_ms = at_ms + length_ms;
        assert!(counts.sent <= counts.offered, "{at_ms}: {counts:?}");
        let settled = counts.acknowledged + counts.failed + counts.unanswered;
        assert_eq!(counts.sent, settled, "{at_ms}: {counts:?}");
        assert_eq!(latencies.response.len(), counts.acknowledged, "{at_ms}");
        assert_eq!(latencies.service.len(), counts.acknowledged, "{at_ms}");
        assert_eq!(latencies.unanswered.len(), counts.unanswered, "{at_ms}");
        assert_eq!(latencies.schedule_lag.len(), counts.sent, "{at_ms}");
        let received = latencies.end_to_end.len() + counts.negative;
        assert_eq!(received, counts.received, "{at_ms}");
        assert!(interval.step < run.steps.len());
    }
    let (counts, _) = sums(&run.intervals);
    assert_eq!(counts.acknowledged, counts.acknowledged_meanwhile);
    let failed: u64 = run.failures.iter().map(|failure| failure.count).sum();
    assert_eq!(counts.failed, failed, "{:?}", run.failures);
}

fn measured(run: &Run) -> impl Iterator<Item = &Interval> {
    run.intervals
        .iter()
        .filter(|interval| interval.phase == Phase::Measured)
}

/// Waits for a child for at most this long; kills it and fails after that.
fn wait(mut child: std::process::Child, most: Duration) -> Output {
    let deadline = Instant::now() + most;
    while child.try_wait().expect("the child can be asked").is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("still there after {most:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().expect("it ended")
}
