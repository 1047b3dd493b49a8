//! The topic catalogue: what topics there are. Its truth is shard 0's journal; core 0 is its only
//! writer and publishes immutable snapshots, with a version, to every core.
//!
//! A topic's id is made once and never used again, so data of a deleted topic can never be taken
//! for data of a new one with the same name. Deleted ids stay known: data of a topic that is
//! neither in the catalogue nor known to be deleted is kept, never dropped.

use super::error::TopicError;
use super::topic_config;
use crate::base::ids::TopicId;
use crate::limits::{PARTITIONS_MAX, PARTITIONS_PER_TOPIC_MAX, TOPIC_NAME_BYTES_MAX};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// One topic.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Topic {
    /// Its id, as 32 hexadecimal digits in the journal.
    #[serde(with = "topic_id_text")]
    pub id: TopicId,
    /// Its name.
    pub name: String,
    /// Number of partitions; it only grows.
    pub partitions: i32,
    /// Settings that differ from the defaults, Kafka's names.
    pub config: BTreeMap<String, String>,
    /// When it was made, in ms since 1970.
    pub created_ms: i64,
}

impl Topic {
    /// The largest batch this topic takes, in bytes.
    #[must_use]
    pub fn message_bytes_max(&self, default_bytes: usize) -> usize {
        self.config
            .get(topic_config::MAX_MESSAGE_BYTES)
            .and_then(|value| value.parse().ok())
            .unwrap_or(default_bytes)
    }
}

/// One change of the catalogue: the body of a topic-change entry, as JSON.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TopicChange {
    /// A new topic.
    Created(Topic),
    /// A topic is gone, and its records with it.
    Deleted {
        /// Which.
        #[serde(with = "topic_id_text")]
        id: TopicId,
    },
    /// A topic has more partitions.
    Grown {
        /// Which.
        #[serde(with = "topic_id_text")]
        id: TopicId,
        /// How many it has now.
        partitions: i32,
    },
}

/// All topics, at one version.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Number of changes since the store was made.
    pub version: u64,
    by_name: BTreeMap<String, Arc<Topic>>,
    by_id: HashMap<TopicId, Arc<Topic>>,
    deleted: BTreeSet<TopicId>,
    partitions: i64,
}

impl Catalog {
    /// A topic by its name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_name.get(name)
    }

    /// A topic by its id.
    #[must_use]
    pub fn by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.by_id.get(&id)
    }

    /// Every topic, by name.
    pub fn topics(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.by_name.values()
    }

    /// Whether a topic of this id was deleted.
    #[must_use]
    pub fn was_deleted(&self, id: TopicId) -> bool {
        self.deleted.contains(&id)
    }

    /// Number of topics.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is no topic.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Everything needed to build this catalogue again, for a checkpoint.
    #[must_use]
    pub fn to_saved(&self) -> SavedCatalog {
        SavedCatalog {
            version: self.version,
            topics: self
                .by_name
                .values()
                .map(|topic| Topic::clone(topic))
                .collect(),
            deleted: self.deleted.iter().map(ToString::to_string).collect(),
        }
    }

    /// Builds a catalogue from a checkpoint.
    ///
    /// # Errors
    /// A text, if the saved form is inconsistent.
    pub fn from_saved(saved: SavedCatalog) -> Result<Self, String> {
        let mut catalog = Self {
            version: saved.version,
            ..Self::default()
        };
        for topic in saved.topics {
            catalog.insert(Arc::new(topic));
        }
        for text in saved.deleted {
            let id = topic_id_text::parse(&text).ok_or_else(|| format!("bad topic id {text}"))?;
            catalog.deleted.insert(id);
        }
        Ok(catalog)
    }

    /// Checks that a new topic may be made.
    ///
    /// # Errors
    /// The first [`TopicError`] that applies.
    pub fn check_new(&self, topic: &Topic) -> Result<(), TopicError> {
        check_name(&topic.name)?;
        check_partitions(topic.partitions)?;
        for (key, value) in &topic.config {
            topic_config::check(key, value).map_err(TopicError::InvalidConfig)?;
        }
        if self.by_name.contains_key(&topic.name) {
            return Err(TopicError::Exists);
        }
        self.check_room(i64::from(topic.partitions))
    }

    /// Checks that a topic may grow to `partitions`.
    ///
    /// # Errors
    /// The first [`TopicError`] that applies.
    pub fn check_growth(&self, name: &str, partitions: i32) -> Result<&Arc<Topic>, TopicError> {
        let topic = self.by_name.get(name).ok_or(TopicError::Unknown)?;
        check_partitions(partitions)?;
        if partitions <= topic.partitions {
            return Err(TopicError::InvalidPartitions(format!(
                "topic {name} has {} partitions already; {partitions} is not more",
                topic.partitions
            )));
        }
        self.check_room(i64::from(partitions - topic.partitions))?;
        Ok(topic)
    }

    fn check_room(&self, more: i64) -> Result<(), TopicError> {
        if self.partitions + more > PARTITIONS_MAX {
            return Err(TopicError::TooMany(format!(
                "there are {} partitions; the limit is {PARTITIONS_MAX}",
                self.partitions
            )));
        }
        Ok(())
    }

    /// Applies a durable change. A change that does not fit is a bug or damage, and asserts.
    pub fn apply(&mut self, change: TopicChange) {
        self.version += 1;
        match change {
            TopicChange::Created(topic) => {
                assert!(
                    !self.by_name.contains_key(&topic.name),
                    "a name is used once at a time"
                );
                assert!(
                    !self.deleted.contains(&topic.id),
                    "a topic id is never used again"
                );
                self.insert(Arc::new(topic));
            }
            TopicChange::Deleted { id } => {
                let topic = self
                    .by_id
                    .remove(&id)
                    .expect("only a topic that is there is deleted");
                self.by_name.remove(&topic.name);
                self.partitions -= i64::from(topic.partitions);
                self.deleted.insert(id);
            }
            TopicChange::Grown { id, partitions } => {
                let topic = self
                    .by_id
                    .get(&id)
                    .expect("only a topic that is there grows");
                assert!(
                    partitions > topic.partitions,
                    "the number of partitions only grows"
                );
                self.partitions -= i64::from(topic.partitions);
                let grown = Topic {
                    partitions,
                    ..Topic::clone(topic)
                };
                self.insert(Arc::new(grown));
            }
        }
    }

    fn insert(&mut self, topic: Arc<Topic>) {
        self.partitions += i64::from(topic.partitions);
        self.by_id.insert(topic.id, Arc::clone(&topic));
        self.by_name.insert(topic.name.clone(), topic);
    }
}

