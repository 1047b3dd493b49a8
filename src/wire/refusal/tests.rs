//! Every API Kafka has is refused in words a client can read.

use bytes::{Bytes, BytesMut};
use kafka_wire_core::{ApiVersion, DecodeLimits, Decoder, KafkaDecode, KafkaEncode};

use super::mirror::filled;
use super::*;
use crate::wire::messages::ApiVersionsRequest;
use crate::wire::schema::{Text, Wire, Writer};
use crate::wire::versions::Support;

fn header(api_key: i16, api_version: i16) -> RequestHeader {
    RequestHeader {
        api_key,
        api_version,
        correlation_id: 77,
        client_id: None,
    }
}

/// The body behind the response header of a refusal.
fn answer_body(header: &RequestHeader, body: &Bytes) -> Bytes {
    let Refusal::Answer(frame) = refuse(header, body) else {
        panic!("{header:?} was not answered");
    };
    assert_eq!(frame[..4], ((frame.len() - 4) as u32).to_be_bytes());
    assert_eq!(frame[4..8], 77i32.to_be_bytes());
    let flexible = versions::is_flexible(header.api_key, header.api_version);
    frame.slice(if flexible { 9 } else { 8 }..)
}

/// Goal: an API with one error for the whole answer is refused without its body being read.
/// Method: every such API in every version, with an empty body; the generated decoder must find
/// the error.
#[test]
fn plain_answers_carry_the_error() {
    let mut checked = 0;
    for descriptor in kafka_wire::API_DESCRIPTORS {
        let key = descriptor.api_key.value();
        let range = descriptor.supported_versions;
        for version in range.min().value()..=range.max().value() {
            let served = versions::support(key, version).is_served();
            if served || plain::answer(&header(key, version)).is_none() {
                continue;
            }
            let body = answer_body(&header(key, version), &Bytes::new());
            assert_eq!(
                plain::error_in(key, version, &body),
                Some(CODE),
                "{key} v{version}"
            );
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} versions were checked");
}

fn mirrored<Q, R>(key: i16, question: &Q, expected: usize, range: std::ops::RangeInclusive<i16>)
where
    Q: KafkaEncode,
    R: KafkaDecode + std::fmt::Debug,
{
    for version in range {
        let what = format!("API {key} version {version}");
        let mut body = BytesMut::new();
        let wire_version = ApiVersion::new(version);
        question.encode_into(&mut body, wire_version).expect(&what);
        let answer = answer_body(&header(key, version), &body.freeze());
        let mut decoder = Decoder::new(answer, DecodeLimits::default()).expect(&what);
        let response = R::decode(&mut decoder, wire_version).expect(&what);
        decoder.finish().expect(&what);
        let text = format!("{response:?}");
        assert_eq!(
            text.matches("error_code: 35").count(),
            expected,
            "{what}: {text}"
        );
    }
}

/// One topic of two partitions, in the shape `$path` gives it.
macro_rules! questions {
    ($( $key:literal [$first:literal ..= $last:literal] $errors:literal
        $request:ident => $response:ident { $($field:ident : $value:expr),* $(,)? } )*) => {
        /// Goal: an API whose errors stand beside what was asked mirrors all of it. Method: a
        /// question in every version; the generated decoder reads the answer to its end and must
        /// find as many errors as things were asked.
        #[test]
        fn mirrored_answers_carry_the_error() {
            $( mirrored::<_, kafka_wire::$response>(
                $key,
                &filled!(kafka_wire::$request { $($field: $value),* }),
                $errors,
                $first..=$last,
            ); )*
            let keys = [$($key),*];
            for descriptor in kafka_wire::API_DESCRIPTORS {
                let key = descriptor.api_key.value();
                let first = descriptor.supported_versions.min().value();
                let served = versions::support(key, first) != Support::ApiNotServed;
                let plain = plain::answer(&header(key, first)).is_some();
                assert!(served || plain || keys.contains(&key), "API {key} has no test");
            }
        }
    };
}

macro_rules! one {
    ($module:ident :: $type:ident { $($field:ident : $value:expr),* $(,)? }) => {
        vec![filled!(kafka_wire::$module::$type { $($field: $value),* })]
    };
}

macro_rules! two {
    ($module:ident :: $type:ident . $field:ident) => {
        vec![
            filled!(kafka_wire::$module::$type { $field: 0 }),
            filled!(kafka_wire::$module::$type { $field: 1 }),
        ]
    };
}

fn names() -> Vec<Text> {
    vec![Text::from("a"), Text::from("b")]
}

questions! {
    8 [2 ..= 9] 2 OffsetCommitRequest => OffsetCommitResponse {
        topics: one!(offset_commit_request::OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: two!(offset_commit_request::OffsetCommitRequestPartition.partition_index),
        }),
    }
    9 [1 ..= 1] 2 OffsetFetchRequest => OffsetFetchResponse {
        topics: Some(one!(offset_fetch_request::OffsetFetchRequestTopic {
            name: "t".into(), partition_indexes: vec![0, 1],
        })),
    }
    9 [2 ..= 7] 3 OffsetFetchRequest => OffsetFetchResponse {
        topics: Some(one!(offset_fetch_request::OffsetFetchRequestTopic {
            name: "t".into(), partition_indexes: vec![0, 1],
        })),
    }
    9 [8 ..= 10] 1 OffsetFetchRequest => OffsetFetchResponse {
        groups: one!(offset_fetch_request::OffsetFetchRequestGroup { group_id: "g".into() }),
    }
    15 [0 ..= 6] 2 DescribeGroupsRequest => DescribeGroupsResponse { groups: names() }
    21 [0 ..= 2] 2 DeleteRecordsRequest => DeleteRecordsResponse {
        topics: one!(delete_records_request::DeleteRecordsTopic {
            name: "t".into(),
            partitions: two!(delete_records_request::DeleteRecordsPartition.partition_index),
        }),
    }
    23 [2 ..= 4] 2 OffsetForLeaderEpochRequest => OffsetForLeaderEpochResponse {
        topics: one!(offset_for_leader_epoch_request::OffsetForLeaderTopic {
            topic: "t".into(),
            partitions: two!(offset_for_leader_epoch_request::OffsetForLeaderPartition.partition),
        }),
    }
    24 [0 ..= 3] 2 AddPartitionsToTxnRequest => AddPartitionsToTxnResponse {
        v3_and_below_topics: one!(add_partitions_to_txn_request::AddPartitionsToTxnTopic {
            name: "t".into(), partitions: vec![0, 1],
        }),
    }
    27 [1 ..= 2] 2 WriteTxnMarkersRequest => WriteTxnMarkersResponse {
        markers: one!(write_txn_markers_request::WritableTxnMarker {
            topics: one!(write_txn_markers_request::WritableTxnMarkerTopic {
                name: "t".into(), partition_indexes: vec![0, 1],
            }),
        }),
    }
    28 [0 ..= 5] 2 TxnOffsetCommitRequest => TxnOffsetCommitResponse {
        topics: one!(txn_offset_commit_request::TxnOffsetCommitRequestTopic {
            name: "t".into(),
            partitions: two!(
                txn_offset_commit_request::TxnOffsetCommitRequestPartition.partition_index
            ),
        }),
    }
    30 [1 ..= 3] 1 CreateAclsRequest => CreateAclsResponse {
        creations: one!(create_acls_request::AclCreation { host: "*".into() }),
    }
    31 [1 ..= 3] 1 DeleteAclsRequest => DeleteAclsResponse {
        filters: one!(delete_acls_request::DeleteAclsFilter { operation: 1 }),
    }
    33 [0 ..= 2] 1 AlterConfigsRequest => AlterConfigsResponse {
        resources: one!(alter_configs_request::AlterConfigsResource { resource_type: 2 }),
    }
    34 [1 ..= 2] 2 AlterReplicaLogDirsRequest => AlterReplicaLogDirsResponse {
        dirs: one!(alter_replica_log_dirs_request::AlterReplicaLogDir {
            topics: one!(alter_replica_log_dirs_request::AlterReplicaLogDirTopic {
                name: "t".into(), partitions: vec![0, 1],
            }),
        }),
    }
    35 [1 ..= 2] 1 DescribeLogDirsRequest => DescribeLogDirsResponse { topics: None }
    42 [0 ..= 3] 2 DeleteGroupsRequest => DeleteGroupsResponse { groups_names: names() }
    43 [0 ..= 0] 2 ElectLeadersRequest => ElectLeadersResponse {
        topic_partitions: Some(one!(elect_leaders_request::TopicPartitions {
            topic: "t".into(), partitions: vec![0, 1],
        })),
    }
    44 [0 ..= 1] 1 IncrementalAlterConfigsRequest => IncrementalAlterConfigsResponse {
        resources: one!(incremental_alter_configs_request::AlterConfigsResource {
            resource_type: 2,
        }),
    }
    49 [0 ..= 1] 1 AlterClientQuotasRequest => AlterClientQuotasResponse {
        entries: one!(alter_client_quotas_request::EntryData {
            entity: one!(alter_client_quotas_request::EntityData { entity_type: "user".into() }),
        }),
    }
    51 [0 ..= 0] 2 AlterUserScramCredentialsRequest => AlterUserScramCredentialsResponse {
        deletions: one!(alter_user_scram_credentials_request::ScramCredentialDeletion {
            name: "a".into(),
        }),
        upsertions: one!(alter_user_scram_credentials_request::ScramCredentialUpsertion {
            name: "b".into(),
        }),
    }
    61 [0 ..= 0] 2 DescribeProducersRequest => DescribeProducersResponse {
        topics: one!(describe_producers_request::TopicRequest {
            name: "t".into(), partition_indexes: vec![0, 1],
        }),
    }
    65 [0 ..= 0] 2 DescribeTransactionsRequest => DescribeTransactionsResponse {
        transactional_ids: names(),
    }
    69 [0 ..= 1] 2 ConsumerGroupDescribeRequest => ConsumerGroupDescribeResponse {
        group_ids: names(),
    }
    75 [0 ..= 0] 1 DescribeTopicPartitionsRequest => DescribeTopicPartitionsResponse {
        topics: one!(describe_topic_partitions_request::TopicRequest { name: "t".into() }),
    }
    77 [1 ..= 1] 2 ShareGroupDescribeRequest => ShareGroupDescribeResponse { group_ids: names() }
    83 [0 ..= 0] 2 InitializeShareGroupStateRequest => InitializeShareGroupStateResponse {
        topics: one!(initialize_share_group_state_request::InitializeStateData {
            partitions: two!(initialize_share_group_state_request::PartitionData.partition),
        }),
    }
    84 [0 ..= 0] 2 ReadShareGroupStateRequest => ReadShareGroupStateResponse {
        topics: one!(read_share_group_state_request::ReadStateData {
            partitions: two!(read_share_group_state_request::PartitionData.partition),
        }),
    }
    85 [0 ..= 1] 2 WriteShareGroupStateRequest => WriteShareGroupStateResponse {
        topics: one!(write_share_group_state_request::WriteStateData {
            partitions: two!(write_share_group_state_request::PartitionData.partition),
        }),
    }
    86 [0 ..= 0] 2 DeleteShareGroupStateRequest => DeleteShareGroupStateResponse {
        topics: one!(delete_share_group_state_request::DeleteStateData {
            partitions: two!(delete_share_group_state_request::PartitionData.partition),
        }),
    }
    87 [0 ..= 1] 2 ReadShareGroupStateSummaryRequest => ReadShareGroupStateSummaryResponse {
        topics: one!(read_share_group_state_summary_request::ReadStateSummaryData {
            partitions: two!(read_share_group_state_summary_request::PartitionData.partition),
        }),
    }
    89 [0 ..= 1] 2 StreamsGroupDescribeRequest => StreamsGroupDescribeResponse {
        group_ids: names(),
    }
    90 [0 ..= 1] 1 DescribeShareGroupOffsetsRequest => DescribeShareGroupOffsetsResponse {
        groups: one!(describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestGroup {
            group_id: "g".into(),
        }),
    }
}

