//! Fetch (1): records on their way out, both directions of it.
//!
//! The hot path of a consumer. The broker answers with a [`FetchReply`], whose record data is a
//! list of chunks for each partition (slices of block buffers that other readers share) and is
//! copied once, into the reply. A client reads the same bytes as a [`FetchResponse`].
//!
//! Invariants: `records` is never null in an answer (librdkafka refuses a length of -1); the
//! session id is 0, which declines fetch sessions.

use bytes::Bytes;

use super::messages::{LeaderIdAndEpoch, NodeEndpoint};
use super::schema::{
    Array, EncodeError, Form, LAST, Message, Text, Wire, Writer, message, structure,
};
use crate::base::ids::TopicId;
use crate::wire::header;

structure! {
    /// Which replica asks (KIP-903).
    ReplicaState {
        /// Broker id, -1 from a client.
        replica_id: i32 [0, LAST] = -1,
        /// The broker's epoch.
        replica_epoch: i64 [0, LAST] = -1,
    }
    /// A partition to read.
    FetchPartition {
        /// Index in the topic.
        partition: i32 [0, LAST] = 0,
        /// The epoch the client believes in, -1 for none.
        current_leader_epoch: i32 [9, LAST] = -1,
        /// First offset wanted.
        fetch_offset: i64 [0, LAST] = 0,
        /// Epoch of the last record the client has, -1 for none.
        last_fetched_epoch: i32 [12, LAST] = -1,
        /// A follower's first offset; -1 from a client.
        log_start_offset: i64 [5, LAST] = -1,
        /// Most bytes wanted; one batch may exceed it.
        partition_max_bytes: i32 [0, LAST] = 0,
        @tagged {
            /// A follower's directory.
            replica_directory_id: TopicId [0, 17] = TopicId::default(),
            /// A follower's high watermark.
            high_watermark: i64 [1, 18] = i64::MAX,
        }
    }
    /// A topic to read.
    FetchTopic {
        /// Its name, up to version 12.
        name: Text [0, 12] = Text::default(),
        /// Its id, from version 13.
        topic_id: TopicId [13, LAST] = TopicId::default(),
        /// Its partitions.
        partitions: Array<FetchPartition> [0, LAST] = Array::default(),
    }
    /// Partitions to drop from a session.
    ForgottenTopic {
        /// Its name, up to version 12.
        name: Text [7, 12] = Text::default(),
        /// Its id, from version 13.
        topic_id: TopicId [13, LAST] = TopicId::default(),
        /// The partitions.
        partitions: Array<i32> [7, LAST] = Array::default(),
    }
    /// Asks for records.
    FetchRequest {
        /// -1 from a client, up to version 14.
        replica_id: i32 [0, 14] = -1,
        /// How long to wait for `min_bytes`, in milliseconds.
        max_wait_ms: i32 [0, LAST] = 0,
        /// Fewest bytes worth an answer before that.
        min_bytes: i32 [0, LAST] = 0,
        /// Most bytes wanted; one batch may exceed it.
        max_bytes: i32 [3, LAST] = i32::MAX,
        /// 0 read uncommitted, 1 read committed.
        isolation_level: i8 [4, LAST] = 0,
        /// The fetch session, 0 for none.
        session_id: i32 [7, LAST] = 0,
        /// -1 for no session.
        session_epoch: i32 [7, LAST] = -1,
        /// The topics.
        topics: Array<FetchTopic> [0, LAST] = Array::default(),
        /// What to drop from the session.
        forgotten_topics: Array<ForgottenTopic> [7, LAST] = Array::default(),
        /// The client's rack.
        rack_id: Text [11, LAST] = Text::default(),
        @tagged {
            /// The cluster a follower means.
            cluster_id: Option<Text> [0, 12] = None,
            /// Which replica asks, from version 15.
            replica_state: ReplicaState [1, 15] = ReplicaState::default(),
        }
    }
    /// Where a follower's log parts from ours.
    EpochEndOffset {
        /// The last epoch both have, -1 for none.
        epoch: i32 [0, LAST] = -1,
        /// Its end, -1 for none.
        end_offset: i64 [0, LAST] = -1,
    }
    /// A snapshot a follower must take.
    SnapshotId {
        /// Its end, -1 for none.
        end_offset: i64 [0, LAST] = -1,
        /// Its epoch, -1 for none.
        epoch: i32 [0, LAST] = -1,
    }
    /// A transaction to leave out.
    AbortedTransaction {
        /// Its producer.
        producer_id: i64 [4, LAST] = 0,
        /// Its first offset.
        first_offset: i64 [4, LAST] = 0,
    }
    /// A partition's answer, as a client reads it.
    FetchPartitionResponse {
        /// Index in the topic.
        partition_index: i32 [0, LAST] = 0,
        /// Kafka's error code.
        error_code: i16 [0, LAST] = 0,
        /// The offset after the last durable record, -1 on error.
        high_watermark: i64 [0, LAST] = 0,
        /// The same but before any open transaction.
        last_stable_offset: i64 [4, LAST] = -1,
        /// The partition's first offset, -1 if unknown.
        log_start_offset: i64 [5, LAST] = -1,
        /// Transactions to leave out.
        aborted_transactions: Option<Array<AbortedTransaction>> [4, LAST] = None,
        /// A broker that is nearer, -1 for none.
        preferred_read_replica: i32 [11, LAST] = -1,
        /// Whole record batches; the first may begin before the offset asked for.
        records: Option<Bytes> [0, LAST] = Some(Bytes::new()),
        @tagged {
            /// For followers.
            diverging_epoch: EpochEndOffset [0, 12] = EpochEndOffset::default(),
            /// Who leads the partition now.
            current_leader: LeaderIdAndEpoch [1, 12] = LeaderIdAndEpoch::default(),
            /// For followers.
            snapshot_id: SnapshotId [2, 12] = SnapshotId::default(),
        }
    }
    /// A topic's answer, as a client reads it.
    FetchTopicResponse {
        /// Its name, up to version 12.
        name: Text [0, 12] = Text::default(),
        /// Its id, from version 13.
        topic_id: TopicId [13, LAST] = TopicId::default(),
        /// Its partitions.
        partitions: Array<FetchPartitionResponse> [0, LAST] = Array::default(),
    }
    /// Records, as a client reads them.
    FetchResponse {
        /// How long the client is asked to wait, in milliseconds.
        throttle_time_ms: i32 [1, LAST] = 0,
        /// Kafka's error code for the whole answer.
        error_code: i16 [7, LAST] = 0,
        /// The fetch session, 0 for none.
        session_id: i32 [7, LAST] = 0,
        /// One answer for each topic.
        topics: Array<FetchTopicResponse> [0, LAST] = Array::default(),
        @tagged {
            /// Where the brokers named as current leaders are.
            node_endpoints: Array<NodeEndpoint> [0, 16] = Array::default(),
        }
    }
}

