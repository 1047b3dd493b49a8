//! Our codec against two others that were written from the same schemas.
//!
//! Every message is made up in every version both know, written by ours, and read by the other,
//! which must understand every byte and write the same bytes again. With `kafka-wire`, whose fields
//! carry Kafka's names, the values under each name are compared too: two fields of one width that
//! were swapped would survive the bytes.

use std::collections::BTreeMap;
use std::fmt::Debug;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as protocol;
use kafka_protocol::protocol::{Decodable, Encodable, Message as ProtocolMessage};
use kafka_wire::KafkaMessage;
use kafka_wire_core::{ApiVersion, DecodeLimits, Decoder, KafkaDecode, KafkaEncode};

use crate::wire::error::ErrorCode;
use crate::wire::fetch::{FetchRequest, FetchResponse};
use crate::wire::messages::{
    ApiVersionsRequest, ApiVersionsResponse, CreatePartitionsRequest, CreatePartitionsResponse,
    CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsRequest, DeleteTopicsResponse,
    DescribeClusterRequest, DescribeClusterResponse, DescribeConfigsRequest,
    DescribeConfigsResponse, FindCoordinatorRequest, FindCoordinatorResponse,
    InitProducerIdRequest, InitProducerIdResponse, ListOffsetsRequest, ListOffsetsResponse,
    MetadataRequest, MetadataResponse,
};
use crate::wire::produce::{ProduceRequest, ProduceResponse};
use crate::wire::schema::{Entropy, Message, Writer};

/// Samples of each message and version.
const SAMPLES: u64 = 60;

/// Our name of a field where it is not Kafka's.
fn kafka_name(message: &str, field: &str) -> String {
    let name = match (message, field) {
        ("FetchRequest" | "FetchResponse", "name") => "topic",
        ("ProduceResponse", "message") => "batch_index_error_message",
        _ => field,
    };
    name.to_owned()
}

/// Puts a value where a version older than `version` does not allow null.
fn fit<T: Clone>(value: &mut Option<T>, default: T, nullable: bool) {
    if !nullable {
        value.get_or_insert(default);
    }
}

trait Fit {
    /// Removes what the sampler may put but `version` does not allow.
    fn fit(&mut self, _version: i16) {}
}

impl Fit for MetadataRequest {
    fn fit(&mut self, version: i16) {
        fit(&mut self.topics, Default::default(), version >= 1);
        self.topics = self.topics.as_ref().map(|topics| {
            let fitted = topics.iter().map(|mut topic| {
                fit(&mut topic.name, Default::default(), version >= 10);
                topic
            });
            fitted.collect()
        });
    }
}

impl Fit for MetadataResponse {
    fn fit(&mut self, version: i16) {
        let fitted = self.topics.iter().map(|mut topic| {
            fit(&mut topic.name, Default::default(), version >= 12);
            topic
        });
        self.topics = fitted.collect();
    }
}

impl Fit for DeleteTopicsResponse {
    fn fit(&mut self, version: i16) {
        let fitted = self.responses.iter().map(|mut topic| {
            fit(&mut topic.name, Default::default(), version >= 6);
            topic
        });
        self.responses = fitted.collect();
    }
}

macro_rules! fits_as_sampled {
    ($($type:ty),* $(,)?) => { $( impl Fit for $type {} )* };
}

fits_as_sampled!(
    ProduceRequest,
    ProduceResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
);

fn written<M: Message>(message: &M, version: i16) -> Bytes {
    let mut writer = Writer::new(M::form(version), 64);
    message.write(&mut writer);
    writer.finish().expect("samples are short")
}

/// Ours and `kafka-wire`.
fn against_wire<M, O>(last: i16)
where
    M: Message + Fit + Debug + PartialEq,
    O: KafkaMessage + KafkaEncode + KafkaDecode + Debug,
{
    assert_eq!(M::NAME, O::NAME);
    let versions = O::SUPPORTED_VERSIONS;
    for version in versions.min().value()..=versions.max().value().min(last) {
        for seed in 0..SAMPLES {
            let mut message = M::sample(&mut Entropy::new(seed), M::form(version));
            message.fit(version);
            let bytes = written(&message, version);
            let what = format!("{} v{version}: {message:?} {bytes:02x?}", M::NAME);
            let limits = DecodeLimits::default();
            let mut decoder = Decoder::new(bytes.clone(), limits).expect("short");
            let other = O::decode(&mut decoder, ApiVersion::new(version));
            let other = other.unwrap_or_else(|error| panic!("{error}: {what}"));
            decoder
                .finish()
                .unwrap_or_else(|error| panic!("{error}: {what}"));
            let mut again = BytesMut::new();
            other
                .encode_into(&mut again, ApiVersion::new(version))
                .expect(&what);
            assert_eq!(again, bytes, "{what}");
            assert_eq!(
                M::decode(&again.freeze(), version).as_ref(),
                Ok(&message),
                "{what}"
            );
            let ours = leaves(&format!("{message:?}"), |name| kafka_name(M::NAME, name));
            let theirs = leaves(&format!("{other:?}"), str::to_owned);
            for (name, values) in ours {
                assert_eq!(theirs.get(&name), Some(&values), "{name} in {what}");
            }
        }
    }
}

