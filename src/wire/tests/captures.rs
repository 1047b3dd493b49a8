//! Real clients' requests and Kafka's answers go through the codec unchanged.

use bytes::Bytes;

use super::{Pair, recording};
use crate::base::record_batch::Batches;
use crate::wire::fetch::{FetchReply, PartitionReply, TopicReply};
use crate::wire::messages::LeaderIdAndEpoch;
use crate::wire::refusal::{self, Refusal};
use crate::wire::versions::{self, Support};
use crate::wire::{Request, RequestHeader, Response, codec, request, response};

fn served() -> impl Iterator<Item = Pair> {
    let served = |pair: &Pair| versions::support(pair.api_key, pair.version).is_served();
    recording().into_iter().filter(served)
}

/// Goal: what clients send is understood to the last byte. Method: decode every recorded request
/// of a served API and encode it again; the bytes must be those that were recorded.
#[test]
fn recorded_requests_survive_the_round_trip() {
    let mut checked = 0;
    for pair in served() {
        let what = format!("{} {} v{}", pair.client, pair.api_key, pair.version);
        let (header, body) = RequestHeader::decode(&pair.request).expect(&what);
        assert_eq!(
            (header.api_key, header.api_version),
            (pair.api_key, pair.version)
        );
        let request = request::decode(&header, &body).expect(&what);
        let frame = request::encode(&header, &request).expect(&what);
        assert_eq!(
            frame[..4],
            (pair.request.len() as i32).to_be_bytes(),
            "{what}"
        );
        assert_eq!(frame[4..], pair.request, "{what}");
        checked += 1;
    }
    assert!(checked > 200, "only {checked} requests were checked");
}

/// Goal: what Kafka answers is understood by our client. Method: decode every recorded answer of a
/// served API; encode it again to the same bytes.
#[test]
fn recorded_answers_survive_the_round_trip() {
    let mut checked = 0;
    for pair in served() {
        let what = format!("{} {} v{}", pair.client, pair.api_key, pair.version);
        let Some(recorded) = &pair.response else {
            continue;
        };
        // Kafka answers an ApiVersions it does not know in version 0.
        let version = match pair.version {
            _ if pair.api_key == versions::API_VERSIONS && recorded[4..6] == [0, 35] => 0,
            version => version,
        };
        let (id, answer) = response::decode(pair.api_key, version, recorded).expect(&what);
        let frame = response::encode(pair.api_key, version, id, &answer).expect(&what);
        assert_eq!(frame[4..], *recorded, "{what}");
        checked += 1;
    }
    assert!(checked > 190, "only {checked} answers were checked");
}

/// Goal: the broker's own encoder of fetched records agrees with the declared schema. Method: turn
/// each recorded answer into a reply whose records lie in pieces of 7 bytes; where the answer has
/// nothing a reply cannot say, the bytes must be the recorded ones (the session declined).
#[test]
fn fetch_replies_are_what_kafka_sends() {
    let mut checked = 0;
    for pair in served().filter(|pair| pair.api_key == versions::FETCH) {
        let recorded = pair.response.expect("a fetch is answered");
        let (id, answer) = response::decode(pair.api_key, pair.version, &recorded).expect("whole");
        let Response::Fetch(mut answer) = answer else {
            unreachable!()
        };
        answer.session_id = 0;
        let pieces = |records: &Bytes| records.chunks(7).map(Bytes::copy_from_slice).collect();
        let reply = FetchReply {
            throttle_time_ms: answer.throttle_time_ms,
            error_code: answer.error_code,
            topics: answer
                .topics
                .iter()
                .map(|topic| TopicReply {
                    name: topic.name.clone(),
                    topic_id: topic.topic_id,
                    partitions: topic
                        .partitions
                        .iter()
                        .map(|partition| PartitionReply {
                            partition_index: partition.partition_index,
                            error_code: partition.error_code,
                            high_watermark: partition.high_watermark,
                            last_stable_offset: partition.last_stable_offset,
                            log_start_offset: partition.log_start_offset,
                            current_leader: Some(partition.current_leader.clone())
                                .filter(|leader| *leader != LeaderIdAndEpoch::default()),
                            records: partition.records.as_ref().map_or(Vec::new(), pieces),
                        })
                        .collect(),
                })
                .collect(),
            node_endpoints: answer.node_endpoints.to_vec(),
        };
        let frame = reply.encode(pair.version, id).expect("short names");
        let (_, decoded) =
            response::decode(pair.api_key, pair.version, &frame.slice(4..)).expect("our own bytes");
        let Response::Fetch(decoded) = decoded else {
            unreachable!()
        };
        for (ours, theirs) in decoded.topics.iter().zip(answer.topics.iter()) {
            for (ours, mut theirs) in ours.partitions.iter().zip(theirs.partitions.iter()) {
                theirs.aborted_transactions = None;
                theirs.records.get_or_insert_default();
                assert_eq!(ours, theirs);
            }
        }
        let schema = response::encode(pair.api_key, pair.version, id, &decoded.into());
        assert_eq!(schema.as_ref(), Ok(&frame));
        checked += 1;
    }
    assert!(checked > 20, "only {checked} answers were checked");
}

