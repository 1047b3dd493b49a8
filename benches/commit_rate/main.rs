//! How many durable messages a second, against what the disk itself can do one by one.
//!
//! The floor is a bare loop of 4 KiB `pwrite` + `fdatasync` on a prewritten file (`O_DIRECT`), on
//! the same file system and in the same rounds as the broker: producers of 100-byte messages, one
//! request in flight each, every answer durable (`acks=all`). Rounds are interleaved and medians
//! taken, because a shared disk drifts by a factor of two within minutes.
//!
//! Goals: 8, 64 and 512 producers reach 2.5, 7 and 10 times the floor, on one core with one shard
//! and on all cores; 64 partitions are within 10 % of one.
//!
//! `COMMIT_RATE_ROUNDS` (5), `COMMIT_RATE_MS` (1200, per measurement), `COMMIT_RATE_DIR` (a
//! folder on the file system to measure), `COMMIT_RATE_SERVE` (further arguments of `serve`, such
//! as `--commit-depth 1`), `COMMIT_RATE_CHECK=1` (exit code 1 if a goal is missed). The last line
//! is JSON. Without cargo's `--bench` it makes one short round, as a test of itself.

#[path = "../closed_loop/mod.rs"]
mod closed_loop;
mod floor;
#[path = "../shared/mod.rs"]
mod shared;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use closed_loop::Measured;
use closed_loop::kafka::Kafka;
use floor::Floor;
use shared::median;
use support::broker::{Broker, Options};

/// Producers and the multiple of the floor that they must reach.
const GOALS: [(usize, f64); 3] = [(8, 2.5), (64, 7.0), (512, 10.0)];
/// Bytes of each message's value.
const MESSAGE_BYTES: usize = 100;
/// Partition counts that must not matter, and by how much they may, in percent.
const PARTITIONS: [i32; 2] = [1, 64];
const PARTITIONS_PERCENT: f64 = 10.0;

struct Plan {
    rounds: usize,
    span: Duration,
    folder: PathBuf,
    check: bool,
}

fn plan() -> Plan {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| {
            text.parse().expect("the setting is a number")
        })
    };
    let full = std::env::args().any(|argument| argument == "--bench");
    let (rounds, span_ms) = if full { (5, 1200) } else { (1, 200) };
    let folder = std::env::var_os("COMMIT_RATE_DIR");
    Plan {
        rounds: number("COMMIT_RATE_ROUNDS", rounds) as usize,
        span: Duration::from_millis(number("COMMIT_RATE_MS", span_ms)),
        folder: folder.map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from),
        check: number("COMMIT_RATE_CHECK", 0) == 1,
    }
}

/// All measurements of one configuration of the broker.
#[derive(Default)]
struct Series {
    floor: Vec<f64>,
    /// By producers and partitions.
    broker: BTreeMap<(usize, i32), Vec<Measured>>,
}

fn main() -> ExitCode {
    let plan = plan();
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let home = tempfile::Builder::new()
        .prefix("commit-rate-")
        .tempdir_in(&plan.folder);
    let home = home.expect("a folder on the file system to measure");
    let mut configurations = vec![("1 core, 1 shard".to_owned(), 1)];
    if cpus > 1 {
        configurations.push((format!("{cpus} cores, {cpus} shards"), cpus));
    }
    let mut met = true;
    let mut json = Vec::new();
    for (name, cores) in configurations {
        let series = measure(&plan, &home.path().join(format!("cores-{cores}")), cores);
        let (table, all_met, report) = judge(&name, &series);
        println!("{table}");
        met &= all_met;
        json.push(report);
    }
    println!(
        "{}",
        serde_json::json!({ "commit_rate": json, "goals_met": met })
    );
    ExitCode::from(u8::from(plan.check && !met))
}

fn measure(plan: &Plan, home: &Path, cores: u32) -> Series {
    let shards = cores.to_string();
    let extra = std::env::var("COMMIT_RATE_SERVE").unwrap_or_default();
    let extra: Vec<&str> = extra.split_whitespace().collect();
    let options = Options::new(home)
        .cores(cores)
        .with(&["--shards", &shards])
        .with(&extra);
    let (broker, ready) = Broker::start(&options);
    let topics = PARTITIONS.map(|partitions| {
        let topic = format!("rate-{partitions}");
        let shape = (MESSAGE_BYTES, 1);
        (
            partitions,
            Kafka::open(ready.kafka[0], &topic, partitions, shape),
        )
    });
    let floor = Floor::prepare(&home.join("floor"));
    let mut series = Series::default();
    for round in 0..plan.rounds {
        series.floor.push(floor.run(plan.span));
        for (producers, _) in GOALS {
            for (partitions, kafka) in &topics {
                let measured = closed_loop::run(kafka, producers, plan.span, || {});
                series
                    .broker
                    .entry((producers, *partitions))
                    .or_default()
                    .push(measured);
            }
        }
        eprintln!("{cores} cores: round {} of {}", round + 1, plan.rounds);
    }
    // A disk busy with the build's own files must not end a measurement.
    broker.stop(Duration::from_secs(60));
    series
}

/// The table, whether every goal was met, and the same as JSON.
fn judge(name: &str, series: &Series) -> (String, bool, serde_json::Value) {
    let floor = median(series.floor.clone());
    let mut table = format!("{name}: bare 4 KiB pwrite + fdatasync: {floor:.0}/s\n");
    table +=
        "producers  partitions      msg/s  x floor   goal           p50 us   p99 us  client CPU\n";
    let mut met = true;
    let mut rows = Vec::new();
    for (producers, goal) in GOALS {
        let mut rates = Vec::new();
        for partitions in PARTITIONS {
            let runs = &series.broker[&(producers, partitions)];
            let of = |field: fn(&Measured) -> f64| median(runs.iter().map(field).collect());
            let (rate, ratio) = (of(|run| run.per_second), of(|run| run.per_second) / floor);
            let (p50, p99) = (of(|run| run.p50_us), of(|run| run.p99_us));
            let cpu = of(|run| run.client_cpu_percent);
            let word = if ratio >= goal { "met" } else { "MISSED" };
            met &= ratio >= goal;
            table += &format!(
                "{producers:>9}  {partitions:>10}  {rate:>9.0}  {ratio:>7.2}  {goal:>5.1} \
                 {word:<7} {p50:>8.0} {p99:>8.0}  {cpu:>9.0}%\n"
            );
            rows.push(serde_json::json!({
                "producers": producers, "partitions": partitions, "per_second": rate,
                "floor_ratio": ratio, "goal": goal, "p50_us": p50, "p99_us": p99,
                "client_cpu_percent": cpu,
            }));
            rates.push(rate);
        }
        let apart = (rates[1] / rates[0] - 1.0) * 100.0;
        let word = if apart.abs() <= PARTITIONS_PERCENT {
            "met"
        } else {
            "MISSED"
        };
        met &= apart >= -PARTITIONS_PERCENT;
        table += &format!("           64 partitions against 1: {apart:+.1} %  {word}\n");
    }
    let report = serde_json::json!({
        "configuration": name, "floor_per_second": floor, "floor_rounds": series.floor,
        "rows": rows,
    });
    (table, met, report)
}
