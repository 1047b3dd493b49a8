//! Says no in Kafka's own words: error 35 (UNSUPPORTED_VERSION) at the request's own version.
//!
//! A client that asks for something this broker does not serve gets an answer it can read, with
//! the error wherever the schema has room for one, never silence. Only an API or a version nobody
//! knows the format of closes the connection, as it does in Kafka.
//!
//! An answer whose only errors stand beside each topic or group is made from the request. That is
//! the one place where the generated decoder reads bytes of a peer, so the body must be short
//! (`REFUSAL_BODY_BYTES_MAX`); a longer one closes the connection: an empty answer to an offset
//! commit would read as success.

mod mirror;
mod plain;

#[cfg(test)]
mod tests;

use bytes::{Bytes, BytesMut};
use kafka_wire_core::{ApiVersion as Version, DecodeLimits, Decoder, KafkaDecode, KafkaEncode};

use super::error::ErrorCode;
use super::header::RequestHeader;
use super::messages::{ApiVersion, ApiVersionsResponse};
use super::produce::{
    ProducePartition, ProducePartitionResponse, ProduceRequest, ProduceResponse, ProduceTopic,
    ProduceTopicResponse,
};
use super::response::{self, Response};
use super::schema::Message;
use super::versions::{self, PRODUCE_VERSION_MIN, SERVED};
use crate::limits::{REFUSAL_BODY_BYTES_MAX, REFUSAL_PARTITIONS_MAX};

const CODE: i16 = ErrorCode::UnsupportedVersion.code();

/// What to do with a request that is not served.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// Send this frame (its length is included).
    Answer(Bytes),
    /// Close the connection: there is no format to answer in, or no answer is expected.
    Close,
}

/// Refuses a request whose API or version is not served.
///
/// # Panics
/// The request is served.
#[must_use]
pub fn refuse(header: &RequestHeader, body: &Bytes) -> Refusal {
    let (key, version) = (header.api_key, header.api_version);
    let served = versions::support(key, version).is_served();
    assert!(!served, "API {key} version {version} is served");
    let answer = match key {
        versions::API_VERSIONS => api_versions(header),
        versions::PRODUCE => produce(header, body),
        versions::INIT_PRODUCER_ID => init_producer_id(header),
        _ => plain::answer(header).or_else(|| mirror::answer(header, body)),
    };
    answer.map_or(Refusal::Close, Refusal::Answer)
}

/// What ApiVersions answers: the served table. `error` is 35 for the answer to an unknown version,
/// which is of version 0 whatever was asked.
#[must_use]
pub fn served_ranges(error: ErrorCode) -> ApiVersionsResponse {
    let ranges = SERVED.iter().map(|range| ApiVersion {
        api_key: range.key,
        min_version: range.min,
        max_version: range.max,
    });
    ApiVersionsResponse {
        error_code: error.code(),
        api_keys: ranges.collect(),
        ..ApiVersionsResponse::default()
    }
}

fn api_versions(header: &RequestHeader) -> Option<Bytes> {
    let ranges = Response::ApiVersions(served_ranges(ErrorCode::UnsupportedVersion));
    response::encode(versions::API_VERSIONS, 0, header.correlation_id, &ranges).ok()
}

/// Produce 0–2: each partition gets the error. With acks 0 no answer is expected.
fn produce(header: &RequestHeader, body: &Bytes) -> Option<Bytes> {
    let version = header.api_version;
    if !(0..PRODUCE_VERSION_MIN).contains(&version) {
        return None;
    }
    let request = ProduceRequest::decode(body, version).ok()?;
    let partitions = request.topics.iter().map(|topic| topic.partitions.len());
    if request.acks == 0 || partitions.sum::<usize>() > REFUSAL_PARTITIONS_MAX {
        return None;
    }
    let partition = |partition: ProducePartition| ProducePartitionResponse {
        index: partition.index,
        error_code: CODE,
        ..ProducePartitionResponse::default()
    };
    let topic = |topic: ProduceTopic| ProduceTopicResponse {
        name: topic.name,
        partitions: topic.partitions.iter().map(partition).collect(),
        ..ProduceTopicResponse::default()
    };
    let response = Response::Produce(ProduceResponse {
        topics: request.topics.iter().map(topic).collect(),
        ..ProduceResponse::default()
    });
    response::encode(versions::PRODUCE, version, header.correlation_id, &response).ok()
}

/// InitProducerId 6, which belongs to two-phase commit: as version 5 but for two fields at the end.
fn init_producer_id(header: &RequestHeader) -> Option<Bytes> {
    let mut response = kafka_wire::InitProducerIdResponse::default();
    response.error_code = CODE;
    response.producer_id = -1;
    response.producer_epoch = -1;
    frame(header, &response)
}

/// A generated response as a frame; `None` if it does not exist in the request's version.
fn frame<R: KafkaEncode>(header: &RequestHeader, response: &R) -> Option<Bytes> {
    let mut buffer = BytesMut::with_capacity(128);
    buffer.extend_from_slice(&[0; 4]);
    buffer.extend_from_slice(&header.correlation_id.to_be_bytes());
    if versions::is_flexible(header.api_key, header.api_version) {
        buffer.extend_from_slice(&[0]);
    }
    let version = Version::new(header.api_version);
    response.encode_into(&mut buffer, version).ok()?;
    let length = i32::try_from(buffer.len() - 4).ok()?;
    buffer[..4].copy_from_slice(&length.to_be_bytes());
    Some(buffer.freeze())
}

/// A generated request from a short body.
fn request<Q: KafkaDecode>(header: &RequestHeader, body: &Bytes) -> Option<Q> {
    if body.len() > REFUSAL_BODY_BYTES_MAX {
        return None;
    }
    let mut decoder = Decoder::new(body.clone(), DecodeLimits::default()).ok()?;
    Q::decode(&mut decoder, Version::new(header.api_version)).ok()
}
