//! R13 in small: clients that lie, babble, promise, dawdle and never read. Goal: the process lives,
//! stays inside its memory budget, and a good client beside them is served without one error.
//! Method: the real binary with a small budget, a crowd of each kind, and a witness who produces
//! and reads back all the while.

#[path = "hostile/frames.rs"]
mod frames;
mod support;
#[path = "hostile/witness.rs"]
mod witness;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use support::broker::{self, Broker, Options, Ready, http_get};
use support::client::{Connection, code, fetch_body, frame};
use support::history;
use witness::Witness;

/// The budget the broker is given, in MiB, and what it may overdraw (R13: 10 %).
const BUDGET_MIB: u64 = 256;
const OVERDRAFT_PERCENT: u64 = 10;

/// Connections that declare 10 MiB and send 100 bytes.
const PROMISERS: usize = 400;
/// Connections that ask for everything and read nothing.
const DEAF: usize = 200;
/// Connections that send a byte at a time.
const DRIPPERS: usize = 50;
/// What the deaf ask for, in MiB.
const BACKLOG_MIB: usize = 64;

fn start(test: &str) -> (tempfile::TempDir, Broker, Ready) {
    let home = broker::home(test);
    let budget = format!("{BUDGET_MIB}MiB");
    // The crowds come faster than a thousand a second; that gate has its own test.
    let settings = [
        "--memory-bytes",
        budget.as_str(),
        "--accept-rate-max",
        "1000000",
    ];
    let options = Options::new(home.path()).cores(2).with(&settings);
    let (broker, ready) = Broker::start(&options);
    (home, broker, ready)
}

/// The broker is the same process, healthy, and was never above its budget.
fn unharmed(mut broker: Broker, ready: &Ready, what: &str) {
    assert!(
        broker.is_alive(),
        "{what}: the broker ended\n{}",
        broker.log_tail()
    );
    let peak_kib = broker.status_kib("VmHWM");
    println!("{what}: peak {} MiB of {BUDGET_MIB}", peak_kib >> 10);
    let most = BUDGET_MIB * 1024 * (100 + OVERDRAFT_PERCENT) / 100;
    assert!(
        peak_kib <= most,
        "{what}: peak {peak_kib} KiB, budget {BUDGET_MIB} MiB"
    );
    let health = http_get(ready.http, "/healthz").expect("HTTP is served");
    assert_eq!(health.0, 200, "{what}: {health:?}");
    broker.stop(Duration::from_secs(5));
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the broker takes connections");
    stream.set_nodelay(true).expect("a fresh socket");
    stream
}

/// Sends `bytes`, says that no more come, and reads whatever there is until the end or `patience`.
/// Returns whether the broker closed the connection.
fn say(address: SocketAddr, bytes: &[u8], patience: Duration) -> bool {
    let mut stream = connect(address);
    stream
        .set_read_timeout(Some(patience))
        .expect("a fresh socket");
    // The broker may hang up at any byte of this: that is its right.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    drained(&mut stream)
}

fn drained(stream: &mut TcpStream) -> bool {
    let mut rest = [0u8; 16 << 10];
    loop {
        match stream.read(&mut rest) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => {
                return !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
            }
        }
    }
}

/// Counts of 2³¹ − 1 at every place of every recorded request, in both encodings, cuts at every
/// length and random damage: each ends at most its own connection. `PENSTOCK_SEED` replays.
#[test]
fn wild_counts_cuts_and_damage_end_one_connection_at_most() {
    let (_home, broker, ready) = start("hostile-counts");
    let witness = Witness::start(ready.kafka[0]);
    let served = Connection::open(ready.kafka[0], Duration::from_secs(5))
        .and_then(|mut connection| {
            connection
                .api_versions()
                .map_err(|error| panic!("{error:?}"))
        })
        .expect("ApiVersions is served");
    let seed = std::env::var("PENSTOCK_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("PENSTOCK_SEED={seed}");
    let requests = frames::recorded(&served);
    assert!(
        requests.len() >= 20,
        "only {} requests of served versions",
        requests.len()
    );
    let hostile = frames::hostile(&requests, seed);
    println!(
        "{} requests, {} hostile frames",
        requests.len(),
        hostile.len()
    );
    let addresses = &ready.kafka;
    let quarter = hostile.len().div_ceil(4);
    thread::scope(|scope| {
        for (index, part) in hostile.chunks(quarter).enumerate() {
            let address = addresses[index % addresses.len()];
            scope.spawn(move || {
                for frame in part {
                    // A long poll of 2³¹ ms is a wish, not an attack: it is left after a while.
                    say(address, frame, Duration::from_millis(200));
                }
            });
        }
    });
    witness.finish("wild counts");
    unharmed(broker, &ready, "wild counts");
}

/// Other protocols and senseless lengths: where the first four bytes promise more than a frame may
/// have, or less than a header needs, the connection is closed at once.
#[test]
fn foreign_protocols_are_shown_the_door() {
    let (_home, broker, ready) = start("hostile-foreign");
    let witness = Witness::start(ready.kafka[0]);
    for (what, bytes) in frames::foreign() {
        let begin = Instant::now();
        let mut stream = connect(ready.kafka[0]);
        stream
            .set_read_timeout(Some(Duration::from_secs(3)))
            .expect("a fresh socket");
        let _ = stream.write_all(&bytes);
        assert!(
            drained(&mut stream),
            "{what}: still open after {:?}",
            begin.elapsed()
        );
    }
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..random.usize(1..3000)).map(|_| random.u8(..)).collect();
        say(ready.kafka[0], &bytes, Duration::from_millis(300));
    }
    for (_, bytes) in frames::foreign() {
        say(ready.http, &bytes, Duration::from_millis(300));
    }
    say(ready.http, &vec![b'A'; 4 << 20], Duration::from_millis(500));
    let endless = format!("GET / HTTP/1.1\r\n{}", "X-Filler: yes\r\n".repeat(200_000));
    say(ready.http, endless.as_bytes(), Duration::from_millis(500));
    witness.finish("foreign protocols");
    unharmed(broker, &ready, "foreign protocols");
}

