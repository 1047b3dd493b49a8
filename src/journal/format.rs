//! The block format: the only file that knows how a journal looks in bytes. Pure, no I/O.
//!
//! A block is one group commit. It is aligned to 4 KiB and never spans two segments. All integers
//! are little-endian.
//!
//! ```text
//!            0        8      10     12           16             24
//!            +--------+------+------+------------+--------------+
//!          0 | magic  | ver  |shard | entry count| incarnation  |
//!            +--------+------+------+------------+--------------+
//!         24 | term            | sequence        | position     |  (three u64)
//!            +-----------------+-----------------+--------------+
//!         48 | durable_seq u64 | header_len u32  | payload_len  |
//!            +-----------------+--------+--------+--------------+
//!         64 | window_bytes u32| prev header CRC | payload CRC  |  (three u32)
//!            +-----------------+-----------------+--------------+
//!         76 | header CRC u32: over bytes 0..76 and 80..header_len
//!            +--------------------------------------------------+
//!         80 | directory: entry count × 56 bytes                |
//!            |  kind u8, 3 zero │ partition i32 │ topic 16 bytes |
//!            |  base offset i64 │ record count u32 │ epoch i32  |
//!            |  body offset u32 │ body length u32 │ body CRC u32 │ 4 zero |
//!            +--------------------------------------------------+
//! header_len | bodies: payload_len bytes, under the payload CRC |
//!            +--------------------------------------------------+
//!            | zeros up to a multiple of 4,096                  |
//!            +--------------------------------------------------+
//! ```
//!
//! * The **header CRC covers the directory**, so rot in a body still tells exactly which partition
//!   is concerned. It covers the payload CRC too, so it is a digest of the whole block, and
//!   the next block carries it: the **chain**.
//! * `incarnation` is a random nonce of the segment's present use, never shown to a client: neither
//!   a stale block of a recycled segment nor a record that imitates a block can pass for one of
//!   ours.
//! * `durable_seq` is the highest block known flushed when this one was packed. Recovery asks it
//!   whether a damaged block had been acknowledged.
//! * `window_bytes` bounds what the writer of this block ever had in flight: recovery needs it to
//!   tell a torn tail from rot.
//! * Record bodies carry no CRC of their own in the directory: each batch has one, and the
//!   directory fixes the few header bytes that the batch CRC leaves out (base offset, epoch,
//!   length).
//!
//! The places of magic, version, `header_len` and header CRC are the same in every version, so that
//! a newer block is told from a damaged one and refused by its version's number.

pub(super) mod batch;

use crate::base::ids::{
    BlockSequence, Offset, PartitionIndex, Position, ShardId, Term, TopicId, TopicPartition,
};
use crate::limits::{BLOCK_ALIGN, BLOCK_BYTES_HARD_MAX, BLOCK_ENTRIES_MAX};

/// First bytes of every block.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PENSTOCK");
/// The block format that this build writes, and the newest that it reads.
pub const FORMAT_VERSION: u16 = 1;
/// Bytes of the fixed part of the header.
pub const HEADER_BYTES: usize = 80;
/// Bytes of one directory record.
pub const ENTRY_BYTES: usize = 56;

const AT_HEADER_LEN: usize = 56;
const AT_HEADER_CRC: usize = 76;

const _: () = assert!(HEADER_BYTES + BLOCK_ENTRIES_MAX * ENTRY_BYTES < BLOCK_BYTES_HARD_MAX);
const _: () = assert!(AT_HEADER_CRC + 4 == HEADER_BYTES);

/// What an entry is. The number is on disk and never changes meaning.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum EntryKind {
    /// Record batches of one partition.
    Records = 1,
    /// Producer ids handed out, or producer state.
    Producers = 2,
    /// Offsets committed by a consumer group.
    OffsetCommit = 3,
    /// A topic made or changed.
    Topic = 4,
    /// A consumer group changed.
    Group = 5,
    /// Queue events: leases, acknowledgements, dead letters.
    Queue = 6,
    /// The journal's own: a checkpoint file is complete and durable.
    CheckpointMark = 7,
    /// The journal's own: first entry of each segment.
    SegmentMark = 8,
    /// The journal's own: vouches for its predecessor.
    Seal = 9,
    /// A topic and all its records are gone.
    TopicDropped = 10,
}

