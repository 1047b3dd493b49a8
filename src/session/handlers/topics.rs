//! CreateTopics, DeleteTopics, CreatePartitions.

use crate::base::ids::TopicId;
use crate::session::Session;
use crate::session::errors::topic_error;
use crate::session::replies::Reply;
use crate::shard::TopicError;
use crate::shard::catalog::{Catalog, Topic};
use crate::shard::control::NewTopic;
use crate::shard::topic_config::SETTINGS;
use crate::wire::messages::{
    CreatableTopic, CreatableTopicConfigs, CreatableTopicResult, CreatePartitionsRequest,
    CreatePartitionsResponse, CreatePartitionsTopic, CreatePartitionsTopicResult,
    CreateTopicsRequest, CreateTopicsResponse, DeletableTopicResult, DeleteTopicState,
    DeleteTopicsRequest, DeleteTopicsResponse,
};
use crate::wire::schema::{Array, Text};
use crate::wire::{ErrorCode, RequestHeader};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Kafka's number for "this topic sets it itself".
pub(super) const SOURCE_TOPIC: i8 = 1;
/// Kafka's number for "a built-in default".
pub(super) const SOURCE_DEFAULT: i8 = 5;
/// Replication factor that internal topics of clients may ask for although there is one host.
const INTERNAL_REPLICAS_MAX: i16 = 3;

impl Session {
    pub(in crate::session) fn create_topics(
        &self,
        header: RequestHeader,
        request: CreateTopicsRequest,
    ) -> Reply {
        let session = self.clone();
        self.later(header, async move {
            let repeated = repeated(request.topics.iter().map(|topic| topic.name.to_string()));
            let mut results = Vec::new();
            for topic in &request.topics {
                let name = topic.name.clone();
                let result = if repeated.contains(&*name) {
                    session.failed(
                        name,
                        ErrorCode::InvalidRequest,
                        "the topic is named twice".to_owned(),
                    )
                } else {
                    match session.create_topic(&topic, request.validate_only).await {
                        Ok(created) => created_result(&created),
                        Err(error) => session.failed(name, topic_error(&error), error.to_string()),
                    }
                };
                results.push(result);
            }
            CreateTopicsResponse {
                topics: results.into(),
                ..CreateTopicsResponse::default()
            }
        })
    }

    async fn create_topic(
        &self,
        wanted: &CreatableTopic,
        validate_only: bool,
    ) -> Result<Arc<Topic>, TopicError> {
        let new = self.new_topic(wanted)?;
        if !validate_only {
            return self.router.create_topic(new).await;
        }
        let topic = Topic {
            id: TopicId::default(),
            name: new.name,
            partitions: new.partitions,
            config: new.config,
            created_ms: 0,
        };
        self.router.catalog().check_new(&topic)?;
        Ok(Arc::new(topic))
    }

    fn new_topic(&self, wanted: &CreatableTopic) -> Result<NewTopic, TopicError> {
        if !wanted.assignments.is_empty() {
            return Err(TopicError::InvalidAssignment(
                "replicas cannot be placed by hand: a partition's core follows from its topic's id"
                    .to_owned(),
            ));
        }
        let replicas = wanted.replication_factor;
        let internal = wanted.name.starts_with("__");
        let replicas_max = if internal { INTERNAL_REPLICAS_MAX } else { 1 };
        if replicas != -1 && !(1..=replicas_max).contains(&replicas) {
            return Err(TopicError::InvalidReplicationFactor(format!(
                "replication factor {replicas}; there is 1 host"
            )));
        }
        let partitions = match wanted.num_partitions {
            -1 => self.settings.partitions_default,
            count => count,
        };
        let mut config = BTreeMap::new();
        for setting in &wanted.configs {
            let Some(value) = setting.value else {
                let name = setting.name;
                return Err(TopicError::InvalidConfig(format!("{name} has no value")));
            };
            config.insert(setting.name.to_string(), value.to_string());
        }
        Ok(NewTopic {
            name: wanted.name.to_string(),
            partitions,
            config,
        })
    }

