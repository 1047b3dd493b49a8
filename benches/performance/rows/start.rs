//! P13: a broker is killed under load and started again: how long until it says that it serves.
//!
//! The goal grows with what was not sealed when the kill came: what a start has to read again. That
//! is what the broker itself says it read while it started.

use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::figures::{Figures, Goal};
use crate::support::broker::{Broker, START_MAX};

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
    let options = bench.options(&home);
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
    );
    std::thread::sleep(Duration::from_millis(300));
    served.broker.kill();
    let begin = Instant::now();
    let mut broker = Broker::spawn(&options);
    let ready = broker.wait_ready(START_MAX)?;
    let took_s = begin.elapsed().as_secs_f64();
    let _ = last.child.kill();
    let _ = last.child.wait();
    let served = crate::bench::Served { broker, ready };
    let sample = served.sample();
    let read = sample.device_read();
    let said = served.broker.log_tail();
    bench.record(
        "start",
        serde_json::json!({ "took_s": took_s, "read_bytes": read, "log": said }),
    );
    served.stop();
    let name = format!("{size_mib} MiB: start, s");
    figures.add(&name, took_s);
    figures.add(
        &format!("{size_mib} MiB: read by the start, MiB"),
        read as f64 / (1 << 20) as f64,
    );
    let allowed = 1.0 + read as f64 / GIB;
    let name = format!("{size_mib} MiB: start / (1 s + 1 s each GiB it had to read)");
    figures.goal(&name, Goal::AtMost(1.0), took_s / allowed);
    Ok(())
}
