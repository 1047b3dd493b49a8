//! Every limit of the broker, in one place; `penstock config` prints them.
//!
//! A limit is written as an ordinary documented constant inside `limits!`, one block a room, so
//! that the list which is printed cannot forget one (a test compares the two). What an operator may
//! change is a key in `config`, whose default is then taken from here.

use std::time::Duration;

/// One limit as `penstock config` shows it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limit {
    /// The constant's name; its unit is in it.
    pub name: &'static str,
    /// Its value in that unit.
    pub value: u128,
    /// Its documentation.
    pub meaning: String,
}

/// A constant that can be listed: an integer, or a duration (listed in nanoseconds).
trait Listed {
    fn listed(self) -> u128;
}

macro_rules! listed {
    ($($integer:ty),*) => {
        $(impl Listed for $integer {
            fn listed(self) -> u128 {
                u128::try_from(self).expect("a limit is not negative")
            }
        })*
    };
}
listed!(u8, u16, u32, u64, usize, i16, i32, i64);

impl Listed for Duration {
    fn listed(self) -> u128 {
        self.as_nanos()
    }
}

/// Declares the constants and `all()`, the list of them.
macro_rules! limits {
    ($($(#[doc = $doc:literal])+ pub const $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[doc = $doc])+ pub const $name: $type = $value;)*

        /// Every limit, in the order of this file.
        #[must_use]
        pub fn all() -> Vec<Limit> {
            vec![$(Limit {
                name: stringify!($name),
                value: Listed::listed($name),
                meaning: concat!($($doc),+).trim().to_owned(),
            }),*]
        }
    };
}

limits! {
    // Disk and journal.

    /// Alignment of every disk transfer, in bytes. The device may report 512 on 4,096-byte sectors,
    /// so it is never asked.
    pub const BLOCK_ALIGN: usize = 4096;
    /// Largest journal block, in bytes, header and padding included.
    pub const BLOCK_BYTES_MAX: usize = 1 << 20;
    /// Journal blocks in flight at once per shard. Measured: storage.md, "Group commit".
    pub const COMMIT_DEPTH: usize = 4;
    /// Default length of a journal segment file, in bytes.
    pub const SEGMENT_BYTES_DEFAULT: u64 = 64 << 20;
    /// Least length of a journal segment file, in bytes: it holds the largest block.
    pub const SEGMENT_BYTES_MIN: u64 = 20 << 20;
    /// Largest journal block whatever its content, in bytes: one whole frame of record batches and
    /// what the block adds (header, directory, padding).
    pub const BLOCK_BYTES_HARD_MAX: usize = FRAME_BYTES_MAX + (64 << 10);
    /// Most entries in one journal block.
    pub const BLOCK_ENTRIES_MAX: usize = 8192;
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
    /// Reads of one partition, and partitions of one fetch, that are under way at once.
    pub const READS_AT_ONCE_MAX: usize = 4;
    /// Bytes between two extents that are read along rather than in two reads.
    pub const READ_GAP_BYTES_MAX: usize = 64 << 10;
    /// Pause before a segment is tried again on a full disk, in milliseconds.
    pub const SPACE_RETRY_MS: u64 = 1000;
    /// Recovery reads ahead this many bytes at a time.
    pub const SCAN_BYTES: usize = 1 << 20;
    /// Blocks whose times are remembered per journal, for the requests that waited for them.
    pub const COMMIT_TIMES_KEPT: usize = 64;
    /// Recovery reports kept in a shard's folder; older ones are removed.
    pub const RECOVERY_REPORTS_MAX: usize = 16;
    /// Damaged places listed one by one in a report; the rest are only counted.
    pub const DAMAGE_LISTED_MAX: usize = 1000;

    // Executors and the disk door.

    /// Blocks from this size on are worth more than a second flush: no zeros are written ahead of
    /// them (`journal/commit/ahead.rs` has the measurements).
    pub const LARGE_BLOCK_BYTES_MIN: u64 = 256 << 10;
    /// Small blocks in a row from which on zeros are written ahead of them.
    pub const ZERO_AHEAD_BLOCKS_MIN: u32 = 8;
    /// Written places ahead of the tail below which more zeros are written, for small blocks.
    pub const ZERO_AHEAD_BYTES_LOW: u64 = 2 << 20;
    /// Written places ahead of the tail at which that ends.
    pub const ZERO_AHEAD_BYTES_MAX: u64 = 16 << 20;
    /// Bytes of zeros written at once while a segment is prepared; foreground work goes in between.
    pub const ZERO_SLICE_BYTES: usize = 256 << 10;
    /// Bytes of memory that glommio insists may be locked, for root too.
    pub const LOCKED_MEMORY_BYTES_MIN: u64 = 512 << 10;
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
    /// Threads for blocking calls, per executor. One alone would let a slow `unlink` delay an
    /// `open`.
    pub const BLOCKING_THREADS: usize = 2;
    /// Milliseconds for which the start of an executor is tried again when the kernel has no memory
    /// to lock: rings of a process that just ended stay charged for a moment.
    pub const EXECUTOR_RETRY_MS_MAX: u64 = 3_000;
    /// Milliseconds between such tries.
    pub const EXECUTOR_RETRY_PAUSE_MS: u64 = 100;
    /// Milliseconds for which a taken address is tried again: the listener of a process that was
    /// just killed outlives it for a moment.
    pub const BIND_RETRY_MS_MAX: u64 = 500;
    /// Milliseconds between such tries.
    pub const BIND_RETRY_PAUSE_MS: u64 = 10;

    // Wire.

    /// Largest Kafka frame, in bytes, without its length prefix.
    pub const FRAME_BYTES_MAX: usize = 16 << 20;
    /// Default largest record batch, in bytes (`max.message.bytes`): 1 MiB and the batch header, as
    /// Kafka.
    pub const MESSAGE_BYTES_MAX_DEFAULT: usize = (1 << 20) + 12;
    /// Room a frame needs beside its one largest batch (header, topic name, partition), in bytes.
    pub const FRAME_OVERHEAD_BYTES_MAX: usize = 64 << 10;

    /// Most elements of one array in a request. Kafka allows 1,000,000.
    pub const ARRAY_ELEMENTS_MAX: usize = 100_000;
    /// Most tagged fields of one structure. Kafka allows 10,000.
    pub const TAGGED_FIELDS_MAX: usize = 1_000;
    /// Longest body, in bytes, of a request to an API that is not served whose topics or groups are
    /// mirrored in the refusal: the generated decoder takes up to 64 times that on the heap, and
    /// the rule for decoding n bytes is 2n + 64 KiB.
    pub const REFUSAL_BODY_BYTES_MAX: usize = 1_024;
    /// Most bytes one batch may decompress to.
    pub const DECOMPRESSED_BYTES_MAX: usize = 16 << 20;
    /// Most bytes one compressed byte may become, once `DECOMPRESSED_BYTES_FREE` is exceeded.
    pub const DECOMPRESSION_RATIO_MAX: usize = 256;
    /// Bytes a batch may decompress to whatever its ratio: honest batches of equal records compress
    /// a thousandfold.
    pub const DECOMPRESSED_BYTES_FREE: usize = 1 << 20;
    /// Largest zstd window accepted, as a power of two: a frame that asks for more is refused
    /// before the decoder allocates it.
    pub const ZSTD_WINDOW_LOG_MAX: u32 = 24;

    // Process.

    /// Shards of one store; the number is written on disk as a `u16`.
    pub const SHARDS_MAX: usize = 1024;
    /// Executors of one process: a broker id is `host × 1024 + core`.
    pub const CORES_MAX: usize = 1024;
    /// Endpoints advertised with `endpoints = auto`: clients keep connections and a thread for
    /// each.
    pub const ENDPOINTS_AUTO_MAX: usize = 8;
    /// Partitions of one topic.
    pub const PARTITIONS_PER_TOPIC_MAX: usize = 10_000;
    /// Largest configuration file, in bytes.
    pub const CONFIG_FILE_BYTES_MAX: usize = 1 << 20;

    // Memory: what the total budget is split into (`config::MemoryBudget`).

    /// Default total memory budget, in bytes, where a quarter of the host's memory is more.
    pub const MEMORY_BYTES_DEFAULT_MAX: u64 = 1 << 30;
    /// Share of the host's (or control group's) memory that the default budget takes, in percent.
    pub const MEMORY_HOST_PERCENT: u64 = 25;
    /// Share of the budget, beside its fixed part, for requests that are read and not yet answered,
    /// in percent.
    pub const MEMORY_REQUEST_PERCENT: u64 = 40;
    /// Share of the budget, beside its fixed part, for fetch responses that are not yet sent, in
    /// percent.
    pub const MEMORY_FETCH_PERCENT: u64 = 30;
    /// Fixed part of the process, in bytes: program, allocator, catalogue, threads.
    pub const MEMORY_PROCESS_BYTES: u64 = 24 << 20;
    /// Fixed part of one core, in bytes: rings and their buffers, metrics, lanes.
    pub const MEMORY_CORE_BYTES: u64 = 6 << 20;
    /// Fixed part of one connection, in bytes: task, socket buffers of ours, session state.
    pub const MEMORY_CONNECTION_BYTES: u64 = 8 << 10;
    /// Least cache of recent blocks on one core, in bytes.
    pub const MEMORY_CACHE_CORE_BYTES_MIN: u64 = 4 << 20;

    // Shards and the catalogue.

    /// Partitions of the whole store.
    pub const PARTITIONS_MAX: i64 = 200_000;
    /// Bytes of a topic's name; Kafka's number.
    pub const TOPIC_NAME_BYTES_MAX: usize = 249;
    /// Largest `max.message.bytes` a topic may ask for: what one frame holds beside its overhead.
    pub const MESSAGE_BYTES_HARD_MAX: usize = FRAME_BYTES_MAX - FRAME_OVERHEAD_BYTES_MAX;
    /// Producers remembered per partition; beyond it, those that wrote longest ago are forgotten.
    pub const PRODUCERS_PER_PARTITION_MAX: usize = 10_000;
    /// Producer ids a core reserves at once; a restart skips what was reserved and not handed out.
    pub const PRODUCER_IDS_RESERVED: i64 = 1_000;
    /// How often a shard looks whether there is house to keep.
    pub const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);
    /// Journal bytes worth a checkpoint: what a restart may have to replay, a second or so of it.
    pub const CHECKPOINT_JOURNAL_BYTES_MIN: u64 = 256 << 20;
    /// Journal bytes per byte of the last checkpoint that are worth another: what checkpoints may
    /// add to the bytes written is the inverse of it.
    pub const CHECKPOINT_JOURNAL_SHARE: u64 = 16;

    // Routing.

    /// Broker ids of one host: `host × 1024 + core`.
    pub const CORES_PER_HOST_MAX: i32 = 1_024;
    /// How long a request waits for room in another core's lane before its client is told to retry.
    pub const LANE_SEND_TIMEOUT: Duration = Duration::from_secs(2);
    /// How long a change of the catalogue may take before its client is told to retry.
    pub const CONTROL_TIMEOUT: Duration = Duration::from_secs(30);
    /// Extents one fetch reads from one partition.
    pub const FETCH_EXTENTS_MAX: usize = 1_024;

    // Sessions.

    /// Longest wait of a fetch.
    pub const FETCH_WAIT_MAX: Duration = Duration::from_secs(300);
    /// Most bytes of one fetch answer, whatever the client asks for (one batch may exceed it).
    pub const FETCH_BYTES_MAX: usize = 8 << 20;
    /// Fetch answers up to this size are made in the memory kept for them; a larger one waits for
    /// at least so much when memory is scarce.
    pub const FETCH_SMALL_BYTES_MAX: usize = 64 << 10;
    /// Share of the fetch memory kept for small answers, in percent.
    pub const SMALL_FETCHES_PERCENT: usize = 25;
    /// How long a client may leave its answers unread while others wait for memory.
    pub const WRITE_STALL_UNDER_PRESSURE: Duration = Duration::from_secs(3);
    /// How long a stop waits for answers to be taken before it closes the connections.
    pub const DRAIN_PATIENCE: Duration = Duration::from_millis(1_500);
    /// Frames up to this size are admitted from the share kept for them.
    pub const FRAME_SMALL_BYTES_MAX: usize = 64 << 10;
    /// Share of the request memory kept for small frames, in percent.
    pub const SMALL_REQUESTS_PERCENT: usize = 50;
    /// Memory a request counts for at least.
    pub const REQUEST_UNITS_MIN_BYTES: usize = 1 << 10;
    /// Bytes read from a connection at once while it sends small requests.
    pub const READ_BUFFER_BYTES: usize = 4 << 10;
    /// Room in a connection's buffer below which a new one is taken.
    pub const READ_SPARE_BYTES_MIN: usize = 512;
    /// Slowest rate at which a request may arrive.
    pub const BODY_BYTES_PER_S_MIN: usize = 1 << 10;
    /// Ready answers written together, at most about.
    pub const REPLY_COALESCE_BYTES: usize = 256 << 10;
    /// How long a client may leave its answers unread.
    pub const WRITE_STALL_MAX: Duration = Duration::from_secs(30);
    /// How often a stopping core looks whether its connections are closed.
    pub const DRAIN_POLL: Duration = Duration::from_millis(5);
    /// Topics one Metadata request may make.
    pub const METADATA_CREATES_MAX: usize = 100;

    // Server.

    /// How long a stop waits for answers to be taken.
    pub const DRAIN_TIMEOUT: Duration = Duration::from_millis(2_500);
    /// How long a stop waits for the journals to be sealed and closed.
    pub const CLOSE_TIMEOUT: Duration = Duration::from_millis(2_000);
    /// Time between a failed disk and the end of the process, for producers to be told.
    pub const POISON_GRACE: Duration = Duration::from_millis(200);
    /// How often figures that are read from elsewhere are brought up to date.
    pub const METRICS_TICK: Duration = Duration::from_millis(500);
    /// How long a stop waits for the dump that is written then.
    pub const DUMP_TIMEOUT: Duration = Duration::from_millis(400);
    /// Topics listed one by one in a dump and on the full metrics page; the rest are only counted.
    pub const TOPICS_DUMPED_MAX: usize = 1_000;
    /// Connections the kernel completes and keeps until they are accepted, per listener.
    pub const LISTEN_BACKLOG: u32 = 4_096;
    /// HTTP connections at once.
    pub const HTTP_CONNECTIONS_MAX: usize = 64;
    /// How long one HTTP connection may last.
    pub const HTTP_DEADLINE: Duration = Duration::from_secs(60);
    /// Largest head of an HTTP request, in bytes.
    pub const HTTP_HEAD_BYTES_MAX: usize = 16 << 10;

    // Host: tuning and the supervisor.

    /// Bytes of one file of the kernel's that `tune` reads: `/proc/interrupts` of 512 CPUs has some
    /// 6 MB.
    pub const HOST_FILE_BYTES_MAX: usize = 8 << 20;
    /// Entries of one folder of the kernel's that `tune` reads.
    pub const HOST_ENTRIES_MAX: usize = 8_192;
    /// Devices below a device (RAID, encryption, volumes) that `tune` follows, level by level.
    pub const HOST_DEVICE_LEVELS_MAX: usize = 8;
    /// Largest file of undo records, in bytes.
    pub const UNDO_FILE_BYTES_MAX: usize = 16 << 20;
    /// Locked memory advised per core, in bytes: its rings and registered buffers, with room.
    pub const LOCKED_MEMORY_CORE_BYTES: u64 = 8 << 20;
    /// How long a message to a busy supervisor may take before it is dropped.
    pub const SUPERVISOR_SEND_TIMEOUT: Duration = Duration::from_secs(1);
    /// Seconds by which a start that recovers puts off the supervisor's patience, each time.
    pub const START_EXTENSION: Duration = Duration::from_secs(30);
    /// How often a start that recovers says so to the supervisor.
    pub const START_REPORT_INTERVAL: Duration = Duration::from_secs(2);

    // Decompression.

    /// Most partitions of a Produce request of an old version that are refused one by one.
    pub const REFUSAL_PARTITIONS_MAX: usize = 256;

    // Client verbs.

    /// Attempts of a client verb at one request before it gives up.
    pub const CLIENT_ATTEMPTS_MAX: u32 = 32;
    /// First pause between two attempts of a client verb, in milliseconds; it doubles up to a
    /// second.
    pub const CLIENT_BACKOFF_MS: u64 = 20;
    /// Time a client verb waits for a connection or an answer, in milliseconds.
    pub const CLIENT_TIMEOUT_MS: u64 = 30_000;
    /// Record batch that `produce` fills before it sends, in bytes.
    pub const CLIENT_BATCH_BYTES: usize = 256 << 10;
    /// Records in one batch that `produce` sends.
    pub const CLIENT_BATCH_RECORDS_MAX: usize = 10_000;
    /// Bytes that `consume` asks for in one fetch of one partition.
    pub const CLIENT_FETCH_BYTES_MAX: usize = 4 << 20;
    /// Largest answer of a broker that a client verb accepts, in bytes.
    pub const CLIENT_RESPONSE_BYTES_MAX: usize = 128 << 20;
    /// Largest answer over HTTP that `dump` reads, in bytes.
    pub const CLIENT_HTTP_BYTES_MAX: usize = 64 << 20;
    /// Time `top` waits for an answer before it says that there is none, in milliseconds.
    pub const TOP_PATIENCE_MS: u64 = 2_000;
    /// Looks at a core's load that `top` remembers.
    pub const TOP_HISTORY_KEPT: usize = 60;
    /// Events that `top` remembers; it shows the last three.
    pub const TOP_EVENTS_KEPT: usize = 32;
    /// Cores from which on `top` shows a strip of cells and the worst ones.
    pub const TOP_STRIP_CORES_MIN: usize = 25;
    /// Cores shown as rows beneath that strip.
    pub const TOP_WORST_CORES: usize = 5;

    // Load generator.

    /// Longest pause before `load` connects again, in milliseconds.
    pub const LOAD_BACKOFF_MS_MAX: u64 = 1_000;
    /// Bytes of keys and values in one Produce request of `load`, about: Kafka's
    /// `max.request.size`.
    pub const LOAD_REQUEST_BYTES_MAX: usize = 1 << 20;
    /// Bytes that a worker of `load` reads from a connection at once.
    pub const LOAD_READ_BYTES: usize = 256 << 10;
    /// Milliseconds between a worker's looks after its connections and late requests.
    pub const LOAD_CARE_MS: u64 = 10;
    /// Milliseconds between what a worker of `load` says of itself.
    pub const LOAD_PROGRESS_MS: u64 = 1_000;
    /// Milliseconds without any answer, while some are due, that are noted as a stall.
    pub const LOAD_STALL_MS: u64 = 100;
    /// Messages that were due so many milliseconds before the end still go out if there is room.
    pub const LOAD_LAST_MS: u64 = 100;
    /// Milliseconds for which `load --probe` measures the machine's own limit.
    pub const LOAD_PROBE_MS: u64 = 1_000;
    /// Milliseconds before a consumer of `load` asks again after an error.
    pub const LOAD_FETCH_PAUSE_MS: u64 = 100;
    /// Examples of what the check of payloads found that one run of `load` keeps.
    pub const LOAD_EXAMPLES_MAX: usize = 10;
    /// Events that one run of `load` keeps.
    pub const LOAD_EVENTS_MAX: usize = 1_000;
    /// Intervals of one run of `load`, unless their length is given.
    pub const LOAD_INTERVALS_MAX: u64 = 600;
    /// Largest file that `load` takes payloads from, in bytes.
    pub const LOAD_SAMPLE_BYTES_MAX: usize = 64 << 20;
    /// Messages a second that `load` may be asked for.
    pub const LOAD_RATE_MAX: u32 = 100_000_000;
    // Reports of the load generator.

    /// Runs that one picture compares.
    pub const LOAD_OVERLAY_RUNS_MAX: usize = 6;
    /// Largest log of a run that is read back, in bytes.
    pub const LOAD_LOG_BYTES_MAX: usize = 1 << 30;
    /// Systems that one comparison sets side by side.
    pub const LOAD_COMPARE_SYSTEMS_MAX: usize = 12;
    /// Columns of the picture over time, whatever the length of a run.
    pub const LOAD_TIME_COLUMNS_MAX: usize = 600;
}

const _: () = assert!(MESSAGE_BYTES_MAX_DEFAULT + FRAME_OVERHEAD_BYTES_MAX <= FRAME_BYTES_MAX);
const _: () = assert!(BLOCK_BYTES_MAX.is_multiple_of(BLOCK_ALIGN));
const _: () = assert!(SEGMENT_BYTES_DEFAULT.is_multiple_of(BLOCK_ALIGN as u64));
const _: () = assert!(MEMORY_REQUEST_PERCENT + MEMORY_FETCH_PERCENT < 100);
const _: () = assert!(SEGMENT_BYTES_DEFAULT >= 2 * BLOCK_BYTES_HARD_MAX as u64);
const _: () = assert!(SEGMENT_BYTES_MIN >= (BLOCK_BYTES_HARD_MAX + 2 * BLOCK_ALIGN) as u64);
const _: () = assert!(BLOCK_BYTES_HARD_MAX.is_multiple_of(BLOCK_ALIGN));
const _: () = assert!(BLOCK_BYTES_MAX <= BLOCK_BYTES_HARD_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no constant escapes the printed list. Method: compare `all()` with the constants that
    /// the source of this file declares.
    #[test]
    fn every_constant_is_listed() {
        let declared: Vec<&str> = include_str!("limits.rs")
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("pub const "))
            .filter_map(|rest| rest.split(':').next())
            .filter(|name| !name.starts_with('$'))
            .collect();
        let listed: Vec<&str> = all().iter().map(|limit| limit.name).collect();
        assert!(declared.len() > 10);
        assert_eq!(declared, listed);
    }

    /// Goal: a limit is shown with its meaning. Method: look one up that has two lines of text.
    #[test]
    fn a_limit_shows_its_meaning() {
        let all = all();
        let limit = all
            .iter()
            .find(|l| l.name == "BLOCK_ALIGN")
            .expect("declared");
        assert_eq!(limit.value, 4096);
        assert!(
            limit.meaning.ends_with("so it is never asked."),
            "{}",
            limit.meaning
        );
    }
}
