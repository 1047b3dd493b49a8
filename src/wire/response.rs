//! From an answer to one frame, and back for clients.

use bytes::Bytes;

use super::fetch::FetchResponse;
use super::header;
use super::messages::{
    ApiVersionsResponse, CreatePartitionsResponse, CreateTopicsResponse, DeleteTopicsResponse,
    DescribeClusterResponse, DescribeConfigsResponse, FindCoordinatorResponse,
    InitProducerIdResponse, ListOffsetsResponse, MetadataResponse,
};
use super::produce::ProduceResponse;
use super::schema::{DecodeError, EncodeError, Entropy, Form, Message, Sample, Wire, Writer};
use super::versions;

macro_rules! responses {
    ($($key:path => $variant:ident($type:ty), $doc:literal;)*) => {
        /// An answer to a served request.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Response {
            $( #[doc = $doc] $variant($type), )*
        }

        impl Response {
            /// The API key this answers.
            #[must_use]
            pub fn api_key(&self) -> i16 {
                match self {
                    $( Self::$variant(_) => $key, )*
                }
            }

            /// Makes one up, as `version` can carry it; `None` if the API is not served.
            #[must_use]
            pub fn sample(api_key: i16, version: i16, entropy: &mut Entropy) -> Option<Self> {
                match api_key {
                    $( $key => {
                        let form = <$type>::form(version);
                        Some(Self::$variant(Sample::sample(entropy, form)))
                    } )*
                    _ => None,
                }
            }

            fn write(&self, writer: &mut Writer) {
                match self {
                    $( Self::$variant(response) => response.write(writer), )*
                }
            }
        }

        $( impl From<$type> for Response {
            fn from(response: $type) -> Self {
                Self::$variant(response)
            }
        } )*

        fn decode_body(api_key: i16, version: i16, body: &Bytes) -> Result<Response, DecodeError> {
            match api_key {
                $( $key => <$type>::decode(body, version).map(Response::$variant), )*
                _ => Err(DecodeError::UnsupportedVersion { api_key, version }),
            }
        }
    };
}

responses! {
    versions::PRODUCE => Produce(ProduceResponse), "What became of records.";
    versions::FETCH => Fetch(FetchResponse),
        "Records; a broker sends a `FetchReply` instead, which does not copy them twice.";
    versions::LIST_OFFSETS => ListOffsets(ListOffsetsResponse), "Offsets.";
    versions::METADATA => Metadata(MetadataResponse), "Brokers, topics, leaders.";
    versions::FIND_COORDINATOR => FindCoordinator(FindCoordinatorResponse), "Who keeps a group.";
    versions::API_VERSIONS => ApiVersions(ApiVersionsResponse), "What is served.";
    versions::CREATE_TOPICS => CreateTopics(CreateTopicsResponse), "What became of topics.";
    versions::DELETE_TOPICS => DeleteTopics(DeleteTopicsResponse), "What became of topics.";
    versions::INIT_PRODUCER_ID => InitProducerId(InitProducerIdResponse), "A producer id.";
    versions::DESCRIBE_CONFIGS => DescribeConfigs(DescribeConfigsResponse), "Settings.";
    versions::CREATE_PARTITIONS => CreatePartitions(CreatePartitionsResponse),
        "What became of topics.";
    versions::DESCRIBE_CLUSTER => DescribeCluster(DescribeClusterResponse), "The brokers.";
}

/// Encodes a whole response frame, length prefix included. Fields that `version` does not carry
/// are left out.
///
/// # Errors
/// The response and the API differ, the version is not one that exists, or something is too long.
pub fn encode(
    api_key: i16,
    version: i16,
    correlation_id: i32,
    response: &Response,
) -> Result<Bytes, EncodeError> {
    if response.api_key() != api_key {
        return Err(EncodeError::WrongApi { api_key });
    }
    let range = versions::served(api_key).ok_or(EncodeError::WrongApi { api_key })?;
    if !(range.min..=range.max).contains(&version) {
        return Err(EncodeError::UnsupportedVersion { api_key, version });
    }
    let flexible = version >= range.flexible_from;
    let mut writer = Writer::new(Form { version, flexible }, 256);
    let flexible_header = flexible && api_key != versions::API_VERSIONS;
    header::write_response(&mut writer, correlation_id, flexible_header);
    response.write(&mut writer);
    writer.finish_frame()
}

/// Decodes a response frame (without its length) to the correlation id and the answer.
///
/// # Errors
/// The frame is malformed, or the API or version is not one this codec knows.
pub fn decode(api_key: i16, version: i16, frame: &Bytes) -> Result<(i32, Response), DecodeError> {
    let range = versions::served(api_key);
    if !range.is_some_and(|range| (range.min..=range.max).contains(&version)) {
        return Err(DecodeError::UnsupportedVersion { api_key, version });
    }
    let (correlation_id, body) = header::decode_response(frame, api_key, version)?;
    Ok((correlation_id, decode_body(api_key, version, &body)?))
}
