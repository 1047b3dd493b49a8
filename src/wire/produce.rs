//! Produce (0): records on their way in, both directions of it.
//!
//! The hot path of a producer. A request is walked once and copied never: the record batches of
//! each partition are a slice of the frame. Versions 0–2 are read and written only to be refused in
//! their own words, since the advertised range must start at 0 (older librdkafka otherwise stops
//! compressing in silence).

use bytes::Bytes;

use super::messages::{LeaderIdAndEpoch, NodeEndpoint};
use super::schema::{Array, LAST, Text, message, structure};
use crate::base::ids::TopicId;

structure! {
    /// A partition's records.
    ProducePartition {
        /// Index in the topic.
        index: i32 [0, LAST] = 0,
        /// One record batch of magic 2; null and empty are errors of the client.
        records: Option<Bytes> [0, LAST] = None,
    }
    /// A topic's partitions.
    ProduceTopic {
        /// Its name, up to version 12.
        name: Text [0, 12] = Text::default(),
        /// Its id, from version 13.
        topic_id: TopicId [13, LAST] = TopicId::default(),
        /// Its partitions.
        partitions: Array<ProducePartition> [0, LAST] = Array::default(),
    }
    /// Records to append.
    ProduceRequest {
        /// The transactional id, if any.
        transactional_id: Option<Text> [3, LAST] = None,
        /// 0: no answer is expected; 1 and -1: answer when durable.
        acks: i16 [0, LAST] = 0,
        /// How long the broker may take, in milliseconds.
        timeout_ms: i32 [0, LAST] = 0,
        /// The topics.
        topics: Array<ProduceTopic> [0, LAST] = Array::default(),
    }
    /// A record that made its batch be refused.
    RecordError {
        /// Index in the batch.
        batch_index: i32 [8, LAST] = 0,
        /// What is wrong with it, in words.
        message: Option<Text> [8, LAST] = None,
    }
    /// A partition's answer.
    ProducePartitionResponse {
        /// Index in the topic.
        index: i32 [0, LAST] = 0,
        /// Kafka's error code.
        error_code: i16 [0, LAST] = 0,
        /// Offset of the first record, -1 on error.
        base_offset: i64 [0, LAST] = -1,
        /// The broker's time if the topic uses it, else -1, in milliseconds.
        log_append_time_ms: i64 [2, LAST] = -1,
        /// The partition's first offset, -1 if unknown.
        log_start_offset: i64 [5, LAST] = -1,
        /// The records that made the batch be refused.
        record_errors: Array<RecordError> [8, LAST] = Array::default(),
        /// What went wrong, in words.
        error_message: Option<Text> [8, LAST] = None,
        @tagged {
            /// Who leads the partition now.
            current_leader: LeaderIdAndEpoch [0, 10] = LeaderIdAndEpoch::default(),
        }
    }
    /// A topic's answer.
    ProduceTopicResponse {
        /// Its name, up to version 12.
        name: Text [0, 12] = Text::default(),
        /// Its id, from version 13.
        topic_id: TopicId [13, LAST] = TopicId::default(),
        /// Its partitions.
        partitions: Array<ProducePartitionResponse> [0, LAST] = Array::default(),
    }
    /// What became of the records.
    ProduceResponse {
        /// One answer for each topic.
        topics: Array<ProduceTopicResponse> [0, LAST] = Array::default(),
        /// How long the client is asked to wait, in milliseconds.
        throttle_time_ms: i32 [1, LAST] = 0,
        @tagged {
            /// Where the brokers named as current leaders are.
            node_endpoints: Array<NodeEndpoint> [0, 10] = Array::default(),
        }
    }
}

message! {
    ProduceRequest flexible from 9;
    ProduceResponse flexible from 9;
}