impl EntryKind {
    /// The kind with this number on disk, if this build knows it.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Records,
            2 => Self::Producers,
            3 => Self::OffsetCommit,
            4 => Self::Topic,
            5 => Self::Group,
            6 => Self::Queue,
            7 => Self::CheckpointMark,
            8 => Self::SegmentMark,
            9 => Self::Seal,
            10 => Self::TopicDropped,
            _ => return None,
        })
    }

    /// Whether the journal writes and reads this kind for itself; the state machine never sees it.
    #[must_use]
    pub const fn is_internal(self) -> bool {
        matches!(self, Self::CheckpointMark | Self::SegmentMark | Self::Seal)
    }
}

/// The fixed part of a block's header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Header {
    /// The shard whose journal this is.
    pub shard: ShardId,
    /// Nonce of the segment's present use.
    pub incarnation: u64,
    /// Leadership term.
    pub term: Term,
    /// The block's number in its journal, from 1.
    pub sequence: BlockSequence,
    /// Where the block starts.
    pub position: Position,
    /// Highest block known flushed when this one was packed.
    pub durable: BlockSequence,
    /// Most bytes its writer had in flight.
    pub window_bytes: u32,
    /// Header CRC of the previous block; 0 for the first of a journal.
    pub previous_digest: u32,
    /// Directory records.
    pub entry_count: u32,
    /// Bytes of fixed header and directory.
    pub header_len: u32,
    /// Bytes of all bodies.
    pub payload_len: u32,
    /// CRC32C of all bodies.
    pub payload_crc: u32,
    /// CRC32C of the header: the digest of the block.
    pub digest: u32,
}

impl Header {
    /// Bytes of the block on disk, padding included.
    #[must_use]
    pub fn block_len(&self) -> usize {
        block_len(self.header_len as usize, self.payload_len as usize)
    }
}

/// Bytes on disk of a block with these parts.
#[must_use]
pub const fn block_len(header_len: usize, payload_len: usize) -> usize {
    (header_len + payload_len).next_multiple_of(BLOCK_ALIGN)
}

/// One record of a block's directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DirectoryEntry {
    /// What the entry is.
    pub kind: EntryKind,
    /// The partition, for records; zero otherwise.
    pub partition: TopicPartition,
    /// Offset of the first record, for records; zero otherwise.
    pub base_offset: Offset,
    /// Offsets that the entry spans, for records; zero otherwise.
    pub record_count: u32,
    /// Leader epoch stamped on every batch, for records; zero otherwise.
    pub leader_epoch: i32,
    /// Where the body starts, from the end of the directory.
    pub body_offset: u32,
    /// Bytes of the body.
    pub body_len: u32,
    /// CRC32C of the body; zero for records, whose batches have their own.
    pub body_crc: u32,
}

/// Why bytes are not a block header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HeaderError {
    /// The first bytes are not a block's.
    NotABlock,
    /// A length in it cannot be.
    Length,
    /// The header CRC does not match.
    Checksum,
    /// The header is whole, but of a version that this build does not know.
    Version(u16),
}

/// How many bytes the header that seems to start here has, if one seems to.
///
/// Unverified: it only says how much must be read before [`decode_header`] can judge.
pub fn header_len_hint(bytes: &[u8]) -> Result<usize, HeaderError> {
    if bytes.len() < HEADER_BYTES {
        return Err(HeaderError::Length);
    }
    if get_u64(bytes, 0) != MAGIC {
        return Err(HeaderError::NotABlock);
    }
    let header_len = get_u32(bytes, AT_HEADER_LEN) as usize;
    let fits = header_len <= HEADER_BYTES + BLOCK_ENTRIES_MAX * ENTRY_BYTES;
    if header_len < HEADER_BYTES || !fits {
        return Err(HeaderError::Length);
    }
    Ok(header_len)
}

