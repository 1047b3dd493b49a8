//! Sends records and knows, for each, whether it was acknowledged.
//!
//! Records gather in one batch a partition. A flush sends one batch of each partition to its
//! leader, all leaders at once, and waits. A batch that must be sent again keeps its bytes and its
//! sequence numbers, so that the broker tells a retry from a new record. Invariant: of one
//! partition at most one batch is on its way, so records keep their order.

use super::client::{Backoff, Client, ClientError, describe_code};
use super::record::Record;
use crate::base::murmur2::partition_of;
use crate::base::record_batch::{BatchBuilder, BatchView, Codec, RecordData};
use crate::env::process;
use crate::limits;
use crate::wire::messages::InitProducerIdRequest;
use crate::wire::produce::{ProducePartition, ProduceRequest, ProduceTopic};
use crate::wire::{ErrorCode, Response, Text, codec};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

const TIMEOUT_MS: i32 = 30_000;
/// Batches gathered for all partitions together before they are sent.
const GATHERED_BYTES: usize = 4 * limits::CLIENT_BATCH_BYTES;

/// How to send.
#[derive(Clone, Debug)]
pub struct Options {
    /// The topic.
    pub topic: String,
    /// 0, 1 or -1.
    pub acks: i16,
    /// How batches are compressed.
    pub codec: Codec,
    /// Whether retries must not make a second copy.
    pub idempotent: bool,
}

/// A record that was acknowledged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Acknowledged {
    /// The caller's number of it.
    pub number: u64,
    /// Where it is.
    pub partition: i32,
    /// Its offset; -1 where the broker does not say.
    pub offset: i64,
}

/// A record that was not acknowledged, and why.
#[derive(Clone, Debug)]
pub struct Unacknowledged {
    /// The caller's number of the first such record.
    pub first: u64,
    /// How many there are.
    pub count: u64,
    /// Why the first was not.
    pub reason: String,
}

struct Gathered {
    number: u64,
    record: Record,
}

#[derive(Default)]
struct Lane {
    queue: VecDeque<Gathered>,
    bytes: usize,
    sequence: i32,
}

/// Sends records to one topic.
pub struct Sender {
    client: Client,
    options: Options,
    producer: Option<(i64, i16)>,
    partitions: i32,
    lanes: BTreeMap<i32, Lane>,
    gathered_bytes: usize,
    sticky: i32,
    failure: Option<String>,
    /// Acknowledged since the caller last took them.
    acknowledged: Vec<Acknowledged>,
}

impl Sender {
    /// Finds the topic (the broker may make it) and, if idempotent, gets a producer id.
    ///
    /// # Errors
    /// The broker cannot be reached, or refuses the topic.
    pub fn open(mut client: Client, options: Options) -> Result<Sender, ClientError> {
        let topic = client.topic(&options.topic, true)?;
        let partitions = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        let producer = if options.idempotent {
            Some(producer_id(&mut client)?)
        } else {
            None
        };
        // Several producers started together should not all begin with the same partition.
        let start = u32::from_be_bytes(process::random_bytes::<4>()) >> 1;
        let sticky = i32::try_from(start).unwrap_or(0) % partitions.max(1);
        Ok(Sender {
            client,
            options,
            producer,
            partitions,
            lanes: BTreeMap::new(),
            gathered_bytes: 0,
            sticky,
            failure: None,
            acknowledged: Vec::new(),
        })
    }

    /// Partitions of the topic.
    #[must_use]
    pub fn partitions(&self) -> i32 {
        self.partitions
    }

    /// Adds a record; sends when enough is gathered. `number` rises from call to call.
    ///
    /// # Errors
    /// Why this record cannot be sent at all; others may be.
    pub fn add(&mut self, number: u64, record: Record) -> Result<(), String> {
        // Its time is when it was read; a retry must not change it.
        let mut record = record;
        record.timestamp_ms.get_or_insert_with(process::unix_ms);
        let bytes = record.bytes();
        let room = limits::FRAME_BYTES_MAX - limits::FRAME_OVERHEAD_BYTES_MAX;
        if bytes > room {
            return Err(format!(
                "it has {bytes} bytes, and no broker takes more than {room}"
            ));
        }
        let partition = match record.partition {
            Some(partition) if partition < self.partitions => partition,
            Some(partition) => {
                return Err(format!(
                    "it is meant for partition {partition}, but {} has {} only",
                    self.options.topic, self.partitions
                ));
            }
            None => self.choose(record.key.as_deref()),
        };
        let lane = self.lanes.entry(partition).or_default();
        let full = !lane.queue.is_empty()
            && (lane.bytes + bytes > limits::CLIENT_BATCH_BYTES
                || lane.queue.len() >= limits::CLIENT_BATCH_RECORDS_MAX);
        if full {
            self.flush();
        }
        let lane = self.lanes.entry(partition).or_default();
        lane.queue.push_back(Gathered { number, record });
        lane.bytes += bytes;
        self.gathered_bytes += bytes;
        if lane.bytes >= limits::CLIENT_BATCH_BYTES {
            self.sticky = (self.sticky + 1) % self.partitions;
        }
        if self.gathered_bytes >= GATHERED_BYTES {
            self.flush();
        }
        Ok(())
    }

