//! Names of family members: Kafka's API keys and error codes.

use super::cell::FAMILY_MEMBERS;
use super::table::Kind;

const APIS: &[(usize, &str)] = &[
    (0, "Produce"),
    (1, "Fetch"),
    (2, "ListOffsets"),
    (3, "Metadata"),
    (8, "OffsetCommit"),
    (9, "OffsetFetch"),
    (10, "FindCoordinator"),
    (11, "JoinGroup"),
    (12, "Heartbeat"),
    (13, "LeaveGroup"),
    (14, "SyncGroup"),
    (15, "DescribeGroups"),
    (16, "ListGroups"),
    (17, "SaslHandshake"),
    (18, "ApiVersions"),
    (19, "CreateTopics"),
    (20, "DeleteTopics"),
    (21, "DeleteRecords"),
    (22, "InitProducerId"),
    (23, "OffsetForLeaderEpoch"),
    (29, "DescribeAcls"),
    (30, "CreateAcls"),
    (31, "DeleteAcls"),
    (32, "DescribeConfigs"),
    (33, "AlterConfigs"),
    (35, "DescribeLogDirs"),
    (36, "SaslAuthenticate"),
    (37, "CreatePartitions"),
    (42, "DeleteGroups"),
    (44, "IncrementalAlterConfigs"),
    (47, "OffsetDelete"),
    (60, "DescribeCluster"),
    (61, "DescribeProducers"),
    (75, "DescribeTopicPartitions"),
];

const ERRORS: &[(usize, &str)] = &[
    (1, "OFFSET_OUT_OF_RANGE"),
    (2, "CORRUPT_MESSAGE"),
    (3, "UNKNOWN_TOPIC_OR_PARTITION"),
    (5, "LEADER_NOT_AVAILABLE"),
    (6, "NOT_LEADER_OR_FOLLOWER"),
    (7, "REQUEST_TIMED_OUT"),
    (10, "MESSAGE_TOO_LARGE"),
    (14, "COORDINATOR_LOAD_IN_PROGRESS"),
    (15, "COORDINATOR_NOT_AVAILABLE"),
    (16, "NOT_COORDINATOR"),
    (17, "INVALID_TOPIC_EXCEPTION"),
    (22, "ILLEGAL_GENERATION"),
    (25, "UNKNOWN_MEMBER_ID"),
    (27, "REBALANCE_IN_PROGRESS"),
    (35, "UNSUPPORTED_VERSION"),
    (36, "TOPIC_ALREADY_EXISTS"),
    (37, "INVALID_PARTITIONS"),
    (38, "INVALID_REPLICATION_FACTOR"),
    (40, "INVALID_CONFIG"),
    (42, "INVALID_REQUEST"),
    (45, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    (46, "DUPLICATE_SEQUENCE_NUMBER"),
    (47, "INVALID_PRODUCER_EPOCH"),
    (56, "KAFKA_STORAGE_ERROR"),
    (59, "UNKNOWN_PRODUCER_ID"),
    (74, "FENCED_LEADER_EPOCH"),
    (75, "UNKNOWN_LEADER_EPOCH"),
    (76, "UNSUPPORTED_COMPRESSION_TYPE"),
    (87, "INVALID_RECORD"),
    (89, "THROTTLING_QUOTA_EXCEEDED"),
    (90, "PRODUCER_FENCED"),
    (100, "UNKNOWN_TOPIC_ID"),
    (FAMILY_MEMBERS - 1, "UNKNOWN_SERVER_ERROR"),
];

fn names(kind: Kind) -> &'static [(usize, &'static str)] {
    match kind {
        Kind::ByApi => APIS,
        Kind::ByError => ERRORS,
        Kind::Counter | Kind::Gauge | Kind::Histogram => &[],
    }
}

/// The name of a member: its number where it has no other.
pub(super) fn name(kind: Kind, index: usize) -> String {
    let known = names(kind).iter().find(|(number, _)| *number == index);
    known.map_or_else(|| index.to_string(), |(_, name)| (*name).to_owned())
}

/// The member of a name; the reverse of `name`.
pub(super) fn index(kind: Kind, text: &str) -> Option<usize> {
    let known = names(kind).iter().find(|(_, name)| *name == text);
    known
        .map(|(number, _)| *number)
        .or_else(|| text.parse().ok())
}
