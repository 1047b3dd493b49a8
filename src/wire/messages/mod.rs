//! The bodies of the served requests and responses, except `produce` and `fetch`.
//!
//! Field names, version ranges and defaults are Kafka's own. `[first, last]` beside a field are the
//! versions that carry it. The structures are the same in both directions: what a server reads, a
//! client writes.

mod api_versions;
mod cluster;
mod configs;
mod coordinator;
mod metadata;
mod offsets;
mod producer;
mod topics;

pub use api_versions::{
    ApiVersion, ApiVersionsRequest, ApiVersionsResponse, FinalizedFeature, SupportedFeature,
};
pub use cluster::{DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse};
pub use configs::{
    ConfigEntry, ConfigSynonym, DescribeConfigsRequest, DescribeConfigsResource,
    DescribeConfigsResponse, DescribeConfigsResult,
};
pub use coordinator::{Coordinator, FindCoordinatorRequest, FindCoordinatorResponse};
pub use metadata::{
    MetadataBroker, MetadataPartition, MetadataRequest, MetadataRequestTopic, MetadataResponse,
    MetadataTopic,
};
pub use offsets::{
    EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ListOffsetsPartition, ListOffsetsPartitionResponse,
    ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic, ListOffsetsTopicResponse,
    MAX_TIMESTAMP,
};
pub use producer::{InitProducerIdRequest, InitProducerIdResponse};
pub use topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreatableTopicConfigs,
    CreatableTopicResult, CreatePartitionsAssignment, CreatePartitionsRequest,
    CreatePartitionsResponse, CreatePartitionsTopic, CreatePartitionsTopicResult,
    CreateTopicsRequest, CreateTopicsResponse, DeletableTopicResult, DeleteTopicState,
    DeleteTopicsRequest, DeleteTopicsResponse,
};

/// What stands for "authorized operations were not asked for".
pub const OPERATIONS_UNKNOWN: i32 = i32::MIN;

use super::schema::{LAST, Text, structure};

structure! {
    /// Who leads a partition now: a hint beside an error (KIP-951).
    LeaderIdAndEpoch {
        /// Broker id of the leader, -1 if unknown.
        leader_id: i32 [0, LAST] = -1,
        /// Epoch of that leadership, -1 if unknown.
        leader_epoch: i32 [0, LAST] = -1,
    }
    /// Where a broker named in a hint is (KIP-951).
    NodeEndpoint {
        /// Broker id.
        node_id: i32 [0, LAST] = 0,
        /// Host name.
        host: Text [0, LAST] = Text::default(),
        /// Port.
        port: i32 [0, LAST] = 0,
        /// Rack, if any.
        rack: Option<Text> [0, LAST] = None,
    }
}
