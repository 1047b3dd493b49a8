//! How recovery reads: large sequential reads, in which headers are looked for at aligned places.
//! Nothing is believed here but a header's own checksum and its identity: shard, position,
//! incarnation. Whether a block is the *next* one is for `walk` to say.

use super::super::format::{
    self, DirectoryEntry, EntryError, EntryKind, Header, HeaderError, SegmentMark, batch, get_u64,
};
use super::super::reader::read_tolerant;
use super::super::segment::segment_path;
use super::super::{JournalConfig, JournalError};
use crate::base::ids::{Offset, Position};
use crate::env::sim::Bug;
use crate::env::{Env, File, OpenMode, SharedBuffer};
use crate::limits::{BLOCK_ALIGN, SCAN_BYTES};
use std::path::PathBuf;

pub(in crate::journal) const ALIGN: u64 = BLOCK_ALIGN as u64;

/// A block whose header is whole.
#[derive(Clone, Debug)]
pub(in crate::journal) struct Scanned {
    /// The header.
    pub header: Header,
    /// Segment it lies in.
    pub segment: u64,
    /// Its bytes, as they are on disk.
    pub bytes: SharedBuffer,
    /// Whether the bodies are what was written.
    pub payload_valid: bool,
}

impl Scanned {
    /// Record `index` of its directory.
    pub(in crate::journal) fn entry(&self, index: usize) -> Result<DirectoryEntry, EntryError> {
        format::decode_entry(&self.header, index, &self.bytes)
    }

    /// The checkpoint that an entry names, if it is a checkpoint's mark.
    pub(in crate::journal) fn named_checkpoint(&self, entry: &DirectoryEntry) -> Option<u64> {
        let start = self.header.header_len as usize + entry.body_offset as usize;
        let is_mark = entry.kind == EntryKind::CheckpointMark && entry.body_len == 8;
        is_mark.then(|| get_u64(&self.bytes, start))
    }

    /// Whether an entry is what was written, by its own checksum.
    pub(in crate::journal) fn entry_is_whole(&self, entry: &DirectoryEntry) -> bool {
        let start = self.header.header_len as usize + entry.body_offset as usize;
        let body = &self.bytes[start..start + entry.body_len as usize];
        if entry.kind != EntryKind::Records {
            return crc32c::crc32c(body) == entry.body_crc;
        }
        let next = Offset(entry.base_offset.0 + i64::from(entry.record_count));
        batch::check(body, entry.base_offset, entry.leader_epoch) == Ok(next)
    }
}

/// What the first block of a segment says about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::journal) struct Identity {
    /// Nonce of the segment's present use.
    pub incarnation: u64,
    /// The mark, if it is whole.
    pub mark: Option<SegmentMark>,
}

impl Identity {
    /// Whether the file is known to have been all zeros before its present use.
    pub(in crate::journal) fn is_fresh(&self) -> bool {
        self.mark.is_some_and(|mark| mark.fresh)
    }
}

struct Chunk {
    segment: u64,
    offset: u64,
    bytes: SharedBuffer,
    unreadable: Vec<u64>,
}

/// Reads the segments of one journal, one after the other.
pub(in crate::journal) struct Scanner {
    pub(in crate::journal) env: Env,
    pub(in crate::journal) config: JournalConfig,
    file: Option<(u64, File)>,
    chunk: Option<Chunk>,
}

impl Scanner {
    pub(in crate::journal) fn new(env: Env, config: JournalConfig) -> Self {
        Self {
            env,
            config,
            file: None,
            chunk: None,
        }
    }

    pub(in crate::journal) fn path(&self, segment: u64) -> PathBuf {
        segment_path(&self.config.dir, segment)
    }

    pub(in crate::journal) fn position(&self, segment: u64, offset: u64) -> Position {
        Position(segment * self.config.segment_bytes + offset)
    }

    /// Forgets what was read: the file has been changed.
    pub(in crate::journal) fn forget(&mut self) {
        self.chunk = None;
    }

