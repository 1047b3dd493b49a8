//! What only shard 0 does: changing the topic catalogue, and reserving producer ids. Core 0 is the
//! only caller, one change at a time.

use super::catalog::{Catalog, Topic, TopicChange};
use super::error::TopicError;
use super::{Shard, machine};
use crate::base::ids::{ShardId, TopicId};
use crate::journal::EntryKind;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A topic to be made.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// Number of partitions.
    pub partitions: i32,
    /// Settings, Kafka's names.
    pub config: BTreeMap<String, String>,
}

impl Shard {
    /// The durable catalogue as it is now.
    #[must_use]
    pub fn catalog(&self) -> Catalog {
        assert_eq!(self.id(), ShardId(0), "only shard 0 holds the catalogue");
        self.state.borrow().catalog.clone()
    }

    /// Makes a topic; durable when this returns.
    ///
    /// # Errors
    /// [`TopicError`]; nothing was changed then.
    pub async fn create_topic(&self, new: NewTopic) -> Result<Arc<Topic>, TopicError> {
        let topic = Topic {
            id: self.new_topic_id(),
            name: new.name,
            partitions: new.partitions,
            config: new.config,
            created_ms: self.env.clock().unix_ms(),
        };
        self.state.borrow().catalog.check_new(&topic)?;
        let name = topic.name.clone();
        self.change(&TopicChange::Created(topic)).await?;
        let state = self.state.borrow();
        Ok(Arc::clone(
            state
                .catalog
                .by_name(&name)
                .expect("the change was just applied"),
        ))
    }

    /// Deletes a topic; durable when this returns.
    ///
    /// # Errors
    /// [`TopicError`]; nothing was changed then.
    pub async fn delete_topic(&self, id: TopicId) -> Result<(), TopicError> {
        if self.state.borrow().catalog.by_id(id).is_none() {
            return Err(TopicError::Unknown);
        }
        self.change(&TopicChange::Deleted { id }).await
    }

    /// Gives a topic more partitions; durable when this returns.
    ///
    /// # Errors
    /// [`TopicError`]; nothing was changed then.
    pub async fn grow_topic(&self, name: &str, partitions: i32) -> Result<(), TopicError> {
        let id = self
            .state
            .borrow()
            .catalog
            .check_growth(name, partitions)?
            .id;
        self.change(&TopicChange::Grown { id, partitions }).await
    }

    /// Reserves `count` producer ids that no producer ever had; durable when this returns, so that
    /// a crash cannot hand them out again.
    ///
    /// Returns the first of them.
    ///
    /// # Errors
    /// [`TopicError::Closed`] if the shard is closing or the disk failed.
    pub async fn reserve_producer_ids(&self, count: i64) -> Result<i64, TopicError> {
        assert_eq!(self.id(), ShardId(0), "only shard 0 hands out producer ids");
        self.check_open()?;
        let first = self.state.borrow().producer_id_next;
        let body = machine::encode_producer_ids(first + count);
        let ticket = self.stage_state(EntryKind::Producers, body);
        let durable = self.durable(ticket).await;
        durable.map(|()| first).map_err(|_| TopicError::Closed)
    }

    /// Requests that were queued when the broker began to stop come after the journal is closed.
    fn check_open(&self) -> Result<(), TopicError> {
        if self.closing.get() || self.journal.poisoned().is_some() {
            return Err(TopicError::Closed);
        }
        Ok(())
    }

    async fn change(&self, change: &TopicChange) -> Result<(), TopicError> {
        assert_eq!(self.id(), ShardId(0), "only shard 0 holds the catalogue");
        self.check_open()?;
        let body = machine::encode_topic_change(change);
        let ticket = self.stage_state(EntryKind::Topic, body);
        self.durable(ticket).await.map_err(|_| TopicError::Closed)
    }

    /// A random (version 4) UUID.
    fn new_topic_id(&self) -> TopicId {
        let mut id = [0u8; 16];
        id[..8].copy_from_slice(&self.env.random_u64().to_be_bytes());
        id[8..].copy_from_slice(&self.env.random_u64().to_be_bytes());
        id[6] = (id[6] & 0x0f) | 0x40;
        id[8] = (id[8] & 0x3f) | 0x80;
        TopicId(id)
    }
}