/// Goal: batches of real clients, whatever their codec, are read to the last record. Method: walk
/// every batch in recorded Produce requests and Fetch answers.
#[test]
fn recorded_batches_are_read_to_the_last_record() {
    let mut codecs = std::collections::BTreeSet::new();
    for pair in served() {
        let mut blobs = Vec::new();
        let (header, body) = RequestHeader::decode(&pair.request).expect("recorded");
        match request::decode(&header, &body).expect("recorded") {
            Request::Produce(produce) => {
                for topic in &produce.topics {
                    blobs.extend(
                        topic
                            .partitions
                            .iter()
                            .filter_map(|partition| partition.records),
                    );
                }
            }
            Request::Fetch(_) => {
                let recorded = pair.response.as_ref().expect("answered");
                let decoded = response::decode(pair.api_key, pair.version, recorded);
                let Ok((_, Response::Fetch(fetch))) = decoded else {
                    unreachable!()
                };
                for topic in &fetch.topics {
                    blobs.extend(
                        topic
                            .partitions
                            .iter()
                            .filter_map(|partition| partition.records),
                    );
                }
            }
            _ => {}
        }
        for blob in blobs {
            for batch in Batches::new(&blob) {
                let batch = batch.expect("a batch");
                batch.validate_produced().expect("a good batch");
                codecs.insert(batch.attributes() & 7);
                let records = codec::uncompressed_records(&batch).expect("decompresses");
                let offsets: Vec<i64> = batch
                    .records(&records)
                    .map(|record| record.expect("a record").offset)
                    .collect();
                assert_eq!(offsets.len(), batch.record_count() as usize);
                assert_eq!(offsets.last(), Some(&batch.last_offset()));
            }
        }
    }
    assert_eq!(codecs.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

/// Goal: no recorded request of an API we do not serve is met with silence. Method: refuse each;
/// every one must be answered, with the request's correlation id and the error in the bytes.
#[test]
fn recorded_requests_that_are_not_served_are_answered() {
    let mut checked = 0;
    for pair in recording() {
        if versions::support(pair.api_key, pair.version) != Support::ApiNotServed {
            continue;
        }
        let (header, body) = RequestHeader::decode(&pair.request).expect("recorded");
        let Refusal::Answer(frame) = refusal::refuse(&header, &body) else {
            panic!(
                "{} {} v{} was not answered",
                pair.client, pair.api_key, pair.version
            );
        };
        assert_eq!(frame[4..8], header.correlation_id.to_be_bytes());
        assert!(frame[8..].windows(2).any(|pair| pair == [0, 35]));
        checked += 1;
    }
    assert!(checked > 100, "only {checked} requests were checked");
}