    /// `len` bytes of a segment; what cannot be read, or lies past the end of the file, is filled
    /// with bytes that are no header.
    pub(in crate::journal) async fn bytes(
        &mut self,
        segment: u64,
        offset: u64,
        len: usize,
    ) -> Result<SharedBuffer, JournalError> {
        assert!(offset.is_multiple_of(ALIGN) && len.is_multiple_of(BLOCK_ALIGN));
        assert!(offset + len as u64 <= self.config.segment_bytes);
        if !self.covers(segment, offset, len) {
            self.fill(segment, offset, len).await?;
        }
        let chunk = self.chunk.as_ref().expect("filled just now");
        let first = usize::try_from(offset - chunk.offset).expect("within the chunk");
        Ok(chunk.bytes.slice(first..first + len))
    }

    fn covers(&self, segment: u64, offset: u64, len: usize) -> bool {
        self.chunk.as_ref().is_some_and(|chunk| {
            let end = chunk.offset + chunk.bytes.len() as u64;
            chunk.segment == segment && chunk.offset <= offset && offset + len as u64 <= end
        })
    }

    async fn fill(&mut self, segment: u64, offset: u64, len: usize) -> Result<(), JournalError> {
        let open = self.file.as_ref().filter(|(number, _)| *number == segment);
        let file = match open {
            Some((_, file)) => file.clone(),
            None => {
                let path = self.path(segment);
                let file = self.env.disk().open(&path, OpenMode::Read).await?;
                self.file = Some((segment, file.clone()));
                file
            }
        };
        let rest = usize::try_from(self.config.segment_bytes - offset).unwrap_or(usize::MAX);
        let len = len.max(SCAN_BYTES.min(rest));
        let (bytes, unreadable) = read_tolerant(&file, offset, len).await;
        self.chunk = Some(Chunk {
            segment,
            offset,
            bytes,
            unreadable,
        });
        Ok(())
    }

    /// Whether this sector of the last chunk could not be read.
    fn is_unreadable(&self, segment: u64, offset: u64) -> bool {
        let chunk = self.chunk.as_ref().filter(|chunk| chunk.segment == segment);
        chunk.is_some_and(|chunk| chunk.unreadable.contains(&offset))
    }

    /// The whole header that starts here and belongs here; `incarnation` `None` takes any.
    pub(in crate::journal) async fn header(
        &mut self,
        segment: u64,
        offset: u64,
        incarnation: Option<u64>,
    ) -> Result<Option<Header>, JournalError> {
        let position = self.position(segment, offset);
        let Some(header) = self.any_header(segment, offset).await? else {
            return Ok(None);
        };
        let rest = self.config.segment_bytes - offset;
        let ours = header.shard == self.config.shard && header.block_len() as u64 <= rest;
        if self.env.planted(Bug::StaleBlockAccepted) {
            return Ok(ours.then_some(header));
        }
        let here = header.position == position;
        let same_use = incarnation.is_none_or(|nonce| nonce == header.incarnation);
        Ok((ours && here && same_use).then_some(header))
    }

    /// Any whole header that starts here, whosever it is.
    async fn any_header(
        &mut self,
        segment: u64,
        offset: u64,
    ) -> Result<Option<Header>, JournalError> {
        let first = self.bytes(segment, offset, BLOCK_ALIGN).await?;
        let Ok(header_len) = format::header_len_hint(&first) else {
            return Ok(None);
        };
        let len = header_len.next_multiple_of(BLOCK_ALIGN);
        if offset + len as u64 > self.config.segment_bytes {
            return Ok(None);
        }
        let bytes = self.bytes(segment, offset, len).await?;
        match format::decode_header(&bytes) {
            Ok(header) => Ok(Some(header)),
            Err(HeaderError::Version(version)) => Err(JournalError::Version {
                file: self.path(segment),
                version,
                what: format!("a block at offset {offset}"),
            }),
            Err(HeaderError::NotABlock | HeaderError::Length | HeaderError::Checksum) => Ok(None),
        }
    }

