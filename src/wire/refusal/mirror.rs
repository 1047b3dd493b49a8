//! Answers with an error beside each topic, partition, group or resource that was asked about.

use bytes::Bytes;

use super::{CODE, frame, request};
use crate::wire::header::RequestHeader;

/// The default of a generated type (they cannot be written as literals) with some fields set.
macro_rules! filled {
    ($type:path { $($field:ident : $value:expr),* $(,)? }) => {{
        let mut value = <$type>::default();
        $( value.$field = $value; )*
        value
    }};
}

#[cfg(test)]
pub(super) use filled;

/// An answer in one list, an element for each element of one list of the request.
macro_rules! list {
    (
        $header:ident $body:ident
        $request:ident . $asked:ident => $response:ident . $answered:ident,
        |$item:ident| $module:ident :: $element:ident { $($field:ident : $value:expr),* $(,)? }
    ) => {{
        let asked: kafka_wire::$request = request($header, $body)?;
        let answer = filled!(kafka_wire::$response {
            $answered: asked.$asked.into_iter().map(|$item| {
                filled!(kafka_wire::$module::$element { $($field: $value),* })
            }).collect()
        });
        frame($header, &answer)
    }};
}

/// The elements of a nested list.
macro_rules! nested {
    ($list:expr, |$item:ident| { $($element:tt)* }) => {
        nested!($list, |$item| $($element)*)
    };
    (
        $list:expr,
        |$item:ident| $module:ident :: $element:ident { $($field:ident : $value:expr),* $(,)? }
    ) => {
        $list.into_iter().map(|$item| {
            filled!(kafka_wire::$module::$element { $($field: $value),* })
        }).collect()
    };
}

/// The answer, if the API is one of these and the body could be read.
pub(super) fn answer(header: &RequestHeader, body: &Bytes) -> Option<Bytes> {
    match header.api_key {
        8 | 9 | 15 | 42 | 69 | 77 | 89 | 90 => groups(header, body),
        24 | 27 | 28 | 65 => transactions(header, body),
        21 | 23 | 61 | 75 => partitions(header, body),
        34 | 35 | 43 => replicas(header, body),
        30 | 31 | 33 | 44 | 49 | 51 => resources(header, body),
        83..=87 => share_state(header, body),
        _ => None,
    }
}

fn groups(header: &RequestHeader, body: &Bytes) -> Option<Bytes> {
    match header.api_key {
        8 => list!(header body OffsetCommitRequest.topics => OffsetCommitResponse.topics,
        |topic| offset_commit_response::OffsetCommitResponseTopic {
            name: topic.name,
            topic_id: topic.topic_id,
            partitions: nested!(topic.partitions, |partition|
                offset_commit_response::OffsetCommitResponsePartition {
                    partition_index: partition.partition_index, error_code: CODE
                }),
        }),
        9 if header.api_version >= 8 => list!(header body
            OffsetFetchRequest.groups => OffsetFetchResponse.groups,
            |group| offset_fetch_response::OffsetFetchResponseGroup {
                group_id: group.group_id, error_code: CODE,
            }
        ),
        9 => offset_fetch_old(header, body),
        15 => list!(header body DescribeGroupsRequest.groups => DescribeGroupsResponse.groups,
        |group| describe_groups_response::DescribedGroup { group_id: group, error_code: CODE }),
        42 => list!(header body DeleteGroupsRequest.groups_names => DeleteGroupsResponse.results,
        |group| delete_groups_response::DeletableGroupResult {
            group_id: group, error_code: CODE,
        }),
        69 => list!(header body
            ConsumerGroupDescribeRequest.group_ids => ConsumerGroupDescribeResponse.groups,
            |group| consumer_group_describe_response::DescribedGroup {
                group_id: group, error_code: CODE,
            }
        ),
        77 => list!(header body
            ShareGroupDescribeRequest.group_ids => ShareGroupDescribeResponse.groups,
            |group| share_group_describe_response::DescribedGroup {
                group_id: group, error_code: CODE,
            }
        ),
        89 => list!(header body
            StreamsGroupDescribeRequest.group_ids => StreamsGroupDescribeResponse.groups,
            |group| streams_group_describe_response::DescribedGroup {
                group_id: group, error_code: CODE,
            }
        ),
        _ => list!(header body
            DescribeShareGroupOffsetsRequest.groups => DescribeShareGroupOffsetsResponse.groups,
            |group| describe_share_group_offsets_response::DescribeShareGroupOffsetsResponseGroup {
                group_id: group.group_id, error_code: CODE,
            }
        ),
    }
}

