//! What can go wrong in a shard, by name. The session turns these into Kafka's codes at its door.

use crate::base::ids::Offset;
use crate::base::record_batch::BatchError;
use std::fmt;

/// Why a batch was not appended. In every case nothing was written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AppendError {
    /// The topic or partition is not (or no longer) there.
    UnknownPartition,
    /// The batch is malformed, of an old format, or its CRC is wrong.
    Batch(BatchError),
    /// Kafka allows exactly one batch for a partition in a request.
    NotOneBatch,
    /// The batch is larger than the topic's `max.message.bytes`.
    TooLarge {
        /// Length of the batch.
        batch_bytes: usize,
        /// The topic's limit.
        bytes_max: usize,
    },
    /// The batch does not follow the producer's last one.
    OutOfOrderSequence {
        /// The sequence that would have been accepted.
        expected: i32,
        /// The sequence that came.
        found: i32,
    },
    /// A newer instance of this producer has written since.
    Fenced,
    /// Part of this partition is damaged on disk; it takes no more records until it is repaired.
    Quarantined,
    /// The journal takes nothing more: its disk failed before, or the broker is stopping.
    Closed,
    /// The disk failed after the batch was staged: it may or may not exist.
    DiskFailed,
    /// The owning core did not answer in time.
    Overloaded,
}

/// Why a partition could not be read at an offset.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FetchError {
    /// The topic or partition is not (or no longer) there.
    UnknownPartition,
    /// The offset lies outside `log_start ..= committed`.
    OffsetOutOfRange {
        /// The first offset there is.
        log_start: Offset,
        /// One past the last offset that may be read.
        committed: Offset,
    },
    /// The records at this offset are damaged on disk: an error, never wrong bytes.
    Damaged,
    /// The disk refused the read.
    Disk,
    /// The owning core did not answer in time.
    Overloaded,
}

/// Why a change of the topic catalogue was refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TopicError {
    /// A topic of this name is there already.
    Exists,
    /// No topic of this name or id.
    Unknown,
    /// The name is empty, too long, `.` or `..`, or has a character outside `[a-zA-Z0-9._-]`.
    InvalidName(String),
    /// The number of partitions is out of bounds, or would shrink.
    InvalidPartitions(String),
    /// The replication factor cannot be met.
    InvalidReplicationFactor(String),
    /// A manual replica assignment that we cannot follow.
    InvalidAssignment(String),
    /// A configuration key or value that is unknown, or not supported yet.
    InvalidConfig(String),
    /// The catalogue is full.
    TooMany(String),
    /// The journal takes nothing more.
    Closed,
}

impl fmt::Display for TopicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists => f.write_str("the topic exists already"),
            Self::Unknown => f.write_str("there is no such topic"),
            Self::InvalidName(text)
            | Self::InvalidPartitions(text)
            | Self::InvalidReplicationFactor(text)
            | Self::InvalidAssignment(text)
            | Self::InvalidConfig(text)
            | Self::TooMany(text) => f.write_str(text),
            Self::Closed => f.write_str("the broker is stopping"),
        }
    }
}
