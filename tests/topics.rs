//! The life of topics over the wire.
//!
//! Goal: a deleted topic is gone on every core, before and after a restart, and a new one of the
//! same name starts empty at offset 0; a topic that grows keeps its records; producer ids are never
//! given twice, also across a kill. Method: the real binary on two cores, every request on each
//! endpoint.

mod support;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use support::batch::{self, NOBODY};
use support::broker::{self, Broker, Options, Ready};
use support::bytes::{Reader, Writer};
use support::client::{Connection, code};
use support::cluster::Cluster;
use support::history;

const TIMEOUT: Duration = Duration::from_secs(20);
const DELETE_TOPICS: i16 = 20;
const CREATE_PARTITIONS: i16 = 37;
const LATEST: i64 = -1;

fn open(address: SocketAddr) -> Connection {
    Connection::open(address, TIMEOUT).expect("a ready broker takes connections")
}

fn create(ready: &Ready, topic: &str, partitions: i32) {
    let made = open(ready.kafka[0]).create_topic(topic, partitions, &[]);
    assert_eq!(made.expect("CreateTopics answers"), code::NONE);
}

/// DeleteTopics v1 of one topic: the error code.
fn delete(address: SocketAddr, topic: &str) -> i16 {
    let mut body = Vec::new();
    body.put_i32(1);
    body.put_string(Some(topic));
    body.put_i32(30_000);
    let answer = open(address)
        .call(DELETE_TOPICS, 1, &body)
        .expect("DeleteTopics answers");
    let mut reader = Reader(&answer);
    reader.i32().expect("throttle time");
    assert_eq!(reader.count().expect("a count"), 1);
    assert_eq!(reader.string().expect("a name").as_deref(), Some(topic));
    reader.i16().expect("an error code")
}

/// CreatePartitions v0 of one topic: the error code.
fn grow(address: SocketAddr, topic: &str, partitions: i32) -> i16 {
    let mut body = Vec::new();
    body.put_i32(1);
    body.put_string(Some(topic));
    body.put_i32(partitions);
    body.put_i32(-1);
    body.put_i32(30_000);
    body.put_i8(0);
    let answer = open(address)
        .call(CREATE_PARTITIONS, 0, &body)
        .expect("an answer");
    let mut reader = Reader(&answer);
    reader.i32().expect("throttle time");
    assert_eq!(reader.count().expect("a count"), 1);
    reader.string().expect("a name");
    reader.i16().expect("an error code")
}

fn fill(ready: &Ready, topic: &str, partitions: i32, records: u64) {
    let mut cluster = Cluster::open(ready.kafka[0], &[topic], TIMEOUT).expect("metadata");
    for partition in 0..partitions {
        for sequence in 0..records {
            let (_, record) = history::make(3, sequence, 300);
            let bytes = batch::build(NOBODY, &[record]);
            let connection = cluster.to(topic, partition).expect("a leader");
            let produced = connection
                .produce(topic, partition, -1, &bytes)
                .expect("an answer");
            assert_eq!(produced.error, code::NONE);
            assert_eq!(produced.base_offset, i64::try_from(sequence).expect("few"));
        }
    }
}

fn ends(ready: &Ready, topic: &str, partition: i32) -> Vec<(i16, i64)> {
    let ask = |address: &SocketAddr| {
        open(*address)
            .list_offset(topic, partition, LATEST)
            .expect("an answer")
    };
    ready.kafka.iter().map(ask).collect()
}

#[test]
fn a_deleted_topic_is_gone_and_its_name_starts_anew() {
    let home = broker::home("topics-delete");
    let options = Options::new(home.path()).cores(2);
    let (broker, ready) = Broker::start(&options);
    create(&ready, "again", 4);
    fill(&ready, "again", 4, 10);
    assert_eq!(delete(ready.kafka[1], "again"), code::NONE);
    assert_eq!(
        delete(ready.kafka[0], "again"),
        code::UNKNOWN_TOPIC_OR_PARTITION
    );
    for partition in 0..4 {
        for (error, _) in ends(&ready, "again", partition) {
            assert_eq!(error, code::UNKNOWN_TOPIC_OR_PARTITION);
        }
    }
    create(&ready, "again", 2);
    fill(&ready, "again", 2, 3);
    broker.kill();

    let (broker, ready) = Broker::start(&options);
    for partition in 0..2 {
        for found in ends(&ready, "again", partition) {
            assert_eq!(found, (code::NONE, 3), "only the new topic's records");
        }
    }
    for (error, _) in ends(&ready, "again", 3) {
        assert_eq!(
            error,
            code::UNKNOWN_TOPIC_OR_PARTITION,
            "the old topic had it"
        );
    }
    broker.stop(TIMEOUT);
}

#[test]
fn a_topic_grows_and_keeps_its_records() {
    let home = broker::home("topics-grow");
    let options = Options::new(home.path()).cores(2);
    let (broker, ready) = Broker::start(&options);
    create(&ready, "grows", 2);
    fill(&ready, "grows", 2, 5);
    assert_ne!(
        grow(ready.kafka[1], "grows", 2),
        code::NONE,
        "two is not more than two"
    );
    assert_eq!(grow(ready.kafka[1], "grows", 6), code::NONE);
    broker.kill();
    let (broker, ready) = Broker::start(&options);
    for partition in 0..6 {
        let expected = if partition < 2 { 5 } else { 0 };
        for found in ends(&ready, "grows", partition) {
            assert_eq!(found, (code::NONE, expected), "partition {partition}");
        }
    }
    broker.stop(TIMEOUT);
}

#[test]
fn producer_ids_are_never_given_twice() {
    let home = broker::home("topics-ids");
    let options = Options::new(home.path()).cores(2);
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let (broker, ready) = Broker::start(&options);
        for address in &ready.kafka {
            let mut connection = open(*address);
            for _ in 0..50 {
                let (error, id, epoch) = connection.init_producer_id().expect("an answer");
                assert_eq!((error, epoch), (code::NONE, 0));
                assert!(seen.insert(id), "producer id {id} was given twice");
            }
        }
        broker.kill();
    }
    assert_eq!(seen.len(), 300);
}
