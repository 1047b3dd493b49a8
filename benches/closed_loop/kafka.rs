//! Produce version 7 with `acks=all`, one batch a request, to any broker of the Kafka protocol.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{Next, Protocol};
use crate::support::batch::{self, NOBODY, Record};
use crate::support::client::{Connection, code, frame, produce_body};
use crate::support::cluster::Cluster;

const TIMEOUT: Duration = Duration::from_secs(30);
const PRODUCE: i16 = 0;
const PRODUCE_VERSION: i16 = 7;

/// A topic and the shape of what is sent to it.
pub struct Kafka {
    topic: String,
    partitions: i32,
    leaders: Vec<SocketAddr>,
    message_bytes: usize,
    batch_messages: usize,
    /// Where the error code lies in an answer, its length prefix included.
    error_at: usize,
}

impl Kafka {
    /// Makes the topic unless it is there, and waits until every partition takes messages.
    pub fn open(
        bootstrap: SocketAddr,
        topic: &str,
        partitions: i32,
        (message_bytes, batch_messages): (usize, usize),
    ) -> Kafka {
        let mut connection = Connection::open(bootstrap, TIMEOUT).expect("the broker is there");
        let made = connection.create_topic(topic, partitions, &[]);
        let made = made.expect("CreateTopics answers");
        assert!(
            [code::NONE, code::TOPIC_ALREADY_EXISTS].contains(&made),
            "no topic: error {made}"
        );
        let mut cluster = led(bootstrap, topic, partitions);
        for partition in 0..partitions {
            taking(&mut cluster, topic, partition);
        }
        Kafka {
            topic: topic.to_owned(),
            partitions,
            leaders: (0..partitions)
                .map(|partition| cluster.leader(topic, partition))
                .collect(),
            message_bytes,
            batch_messages,
            error_at: 4 + 4 + 4 + 2 + topic.len() + 4 + 4,
        }
    }

    fn partition(&self, index: usize) -> usize {
        index % self.partitions as usize
    }
}

/// Metadata in which every partition has a leader.
fn led(bootstrap: SocketAddr, topic: &str, partitions: i32) -> Cluster {
    for _ in 0..300 {
        let cluster = Cluster::open(bootstrap, &[topic], TIMEOUT).expect("Metadata answers");
        if cluster.partitions(topic) == partitions as usize {
            return cluster;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{topic} has no {partitions} leaders after 30 s");
}

/// Sends one message until it is taken: a leader may be named before it knows of its office.
fn taking(cluster: &mut Cluster, topic: &str, partition: i32) {
    let bytes = batch::build(NOBODY, &[Record::default()]);
    let leader = cluster.to(topic, partition).expect("the leader is there");
    for _ in 0..300 {
        let produced = leader.produce(topic, partition, -1, &bytes);
        if produced.expect("Produce answers").error == code::NONE {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("partition {partition} took nothing for 30 s");
}

impl Protocol for Kafka {
    fn connect(&self, index: usize) -> TcpStream {
        let stream = TcpStream::connect(self.leaders[self.partition(index)]);
        stream.expect("the leader takes connections")
    }

    fn request(&self, index: usize) -> Vec<u8> {
        let record = Record {
            timestamp_ms: 1_700_000_000_000,
            value: Some(vec![b'm'; self.message_bytes]),
            ..Record::default()
        };
        let bytes = batch::build(NOBODY, &vec![record; self.batch_messages]);
        let partition = self.partition(index) as i32;
        let body = produce_body(&self.topic, partition, -1, &bytes);
        frame(PRODUCE, PRODUCE_VERSION, index as i32, &body)
    }

    fn next(&self, received: &[u8]) -> Next {
        let Some(length) = received.first_chunk::<4>() else {
            return Next::Partial;
        };
        let whole = 4 + u32::from_be_bytes(*length) as usize;
        if received.len() < whole {
            return Next::Partial;
        }
        let error = [received[self.error_at], received[self.error_at + 1]];
        assert_eq!(i16::from_be_bytes(error), code::NONE, "a refusal");
        Next::Acknowledged(whole)
    }
}