/// Ours and `kafka-protocol`.
fn against_protocol<M, O>()
where
    M: Message + Fit + Debug + PartialEq,
    O: Encodable + Decodable + ProtocolMessage + Debug,
{
    for version in O::VERSIONS.min..=O::VERSIONS.max {
        for seed in 0..SAMPLES {
            let mut message = M::sample(&mut Entropy::new(!seed), M::form(version));
            message.fit(version);
            let bytes = written(&message, version);
            let what = format!("{} v{version}: {message:?} {bytes:02x?}", M::NAME);
            let mut rest = bytes.clone();
            let other = O::decode(&mut rest, version);
            let other = other.unwrap_or_else(|error| panic!("{error}: {what}"));
            assert!(rest.is_empty(), "{what}");
            let mut again = BytesMut::new();
            other.encode(&mut again, version).expect(&what);
            assert_eq!(again, bytes, "{what}: {other:?}");
        }
    }
}

/// The numbers and strings in a debug text, under the name of their field, in order.
fn leaves(debug: &str, rename: impl Fn(&str) -> String) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let word = |c: char| c.is_alphanumeric() || c == '_';
    for (at, _) in debug.match_indices(": ") {
        let name = debug[..at].rsplit(|c| !word(c)).next().unwrap_or_default();
        let value = debug[at + 2..].trim_start_matches("Some(");
        let end = match value.starts_with("StrBytes(") {
            true => value.find("\")").map_or(value.len(), |end| end + 2),
            false => value.find(|c| !word(c) && c != '-').unwrap_or(value.len()),
        };
        let scalar = &value[..end];
        let number = scalar.parse::<i64>().is_ok() || scalar.parse::<bool>().is_ok();
        let field = !name.is_empty() && name != "fields";
        if field && (number || scalar.starts_with("StrBytes(")) {
            found
                .entry(rename(name))
                .or_default()
                .push(scalar.to_owned());
        }
    }
    found
}

macro_rules! compare {
    ($($test:ident: $request:ident $response:ident $last:literal;)*) => { $(
        /// Goal: ours is Kafka's. Method: see the module comment.
        #[test]
        fn $test() {
            against_wire::<$request, kafka_wire::$request>($last);
            against_wire::<$response, kafka_wire::$response>($last);
            against_protocol::<$request, protocol::$request>();
            against_protocol::<$response, protocol::$response>();
        }
    )* };
}

// The number is the last version served where `kafka-wire` knows a later one.
compare! {
    produce: ProduceRequest ProduceResponse 13;
    fetch: FetchRequest FetchResponse 18;
    list_offsets: ListOffsetsRequest ListOffsetsResponse 11;
    metadata: MetadataRequest MetadataResponse 13;
    find_coordinator: FindCoordinatorRequest FindCoordinatorResponse 6;
    api_versions: ApiVersionsRequest ApiVersionsResponse 5;
    create_topics: CreateTopicsRequest CreateTopicsResponse 7;
    delete_topics: DeleteTopicsRequest DeleteTopicsResponse 6;
    create_partitions: CreatePartitionsRequest CreatePartitionsResponse 3;
    describe_configs: DescribeConfigsRequest DescribeConfigsResponse 4;
    describe_cluster: DescribeClusterRequest DescribeClusterResponse 2;
}

/// Goal: as above; `kafka-protocol` knows version 6, which is not served, so only `kafka-wire`.
#[test]
fn init_producer_id() {
    against_wire::<InitProducerIdRequest, kafka_wire::InitProducerIdRequest>(5);
    against_wire::<InitProducerIdResponse, kafka_wire::InitProducerIdResponse>(5);
}

/// Goal: the comparison of names sees a swap. Method: two texts that differ by one.
#[test]
fn leaves_are_told_apart() {
    let left = leaves(
        "A { x: 1, y: Some(2), z: StrBytes(b\"a: 3\") }",
        str::to_owned,
    );
    let right = leaves(
        "A { x: 2, y: Some(1), z: StrBytes(b\"a: 3\") }",
        str::to_owned,
    );
    assert_eq!(left["x"], ["1"]);
    assert_eq!(left["y"], ["2"]);
    assert_ne!(left, right);
}

/// Goal: our error codes are Kafka's. Method: name and retriability of every code that
/// `kafka-protocol` knows; it is behind Kafka in one.
#[test]
fn error_codes() {
    for error in ErrorCode::ALL {
        let code = error.code();
        let Some(other) = kafka_protocol::ResponseError::try_from_code(code) else {
            assert_eq!(*error, ErrorCode::None);
            continue;
        };
        if matches!(other, kafka_protocol::ResponseError::Unknown(_)) {
            assert!(code >= 129, "{error} is unknown to others");
            continue;
        }
        let name = error.name().replace('_', "").to_lowercase();
        assert_eq!(name, format!("{other:?}").to_lowercase());
        let behind = *error == ErrorCode::ConcurrentTransactions;
        assert_eq!(
            error.is_retriable(),
            other.is_retriable() || behind,
            "{error}"
        );
    }
}
