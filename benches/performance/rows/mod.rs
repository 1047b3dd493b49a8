//! The rows of the table in `docs/PERFORMANCE.md`, in its order.

mod backlog;
mod cores;
mod files;
mod hop;
mod idle;
mod lone;
mod scale;
mod start;
mod tail;
mod throughput;

use crate::bench::Bench;
use crate::figures::Figures;

/// One row.
pub struct Row {
    pub name: &'static str,
    pub what: &'static str,
    /// In words; the figures that decide carry the numbers.
    pub goal: &'static str,
    /// Disk that must be free before it begins: about twice what it writes.
    pub needs_bytes: u64,
    /// Rounds when nobody says: about a minute's.
    pub rounds: usize,
    pub measure: fn(&mut Bench, &mut Figures) -> Result<(), String>,
}

const GB: u64 = 1_000_000_000;

/// What this bench measures.
pub const ROWS: &[Row] = &[
    Row {
        name: "P1",
        what: "durable throughput, 1 KiB messages in large batches",
        goal: "at least 90 % of this disk's 1 MiB write + flush, each byte written once",
        needs_bytes: 8 * GB,
        rounds: 5,
        measure: throughput::measure,
    },
    Row {
        name: "P2",
        what: "durable latency of a lone 1 KiB message over TCP",
        goal: "p50 at most 1.3 x, p99 at most 1.5 x a bare 4 KiB write + flush and a bare echo",
        needs_bytes: 4 * GB,
        rounds: 5,
        measure: lone::measure,
    },
    Row {
        name: "P3",
        what: "1, 1,000 and 10,000 partitions at an equal total rate, durable",
        goal: "throughput at least 90 %, p99 at most 2 x of one partition's",
        needs_bytes: 6 * GB,
        rounds: 2,
        measure: scale::partitions,
    },
    Row {
        name: "P4",
        what: "4, 50 and 500 producers at an equal total rate",
        goal: "p99 at most 1.2 x",
        needs_bytes: 6 * GB,
        rounds: 5,
        measure: scale::producers,
    },
    Row {
        name: "P7",
        what: "consumers that read a backlog from the disk",
        goal: "at least 90 % of this disk's reads; producers' p99 at most 1.5 x meanwhile",
        needs_bytes: 9 * GB,
        rounds: 2,
        measure: backlog::measure,
    },
    Row {
        name: "P8",
        what: "consumers at the tail",
        goal: "served from memory; end to end p50 at most durable p50 + 200 us",
        needs_bytes: 2 * GB,
        rounds: 5,
        measure: tail::measure,
    },
    Row {
        name: "P10",
        what: "10,000 idle consumers",
        goal: "at most 1 % of a core, at most 20 KiB each",
        needs_bytes: GB,
        rounds: 2,
        measure: idle::measure,
    },
    Row {
        name: "P11",
        what: "a request sent to the core that does not own the partition",
        goal: "at most 15 % more CPU a request than sent to its owner, no further flush",
        needs_bytes: 4 * GB,
        rounds: 5,
        measure: hop::measure,
    },
    Row {
        name: "P12",
        what: "scaling with cores, data in memory",
        goal: "at least 0.9 x linear",
        needs_bytes: GB,
        rounds: 5,
        measure: cores::measure,
    },
    Row {
        name: "P13",
        what: "start after kill -9",
        goal: "at most 1 s and 1 s for each unsealed GiB",
        needs_bytes: 9 * GB,
        rounds: 5,
        measure: start::measure,
    },
];

/// Rows that other commands measure.
pub const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "P5",
        "against Kafka, flushing each message and not at all",
        "scripts/compare.sh",
    ),
    (
        "P6",
        "small durable messages against other brokers",
        "scripts/compare.sh",
    ),
    ("P9", "queues", "not there yet"),
    (
        "P14",
        "bytes written for each byte accepted",
        "at saturation in P1; trickling messages: not measured yet",
    ),
];
