//! What a load is: settings that make sense together, and the arithmetic that follows from them.
//!
//! [`schedule`] says when each message is meant to be sent, [`message`] what it is made of,
//! [`spread`] where it goes, [`timeline`] in which interval it counts.

pub mod chance;
pub mod message;
pub mod schedule;
pub mod spread;
pub mod timeline;

use crate::base::record_batch::Codec;
use crate::wire::Text;
use core::net::SocketAddr;
use message::{Filler, Keys, STAMP_BYTES, Sizes};
use schedule::Arrivals;
use std::sync::Arc;

/// A load, without its rates: those come one [`Stage`](crate::load::worker::Stage) after the other.
#[derive(Debug)]
pub struct Plan {
    /// Of every random choice.
    pub seed: u64,
    /// Stamped into every payload, to tell our own from those of other runs.
    pub run: u32,
    /// CPU of each worker.
    pub cpus: Vec<usize>,
    /// What is sent; `None` to consume only.
    pub produce: Option<Produce>,
    /// What is read; `None` to produce only.
    pub consume: Option<Consume>,
    /// Whether every payload proves itself.
    pub verify: bool,
    /// How long a request may take, in nanoseconds.
    pub timeout_ns: u64,
    /// How long the end waits for answers, in nanoseconds.
    pub drain_ns: u64,
    /// Length of an interval, in nanoseconds.
    pub interval_ns: u64,
    /// Whether somebody watches the percentiles of the last second.
    pub watched: bool,
    /// The cluster.
    pub target: Target,
}

/// What is sent and how.
#[derive(Debug)]
pub struct Produce {
    /// Producers of the whole load, over all processes.
    pub producers: u32,
    /// Which of them are this process's: those whose number leaves `.0` over `.1`.
    pub part: (u32, u32),
    /// How messages are spread within a rate.
    pub arrivals: Arrivals,
    /// Sizes of the payloads.
    pub sizes: Sizes,
    /// Keys.
    pub keys: Keys,
    /// Bytes of the payloads.
    pub filler: Filler,
    /// Whether payloads say what they are.
    pub stamped: bool,
    /// 0, 1 or -1.
    pub acks: i16,
    /// Whether producers have ids and sequences.
    pub idempotent: bool,
    /// Compression of the batches.
    pub codec: Codec,
    /// A request takes no further message once it has so many bytes.
    pub batch_bytes: usize,
    /// A request takes no further message once it has so many.
    pub batch_messages: usize,
    /// How long a message waits for others, in nanoseconds.
    pub linger_ns: u64,
    /// Requests on their way, for each connection.
    pub in_flight: usize,
    /// How often a request that failed is sent again.
    pub retries: u32,
}

/// What is read and how.
#[derive(Clone, Debug)]
pub struct Consume {
    /// Consumers in each set; each partition belongs to one of a set.
    pub consumers: u32,
    /// Independent sets, each of which reads every message.
    pub sets: u32,
    /// Whether reading ends at [`Partition::end`] rather than with the load.
    pub until_end: bool,
    /// Most bytes in one answer.
    pub fetch_bytes: i32,
    /// Most bytes of one partition in one answer.
    pub partition_bytes: i32,
    /// Fewest bytes worth an answer.
    pub min_bytes: i32,
    /// How long the broker may wait for them, in milliseconds.
    pub max_wait_ms: i32,
}

/// Where it goes.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// Names of the topics.
    pub topics: Vec<Text>,
    /// Partitions of all topics, topic by topic, in order of their index.
    pub partitions: Vec<Partition>,
    /// Who leads each partition.
    pub leaders: Arc<Leaders>,
}

/// A partition of the load.
#[derive(Clone, Copy, Debug)]
pub struct Partition {
    /// Which of the topics.
    pub topic: usize,
    /// Index in the topic.
    pub index: i32,
    /// Partitions of that topic.
    pub of: i32,
    /// Where reading begins.
    pub begin: i64,
    /// Where reading ends, if it does.
    pub end: i64,
}

/// Who leads each partition, as far as was last heard. Made anew as a whole.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Leaders {
    /// Address of the leader, in the order of [`Target::partitions`].
    pub addresses: Vec<SocketAddr>,
}

impl Produce {
    /// The producers of this process.
    pub fn own(&self) -> impl Iterator<Item = u32> + use<> {
        let (index, parts) = self.part;
        (0..self.producers).filter(move |producer| producer % parts == index)
    }

    /// Whether every payload is long enough to say what it is.
    #[must_use]
    pub fn can_be_stamped(sizes: &Sizes) -> bool {
        sizes.least() >= STAMP_BYTES
    }
}
