//! What the client knows of topics: partitions and their leaders.

use super::retry::until_good;
use super::{Client, ClientError, check};
use crate::base::ids::TopicId;
use crate::wire::messages::{MetadataRequest, MetadataRequestTopic, MetadataTopic};
use crate::wire::{Array, ErrorCode, Response, Text};

/// A topic as the brokers describe it.
#[derive(Clone, Debug)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: TopicId,
    /// Whether it is internal.
    pub internal: bool,
    /// Its partitions, by index.
    pub partitions: Vec<Partition>,
}

/// A partition and who leads it.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Its index.
    pub index: i32,
    /// Broker id of its leader, -1 if there is none.
    pub leader: i32,
    /// Epoch of that leadership.
    pub leader_epoch: i32,
    /// Kafka's error code.
    pub error_code: i16,
}

impl Client {
    /// Learns brokers and the named topics anew; unknown topics are made where `create` says so and
    /// the broker agrees.
    ///
    /// # Errors
    /// No broker can be asked. What is wrong with a topic is in the answer.
    pub fn refresh(
        &mut self,
        names: &[&str],
        create: bool,
    ) -> Result<Vec<MetadataTopic>, ClientError> {
        let topics = names.iter().map(|name| MetadataRequestTopic {
            name: Some(Text::from(*name)),
            ..MetadataRequestTopic::default()
        });
        self.metadata(Some(topics.collect()), create)
    }

    fn metadata(
        &mut self,
        topics: Option<Array<MetadataRequestTopic>>,
        create: bool,
    ) -> Result<Vec<MetadataTopic>, ClientError> {
        let request = MetadataRequest {
            topics,
            allow_auto_topic_creation: create,
            ..MetadataRequest::default()
        };
        let Response::Metadata(response) = self.ask_any(&request.into())? else {
            return Err(self.unexpected());
        };
        check("metadata", response.error_code, None)?;
        let brokers = response.brokers.iter();
        let brokers = brokers.map(|broker| (broker.node_id, address(&broker.host, broker.port)));
        self.brokers = brokers.collect();
        self.controller = response.controller_id;
        Ok(response.topics.to_vec())
    }

    /// Every topic, by name.
    ///
    /// # Errors
    /// No broker can be asked, or a topic cannot be described.
    pub fn topics(&mut self) -> Result<Vec<Topic>, ClientError> {
        let mut topics = Vec::new();
        for topic in until_good(|| self.metadata(None, false))? {
            topics.push(Topic::read(&topic)?);
        }
        topics.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(topics)
    }

    /// A topic, from what is known or by asking. With `create`, asking makes it.
    ///
    /// # Errors
    /// It does not exist, or cannot be described in time.
    pub fn topic(&mut self, name: &str, create: bool) -> Result<Topic, ClientError> {
        if let Some(topic) = self.topics.get(name) {
            return Ok(topic.clone());
        }
        let topic = until_good(|| {
            let found = self.refresh(&[name], create)?;
            let found = found.first().ok_or_else(|| self.unexpected())?;
            // A topic that is not to be made will not appear by waiting.
            let code = found.error_code;
            if code != 0 && !create && unknown(code) {
                return Err(ClientError::NoTopic(name.to_owned()));
            }
            check(&format!("topic {name}"), code, None)?;
            let topic = Topic::read(found)?;
            match topic
                .partitions
                .iter()
                .find(|partition| partition.leader < 0)
            {
                Some(partition) => {
                    let subject = format!("partition {} of {name}", partition.index);
                    Err(ClientError::refused(
                        subject,
                        ErrorCode::LeaderNotAvailable.code(),
                        None,
                    ))
                }
                None => Ok(topic),
            }
        })?;
        self.topics.insert(name.to_owned(), topic.clone());
        Ok(topic)
    }

    /// Forgets what is known of a topic, after its leader turned out to be another.
    pub fn forget_topic(&mut self, name: &str) {
        self.topics.remove(name);
    }

    /// Where the leader of a partition is.
    ///
    /// # Errors
    /// The topic or partition does not exist, or has no leader in time.
    pub fn leader(&mut self, name: &str, partition: i32) -> Result<String, ClientError> {
        let topic = self.topic(name, false)?;
        let found = topic
            .partitions
            .iter()
            .find(|known| known.index == partition);
        let Some(found) = found else {
            return Err(ClientError::NoPartition {
                topic: name.to_owned(),
                partition,
                partitions: topic.partitions.len(),
            });
        };
        if let Some(address) = self.address(found.leader) {
            return Ok(address.to_owned());
        }
        self.forget_topic(name);
        let subject = format!("partition {partition} of {name}");
        Err(ClientError::refused(
            subject,
            ErrorCode::LeaderNotAvailable.code(),
            None,
        ))
    }
}

fn unknown(code: i16) -> bool {
    code == ErrorCode::UnknownTopicOrPartition.code()
}

fn address(host: &str, port: i32) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

impl Topic {
    fn read(topic: &MetadataTopic) -> Result<Topic, ClientError> {
        let name = topic
            .name
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        check(&format!("topic {name}"), topic.error_code, None)?;
        let partitions = topic.partitions.iter().map(|partition| Partition {
            index: partition.partition_index,
            leader: partition.leader_id,
            leader_epoch: partition.leader_epoch,
            error_code: partition.error_code,
        });
        let mut partitions: Vec<Partition> = partitions.collect();
        partitions.sort_by_key(|partition| partition.index);
        Ok(Topic {
            name,
            id: topic.topic_id,
            internal: topic.is_internal,
            partitions,
        })
    }
}
