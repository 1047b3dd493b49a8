//! P7: a backlog is written, the broker started anew (so nothing of it is in memory, and the page
//! cache is never used), and read by one consumer and by four. Then a rate of producers with and
//! without consumers that read the backlog over and over.
//!
//! All loads share CPU 1: what a consumer cannot take in there, the row shows as the broker's.

use std::time::Duration;

use super::files;
use crate::bench::{Bench, Served};
use crate::figures::{Figures, Goal};

const BACKLOG_BYTES: u64 = 4 << 30;
const MESSAGE_BYTES: u64 = 1024;

pub fn measure(bench: &mut Bench, figures: &mut Figures) -> Result<(), String> {
    let home = bench.home();
    let options = bench.options(&home);
    let served = bench.serve(&options);
    let count = bench.size(BACKLOG_BYTES, 8 << 20) / MESSAGE_BYTES;
    let flags = format!(
        "--topic backlog --rate max --partitions 4 --producers 16 --size 1KiB --batch-bytes 256KiB \
         --in-flight 2 --warm-up 0s --count {count}"
    );
    bench.load(&served, "the backlog", &flags)?;
    served.stop();
    for _ in 0..bench.rounds {
        // The very files that consumers read: a scratch file just written may lie in a cache of the
        // disk's own.
        let [one, four] = [1, 4].map(|threads| files::read_mb_per_s(&options.data(), threads));
        let (one, four) = (one?, four?);
        figures.add("limit: 1 MiB reads of the same files, MB/s", one);
        figures.add("limit: the same, 4 at once, MB/s", four);
        let probed = bench.probe(&["read_1m", "read_1m_x4"])?;
        for name in ["read_1m", "read_1m_x4"] {
            figures.add(&format!("probe's {name}, MB/s"), probed.mb_per_s(name));
        }
        let served = bench.serve(&options);
        for consumers in [1, 4] {
            let limit = if consumers == 1 { one } else { four };
            read(bench, figures, &served, consumers, limit)?;
        }
        meanwhile(bench, figures, &served)?;
        served.stop();
    }
    Ok(())
}

fn read(
    bench: &mut Bench,
    figures: &mut Figures,
    served: &Served,
    consumers: u32,
    limit: f64,
) -> Result<(), String> {
    let label = format!("{consumers} consumers");
    let before = served.sample();
    let load = bench.trusted_load(served, &label, &consume(consumers), figures)?;
    let cost = served.sample().since(&before);
    bench.record("broker", cost.to_json());
    let mb_per_s = load.figure("received_meanwhile_bytes_per_s") / 1e6;
    figures.add(&format!("{label}: MB/s of values"), mb_per_s);
    let name = format!("{label}: / limit of {consumers} reads at once");
    figures.goal(&name, Goal::AtLeast(0.9), mb_per_s / limit);
    let outbound = cost.count("fetch", "served") as f64;
    let name = format!("{label}: bytes read from the device for each byte served");
    figures.add(&name, cost.device_read as f64 / outbound);
    let name = format!("{label}: generator's CPU, % of a core");
    figures.add(&name, load.generator_percent());
    figures.add(
        &format!("{label}: broker's CPU, s a GB"),
        cost.cpu_s / (outbound / 1e9),
    );
    Ok(())
}

fn consume(consumers: u32) -> String {
    format!("--topic backlog --no-create --consume-only --consumers {consumers}")
}

/// Producers alone, then beside readers of the backlog.
fn meanwhile(bench: &mut Bench, figures: &mut Figures, served: &Served) -> Result<(), String> {
    let rate = bench.size(5000, 500);
    let flags = format!(
        "--topic live --partitions 4 --producers 16 --size 1KiB --rate {rate} --warm-up 1s \
         --duration {}",
        bench.duration()
    );
    let alone = bench.trusted_load(served, "producers alone", &flags, figures)?;
    let mut producers = bench.begin_load(served, "producers beside readers", &flags)?;
    let mut passes = 0;
    let mut readers = None;
    while matches!(producers.child.try_wait(), Ok(None)) {
        let mut reader = match readers.take() {
            Some(reader) => reader,
            None => bench.begin_load(served, "readers beside producers", &consume(1))?,
        };
        if let Ok(None) = reader.child.try_wait() {
            readers = Some(reader);
        } else {
            bench.end_load(reader)?;
            passes += 1;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    if let Some(mut reader) = readers {
        // Its figures would say nothing: the producers are gone.
        let _ = reader.child.kill();
        let _ = reader.child.wait();
    }
    let beside = bench.end_load(producers)?;
    let [alone, beside] = [alone, beside].map(|load| load.us("response", "p99"));
    figures.add("producers alone: p99, us", alone);
    figures.add("producers beside readers: p99, us", beside);
    figures.goal(
        "producers beside readers / alone: p99",
        Goal::AtMost(1.5),
        beside / alone,
    );
    figures.add(
        "times the whole backlog was read beside producers",
        f64::from(passes),
    );
    Ok(())
}
