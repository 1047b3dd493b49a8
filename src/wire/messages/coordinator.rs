//! FindCoordinator (10): which broker looks after a group, a transaction or a share group.

use crate::wire::schema::{Array, LAST, Text, message, structure};

structure! {
    /// Asks for coordinators: one key up to version 3, several from version 4.
    FindCoordinatorRequest {
        /// The key.
        key: Text [0, 3] = Text::default(),
        /// 0 group, 1 transaction, 2 share group.
        key_type: i8 [1, LAST] = 0,
        /// The keys.
        coordinator_keys: Array<Text> [4, LAST] = Array::default(),
    }
    /// One key's answer, from version 4.
    Coordinator {
        /// The key.
        key: Text [4, LAST] = Text::default(),
        /// Broker id.
        node_id: i32 [4, LAST] = 0,
        /// Host name.
        host: Text [4, LAST] = Text::default(),
        /// Port.
        port: i32 [4, LAST] = 0,
        /// Kafka's error code.
        error_code: i16 [4, LAST] = 0,
        /// What went wrong, in words.
        error_message: Option<Text> [4, LAST] = None,
    }
    /// The coordinators.
    FindCoordinatorResponse {
        /// How long the client is asked to wait, in milliseconds.
        throttle_time_ms: i32 [1, LAST] = 0,
        /// Kafka's error code.
        error_code: i16 [0, 3] = 0,
        /// What went wrong, in words.
        error_message: Option<Text> [1, 3] = Some(Text::default()),
        /// Broker id.
        node_id: i32 [0, 3] = 0,
        /// Host name.
        host: Text [0, 3] = Text::default(),
        /// Port.
        port: i32 [0, 3] = 0,
        /// One answer for each key.
        coordinators: Array<Coordinator> [4, LAST] = Array::default(),
    }
}

message! {
    FindCoordinatorRequest flexible from 3;
    FindCoordinatorResponse flexible from 3;
}
