//! The group-commit planner: what goes into the next block, where it lies, and which blocks are
//! durable. Sans-io: no clock, no file, no waiting; `commit` drives it.
//!
//! Invariants:
//! * the blocks beyond the durable prefix are at most `commit_depth` and `window_bytes` (one block
//!   is always allowed): that is what recovery may find torn;
//! * blocks become durable *in sequence order*, whatever the order in which their writes complete;
//! * `durable_seq` of a block is the durable prefix when it was packed, so it never names a block
//!   that a crash could still take back;
//! * a block covers a contiguous range of staged items, so a ticket is one number.
//!
//! Nothing is allocated per staged item but its place in the queue, whose memory is kept.

use super::format::{
    self, DirectoryEntry, ENTRY_BYTES, EntryKind, HEADER_BYTES, Header, SegmentMark, batch,
};
use super::{CommitTimes, JournalConfig, StagedEntry};
use crate::base::ids::{BlockSequence, Offset, Position, ShardId, Term, TopicPartition};
use crate::env::SharedBuffer;
use crate::limits::{BLOCK_ALIGN, BLOCK_ENTRIES_MAX};
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of a block with one small entry: a segment's mark, or a seal.
pub(super) const SMALL_BLOCK_BYTES: usize = BLOCK_ALIGN;

/// Where the journal ends, and what the next block must continue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Tail {
    /// Segment of the next block.
    pub segment: u64,
    /// Offset of the next block in it.
    pub offset: u64,
    /// Nonce of that segment.
    pub incarnation: u64,
    /// Number of the last block.
    pub sequence: BlockSequence,
    /// Digest of the last block.
    pub digest: u32,
    /// Whether the last block vouches for all before it and holds nothing itself.
    pub sealed: bool,
}

/// What the planner may do next.
#[derive(Debug)]
pub(super) enum Plan {
    /// Nothing, until something completes or is staged.
    Wait,
    /// The next block does not fit into this segment.
    Roll,
    /// A block of this many bytes.
    Block(Draft),
}

/// The measures of a block about to be packed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draft {
    items: usize,
    header_len: usize,
    payload_len: usize,
}

impl Draft {
    /// Bytes on disk.
    pub(super) fn block_len(self) -> usize {
        format::block_len(self.header_len, self.payload_len)
    }
}

struct Staged {
    entry: StagedEntry,
}

impl Staged {
    fn body(&self) -> &[u8] {
        match &self.entry {
            StagedEntry::Records { batches, .. } => batches,
            StagedEntry::State { body, .. } => body,
        }
    }

    /// Records first, by partition; then everything else, in the order of staging.
    fn group(&self) -> (bool, TopicPartition) {
        match &self.entry {
            StagedEntry::Records { partition, .. } => (false, *partition),
            StagedEntry::State { .. } => (true, TopicPartition::default()),
        }
    }
}

/// A block that was packed and is not yet part of the durable prefix.
#[derive(Debug)]
pub(super) struct InFlight {
    /// Its header.
    pub header: Header,
    /// Segment it lies in.
    pub segment: u64,
    /// Last staged item in it or before it.
    pub stage_last: u64,
    /// The block's bytes.
    pub buffer: Option<SharedBuffer>,
    /// When it was written and flushed, once it is; when it is released is still to come.
    pub times: Option<CommitTimes>,
}

/// The planner of one journal.
pub(super) struct Planner {
    shard: ShardId,
    term: Term,
    segment_bytes: u64,
    block_bytes_max: usize,
    block_bytes_hard_max: usize,
    depth: usize,
    window_bytes: u32,
    staged: VecDeque<Staged>,
    staged_bytes: usize,
    stage_last: u64,
    stage_packed: u64,
    tail: Tail,
    durable: BlockSequence,
    in_flight: VecDeque<InFlight>,
    in_flight_bytes: usize,
    order: Vec<u32>,
    entries: Vec<DirectoryEntry>,
    /// Planted bug (simulation only): see `Bug::WatermarkPastDurable`.
    watermark_past_durable: bool,
}

impl Planner {
    pub(super) fn new(config: &JournalConfig, tail: Tail) -> Self {
        assert!(
            tail.offset <= config.segment_bytes,
            "a tail outside its segment"
        );
        Self {
            shard: config.shard,
            term: config.term,
            segment_bytes: config.segment_bytes,
            block_bytes_max: config.block_bytes_max,
            block_bytes_hard_max: config.block_bytes_hard_max,
            depth: config.commit_depth,
            window_bytes: config.window_bytes(),
            staged: VecDeque::new(),
            staged_bytes: 0,
            stage_last: 0,
            stage_packed: 0,
            tail,
            durable: tail.sequence,
            in_flight: VecDeque::with_capacity(config.commit_depth),
            in_flight_bytes: 0,
            order: Vec::new(),
            entries: Vec::new(),
            watermark_past_durable: false,
        }
    }

