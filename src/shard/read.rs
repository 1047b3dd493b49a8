//! Reading: a plan is taken at once under the shard's single writer (which extents, up to the
//! committed watermark), then served borrowing nothing.

use super::Shard;
use super::error::FetchError;
use super::parked::Parked;
use super::partition::Partition;
use crate::base::ids::{Offset, TopicId, TopicPartition};
use crate::base::record_batch::BatchView;
use crate::env::SharedBuffer;
use crate::journal::{Extent, ReadError};
use crate::limits::FETCH_EXTENTS_MAX;
use crate::metrics::TopicFigures;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What a reader needs to know of a partition, and what it may read.
#[derive(Clone, Debug, Default)]
pub struct ReadPlan {
    /// The partition.
    pub key: TopicPartition,
    /// The first offset there is.
    pub log_start: Offset,
    /// One past the last offset that may be read.
    pub committed: Offset,
    /// The first offset wanted.
    pub offset: Offset,
    /// Where the records rest, in order; empty at the end of the log.
    pub extents: Vec<Extent>,
}

impl ReadPlan {
    /// Bytes of all its extents: at most so many are read.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        let extents = self.extents.iter();
        extents.map(|extent| extent.len_bytes as usize).sum()
    }
}

/// What was read.
#[derive(Default)]
pub struct ReadRecords {
    /// Runs of whole record batches, in order.
    pub chunks: Vec<SharedBuffer>,
    /// Records in them, from the offset that was wanted on.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The ends of a partition.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ends {
    /// The first offset there is.
    pub log_start: Offset,
    /// One past the last durable offset.
    pub committed: Offset,
}

impl Shard {
    /// The ends of a partition; zero for one that never had a record.
    #[must_use]
    pub fn ends(&self, partition: &TopicPartition) -> Ends {
        let state = self.state.borrow();
        state
            .partitions
            .get(partition)
            .map_or_else(Ends::default, |known| Ends {
                log_start: known.log_start,
                committed: known.committed,
            })
    }

    /// Plans a read of about `bytes_max` bytes from `offset` on.
    ///
    /// # Errors
    /// [`FetchError::OffsetOutOfRange`], or [`FetchError::Damaged`] at the damage itself.
    pub fn plan(
        &self,
        key: &TopicPartition,
        offset: Offset,
        bytes_max: usize,
    ) -> Result<ReadPlan, FetchError> {
        let state = self.state.borrow();
        let Some(partition) = state.partitions.get(key) else {
            let empty = Partition::default();
            return plan_in(&empty, *key, offset, bytes_max);
        };
        plan_in(partition, *key, offset, bytes_max)
    }

    /// What is there from `offset` on: bytes of it up to the extent that reaches `bytes_max`, and
    /// of its first extent. That is what a fetch waits for; [`Shard::plan`] may leave the last
    /// extent to the next fetch.
    ///
    /// # Errors
    /// As [`Shard::plan`].
    pub fn foresee(
        &self,
        key: &TopicPartition,
        offset: Offset,
        bytes_max: usize,
    ) -> Result<(usize, usize), FetchError> {
        let state = self.state.borrow();
        let empty = Partition::default();
        let partition = state.partitions.get(key).unwrap_or(&empty);
        let (mut total, mut first) = (0, 0);
        for extent in extents_from(partition, offset)? {
            let len_bytes = extent.len_bytes as usize;
            first = if total == 0 { len_bytes } else { first };
            total += len_bytes;
            if total >= bytes_max {
                break;
            }
        }
        Ok((total, first))
    }

    /// Parks a fetch on a partition until its next commit. A partition that never had a record is
    /// made for it: its first commit must find the fetch.
    pub fn park(&self, key: TopicPartition, parked: &Rc<Parked>) {
        self.state
            .borrow_mut()
            .partitions
            .entry(key)
            .or_default()
            .parked
            .park(parked);
    }

    /// Reads what was planned: whole batches, the first of which holds `plan.offset`, together at
    /// most `bytes_max` bytes; with `one_at_least` the first batch comes even if it is larger
    /// (KIP-74).
    ///
    /// # Errors
    /// [`FetchError::Damaged`] for records that do not pass their CRC: never wrong bytes.
    pub async fn read(
        &self,
        plan: &ReadPlan,
        bytes_max: usize,
        one_at_least: bool,
    ) -> Result<ReadRecords, FetchError> {
        let mut chunks = Vec::with_capacity(plan.extents.len());
        let mut taken_bytes = 0;
        let mut next = plan.offset;
        let buffers = self.journal.read_many(&plan.extents).await;
        for (index, buffer) in buffers.into_iter().enumerate() {
            let buffer = match buffer {
                Ok(buffer) => buffer,
                // What came before the damage is served; the next fetch starts at it.
                Err(_) if index > 0 => break,
                Err(ReadError::Damaged { .. }) => return Err(FetchError::Damaged),
                Err(_) => return Err(FetchError::Disk),
            };
            let room = bytes_max.saturating_sub(taken_bytes);
            let must = one_at_least && taken_bytes == 0;
            let (range, end_offset) = batches_within(&buffer, plan.offset, room, must);
            let whole = range.end == buffer.len();
            if !range.is_empty() {
                taken_bytes += range.len();
                next = end_offset;
                chunks.push(buffer.slice(range));
            }
            if !whole {
                break;
            }
        }
        let found = ReadRecords {
            chunks,
            records: (next.0 - plan.offset.0).unsigned_abs(),
            bytes: taken_bytes as u64,
        };
        if let Some(partition) = self.state.borrow_mut().partitions.get_mut(&plan.key) {
            partition.figures.out_records += found.records;
            partition.figures.out_bytes += found.bytes;
        }
        Ok(found)
    }

