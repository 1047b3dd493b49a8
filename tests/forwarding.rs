//! Two cores: who follows the metadata never crosses a core; who does not is served all the same.
//!
//! Goal: a client that asks each partition's leader causes no forwarded part; one that sends
//! everything to one endpoint gets the same answers (produce, fetch of several partitions at once,
//! a long poll that waits for another core's commit, offsets); both are counted in `/dump`. Method:
//! the real binary on two cores and two shards.

mod support;

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use support::batch::{self, NOBODY};
use support::broker::{self, Broker, Options, Ready};
use support::client::{Connection, code};
use support::cluster::Cluster;
use support::history;

const TIMEOUT: Duration = Duration::from_secs(20);
const PARTITIONS: i32 = 8;
const ROUNDS: u64 = 5;
const LATEST: i64 = -1;

/// Parts sent to and received from another core, of the whole process.
fn forwarded(http: SocketAddr) -> (u64, u64) {
    let (status, body) = broker::http_get(http, "/dump").expect("the broker answers");
    assert_eq!(status, 200);
    let dump: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    let figure = |name: &str| dump["total"]["forward"][name].as_u64().expect("a counter");
    (figure("sent"), figure("received"))
}

fn open(address: SocketAddr) -> Connection {
    Connection::open(address, TIMEOUT).expect("a ready broker takes connections")
}

fn produce(connection: &mut Connection, topic: &str, partition: i32, sequence: u64) -> i64 {
    let (_, record) = history::make(7, sequence, 100);
    let bytes = batch::build(NOBODY, &[record]);
    let produced = connection
        .produce(topic, partition, -1, &bytes)
        .expect("Produce answers");
    assert_eq!(produced.error, code::NONE);
    produced.base_offset
}

fn start(home: &std::path::Path) -> (Broker, Ready) {
    let (broker, ready) = Broker::start(&Options::new(home).cores(2));
    assert_eq!(ready.kafka.len(), 2, "two cores have an endpoint each");
    let made = open(ready.kafka[0]).create_topic("spread", PARTITIONS, &[]);
    assert_eq!(made.expect("CreateTopics answers"), code::NONE);
    (broker, ready)
}

#[test]
fn who_follows_the_metadata_crosses_no_core() {
    let home = broker::home("forwarding-none");
    let (broker, ready) = start(home.path());
    let mut cluster = Cluster::open(ready.kafka[0], &["spread"], TIMEOUT).expect("metadata");
    for round in 0..ROUNDS {
        for partition in 0..PARTITIONS {
            let connection = cluster.to("spread", partition).expect("a leader");
            let offset = produce(connection, "spread", partition, round);
            assert_eq!(offset, i64::try_from(round).expect("few"));
            let from = [(partition, offset)];
            let fetched = connection
                .fetch("spread", &from, 1_000, 1 << 20)
                .expect("an answer");
            assert_eq!(fetched[0].error, code::NONE);
            let records = batch::parse(&fetched[0].batches).expect("whole batches");
            assert_eq!(records.len(), 1);
        }
    }
    assert_eq!(forwarded(ready.http), (0, 0));
    broker.stop(TIMEOUT);
}

#[test]
fn who_does_not_is_served_all_the_same() {
    let home = broker::home("forwarding-all");
    let (broker, ready) = start(home.path());
    for (index, endpoint) in ready.kafka.iter().enumerate() {
        let mut connection = open(*endpoint);
        for round in 0..ROUNDS {
            for partition in 0..PARTITIONS {
                let expected = i64::try_from(index as u64 * ROUNDS + round).expect("few");
                assert_eq!(
                    produce(&mut connection, "spread", partition, round),
                    expected
                );
            }
        }
    }
    let all = i64::try_from(2 * ROUNDS).expect("few");
    for endpoint in &ready.kafka {
        let mut connection = open(*endpoint);
        let from: Vec<(i32, i64)> = (0..PARTITIONS).map(|partition| (partition, 0)).collect();
        let fetched = connection
            .fetch("spread", &from, 1_000, 1 << 20)
            .expect("an answer");
        assert_eq!(fetched.len(), from.len());
        for (answer, (partition, _)) in fetched.iter().zip(&from) {
            assert_eq!((answer.partition, answer.error), (*partition, code::NONE));
            assert_eq!(answer.high_watermark, all);
            let records = batch::parse(&answer.batches).expect("whole batches");
            let offsets: Vec<i64> = records.iter().map(|record| record.offset).collect();
            assert_eq!(
                offsets,
                (0..all).collect::<Vec<i64>>(),
                "partition {partition}"
            );
        }
        for partition in 0..PARTITIONS {
            let found = connection
                .list_offset("spread", partition, LATEST)
                .expect("an answer");
            assert_eq!(found, (code::NONE, all));
        }
    }
    let (sent, received) = forwarded(ready.http);
    assert!(sent > 0, "half of the parts were sent to the other core");
    assert_eq!(sent, received, "what one core sent another received");
    broker.stop(TIMEOUT);
}

/// A long poll on the wrong core is woken by the owner's commit, not by its own patience.
#[test]
fn a_long_poll_crosses_cores() {
    let home = broker::home("forwarding-poll");
    let (broker, ready) = start(home.path());
    let cluster = Cluster::open(ready.kafka[0], &["spread"], TIMEOUT).expect("metadata");
    let leader = cluster.leader("spread", 0);
    let other = *ready
        .kafka
        .iter()
        .find(|address| **address != leader)
        .expect("two endpoints");
    let waiting = thread::spawn(move || {
        let from = [(0, 0), (1, 0)];
        open(other)
            .fetch("spread", &from, 15_000, 1 << 20)
            .expect("an answer")
    });
    thread::sleep(Duration::from_millis(300));
    let started = Instant::now();
    produce(&mut open(leader), "spread", 0, 1);
    let fetched = waiting.join().expect("the consumer lives");
    assert!(
        started.elapsed() < Duration::from_secs(10),
        "woken long before its 15 s are over"
    );
    let found = fetched
        .iter()
        .find(|answer| answer.partition == 0)
        .expect("it asked for it");
    assert_eq!(
        batch::parse(&found.batches).expect("whole batches").len(),
        1
    );
    broker.stop(TIMEOUT);
}
