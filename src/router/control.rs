//! The control plane: changes of the catalogue and producer ids. Any core may ask; one task on core
//! 0 does it, one change at a time, and publishes the new catalogue to every core before it
//! answers, so that whoever was told "created" finds the topic on whichever core it asks next.

use super::Router;
use super::mesh::LaneRequest;
use crate::base::ids::{CoreId, ShardId, TopicId};
use crate::limits::{CONTROL_TIMEOUT, PRODUCER_IDS_RESERVED};
use crate::shard::catalog::Topic;
use crate::shard::control::NewTopic;
use crate::shard::{Shard, TopicError};
use std::sync::Arc;

/// What may be asked of core 0's control task.
pub enum ControlRequest {
    /// Make a topic.
    Create {
        /// Which.
        new: NewTopic,
        /// The topic as it was made.
        reply: flume::Sender<Result<Arc<Topic>, TopicError>>,
    },
    /// Delete a topic.
    Delete {
        /// Which.
        id: TopicId,
        /// Whether it is gone.
        reply: flume::Sender<Result<(), TopicError>>,
    },
    /// Give a topic more partitions.
    Grow {
        /// Which.
        name: String,
        /// How many it shall have.
        partitions: i32,
        /// Whether it has.
        reply: flume::Sender<Result<(), TopicError>>,
    },
    /// Reserve producer ids.
    ReserveProducerIds {
        /// The first of [`PRODUCER_IDS_RESERVED`] fresh ids.
        reply: flume::Sender<Result<i64, TopicError>>,
    },
}

impl Router {
    /// Makes a topic.
    ///
    /// # Errors
    /// [`TopicError`].
    pub async fn create_topic(&self, new: NewTopic) -> Result<Arc<Topic>, TopicError> {
        self.ask(|reply| ControlRequest::Create { new, reply })
            .await
    }

    /// Deletes a topic.
    ///
    /// # Errors
    /// [`TopicError`].
    pub async fn delete_topic(&self, id: TopicId) -> Result<(), TopicError> {
        self.ask(|reply| ControlRequest::Delete { id, reply }).await
    }

    /// Gives a topic more partitions.
    ///
    /// # Errors
    /// [`TopicError`].
    pub async fn grow_topic(&self, name: String, partitions: i32) -> Result<(), TopicError> {
        self.ask(|reply| ControlRequest::Grow {
            name,
            partitions,
            reply,
        })
        .await
    }

    /// A producer id that no producer ever had.
    ///
    /// # Errors
    /// [`TopicError::Closed`] if the broker is stopping.
    pub async fn new_producer_id(&self) -> Result<i64, TopicError> {
        let (next, end) = self.producer_ids.get();
        if next < end {
            self.producer_ids.set((next + 1, end));
            return Ok(next);
        }
        let first = self
            .ask(|reply| ControlRequest::ReserveProducerIds { reply })
            .await?;
        self.producer_ids
            .set((first + 1, first + PRODUCER_IDS_RESERVED));
        Ok(first)
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(flume::Sender<Result<T, TopicError>>) -> ControlRequest,
    ) -> Result<T, TopicError> {
        let (reply, answer) = flume::bounded(1);
        let asking = async {
            self.control
                .send_async(request(reply))
                .await
                .map_err(|_| TopicError::Closed)?;
            answer.recv_async().await.map_err(|_| TopicError::Closed)?
        };
        let answered = self.env.clock().deadline(CONTROL_TIMEOUT, asking).await;
        answered.unwrap_or(Err(TopicError::Closed))
    }

    /// Serves control requests, one at a time. Run on core 0 as a task of its own.
    pub async fn serve_control(self, requests: flume::Receiver<ControlRequest>) {
        let shard = self.shard_0().clone();
        while let Ok(request) = requests.recv_async().await {
            match request {
                ControlRequest::Create { new, reply } => {
                    let created = shard.create_topic(new).await;
                    if let Ok(topic) = &created {
                        tracing::info!(topic = topic.name, id = %topic.id,
                            partitions = topic.partitions, "topic created");
                        self.publish().await;
                    }
                    let _ = reply.try_send(created);
                }
                ControlRequest::Delete { id, reply } => {
                    let deleted = shard.delete_topic(id).await;
                    if deleted.is_ok() {
                        tracing::info!(%id, "topic deleted");
                        self.publish().await;
                    }
                    let _ = reply.try_send(deleted);
                }
                ControlRequest::Grow {
                    name,
                    partitions,
                    reply,
                } => {
                    let grown = shard.grow_topic(&name, partitions).await;
                    if grown.is_ok() {
                        tracing::info!(topic = name, partitions, "topic has more partitions");
                        self.publish().await;
                    }
                    let _ = reply.try_send(grown);
                }
                ControlRequest::ReserveProducerIds { reply } => {
                    let first = shard.reserve_producer_ids(PRODUCER_IDS_RESERVED).await;
                    let _ = reply.try_send(first);
                }
            }
        }
    }

    /// Gives every core the catalogue as it is now, and waits until each has it.
    pub async fn publish(&self) {
        let catalog = Arc::new(self.shard_0().catalog());
        self.install(Arc::clone(&catalog));
        let mut waiting = Vec::new();
        for core in (0..self.layout.cores)
            .map(CoreId)
            .filter(|core| *core != self.core)
        {
            let (reply, answer) = flume::bounded(1);
            let request = LaneRequest::Install {
                catalog: Arc::clone(&catalog),
                reply,
            };
            if self.lane(core).send_async(request).await.is_ok() {
                waiting.push(answer);
            }
        }
        for answer in waiting {
            let _ = answer.recv_async().await;
        }
    }

    fn shard_0(&self) -> &Shard {
        self.shards
            .get(&ShardId(0))
            .expect("shard 0 lives on core 0, which runs the control task")
    }
}
