//! The produce path: split by shard, stage (here or over a lane), wait until durable.
//!
//! When [`Router::stage`] returns, the order of every part is fixed: staged in its shard, or placed
//! in the first-in-first-out lane of its core. The connection may then read its next request.

use super::Router;
use super::mesh::{Answers, LaneRequest};
use crate::base::ids::{CoreId, StageSequence, TopicPartition};
use crate::journal::CommitTimes;
use crate::shard::{AppendError, Appended, Shard};
use bytes::Bytes;
use std::collections::BTreeMap;

/// One batch for one partition.
#[derive(Clone, Debug)]
pub struct ProducePart {
    /// The partition.
    pub key: TopicPartition,
    /// Exactly one record batch, as it came.
    pub batch: Bytes,
    /// The topic's largest batch, in bytes.
    pub bytes_max: usize,
}

/// The answers of one core, in the order of the request, and when the last of them became durable.
#[derive(Default)]
pub struct Produced<T> {
    /// Offsets or errors.
    pub answers: T,
    /// The times of the block that was durable last; `None` if nothing was appended just now.
    pub commit: Option<CommitTimes>,
}

/// What another core answers.
pub type ProducedElsewhere = Produced<Answers<Result<Appended, AppendError>>>;

/// Parts whose order is fixed and whose durability is still to come.
pub struct Staged {
    results: Vec<Result<Appended, AppendError>>,
    tickets: Vec<(Shard, StageSequence)>,
    forwarded: Vec<flume::Receiver<ProducedElsewhere>>,
}

impl Router {
    /// Stages the parts of one request, in their order. With `acknowledged` unset (`acks=0`) the
    /// answers of other cores are not asked for.
    pub async fn stage(&self, parts: Vec<ProducePart>, acknowledged: bool) -> Staged {
        let mut staged = Staged {
            results: Vec::with_capacity(parts.len()),
            tickets: Vec::new(),
            forwarded: Vec::new(),
        };
        let mut elsewhere: BTreeMap<CoreId, Vec<(usize, ProducePart)>> = BTreeMap::new();
        for (at, part) in parts.into_iter().enumerate() {
            match self.locate(&part.key) {
                Ok(shard) => {
                    let _ = shard.room().await;
                    let result = self.append_here(shard, part);
                    staged.note(shard, &result);
                    staged.results.push(result);
                }
                Err(core) => {
                    elsewhere.entry(core).or_default().push((at, part));
                    staged.results.push(Err(AppendError::Overloaded));
                }
            }
        }
        for (core, parts) in elsewhere {
            self.metrics.forward.sent.add(parts.len() as u64);
            let (reply, answers) = flume::bounded(1);
            let reply = acknowledged.then_some(reply);
            if self.send(core, LaneRequest::Produce { parts, reply }).await && acknowledged {
                staged.forwarded.push(answers);
            }
        }
        staged
    }

    /// Appends to a shard of this core.
    pub(super) fn append_here(
        &self,
        shard: &Shard,
        part: ProducePart,
    ) -> Result<Appended, AppendError> {
        if !self.knows(&part.key) {
            return Err(AppendError::UnknownPartition);
        }
        let batch_bytes = part.batch.len() as u64;
        let appended = shard.append(part.key, part.batch, part.bytes_max)?;
        let produce = &self.metrics.produce;
        if appended.duplicate {
            produce.duplicates.inc();
        } else {
            produce.batches.inc();
            produce.records.add(u64::from(appended.record_count));
            produce.accepted.add(batch_bytes);
        }
        Ok(appended)
    }
}

impl Staged {
    fn note(&mut self, shard: &Shard, result: &Result<Appended, AppendError>) {
        let Ok(appended) = result else { return };
        let known = self
            .tickets
            .iter_mut()
            .find(|(known, _)| known.id() == shard.id());
        match known {
            Some((_, ticket)) => *ticket = (*ticket).max(appended.ticket),
            None => self.tickets.push((shard.clone(), appended.ticket)),
        }
    }

    /// Waits until every part that was appended is durable, and answers each in the order of the
    /// request. A part whose core did not answer is an error: it may or may not exist.
    pub async fn finish(self) -> Produced<Vec<Result<Appended, AppendError>>> {
        let mut results = self.results;
        let mut commit = None;
        for (shard, ticket) in self.tickets {
            if shard.durable(ticket).await.is_err() {
                for result in results.iter_mut().filter(|result| result.is_ok()) {
                    *result = Err(AppendError::DiskFailed);
                }
                return Produced {
                    answers: results,
                    commit,
                };
            }
            commit = later(commit, shard.commit_times(ticket));
        }
        for answers in self.forwarded {
            // A closed channel leaves these parts `Overloaded`: their core is gone.
            let produced = answers.recv_async().await.unwrap_or_default();
            commit = later(commit, produced.commit);
            for (at, result) in produced.answers {
                results[at] = result;
            }
        }
        Produced {
            answers: results,
            commit,
        }
    }
}

/// The block that a request had to wait for longest.
pub(super) fn later(known: Option<CommitTimes>, other: Option<CommitTimes>) -> Option<CommitTimes> {
    match (known, other) {
        (Some(known), Some(other)) if other.released_ns <= known.released_ns => Some(known),
        (known, None) => known,
        (_, other) => other,
    }
}