    /// The partition of a key, as every Kafka client chooses it; without a key, the one whose batch
    /// is being filled.
    fn choose(&self, key: Option<&[u8]>) -> i32 {
        match key {
            Some(key) => partition_of(key, self.partitions),
            None => self.sticky,
        }
    }

    /// Whether records are gathered and not sent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lanes.values().all(|lane| lane.queue.is_empty())
    }

    /// Whether a record failed for good; nothing is sent any more.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Takes what was acknowledged since the last call, in order within a partition.
    pub fn take_acknowledged(&mut self) -> Vec<Acknowledged> {
        std::mem::take(&mut self.acknowledged)
    }

    /// What is left that was not acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> Option<Unacknowledged> {
        let numbers = || {
            self.lanes
                .values()
                .flat_map(|lane| &lane.queue)
                .map(|item| item.number)
        };
        let reason = self
            .failure
            .clone()
            .unwrap_or_else(|| "it was not sent".into());
        Some(Unacknowledged {
            first: numbers().min()?,
            count: numbers().count() as u64,
            reason,
        })
    }

    /// Sends all that is gathered and waits for it. After a failure nothing more is sent: what was
    /// not acknowledged stays gathered.
    pub fn flush(&mut self) {
        let mut backoff = Backoff::default();
        // How many records of a lane go at once; a batch that is too large is halved.
        let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
        while self.failure.is_none() && !self.is_empty() {
            let round = self.round(&mut counts);
            self.gathered_bytes = self.lanes.values().map(|lane| lane.bytes).sum();
            match round {
                Ok(progress) => {
                    if progress {
                        backoff = Backoff::default();
                    }
                }
                Err(error) => {
                    self.client.forget_topic(&self.options.topic);
                    if let Err(error) = backoff.wait_after(error) {
                        self.failure = Some(error.to_string());
                    }
                }
            }
        }
        if !self.partitions_filling() {
            self.sticky = (self.sticky + 1) % self.partitions;
        }
    }

    fn partitions_filling(&self) -> bool {
        self.lanes
            .get(&self.sticky)
            .is_some_and(|lane| !lane.queue.is_empty())
    }

    /// Sends one batch of each partition. Says whether something was acknowledged; a retriable
    /// error is returned once all answers are in.
    fn round(&mut self, counts: &mut BTreeMap<i32, usize>) -> Result<bool, ClientError> {
        let mut by_leader: BTreeMap<String, Vec<(i32, Bytes, usize)>> = BTreeMap::new();
        let waiting: Vec<i32> = self.lanes.keys().copied().collect();
        for partition in waiting {
            if self.lanes[&partition].queue.is_empty() {
                continue;
            }
            let leader = self.client.leader(&self.options.topic, partition)?;
            let most = counts.get(&partition).copied().unwrap_or(usize::MAX);
            let (batch, count) = self.batch(partition, most)?;
            by_leader
                .entry(leader)
                .or_default()
                .push((partition, batch, count));
        }
        let mut trouble = None;
        let mut sent = Vec::new();
        for (leader, batches) in by_leader {
            match self.send(&leader, &batches) {
                Ok(()) => sent.push((leader, batches)),
                Err(error) => trouble = Some(error),
            }
        }
        let mut progress = false;
        for (leader, batches) in sent {
            match self.receive(&leader, &batches, counts) {
                Ok(acknowledged) => progress |= acknowledged,
                Err(error) => trouble = Some(error),
            }
        }
        trouble.map_or(Ok(progress), Err)
    }

    /// The next batch of a partition, with how many records are in it.
    fn batch(&self, partition: i32, most: usize) -> Result<(Bytes, usize), ClientError> {
        let lane = &self.lanes[&partition];
        let mut builder = BatchBuilder::new();
        if let Some((id, epoch)) = self.producer {
            builder = builder.producer(id, epoch, lane.sequence);
        }
        let count = lane.queue.len().min(most);
        for item in lane.queue.iter().take(count) {
            let record = &item.record;
            let headers = record.headers.iter();
            let headers: Vec<_> = headers
                .map(|(key, value)| (key.as_str(), value.as_deref()))
                .collect();
            builder.append(&RecordData {
                key: record.key.as_deref(),
                value: record.value.as_deref(),
                headers: &headers,
                timestamp: record.timestamp_ms.unwrap_or(-1),
            });
        }
        let mut batch = builder.finish();
        if self.options.codec != Codec::None {
            let view = BatchView::only(&batch).expect("the builder makes one whole batch");
            batch = codec::compress_batch(&view, self.options.codec).map_err(|error| {
                ClientError::Protocol {
                    address: "itself".into(),
                    problem: error.to_string(),
                }
            })?;
        }
        Ok((Bytes::from(batch), count))
    }

    fn send(&mut self, leader: &str, batches: &[(i32, Bytes, usize)]) -> Result<(), ClientError> {
        let partitions = batches
            .iter()
            .map(|(partition, batch, _)| ProducePartition {
                index: *partition,
                records: Some(batch.clone()),
            });
        let topic = ProduceTopic {
            name: Text::from(self.options.topic.as_str()),
            partitions: partitions.collect(),
            ..ProduceTopic::default()
        };
        let request = ProduceRequest {
            transactional_id: None,
            acks: self.options.acks,
            timeout_ms: TIMEOUT_MS,
            topics: vec![topic].into(),
        };
        let sent = self.client.connection(leader)?.send(&request.into());
        if sent.is_err() {
            self.client.disconnect(leader);
        }
        sent
    }

    fn receive(
        &mut self,
        leader: &str,
        batches: &[(i32, Bytes, usize)],
        counts: &mut BTreeMap<i32, usize>,
    ) -> Result<bool, ClientError> {
        if self.options.acks == 0 {
            for (partition, _, count) in batches {
                self.settle(*partition, *count, -1);
            }
            return Ok(true);
        }
        let answer = self.client.connection(leader)?.receive();
        if answer.is_err() {
            self.client.disconnect(leader);
        }
        let connection_error = |client: &mut Client| match client.connection(leader) {
            Ok(connection) => connection.unexpected(),
            Err(error) => error,
        };
        let Response::Produce(response) = answer? else {
            return Err(connection_error(&mut self.client));
        };
        let answers = response
            .topics
            .iter()
            .flat_map(|topic| topic.partitions.to_vec());
        let answers: BTreeMap<i32, _> = answers.map(|answer| (answer.index, answer)).collect();
        let mut trouble = None;
        let mut progress = false;
        for (partition, _, count) in batches {
            let Some(answer) = answers.get(partition) else {
                return Err(connection_error(&mut self.client));
            };
            let code = answer.error_code;
            if code == 0 || code == ErrorCode::DuplicateSequenceNumber.code() {
                // A duplicate is there already, whoever heard of it.
                let offset = if code == 0 { answer.base_offset } else { -1 };
                self.settle(*partition, *count, offset);
                progress = true;
                continue;
            }
            if code == ErrorCode::MessageTooLarge.code() && *count > 1 {
                counts.insert(*partition, count / 2);
                progress = true;
                continue;
            }
            let words = answer.error_message.as_ref().map(ToString::to_string);
            let subject = format!("partition {partition} of {}", self.options.topic);
            let error = ClientError::refused(subject, code, words.clone());
            if !error.is_retriable() {
                self.failure = Some(describe_code(code, words.as_deref()));
            } else {
                trouble = Some(error);
            }
        }
        trouble.map_or(Ok(progress), Err)
    }

    /// Takes the first records of a lane as done.
    fn settle(&mut self, partition: i32, count: usize, base_offset: i64) {
        let lane = self
            .lanes
            .get_mut(&partition)
            .expect("a batch was made of it");
        for (index, item) in (0i64..).zip(lane.queue.drain(..count)) {
            let offset = if base_offset < 0 {
                -1
            } else {
                base_offset + index
            };
            self.acknowledged.push(Acknowledged {
                number: item.number,
                partition,
                offset,
            });
        }
        lane.bytes = lane.queue.iter().map(|item| item.record.bytes()).sum();
        let count = i32::try_from(count).expect("a batch has at most ten thousand records");
        // Sequence numbers go round at 2^31, as every Kafka producer's.
        lane.sequence = lane.sequence.wrapping_add(count) & i32::MAX;
    }
}

fn producer_id(client: &mut Client) -> Result<(i64, i16), ClientError> {
    let request = InitProducerIdRequest {
        transaction_timeout_ms: -1,
        ..Default::default()
    };
    let mut backoff = Backoff::default();
    loop {
        let error = match client.ask_any(&request.clone().into())? {
            Response::InitProducerId(response) if response.error_code == 0 => {
                return Ok((response.producer_id, response.producer_epoch));
            }
            Response::InitProducerId(response) => {
                ClientError::refused("a producer id", response.error_code, None)
            }
            _ => return Err(ClientError::refused("a producer id", -1, None)),
        };
        backoff.wait_after(error)?;
    }
}
