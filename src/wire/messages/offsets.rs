//! ListOffsets (2): where a partition starts and ends, and offsets by time.

use crate::wire::schema::{Array, LAST, Text, message, structure};

/// Asks for the offset after the last record.
pub const LATEST_TIMESTAMP: i64 = -1;
/// Asks for the first offset.
pub const EARLIEST_TIMESTAMP: i64 = -2;
/// Asks for the record with the newest timestamp (from version 7).
pub const MAX_TIMESTAMP: i64 = -3;

structure! {
    /// A partition asked about.
    ListOffsetsPartition {
        /// Index in the topic.
        partition_index: i32 [0, LAST] = 0,
        /// The epoch the client believes in, -1 for none.
        current_leader_epoch: i32 [4, LAST] = -1,
        /// A time in milliseconds, or one of the constants above.
        timestamp: i64 [0, LAST] = 0,
    }
    /// A topic asked about.
    ListOffsetsTopic {
        /// Its name.
        name: Text [0, LAST] = Text::default(),
        /// Its partitions.
        partitions: Array<ListOffsetsPartition> [0, LAST] = Array::default(),
    }
    /// Asks for offsets.
    ListOffsetsRequest {
        /// -1 from a client.
        replica_id: i32 [0, LAST] = -1,
        /// 0 read uncommitted, 1 read committed.
        isolation_level: i8 [2, LAST] = 0,
        /// The topics.
        topics: Array<ListOffsetsTopic> [0, LAST] = Array::default(),
        /// How long the broker may take, in milliseconds.
        timeout_ms: i32 [10, LAST] = 0,
    }
    /// A partition's answer.
    ListOffsetsPartitionResponse {
        /// Index in the topic.
        partition_index: i32 [0, LAST] = 0,
        /// Kafka's error code.
        error_code: i16 [0, LAST] = 0,
        /// The found record's time in milliseconds, -1 if there is none.
        timestamp: i64 [1, LAST] = -1,
        /// The offset, -1 if none was found.
        offset: i64 [1, LAST] = -1,
        /// Epoch of the found record, -1 if unknown.
        leader_epoch: i32 [4, LAST] = -1,
    }
    /// A topic's answer.
    ListOffsetsTopicResponse {
        /// Its name.
        name: Text [0, LAST] = Text::default(),
        /// Its partitions.
        partitions: Array<ListOffsetsPartitionResponse> [0, LAST] = Array::default(),
    }
    /// The offsets.
    ListOffsetsResponse {
        /// How long the client is asked to wait, in milliseconds.
        throttle_time_ms: i32 [2, LAST] = 0,
        /// The topics.
        topics: Array<ListOffsetsTopicResponse> [0, LAST] = Array::default(),
    }
}

message! {
    ListOffsetsRequest flexible from 6;
    ListOffsetsResponse flexible from 6;
}