    /// Adds the figures of this shard's partitions to those of their topics.
    pub fn add_topic_figures(&self, topics: &mut BTreeMap<TopicId, TopicFigures>) {
        for (key, partition) in &self.state.borrow().partitions {
            let figures = partition.figures;
            let log = partition.committed.0 - partition.log_start.0;
            topics.entry(key.topic).or_default().add(&TopicFigures {
                in_records: figures.in_records,
                in_bytes: figures.in_bytes,
                out_records: figures.out_records,
                out_bytes: figures.out_bytes,
                log_records: log.unsigned_abs(),
                log_bytes: figures.log_bytes,
                offsets: partition.committed.0.unsigned_abs(),
                ..TopicFigures::default()
            });
        }
    }

    /// The first batch with a record at or after `timestamp_ms`, or the one with the largest
    /// timestamp for `None`; `Ok(None)` if there is none.
    ///
    /// # Errors
    /// As [`Shard::read`].
    pub async fn batch_by_time(
        &self,
        key: &TopicPartition,
        timestamp_ms: Option<i64>,
    ) -> Result<Option<SharedBuffer>, FetchError> {
        let (extent, wanted_ms) = {
            let state = self.state.borrow();
            let Some(partition) = state.partitions.get(key) else {
                return Ok(None);
            };
            let wanted_ms = timestamp_ms.unwrap_or_else(|| partition.max_timestamp_ms());
            let Some(index) = partition.extent_index_by_time(wanted_ms) else {
                return Ok(None);
            };
            (partition.extents[index].extent, wanted_ms)
        };
        let buffer = match self.journal.read(extent).await {
            Ok(buffer) => buffer,
            Err(ReadError::Damaged { .. }) => return Err(FetchError::Damaged),
            Err(_) => return Err(FetchError::Disk),
        };
        let mut start = 0;
        while let Ok((view, _)) = BatchView::split(&buffer[start..]) {
            let end = start + view.bytes().len();
            if view.max_timestamp() >= wanted_ms {
                return Ok(Some(buffer.slice(start..end)));
            }
            start = end;
        }
        Ok(None)
    }
}

/// The extents from the one that holds `offset` on; none at the end.
///
/// # Errors
/// As [`Shard::plan`].
fn extents_from(
    partition: &Partition,
    offset: Offset,
) -> Result<impl Iterator<Item = Extent>, FetchError> {
    let (log_start, committed) = (partition.log_start, partition.committed);
    if offset < log_start || offset > committed {
        return Err(FetchError::OffsetOutOfRange {
            log_start,
            committed,
        });
    }
    let at_end = offset == committed;
    let quarantine = partition.quarantine.as_ref();
    if at_end && quarantine.is_some_and(|found| found.from <= offset) {
        return Err(FetchError::Damaged);
    }
    let (first, count) = match at_end {
        true => (0, 0),
        false => (partition.extent_index(offset), FETCH_EXTENTS_MAX),
    };
    let extents = partition.extents.range(first..).take(count);
    Ok(extents.map(|stored| stored.extent))
}

fn plan_in(
    partition: &Partition,
    key: TopicPartition,
    offset: Offset,
    bytes_max: usize,
) -> Result<ReadPlan, FetchError> {
    let mut planned_bytes = 0;
    let is_taken = move |extent: &Extent| {
        let len_bytes = extent.len_bytes as usize;
        let room = bytes_max.saturating_sub(planned_bytes);
        // The last one fits only in part: what does not fit is read in vain, so most of it must.
        let taken = planned_bytes == 0 || room >= len_bytes.div_ceil(2);
        planned_bytes += len_bytes;
        taken
    };
    Ok(ReadPlan {
        key,
        log_start: partition.log_start,
        committed: partition.committed,
        offset,
        extents: extents_from(partition, offset)?
            .take_while(is_taken)
            .collect(),
    })
}

/// The range of whole batches in `buffer` from the one that holds `offset` on, at most `room`
/// bytes, but with `must` at least one; and the offset after the last of them.
fn batches_within(
    buffer: &[u8],
    offset: Offset,
    room: usize,
    must: bool,
) -> (std::ops::Range<usize>, Offset) {
    let mut start = 0;
    let mut end = 0;
    let mut end_offset = offset;
    while let Ok((view, _)) = BatchView::split(&buffer[end..]) {
        let next = end + view.bytes().len();
        if view.last_offset() < offset.0 {
            start = next;
        } else if next - start > room && !(must && end == start) {
            break;
        } else {
            end_offset = Offset(view.last_offset() + 1);
        }
        end = next;
    }
    (start..end, end_offset)
}
