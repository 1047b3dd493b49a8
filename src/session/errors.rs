//! From the errors of the deeper rooms to Kafka's codes: here and nowhere else.

use crate::base::record_batch::BatchError;
use crate::shard::{AppendError, FetchError, TopicError};
use crate::wire::ErrorCode;

/// The code, and words for the versions that carry them, for a batch that was not appended.
///
/// A retriable code is given only where a retry can help and cannot harm: nothing was written, or
/// the producer's sequence tells a copy. `UNKNOWN_SERVER_ERROR` is never used: it sets off client
/// bugs.
pub fn append_error(error: &AppendError) -> (ErrorCode, String) {
    match error {
        AppendError::UnknownPartition => (
            ErrorCode::UnknownTopicOrPartition,
            "there is no such partition".to_owned(),
        ),
        AppendError::Batch(error) => (batch_error(error), error.to_string()),
        AppendError::NotOneBatch => (
            ErrorCode::InvalidRecord,
            "a partition takes exactly one record batch in a request".to_owned(),
        ),
        AppendError::TooLarge {
            batch_bytes,
            bytes_max,
        } => (
            ErrorCode::MessageTooLarge,
            format!("the batch has {batch_bytes} bytes; max.message.bytes is {bytes_max}"),
        ),
        AppendError::OutOfOrderSequence { expected, found } => (
            ErrorCode::OutOfOrderSequenceNumber,
            format!("sequence {found} came where {expected} was next"),
        ),
        AppendError::Fenced => (
            ErrorCode::InvalidProducerEpoch,
            "a newer instance of this producer has written since".to_owned(),
        ),
        AppendError::Quarantined => (
            ErrorCode::KafkaStorageError,
            "part of this partition is damaged on disk; see `penstock verify`".to_owned(),
        ),
        AppendError::Closed => (
            ErrorCode::NotLeaderOrFollower,
            "the broker is stopping".to_owned(),
        ),
        AppendError::DiskFailed => (
            ErrorCode::KafkaStorageError,
            "the disk failed; the batch may or may not be stored".to_owned(),
        ),
        AppendError::Overloaded => (
            ErrorCode::RequestTimedOut,
            "the core that owns this partition did not answer in time".to_owned(),
        ),
    }
}

fn batch_error(error: &BatchError) -> ErrorCode {
    match error {
        BatchError::Crc => ErrorCode::CorruptMessage,
        BatchError::Codec { .. } => ErrorCode::UnsupportedCompressionType,
        BatchError::Magic { .. } => ErrorCode::UnsupportedForMessageFormat,
        _ => ErrorCode::InvalidRecord,
    }
}

/// The code for a partition that could not be read.
pub fn fetch_error(error: FetchError) -> ErrorCode {
    match error {
        FetchError::UnknownPartition => ErrorCode::UnknownTopicOrPartition,
        FetchError::OffsetOutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        FetchError::Damaged => ErrorCode::CorruptMessage,
        FetchError::Disk => ErrorCode::KafkaStorageError,
        FetchError::Overloaded => ErrorCode::RequestTimedOut,
    }
}

/// The code for a change of the catalogue that was refused; the words are the error's own.
pub fn topic_error(error: &TopicError) -> ErrorCode {
    match error {
        TopicError::Exists => ErrorCode::TopicAlreadyExists,
        TopicError::Unknown => ErrorCode::UnknownTopicOrPartition,
        TopicError::InvalidName(_) => ErrorCode::InvalidTopicException,
        TopicError::InvalidPartitions(_) | TopicError::TooMany(_) => ErrorCode::InvalidPartitions,
        TopicError::InvalidReplicationFactor(_) => ErrorCode::InvalidReplicationFactor,
        TopicError::InvalidAssignment(_) => ErrorCode::InvalidReplicaAssignment,
        TopicError::InvalidConfig(_) => ErrorCode::InvalidConfig,
        TopicError::Closed => ErrorCode::NotController,
    }
}