/// Decodes and verifies a header; `bytes` starts at the block and holds at least the header.
pub fn decode_header(bytes: &[u8]) -> Result<Header, HeaderError> {
    let header_len = header_len_hint(bytes)?;
    if bytes.len() < header_len {
        return Err(HeaderError::Length);
    }
    let digest = get_u32(bytes, AT_HEADER_CRC);
    if header_crc(&bytes[..header_len]) != digest {
        return Err(HeaderError::Checksum);
    }
    let version = get_u16(bytes, 8);
    if version != FORMAT_VERSION {
        return Err(HeaderError::Version(version));
    }
    let header = Header {
        shard: ShardId(get_u16(bytes, 10)),
        entry_count: get_u32(bytes, 12),
        incarnation: get_u64(bytes, 16),
        term: Term(get_u64(bytes, 24)),
        sequence: BlockSequence(get_u64(bytes, 32)),
        position: Position(get_u64(bytes, 40)),
        durable: BlockSequence(get_u64(bytes, 48)),
        header_len: get_u32(bytes, AT_HEADER_LEN),
        payload_len: get_u32(bytes, 60),
        window_bytes: get_u32(bytes, 64),
        previous_digest: get_u32(bytes, 68),
        payload_crc: get_u32(bytes, 72),
        digest,
    };
    let expected = HEADER_BYTES + header.entry_count as usize * ENTRY_BYTES;
    if header_len != expected || header.block_len() > BLOCK_BYTES_HARD_MAX {
        return Err(HeaderError::Length);
    }
    Ok(header)
}

/// Writes the header over `bytes[..header_len]`, whose directory is already in place, and returns
/// it with its digest.
///
/// # Panics
/// If lengths and counts contradict each other, or the block would vouch for itself: bugs.
pub fn encode_header(mut header: Header, bytes: &mut [u8]) -> Header {
    let header_len = header.header_len as usize;
    assert_eq!(
        header_len,
        HEADER_BYTES + header.entry_count as usize * ENTRY_BYTES
    );
    assert!(
        header.durable < header.sequence,
        "a block cannot vouch for itself"
    );
    assert!(
        header.block_len() <= BLOCK_BYTES_HARD_MAX,
        "a block above the hard limit"
    );
    assert!(
        header.position.0.is_multiple_of(BLOCK_ALIGN as u64),
        "blocks are aligned"
    );
    put(bytes, 0, &MAGIC.to_le_bytes());
    put(bytes, 8, &FORMAT_VERSION.to_le_bytes());
    put(bytes, 10, &header.shard.0.to_le_bytes());
    put(bytes, 12, &header.entry_count.to_le_bytes());
    put(bytes, 16, &header.incarnation.to_le_bytes());
    put(bytes, 24, &header.term.0.to_le_bytes());
    put(bytes, 32, &header.sequence.0.to_le_bytes());
    put(bytes, 40, &header.position.0.to_le_bytes());
    put(bytes, 48, &header.durable.0.to_le_bytes());
    put(bytes, AT_HEADER_LEN, &header.header_len.to_le_bytes());
    put(bytes, 60, &header.payload_len.to_le_bytes());
    put(bytes, 64, &header.window_bytes.to_le_bytes());
    put(bytes, 68, &header.previous_digest.to_le_bytes());
    put(bytes, 72, &header.payload_crc.to_le_bytes());
    header.digest = header_crc(&bytes[..header_len]);
    put(bytes, AT_HEADER_CRC, &header.digest.to_le_bytes());
    header
}

/// Writes directory record `index` of the block that starts at `bytes`.
pub fn encode_entry(entry: &DirectoryEntry, index: usize, bytes: &mut [u8]) {
    assert!(
        index < BLOCK_ENTRIES_MAX,
        "more entries than a block may have"
    );
    assert!(entry.kind == EntryKind::Records || entry.record_count == 0);
    let at = HEADER_BYTES + index * ENTRY_BYTES;
    put(bytes, at, &[entry.kind as u8, 0, 0, 0]);
    put(bytes, at + 4, &entry.partition.partition.0.to_le_bytes());
    put(bytes, at + 8, &entry.partition.topic.0);
    put(bytes, at + 24, &entry.base_offset.0.to_le_bytes());
    put(bytes, at + 32, &entry.record_count.to_le_bytes());
    put(bytes, at + 36, &entry.leader_epoch.to_le_bytes());
    put(bytes, at + 40, &entry.body_offset.to_le_bytes());
    put(bytes, at + 44, &entry.body_len.to_le_bytes());
    put(bytes, at + 48, &entry.body_crc.to_le_bytes());
    put(bytes, at + 52, &[0; 4]);
}

/// Why a directory record of a whole header cannot be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EntryError {
    /// A kind that this build does not know.
    UnknownKind(u8),
    /// The body would leave the payload.
    Bounds,
}

