//! What the broker says of itself is true, complete and of bounded size, asked of the real binary.

mod support;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use penstock::metrics::{CoreSnapshot, Dump, HistogramSnapshot, Reading, SCHEMA};
use support::batch::{self, NOBODY};
use support::broker::{self, Broker, Options, http_get};
use support::client::{Connection, code};
use support::history;

const TIMEOUT: Duration = Duration::from_secs(20);
const SIGUSR1: i32 = 10;

fn open(address: SocketAddr) -> Connection {
    Connection::open(address, TIMEOUT).expect("a ready broker takes connections")
}

fn create(connection: &mut Connection, topic: &str, partitions: i32) {
    let made = connection.create_topic(topic, partitions, &[]);
    assert_eq!(made.expect("CreateTopics answers"), code::NONE);
}

fn produce(connection: &mut Connection, topic: &str, partition: i32, sequence: u64) -> i16 {
    let (_, record) = history::make(7, sequence, 100);
    let bytes = batch::build(NOBODY, &[record]);
    let produced = connection.produce(topic, partition, -1, &bytes);
    produced.expect("Produce answers").error
}

fn parse(text: &str) -> Dump {
    let document: serde_json::Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(document["schema"], SCHEMA);
    Dump::from_json(&document).expect("a dump")
}

fn dump(http: SocketAddr) -> Dump {
    let (status, body) = http_get(http, "/dump").expect("the broker answers");
    assert_eq!(status, 200);
    parse(&body)
}

fn histogram<'a>(total: &'a CoreSnapshot, group: &str, name: &str) -> &'a HistogramSnapshot {
    match total.reading(group, name) {
        Some(Reading::Histogram(found)) => found,
        other => panic!("{group}.{name}: {other:?}"),
    }
}

fn counter(total: &CoreSnapshot, group: &str, name: &str) -> u64 {
    match total.reading(group, name) {
        Some(Reading::Counter(found)) => *found,
        other => panic!("{group}.{name}: {other:?}"),
    }
}

/// Goal: the stages of produces and fetches add up to the whole, to the nanosecond, and say where
/// the time went. Method: two cores, both commit modes; produces to the right and the wrong core,
/// refused ones, fetches of records and one that waits in vain; compare counts and sums.
#[test]
fn stages_add_up_to_the_whole() {
    for mode in ["dsync", "fdatasync"] {
        let home = broker::home("figures-stages");
        let options = Options::new(home.path())
            .cores(2)
            .with(&["--commit-mode", mode]);
        let (broker, ready) = Broker::start(&options);
        create(&mut open(ready.kafka[0]), "t", 4);
        let mut accepted = 0;
        for endpoint in &ready.kafka {
            let mut connection = open(*endpoint);
            for sequence in 0..10 {
                for partition in 0..4 {
                    assert_eq!(
                        produce(&mut connection, "t", partition, sequence),
                        code::NONE
                    );
                    accepted += 1;
                }
            }
            assert_ne!(produce(&mut connection, "t", 99, 0), code::NONE);
            let from: Vec<(i32, i64)> = (0..4).map(|partition| (partition, 0)).collect();
            connection.fetch("t", &from, 0, 1 << 20).expect("an answer");
            connection
                .fetch("t", &[(0, 10_000)], 50, 1 << 20)
                .expect("an answer");
            let end = i64::try_from(accepted / 4).expect("few");
            connection
                .fetch("t", &[(0, end)], 60, 1 << 20)
                .expect("an answer");
        }
        let total = dump(ready.http).total();
        assert_eq!(counter(&total, "produce", "records"), accepted);
        let sums = |group: &str, names: &[&str], whole: &str| {
            let whole = histogram(&total, "requests", whole);
            let mut sum = 0;
            for name in names {
                let stage = histogram(&total, group, name);
                assert_eq!(stage.counts.len(), whole.counts.len(), "{group}.{name}");
                sum += stage.sum;
            }
            assert_eq!(sum, whole.sum, "{group} in mode {mode}");
            whole.counts.len()
        };
        let produce_stages = [
            "admission",
            "read",
            "append",
            "staged",
            "write",
            "flush",
            "order",
            "reply",
        ];
        let produces = sums("stages", &produce_stages, "produce");
        assert_eq!(produces, accepted + 2, "refused ones are answered too");
        let fetch_stages = ["receive", "wait", "plan", "read", "reply"];
        assert_eq!(sums("fetch_stages", &fetch_stages, "fetch"), 6);
        assert!(histogram(&total, "stages", "write").sum > 0);
        let flushed = histogram(&total, "stages", "flush").sum > 0;
        assert_eq!(flushed, mode == "fdatasync");
        assert!(
            histogram(&total, "fetch_stages", "wait").sum > 40_000_000,
            "one waited"
        );
        broker.stop(TIMEOUT);
    }
}

