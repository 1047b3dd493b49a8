//! Answers with one error for the whole request: nothing of the request needs to be read.

use bytes::Bytes;

use super::{CODE, frame};
use crate::wire::header::RequestHeader;

macro_rules! plain {
    ($($key:literal $first:literal: $response:ident,)*) => {
        /// The answer, if the API's answer has an error for the whole request in that version.
        pub(super) fn answer(header: &RequestHeader) -> Option<Bytes> {
            match header.api_key {
                $( $key if header.api_version >= $first => {
                    let mut response = kafka_wire::$response::default();
                    response.error_code = CODE;
                    frame(header, &response)
                } )*
                _ => None,
            }
        }

        /// Key, first version with such an error, and the error in a body of that version.
        #[cfg(test)]
        pub(super) fn error_in(key: i16, version: i16, body: &Bytes) -> Option<i16> {
            let version = kafka_wire_core::ApiVersion::new(version);
            match key {
                $( $key if version.value() >= $first => {
                    let mut decoder = kafka_wire_core::Decoder::new(
                        body.clone(), Default::default()).ok()?;
                    let response = <kafka_wire::$response as kafka_wire_core::KafkaDecode>::decode(
                        &mut decoder, version).ok()?;
                    decoder.finish().ok()?;
                    Some(response.error_code)
                } )*
                _ => None,
            }
        }
    };
}

// API key, and the first version whose answer has the error.
plain! {
    11 0: JoinGroupResponse,
    12 0: HeartbeatResponse,
    13 0: LeaveGroupResponse,
    14 0: SyncGroupResponse,
    16 0: ListGroupsResponse,
    17 0: SaslHandshakeResponse,
    24 4: AddPartitionsToTxnResponse,
    25 0: AddOffsetsToTxnResponse,
    26 0: EndTxnResponse,
    29 1: DescribeAclsResponse,
    35 3: DescribeLogDirsResponse,
    36 0: SaslAuthenticateResponse,
    38 1: CreateDelegationTokenResponse,
    39 1: RenewDelegationTokenResponse,
    40 1: ExpireDelegationTokenResponse,
    41 1: DescribeDelegationTokenResponse,
    43 1: ElectLeadersResponse,
    45 0: AlterPartitionReassignmentsResponse,
    46 0: ListPartitionReassignmentsResponse,
    47 0: OffsetDeleteResponse,
    48 0: DescribeClientQuotasResponse,
    50 0: DescribeUserScramCredentialsResponse,
    52 0: VoteResponse,
    53 0: BeginQuorumEpochResponse,
    54 0: EndQuorumEpochResponse,
    55 0: DescribeQuorumResponse,
    56 2: AlterPartitionResponse,
    57 0: UpdateFeaturesResponse,
    58 0: EnvelopeResponse,
    59 0: FetchSnapshotResponse,
    62 0: BrokerRegistrationResponse,
    63 0: BrokerHeartbeatResponse,
    64 0: UnregisterBrokerResponse,
    66 0: ListTransactionsResponse,
    67 0: AllocateProducerIdsResponse,
    68 0: ConsumerGroupHeartbeatResponse,
    70 0: ControllerRegistrationResponse,
    71 0: GetTelemetrySubscriptionsResponse,
    72 0: PushTelemetryResponse,
    73 0: AssignReplicasToDirsResponse,
    74 0: ListConfigResourcesResponse,
    76 1: ShareGroupHeartbeatResponse,
    78 1: ShareFetchResponse,
    79 1: ShareAcknowledgeResponse,
    80 0: AddRaftVoterResponse,
    81 0: RemoveRaftVoterResponse,
    82 0: UpdateRaftVoterResponse,
    88 0: StreamsGroupHeartbeatResponse,
    91 0: AlterShareGroupOffsetsResponse,
    92 0: DeleteShareGroupOffsetsResponse,
    93 0: StreamsGroupTopologyDescriptionUpdateResponse,
}
