//! The contract of starting and stopping (product.md): any number of cores on a store of two
//! shards, a second process refused without a trace, `--no-create`, SIGTERM under load, a stale
//! ready file. Method: the real binary, its exit codes, and every byte of the folder before and
//! after.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use support::batch::{self, NOBODY, Record};
use support::broker::{self, Broker, Options, Ready};
use support::client::{Connection, Failure, code};
use support::cluster::Cluster;
use support::history;

const TIMEOUT: Duration = Duration::from_secs(10);
/// The contract of SIGTERM.
const STOP_MAX: Duration = Duration::from_secs(5);
/// The contract of a refused start, and what a busy machine may add to it.
const REFUSED_MAX: Duration = Duration::from_secs(1);
const SLACK: Duration = Duration::from_secs(2);
/// Exit codes of `base::exit`.
const CONFIGURATION: i32 = 2;
const DATA_REFUSED: i32 = 4;

fn connect(ready: &Ready) -> Connection {
    Connection::open(ready.kafka[0], TIMEOUT).expect("a ready broker takes connections")
}

fn make_topic(ready: &Ready, topic: &str, partitions: i32) {
    let made = connect(ready).create_topic(topic, partitions, &[]);
    assert_eq!(
        made.expect("CreateTopics answers"),
        code::NONE,
        "topic {topic}"
    );
}

/// Produces one record and returns it as it must be read.
fn produce(cluster: &mut Cluster, topic: &str, partition: i32, sequence: u64) -> Record {
    let (_, mut record) = history::make(partition as u32, sequence, 200);
    let bytes = batch::build(NOBODY, std::slice::from_ref(&record));
    let connection = cluster
        .to(topic, partition)
        .expect("the leader takes connections");
    let produced = connection
        .produce(topic, partition, -1, &bytes)
        .expect("Produce answers");
    assert_eq!(produced.error, code::NONE, "{topic}/{partition}");
    record.offset = produced.base_offset;
    record
}

/// Everything in a partition.
fn read_all(ready: &Ready, topic: &str, partition: i32) -> Vec<Record> {
    let mut cluster = Cluster::open(ready.kafka[0], &[topic], TIMEOUT).expect("Metadata answers");
    let connection = cluster
        .to(topic, partition)
        .expect("the leader takes connections");
    let (error, end) = connection
        .list_offset(topic, partition, -1)
        .expect("ListOffsets answers");
    assert_eq!(error, code::NONE, "{topic}/{partition}");
    let mut records: Vec<Record> = Vec::new();
    while (records.len() as i64) < end {
        let from = records.len() as i64;
        let fetched = connection.fetch(topic, &[(partition, from)], 0, 1 << 20);
        let fetched = fetched
            .expect("Fetch answers")
            .pop()
            .expect("one partition");
        assert_eq!(fetched.error, code::NONE, "{topic}/{partition}@{from}");
        let more = batch::parse(&fetched.batches).expect("whole batches");
        assert!(
            !more.is_empty(),
            "nothing at {topic}/{partition}@{from}, the end is {end}"
        );
        records.extend(more.into_iter().filter(|record| record.offset >= from));
    }
    records
}

/// Every file of a folder with its bytes.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).expect("a file can be read");
                files.insert(path, bytes);
            }
        }
    }
    files
}

/// Every file of a folder whose broker has nothing to do any more: the last block is sealed, spare
/// segments are written.
fn quiet_contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut before = contents(folder);
    loop {
        thread::sleep(Duration::from_millis(700));
        let now = contents(folder);
        if now == before {
            return now;
        }
        assert!(Instant::now() < deadline, "an idle broker keeps writing");
        before = now;
    }
}

/// No file has changed.
const NO_FILES: [PathBuf; 0] = [];

