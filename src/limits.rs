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