/// Goal: a client that speaks a newer ApiVersions learns what to speak. Method: versions above and
/// below, and a header whose tagged fields are noise; the answer is of version 0 with error 35, the
/// ranges, and a header without tagged fields.
#[test]
fn unknown_api_versions_are_answered_in_version_0() {
    for version in [6, 99, i16::MAX, -1] {
        let mut frame = vec![0, 18];
        frame.extend_from_slice(&version.to_be_bytes());
        frame.extend_from_slice(&77i32.to_be_bytes());
        frame.extend_from_slice(&[0, 1, b'x', 0xff, 0xff, 0xff]);
        let (header, body) = RequestHeader::decode(&frame.into()).expect("readable");
        let Refusal::Answer(answer) = refuse(&header, &body) else {
            panic!("version {version} was not answered");
        };
        let decoded = response::decode(versions::API_VERSIONS, 0, &answer.slice(4..));
        let expected = served_ranges(ErrorCode::UnsupportedVersion);
        assert_eq!(decoded, Ok((77, Response::ApiVersions(expected))));
        assert_eq!(answer[8..10], [0, 35]);
    }
    assert!(
        ApiVersionsRequest::default()
            .client_software_name
            .is_empty()
    );
}

/// Goal: the advertised versions 0–2 of Produce are refused in their own words. Method: a request
/// of each; the answer has exactly the bytes that version has.
#[test]
fn old_produce_is_refused_in_its_own_format() {
    for version in 0..3 {
        let partition = |index| ProducePartition {
            index,
            records: Some(Bytes::from_static(b"old message set")),
        };
        let topic = ProduceTopic {
            name: Text::from("t"),
            partitions: vec![partition(4), partition(5)].into(),
            ..ProduceTopic::default()
        };
        let mut question = ProduceRequest {
            acks: 1,
            topics: vec![topic].into(),
            ..ProduceRequest::default()
        };
        let body = produce_body(&question, version);
        let answer = answer_body(&header(versions::PRODUCE, version), &body);
        let mut expected = vec![0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 2];
        for index in [4, 5] {
            expected.extend_from_slice(&[0, 0, 0, index, 0, 35]);
            expected.extend_from_slice(&(-1i64).to_be_bytes());
            if version >= 2 {
                expected.extend_from_slice(&(-1i64).to_be_bytes());
            }
        }
        if version >= 1 {
            expected.extend_from_slice(&[0; 4]);
        }
        assert_eq!(answer, expected);

        question.acks = 0;
        let body = produce_body(&question, version);
        let silent = refuse(&header(versions::PRODUCE, version), &body);
        assert_eq!(silent, Refusal::Close, "with acks 0 no answer is expected");
    }
}

