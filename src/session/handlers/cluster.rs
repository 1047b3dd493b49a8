//! What a client asks first and of the cluster as a whole: ApiVersions, FindCoordinator,
//! DescribeCluster, InitProducerId.

use super::metadata::CLUSTER_OPERATIONS_ALL;
use crate::session::Session;
use crate::session::replies::Reply;
use crate::wire::messages::{
    ApiVersionsRequest, Coordinator, DescribeClusterBroker, DescribeClusterRequest,
    DescribeClusterResponse, FindCoordinatorRequest, FindCoordinatorResponse,
    InitProducerIdRequest, InitProducerIdResponse,
};
use crate::wire::schema::Text;
use crate::wire::{ErrorCode, RequestHeader, refusal};

/// Kafka's number for "a group's coordinator".
const KEY_GROUP: i8 = 0;
/// Kafka's number for brokers as endpoints.
const ENDPOINT_BROKERS: i8 = 1;

impl Session {
    pub(in crate::session) fn api_versions(
        &self,
        header: &RequestHeader,
        request: &ApiVersionsRequest,
    ) -> Reply {
        let layout = &self.router.layout;
        let other_cluster = request
            .cluster_id
            .as_ref()
            .is_some_and(|id| **id != *layout.cluster_id);
        let own_id = layout.broker_id(self.settings.endpoint);
        let other_node = request.node_id >= 0 && request.node_id != own_id;
        let code = if other_cluster || other_node {
            // KIP-1242: the client reached another broker than it meant to.
            ErrorCode::RebootstrapRequired
        } else if header.api_version >= 3 && !names_are_legal(request) {
            ErrorCode::InvalidRequest
        } else {
            ErrorCode::None
        };
        self.count_error(code);
        self.now(header, refusal::served_ranges(code))
    }

    pub(in crate::session) fn find_coordinator(
        &self,
        header: &RequestHeader,
        request: &FindCoordinatorRequest,
    ) -> Reply {
        let locate = |key: Text| self.coordinator(key, request.key_type);
        if header.api_version >= 4 {
            let coordinators = request.coordinator_keys.iter().map(locate).collect();
            return self.now(
                header,
                FindCoordinatorResponse {
                    coordinators,
                    ..Default::default()
                },
            );
        }
        let found = locate(request.key.clone());
        let response = FindCoordinatorResponse {
            error_code: found.error_code,
            error_message: found.error_message,
            node_id: found.node_id,
            host: found.host,
            port: found.port,
            ..Default::default()
        };
        self.now(header, response)
    }

    fn coordinator(&self, key: Text, key_type: i8) -> Coordinator {
        let layout = &self.router.layout;
        if key_type != KEY_GROUP || key.is_empty() {
            let (code, text) = if key_type == KEY_GROUP {
                (ErrorCode::InvalidGroupId, "the group has no name")
            } else {
                (
                    ErrorCode::InvalidRequest,
                    "transactions and share groups are not served",
                )
            };
            self.count_error(code);
            return Coordinator {
                key,
                node_id: -1,
                port: -1,
                error_code: code.code(),
                error_message: Some(Text::from(text)),
                ..Default::default()
            };
        }
        let node_id = layout.coordinator_of(&key);
        let at = usize::try_from(node_id - layout.broker_id(0)).expect("a broker of this host");
        let endpoint = &layout.endpoints[at];
        Coordinator {
            key,
            node_id,
            host: Text::from(endpoint.host.as_str()),
            port: i32::from(endpoint.port),
            ..Default::default()
        }
    }

    pub(in crate::session) fn describe_cluster(
        &self,
        header: &RequestHeader,
        request: &DescribeClusterRequest,
    ) -> Reply {
        let layout = &self.router.layout;
        let mut response = DescribeClusterResponse {
            endpoint_type: request.endpoint_type,
            cluster_id: Text::from(layout.cluster_id.as_str()),
            controller_id: layout.broker_id(0),
            ..Default::default()
        };
        if request.endpoint_type == ENDPOINT_BROKERS {
            let brokers = layout.endpoints.iter().enumerate();
            response.brokers = brokers
                .map(|(at, endpoint)| DescribeClusterBroker {
                    broker_id: layout.broker_id(at),
                    host: Text::from(endpoint.host.as_str()),
                    port: i32::from(endpoint.port),
                    rack: layout.rack.as_deref().map(Text::from),
                    is_fenced: false,
                })
                .collect();
        } else {
            self.count_error(ErrorCode::MismatchedEndpointType);
            response.error_code = ErrorCode::MismatchedEndpointType.code();
            response.error_message =
                Some(Text::from("this endpoint serves brokers, not controllers"));
        }
        if request.include_cluster_authorized_operations {
            response.cluster_authorized_operations = CLUSTER_OPERATIONS_ALL;
        }
        self.now(header, response)
    }

    pub(in crate::session) fn init_producer_id(
        &self,
        header: RequestHeader,
        request: InitProducerIdRequest,
    ) -> Reply {
        let session = self.clone();
        self.later(header, async move {
            if request.transactional_id.is_some() {
                return session.no_producer_id(ErrorCode::InvalidRequest);
            }
            match session.router.new_producer_id().await {
                Ok(producer_id) => InitProducerIdResponse {
                    producer_id,
                    producer_epoch: 0,
                    ..Default::default()
                },
                Err(_) => session.no_producer_id(ErrorCode::CoordinatorNotAvailable),
            }
        })
    }

    fn no_producer_id(&self, code: ErrorCode) -> InitProducerIdResponse {
        self.count_error(code);
        InitProducerIdResponse {
            error_code: code.code(),
            ..Default::default()
        }
    }
}

fn names_are_legal(request: &ApiVersionsRequest) -> bool {
    name_is_legal(&request.client_software_name) && name_is_legal(&request.client_software_version)
}

/// Kafka's rule for the names that clients give themselves (KIP-511).
fn name_is_legal(name: &str) -> bool {
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    edge(name.bytes().next())
        && edge(name.bytes().next_back())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}
