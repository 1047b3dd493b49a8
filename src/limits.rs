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
/// Default largest record batch, in bytes (`max.message.bytes`): 1 MiB and the batch header, as
/// Kafka.
pub const MESSAGE_BYTES_MAX_DEFAULT: usize = (1 << 20) + 12;

/// Bytes of zeros written at once while a segment is prepared; foreground work goes in between.
pub const ZERO_SLICE_BYTES: usize = 256 << 10;
/// How often a short write is continued before it counts as failed.
pub const SHORT_WRITES_MAX: usize = 64;
/// Milliseconds between the heartbeats of an executor. Four wake-ups a second do not show.
pub const HEARTBEAT_MS: u64 = 250;
/// Milliseconds between the watchdog's looks; longer than two heartbeats may be late together.
pub const WATCHDOG_CHECK_MS: u64 = 500;
/// Entries of each ring. Deeper ones are charged to the locked memory of the user.
pub const RING_DEPTH: usize = 128;
/// Buffer memory of each executor that is registered with its rings, in bytes.
pub const IO_MEMORY_BYTES: usize = 2 << 20;
/// Microseconds an executor polls before it sleeps. Longer starves the kernel's flush workers,
/// which run on the same CPU.
pub const SPIN_BEFORE_PARK_US: u64 = 20;
/// Threads for blocking calls, per executor. One alone would let a slow `unlink` delay an `open`.
pub const BLOCKING_THREADS: usize = 2;
/// Milliseconds for which the start of an executor is tried again when the kernel has no memory to
/// lock: rings of a process that just ended stay charged for a moment.
pub const EXECUTOR_RETRY_MS_MAX: u64 = 3_000;
/// Milliseconds between such tries.
pub const EXECUTOR_RETRY_PAUSE_MS: u64 = 100;
/// Bytes of memory that glommio insists may be locked, for root too.
pub const LOCKED_MEMORY_BYTES_MIN: u64 = 512 << 10;