/// The files that are not as they were.
fn changed(folder: &Path, before: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<PathBuf> {
    let now = contents(folder);
    let names = before.keys().chain(now.keys());
    let mut changed: Vec<PathBuf> = names
        .filter(|name| before.get(*name) != now.get(*name))
        .cloned()
        .collect();
    changed.sort();
    changed.dedup();
    changed
}

/// Ends by itself, in time, with `code`; the log must say why.
fn refused(options: &Options, expected: i32, reason: &[&str]) {
    let before = fs::read_to_string(options.log()).unwrap_or_default().len();
    let begin = Instant::now();
    let mut broker = Broker::spawn(options);
    let status = broker
        .wait(TIMEOUT)
        .unwrap_or_else(|| panic!("not refused: {options:?}"));
    let took = begin.elapsed();
    let log = fs::read_to_string(options.log())
        .unwrap_or_default()
        .split_off(before);
    println!(
        "refused after {took:?} with {:?}: {}",
        status.code(),
        log.trim()
    );
    assert_eq!(status.code(), Some(expected), "{log}");
    assert!(took < REFUSED_MAX + SLACK, "refused only after {took:?}");
    for word in reason {
        assert!(
            log.contains(word),
            "the reason does not name {word:?}:\n{log}"
        );
    }
    assert!(
        !options.ready_file().exists(),
        "a refused start leaves no ready file"
    );
}

/// Goal: the number of cores is free from start to start. Method: a store of two shards made by one
/// core, opened by 1, 2, 3 and 4 cores in several orders (more cores than CPUs if need be); each
/// reads all that is there and adds to every partition.
#[test]
fn any_number_of_cores_finds_all_data() {
    let home = broker::home("restart-cores");
    let options = Options::new(home.path()).with(&["--shards", "2", "--segment-bytes", "20MiB"]);
    let mut expected: BTreeMap<i32, Vec<Record>> = BTreeMap::new();
    for (round, cores) in [1u32, 2, 3, 4, 2, 1, 4].into_iter().enumerate() {
        let (broker, ready) = Broker::start(&options.clone().cores(cores));
        assert_eq!(ready.shards, 2, "the store keeps its shards");
        if round == 0 {
            make_topic(&ready, "t", 6);
        }
        for (&partition, records) in &expected {
            assert_eq!(
                &read_all(&ready, "t", partition),
                records,
                "{cores} cores, {partition}"
            );
        }
        let mut cluster = Cluster::open(ready.kafka[0], &["t"], TIMEOUT).expect("Metadata answers");
        assert_eq!(cluster.partitions("t"), 6);
        for partition in 0..6 {
            let records = expected.entry(partition).or_default();
            let record = produce(&mut cluster, "t", partition, records.len() as u64);
            assert_eq!(
                record.offset,
                records.len() as i64,
                "offsets go on where they ended"
            );
            records.push(record);
        }
        let took = broker.stop(STOP_MAX);
        println!("{cores} cores: stopped in {took:?}");
    }
}

/// Goal: a second process on the same directory ends within a second, says why, and changes
/// nothing; the first goes on. Method: all bytes of a quiet store before and after.
#[test]
fn a_second_process_on_the_same_directory_changes_nothing() {
    let home = broker::home("restart-lock");
    let options = Options::new(home.path());
    let (broker, ready) = Broker::start(&options);
    make_topic(&ready, "t", 1);
    let mut cluster = Cluster::open(ready.kafka[0], &["t"], TIMEOUT).expect("Metadata answers");
    produce(&mut cluster, "t", 0, 0);
    let before = quiet_contents(&options.data());
    // A home of its own for log and ready file; the data directory is the same, by another path.
    let second = Options::new(&home.path().join("second"));
    fs::create_dir_all(&second.home).expect("a folder");
    std::os::unix::fs::symlink(options.data(), second.data()).expect("another path");
    refused(&second, DATA_REFUSED, &["data"]);
    assert_eq!(changed(&options.data(), &before), NO_FILES);
    produce(&mut cluster, "t", 0, 1);
    assert_eq!(read_all(&ready, "t", 0).len(), 2);
    broker.stop(STOP_MAX);
}

/// Goal: an address that is taken, by another broker or anybody else, is a refusal with the address
/// in its text, and no store is made or changed.
#[test]
fn a_second_process_on_the_same_address_is_refused() {
    let home = broker::home("restart-address");
    let (broker, ready) = Broker::start(&Options::new(&home.path().join("first")));
    let taken = ready.kafka[0].to_string();
    let other = Options::new(&home.path().join("other")).with(&["--kafka", &taken]);
    refused(&other, CONFIGURATION, &[&taken]);
    assert!(!other.data().exists(), "a refused start made a store");

    let taken = ready.http.to_string();
    let other = Options::new(&home.path().join("third")).with(&["--http", &taken]);
    refused(&other, CONFIGURATION, &[&taken]);
    assert!(!other.data().exists(), "a refused start made a store");

    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = listener.local_addr().expect("bound").to_string();
    let other = Options::new(&home.path().join("fourth")).with(&["--kafka", &taken]);
    refused(&other, CONFIGURATION, &[&taken]);
    make_topic(&ready, "still-there", 1);
    broker.stop(STOP_MAX);
}

/// Goal: `--no-create` refuses to make a store (a volume that is not mounted), and opens one.
#[test]
fn no_create_refuses_to_make_a_store() {
    let home = broker::home("restart-no-create");
    let strict = Options::new(home.path()).with(&["--no-create"]);
    refused(&strict, DATA_REFUSED, &["no-create"]);
    assert!(!strict.data().exists(), "a refused start made a folder");
    fs::create_dir(strict.data()).expect("an empty mount point");
    refused(&strict, DATA_REFUSED, &["no-create"]);
    assert_eq!(
        contents(&strict.data()).len(),
        0,
        "a refused start left files"
    );
    fs::remove_dir(strict.data()).expect("still empty");
    let (broker, _) = Broker::start(&Options::new(home.path()));
    broker.stop(STOP_MAX);
    let (broker, _) = Broker::start(&strict);
    broker.stop(STOP_MAX);
}

/// Goal: SIGTERM under load ends within five seconds with code 0; what was acknowledged is there,
/// what was refused or never answered may be anything, and nothing is torn. Method: pipelined
/// producers, a signal in the middle, then everything read back.
#[test]
fn sigterm_under_load_keeps_what_was_acknowledged() {
    let home = broker::home("restart-sigterm");
    let options = Options::new(home.path()).with(&["--shards", "2"]);
    let (broker, ready) = Broker::start(&options);
    make_topic(&ready, "t", 4);
    let endpoint = ready.kafka[0];
    let producers: Vec<_> = (0..4)
        .map(|partition| thread::spawn(move || pipelined(endpoint, partition)))
        .collect();
    thread::sleep(Duration::from_millis(400));
    let took = broker.stop(STOP_MAX);
    println!("stopped under load in {took:?}");
    let acked: Vec<Vec<Record>> = producers
        .into_iter()
        .map(|producer| producer.join().expect("a producer"))
        .collect();
    let (broker, ready) = Broker::start(&options);
    for (partition, acked) in (0i32..).zip(&acked) {
        assert!(
            !acked.is_empty(),
            "producer {partition} was never acknowledged"
        );
        let records = read_all(&ready, "t", partition);
        for record in acked {
            assert_eq!(
                records.get(record.offset as usize),
                Some(record),
                "partition {partition}"
            );
        }
        println!(
            "partition {partition}: {} acknowledged, {} there",
            acked.len(),
            records.len()
        );
    }
    broker.stop(STOP_MAX);
}

/// Produces eight at a time until the connection ends or refuses: the records acknowledged.
fn pipelined(endpoint: std::net::SocketAddr, partition: i32) -> Vec<Record> {
    let mut cluster = Cluster::open(endpoint, &["t"], TIMEOUT).expect("Metadata answers");
    let connection = cluster
        .to("t", partition)
        .expect("the leader takes connections");
    let mut open = std::collections::VecDeque::new();
    let mut acked = Vec::new();
    for sequence in 0.. {
        let (_, record) = history::make(partition as u32, sequence, 300);
        let bytes = batch::build(NOBODY, std::slice::from_ref(&record));
        let body = support::client::produce_body("t", partition, -1, &bytes);
        if connection.send(0, 7, &body).is_err() {
            break;
        }
        open.push_back(record);
        if open.len() < 8 {
            continue;
        }
        match connection.receive_produced() {
            Ok(produced) if produced.error == code::NONE => {
                let mut record = open.pop_front().expect("an answer to something sent");
                record.offset = produced.base_offset;
                acked.push(record);
            }
            Ok(_) | Err(Failure::Io(_)) => break,
            Err(Failure::Malformed(why)) => panic!("partition {partition}: {why}"),
        }
    }
    // What is still open may yet be answered.
    while let (Some(mut record), Ok(produced)) = (open.pop_front(), connection.receive_produced()) {
        if produced.error == code::NONE {
            record.offset = produced.base_offset;
            acked.push(record);
        }
    }
    acked
}

/// Goal: "cannot find my shard" is not "my shard is empty". Method: a shard's folder, then a mark,
/// are taken away from a store that was once whole: the start is refused, names what is missing,
/// and changes nothing; with the folder back, all is there.
#[test]
fn a_missing_shard_is_refused_and_never_made_anew() {
    let home = broker::home("restart-missing");
    let options = Options::new(home.path()).with(&["--shards", "2"]);
    let (broker, ready) = Broker::start(&options);
    make_topic(&ready, "t", 2);
    let mut cluster = Cluster::open(ready.kafka[0], &["t"], TIMEOUT).expect("Metadata answers");
    let records: Vec<Record> = (0..2).map(|at| produce(&mut cluster, "t", at, 0)).collect();
    broker.stop(STOP_MAX);
    for shard in ["shard-001", "shard-000"] {
        let (folder, aside) = (options.data().join(shard), home.path().join("aside"));
        fs::rename(&folder, &aside).expect("the shard has a folder");
        let before = contents(&options.data());
        refused(&options, DATA_REFUSED, &[shard]);
        assert_eq!(changed(&options.data(), &before), NO_FILES);
        fs::rename(&aside, &folder).expect("nothing was made in its place");
    }
    let (broker, ready) = Broker::start(&options);
    for (partition, record) in (0i32..).zip(records) {
        assert_eq!(read_all(&ready, "t", partition), [record]);
    }
    broker.stop(STOP_MAX);
}

/// Goal: fetches that wait for minutes, and clients that read no answer, do not hold a stop up;
/// clients that left while their fetch waited are forgotten at once, not when it would have ended.
/// Method: fifty of each; the number of open connections; SIGTERM.
#[test]
fn waiting_fetches_hold_up_neither_a_stop_nor_a_connection() {
    let home = broker::home("restart-waiting");
    let (broker, ready) = Broker::start(&Options::new(home.path()));
    make_topic(&ready, "t", 1);
    let wait = || {
        let mut connection = connect(&ready);
        let body = support::client::fetch_body("t", &[(0, 0)], 240_000, 1 << 20);
        connection.send(1, 11, &body).expect("a request is taken");
        connection
    };
    let gone: Vec<Connection> = (0..50).map(|_| wait()).collect();
    thread::sleep(Duration::from_millis(300));
    drop(gone);
    let deadline = Instant::now() + TIMEOUT;
    while open_connections(&ready) > 0 {
        assert!(
            Instant::now() < deadline,
            "{} connections are still open",
            open_connections(&ready)
        );
        thread::sleep(Duration::from_millis(50));
    }
    let _waiting: Vec<Connection> = (0..50).map(|_| wait()).collect();
    thread::sleep(Duration::from_millis(300));
    assert_eq!(open_connections(&ready), 50);
    let took = broker.stop(STOP_MAX);
    println!("stopped with fifty waiting fetches in {took:?}");
}

/// Kafka connections that are open, as the metrics say.
fn open_connections(ready: &Ready) -> u64 {
    let (_, text) = broker::http_get(ready.http, "/metrics").expect("HTTP is served");
    let values = text
        .lines()
        .filter(|line| line.starts_with("penstock_connections_open"));
    let value = |line: &str| {
        line.rsplit(' ')
            .next()
            .and_then(|value| value.parse::<f64>().ok())
    };
    values
        .map(|line| value(line).expect("a number") as u64)
        .sum()
}

/// Goal: a ready file left by a crash tells nobody that a broker serves. Method: a stale one lies
/// there; it is gone before the start is decided, and after a clean stop; a refused start removes
/// it.
#[test]
fn a_stale_ready_file_is_removed_first() {
    let home = broker::home("restart-stale");
    let options = Options::new(home.path());
    let (broker, _) = Broker::start(&options);
    broker.kill();
    let stale = fs::read(options.ready_file()).expect("a crash leaves the ready file");
    let mut broker = Broker::spawn_as_is(&options);
    let ready = broker
        .wait_ready(TIMEOUT)
        .expect("it starts beside a stale file");
    assert_ne!(fs::read(options.ready_file()).expect("a new one"), stale);
    assert_eq!(ready.pid, broker.pid());
    broker.stop(STOP_MAX);
    assert!(
        !options.ready_file().exists(),
        "a clean stop removes the ready file"
    );

    fs::write(options.ready_file(), &stale).expect("a stale file");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = listener.local_addr().expect("bound").to_string();
    let options = options.with(&["--kafka", &taken]);
    let mut broker = Broker::spawn_as_is(&options);
    let status = broker.wait(TIMEOUT).expect("the address is taken");
    assert_eq!(status.code(), Some(CONFIGURATION), "{}", broker.log_tail());
    assert!(
        !options.ready_file().exists(),
        "a refused start removes a stale ready file"
    );
}

/// Goal: a second SIGTERM stops at once, and the store opens again without loss.
#[test]
fn two_signals_stop_at_once_and_lose_nothing() {
    let home = broker::home("restart-twice");
    let options = Options::new(home.path());
    let (mut broker, ready) = Broker::start(&options);
    make_topic(&ready, "t", 1);
    let mut cluster = Cluster::open(ready.kafka[0], &["t"], TIMEOUT).expect("Metadata answers");
    let records: Vec<Record> = (0..50)
        .map(|index| produce(&mut cluster, "t", 0, index))
        .collect();
    broker.signal(15);
    broker.signal(2);
    assert!(
        broker.wait(STOP_MAX).is_some(),
        "two signals, and still there"
    );
    let (broker, ready) = Broker::start(&options);
    assert_eq!(read_all(&ready, "t", 0), records);
    broker.stop(STOP_MAX);
}
