//! Metadata (3): brokers, topics and who leads which partition.

use super::OPERATIONS_UNKNOWN;
use crate::base::ids::TopicId;
use crate::wire::schema::{Array, LAST, Text, message, structure};

structure! {
    /// A topic asked about: by name, or by id where the name is null.
    MetadataRequestTopic {
        /// Its id, zero if asked by name.
        topic_id: TopicId [10, LAST] = TopicId::default(),
        /// Its name.
        name: Option<Text> [0, LAST] = Some(Text::default()),
    }
    /// Asks about topics. See [`MetadataRequest::wants_all`].
    MetadataRequest {
        /// The topics.
        topics: Option<Array<MetadataRequestTopic>> [0, LAST] = Some(Array::default()),
        /// Whether a missing topic may be created.
        allow_auto_topic_creation: bool [4, LAST] = true,
        /// Whether to report what the client may do to the cluster.
        include_cluster_authorized_operations: bool [8, 10] = false,
        /// Whether to report what the client may do to the topics.
        include_topic_authorized_operations: bool [8, LAST] = false,
    }
    /// A broker.
    MetadataBroker {
        /// Broker id.
        node_id: i32 [0, LAST] = 0,
        /// Host name.
        host: Text [0, LAST] = Text::default(),
        /// Port.
        port: i32 [0, LAST] = 0,
        /// Rack, if any.
        rack: Option<Text> [1, LAST] = None,
    }
    /// A partition.
    MetadataPartition {
        /// Kafka's error code.
        error_code: i16 [0, LAST] = 0,
        /// Index in the topic.
        partition_index: i32 [0, LAST] = 0,
        /// Broker id of the leader.
        leader_id: i32 [0, LAST] = 0,
        /// Epoch of the leadership, -1 if unknown.
        leader_epoch: i32 [7, LAST] = -1,
        /// Broker ids of all replicas.
        replica_nodes: Array<i32> [0, LAST] = Array::default(),
        /// Broker ids of the replicas in sync.
        isr_nodes: Array<i32> [0, LAST] = Array::default(),
        /// Broker ids of the replicas that are offline.
        offline_replicas: Array<i32> [5, LAST] = Array::default(),
    }
    /// A topic.
    MetadataTopic {
        /// Kafka's error code.
        error_code: i16 [0, LAST] = 0,
        /// Its name; null (from version 12) if it was asked by an unknown id.
        name: Option<Text> [0, LAST] = Some(Text::default()),
        /// Its id.
        topic_id: TopicId [10, LAST] = TopicId::default(),
        /// Whether it is internal.
        is_internal: bool [1, LAST] = false,
        /// Its partitions.
        partitions: Array<MetadataPartition> [0, LAST] = Array::default(),
        /// What the client may do, as a bit field.
        topic_authorized_operations: i32 [8, LAST] = OPERATIONS_UNKNOWN,
    }
    /// The cluster as the broker sees it.
    MetadataResponse {
        /// How long the client is asked to wait, in milliseconds.
        throttle_time_ms: i32 [3, LAST] = 0,
        /// The brokers.
        brokers: Array<MetadataBroker> [0, LAST] = Array::default(),
        /// The cluster's id.
        cluster_id: Option<Text> [2, LAST] = None,
        /// Broker id of the controller.
        controller_id: i32 [1, LAST] = -1,
        /// The topics.
        topics: Array<MetadataTopic> [0, LAST] = Array::default(),
        /// What the client may do to the cluster, as a bit field.
        cluster_authorized_operations: i32 [8, 10] = OPERATIONS_UNKNOWN,
        /// Kafka's error code for the whole answer.
        error_code: i16 [13, LAST] = 0,
    }
}

message! {
    MetadataRequest flexible from 9;
    MetadataResponse flexible from 9;
}

impl MetadataRequest {
    /// Whether every topic is asked for: null, or in version 0 an empty list.
    #[must_use]
    pub fn wants_all(&self, version: i16) -> bool {
        match &self.topics {
            None => true,
            Some(topics) => version == 0 && topics.is_empty(),
        }
    }
}
