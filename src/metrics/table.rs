//! Every metric, declared once: its cell, its unit, its help. JSON and Prometheus are rendered from
//! this table, so a metric that is declared is exported.
//!
//! To add one: a line here, and a call where it happens.

use super::cell::{Counter, Family, Gauge, Histogram, Unit};
use super::snapshot::Reading;
use std::rc::Rc;

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Rises and falls.
    Gauge,
    /// A distribution.
    Histogram,
    /// Counters by API name.
    ByApi,
    /// Counters by Kafka error name.
    ByError,
}

/// One row of the table.
#[derive(Debug)]
pub struct Metric {
    /// The group, which is the first word of the name.
    pub group: &'static str,
    /// Its name within the group, without a unit.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// What it counts.
    pub unit: Unit,
    /// One sentence.
    pub help: &'static str,
}

macro_rules! metrics {
    (@cell Counter) => { Counter };
    (@cell Gauge) => { Gauge };
    (@cell Histogram) => { Histogram };
    (@cell ByApi) => { Family };
    (@cell ByError) => { Family };
    ($($(#[doc = $doc:literal])+ $group:ident: $type:ident {
        $($kind:ident $name:ident [$unit:ident] $help:literal;)+
    })+) => {
        $(
            $(#[doc = $doc])+
            pub struct $type {
                $(#[doc = $help] pub $name: metrics!(@cell $kind),)+
            }

            impl $type {
                /// All zero.
                #[must_use]
                pub fn new() -> Rc<$type> {
                    Rc::new($type {
                        $($name: <metrics!(@cell $kind)>::new(Unit::$unit),)+
                    })
                }

                pub(super) fn read(&self) -> Vec<Reading> {
                    vec![$(self.$name.read()),+]
                }
            }
        )+

        /// The groups of one core. Each is shared with the parts of the core that record into it.
        pub struct Groups {
            $($(#[doc = $doc])+ pub $group: Rc<$type>,)+
        }

        impl Groups {
            pub(super) fn new() -> Groups {
                Groups { $($group: $type::new(),)+ }
            }

            /// All readings, in the order of `METRICS`.
            pub(super) fn read(&self) -> Vec<Reading> {
                let mut all = Vec::with_capacity(METRICS.len());
                $(all.extend(self.$group.read());)+
                all
            }
        }

        /// The table.
        pub const METRICS: &[Metric] = &[$($(Metric {
            group: stringify!($group),
            name: stringify!($name),
            kind: Kind::$kind,
            unit: Unit::$unit,
            help: $help,
        }),+),+];
    };
}

metrics! {
    /// Client connections.
    connections: ConnectionMetrics {
        Gauge open [Count] "Connections that are open.";
        Counter accepted [Count] "Connections accepted.";
        Counter refused_process_limit [Count] "Connections closed: the process has too many.";
        Counter refused_address_limit [Count] "Connections closed: one address has too many.";
        Counter closed_idle [Count] "Connections closed: nothing asked for too long.";
        Counter closed_slow_body [Count] "Connections closed: a request did not arrive in time.";
        Counter closed_slow_reader [Count] "Connections closed: answers were not read.";
        Counter closed_protocol [Count] "Connections closed: bytes that are no request.";
        Counter http_requests [Count] "Requests over HTTP.";
    }
    /// Requests of Kafka clients.
    requests: RequestMetrics {
        ByApi received [Count] "Requests received, by API.";
        ByError errors [Count] "Errors answered, by name.";
        Counter inbound [Bytes] "Bytes read from clients.";
        Counter outbound [Bytes] "Bytes written to clients.";
        Histogram produce [Time] "Time from a produce request's last byte to its answer.";
        Histogram fetch [Time] "Time from a fetch's last byte to its answer, with waiting.";
        Histogram other [Time] "Time from any other request's last byte until it was started.";
    }
    /// Where the time of a produce request goes; `journal` breaks down `durable`.
    stages: StageMetrics {
        Histogram read [Time] "Time from a request's length to its last byte, waits included.";
        Histogram admission [Time] "Time waiting for memory before a request was read.";
        Histogram validate [Time] "Time from the last byte until all of a request was staged.";
        Histogram durable [Time] "Time from staging until durable.";
        Histogram reply [Time] "Time writing ready answers to a connection.";
    }
    /// Memory units, taken before a request is read.
    admission: AdmissionMetrics {
        Gauge used [Bytes] "Memory units taken.";
        Counter waits [Count] "Requests that had to wait for memory units.";
    }
    /// What producers sent.
    produce: ProduceMetrics {
        Counter records [Count] "Records accepted.";
        Counter batches [Count] "Record batches accepted.";
        Counter accepted [Bytes] "Bytes of record batches accepted.";
        Counter rejected [Count] "Record batches refused.";
        Counter duplicates [Count] "Record batches that were there already: a retry.";
        Counter unacknowledged [Count] "Record batches taken with acks=0.";
    }
    /// What consumers read.
    fetch: FetchMetrics {
        Counter served [Bytes] "Bytes of record batches served.";
        Gauge parked [Count] "Fetches waiting for records.";
        Counter parks [Count] "Fetches that had to wait for records.";
        Counter expired [Count] "Fetches that waited in vain.";
    }
    /// Parts of requests that another core owns.
    forward: ForwardMetrics {
        Counter sent [Count] "Parts sent to another core.";
        Counter received [Count] "Parts received from another core.";
        Counter refused [Count] "Parts refused because the lane was full.";
    }
    /// The shards' journals on this core.
    journal: JournalMetrics {
        Counter blocks [Count] "Blocks written.";
        Counter written [Bytes] "Bytes written, headers and padding included.";
        Counter payload [Bytes] "Bytes of entries in the blocks written.";
        Counter entries [Count] "Entries written.";
        Counter seals [Count] "Blocks written only to vouch for their predecessor.";
        Counter flushes [Count] "fdatasync calls.";
        Counter segments_made [Count] "Segment files made.";
        Counter zeroed [Bytes] "Bytes of zeros written so that small blocks cost one flush.";
        Counter segments_recycled [Count] "Segment files used again.";
        Counter checkpoints [Count] "Checkpoints written.";
        Counter read [Bytes] "Bytes read from segment files.";
        Counter damaged_reads [Count] "Reads that failed their checksum.";
        Counter rolls [Count] "Segments begun.";
        Counter cache_hits [Count] "Extents served from recent blocks in memory.";
        Counter cache_misses [Count] "Extents read from the disk.";
        Counter cuts [Count] "Torn tails cut by recovery.";
        Counter damaged_blocks [Count] "Damaged places met by recovery.";
        Counter space_waits [Count] "Times a segment could not be made because the disk is full.";
        Counter room_waits [Count] "Times a producer waited because too much was staged.";
        Gauge staged [Bytes] "Bytes staged and not yet durable.";
        Gauge in_flight [Count] "Blocks being written.";
        Gauge segments [Count] "Segment files in use.";
        Gauge cached [Bytes] "Bytes of recent blocks kept in memory.";
        Histogram block_entries [Count] "Entries in a block.";
        Histogram block [Bytes] "Size of a block.";
        Histogram waited [Time] "Time an entry was staged before its block was written.";
        Histogram write [Time] "Time of one block's write (durable with O_DSYNC).";
        Histogram flush [Time] "Time of one fdatasync.";
    }
    /// The shards on this core.
    shard: ShardMetrics {
        Gauge shards [Count] "Shards of this core.";
        Gauge partitions [Count] "Partitions of this core.";
        Gauge quarantined [Count] "Extents set aside because they are damaged.";
    }
    /// The executor itself.
    runtime: RuntimeMetrics {
        Counter cpu [Time] "CPU time of the core's thread.";
        Counter wall [Time] "Time since the core's thread started.";
        Counter watchdog_kicks [Count] "Times the watchdog had to wake the executor.";
        Counter timers_late [Count] "Ticks that came more than 10 ms late.";
        Histogram tick_delay [Time] "How late the heartbeat's tick came.";
    }
}

impl Metric {
    /// The key in JSON: the unit is part of it, but for histograms, whose inner keys carry it.
    #[must_use]
    pub fn json_key(&self) -> String {
        match (self.kind, self.unit) {
            (Kind::Histogram, _) | (_, Unit::Count) => self.name.to_owned(),
            (_, Unit::Bytes) => format!("{}_bytes", self.name),
            (_, Unit::Time) => format!("{}_us", self.name),
        }
    }

    /// The name in Prometheus.
    #[must_use]
    pub fn prometheus_name(&self) -> String {
        let unit = match self.unit {
            Unit::Count => "",
            Unit::Bytes => "_bytes",
            Unit::Time => "_seconds",
        };
        let total = match self.kind {
            Kind::Counter | Kind::ByApi | Kind::ByError => "_total",
            Kind::Gauge | Kind::Histogram => "",
        };
        format!("penstock_{}_{}{unit}{total}", self.group, self.name)
    }

    /// The label that tells the members of a family apart.
    pub(super) fn label(&self) -> &'static str {
        match self.kind {
            Kind::ByApi => "api",
            Kind::ByError => "error",
            Kind::Counter | Kind::Gauge | Kind::Histogram => "",
        }
    }
}
