//! DescribeCluster (60): the brokers, as an administrator sees them.

use super::OPERATIONS_UNKNOWN;
use crate::wire::schema::{Array, LAST, Text, message, structure};

structure! {
    /// Asks about the cluster.
    DescribeClusterRequest {
        /// Whether to report what the client may do.
        include_cluster_authorized_operations: bool [0, LAST] = false,
        /// 1 brokers, 2 controllers.
        endpoint_type: i8 [1, LAST] = 1,
        /// Whether to include brokers that are fenced.
        include_fenced_brokers: bool [2, LAST] = false,
    }
    /// A broker.
    DescribeClusterBroker {
        /// Broker id.
        broker_id: i32 [0, LAST] = 0,
        /// Host name.
        host: Text [0, LAST] = Text::default(),
        /// Port.
        port: i32 [0, LAST] = 0,
        /// Rack, if any.
        rack: Option<Text> [0, LAST] = None,
        /// Whether it is fenced.
        is_fenced: bool [2, LAST] = false,
    }
    /// The cluster.
    DescribeClusterResponse {
        /// How long the client is asked to wait, in milliseconds.
        throttle_time_ms: i32 [0, LAST] = 0,
        /// Kafka's error code.
        error_code: i16 [0, LAST] = 0,
        /// What went wrong, in words.
        error_message: Option<Text> [0, LAST] = None,
        /// As asked.
        endpoint_type: i8 [1, LAST] = 1,
        /// The cluster's id.
        cluster_id: Text [0, LAST] = Text::default(),
        /// Broker id of the controller.
        controller_id: i32 [0, LAST] = -1,
        /// The brokers.
        brokers: Array<DescribeClusterBroker> [0, LAST] = Array::default(),
        /// What the client may do, as a bit field.
        cluster_authorized_operations: i32 [0, LAST] = OPERATIONS_UNKNOWN,
    }
}

message! {
    DescribeClusterRequest flexible from 0;
    DescribeClusterResponse flexible from 0;
}