    pub(in crate::session) fn delete_topics(
        &self,
        header: RequestHeader,
        request: DeleteTopicsRequest,
    ) -> Reply {
        let session = self.clone();
        self.later(header.clone(), async move {
            let mut wanted: Vec<DeleteTopicState> = request.topics.to_vec();
            wanted.extend(request.topic_names.iter().map(|name| DeleteTopicState {
                name: Some(name),
                topic_id: TopicId::default(),
            }));
            let mut results = Vec::with_capacity(wanted.len());
            for topic in wanted {
                results.push(session.delete_topic(topic).await);
            }
            DeleteTopicsResponse {
                responses: results.into(),
                ..DeleteTopicsResponse::default()
            }
        })
    }

    async fn delete_topic(&self, wanted: DeleteTopicState) -> DeletableTopicResult {
        let found = find(&self.router.catalog(), &wanted);
        let unknown = match wanted.name {
            Some(_) => ErrorCode::UnknownTopicOrPartition,
            None => ErrorCode::UnknownTopicId,
        };
        let (code, text) = match &found {
            None => (unknown, Some(TopicError::Unknown.to_string())),
            Some(topic) => match self.router.delete_topic(topic.id).await {
                Ok(()) => (ErrorCode::None, None),
                Err(error) => (topic_error(&error), Some(error.to_string())),
            },
        };
        self.count_error(code);
        DeletableTopicResult {
            name: found
                .as_ref()
                .map(|topic| Text::from(topic.name.as_str()))
                .or(wanted.name),
            topic_id: found.map_or(wanted.topic_id, |topic| topic.id),
            error_code: code.code(),
            error_message: text.map(Text::from),
        }
    }

    pub(in crate::session) fn create_partitions(
        &self,
        header: RequestHeader,
        request: CreatePartitionsRequest,
    ) -> Reply {
        let session = self.clone();
        self.later(header, async move {
            let mut results = Vec::new();
            for topic in &request.topics {
                let outcome = session.grow_topic(&topic, request.validate_only).await;
                let (code, text) = match outcome {
                    Ok(()) => (ErrorCode::None, None),
                    Err(error) => (topic_error(&error), Some(Text::from(error.to_string()))),
                };
                session.count_error(code);
                results.push(CreatePartitionsTopicResult {
                    name: topic.name,
                    error_code: code.code(),
                    error_message: text,
                });
            }
            CreatePartitionsResponse {
                results: results.into(),
                ..CreatePartitionsResponse::default()
            }
        })
    }

    async fn grow_topic(
        &self,
        wanted: &CreatePartitionsTopic,
        validate_only: bool,
    ) -> Result<(), TopicError> {
        if wanted
            .assignments
            .as_ref()
            .is_some_and(|assignments| !assignments.is_empty())
        {
            return Err(TopicError::InvalidAssignment(
                "replicas cannot be placed by hand".to_owned(),
            ));
        }
        if validate_only {
            return self
                .router
                .catalog()
                .check_growth(&wanted.name, wanted.count)
                .map(|_| ());
        }
        self.router
            .grow_topic(wanted.name.to_string(), wanted.count)
            .await
    }

    fn failed(&self, name: Text, code: ErrorCode, text: String) -> CreatableTopicResult {
        self.count_error(code);
        CreatableTopicResult {
            name,
            error_code: code.code(),
            error_message: Some(Text::from(text)),
            ..CreatableTopicResult::default()
        }
    }
}

fn find(catalog: &Catalog, wanted: &DeleteTopicState) -> Option<Arc<Topic>> {
    let found = match &wanted.name {
        Some(name) => catalog.by_name(name),
        None => catalog.by_id(wanted.topic_id),
    };
    found.cloned()
}

fn repeated(names: impl Iterator<Item = String>) -> HashSet<String> {
    let mut seen = HashSet::new();
    names.filter(|name| !seen.insert(name.clone())).collect()
}

fn created_result(topic: &Topic) -> CreatableTopicResult {
    let configs: Array<CreatableTopicConfigs> = SETTINGS
        .iter()
        .map(|setting| {
            let own = topic.config.get(setting.name);
            CreatableTopicConfigs {
                name: Text::from(setting.name),
                value: Some(Text::from(own.map_or(setting.default, String::as_str))),
                config_source: if own.is_some() {
                    SOURCE_TOPIC
                } else {
                    SOURCE_DEFAULT
                },
                ..CreatableTopicConfigs::default()
            }
        })
        .collect();
    CreatableTopicResult {
        name: Text::from(topic.name.as_str()),
        topic_id: topic.id,
        num_partitions: topic.partitions,
        replication_factor: 1,
        configs: Some(configs),
        ..CreatableTopicResult::default()
    }
}