/// OffsetFetch up to version 7: an error beside each partition, and from version 2 one for all.
fn offset_fetch_old(header: &RequestHeader, body: &Bytes) -> Option<Bytes> {
    let asked: kafka_wire::OffsetFetchRequest = request(header, body)?;
    let topics = asked.topics.unwrap_or_default();
    let mut response = filled!(kafka_wire::OffsetFetchResponse {
        topics: nested!(topics, |topic| {
            offset_fetch_response::OffsetFetchResponseTopic {
                name: topic.name,
                partitions: nested!(topic.partition_indexes, |index| {
                    offset_fetch_response::OffsetFetchResponsePartition {
                        partition_index: index,
                        committed_offset: -1,
                        error_code: CODE,
                    }
                }),
            }
        })
    });
    if header.api_version >= 2 {
        response.error_code = CODE;
    }
    frame(header, &response)
}

fn transactions(header: &RequestHeader, body: &Bytes) -> Option<Bytes> {
    match header.api_key {
        24 => list!(header body AddPartitionsToTxnRequest.v3_and_below_topics
            => AddPartitionsToTxnResponse.results_by_topic_v3_and_below,
            |topic| add_partitions_to_txn_response::AddPartitionsToTxnTopicResult {
                name: topic.name,
                results_by_partition: nested!(topic.partitions, |index|
                    add_partitions_to_txn_response::AddPartitionsToTxnPartitionResult {
                        partition_index: index, partition_error_code: CODE
                    }),
            }
        ),
        27 => list!(header body WriteTxnMarkersRequest.markers => WriteTxnMarkersResponse.markers,
        |marker| write_txn_markers_response::WritableTxnMarkerResult {
            producer_id: marker.producer_id,
            topics: nested!(marker.topics, |topic|
                write_txn_markers_response::WritableTxnMarkerTopicResult {
                    name: topic.name,
                    partitions: nested!(topic.partition_indexes, |index|
                        write_txn_markers_response::WritableTxnMarkerPartitionResult {
                            partition_index: index, error_code: CODE
                        })
                }),
        }),
        28 => list!(header body TxnOffsetCommitRequest.topics => TxnOffsetCommitResponse.topics,
        |topic| txn_offset_commit_response::TxnOffsetCommitResponseTopic {
            name: topic.name,
            topic_id: topic.topic_id,
            partitions: nested!(topic.partitions, |partition|
                txn_offset_commit_response::TxnOffsetCommitResponsePartition {
                    partition_index: partition.partition_index, error_code: CODE
                }),
        }),
        _ => list!(header body DescribeTransactionsRequest.transactional_ids
            => DescribeTransactionsResponse.transaction_states,
            |id| describe_transactions_response::TransactionState {
                transactional_id: id, error_code: CODE,
            }
        ),
    }
}

fn partitions(header: &RequestHeader, body: &Bytes) -> Option<Bytes> {
    match header.api_key {
        21 => list!(header body DeleteRecordsRequest.topics => DeleteRecordsResponse.topics,
        |topic| delete_records_response::DeleteRecordsTopicResult {
            name: topic.name,
            partitions: nested!(topic.partitions, |partition|
                delete_records_response::DeleteRecordsPartitionResult {
                    partition_index: partition.partition_index,
                    low_watermark: -1,
                    error_code: CODE
                }),
        }),
        23 => list!(header body
            OffsetForLeaderEpochRequest.topics => OffsetForLeaderEpochResponse.topics,
            |topic| offset_for_leader_epoch_response::OffsetForLeaderTopicResult {
                topic: topic.topic,
                partitions: nested!(topic.partitions, |partition|
                    offset_for_leader_epoch_response::EpochEndOffset {
                        partition: partition.partition, error_code: CODE
                    }),
            }
        ),
        61 => {
            list!(header body DescribeProducersRequest.topics => DescribeProducersResponse.topics,
            |topic| describe_producers_response::TopicResponse {
                name: topic.name,
                partitions: nested!(topic.partition_indexes, |index|
                    describe_producers_response::PartitionResponse {
                        partition_index: index, error_code: CODE
                    }),
            })
        }
        _ => list!(header body
            DescribeTopicPartitionsRequest.topics => DescribeTopicPartitionsResponse.topics,
            |topic| describe_topic_partitions_response::DescribeTopicPartitionsResponseTopic {
                name: Some(topic.name), error_code: CODE,
            }
        ),
    }
}

