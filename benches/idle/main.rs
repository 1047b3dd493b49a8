//! What an idle broker costs: idle connections, long-polling consumers, and nothing at all.
//!
//! Goals: 2,000 idle connections and 500 consumers that long-poll (500 ms, the clients' default) an
//! idle topic take at most 2 % of one core; iowait stays at or below 5 % and I/O pressure at or
//! below 2 %, because an idle ring must not look like a busy disk. Method: the broker's own CPU
//! time, `/proc/stat` and `/proc/pressure/io` over `IDLE_SECONDS` (10), first with nothing
//! connected, then with everything. Figures of the whole host: run it alone. `IDLE_CHECK=1` makes a
//! missed goal exit code 1. Without cargo's `--bench` it makes one short round, as a test of
//! itself.

#[path = "../shared/mod.rs"]
mod shared;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::broker::{Broker, Options, Ready};
use support::client::{Connection, fetch_body};
use support::cluster::Cluster;

const IDLE_CONNECTIONS: usize = 2_000;
const CONSUMERS: usize = 500;
const WAIT_MS: i32 = 500;
const PATIENCE: Duration = Duration::from_secs(30);
const FETCH: i16 = 1;
const FETCH_VERSION: i16 = 11;

/// Host and process figures at one instant.
struct Figures {
    at: Instant,
    broker_ticks: u64,
    iowait_ticks: u64,
    all_ticks: u64,
    pressure_us: u64,
}

fn figures(pid: u32) -> Figures {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("the broker lives");
    let after_name = stat.rsplit(')').next().expect("a process has a name");
    let fields: Vec<u64> = after_name
        .split_whitespace()
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    let host = std::fs::read_to_string("/proc/stat").expect("Linux has /proc/stat");
    let cpu: Vec<u64> = host
        .lines()
        .next()
        .expect("the first line sums all CPUs")
        .split_whitespace()
        .skip(1)
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    let pressure = std::fs::read_to_string("/proc/pressure/io").unwrap_or_default();
    let total = pressure
        .lines()
        .next()
        .and_then(|line| line.split("total=").nth(1));
    Figures {
        at: Instant::now(),
        broker_ticks: fields[11] + fields[12],
        iowait_ticks: cpu[4],
        all_ticks: cpu.iter().take(8).sum(),
        pressure_us: total.and_then(|text| text.trim().parse().ok()).unwrap_or(0),
    }
}

/// Percentages over an interval: the broker's share of one core, iowait, I/O pressure.
#[derive(Clone, Copy, Debug)]
struct Shares {
    broker: f64,
    iowait: f64,
    pressure: f64,
}

fn measure(pid: u32, span: Duration) -> Shares {
    let before = figures(pid);
    std::thread::sleep(span);
    let after = figures(pid);
    let seconds = (after.at - before.at).as_secs_f64();
    // A tick is 10 ms on every Linux that matters here.
    let busy = (after.broker_ticks - before.broker_ticks) as f64 / 100.0;
    let waited = (after.iowait_ticks - before.iowait_ticks) as f64;
    Shares {
        broker: 100.0 * busy / seconds,
        iowait: 100.0 * waited / (after.all_ticks - before.all_ticks).max(1) as f64,
        pressure: (after.pressure_us - before.pressure_us) as f64 / 1e4 / seconds,
    }
}

/// Long-polls the end of a topic until told to stop.
fn consume(leader: SocketAddr, index: usize, stop: &AtomicBool, answered: &AtomicU64) {
    let mut connection = Connection::open(leader, PATIENCE).expect("accepted");
    let body = fetch_body("idle", &[((index % 16) as i32, 0)], WAIT_MS, 1 << 20);
    while !stop.load(Ordering::Relaxed) {
        connection
            .call(FETCH, FETCH_VERSION, &body)
            .expect("an answer, if an empty one");
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

fn connect_idle(ready: &Ready, count: usize) -> Vec<TcpStream> {
    let address = |index: usize| ready.kafka[index % ready.kafka.len()];
    (0..count)
        .map(|index| TcpStream::connect(address(index)).expect("accepted"))
        .collect()
}

fn main() -> ExitCode {
    let full = std::env::args().any(|argument| argument == "--bench");
    let seconds = std::env::var("IDLE_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let span = Duration::from_secs(seconds.unwrap_or(if full { 10 } else { 1 }));
    let (idle, consumers) = if full {
        (IDLE_CONNECTIONS, CONSUMERS)
    } else {
        (20, 5)
    };
    shared::raise_descriptors();
    let home = support::broker::home("idle");
    let (broker, ready) = Broker::start(&Options::new(home.path()));
    let mut client = Connection::open(ready.kafka[0], PATIENCE).expect("accepted");
    client.create_topic("idle", 16, &[]).expect("an answer");
    let cluster = Cluster::open(ready.kafka[0], &["idle"], PATIENCE).expect("an answer");
    std::thread::sleep(Duration::from_secs(1));
    let alone = measure(broker.pid(), span);

    let held = connect_idle(&ready, idle);
    let stop = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicU64::new(0));
    let workers: Vec<_> = (0..consumers)
        .map(|index| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            let leader = cluster.leader("idle", (index % 16) as i32);
            std::thread::Builder::new()
                .stack_size(128 << 10)
                .spawn(move || consume(leader, index, &stop, &answered))
                .expect("a thread")
        })
        .collect();
    std::thread::sleep(Duration::from_secs(2));
    let rss_kib = broker.status_kib("VmRSS");
    let before = answered.load(Ordering::Relaxed);
    let crowded = measure(broker.pid(), span);
    let rate = (answered.load(Ordering::Relaxed) - before) as f64 / span.as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.join().expect("a consumer never fails");
    }
    drop(held);
    report(idle, consumers, rate, rss_kib, [alone, crowded])
}

fn report(idle: usize, consumers: usize, rate: f64, rss_kib: u64, shares: [Shares; 2]) -> ExitCode {
    let names = [
        "nothing connected".to_owned(),
        format!("{idle} idle, {consumers} long-polling"),
    ];
    println!(
        "{:<32} {:>14} {:>9} {:>13}",
        "", "% of one core", "iowait %", "io pressure %"
    );
    for (name, share) in names.iter().zip(shares) {
        let Shares {
            broker,
            iowait,
            pressure,
        } = share;
        println!("{name:<32} {broker:>14.2} {iowait:>9.2} {pressure:>13.2}");
    }
    println!(
        "{rate:.0} empty answers a second; the broker holds {} MiB",
        rss_kib / 1024
    );
    let [alone, crowded] = shares;
    let met = crowded.broker <= 2.0 && crowded.iowait <= 5.0 && crowded.pressure <= 2.0;
    let met = met && alone.iowait <= 5.0 && alone.pressure <= 2.0;
    println!(
        "{}",
        serde_json::json!({
            "idle_connections": idle, "consumers": consumers, "answers_per_s": rate,
            "broker_percent": crowded.broker, "iowait_percent": crowded.iowait,
            "io_pressure_percent": crowded.pressure, "alone_percent": alone.broker,
            "rss_kib": rss_kib, "met": met,
        })
    );
    let check = std::env::var("IDLE_CHECK").is_ok_and(|value| value == "1");
    ExitCode::from(u8::from(check && !met))
}
