//! Reading extents back: recent ones from memory, older ones from the disk.
//!
//! * What comes from the disk is verified byte for byte (each batch's CRC, and against the extent
//!   the few header bytes that CRC leaves out): a mismatch is an error, never wrong bytes.
//! * The memory holds whole blocks as they were written, first in, first out, bounded.
//! * A reader pins its segment, so a file is never used again under it; a segment's position is
//!   unique for ever, so a stale extent finds nothing rather than something else.

use super::commit::Core;
use super::format::batch;
use super::{Extent, ReadError, segment};
use crate::base::ids::Position;
use crate::env::{File, OpenMode, SharedBuffer};
use crate::limits::{
    BLOCK_ALIGN, READ_FILES_MAX, READ_GAP_BYTES_MAX, READ_MERGE_BYTES_MAX, READS_AT_ONCE_MAX,
};
use futures_util::stream::{self, StreamExt};
use std::collections::VecDeque;
use std::rc::Rc;

const ALIGN: u64 = BLOCK_ALIGN as u64;

/// Recent blocks and open files of one journal.
pub(super) struct Reader {
    blocks: VecDeque<(u64, SharedBuffer)>,
    blocks_bytes: usize,
    blocks_bytes_max: usize,
    files: VecDeque<(u64, File)>,
}

impl Reader {
    pub(super) fn new(blocks_bytes_max: usize) -> Self {
        Self {
            blocks: VecDeque::new(),
            blocks_bytes: 0,
            blocks_bytes_max,
            files: VecDeque::new(),
        }
    }

    /// Keeps a block that became durable; returns the bytes kept.
    pub(super) fn keep(&mut self, position: Position, block: SharedBuffer) -> usize {
        let newest = self.blocks.back();
        assert!(
            newest.is_none_or(|(newest, _)| *newest < position.0),
            "blocks come in order"
        );
        self.blocks_bytes += block.len();
        self.blocks.push_back((position.0, block));
        while self.blocks_bytes > self.blocks_bytes_max {
            let Some((_, oldest)) = self.blocks.pop_front() else {
                break;
            };
            self.blocks_bytes -= oldest.len();
        }
        assert!(self.blocks_bytes <= self.blocks_bytes_max);
        self.blocks_bytes
    }

    fn recent(&self, extent: &Extent) -> Option<SharedBuffer> {
        let after = self
            .blocks
            .partition_point(|(start, _)| *start <= extent.position.0);
        let (start, block) = self.blocks.get(after.checked_sub(1)?)?;
        let first = usize::try_from(extent.position.0 - start).ok()?;
        let end = first + extent.len_bytes as usize;
        (end <= block.len()).then(|| block.slice(first..end))
    }

    fn file(&mut self, segment: u64) -> Option<File> {
        let index = self
            .files
            .iter()
            .position(|(number, _)| *number == segment)?;
        let (number, file) = self.files.remove(index)?;
        self.files.push_back((number, file.clone()));
        Some(file)
    }

    fn keep_file(&mut self, segment: u64, file: File) {
        self.files.retain(|(number, _)| *number != segment);
        self.files.push_back((segment, file));
        while self.files.len() > READ_FILES_MAX {
            self.files.pop_front();
        }
    }

    /// The segment is used for something else from now on.
    pub(super) fn forget(&mut self, segment: u64, segment_bytes: u64) {
        self.files.retain(|(number, _)| *number != segment);
        let of_segment = |start: u64| start / segment_bytes == segment;
        self.blocks.retain(|(start, _)| !of_segment(*start));
        self.blocks_bytes = self.blocks.iter().map(|(_, block)| block.len()).sum();
        assert!(self.blocks_bytes <= self.blocks_bytes_max);
    }
}

/// See [`super::Journal::read`].
pub(super) async fn read(core: &Rc<Core>, extent: Extent) -> Result<SharedBuffer, ReadError> {
    if let Some(recent) = core.reader.borrow().recent(&extent) {
        core.counters.cache_hits.inc();
        return Ok(recent);
    }
    let end = extent.position.0 + u64::from(extent.len_bytes);
    let span = read_span(core, extent.position.0, end).await?;
    verified(core, &span, extent)
}

