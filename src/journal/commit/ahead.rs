//! Which places of the active segment have been written once, and zeros ahead of the tail.
//!
//! A small block costs one device flush where its place has been written before, and two where the
//! place is only taken; for a large one the bytes are what costs, and zeros under it would be as
//! many again. Measured once on ext4 with a bare loop of four `O_DSYNC` writes in flight, unwritten
//! against written: 4 KiB 44 and 89 MB/s, 64 KiB 472 and 870, 256 KiB 1,336 and 2,236, 1 MiB 1,817
//! and 2,356 (`penstock probe` repeats the last pair). With zeros first, 256 KiB would come to
//! about 1,130 and 1 MiB to 1,170. So:
//!
//! * a new segment is zero-written as a whole while most bytes come in small blocks, and only
//!   allocated while most come in large ones ([`Ahead::prepares_zeros`]);
//! * where several small blocks in a row meet unwritten places all the same, zeros are written some
//!   way ahead of the tail, in the background.
//!
//! Invariants:
//! * zeros are for speed only: a block may lie anywhere in its segment, and a crash finds zeros
//!   where nothing was written;
//! * while zeros are being written over a range, no block is placed on it: the writer waits.

use super::Core;
use crate::env::OpenMode;
use crate::journal::{JournalConfig, segment};
use crate::limits::{
    ZERO_AHEAD_BLOCKS_MIN, ZERO_AHEAD_BYTES_LOW, ZERO_AHEAD_BYTES_MAX, ZERO_SLICE_BYTES,
};
use std::io;
use std::ops::Range;
use std::rc::Rc;

/// What is known of the active segment's places.
pub(in crate::journal) struct Ahead {
    segment: u64,
    segment_bytes: u64,
    large_block_bytes_min: u64,
    /// Where the next block goes.
    tail: u64,
    /// Everything between the tail and here has been written.
    written: u64,
    /// How far zeros are of use: some way from the last small block.
    wanted: u64,
    /// Small blocks since the last large one.
    small_in_a_row: u32,
    /// The range that zeros are being written over, in this segment.
    zeroing: Option<Range<u64>>,
    /// Whether the task runs, for this segment or the one before.
    running: bool,
    small_bytes: u64,
    large_bytes: u64,
}

impl Ahead {
    /// Of an active segment whose first unwritten place behind the tail is `written`.
    pub(in crate::journal) fn new(config: &JournalConfig, segment: u64, written: u64) -> Ahead {
        let segment_bytes = config.segment_bytes;
        assert!(written <= segment_bytes, "a place within the segment");
        Ahead {
            segment,
            segment_bytes,
            large_block_bytes_min: config.large_block_bytes_min,
            tail: 0,
            written,
            wanted: 0,
            small_in_a_row: 0,
            zeroing: None,
            running: false,
            small_bytes: 0,
            large_bytes: 0,
        }
    }

    /// The next segment is the active one. What came before counts half from here on: the segment
    /// after it is prepared at once, and nothing else is known then.
    pub(super) fn roll(&mut self, segment: u64, written: u64) {
        assert!(segment > self.segment, "segments follow each other");
        assert!(written <= self.segment_bytes, "a place within the segment");
        self.segment = segment;
        self.tail = 0;
        self.written = written;
        self.wanted = 0;
        self.zeroing = None;
        self.small_bytes /= 2;
        self.large_bytes /= 2;
    }

    /// Whether the next segment should be zero-written as a whole. Before much was written, it
    /// should.
    pub(in crate::journal) fn prepares_zeros(&self) -> bool {
        self.large_bytes <= self.small_bytes
    }

    /// Whether a block over `range` must wait for zeros that are being written there.
    pub(super) fn is_in_the_way(&self, range: &Range<u64>) -> bool {
        let zeroing = self.zeroing.as_ref();
        zeroing.is_some_and(|zeroing| zeroing.start < range.end && range.start < zeroing.end)
    }

    /// A block is placed over `range`. Returns whether the zeros should be carried on.
    pub(super) fn place(&mut self, range: &Range<u64>) -> bool {
        assert!(!self.is_in_the_way(range), "the writer waits for zeros");
        assert!(range.end <= self.segment_bytes, "inside its segment");
        assert!(range.start >= self.tail, "blocks follow each other");
        self.tail = range.end;
        self.written = self.written.max(range.end);
        let block_bytes = range.end - range.start;
        if block_bytes >= self.large_block_bytes_min {
            self.large_bytes += block_bytes;
            self.small_in_a_row = 0;
            return false;
        }
        self.small_bytes += block_bytes;
        self.small_in_a_row = self.small_in_a_row.saturating_add(1);
        if self.small_in_a_row < ZERO_AHEAD_BLOCKS_MIN {
            return false;
        }
        self.wanted = (self.tail + ZERO_AHEAD_BYTES_MAX).min(self.segment_bytes);
        let low = self.written - self.tail < ZERO_AHEAD_BYTES_LOW;
        low && self.written < self.segment_bytes && !self.running
    }

    /// Whether the task runs.
    pub(super) fn is_running(&self) -> bool {
        self.running
    }

    /// The next range to write zeros over, if that is of use.
    fn next_slice(&mut self) -> Option<(u64, Range<u64>)> {
        assert!(self.zeroing.is_none(), "one range at a time");
        let end = (self.written + ZERO_SLICE_BYTES as u64).min(self.wanted);
        if self.written >= end {
            return None;
        }
        self.zeroing = Some(self.written..end);
        Some((self.segment, self.written..end))
    }