message! {
    FetchRequest flexible from 12;
    FetchResponse flexible from 12;
}

/// An answer with its record data still in the buffers it was read into.
#[derive(Debug)]
pub struct FetchReply<C> {
    /// How long the client is asked to wait, in milliseconds.
    pub throttle_time_ms: i32,
    /// Kafka's error code for the whole answer.
    pub error_code: i16,
    /// One answer for each topic, in the order of the request.
    pub topics: Vec<TopicReply<C>>,
    /// Where the brokers named as current leaders are.
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// A topic in a [`FetchReply`].
#[derive(Debug)]
pub struct TopicReply<C> {
    /// Its name; written up to version 12.
    pub name: Text,
    /// Its id; written from version 13.
    pub topic_id: TopicId,
    /// Its partitions.
    pub partitions: Vec<PartitionReply<C>>,
}

/// A partition in a [`FetchReply`].
#[derive(Debug)]
pub struct PartitionReply<C> {
    /// Index in the topic.
    pub partition_index: i32,
    /// Kafka's error code.
    pub error_code: i16,
    /// The offset after the last durable record, -1 on error.
    pub high_watermark: i64,
    /// The same while there are no transactions.
    pub last_stable_offset: i64,
    /// The partition's first offset, -1 if unknown.
    pub log_start_offset: i64,
    /// Who leads the partition now, if the client does not seem to know.
    pub current_leader: Option<LeaderIdAndEpoch>,
    /// Whole record batches, in pieces.
    pub records: Vec<C>,
}

impl<C> PartitionReply<C> {
    /// An answer without records.
    #[must_use]
    pub fn error(partition_index: i32, error_code: i16) -> Self {
        Self {
            partition_index,
            error_code,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            current_leader: None,
            records: Vec::new(),
        }
    }
}

impl<C> Default for FetchReply<C> {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            topics: Vec::new(),
            node_endpoints: Vec::new(),
        }
    }
}

