//! Which segments are needed. Per segment: bytes of records that are alive; per kept checkpoint:
//! which segments it still needs. Pure.
//!
//! *A segment is used again only if all of this holds: it lies before the replay of both kept
//! checkpoints; nothing in it is alive now, and nothing was alive when either was taken (so that
//! falling back to the older one finds every extent it names); no reader holds it.*

use crate::base::ids::{BlockSequence, Position};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// Checkpoints kept.
pub(super) const CHECKPOINTS_KEPT: usize = 2;

/// One segment as a checkpoint records it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct SegmentRow {
    /// Its number.
    pub segment: u64,
    /// Nonce of its present use.
    pub incarnation: u64,
    /// Bytes of records in it that are alive.
    pub live_bytes: u64,
    /// Where its last durable block ends.
    pub end_bytes: u64,
    /// Its last durable block.
    pub last: BlockSequence,
}

struct Segment {
    row: SegmentRow,
    /// Cloned by each reader: a count above one means it is being read.
    pin: Rc<()>,
}

/// A checkpoint that is kept, as far as space is concerned.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// Its number.
    pub number: u64,
    /// Where its replay starts.
    pub replay_from: Position,
    /// Segments with live records when it was taken.
    pub live: BTreeSet<u64>,
}

/// The books of one journal.
pub(super) struct Space {
    segment_bytes: u64,
    segments: BTreeMap<u64, Segment>,
    kept: VecDeque<Kept>,
    /// Highest checkpoint number ever used, whole or not.
    checkpoint_last: u64,
    /// Checkpoint files that exist and are not kept: damaged, or left by an interrupted removal.
    strays: BTreeSet<u64>,
}

impl Space {
    pub(super) fn new(segment_bytes: u64) -> Self {
        assert!(segment_bytes > 0);
        Self {
            segment_bytes,
            segments: BTreeMap::new(),
            kept: VecDeque::new(),
            checkpoint_last: 0,
            strays: BTreeSet::new(),
        }
    }

    /// A checkpoint file that is not kept exists; it goes once two newer ones are kept.
    pub(super) fn stray(&mut self, number: u64) {
        assert!(number > 0 && number <= self.checkpoint_last);
        assert!(
            self.kept.iter().all(|kept| kept.number != number),
            "it is kept"
        );
        self.strays.insert(number);
    }

    /// A number no checkpoint file has had.
    pub(super) fn next_checkpoint(&self) -> u64 {
        self.checkpoint_last + 1
    }

    /// A checkpoint file of this number may exist, whole or not.
    pub(super) fn checkpoint_tried(&mut self, number: u64) {
        assert!(number > 0, "checkpoints are counted from 1");
        self.checkpoint_last = self.checkpoint_last.max(number);
    }

    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// A segment's present use begins.
    pub(super) fn begin(&mut self, segment: u64, incarnation: u64) {
        self.insert(SegmentRow {
            segment,
            incarnation,
            live_bytes: 0,
            end_bytes: 0,
            last: BlockSequence(0),
        });
    }

    /// A segment from a checkpoint, or met by recovery.
    pub(super) fn insert(&mut self, row: SegmentRow) {
        let pin = Rc::new(());
        let before = self.segments.insert(row.segment, Segment { row, pin });
        assert!(before.is_none(), "a segment number is used once");
    }

    pub(super) fn contains(&self, segment: u64) -> bool {
        self.segments.contains_key(&segment)
    }

    /// A block of the segment is durable.
    pub(super) fn wrote(&mut self, segment: u64, end_bytes: u64, last: BlockSequence) {
        let row = &mut self
            .segments
            .get_mut(&segment)
            .expect("a block lies in a segment")
            .row;
        assert!(end_bytes > row.end_bytes && end_bytes <= self.segment_bytes);
        assert!(last > row.last);
        row.end_bytes = end_bytes;
        row.last = last;
    }

    /// Records were applied.
    pub(super) fn lives(&mut self, segment: u64, bytes: u32) {
        let row = &mut self
            .segments
            .get_mut(&segment)
            .expect("records lie in a segment")
            .row;
        assert!(bytes > 0, "records have bytes");
        row.live_bytes += u64::from(bytes);
        assert!(
            row.live_bytes <= self.segment_bytes,
            "more alive than a segment holds"
        );
    }

    /// Records were released.
    ///
    /// # Panics
    /// If more is released than is alive: an extent was released twice.
    pub(super) fn died(&mut self, segment: u64, bytes: u32) {
        let segment = self
            .segments
            .get_mut(&segment)
            .expect("a live extent's segment is kept");
        let left = segment.row.live_bytes.checked_sub(u64::from(bytes));
        segment.row.live_bytes = left.expect("an extent is released once");
    }

    /// What a checkpoint records.
    pub(super) fn rows(&self) -> Vec<SegmentRow> {
        self.segments.values().map(|segment| segment.row).collect()
    }