/// 400 connections declare 10 MiB each (4 GiB in all) and send 100 bytes, 50 more send one byte
/// now and then: the promises are not memory, and the witness is served.
#[test]
fn a_crowd_that_promises_much_and_sends_little() {
    let (_home, broker, ready) = start("hostile-promises");
    let witness = Witness::start(ready.kafka[0]);
    let mut crowd = Vec::new();
    let mut promise = (10i32 << 20).to_be_bytes().to_vec();
    promise.extend_from_slice(&frame(0, 7, 1, &[0; 100])[4..]);
    promise.truncate(104);
    for index in 0..PROMISERS {
        let mut stream = connect(ready.kafka[index % ready.kafka.len()]);
        let _ = stream.write_all(&promise);
        crowd.push(stream);
    }
    let mut drippers: Vec<TcpStream> = (0..DRIPPERS)
        .map(|index| connect(ready.kafka[index % ready.kafka.len()]))
        .collect();
    let request = frame(3, 4, 7, &[0xff, 0xff, 0xff, 0xff, 0]);
    let begin = Instant::now();
    for byte in request.iter().cycle() {
        for stream in &mut drippers {
            let _ = stream.write_all(std::slice::from_ref(byte));
        }
        thread::sleep(Duration::from_millis(100));
        if begin.elapsed() > Duration::from_secs(6) {
            break;
        }
    }
    witness.finish("promises");
    drop(crowd);
    unharmed(broker, &ready, "promises");
}

/// 200 connections ask for a backlog of 64 MiB again and again and read nothing: answers wait
/// inside the budget, or the deaf are cut off; the witness is served.
#[test]
fn a_crowd_that_never_reads() {
    let (_home, broker, ready) = start("hostile-deaf");
    let mut connection =
        Connection::open(ready.kafka[0], Duration::from_secs(30)).expect("the broker is there");
    let made = connection
        .create_topic("backlog", 4, &[])
        .expect("CreateTopics answers");
    assert_eq!(made, code::NONE);
    fill(&ready);
    let witness = Witness::start(ready.kafka[0]);
    let mut crowd = Vec::new();
    for index in 0..DEAF {
        let mut stream = connect(ready.kafka[index % ready.kafka.len()]);
        stream.set_nonblocking(true).expect("a fresh socket");
        for correlation in 0..64 {
            let from: Vec<(i32, i64)> = (0..4).map(|partition| (partition, 0)).collect();
            let request = frame(
                1,
                11,
                correlation,
                &fetch_body("backlog", &from, 0, 8 << 20),
            );
            if stream.write_all(&request).is_err() {
                break; // Nobody reads our requests any more: as it should be.
            }
        }
        crowd.push(stream);
    }
    thread::sleep(Duration::from_secs(6));
    witness.finish("deaf");
    drop(crowd);
    unharmed(broker, &ready, "deaf");
}

/// Fills the four partitions of `backlog` with 64 MiB in all.
fn fill(ready: &Ready) {
    let mut cluster =
        support::cluster::Cluster::open(ready.kafka[0], &["backlog"], Duration::from_secs(30))
            .expect("Metadata answers");
    for index in 0..BACKLOG_MIB {
        let (_, record) = history::make(1, index as u64, (1 << 20) - 200);
        let batch = support::batch::build(support::batch::NOBODY, &[record]);
        let partition = (index % 4) as i32;
        let connection = cluster
            .to("backlog", partition)
            .expect("the leader is there");
        let produced = connection
            .produce("backlog", partition, 1, &batch)
            .expect("an answer");
        assert_eq!(produced.error, code::NONE, "produce {index}");
    }
}

/// Who asks nothing for the idle deadline is closed and counted; who waits in a long poll is not.
#[test]
fn who_asks_nothing_is_closed_and_who_waits_is_not() {
    let home = broker::home("hostile-idle");
    let options = Options::new(home.path()).with(&["--idle-deadline-ms", "1000"]);
    let (broker, ready) = Broker::start(&options);
    let patience = Duration::from_secs(30);
    let mut client = Connection::open(ready.kafka[0], patience).expect("the broker is there");
    let made = client.create_topic("quiet", 1, &[]).expect("an answer");
    assert_eq!(made, code::NONE);
    let waiting = thread::spawn(move || client.fetch("quiet", &[(0, 0)], 4_000, 1 << 20));
    let mut idle = connect(ready.kafka[0]);
    idle.set_read_timeout(Some(patience))
        .expect("a fresh socket");
    let closed = idle.read(&mut [0; 1]).expect("a close, not a reset");
    assert_eq!(closed, 0, "the broker closes it");
    let fetched = waiting.join().expect("the consumer lives");
    assert_eq!(fetched.expect("the long poll is answered").len(), 1);
    let (_, body) = http_get(ready.http, "/dump").expect("the broker answers");
    let dump: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(dump["total"]["connections"]["closed_idle"], 1);
    broker.stop(Duration::from_secs(10));
}