/// Bytes of a partition's answer beside its records, in the largest version; a buffer hint.
const PARTITION_BYTES: usize = 96;
/// Bytes of a topic's answer beside its partitions, but for its name; a buffer hint.
const TOPIC_BYTES: usize = 24;

impl<C: AsRef<[u8]>> FetchReply<C> {
    /// Bytes of record data in the answer.
    #[must_use]
    pub fn records_bytes(&self) -> usize {
        let partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.map(PartitionReply::records_bytes).sum()
    }

    /// The whole frame, length prefix included. Each chunk is copied exactly once.
    ///
    /// # Errors
    /// A name or the frame is too long for its length field.
    pub fn encode(&self, version: i16, correlation_id: i32) -> Result<Bytes, EncodeError> {
        let form = FetchResponse::form(version);
        let partitions: usize = self.topics.iter().map(|topic| topic.partitions.len()).sum();
        let names: usize = self.topics.iter().map(|topic| topic.name.len()).sum();
        let capacity = 64
            + self.records_bytes()
            + partitions * PARTITION_BYTES
            + self.topics.len() * TOPIC_BYTES
            + names
            + self.node_endpoints.len() * PARTITION_BYTES;
        let mut writer = Writer::new(form, capacity);
        header::write_response(&mut writer, correlation_id, form.flexible);
        self.write(&mut writer);
        writer.finish_frame()
    }

    fn write(&self, writer: &mut Writer) {
        let form = writer.form();
        self.throttle_time_ms.write(writer);
        if form.version >= 7 {
            self.error_code.write(writer);
            0i32.write(writer); // session id: sessions are declined
        }
        writer.count(Some(self.topics.len()));
        for topic in &self.topics {
            topic.write(writer);
        }
        if !form.flexible {
            return;
        }
        if form.version < 16 || self.node_endpoints.is_empty() {
            return writer.unsigned_varint(0);
        }
        writer.unsigned_varint(1);
        writer.tag(0, &Array::from(self.node_endpoints.clone()));
    }
}

impl<C: AsRef<[u8]>> TopicReply<C> {
    fn write(&self, writer: &mut Writer) {
        let form = writer.form();
        if form.version <= 12 {
            self.name.write(writer);
        } else {
            self.topic_id.write(writer);
        }
        writer.count(Some(self.partitions.len()));
        for partition in &self.partitions {
            partition.write(writer);
        }
        end_structure(form, writer);
    }
}

impl<C: AsRef<[u8]>> PartitionReply<C> {
    fn records_bytes(&self) -> usize {
        self.records.iter().map(|chunk| chunk.as_ref().len()).sum()
    }

    fn write(&self, writer: &mut Writer) {
        let form = writer.form();
        self.partition_index.write(writer);
        self.error_code.write(writer);
        self.high_watermark.write(writer);
        self.last_stable_offset.write(writer);
        if form.version >= 5 {
            self.log_start_offset.write(writer);
        }
        writer.count(None); // aborted transactions
        if form.version >= 11 {
            (-1i32).write(writer); // preferred read replica
        }
        writer.blob_length(Some(self.records_bytes()));
        for chunk in &self.records {
            writer.raw(chunk.as_ref());
        }
        match &self.current_leader {
            Some(leader) if form.flexible => {
                writer.unsigned_varint(1);
                writer.tag(1, leader);
            }
            _ => end_structure(form, writer),
        }
    }
}

/// A flexible structure without tagged fields ends in their count, 0.
fn end_structure(form: Form, writer: &mut Writer) {
    if form.flexible {
        writer.unsigned_varint(0);
    }
}
