//! CreateTopics (19), DeleteTopics (20) and CreatePartitions (37).

use crate::base::ids::TopicId;
use crate::wire::schema::{Array, LAST, Text, message, structure};

structure! {
    /// Which brokers a new partition is placed on.
    CreatableReplicaAssignment {
        /// Index in the topic.
        partition_index: i32 [0, LAST] = 0,
        /// Broker ids.
        broker_ids: Array<i32> [0, LAST] = Array::default(),
    }
    /// A setting of a new topic.
    CreatableTopicConfig {
        /// Its name.
        name: Text [0, LAST] = Text::default(),
        /// Its value.
        value: Option<Text> [0, LAST] = Some(Text::default()),
    }
    /// A topic to create.
    CreatableTopic {
        /// Its name.
        name: Text [0, LAST] = Text::default(),
        /// Number of partitions; -1 for the default or if assignments are given.
        num_partitions: i32 [0, LAST] = 0,
        /// Number of replicas; -1 likewise.
        replication_factor: i16 [0, LAST] = 0,
        /// Placement by hand.
        assignments: Array<CreatableReplicaAssignment> [0, LAST] = Array::default(),
        /// Settings.
        configs: Array<CreatableTopicConfig> [0, LAST] = Array::default(),
    }
    /// Creates topics.
    CreateTopicsRequest {
        /// The topics.
        topics: Array<CreatableTopic> [0, LAST] = Array::default(),
        /// How long the broker may take, in milliseconds.
        timeout_ms: i32 [0, LAST] = 60_000,
        /// Whether only to check.
        validate_only: bool [1, LAST] = false,
    }
    /// A setting of a created topic.
    CreatableTopicConfigs {
        /// Its name.
        name: Text [5, LAST] = Text::default(),
        /// Its value.
        value: Option<Text> [5, LAST] = Some(Text::default()),
        /// Whether it cannot be changed.
        read_only: bool [5, LAST] = false,
        /// As `ConfigSynonym::source`.
        config_source: i8 [5, LAST] = -1,
        /// Whether the value is withheld.
        is_sensitive: bool [5, LAST] = false,
    }
    /// A topic's answer.
    CreatableTopicResult {
        /// Its name.
        name: Text [0, LAST] = Text::default(),
        /// Its id.
        topic_id: TopicId [7, LAST] = TopicId::default(),
        /// Kafka's error code.
        error_code: i16 [0, LAST] = 0,
        /// What went wrong, in words.
        error_message: Option<Text> [1, LAST] = None,
        /// Number of partitions, -1 if withheld.
        num_partitions: i32 [5, LAST] = -1,
        /// Number of replicas, -1 if withheld.
        replication_factor: i16 [5, LAST] = -1,
        /// Settings; null if withheld.
        configs: Option<Array<CreatableTopicConfigs>> [5, LAST] = Some(Array::default()),
        @tagged {
            /// Why the settings are withheld, 0 if they are not.
            topic_config_error_code: i16 [0, 5] = 0,
        }
    }
    /// What became of the topics.
    CreateTopicsResponse {
        /// How long the client is asked to wait, in milliseconds.
        throttle_time_ms: i32 [2, LAST] = 0,
        /// One answer for each topic.
        topics: Array<CreatableTopicResult> [0, LAST] = Array::default(),
    }

    /// A topic to delete: by name, or by id where the name is null.
    DeleteTopicState {
        /// Its name.
        name: Option<Text> [6, LAST] = None,
        /// Its id.
        topic_id: TopicId [6, LAST] = TopicId::default(),
    }
    /// Deletes topics.
    DeleteTopicsRequest {
        /// The topics, from version 6.
        topics: Array<DeleteTopicState> [6, LAST] = Array::default(),
        /// The topics, up to version 5.
        topic_names: Array<Text> [0, 5] = Array::default(),
        /// How long the broker may take, in milliseconds.
        timeout_ms: i32 [0, LAST] = 0,
    }
    /// A topic's answer.
    DeletableTopicResult {
        /// Its name.
        name: Option<Text> [0, LAST] = Some(Text::default()),
        /// Its id.
        topic_id: TopicId [6, LAST] = TopicId::default(),
        /// Kafka's error code.
        error_code: i16 [0, LAST] = 0,
        /// What went wrong, in words.
        error_message: Option<Text> [5, LAST] = None,
    }
    /// What became of the topics.
    DeleteTopicsResponse {
        /// How long the client is asked to wait, in milliseconds.
        throttle_time_ms: i32 [1, LAST] = 0,
        /// One answer for each topic.
        responses: Array<DeletableTopicResult> [0, LAST] = Array::default(),
    }

    /// Which brokers an added partition is placed on.
    CreatePartitionsAssignment {
        /// Broker ids.
        broker_ids: Array<i32> [0, LAST] = Array::default(),
    }
    /// A topic to widen.
    CreatePartitionsTopic {
        /// Its name.
        name: Text [0, LAST] = Text::default(),
        /// The number of partitions it shall have.
        count: i32 [0, LAST] = 0,
        /// Placement by hand; null for none.
        assignments: Option<Array<CreatePartitionsAssignment>> [0, LAST] = Some(Array::default()),
    }
    /// Adds partitions.
    CreatePartitionsRequest {
        /// The topics.
        topics: Array<CreatePartitionsTopic> [0, LAST] = Array::default(),
        /// How long the broker may take, in milliseconds.
        timeout_ms: i32 [0, LAST] = 0,
        /// Whether only to check.
        validate_only: bool [0, LAST] = false,
    }
    /// A topic's answer.
    CreatePartitionsTopicResult {
        /// Its name.
        name: Text [0, LAST] = Text::default(),
        /// Kafka's error code.
        error_code: i16 [0, LAST] = 0,
        /// What went wrong, in words.
        error_message: Option<Text> [0, LAST] = None,
    }
    /// What became of the topics.
    CreatePartitionsResponse {
        /// How long the client is asked to wait, in milliseconds.
        throttle_time_ms: i32 [0, LAST] = 0,
        /// One answer for each topic.
        results: Array<CreatePartitionsTopicResult> [0, LAST] = Array::default(),
    }
}

message! {
    CreateTopicsRequest flexible from 5;
    CreateTopicsResponse flexible from 5;
    DeleteTopicsRequest flexible from 4;
    DeleteTopicsResponse flexible from 4;
    CreatePartitionsRequest flexible from 2;
    CreatePartitionsResponse flexible from 2;
}
