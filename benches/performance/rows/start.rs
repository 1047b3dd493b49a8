//! P13: a broker is killed under load and started again: how long until it says that it serves.
//!
//! The goal grows with what no checkpoint covered when the kill came. That is what the broker's own
//! recovery report says that it replayed; what it read in all stands beside it.

use std::time::{Duration, Instant};

use crate::bench::{Bench, Served};
use crate::figures::{Figures, Goal};
use crate::support::broker::{Broker, Options, START_MAX};
use serde_json::json;

const MIB: f64 = (1u64 << 20) as f64;
const GIB: f64 = (1u64 << 30) as f64;
const MESSAGE_BYTES: u64 = 1024;

pub fn measure(bench: &mut Bench, figures: &mut Figures) -> Result<(), String> {
    let sizes_mib: &[u64] = if bench.full {
        &[512, 2048, 4096]
    } else {
        &[4, 16]
    };
    for _ in 0..bench.rounds {
        for size_mib in sizes_mib {
            one(bench, figures, *size_mib)?;
        }
    }
    Ok(())
}

fn one(bench: &mut Bench, figures: &mut Figures, size_mib: u64) -> Result<(), String> {
    let home = bench.home();
    let log = "warn,penstock::server::banner=debug";
    let options = Options::new(home.path()).with(&["--shards", "1", "--log", log]);
    let served = bench.serve(&options);
    let count = (size_mib << 20) / MESSAGE_BYTES;
    let flags = format!(
        "--rate max --partitions 16 --producers 16 --size 1KiB --batch-bytes 256KiB --in-flight 2 \
         --warm-up 0s --count {count}"
    );
    bench.load(&served, &format!("{size_mib} MiB"), &flags)?;
    // Under load: what is on its way at the kill is what recovery has to judge.
    let mut last = bench.begin_load(
        &served,
        "killed",
        "--rate 2000 --producers 8 --duration 30s",
    )?;
    std::thread::sleep(Duration::from_millis(300));
    served.broker.kill();
    let begin = Instant::now();
    let mut broker = Broker::spawn(&options);
    let ready = broker.wait_ready(START_MAX)?;
    let took_s = begin.elapsed().as_secs_f64();
    let _ = last.child.kill();
    let _ = last.child.wait();
    let served = Served { broker, ready };
    let read = served.sample().device_read();
    let report = recovery(&options)?;
    let replayed = replayed_bytes(&report)?;
    let seen = json!({ "took_s": took_s, "read_bytes": read, "report": report });
    bench.record("start", seen);
    served.stop();
    figures.add(&format!("{size_mib} MiB: start, s"), took_s);
    figures.add(
        &format!("{size_mib} MiB: replayed, MiB"),
        replayed as f64 / MIB,
    );
    let name = format!("{size_mib} MiB: read from the device by the start, MiB");
    figures.add(&name, read as f64 / MIB);
    let allowed = 1.0 + replayed as f64 / GIB;
    let name = format!("{size_mib} MiB: start / (1 s + 1 s each GiB replayed)");
    figures.goal(&name, Goal::AtMost(1.0), took_s / allowed);
    Ok(())
}

/// The report of the last start's recovery, as the broker logs it.
fn recovery(options: &Options) -> Result<String, String> {
    let log = std::fs::read_to_string(options.log()).map_err(|error| error.to_string())?;
    let line = log.lines().rfind(|line| line.contains("shard recovered"));
    let line = line.ok_or("the broker did not log its recovery")?;
    Ok(line.to_owned())
}

fn replayed_bytes(report: &str) -> Result<u64, String> {
    let after = report.split(" bytes: ").nth(1);
    let digits = after.and_then(|text| text.split(',').next());
    let bytes = digits.and_then(|digits| digits.trim().parse().ok());
    bytes.ok_or_else(|| format!("no bytes in {report}"))
}