/// See [`super::Journal::read_many`].
pub(super) async fn read_many(
    core: &Rc<Core>,
    extents: &[Extent],
) -> Vec<Result<SharedBuffer, ReadError>> {
    let mut answers = Vec::with_capacity(extents.len());
    // Extents on the disk, by where they stand in `extents`, each group near enough for one read.
    let mut groups = Vec::new();
    while answers.len() < extents.len() {
        let at = answers.len();
        let rest = &extents[at..];
        // First of all: what is in memory has no neighbours to be read with.
        if let Some(recent) = core.reader.borrow().recent(&rest[0]) {
            core.counters.cache_hits.inc();
            answers.push(Ok(recent));
            continue;
        }
        let count = mergeable(rest, core.config.segment_bytes);
        groups.push(at..at + count);
        let unread = rest[..count].iter();
        answers.extend(unread.map(|extent| Err(ReadError::Gone(extent.position))));
    }
    if groups.is_empty() {
        return answers;
    }
    // A few reads at once keep the device busy; more would only queue there.
    let reads = stream::iter(groups.iter().cloned());
    let reads = reads.map(|group| read_group(core, &extents[group.clone()], group.start));
    let mut reads = reads.buffer_unordered(READS_AT_ONCE_MAX);
    while let Some((start, group)) = reads.next().await {
        for (index, answer) in group.into_iter().enumerate() {
            answers[start + index] = answer;
        }
    }
    assert_eq!(answers.len(), extents.len());
    answers
}

/// Reads neighbours in one go. Gives back `start`, and the answers in order.
async fn read_group(
    core: &Rc<Core>,
    extents: &[Extent],
    start: usize,
) -> (usize, Vec<Result<SharedBuffer, ReadError>>) {
    assert!(!extents.is_empty(), "a group has an extent at least");
    let last = extents[extents.len() - 1];
    let end = last.position.0 + u64::from(last.len_bytes);
    let mut answers = Vec::with_capacity(extents.len());
    match read_span(core, extents[0].position.0, end).await {
        Ok(span) => answers.extend(extents.iter().map(|one| verified(core, &span, *one))),
        Err(error) if extents.len() == 1 => answers.push(Err(error)),
        // Each alone: one bad neighbour must not hide the others.
        Err(_) => {
            for extent in extents {
                answers.push(read(core, *extent).await);
            }
        }
    }
    assert_eq!(answers.len(), extents.len());
    (start, answers)
}

/// How many extents from the first one on are near enough to be read in one go.
fn mergeable(extents: &[Extent], segment_bytes: u64) -> usize {
    assert!(!extents.is_empty());
    let first = extents[0].position.0;
    let mut end = first + u64::from(extents[0].len_bytes);
    let mut count = 1;
    for extent in &extents[1..] {
        let start = extent.position.0;
        let next_end = start + u64::from(extent.len_bytes);
        let near = start >= end && start - end <= READ_GAP_BYTES_MAX as u64;
        let small = near && next_end - first <= READ_MERGE_BYTES_MAX as u64;
        if !small || start / segment_bytes != first / segment_bytes {
            break;
        }
        end = next_end;
        count += 1;
    }
    count
}

/// Bytes of a segment, and which of its sectors could not be read.
struct Span {
    start: u64,
    bytes: SharedBuffer,
    unreadable: Vec<u64>,
    /// Keeps the segment from being used again until the answer is made.
    _pin: Rc<()>,
}