    fn end_slice(&mut self, segment: u64) {
        // The journal may have rolled meanwhile: then the zeros lie in a segment that is left.
        if segment == self.segment
            && let Some(zeroed) = self.zeroing.take()
        {
            assert!(zeroed.start >= self.tail, "no block lies under zeros");
            self.written = self.written.max(zeroed.end);
        }
    }
}

/// Starts the task that writes zeros ahead, as [`Ahead::place`] asked for.
pub(super) fn write_zeros(core: &Rc<Core>) {
    let was_running = std::mem::replace(&mut core.ahead.borrow_mut().running, true);
    assert!(!was_running, "it is asked for only while it rests");
    core.env.spawn("zeros ahead", run(Rc::clone(core)));
}

async fn run(core: Rc<Core>) {
    let outcome = zero_slices(&core).await;
    let mut ahead = core.ahead.borrow_mut();
    ahead.running = false;
    ahead.zeroing = None;
    drop(ahead);
    match outcome {
        Ok(()) => core.unblock_writer(),
        Err(error) => core.poison("zeros could not be written ahead", &error),
    }
    core.wake_closers();
}

async fn zero_slices(core: &Rc<Core>) -> io::Result<()> {
    let disk = core.env.disk();
    let mut open = None;
    while !core.is_ending() {
        let slice = core.ahead.borrow_mut().next_slice();
        let Some((segment, range)) = slice else {
            break;
        };
        let file = match &open {
            Some((opened, file)) if *opened == segment => file,
            _ => {
                let path = segment::segment_path(&core.config.dir, segment);
                // Without O_DSYNC: zeros need not be durable before what is written over them is.
                let file = disk.open(&path, OpenMode::Write).await?;
                &open.insert((segment, file)).1
            }
        };
        let len = usize::try_from(range.end - range.start).expect("a slice fits into memory");
        file.write_all_at(file.buffer(len).freeze(), range.start)
            .await?;
        core.counters.zeroed.add(len as u64);
        core.ahead.borrow_mut().end_slice(segment);
        core.unblock_writer();
    }
    match open {
        Some((_, file)) => file.sync_data().await,
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::ShardId;
    use crate::limits::LARGE_BLOCK_BYTES_MIN;

    const SEGMENT: u64 = 64 << 20;
    const SMALL: u64 = 4096;

    fn fresh(segment: u64, written: u64) -> Ahead {
        let config = JournalConfig::new("/shard-000".into(), ShardId(0));
        assert_eq!(config.segment_bytes, SEGMENT);
        Ahead::new(&config, segment, written)
    }

    /// Goal: blocks of one kind decide how the next segment is made. Method: more bytes of one,
    /// then of the other.
    #[test]
    fn the_greater_share_of_bytes_decides() {
        let mut ahead = fresh(0, SEGMENT);
        assert!(ahead.prepares_zeros(), "nothing is known yet");
        ahead.place(&(0..LARGE_BLOCK_BYTES_MIN));
        assert!(!ahead.prepares_zeros());
        ahead.roll(1, SEGMENT);
        ahead.place(&(0..SMALL));
        assert!(!ahead.prepares_zeros(), "also right after a roll");
        ahead.roll(2, SEGMENT);
        let mut tail = 0;
        while tail < LARGE_BLOCK_BYTES_MIN {
            ahead.place(&(tail..tail + SMALL));
            tail += SMALL;
        }
        assert!(ahead.prepares_zeros());
    }

    /// Places small blocks until zeros are asked for; where the tail is then.
    fn place_until_wanted(ahead: &mut Ahead, mut tail: u64) -> u64 {
        for placed in 1..=ZERO_AHEAD_BLOCKS_MIN {
            let wants = ahead.place(&(tail..tail + SMALL));
            assert_eq!(wants, placed == ZERO_AHEAD_BLOCKS_MIN);
            tail += SMALL;
        }
        tail
    }

    /// Goal: zeros and blocks never overlap, zeros stay within their bounds, and large blocks ask
    /// for none, nor carry those on that small ones asked for. Method: walk through an unwritten
    /// segment.
    #[test]
    fn zeros_run_ahead_of_small_blocks_only() {
        let mut ahead = fresh(3, SMALL);
        assert!(!ahead.place(&(0..1 << 20)), "a large block asks for none");
        let tail = place_until_wanted(&mut ahead, 1 << 20);
        let (segment, first) = ahead.next_slice().expect("zeros are of use");
        assert_eq!((segment, first.start), (3, tail));
        assert!(ahead.is_in_the_way(&(tail..tail + SMALL)));
        assert!(!ahead.is_in_the_way(&(first.end..first.end + SMALL)));
        ahead.end_slice(3);
        let mut end = first.end;
        while let Some((_, slice)) = ahead.next_slice() {
            assert_eq!(slice.start, end, "without a gap");
            end = slice.end;
            ahead.end_slice(3);
        }
        assert_eq!(end, tail + ZERO_AHEAD_BYTES_MAX);
        assert!(!ahead.place(&(tail..tail + SMALL)), "far enough ahead");
        while ahead.next_slice().is_some() {
            ahead.end_slice(3);
        }
        ahead.place(&(end..end + (1 << 20)));
        assert!(ahead.next_slice().is_none(), "no zeros for large blocks");
    }

    /// Goal: zeros that end after the journal has rolled say nothing about the new segment.
    /// Method: roll between the two.
    #[test]
    fn zeros_of_a_left_segment_are_forgotten() {
        let mut ahead = fresh(3, SMALL);
        place_until_wanted(&mut ahead, 0);
        assert!(ahead.next_slice().is_some());
        ahead.roll(4, SMALL);
        ahead.end_slice(3);
        assert_eq!(ahead.written, SMALL);
        assert!(!ahead.is_in_the_way(&(0..SEGMENT)));
    }
}