    pub(super) fn plant_watermark_past_durable(&mut self) {
        self.watermark_past_durable = true;
    }

    pub(super) fn tail(&self) -> Tail {
        self.tail
    }

    /// Where in its segment a block of this length goes, if it is the next.
    pub(super) fn place_of(&self, block_bytes: usize) -> Range<u64> {
        self.tail.offset..self.tail.offset + block_bytes as u64
    }

    pub(super) fn staged_bytes(&self) -> usize {
        self.staged_bytes
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Last staged item that is packed; everything up to here that is not in flight is durable.
    pub(super) fn stage_packed(&self) -> u64 {
        self.stage_packed
    }

    pub(super) fn is_idle(&self) -> bool {
        self.staged.is_empty() && self.in_flight.is_empty()
    }

    /// Whether [`Planner::plan`] is worth asking.
    pub(super) fn wants_block(&self) -> bool {
        !self.staged.is_empty() && self.in_flight.len() < self.depth
    }

    /// Forgets everything staged: the journal is poisoned, and nothing is packed any more.
    pub(super) fn drop_staged(&mut self) {
        self.staged.clear();
        self.staged_bytes = 0;
        // What is dropped is never packed; the next item may still be staged, and dropped in turn.
        self.stage_packed = self.stage_last;
    }

    /// Fixes an entry's place in the order.
    pub(super) fn stage(&mut self, entry: StagedEntry) -> u64 {
        let staged = Staged { entry };
        let bytes = staged.body().len();
        let records = matches!(staged.entry, StagedEntry::Records { .. });
        assert!(bytes > 0 || !records, "records have bytes");
        let alone = format::block_len(HEADER_BYTES + ENTRY_BYTES, bytes);
        assert!(
            alone <= self.block_bytes_hard_max,
            "an entry larger than a block may be"
        );
        self.staged_bytes += bytes;
        self.staged.push_back(staged);
        self.stage_last += 1;
        assert!(self.stage_last - self.stage_packed == self.staged.len() as u64);
        self.stage_last
    }

    /// What to do with the staged items.
    pub(super) fn plan(&mut self) -> Plan {
        if !self.wants_block() {
            return Plan::Wait;
        }
        let draft = self.gather();
        assert!(
            draft.items > 0,
            "a block of staged items holds at least one"
        );
        assert!(draft.block_len() <= self.block_bytes_hard_max);
        self.place(draft)
    }

    /// What to do to write a small block of the journal's own.
    pub(super) fn plan_small(&self) -> Plan {
        if self.in_flight.len() >= self.depth {
            return Plan::Wait;
        }
        self.place(Draft {
            items: 0,
            header_len: HEADER_BYTES + ENTRY_BYTES,
            payload_len: format::SEAL_BYTES,
        })
    }

    fn place(&self, draft: Draft) -> Plan {
        let bytes = draft.block_len();
        let within = self.in_flight_bytes + bytes <= self.window_bytes as usize;
        if !self.in_flight.is_empty() && !within {
            return Plan::Wait;
        }
        if self.tail.offset + bytes as u64 > self.segment_bytes {
            return Plan::Roll;
        }
        Plan::Block(draft)
    }

    /// Chooses the prefix of the staged items for one block, and lays its directory out.
    fn gather(&mut self) -> Draft {
        let mut items = 0;
        let mut bytes = HEADER_BYTES;
        for staged in self.staged.iter().take(BLOCK_ENTRIES_MAX) {
            bytes += ENTRY_BYTES + staged.body().len();
            if items > 0 && bytes > self.block_bytes_max {
                break;
            }
            items += 1;
        }
        self.order.clear();
        self.order
            .extend(0..u32::try_from(items).expect("bounded by BLOCK_ENTRIES_MAX"));
        let staged = &self.staged;
        self.order
            .sort_unstable_by_key(|&index| (staged[index as usize].group(), index));
        self.entries.clear();
        let mut body_offset = 0;
        for &index in &self.order {
            let staged = &self.staged[index as usize];
            let len = u32::try_from(staged.body().len()).expect("asserted when staged");
            extend_directory(&mut self.entries, staged, body_offset, len);
            body_offset += len;
        }
        Draft {
            items,
            header_len: HEADER_BYTES + self.entries.len() * ENTRY_BYTES,
            payload_len: body_offset as usize,
        }
    }

    /// Packs what [`Planner::plan`] laid out. `bytes` is of the draft's length, whatever it holds:
    /// every byte is set. It must be written at the returned place, an offset in the segment.
    pub(super) fn pack(&mut self, draft: Draft, bytes: &mut [u8]) -> u64 {
        assert_eq!(bytes.len(), draft.block_len(), "the buffer is the block");
        assert_eq!(
            self.order.len(),
            draft.items,
            "a plan is packed before the next is made"
        );
        bytes[..draft.header_len].fill(0);
        bytes[draft.header_len + draft.payload_len..].fill(0);
        let mut at = draft.header_len;
        for &index in &self.order {
            let body = self.staged[index as usize].body();
            bytes[at..at + body.len()].copy_from_slice(body);
            at += body.len();
        }
        assert_eq!(
            at,
            draft.header_len + draft.payload_len,
            "bodies fill the payload"
        );
        let entries = std::mem::take(&mut self.entries);
        for (index, entry) in entries.iter().enumerate() {
            let start = draft.header_len + entry.body_offset as usize;
            let body = &mut bytes[start..start + entry.body_len as usize];
            let entry = finish_entry(*entry, body);
            format::encode_entry(&entry, index, bytes);
        }
        let entry_count = u32::try_from(entries.len()).expect("bounded by BLOCK_ENTRIES_MAX");
        self.entries = entries;
        for staged in self.staged.drain(..draft.items) {
            self.staged_bytes -= staged.body().len();
        }
        self.stage_packed += draft.items as u64;
        self.finish(entry_count, draft, bytes)
    }

    /// Packs a seal into `bytes`, a zeroed small block.
    pub(super) fn pack_seal(&mut self, body: &[u8; format::SEAL_BYTES], bytes: &mut [u8]) -> u64 {
        assert!(self.is_idle(), "only a quiet journal is sealed");
        self.pack_small(EntryKind::Seal, body, bytes)
    }

    /// Begins a segment with its mark, packed into `bytes`, a zeroed small block.
    pub(super) fn pack_mark(
        &mut self,
        mark: &SegmentMark,
        incarnation: u64,
        bytes: &mut [u8],
    ) -> u64 {
        assert!(mark.segment > self.tail.segment || self.tail.sequence.0 == 0);
        assert_eq!(mark.segment_bytes, self.segment_bytes);
        self.tail.segment = mark.segment;
        self.tail.offset = 0;
        self.tail.incarnation = incarnation;
        let offset = self.pack_small(EntryKind::SegmentMark, &mark.encode(), bytes);
        assert_eq!(offset, 0, "a mark opens its segment");
        offset
    }

    fn pack_small(&mut self, kind: EntryKind, body: &[u8], bytes: &mut [u8]) -> u64 {
        assert!(kind.is_internal() && bytes.len() == SMALL_BLOCK_BYTES);
        let header_len = HEADER_BYTES + ENTRY_BYTES;
        bytes[header_len..header_len + body.len()].copy_from_slice(body);
        let entry = DirectoryEntry {
            kind,
            partition: TopicPartition::default(),
            base_offset: Offset(0),
            record_count: 0,
            leader_epoch: 0,
            body_offset: 0,
            body_len: u32::try_from(body.len()).expect("a small block's body"),
            body_crc: crc32c::crc32c(body),
        };
        format::encode_entry(&entry, 0, bytes);
        let draft = Draft {
            items: 0,
            header_len,
            payload_len: body.len(),
        };
        self.finish(1, draft, bytes)
    }

    /// Writes the header, moves the tail and counts the block as in flight.
    fn finish(&mut self, entries: u32, draft: Draft, bytes: &mut [u8]) -> u64 {
        let tail = self.tail;
        let sequence = BlockSequence(tail.sequence.0 + 1);
        let payload = &bytes[draft.header_len..draft.header_len + draft.payload_len];
        let durable = match self.watermark_past_durable {
            true => tail.sequence,
            false => self.durable,
        };
        let header = Header {
            shard: self.shard,
            incarnation: tail.incarnation,
            term: self.term,
            sequence,
            position: Position(tail.segment * self.segment_bytes + tail.offset),
            durable,
            window_bytes: self.window_bytes,
            previous_digest: tail.digest,
            entry_count: entries,
            header_len: u32::try_from(draft.header_len).expect("bounded by the directory"),
            payload_len: u32::try_from(draft.payload_len).expect("bounded by the block"),
            payload_crc: crc32c::crc32c(payload),
            digest: 0,
        };
        let header = format::encode_header(header, bytes);
        // Only an internal block can seal, and only if nothing before it is still in flight.
        self.tail.sealed = draft.items == 0 && self.in_flight.is_empty();
        self.tail.offset += bytes.len() as u64;
        self.tail.sequence = sequence;
        self.tail.digest = header.digest;
        assert!(
            self.tail.offset <= self.segment_bytes,
            "a block leaves its segment"
        );
        assert!(
            self.in_flight.len() < self.depth,
            "more in flight than a crash may tear"
        );
        self.in_flight.push_back(InFlight {
            header,
            segment: tail.segment,
            stage_last: self.stage_packed,
            buffer: None,
            times: None,
        });
        self.in_flight_bytes += bytes.len();
        tail.offset
    }

    /// Keeps the bytes of the block packed last, for `apply` and for readers.
    pub(super) fn keep(&mut self, buffer: SharedBuffer) -> Header {
        let block = self.in_flight.back_mut().expect("a block was just packed");
        assert!(block.buffer.is_none() && buffer.len() == block.header.block_len());
        block.buffer = Some(buffer);
        block.header
    }

    /// A block's own write is durable, and went so.
    pub(super) fn written(&mut self, sequence: BlockSequence, times: CommitTimes) {
        let first = self
            .in_flight
            .front()
            .expect("a write completes while in flight");
        let index = sequence.0 - first.header.sequence.0;
        let index = usize::try_from(index).expect("at most commit_depth");
        let block = &mut self.in_flight[index];
        assert_eq!(
            block.header.sequence, sequence,
            "blocks in flight are contiguous"
        );
        assert!(block.times.is_none(), "a write completes once");
        block.times = Some(times);
    }

    /// Leaves the seal out: see the caller for when that is right.
    pub(super) fn skip_seal(&mut self) {
        assert!(self.is_idle());
        self.tail.sealed = true;
    }

    /// Planted bug (simulation only): the last staged item of a block in flight.
    pub(super) fn stage_last_of(&self, sequence: BlockSequence) -> u64 {
        let mut blocks = self.in_flight.iter();
        let block = blocks.find(|block| block.header.sequence == sequence);
        block.map_or(0, |block| block.stage_last)
    }

    /// The next block of the durable prefix, if it has grown.
    pub(super) fn pop_durable(&mut self) -> Option<InFlight> {
        self.in_flight.front()?.times?;
        let block = self.in_flight.pop_front()?;
        assert_eq!(
            block.header.sequence.0,
            self.durable.0 + 1,
            "the prefix grows by one"
        );
        self.durable = block.header.sequence;
        self.in_flight_bytes -= block.header.block_len();
        Some(block)
    }
}

/// Adds a staged item to the directory: to its partition's record if it continues it.
fn extend_directory(
    entries: &mut Vec<DirectoryEntry>,
    staged: &Staged,
    body_offset: u32,
    body_len: u32,
) {
    let (kind, partition, base_offset, record_count, leader_epoch) = match &staged.entry {
        StagedEntry::Records {
            partition,
            base_offset,
            leader_epoch,
            record_count,
            ..
        } => (
            EntryKind::Records,
            *partition,
            *base_offset,
            *record_count,
            *leader_epoch,
        ),
        StagedEntry::State { kind, .. } => (*kind, TopicPartition::default(), Offset(0), 0, 0),
    };
    let last = entries.last_mut();
    let same = last.filter(|last| last.kind == kind && last.partition == partition);
    if let (EntryKind::Records, Some(last)) = (kind, same) {
        let next = last.base_offset.0 + i64::from(last.record_count);
        assert_eq!(
            next, base_offset.0,
            "an offset is assigned once, without gaps"
        );
        if last.leader_epoch == leader_epoch {
            last.record_count += record_count;
            last.body_len += body_len;
            return;
        }
    }
    entries.push(DirectoryEntry {
        kind,
        partition,
        base_offset,
        record_count,
        leader_epoch,
        body_offset,
        body_len,
        body_crc: 0,
    });
}

/// Stamps offsets into packed batches, or takes the checksum of another body.
fn finish_entry(mut entry: DirectoryEntry, body: &mut [u8]) -> DirectoryEntry {
    if entry.kind != EntryKind::Records {
        entry.body_crc = crc32c::crc32c(body);
        return entry;
    }
    let next = batch::stamp(body, entry.base_offset, entry.leader_epoch);
    let expected = entry.base_offset.0 + i64::from(entry.record_count);
    assert_eq!(
        next,
        Ok(Offset(expected)),
        "the staged batches span the offsets they claim"
    );
    entry
}
