//! From a frame's header and body to one request.

use bytes::Bytes;

use super::fetch::FetchRequest;
use super::header::RequestHeader;
use super::messages::{
    ApiVersionsRequest, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest,
    DescribeClusterRequest, DescribeConfigsRequest, FindCoordinatorRequest, InitProducerIdRequest,
    ListOffsetsRequest, MetadataRequest,
};
use super::produce::ProduceRequest;
use super::schema::{DecodeError, EncodeError, Entropy, Form, Message, Sample, Wire, Writer};
use super::versions::{self, Support};

macro_rules! requests {
    ($($key:path => $variant:ident($type:ty), $doc:literal;)*) => {
        /// A request that is served.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Request {
            $( #[doc = $doc] $variant($type), )*
        }

        impl Request {
            /// The API key of this request.
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
                    $( Self::$variant(request) => request.write(writer), )*
                }
            }
        }

        $( impl From<$type> for Request {
            fn from(request: $type) -> Self {
                Self::$variant(request)
            }
        } )*

        fn decode_body(api_key: i16, version: i16, body: &Bytes) -> Result<Request, DecodeError> {
            match api_key {
                $( $key => <$type>::decode(body, version).map(Request::$variant), )*
                _ => Err(DecodeError::UnsupportedVersion { api_key, version }),
            }
        }
    };
}

requests! {
    versions::PRODUCE => Produce(ProduceRequest), "Append records.";
    versions::FETCH => Fetch(FetchRequest), "Read records.";
    versions::LIST_OFFSETS => ListOffsets(ListOffsetsRequest), "Find offsets.";
    versions::METADATA => Metadata(MetadataRequest), "Brokers, topics, leaders.";
    versions::FIND_COORDINATOR => FindCoordinator(FindCoordinatorRequest), "Who keeps a group.";
    versions::API_VERSIONS => ApiVersions(ApiVersionsRequest), "What is served.";
    versions::CREATE_TOPICS => CreateTopics(CreateTopicsRequest), "Create topics.";
    versions::DELETE_TOPICS => DeleteTopics(DeleteTopicsRequest), "Delete topics.";
    versions::INIT_PRODUCER_ID => InitProducerId(InitProducerIdRequest), "Get a producer id.";
    versions::DESCRIBE_CONFIGS => DescribeConfigs(DescribeConfigsRequest), "Read settings.";
    versions::CREATE_PARTITIONS => CreatePartitions(CreatePartitionsRequest), "Add partitions.";
    versions::DESCRIBE_CLUSTER => DescribeCluster(DescribeClusterRequest), "List brokers.";
}

/// Decodes the body of a served request; bytes after it are an error. Nothing is copied: strings,
/// records and arrays are slices of `body`.
///
/// # Errors
/// The body is malformed, or the API or version is not served (see
/// [`refuse`](super::refusal::refuse)).
pub fn decode(header: &RequestHeader, body: &Bytes) -> Result<Request, DecodeError> {
    let RequestHeader {
        api_key,
        api_version: version,
        ..
    } = *header;
    match versions::support(api_key, version) {
        Support::Served => decode_body(api_key, version, body),
        _ => Err(DecodeError::UnsupportedVersion { api_key, version }),
    }
}

/// Encodes a whole request frame, length prefix included.
///
/// # Errors
/// The request and the header's API differ, the version is not served, or something is too long.
pub fn encode(header: &RequestHeader, request: &Request) -> Result<Bytes, EncodeError> {
    let RequestHeader {
        api_key,
        api_version: version,
        ..
    } = *header;
    if request.api_key() != api_key {
        return Err(EncodeError::WrongApi { api_key });
    }
    if !versions::support(api_key, version).is_served() {
        return Err(EncodeError::UnsupportedVersion { api_key, version });
    }
    let flexible = versions::is_flexible(api_key, version);
    let form = Form { version, flexible };
    let mut writer = Writer::new(form, 256);
    writer.raw(&[0; 4]);
    header.write(&mut writer, flexible);
    request.write(&mut writer);
    writer.finish_frame()
}