/// Goal: the figures of topics are what was sent and read, on whichever core. Method: two topics on
/// two cores; more into one of them, and a consumer of it.
#[test]
fn topics_are_counted() {
    let home = broker::home("figures-topics");
    let (broker, ready) = Broker::start(&Options::new(home.path()).cores(2));
    let mut connection = open(ready.kafka[0]);
    create(&mut connection, "much", 4);
    create(&mut connection, "little", 1);
    for partition in 0..4 {
        for sequence in 0..3 {
            assert_eq!(
                produce(&mut connection, "much", partition, sequence),
                code::NONE
            );
        }
    }
    assert_eq!(produce(&mut connection, "little", 0, 0), code::NONE);
    for partition in 0..4 {
        let from = [(partition, 1)];
        let fetched = connection
            .fetch("much", &from, 0, 1 << 20)
            .expect("an answer");
        assert_eq!(fetched[0].error, code::NONE);
    }
    let dump = dump(ready.http);
    assert_eq!(dump.topics.omitted, 0);
    let [little, much] = &dump.topics.listed[..] else {
        panic!("two topics: {:?}", dump.topics);
    };
    assert_eq!(
        (little.name.as_str(), much.name.as_str()),
        ("little", "much")
    );
    assert_eq!((little.in_records, much.in_records), (1, 12));
    assert_eq!(
        (much.partitions, much.log_records, much.offsets),
        (4, 12, 12)
    );
    assert_eq!(much.out_records, 8, "two of three of each partition");
    assert!(much.out_bytes > 0 && much.in_bytes == much.log_bytes);
    assert_eq!((little.out_records, little.out_bytes), (0, 0));
    let (_, full) = http_get(ready.http, "/metrics?full").expect("the broker answers");
    assert!(full.contains("penstock_topic_records_in_total{topic=\"much\"} 12\n"));
    let (_, small) = http_get(ready.http, "/metrics").expect("the broker answers");
    assert!(!small.contains("penstock_topic_records_in_total"));
    let cores = small
        .lines()
        .filter(|line| line.starts_with("penstock_produce_records_total{"));
    assert_eq!(cores.count(), 2, "one sample a core");
    assert!(small.contains("\npenstock_stages_write_seconds_count 13\n"));
    broker.stop(TIMEOUT);
}

