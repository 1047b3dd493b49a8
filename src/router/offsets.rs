//! Looking up offsets: the ends of a partition, or the batch that holds a point in time. (Finding
//! the record inside a compressed batch is left to the session, which knows the codecs.)

use super::Router;
use super::fetch::Chunk;
use super::mesh::{Answers, LaneRequest};
use crate::base::ids::{CoreId, TopicPartition};
use crate::shard::FetchError;
use crate::shard::read::Ends;
use bytes::Bytes;
use std::collections::BTreeMap;

/// What is asked of one partition.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OffsetQuery {
    /// Where it starts and ends.
    Ends,
    /// The first batch with a record at or after this time, in ms since 1970.
    Time(i64),
    /// The batch with the largest timestamp.
    MaxTimestamp,
}

/// One look-up.
#[derive(Clone, Copy, Debug)]
pub struct OffsetPart {
    /// The partition.
    pub key: TopicPartition,
    /// What is asked.
    pub query: OffsetQuery,
}

/// What was found, in a form that may cross cores.
pub type OffsetAnswer = Result<OffsetFound, FetchError>;

/// See [`OffsetAnswer`].
#[derive(Clone, Debug)]
pub struct OffsetFound {
    /// Where the partition starts and ends.
    pub ends: Ends,
    /// The batch that was asked for, if there is one.
    pub batch: Option<Bytes>,
}

impl Router {
    /// Looks up `parts`; the answers are in their order.
    pub async fn offsets(&self, parts: Vec<OffsetPart>) -> Vec<OffsetAnswer> {
        let mut answers: Vec<OffsetAnswer> =
            parts.iter().map(|_| Err(FetchError::Overloaded)).collect();
        let mut here = Vec::new();
        let mut elsewhere: BTreeMap<CoreId, Vec<(usize, OffsetPart)>> = BTreeMap::new();
        for (at, part) in parts.into_iter().enumerate() {
            match self.locate(&part.key) {
                Ok(_) => here.push((at, part)),
                Err(core) => elsewhere.entry(core).or_default().push((at, part)),
            }
        }
        let mut waiting = Vec::new();
        for (core, parts) in elsewhere {
            let count = parts.len();
            let request = |reply| LaneRequest::Offsets { parts, reply };
            waiting.extend(self.forward(core, count, request).await);
        }
        for (at, answer) in self.offsets_here(here).await {
            answers[at] = answer;
        }
        for receiver in waiting {
            for (at, answer) in receiver.recv_async().await.unwrap_or_default() {
                answers[at] = answer;
            }
        }
        answers
    }

    /// Looks up partitions of this core.
    pub(super) async fn offsets_here(
        &self,
        parts: Vec<(usize, OffsetPart)>,
    ) -> Answers<OffsetAnswer> {
        let mut answers = Vec::with_capacity(parts.len());
        for (at, part) in parts {
            answers.push((at, self.offset_of(&part).await));
        }
        answers
    }

    async fn offset_of(&self, part: &OffsetPart) -> OffsetAnswer {
        let shard = self
            .locate(&part.key)
            .map_err(|_| FetchError::UnknownPartition)?;
        if !self.knows(&part.key) {
            return Err(FetchError::UnknownPartition);
        }
        let ends = shard.ends(&part.key);
        let timestamp_ms = match part.query {
            OffsetQuery::Ends => return Ok(OffsetFound { ends, batch: None }),
            OffsetQuery::Time(timestamp_ms) => Some(timestamp_ms),
            OffsetQuery::MaxTimestamp => None,
        };
        let found = shard.batch_by_time(&part.key, timestamp_ms).await?;
        let batch = found.map(|buffer| Bytes::copy_from_slice(&Chunk::Shared(buffer)));
        Ok(OffsetFound { ends, batch })
    }
}
