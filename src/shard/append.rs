//! Appending: check a batch, give it its offset, stage it. One synchronous step, so the order of
//! staging is the order of calls; what takes time (the disk) is awaited afterwards, on a ticket.

use super::error::AppendError;
use super::partition::stamp_of;
use super::producers::{SequenceError, Verdict};
use super::{Shard, ShardState};
use crate::base::ids::{Offset, StageSequence, TopicPartition};
use crate::base::record_batch::BatchView;
use crate::journal::StagedEntry;
use bytes::Bytes;

/// Leader epoch written into every batch: one server, one leadership, until there is replication.
pub const LEADER_EPOCH: i32 = 0;

/// A batch that has its offset. It is durable once [`Shard::durable`] says so for its ticket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Appended {
    /// Offset of its first record; for a retry, the offset it got the first time.
    pub base_offset: Offset,
    /// The first offset of the partition.
    pub log_start: Offset,
    /// What to wait for.
    pub ticket: StageSequence,
    /// Whether this was a retry of a batch that is already in the log.
    pub duplicate: bool,
    /// Number of records.
    pub record_count: u32,
}

impl Shard {
    /// Checks one batch, assigns its offsets and stages it.
    ///
    /// # Errors
    /// [`AppendError`]; nothing was written then.
    pub fn append(
        &self,
        partition: TopicPartition,
        batch: Bytes,
        bytes_max: usize,
    ) -> Result<Appended, AppendError> {
        let (view, rest) = BatchView::split(&batch).map_err(AppendError::Batch)?;
        if !rest.is_empty() {
            return Err(AppendError::NotOneBatch);
        }
        if batch.len() > bytes_max {
            return Err(AppendError::TooLarge {
                batch_bytes: batch.len(),
                bytes_max,
            });
        }
        view.validate_produced().map_err(AppendError::Batch)?;
        if self.journal.poisoned().is_some() || self.closing.get() {
            return Err(AppendError::Closed);
        }
        let mut state = self.state.borrow_mut();
        self.stage(&mut state, partition, &view, &batch)
    }

    fn stage(
        &self,
        state: &mut ShardState,
        key: TopicPartition,
        view: &BatchView<'_>,
        batch: &Bytes,
    ) -> Result<Appended, AppendError> {
        if !state.takes_appends(&key) {
            return Err(AppendError::Quarantined);
        }
        let partition = state.partitions.entry(key).or_default();
        let stamp = stamp_of(view);
        let record_count = view.record_count().unsigned_abs();
        if let Some(stamp) = &stamp {
            let verdict = partition
                .staged_producers
                .judge(stamp)
                .map_err(|error| match error {
                    SequenceError::OutOfOrder { expected, found } => {
                        AppendError::OutOfOrderSequence { expected, found }
                    }
                    SequenceError::Fenced => AppendError::Fenced,
                })?;
            if let Verdict::Duplicate(batch) = verdict {
                return Ok(Appended {
                    base_offset: batch.base_offset,
                    log_start: partition.log_start,
                    ticket: batch.staged,
                    duplicate: true,
                    record_count,
                });
            }
        }
        let ticket = self.stage_entry(StagedEntry::Records {
            partition: key,
            base_offset: partition.next,
            leader_epoch: LEADER_EPOCH,
            record_count,
            batches: batch.clone(),
        });
        let base_offset = partition.assign(stamp.as_ref(), view.record_count(), ticket);
        partition.figures.in_records += u64::from(record_count);
        partition.figures.in_bytes += batch.len() as u64;
        Ok(Appended {
            base_offset,
            log_start: partition.log_start,
            ticket,
            duplicate: false,
            record_count,
        })
    }
}