/// A catalogue as a checkpoint holds it.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct SavedCatalog {
    version: u64,
    topics: Vec<Topic>,
    deleted: Vec<String>,
}

/// Kafka's rule for topic names.
fn check_name(name: &str) -> Result<(), TopicError> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name.is_empty() || name == "." || name == ".." {
        return Err(TopicError::InvalidName(format!(
            "{name:?} cannot be the name of a topic"
        )));
    }
    if name.len() > TOPIC_NAME_BYTES_MAX {
        return Err(TopicError::InvalidName(format!(
            "the name has {} bytes; the limit is {TOPIC_NAME_BYTES_MAX}",
            name.len()
        )));
    }
    if !name.bytes().all(legal) {
        return Err(TopicError::InvalidName(format!(
            "{name:?} has a character other than ASCII letters, digits, '.', '_' and '-'"
        )));
    }
    Ok(())
}

fn check_partitions(partitions: i32) -> Result<(), TopicError> {
    let count = usize::try_from(partitions).unwrap_or(0);
    if (1..=PARTITIONS_PER_TOPIC_MAX).contains(&count) {
        return Ok(());
    }
    Err(TopicError::InvalidPartitions(format!(
        "{partitions} partitions; a topic has 1 to {PARTITIONS_PER_TOPIC_MAX}"
    )))
}

/// A topic id as text in JSON.
mod topic_id_text {
    use crate::base::ids::TopicId;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(id: &TopicId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TopicId, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).ok_or_else(|| D::Error::custom(format!("bad topic id {text}")))
    }

    pub fn parse(text: &str) -> Option<TopicId> {
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
        if digits.len() != 32 {
            return None;
        }
        let mut id = [0u8; 16];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).ok()?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(TopicId(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str, id: u8) -> Topic {
        Topic {
            id: TopicId([id; 16]),
            name: name.to_owned(),
            partitions: 4,
            config: BTreeMap::from([("retention.ms".to_owned(), "1000".to_owned())]),
            created_ms: 17,
        }
    }

    /// Goal: a catalogue survives its checkpoint. Method: make, grow, delete, save, build again.
    #[test]
    fn saved_and_built_again() {
        let mut catalog = Catalog::default();
        catalog.apply(TopicChange::Created(topic("a", 1)));
        catalog.apply(TopicChange::Created(topic("b", 2)));
        catalog.apply(TopicChange::Grown {
            id: TopicId([2; 16]),
            partitions: 9,
        });
        catalog.apply(TopicChange::Deleted {
            id: TopicId([1; 16]),
        });
        let text = serde_json::to_string(&catalog.to_saved()).expect("serialises");
        let saved = serde_json::from_str(&text).expect("parses");
        let again = Catalog::from_saved(saved).expect("consistent");
        assert_eq!(again.version, 4);
        assert_eq!(again.len(), 1);
        assert_eq!(again.by_name("b").expect("there").partitions, 9);
        assert!(again.was_deleted(TopicId([1; 16])));
        assert_eq!(again.partitions, 9);
    }

    /// Goal: each reason to refuse a topic is found and named.
    #[test]
    fn bad_topics_are_refused() {
        let mut catalog = Catalog::default();
        catalog.apply(TopicChange::Created(topic("a", 1)));
        assert_eq!(catalog.check_new(&topic("a", 2)), Err(TopicError::Exists));
        let long = "x".repeat(TOPIC_NAME_BYTES_MAX + 1);
        for name in ["", ".", "..", "a b", "ä", "a/b", long.as_str()] {
            let refused = catalog.check_new(&topic(name, 2));
            assert!(
                matches!(refused, Err(TopicError::InvalidName(_))),
                "{name:?}: {refused:?}"
            );
        }
        for partitions in [0, -1, i32::MAX] {
            let refused = catalog.check_new(&Topic {
                partitions,
                ..topic("b", 2)
            });
            assert!(matches!(refused, Err(TopicError::InvalidPartitions(_))));
        }
        let mut compacted = topic("b", 2);
        compacted
            .config
            .insert("cleanup.policy".to_owned(), "compact".to_owned());
        let refused = catalog.check_new(&compacted);
        assert!(matches!(refused, Err(TopicError::InvalidConfig(_))));
        assert!(matches!(
            catalog.check_growth("a", 4),
            Err(TopicError::InvalidPartitions(_))
        ));
        assert!(catalog.check_growth("a", 5).is_ok());
    }
}
