//! Kafka's error codes: name, number, whether a retry can help, and what it says in words.

use std::fmt;

macro_rules! error_codes {
    ($($name:ident = $code:literal $retriable:ident, $kafka:literal, $message:literal;)*) => {
        /// An error code as Kafka numbers it.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[repr(i16)]
        pub enum ErrorCode {
            $( #[doc = $message] $name = $code, )*
        }

        impl ErrorCode {
            /// Every code, by number.
            pub const ALL: &'static [ErrorCode] = &[$( Self::$name, )*];

            /// The code of a number on the wire, if this broker knows it.
            #[must_use]
            pub const fn from_code(code: i16) -> Option<Self> {
                match code {
                    $( $code => Some(Self::$name), )*
                    _ => None,
                }
            }

            /// Kafka's name, as in `NOT_LEADER_OR_FOLLOWER`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$name => $kafka, )*
                }
            }

            /// What it means, in words.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self {
                    $( Self::$name => $message, )*
                }
            }

            /// Whether the same request may succeed later.
            #[must_use]
            pub const fn is_retriable(self) -> bool {
                match self {
                    $( Self::$name => error_codes!(@ $retriable), )*
                }
            }
        }
    };
    (@ retry) => { true };
    (@ final) => { false };
}

impl ErrorCode {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// Whether this is the absence of an error.
    #[must_use]
    pub const fn is_none(self) -> bool {
        matches!(self, Self::None)
    }
}

impl From<ErrorCode> for i16 {
    fn from(error: ErrorCode) -> i16 {
        error.code()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.name(), self.code(), self.message())
    }
}

