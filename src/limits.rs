//! Every limit of the broker, in one place; `penstock config` prints them.

/// Alignment of every disk transfer, in bytes. The device may report 512 on 4,096-byte sectors, so
/// it is never asked.
pub const BLOCK_ALIGN: usize = 4096;
/// Largest journal block, in bytes, header and padding included.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;
/// Journal blocks in flight at once per shard. Measured: storage.md, "Group commit".
pub const COMMIT_DEPTH: usize = 4;
/// Largest Kafka frame, in bytes, without its length prefix.
pub const FRAME_BYTES_MAX: usize = 16 << 20;
/// Default largest record batch, in bytes (`max.message.bytes`): 1 MiB and the batch header, as Kafka.
pub const MESSAGE_BYTES_MAX_DEFAULT: usize = (1 << 20) + 12;

/// Largest journal block whatever its content, in bytes: one whole frame of record batches and what
/// the block adds (header, directory, padding).
pub const BLOCK_BYTES_HARD_MAX: usize = FRAME_BYTES_MAX + (64 << 10);
/// Most entries in one journal block.
pub const BLOCK_ENTRIES_MAX: usize = 8192;
/// Default length of a journal segment, in bytes; fixed for a store when it is made.
pub const SEGMENT_BYTES: u64 = 64 << 20;
/// Spare segments kept ready; more are removed.
pub const SPARE_SEGMENTS_MAX: usize = 2;
/// An idle journal seals its last block after this many milliseconds.
pub const IDLE_SEAL_MS: u64 = 50;
/// Recent blocks kept in memory per journal, in bytes.
pub const JOURNAL_CACHE_BYTES_MAX: usize = 64 << 20;
/// Bytes staged but not yet packed into a block, per journal, before producers wait.
pub const STAGED_BYTES_MAX: usize = 32 << 20;
/// Largest checkpoint file, in bytes.
pub const CHECKPOINT_BYTES_MAX: usize = 1 << 30;
/// Sealed segments kept open for reading, per journal.
pub const READ_FILES_MAX: usize = 64;
/// Neighbouring extents are read together up to this many bytes.
pub const READ_MERGE_BYTES_MAX: usize = 1 << 20;
/// Recovery reads ahead this many bytes at a time.
pub const SCAN_BYTES: usize = 1 << 20;
/// Recovery reports kept in a shard's folder; older ones are removed.
pub const RECOVERY_REPORTS_MAX: usize = 16;
/// Damaged places listed one by one in a report; the rest are only counted.
pub const DAMAGE_LISTED_MAX: usize = 1000;

const _: () = assert!(SEGMENT_BYTES >= 2 * BLOCK_BYTES_HARD_MAX as u64);
const _: () = assert!(BLOCK_BYTES_HARD_MAX.is_multiple_of(BLOCK_ALIGN));
const _: () = assert!(BLOCK_BYTES_MAX <= BLOCK_BYTES_HARD_MAX);