    /// The whole block of a header found here.
    pub(in crate::journal) async fn block(
        &mut self,
        segment: u64,
        offset: u64,
        header: Header,
    ) -> Result<Scanned, JournalError> {
        let bytes = self.bytes(segment, offset, header.block_len()).await?;
        let payload_valid =
            format::payload_is_valid(&header, &bytes) || self.env.planted(Bug::PayloadNotChecked);
        Ok(Scanned {
            header,
            segment,
            bytes,
            payload_valid,
        })
    }

    /// Whether this sector shows that its segment's present use wrote here, or cannot be read.
    ///
    /// In a fresh file everything that is not zero does. In a recycled one only the nonce, which no
    /// stale block has and no client knows; `strict` false adds a header that claims this very
    /// place, so that rot of the nonce itself is still seen where a block is expected.
    pub(in crate::journal) async fn is_trace(
        &mut self,
        segment: u64,
        offset: u64,
        identity: Option<&Identity>,
        strict: bool,
    ) -> Result<bool, JournalError> {
        let sector = self.bytes(segment, offset, BLOCK_ALIGN).await?;
        if self.is_unreadable(segment, offset) {
            return Ok(true);
        }
        if identity.is_some_and(Identity::is_fresh) {
            return Ok(sector[..] != [0; BLOCK_ALIGN]);
        }
        let nonce = identity.is_some_and(|identity| get_u64(&sector, 16) == identity.incarnation);
        let position = self.position(segment, offset).0;
        let place = get_u64(&sector, 0) == format::MAGIC && get_u64(&sector, 40) == position;
        Ok(nonce || (!strict && place))
    }

    /// Whose a segment is: by its mark, or by the block after it, which always starts at the same
    /// place, so that no record can pass for it.
    ///
    /// # Errors
    /// If the file belongs to another shard, or holds another segment that it cannot hold by
    /// recycling: one that is newer, or that is still there under its own name (`present`).
    pub(in crate::journal) async fn identity(
        &mut self,
        segment: u64,
        present: &dyn Fn(u64) -> bool,
    ) -> Result<Option<Identity>, JournalError> {
        let any = self.any_header(segment, 0).await?;
        if let Some(header) = any {
            self.check_owner(segment, &header, present)?;
            if let Some(header) = self.header(segment, 0, None).await? {
                let block = self.block(segment, 0, header).await?;
                let mark = mark_of(&block);
                let incarnation = header.incarnation;
                return Ok(Some(Identity { incarnation, mark }));
            }
        }
        let second = self.header(segment, ALIGN, None).await?;
        Ok(second.map(|header| Identity {
            incarnation: header.incarnation,
            mark: None,
        }))
    }

    fn check_owner(
        &self,
        segment: u64,
        header: &Header,
        present: &dyn Fn(u64) -> bool,
    ) -> Result<(), JournalError> {
        let path = self.path(segment);
        if header.shard != self.config.shard {
            let owner = header.shard;
            return Err(JournalError::foreign(
                &path,
                format!("it is a segment of shard {owner}"),
            ));
        }
        let held = header.position.0 / self.config.segment_bytes;
        if held != segment && (held > segment || present(held)) {
            let what = format!("it holds segment {held:08x}");
            return Err(JournalError::foreign(&path, what));
        }
        Ok(())
    }
}

/// The mark in the first block of a segment, if it is whole.
pub(in crate::journal) fn mark_of(block: &Scanned) -> Option<SegmentMark> {
    if !block.payload_valid || block.header.entry_count != 1 {
        return None;
    }
    let entry = block.entry(0).ok()?;
    let start = block.header.header_len as usize + entry.body_offset as usize;
    let body = &block.bytes[start..start + entry.body_len as usize];
    let is_mark = entry.kind == EntryKind::SegmentMark;
    is_mark.then(|| SegmentMark::decode(body)).flatten()
}