fn produce_body(request: &ProduceRequest, version: i16) -> Bytes {
    let mut writer = Writer::new(ProduceRequest::form(version), 64);
    request.write(&mut writer);
    writer.finish().expect("short")
}

/// Goal: what has no format is not answered. Method: unknown keys, unknown versions, and mirrored
/// APIs whose body is malformed or too long to be mirrored.
#[test]
fn what_nobody_knows_is_closed() {
    for (key, version) in [(4, 0), (999, 0), (-1, 0), (8, 99), (19, 1), (1, 3), (0, 14)] {
        let refusal = refuse(&header(key, version), &Bytes::new());
        assert_eq!(refusal, Refusal::Close, "API {key} version {version}");
    }
    let long = Bytes::from(vec![0; REFUSAL_BODY_BYTES_MAX + 1]);
    assert_eq!(refuse(&header(8, 5), &long), Refusal::Close);
}

/// Goal: version 6 of InitProducerId, which Kafka has and we do not serve, is answered as such.
#[test]
fn newer_init_producer_id_is_answered() {
    let body = answer_body(&header(versions::INIT_PRODUCER_ID, 6), &Bytes::new());
    assert_eq!(body[4..6], [0, 35]);
    assert_eq!(body[6..14], (-1i64).to_be_bytes());
}
