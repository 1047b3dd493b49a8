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

/// Most elements of one array in a request. Kafka allows 1,000,000.
pub const ARRAY_ELEMENTS_MAX: usize = 100_000;
/// Most tagged fields of one structure. Kafka allows 10,000.
pub const TAGGED_FIELDS_MAX: usize = 1_000;
/// Longest body, in bytes, of a request to an API that is not served whose topics or groups are
/// mirrored in the refusal: the generated decoder takes up to 64 times that on the heap, and the
/// rule for decoding n bytes is 2n + 64 KiB.
pub const REFUSAL_BODY_BYTES_MAX: usize = 1_024;
/// Most bytes one batch may decompress to.
pub const DECOMPRESSED_BYTES_MAX: usize = 16 << 20;
/// Most bytes one compressed byte may become, once [`DECOMPRESSED_BYTES_FREE`] is exceeded.
pub const DECOMPRESSION_RATIO_MAX: usize = 256;
/// Bytes a batch may decompress to whatever its ratio: honest batches of equal records compress a
/// thousandfold.
pub const DECOMPRESSED_BYTES_FREE: usize = 1 << 20;
/// Largest zstd window accepted, as a power of two: a frame that asks for more is refused before
/// the decoder allocates it.
pub const ZSTD_WINDOW_LOG_MAX: u32 = 24;
