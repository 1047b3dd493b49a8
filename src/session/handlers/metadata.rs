//! Metadata: the brokers (one an endpoint), the topics, and who leads which partition.

use crate::base::ids::{PartitionIndex, TopicId, TopicPartition};
use crate::limits::METADATA_CREATES_MAX;
use crate::session::Session;
use crate::session::errors::topic_error;
use crate::session::replies::Reply;
use crate::shard::append::LEADER_EPOCH;
use crate::shard::catalog::Topic;
use crate::shard::control::NewTopic;
use crate::wire::messages::{
    MetadataBroker, MetadataPartition, MetadataRequest, MetadataRequestTopic, MetadataResponse,
    MetadataTopic,
};
use crate::wire::schema::{Array, Text};
use crate::wire::{ErrorCode, RequestHeader};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything a client may do with a topic while there are no access rules: read, write, create,
/// delete, alter, describe, describe and alter configs (bits 3–8, 10, 11).
const TOPIC_OPERATIONS_ALL: i32 = 0b1101_1111_1000;
/// Everything a client may do with the cluster: create, alter, describe, cluster action, describe
/// and alter configs, idempotent write (bits 5, 7–12).
pub(super) const CLUSTER_OPERATIONS_ALL: i32 = 0b1_1111_1010_0000;

impl Session {
    pub(in crate::session) fn metadata(
        &self,
        header: RequestHeader,
        request: MetadataRequest,
    ) -> Reply {
        let session = self.clone();
        self.later(header.clone(), async move {
            let topics = session.metadata_topics(&header, &request).await;
            session.metadata_response(&request, topics)
        })
    }

    async fn metadata_topics(
        &self,
        header: &RequestHeader,
        request: &MetadataRequest,
    ) -> Vec<MetadataTopic> {
        if request.wants_all(header.api_version) {
            return self
                .router
                .catalog()
                .topics()
                .map(|topic| self.describe(topic))
                .collect();
        }
        let create = self.settings.auto_create_topics
            && (request.allow_auto_topic_creation || header.api_version < 4);
        let mut topics = Vec::new();
        let mut creates_left = METADATA_CREATES_MAX;
        for wanted in request.topics.iter().flatten() {
            let mut found = self.metadata_topic(&wanted);
            let unknown = found.error_code == ErrorCode::UnknownTopicOrPartition.code();
            if let (true, true, Some(name)) = (unknown && create, creates_left > 0, &wanted.name) {
                creates_left -= 1;
                found = self.auto_create(name).await;
            }
            topics.push(found);
        }
        topics
    }

    fn metadata_topic(&self, wanted: &MetadataRequestTopic) -> MetadataTopic {
        let catalog = self.router.catalog();
        let by_name = wanted.name.as_ref().and_then(|name| catalog.by_name(name));
        match (by_name, &wanted.name) {
            (Some(topic), _) => self.describe(topic),
            (None, Some(name)) => self.unknown(
                Some(name.clone()),
                TopicId::default(),
                ErrorCode::UnknownTopicOrPartition,
            ),
            (None, None) => match catalog.by_id(wanted.topic_id) {
                Some(topic) => self.describe(topic),
                None => self.unknown(None, wanted.topic_id, ErrorCode::UnknownTopicId),
            },
        }
    }

    async fn auto_create(&self, name: &Text) -> MetadataTopic {
        let new = NewTopic {
            name: name.to_string(),
            partitions: self.settings.partitions_default,
            config: BTreeMap::new(),
        };
        match self.router.create_topic(new).await {
            Ok(topic) => self.describe(&topic),
            // Somebody else made it meanwhile.
            Err(crate::shard::TopicError::Exists) => {
                let catalog = self.router.catalog();
                match catalog.by_name(name) {
                    Some(topic) => self.describe(topic),
                    None => self.unknown(
                        Some(name.clone()),
                        TopicId::default(),
                        ErrorCode::LeaderNotAvailable,
                    ),
                }
            }
            Err(error) => self.unknown(Some(name.clone()), TopicId::default(), topic_error(&error)),
        }
    }

    fn unknown(&self, name: Option<Text>, topic_id: TopicId, code: ErrorCode) -> MetadataTopic {
        self.count_error(code);
        MetadataTopic {
            error_code: code.code(),
            name,
            topic_id,
            ..MetadataTopic::default()
        }
    }

    fn describe(&self, topic: &Arc<Topic>) -> MetadataTopic {
        let partitions = (0..topic.partitions).map(|index| {
            let key = TopicPartition {
                topic: topic.id,
                partition: PartitionIndex(index),
            };
            let leader = self.router.layout.leader_of(&key);
            MetadataPartition {
                partition_index: index,
                leader_id: leader,
                leader_epoch: LEADER_EPOCH,
                replica_nodes: Array::from(vec![leader]),
                isr_nodes: Array::from(vec![leader]),
                ..MetadataPartition::default()
            }
        });
        MetadataTopic {
            name: Some(Text::from(topic.name.as_str())),
            topic_id: topic.id,
            is_internal: topic.name.starts_with("__"),
            partitions: partitions.collect(),
            ..MetadataTopic::default()
        }
    }

    fn metadata_response(
        &self,
        request: &MetadataRequest,
        mut topics: Vec<MetadataTopic>,
    ) -> MetadataResponse {
        if request.include_topic_authorized_operations {
            for topic in &mut topics {
                topic.topic_authorized_operations = TOPIC_OPERATIONS_ALL;
            }
        }
        let mut response = MetadataResponse {
            brokers: self.brokers(),
            cluster_id: Some(Text::from(self.router.layout.cluster_id.as_str())),
            controller_id: self.router.layout.broker_id(0),
            topics: topics.into(),
            ..MetadataResponse::default()
        };
        if request.include_cluster_authorized_operations {
            response.cluster_authorized_operations = CLUSTER_OPERATIONS_ALL;
        }
        response
    }

    fn brokers(&self) -> Array<MetadataBroker> {
        let layout = &self.router.layout;
        let brokers = layout
            .endpoints
            .iter()
            .enumerate()
            .map(|(index, endpoint)| MetadataBroker {
                node_id: layout.broker_id(index),
                host: Text::from(endpoint.host.as_str()),
                port: i32::from(endpoint.port),
                rack: layout.rack.as_deref().map(Text::from),
            });
        brokers.collect()
    }
}