fn replicas(header: &RequestHeader, body: &Bytes) -> Option<Bytes> {
    match header.api_key {
        34 => {
            let asked: kafka_wire::AlterReplicaLogDirsRequest = request(header, body)?;
            let topics = asked.dirs.into_iter().flat_map(|dir| dir.topics);
            let answer = filled!(kafka_wire::AlterReplicaLogDirsResponse {
                results: nested!(topics, |topic| {
                    alter_replica_log_dirs_response::AlterReplicaLogDirTopicResult {
                        topic_name: topic.name,
                        partitions: nested!(topic.partitions, |index| {
                            alter_replica_log_dirs_response::AlterReplicaLogDirPartitionResult {
                                partition_index: index,
                                error_code: CODE,
                            }
                        }),
                    }
                })
            });
            frame(header, &answer)
        }
        35 => {
            let result = filled!(
                kafka_wire::describe_log_dirs_response::DescribeLogDirsResult { error_code: CODE }
            );
            let answer = filled!(kafka_wire::DescribeLogDirsResponse {
                results: vec![result]
            });
            frame(header, &answer)
        }
        _ => {
            let asked: kafka_wire::ElectLeadersRequest = request(header, body)?;
            let answer = filled!(kafka_wire::ElectLeadersResponse {
                replica_election_results: nested!(
                    asked.topic_partitions.unwrap_or_default(),
                    |topic| elect_leaders_response::ReplicaElectionResult {
                        topic: topic.topic,
                        partition_result: nested!(topic.partitions, |index| {
                            elect_leaders_response::PartitionResult {
                                partition_id: index,
                                error_code: CODE,
                            }
                        })
                    }
                )
            });
            frame(header, &answer)
        }
    }
}

fn resources(header: &RequestHeader, body: &Bytes) -> Option<Bytes> {
    match header.api_key {
        30 => list!(header body CreateAclsRequest.creations => CreateAclsResponse.results,
        |_creation| create_acls_response::AclCreationResult { error_code: CODE }),
        31 => list!(header body DeleteAclsRequest.filters => DeleteAclsResponse.filter_results,
        |_filter| delete_acls_response::DeleteAclsFilterResult { error_code: CODE }),
        33 => list!(header body AlterConfigsRequest.resources => AlterConfigsResponse.responses,
        |resource| alter_configs_response::AlterConfigsResourceResponse {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
            error_code: CODE,
        }),
        44 => list!(header body
            IncrementalAlterConfigsRequest.resources => IncrementalAlterConfigsResponse.responses,
            |resource| incremental_alter_configs_response::AlterConfigsResourceResponse {
                resource_type: resource.resource_type,
                resource_name: resource.resource_name,
                error_code: CODE,
            }
        ),
        49 => list!(header body
            AlterClientQuotasRequest.entries => AlterClientQuotasResponse.entries,
            |entry| alter_client_quotas_response::EntryData {
                error_code: CODE,
                entity: nested!(entry.entity, |entity|
                    alter_client_quotas_response::EntityData {
                        entity_type: entity.entity_type, entity_name: entity.entity_name
                    }),
            }
        ),
        _ => {
            let asked: kafka_wire::AlterUserScramCredentialsRequest = request(header, body)?;
            let deleted = asked.deletions.into_iter().map(|deletion| deletion.name);
            let upserted = asked.upsertions.into_iter().map(|upsertion| upsertion.name);
            let mut users: Vec<_> = deleted.chain(upserted).collect();
            users.sort();
            users.dedup();
            let answer = filled!(kafka_wire::AlterUserScramCredentialsResponse {
                results: nested!(users, |user| {
                    alter_user_scram_credentials_response::AlterUserScramCredentialsResult {
                        user: user,
                        error_code: CODE,
                    }
                })
            });
            frame(header, &answer)
        }
    }
}

/// The APIs between brokers that keep share groups' state.
fn share_state(header: &RequestHeader, body: &Bytes) -> Option<Bytes> {
    macro_rules! state {
        ($request:ident.topics, $response:ident, $module:ident::$result:ident) => {
            list!(header body $request.topics => $response.results, |topic| $module::$result {
                topic_id: topic.topic_id,
                partitions: nested!(topic.partitions, |asked| $module::PartitionResult {
                    partition: asked.partition, error_code: CODE
                }),
            })
        };
    }
    match header.api_key {
        83 => state!(
            InitializeShareGroupStateRequest.topics,
            InitializeShareGroupStateResponse,
            initialize_share_group_state_response::InitializeStateResult
        ),
        84 => state!(
            ReadShareGroupStateRequest.topics,
            ReadShareGroupStateResponse,
            read_share_group_state_response::ReadStateResult
        ),
        85 => state!(
            WriteShareGroupStateRequest.topics,
            WriteShareGroupStateResponse,
            write_share_group_state_response::WriteStateResult
        ),
        86 => state!(
            DeleteShareGroupStateRequest.topics,
            DeleteShareGroupStateResponse,
            delete_share_group_state_response::DeleteStateResult
        ),
        _ => state!(
            ReadShareGroupStateSummaryRequest.topics,
            ReadShareGroupStateSummaryResponse,
            read_share_group_state_summary_response::ReadStateSummaryResult
        ),
    }
}