async fn read_span(core: &Rc<Core>, start: u64, end: u64) -> Result<Span, ReadError> {
    assert!(start < end, "an extent is not empty");
    let segment_bytes = core.config.segment_bytes;
    let segment = start / segment_bytes;
    let base = segment * segment_bytes;
    assert!(end <= base + segment_bytes, "an extent lies in one segment");
    let pin = core.space.borrow().pin(segment);
    let pin = pin.ok_or(ReadError::Gone(Position(start)))?;
    let file = open(core, segment).await?;
    let first = (start - base) / ALIGN * ALIGN;
    let len = (end - base).next_multiple_of(ALIGN) - first;
    let len = usize::try_from(len).expect("an extent fits a block");
    let (bytes, unreadable) = read_tolerant(&file, first, len).await;
    core.counters.cache_misses.inc();
    core.counters.read.add(bytes.len() as u64);
    Ok(Span {
        start: base + first,
        bytes,
        unreadable: unreadable.iter().map(|offset| base + offset).collect(),
        _pin: pin,
    })
}

fn verified(core: &Core, span: &Span, extent: Extent) -> Result<SharedBuffer, ReadError> {
    let end = extent.position.0 + u64::from(extent.len_bytes);
    let damaged = |position: u64, what: &str| {
        core.counters.damaged_reads.inc();
        let segment = position / core.config.segment_bytes;
        ReadError::Damaged {
            file: segment::segment_path(&core.config.dir, segment),
            position: Position(position),
            what: what.to_owned(),
        }
    };
    let mut unreadable = span.unreadable.iter();
    let hit = unreadable.find(|sector| **sector < end && **sector + ALIGN > extent.position.0);
    if let Some(sector) = hit {
        return Err(damaged(*sector, "the device cannot read it"));
    }
    let first = usize::try_from(extent.position.0 - span.start).expect("within the span");
    let end = first + extent.len_bytes as usize;
    if end > span.bytes.len() {
        return Err(damaged(extent.position.0, "the file ends before it"));
    }
    let bytes = span.bytes.slice(first..end);
    match batch::check(&bytes, extent.base_offset, extent.leader_epoch) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(damaged(extent.position.0, error.as_str())),
    }
}

async fn open(core: &Rc<Core>, segment: u64) -> Result<File, ReadError> {
    if let Some(file) = core.segments.borrow().file_of(segment) {
        return Ok(file);
    }
    if let Some(file) = core.reader.borrow_mut().file(segment) {
        return Ok(file);
    }
    let path = segment::segment_path(&core.config.dir, segment);
    let opened = core.env.disk().open(&path, OpenMode::Read).await;
    let file = opened.map_err(ReadError::Io)?;
    core.reader.borrow_mut().keep_file(segment, file.clone());
    Ok(file)
}

/// Byte that stands for what the device could not read: neither blank nor any header.
const UNREADABLE: u8 = 0xEE;

/// Reads a range; where the device fails, halves it down to single sectors, so that one bad sector
/// costs only itself. Returns the bytes and the offsets of the sectors that could not be read.
pub(super) async fn read_tolerant(
    file: &File,
    offset: u64,
    len: usize,
) -> (SharedBuffer, Vec<u64>) {
    assert!(offset.is_multiple_of(ALIGN) && len.is_multiple_of(BLOCK_ALIGN));
    if let Ok(bytes) = file.read_at(offset, len).await
        && bytes.len() == len
    {
        return (bytes, Vec::new());
    }
    let mut buffer = file.buffer(len);
    let mut unreadable = Vec::new();
    let mut ranges = vec![(0, len)];
    while let Some((start, bytes)) = ranges.pop() {
        let place = &mut buffer.as_mut()[start..start + bytes];
        match file.read_at(offset + start as u64, bytes).await {
            Ok(read) if read.len() == bytes => place.copy_from_slice(&read),
            _ if bytes > BLOCK_ALIGN => {
                let half = (bytes / 2).next_multiple_of(BLOCK_ALIGN);
                ranges.push((start + half, bytes - half));
                ranges.push((start, half));
            }
            _ => {
                place.fill(UNREADABLE);
                unreadable.push(offset + start as u64);
            }
        }
    }
    unreadable.sort_unstable();
    (buffer.freeze(), unreadable)
}