fn wait_for_file(path: &Path, told: impl Fn(&Dump) -> bool) -> Dump {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if !text.is_empty() {
            // Never a part of one: it appears whole.
            let dump = parse(&text);
            if told(&dump) {
                return dump;
            }
        }
        assert!(Instant::now() < deadline, "no dump in {}", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Goal: SIGUSR1 writes a dump and the broker goes on; a stop writes the last one and keeps the
/// one before; both can be merged and compared; `none` writes nothing. Method: produce, signal,
/// produce, stop, and look at the files.
#[test]
fn dumps_are_written_on_a_signal_and_at_exit() {
    let home = broker::home("figures-dump");
    let options = Options::new(home.path());
    let (broker, ready) = Broker::start(&options);
    let mut connection = open(ready.kafka[0]);
    create(&mut connection, "t", 1);
    let send = |connection: &mut Connection, count| {
        for sequence in 0..count {
            assert_eq!(produce(connection, "t", 0, sequence), code::NONE);
        }
    };
    send(&mut connection, 3);
    broker.signal(SIGUSR1);
    let path = options.data().join("dump.json");
    let records = |dump: &Dump| counter(&dump.total(), "produce", "records");
    let first = wait_for_file(&path, |dump| records(dump) == 3);
    send(&mut connection, 4);
    broker.stop(TIMEOUT);
    let last = wait_for_file(&path, |dump| records(dump) == 7);
    let kept = wait_for_file(&options.data().join("dump.json.1"), |_| true);
    assert_eq!(kept, first);
    let since = last.since(&first).total();
    assert_eq!(histogram(&since, "stages", "write").counts.len(), 4);
    let length = fs::metadata(&path).expect("it is there").len();
    assert!(length < 1 << 20, "{length} bytes");
    // A file in the data directory is no reason to refuse it.
    let elsewhere = home.path().join("elsewhere.json");
    let text = elsewhere.display().to_string();
    let (broker, _) = Broker::start(&options.clone().with(&["--dump-file", &text]));
    broker.stop(TIMEOUT);
    wait_for_file(&elsewhere, |_| true);
    fs::remove_file(&elsewhere).expect("it is there");
    let (broker, _) = Broker::start(&options.with(&["--dump-file", "none"]));
    broker.signal(SIGUSR1);
    broker.stop(TIMEOUT);
    assert!(!elsewhere.exists());
    assert_eq!(wait_for_file(&path, |_| true), last, "not written again");
}

/// Goal: with 10,000 partitions each page stays within 1 MiB, and what is left out is said. Method:
/// 1,250 topics of 8 partitions; sizes asserted, times printed.
#[test]
fn pages_stay_small_with_ten_thousand_partitions() {
    let home = broker::home("figures-many");
    let (broker, ready) = Broker::start(&Options::new(home.path()).cores(2));
    let mut connection = open(ready.kafka[0]);
    for number in 0..1_250 {
        create(
            &mut connection,
            &format!("topic-with-a-long-name-{number:05}"),
            8,
        );
    }
    for number in 0..1_250 {
        let topic = format!("topic-with-a-long-name-{number:05}");
        for partition in [0, 1] {
            assert_eq!(produce(&mut connection, &topic, partition, 0), code::NONE);
        }
    }
    for path in ["/metrics", "/metrics?full", "/dump"] {
        let begin = Instant::now();
        let (status, body) = http_get(ready.http, path).expect("the broker answers");
        let took = begin.elapsed();
        println!("{path}: {} bytes, {took:?}", body.len());
        assert_eq!(status, 200);
        assert!(body.len() <= 1 << 20, "{path}: {} bytes", body.len());
    }
    let dump = dump(ready.http);
    assert_eq!(dump.topics.listed.len(), 1_000);
    assert_eq!(dump.topics.omitted, 250);
    broker.stop(TIMEOUT);
}

fn run(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    let output = command
        .args(arguments)
        .env_remove("LC_ALL")
        .env("LANG", "C");
    let output = output.output().expect("the binary can be started");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Goal: `top` without a terminal prints one frame that fits, live and played back; a recording has
/// whole dumps; `--interval` has rates. Method: the binary, its output in pipes.
#[test]
fn top_prints_and_plays_back() {
    let home = broker::home("figures-top");
    let (broker, ready) = Broker::start(&Options::new(home.path()).cores(2));
    let mut connection = open(ready.kafka[0]);
    create(&mut connection, "orders", 2);
    assert_eq!(produce(&mut connection, "orders", 0, 0), code::NONE);
    let http = ready.http.to_string();
    let live = run(&[
        "top",
        "--http",
        &http,
        "--interval",
        "0.1",
        "--size",
        "80x24",
    ]);
    assert!(
        live.starts_with("penstock ") && live.contains("[1 Cores]"),
        "{live}"
    );
    assert!(
        live.is_ascii() && live.lines().all(|line| line.len() <= 80),
        "{live}"
    );
    let follow = ["dump", "--http", &http, "--follow", "--interval", "0.05"];
    let tape = run(&[&follow[..], &["--count", "3"]].concat());
    assert_eq!(tape.lines().map(parse).count(), 3);
    let path = home.path().join("tape.jsonl");
    fs::write(&path, tape).expect("written");
    let path = path.display().to_string();
    let played = run(&["top", "--from", &path, "--once", "--tab", "topics"]);
    assert!(
        played.contains("orders") && played.contains("replay of"),
        "{played}"
    );
    let between = run(&["dump", "--http", &http, "--interval", "0.1", "--brief"]);
    let between: serde_json::Value = serde_json::from_str(&between).expect("JSON");
    assert_eq!(between["rates"]["total"]["produce"]["records_per_s"], 0.0);
    assert!(between["rates"]["interval_ms"].as_u64() >= Some(100));
    broker.stop(TIMEOUT);
}