    /// A checkpoint is durable and named. Returns the numbers of those that are not kept any more.
    pub(super) fn keep(&mut self, checkpoint: Kept) -> Vec<u64> {
        let newest = self.kept.back();
        assert!(newest.is_none_or(|newest| newest.number < checkpoint.number));
        self.checkpoint_tried(checkpoint.number);
        self.kept.push_back(checkpoint);
        let surplus = self.kept.len().saturating_sub(CHECKPOINTS_KEPT);
        let gone = self.kept.drain(..surplus).map(|kept| kept.number);
        self.strays.extend(gone);
        assert!(self.kept.len() <= CHECKPOINTS_KEPT);
        if self.kept.len() < CHECKPOINTS_KEPT {
            return Vec::new();
        }
        let oldest = self.kept.front().map_or(0, |kept| kept.number);
        let newer = self.strays.split_off(&oldest);
        std::mem::replace(&mut self.strays, newer)
            .into_iter()
            .collect()
    }

    /// A checkpoint that was found whole when the journal was opened.
    pub(super) fn keep_found(&mut self, checkpoint: Kept) {
        let newest = self.kept.back();
        assert!(newest.is_none_or(|newest| newest.number < checkpoint.number));
        assert!(self.kept.len() < CHECKPOINTS_KEPT);
        self.kept.push_back(checkpoint);
    }

    /// Where a recovery would start; `None`: at the beginning.
    pub(super) fn replay_from(&self) -> Option<Position> {
        self.kept.back().map(|kept| kept.replay_from)
    }

    /// A segment that may be used again, if there is one.
    pub(super) fn reclaimable(&self) -> Option<u64> {
        if self.kept.len() < CHECKPOINTS_KEPT {
            return None;
        }
        let free = |segment: &&Segment| {
            let row = &segment.row;
            let end = (row.segment + 1) * self.segment_bytes;
            let unneeded =
                |kept: &Kept| end <= kept.replay_from.0 && !kept.live.contains(&row.segment);
            row.live_bytes == 0
                && self.kept.iter().all(unneeded)
                && Rc::strong_count(&segment.pin) == 1
        };
        self.segments
            .values()
            .find(free)
            .map(|segment| segment.row.segment)
    }

    /// Planted bug (simulation only): reclaims what the checkpoints may still need.
    pub(super) fn reclaimable_too_early(&self, active: u64) -> Option<u64> {
        let mut sealed = self
            .segments
            .values()
            .filter(|segment| segment.row.segment < active);
        sealed
            .find(|segment| segment.row.live_bytes == 0)
            .map(|segment| segment.row.segment)
    }

    /// Strikes a segment off the books: from here on no reader finds it.
    pub(super) fn strike(&mut self, segment: u64) {
        let gone = self
            .segments
            .remove(&segment)
            .expect("only known segments are struck off");
        assert_eq!(gone.row.live_bytes, 0, "live records keep their segment");
        assert_eq!(Rc::strong_count(&gone.pin), 1, "a reader holds the segment");
    }

    /// Holds a segment for a reader until the answer is dropped.
    pub(super) fn pin(&self, segment: u64) -> Option<Rc<()>> {
        self.segments
            .get(&segment)
            .map(|segment| Rc::clone(&segment.pin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(number: u64, replay_from: u64, live: &[u64]) -> Kept {
        Kept {
            number,
            replay_from: Position(replay_from),
            live: live.iter().copied().collect(),
        }
    }

    /// Goal: each condition of the invariant alone keeps a segment. Method: a dead segment 0 of 100
    /// bytes, and checkpoints that lack one condition after the other.
    #[test]
    fn a_segment_is_free_only_if_everything_agrees() {
        let fresh = || {
            let mut space = Space::new(100);
            space.begin(0, 7);
            space.begin(1, 8);
            space.lives(1, 10);
            space
        };
        let mut space = fresh();
        assert_eq!(space.reclaimable(), None, "no checkpoint");
        space.keep(kept(1, 150, &[]));
        assert_eq!(space.reclaimable(), None, "one checkpoint");
        assert_eq!(space.keep(kept(2, 160, &[1])), Vec::<u64>::new());
        assert_eq!(space.reclaimable(), Some(0));
        let pin = space.pin(0);
        assert_eq!(space.reclaimable(), None, "being read");
        drop(pin);
        space.lives(0, 5);
        assert_eq!(space.reclaimable(), None, "alive");
        space.died(0, 5);
        assert_eq!(space.reclaimable(), Some(0));
        space.strike(0);
        assert_eq!(space.reclaimable(), None);
        assert!(space.pin(0).is_none() && space.pin(1).is_some());

        let mut space = fresh();
        space.keep(kept(1, 99, &[]));
        space.keep(kept(2, 160, &[]));
        assert_eq!(space.reclaimable(), None, "the older replay needs it");
        assert_eq!(space.keep(kept(3, 170, &[])), vec![1]);
        assert_eq!(space.reclaimable(), Some(0));

        let mut space = fresh();
        space.keep(kept(1, 150, &[0]));
        space.keep(kept(2, 160, &[]));
        assert_eq!(space.reclaimable(), None, "alive in the older checkpoint");
    }

    /// Goal: releasing twice is a bug that stops. Method: release more than lives.
    #[test]
    #[should_panic(expected = "an extent is released once")]
    fn releasing_twice_panics() {
        let mut space = Space::new(100);
        space.begin(0, 7);
        space.lives(0, 5);
        space.died(0, 5);
        space.died(0, 5);
    }
}