/// Reads directory record `index` of a block whose header was verified.
pub fn decode_entry(
    header: &Header,
    index: usize,
    bytes: &[u8],
) -> Result<DirectoryEntry, EntryError> {
    assert!(
        index < header.entry_count as usize,
        "a directory record past the directory"
    );
    let at = HEADER_BYTES + index * ENTRY_BYTES;
    let kind = EntryKind::from_number(bytes[at]).ok_or(EntryError::UnknownKind(bytes[at]))?;
    let mut topic = [0u8; 16];
    topic.copy_from_slice(&bytes[at + 8..at + 24]);
    let entry = DirectoryEntry {
        kind,
        partition: TopicPartition {
            topic: TopicId(topic),
            partition: PartitionIndex(get_i32(bytes, at + 4)),
        },
        base_offset: Offset(get_i64(bytes, at + 24)),
        record_count: get_u32(bytes, at + 32),
        leader_epoch: get_i32(bytes, at + 36),
        body_offset: get_u32(bytes, at + 40),
        body_len: get_u32(bytes, at + 44),
        body_crc: get_u32(bytes, at + 48),
    };
    let end = u64::from(entry.body_offset) + u64::from(entry.body_len);
    if end > u64::from(header.payload_len) {
        return Err(EntryError::Bounds);
    }
    Ok(entry)
}

/// Whether the bodies of the block that starts at `bytes` are what was written.
#[must_use]
pub fn payload_is_valid(header: &Header, bytes: &[u8]) -> bool {
    assert!(bytes.len() >= header.block_len(), "a whole block is needed");
    let start = header.header_len as usize;
    let end = start + header.payload_len as usize;
    crc32c::crc32c(&bytes[start..end]) == header.payload_crc
}

/// The first entry of each segment: whose it is, and what came before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SegmentMark {
    /// The segment's number.
    pub segment: u64,
    /// Random id of the journal: tells a file of another store.
    pub journal: u64,
    /// Incarnation of the previous segment; 0 for the first.
    pub previous_incarnation: u64,
    /// Length of every segment of this journal, in bytes.
    pub segment_bytes: u64,
    /// Whether the file was all zeros when its present use began.
    pub fresh: bool,
}

/// Bytes of a [`SegmentMark`].
pub const SEGMENT_MARK_BYTES: usize = 40;

impl SegmentMark {
    /// As stored.
    #[must_use]
    pub fn encode(&self) -> [u8; SEGMENT_MARK_BYTES] {
        let mut bytes = [0u8; SEGMENT_MARK_BYTES];
        put(&mut bytes, 0, &self.segment.to_le_bytes());
        put(&mut bytes, 8, &self.journal.to_le_bytes());
        put(&mut bytes, 16, &self.previous_incarnation.to_le_bytes());
        put(&mut bytes, 24, &self.segment_bytes.to_le_bytes());
        bytes[32] = u8::from(self.fresh);
        bytes
    }

    /// From its stored form.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != SEGMENT_MARK_BYTES {
            return None;
        }
        Some(Self {
            segment: get_u64(bytes, 0),
            journal: get_u64(bytes, 8),
            previous_incarnation: get_u64(bytes, 16),
            segment_bytes: get_u64(bytes, 24),
            fresh: bytes[32] == 1,
        })
    }
}

/// Why a seal was written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum SealReason {
    /// Nothing was committed for a while.
    Idle = 1,
    /// The journal was closed.
    Close = 2,
    /// Recovery cut the tail; the seal names the place.
    Cut = 3,
    /// The journal was opened with other limits in flight than its last block says.
    Open = 4,
}

/// Bytes of a seal's body.
pub const SEAL_BYTES: usize = 24;

/// A seal's body: the reason, and the place and number of the block that was cut (zeros otherwise).
#[must_use]
pub fn encode_seal(reason: SealReason, cut: Option<(Position, BlockSequence)>) -> [u8; SEAL_BYTES] {
    let mut bytes = [0u8; SEAL_BYTES];
    bytes[0] = reason as u8;
    if let Some((position, sequence)) = cut {
        put(&mut bytes, 8, &position.0.to_le_bytes());
        put(&mut bytes, 16, &sequence.0.to_le_bytes());
    }
    bytes
}

fn header_crc(header: &[u8]) -> u32 {
    let fixed = crc32c::crc32c(&header[..AT_HEADER_CRC]);
    crc32c::crc32c_append(fixed, &header[HEADER_BYTES..])
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

pub(super) fn get_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0u8; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

pub(super) fn get_u64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0u8; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn get_i32(bytes: &[u8], at: usize) -> i32 {
    get_u32(bytes, at).cast_signed()
}

fn get_i64(bytes: &[u8], at: usize) -> i64 {
    get_u64(bytes, at).cast_signed()
}
