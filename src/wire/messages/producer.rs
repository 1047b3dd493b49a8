//! InitProducerId (22): a producer's id and epoch, without which no producer is idempotent.

use crate::wire::schema::{LAST, Text, message, structure};

structure! {
    /// Asks for a producer id.
    InitProducerIdRequest {
        /// The transactional id; null for an idempotent producer.
        transactional_id: Option<Text> [0, LAST] = None,
        /// How long a transaction may last, in milliseconds.
        transaction_timeout_ms: i32 [0, LAST] = 0,
        /// The id the client has, -1 for none.
        producer_id: i64 [3, LAST] = -1,
        /// The epoch the client has, -1 for none.
        producer_epoch: i16 [3, LAST] = -1,
    }
    /// The producer id.
    InitProducerIdResponse {
        /// How long the client is asked to wait, in milliseconds.
        throttle_time_ms: i32 [0, LAST] = 0,
        /// Kafka's error code.
        error_code: i16 [0, LAST] = 0,
        /// The id, -1 on error.
        producer_id: i64 [0, LAST] = -1,
        /// The epoch.
        producer_epoch: i16 [0, LAST] = 0,
    }
}

message! {
    InitProducerIdRequest flexible from 2;
    InitProducerIdResponse flexible from 2;
}