error_codes! {
    UnknownServerError = -1 final, "UNKNOWN_SERVER_ERROR",
        "The server experienced an unexpected error.";
    None = 0 final, "NONE", "No error.";
    OffsetOutOfRange = 1 final, "OFFSET_OUT_OF_RANGE",
        "The requested offset is not within the range of offsets kept.";
    CorruptMessage = 2 retry, "CORRUPT_MESSAGE",
        "The record batch failed its checksum, exceeds the valid size, or is otherwise corrupt.";
    UnknownTopicOrPartition = 3 retry, "UNKNOWN_TOPIC_OR_PARTITION",
        "This broker does not host this topic or partition.";
    InvalidFetchSize = 4 final, "INVALID_FETCH_SIZE", "The requested fetch size is invalid.";
    LeaderNotAvailable = 5 retry, "LEADER_NOT_AVAILABLE",
        "There is no leader for this partition at the moment.";
    NotLeaderOrFollower = 6 retry, "NOT_LEADER_OR_FOLLOWER",
        "This broker is not the leader of the partition.";
    RequestTimedOut = 7 retry, "REQUEST_TIMED_OUT", "The request timed out.";
    BrokerNotAvailable = 8 final, "BROKER_NOT_AVAILABLE", "The broker is not available.";
    ReplicaNotAvailable = 9 retry, "REPLICA_NOT_AVAILABLE",
        "The replica is not available for the requested partition.";
    MessageTooLarge = 10 final, "MESSAGE_TOO_LARGE",
        "The message is larger than the largest the broker accepts.";
    StaleControllerEpoch = 11 final, "STALE_CONTROLLER_EPOCH",
        "The controller moved to another broker.";
    OffsetMetadataTooLarge = 12 final, "OFFSET_METADATA_TOO_LARGE",
        "The metadata of the offset is too large.";
    NetworkException = 13 retry, "NETWORK_EXCEPTION",
        "The server disconnected before an answer was received.";
    CoordinatorLoadInProgress = 14 retry, "COORDINATOR_LOAD_IN_PROGRESS",
        "The coordinator is loading and cannot serve requests yet.";
    CoordinatorNotAvailable = 15 retry, "COORDINATOR_NOT_AVAILABLE",
        "The coordinator is not available.";
    NotCoordinator = 16 retry, "NOT_COORDINATOR", "This is not the right coordinator.";
    InvalidTopicException = 17 final, "INVALID_TOPIC_EXCEPTION", "The topic name is invalid.";
    RecordListTooLarge = 18 final, "RECORD_LIST_TOO_LARGE",
        "The request has a record batch larger than the segment size.";
    NotEnoughReplicas = 19 retry, "NOT_ENOUGH_REPLICAS",
        "There are fewer replicas in sync than required.";
    NotEnoughReplicasAfterAppend = 20 retry, "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "The records were written to fewer replicas than required.";
    InvalidRequiredAcks = 21 final, "INVALID_REQUIRED_ACKS",
        "The requested number of acknowledgements is invalid.";
    IllegalGeneration = 22 final, "ILLEGAL_GENERATION",
        "The group generation is not the current one.";
    InconsistentGroupProtocol = 23 final, "INCONSISTENT_GROUP_PROTOCOL",
        "The member's protocols do not fit those of the group.";
    InvalidGroupId = 24 final, "INVALID_GROUP_ID", "The group id is invalid.";
    UnknownMemberId = 25 final, "UNKNOWN_MEMBER_ID", "The coordinator does not know this member.";
    InvalidSessionTimeout = 26 final, "INVALID_SESSION_TIMEOUT",
        "The session timeout is outside the accepted range.";
    RebalanceInProgress = 27 final, "REBALANCE_IN_PROGRESS",
        "The group is rebalancing, so a rejoin is needed.";
    InvalidCommitOffsetSize = 28 final, "INVALID_COMMIT_OFFSET_SIZE",
        "The size of the committed offset data is invalid.";
    TopicAuthorizationFailed = 29 final, "TOPIC_AUTHORIZATION_FAILED",
        "Topic authorization failed.";
    GroupAuthorizationFailed = 30 final, "GROUP_AUTHORIZATION_FAILED",
        "Group authorization failed.";
    ClusterAuthorizationFailed = 31 final, "CLUSTER_AUTHORIZATION_FAILED",
        "Cluster authorization failed.";
    InvalidTimestamp = 32 final, "INVALID_TIMESTAMP",
        "The timestamp of a record is outside the accepted range.";
    UnsupportedSaslMechanism = 33 final, "UNSUPPORTED_SASL_MECHANISM",
        "The broker does not support the requested SASL mechanism.";
    IllegalSaslState = 34 final, "ILLEGAL_SASL_STATE",
        "The request is not valid in the current SASL state.";
    UnsupportedVersion = 35 final, "UNSUPPORTED_VERSION",
        "The version of the API is not supported.";
    TopicAlreadyExists = 36 final, "TOPIC_ALREADY_EXISTS", "A topic with this name already exists.";
    InvalidPartitions = 37 final, "INVALID_PARTITIONS", "The number of partitions is invalid.";
    InvalidReplicationFactor = 38 final, "INVALID_REPLICATION_FACTOR",
        "The replication factor is below 1 or larger than the number of brokers.";
    InvalidReplicaAssignment = 39 final, "INVALID_REPLICA_ASSIGNMENT",
        "The replica assignment is invalid.";
    InvalidConfig = 40 final, "INVALID_CONFIG", "The configuration is invalid.";
    NotController = 41 retry, "NOT_CONTROLLER", "This is not the controller of the cluster.";
    InvalidRequest = 42 final, "INVALID_REQUEST", "The request is malformed or inconsistent.";
    UnsupportedForMessageFormat = 43 final, "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "The message format does not support the request.";
    PolicyViolation = 44 final, "POLICY_VIOLATION", "The request violates a policy.";
    OutOfOrderSequenceNumber = 45 final, "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "The broker received a sequence number that is out of order.";
    DuplicateSequenceNumber = 46 final, "DUPLICATE_SEQUENCE_NUMBER",
        "The broker received a sequence number it has already seen.";
    InvalidProducerEpoch = 47 final, "INVALID_PRODUCER_EPOCH",
        "The producer tried to write with an old epoch.";
    InvalidTxnState = 48 final, "INVALID_TXN_STATE",
        "The producer attempted a transactional operation in an invalid state.";
    InvalidProducerIdMapping = 49 final, "INVALID_PRODUCER_ID_MAPPING",
        "The producer id does not belong to the transactional id.";
    InvalidTransactionTimeout = 50 final, "INVALID_TRANSACTION_TIMEOUT",
        "The transaction timeout is larger than the broker allows.";
    ConcurrentTransactions = 51 retry, "CONCURRENT_TRANSACTIONS",
        "The producer attempted to change a transaction that is being changed.";
    TransactionCoordinatorFenced = 52 final, "TRANSACTION_COORDINATOR_FENCED",
        "The transaction coordinator has been superseded.";
    TransactionalIdAuthorizationFailed = 53 final, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "Transactional id authorization failed.";
    SecurityDisabled = 54 final, "SECURITY_DISABLED", "Security features are disabled.";
    OperationNotAttempted = 55 final, "OPERATION_NOT_ATTEMPTED",
        "The broker did not attempt this operation.";
    KafkaStorageError = 56 retry, "KAFKA_STORAGE_ERROR", "The broker could not access its storage.";
    LogDirNotFound = 57 final, "LOG_DIR_NOT_FOUND", "The log directory does not exist.";
    SaslAuthenticationFailed = 58 final, "SASL_AUTHENTICATION_FAILED",
        "SASL authentication failed.";
    UnknownProducerId = 59 final, "UNKNOWN_PRODUCER_ID",
        "The broker has no state for this producer id.";
    ReassignmentInProgress = 60 final, "REASSIGNMENT_IN_PROGRESS",
        "A partition reassignment is in progress.";
    DelegationTokenAuthDisabled = 61 final, "DELEGATION_TOKEN_AUTH_DISABLED",
        "Delegation tokens are not enabled.";
    DelegationTokenNotFound = 62 final, "DELEGATION_TOKEN_NOT_FOUND",
        "The delegation token does not exist.";
    DelegationTokenOwnerMismatch = 63 final, "DELEGATION_TOKEN_OWNER_MISMATCH",
        "The principal is not the owner of the token.";
    DelegationTokenRequestNotAllowed = 64 final, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
        "Delegation token requests are not allowed on this connection.";
    DelegationTokenAuthorizationFailed = 65 final, "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
        "Delegation token authorization failed.";
    DelegationTokenExpired = 66 final, "DELEGATION_TOKEN_EXPIRED",
        "The delegation token has expired.";
    InvalidPrincipalType = 67 final, "INVALID_PRINCIPAL_TYPE",
        "The principal type is not supported.";
    NonEmptyGroup = 68 final, "NON_EMPTY_GROUP", "The group is not empty.";
    GroupIdNotFound = 69 final, "GROUP_ID_NOT_FOUND", "The group id does not exist.";
    FetchSessionIdNotFound = 70 retry, "FETCH_SESSION_ID_NOT_FOUND",
        "The fetch session does not exist.";
    InvalidFetchSessionEpoch = 71 retry, "INVALID_FETCH_SESSION_EPOCH",
        "The fetch session epoch is invalid.";
    ListenerNotFound = 72 retry, "LISTENER_NOT_FOUND",
        "The leader has no listener that matches the request's.";
    TopicDeletionDisabled = 73 final, "TOPIC_DELETION_DISABLED", "Topic deletion is disabled.";
    FencedLeaderEpoch = 74 retry, "FENCED_LEADER_EPOCH",
        "The leader epoch in the request is older than the broker's.";
    UnknownLeaderEpoch = 75 retry, "UNKNOWN_LEADER_EPOCH",
        "The leader epoch in the request is newer than the broker's.";
    UnsupportedCompressionType = 76 final, "UNSUPPORTED_COMPRESSION_TYPE",
        "The client does not support the compression of the partition.";
    StaleBrokerEpoch = 77 final, "STALE_BROKER_EPOCH", "The broker epoch has changed.";
    OffsetNotAvailable = 78 retry, "OFFSET_NOT_AVAILABLE",
        "The leader's high watermark has not caught up after an election.";
    MemberIdRequired = 79 final, "MEMBER_ID_REQUIRED",
        "The member must have an id before it joins the group.";
    PreferredLeaderNotAvailable = 80 retry, "PREFERRED_LEADER_NOT_AVAILABLE",
        "The preferred leader is not available.";
    GroupMaxSizeReached = 81 final, "GROUP_MAX_SIZE_REACHED",
        "The group has reached its largest size.";
    FencedInstanceId = 82 final, "FENCED_INSTANCE_ID",
        "Another member with this instance id has taken over.";
    EligibleLeadersNotAvailable = 83 retry, "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        "No eligible leader is available.";
    ElectionNotNeeded = 84 retry, "ELECTION_NOT_NEEDED", "No leader election is needed.";
    NoReassignmentInProgress = 85 final, "NO_REASSIGNMENT_IN_PROGRESS",
        "No partition reassignment is in progress.";
    GroupSubscribedToTopic = 86 final, "GROUP_SUBSCRIBED_TO_TOPIC",
        "The group is subscribed to the topic.";
    InvalidRecord = 87 final, "INVALID_RECORD", "A record failed the broker's validation.";
    UnstableOffsetCommit = 88 retry, "UNSTABLE_OFFSET_COMMIT",
        "There are unstable offsets that need to be cleared.";
    ThrottlingQuotaExceeded = 89 retry, "THROTTLING_QUOTA_EXCEEDED",
        "The throttling quota has been exceeded.";
    ProducerFenced = 90 final, "PRODUCER_FENCED",
        "A newer producer with the same transactional id has fenced this one.";
    ResourceNotFound = 91 final, "RESOURCE_NOT_FOUND", "The resource does not exist.";
    DuplicateResource = 92 final, "DUPLICATE_RESOURCE", "The resource already exists.";
    UnacceptableCredential = 93 final, "UNACCEPTABLE_CREDENTIAL",
        "The credential does not meet the requirements.";
    InconsistentVoterSet = 94 final, "INCONSISTENT_VOTER_SET",
        "The voter sets of sender and receiver differ.";
    InvalidUpdateVersion = 95 final, "INVALID_UPDATE_VERSION", "The update version is invalid.";
    FeatureUpdateFailed = 96 final, "FEATURE_UPDATE_FAILED", "The features could not be updated.";
    PrincipalDeserializationFailure = 97 final, "PRINCIPAL_DESERIALIZATION_FAILURE",
        "The forwarded principal could not be read.";
    SnapshotNotFound = 98 final, "SNAPSHOT_NOT_FOUND", "The snapshot does not exist.";
    PositionOutOfRange = 99 final, "POSITION_OUT_OF_RANGE",
        "The position in the snapshot is out of range.";
    UnknownTopicId = 100 retry, "UNKNOWN_TOPIC_ID",
        "This broker does not host a topic with this id.";
    DuplicateBrokerRegistration = 101 final, "DUPLICATE_BROKER_REGISTRATION",
        "The broker id is already in use.";
    BrokerIdNotRegistered = 102 final, "BROKER_ID_NOT_REGISTERED",
        "The broker id is not registered.";
    InconsistentTopicId = 103 retry, "INCONSISTENT_TOPIC_ID",
        "The topic id in the request is not the topic's.";
    InconsistentClusterId = 104 final, "INCONSISTENT_CLUSTER_ID",
        "The cluster id in the request is not this cluster's.";
    TransactionalIdNotFound = 105 final, "TRANSACTIONAL_ID_NOT_FOUND",
        "The transactional id does not exist.";
    FetchSessionTopicIdError = 106 retry, "FETCH_SESSION_TOPIC_ID_ERROR",
        "The fetch session met inconsistent topic ids.";
    IneligibleReplica = 107 final, "INELIGIBLE_REPLICA", "The replica cannot be in sync.";
    NewLeaderElected = 108 final, "NEW_LEADER_ELECTED", "The leader has changed.";
    OffsetMovedToTieredStorage = 109 final, "OFFSET_MOVED_TO_TIERED_STORAGE",
        "The offset has moved to tiered storage.";
    FencedMemberEpoch = 110 final, "FENCED_MEMBER_EPOCH",
        "The coordinator has fenced the member's epoch.";
    UnreleasedInstanceId = 111 final, "UNRELEASED_INSTANCE_ID",
        "Another member still holds the instance id.";
    UnsupportedAssignor = 112 final, "UNSUPPORTED_ASSIGNOR",
        "The assignor is not supported by the group.";
    StaleMemberEpoch = 113 final, "STALE_MEMBER_EPOCH", "The member epoch is stale.";
    MismatchedEndpointType = 114 final, "MISMATCHED_ENDPOINT_TYPE",
        "The request was sent to an endpoint of the wrong type.";
    UnsupportedEndpointType = 115 final, "UNSUPPORTED_ENDPOINT_TYPE",
        "This endpoint type is not supported.";
    UnknownControllerId = 116 final, "UNKNOWN_CONTROLLER_ID", "The controller id is not known.";
    UnknownSubscriptionId = 117 final, "UNKNOWN_SUBSCRIPTION_ID",
        "The telemetry subscription is not known.";
    TelemetryTooLarge = 118 final, "TELEMETRY_TOO_LARGE",
        "The telemetry is larger than the broker accepts.";
    InvalidRegistration = 119 final, "INVALID_REGISTRATION", "The registration is invalid.";
    TransactionAbortable = 120 final, "TRANSACTION_ABORTABLE",
        "The transaction has met an error and can be aborted.";
    InvalidRecordState = 121 final, "INVALID_RECORD_STATE",
        "The record is not in the state the operation needs.";
    ShareSessionNotFound = 122 retry, "SHARE_SESSION_NOT_FOUND",
        "The share session does not exist.";
    InvalidShareSessionEpoch = 123 retry, "INVALID_SHARE_SESSION_EPOCH",
        "The share session epoch is invalid.";
    FencedStateEpoch = 124 final, "FENCED_STATE_EPOCH",
        "The share coordinator has fenced the state epoch.";
    InvalidVoterKey = 125 final, "INVALID_VOTER_KEY",
        "The voter key does not match the receiver's.";
    DuplicateVoter = 126 final, "DUPLICATE_VOTER", "The voter is already in the set.";
    VoterNotFound = 127 final, "VOTER_NOT_FOUND", "The voter is not in the set.";
    InvalidRegularExpression = 128 final, "INVALID_REGULAR_EXPRESSION",
        "The regular expression is invalid.";
    RebootstrapRequired = 129 final, "REBOOTSTRAP_REQUIRED",
        "The client is connected to the wrong node and must bootstrap again.";
    StreamsInvalidTopology = 130 final, "STREAMS_INVALID_TOPOLOGY", "The topology is invalid.";
    StreamsInvalidTopologyEpoch = 131 final, "STREAMS_INVALID_TOPOLOGY_EPOCH",
        "The topology epoch is invalid.";
    StreamsTopologyFenced = 132 final, "STREAMS_TOPOLOGY_FENCED", "The topology epoch is outdated.";
    ShareSessionLimitReached = 133 retry, "SHARE_SESSION_LIMIT_REACHED",
        "The limit of share sessions has been reached.";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: numbers and names lead back to the code. Method: every code, and numbers around them.
    #[test]
    fn numbers_lead_back_to_codes() {
        for error in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_code(error.code()), Some(*error));
            assert!(!error.name().is_empty());
        }
        assert!(ErrorCode::ALL.is_sorted_by_key(|error| error.code()));
        assert_eq!(ErrorCode::from_code(-2), None);
        assert_eq!(ErrorCode::from_code(i16::MAX), None);
        assert_eq!(ErrorCode::NotLeaderOrFollower.code(), 6);
        assert_eq!(ErrorCode::UnsupportedVersion.code(), 35);
        assert!(ErrorCode::NotLeaderOrFollower.is_retriable());
        assert!(!ErrorCode::MessageTooLarge.is_retriable());
    }
}
