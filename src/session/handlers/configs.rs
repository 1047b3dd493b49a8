//! DescribeConfigs: the settings of topics and of this broker, under Kafka's names.

use super::topics::{SOURCE_DEFAULT, SOURCE_TOPIC};
use crate::session::Session;
use crate::session::replies::Reply;
use crate::shard::topic_config::{MAX_MESSAGE_BYTES, SETTINGS};
use crate::wire::messages::{
    ConfigEntry, ConfigSynonym, DescribeConfigsRequest, DescribeConfigsResource,
    DescribeConfigsResponse, DescribeConfigsResult,
};
use crate::wire::schema::{Array, Text};
use crate::wire::{ErrorCode, RequestHeader};

/// Kafka's number for a topic as a resource.
const RESOURCE_TOPIC: i8 = 2;
/// Kafka's number for a broker as a resource.
const RESOURCE_BROKER: i8 = 4;
/// Kafka's number for "the broker was started with it".
const SOURCE_STATIC_BROKER: i8 = 4;
/// Kafka's numbers for the types of values.
const TYPE_STRING: i8 = 2;

/// One setting, ready to be described.
struct Described {
    name: &'static str,
    value: String,
    source: i8,
    meaning: &'static str,
}

impl Session {
    pub(in crate::session) fn describe_configs(
        &self,
        header: &RequestHeader,
        request: &DescribeConfigsRequest,
    ) -> Reply {
        let results = request.resources.iter().map(|resource| {
            let described = match resource.resource_type {
                RESOURCE_TOPIC => self.topic_settings(&resource.resource_name),
                RESOURCE_BROKER => self.broker_settings(&resource.resource_name),
                other => Err((
                    ErrorCode::InvalidRequest,
                    format!("resource type {other} has no settings here"),
                )),
            };
            self.describe_resource(request, &resource, described)
        });
        let results = results.collect();
        self.now(
            header,
            DescribeConfigsResponse {
                results,
                ..Default::default()
            },
        )
    }

    fn topic_settings(&self, name: &str) -> Result<Vec<Described>, (ErrorCode, String)> {
        let catalog = self.router.catalog();
        let Some(topic) = catalog.by_name(name) else {
            return Err((
                ErrorCode::UnknownTopicOrPartition,
                format!("there is no topic {name}"),
            ));
        };
        let described = SETTINGS.iter().map(|setting| {
            let own = topic.config.get(setting.name);
            let default = match setting.name {
                MAX_MESSAGE_BYTES => self.settings.message_bytes_max.to_string(),
                _ => setting.default.to_owned(),
            };
            Described {
                name: setting.name,
                value: own.cloned().unwrap_or(default),
                source: if own.is_some() {
                    SOURCE_TOPIC
                } else {
                    SOURCE_DEFAULT
                },
                meaning: setting.meaning,
            }
        });
        Ok(described.collect())
    }

    fn broker_settings(&self, name: &str) -> Result<Vec<Described>, (ErrorCode, String)> {
        let layout = &self.router.layout;
        let known = (0..layout.endpoints.len()).any(|at| layout.broker_id(at).to_string() == name);
        // An empty name asks for the defaults of all brokers.
        if !known && !name.is_empty() {
            return Err((
                ErrorCode::InvalidRequest,
                format!("there is no broker {name}"),
            ));
        }
        let own = |name, value: String, meaning| Described {
            name,
            value,
            source: SOURCE_STATIC_BROKER,
            meaning,
        };
        Ok(vec![
            own(
                "auto.create.topics.enable",
                self.settings.auto_create_topics.to_string(),
                "whether asking for an unknown topic makes it",
            ),
            own(
                "default.replication.factor",
                "1".to_owned(),
                "copies of a topic that does not say; there is one host",
            ),
            own(
                "message.max.bytes",
                self.settings.message_bytes_max.to_string(),
                "largest record batch of a topic that does not say, in bytes",
            ),
            own(
                "num.partitions",
                self.settings.partitions_default.to_string(),
                "partitions of a topic made without saying how many",
            ),
        ])
    }

    fn describe_resource(
        &self,
        request: &DescribeConfigsRequest,
        resource: &DescribeConfigsResource,
        described: Result<Vec<Described>, (ErrorCode, String)>,
    ) -> DescribeConfigsResult {
        let mut result = DescribeConfigsResult {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            ..DescribeConfigsResult::default()
        };
        match described {
            Ok(described) => {
                let wanted = |name: &str| match &resource.configuration_keys {
                    Some(keys) => keys.is_empty() || keys.iter().any(|key| &*key == name),
                    None => true,
                };
                let kept = described.into_iter().filter(|setting| wanted(setting.name));
                result.configs = kept.map(|setting| entry(request, setting)).collect();
            }
            Err((code, text)) => {
                self.count_error(code);
                result.error_code = code.code();
                result.error_message = Some(Text::from(text));
            }
        }
        result
    }
}

fn entry(request: &DescribeConfigsRequest, setting: Described) -> ConfigEntry {
    let value = Some(Text::from(setting.value));
    let synonym = ConfigSynonym {
        name: Text::from(setting.name),
        value: value.clone(),
        source: setting.source,
    };
    ConfigEntry {
        name: Text::from(setting.name),
        value,
        read_only: false,
        config_source: setting.source,
        is_sensitive: false,
        synonyms: match request.include_synonyms {
            true => Array::from(vec![synonym]),
            false => Array::default(),
        },
        config_type: TYPE_STRING,
        documentation: request
            .include_documentation
            .then(|| Text::from(setting.meaning)),
    }
}
