//! One partition as its shard keeps it.
//!
//! Invariants: `log_start ≤ committed ≤ next`; a fetch never passes `committed`; an offset is
//! assigned once, at staging, and its records become visible once, when their block is durable;
//! extents are contiguous in offset from `log_start` to `committed`. Lives on one core.

use super::parked::ParkedList;
use super::producers::{BatchStamp, Producers};
use crate::base::ids::{Offset, ProducerId, StageSequence};
use crate::base::record_batch::BatchView;
use crate::journal::Extent;
use std::collections::VecDeque;

/// Where one run of offsets rests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StoredExtent {
    /// Offset of its first record.
    pub first: Offset,
    /// Offset of its last record.
    pub last: Offset,
    /// The largest record timestamp in this extent *and all before it*, in ms since 1970: never
    /// falling, so that a search by time is a binary search.
    pub max_timestamp_so_far_ms: i64,
    /// The bytes: whole record batches, concatenated.
    pub extent: Extent,
}

/// Why a partition takes no more records.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Quarantine {
    /// Nothing at or past this offset is served.
    pub from: Offset,
    /// For a person: what was found.
    pub reason: String,
}

/// What is counted of a partition since the process started, and the size of its log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PartitionFigures {
    /// Records accepted.
    pub in_records: u64,
    /// Bytes of batches accepted.
    pub in_bytes: u64,
    /// Records served.
    pub out_records: u64,
    /// Bytes of batches served.
    pub out_bytes: u64,
    /// Bytes of all extents.
    pub log_bytes: u64,
}

/// One partition: its offsets, where its records rest, its producers, and who waits for more.
#[derive(Default)]
pub struct Partition {
    /// The first offset there is.
    pub log_start: Offset,
    /// One past the last durable offset: the high watermark.
    pub committed: Offset,
    /// The next offset to assign; `next - committed` records are staged.
    pub next: Offset,
    /// Where the durable records rest, in order.
    pub extents: VecDeque<StoredExtent>,
    /// Producers as of the last *staged* batch: what a new batch is judged by.
    pub staged_producers: Producers,
    /// Producers as of the last *durable* batch: what a checkpoint may hold. A staged batch may
    /// still be lost in a crash, and its retry must then be taken as new.
    pub durable_producers: Producers,
    /// Fetches that wait for more.
    pub parked: ParkedList,
    /// Set when damage on disk concerns this partition.
    pub quarantine: Option<Quarantine>,
    /// Whether an entry was seen after a block whose contents are unknown (see `machine.rs`).
    pub seen_after_damage: bool,
    /// For people.
    pub figures: PartitionFigures,
}

impl Partition {
    /// Assigns offsets to a batch that was judged fresh.
    ///
    /// Returns the offset of its first record.
    pub fn assign(&mut self, stamp: Option<&BatchStamp>, count: i32, at: StageSequence) -> Offset {
        assert!(count > 0, "a batch has at least one record");
        assert!(
            self.quarantine.is_none(),
            "a quarantined partition assigns nothing"
        );
        let base = self.next;
        self.next = Offset(base.0 + i64::from(count));
        if let Some(stamp) = stamp {
            self.staged_producers.remember(stamp, base, at);
        }
        self.check();
        base
    }

    /// Makes a durable run of batches visible. Live, its offsets were assigned by [`Self::assign`];
    /// in replay they are assigned here, again, to the same records.
    pub fn apply(&mut self, base: Offset, count: u32, extent: Extent, batches: &[u8]) {
        if self.quarantine.is_some() {
            return;
        }
        assert!(count > 0, "an extent holds at least one record");
        let after = Offset(base.0 + i64::from(count));
        if base != self.committed {
            self.set_quarantine(
                self.committed,
                format!(
                    "offsets {} to {} are missing from the journal",
                    self.committed.0,
                    base.0 - 1
                ),
            );
            return;
        }
        let replayed = self.next == self.committed;
        let max_timestamp_ms = self.apply_batches(batches, replayed);
        self.keep_extent(StoredExtent {
            first: base,
            last: Offset(after.0 - 1),
            max_timestamp_so_far_ms: max_timestamp_ms.max(self.max_timestamp_ms()),
            extent,
        });
        self.committed = after;
        if replayed {
            self.next = after;
        }
        self.check();
        self.parked.wake_all();
    }

    /// Adds the next extent.
    pub fn keep_extent(&mut self, stored: StoredExtent) {
        self.figures.log_bytes += u64::from(stored.extent.len_bytes);
        self.extents.push_back(stored);
    }

    /// Takes the producers and the largest timestamp from a run of batches.
    fn apply_batches(&mut self, batches: &[u8], replayed: bool) -> i64 {
        let mut max_timestamp_ms = i64::MIN;
        let mut rest = batches;
        while let Ok((view, after)) = BatchView::split(rest) {
            max_timestamp_ms = max_timestamp_ms.max(view.max_timestamp());
            if let Some(stamp) = stamp_of(&view) {
                let base = Offset(view.base_offset());
                self.durable_producers
                    .remember(&stamp, base, StageSequence(0));
                if replayed {
                    self.staged_producers
                        .remember(&stamp, base, StageSequence(0));
                }
            }
            rest = after;
        }
        assert!(rest.is_empty(), "an extent is a whole number of batches");
        max_timestamp_ms
    }

    /// Stops serving at `from`: what lies there is damaged or missing.
    pub fn set_quarantine(&mut self, from: Offset, reason: String) {
        if self.quarantine.is_none() {
            self.quarantine = Some(Quarantine { from, reason });
        }
        self.parked.wake_all();
    }

    /// The largest record timestamp of the durable records, in ms; `i64::MIN` when there are none.
    #[must_use]
    pub fn max_timestamp_ms(&self) -> i64 {
        self.extents
            .back()
            .map_or(i64::MIN, |stored| stored.max_timestamp_so_far_ms)
    }

    /// Index of the extent that holds `offset`, which must lie in `log_start .. committed`.
    #[must_use]
    pub fn extent_index(&self, offset: Offset) -> usize {
        assert!(
            offset >= self.log_start,
            "an offset below the log start is refused before"
        );
        assert!(
            offset < self.committed,
            "an offset past the watermark is refused before"
        );
        let index = self.extents.partition_point(|stored| stored.last < offset);
        assert!(self.extents[index].first <= offset, "extents have no gap");
        index
    }

    /// Index of the first extent with a record at or after `timestamp_ms`.
    #[must_use]
    pub fn extent_index_by_time(&self, timestamp_ms: i64) -> Option<usize> {
        let index = self
            .extents
            .partition_point(|stored| stored.max_timestamp_so_far_ms < timestamp_ms);
        (index < self.extents.len()).then_some(index)
    }

    fn check(&self) {
        assert!(
            self.log_start <= self.committed,
            "the log start passed the watermark"
        );
        assert!(
            self.committed <= self.next,
            "the watermark passed what was assigned"
        );
    }
}

/// How a batch identifies itself to the producer window; `None` without idempotence.
#[must_use]
pub fn stamp_of(view: &BatchView<'_>) -> Option<BatchStamp> {
    let producer = view.producer_id();
    (producer >= 0).then(|| BatchStamp {
        producer: ProducerId(producer),
        epoch: view.producer_epoch(),
        first_sequence: view.base_sequence(),
        record_count: view.record_count(),
    })
}
