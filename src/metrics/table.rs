//! Every metric, declared once: its cell, its unit, its help. JSON and Prometheus are rendered from
//! this table, so a metric that is declared is exported.
//!
//! To add one: a line here, and a call where it happens. Behind the unit stands whether it is on
//! the small Prometheus page too: `core` for a sample a core, `sum` for one in all (see [`Page`]).

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

/// Where a metric is in the Prometheus exposition. The small page is what `/metrics` serves; the
/// full one is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Page {
    /// The full page only, one sample a core.
    Full,
    /// Both; one sample a core.
    PerCore,
    /// Both; on the small one, the sum of all cores.
    Sum,
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
    /// Where it is exported.
    pub page: Page,
    /// One sentence.
    pub help: &'static str,
}

macro_rules! metrics {
    (@page) => { Page::Full };
    (@page core) => { Page::PerCore };
    (@page sum) => { Page::Sum };
    (@cell Counter) => { Counter };
    (@cell Gauge) => { Gauge };
    (@cell Histogram) => { Histogram };
    (@cell ByApi) => { Family };
    (@cell ByError) => { Family };
    ($($(#[doc = $doc:literal])+ $group:ident: $type:ident {
        $($kind:ident $name:ident [$unit:ident $(, $page:ident)?] $help:literal;)+
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
            page: metrics!(@page $($page)?),
            help: $help,
        }),+),+];
    };
}

metrics! {
    /// Client connections.
    connections: ConnectionMetrics {
        Gauge open [Count, core] "Connections that are open.";
        Counter accepted [Count, sum] "Connections accepted.";
        Counter refused_process_limit [Count, sum] "Connections closed: the process has too many.";
        Counter refused_address_limit [Count, sum] "Connections closed: one address has too many.";
        Counter closed_idle [Count, sum] "Connections closed: nothing asked for too long.";
        Counter closed_slow_body [Count, sum] "Connections closed: a request came too slowly.";
        Counter closed_slow_reader [Count, sum] "Connections closed: answers were not read.";
        Counter closed_protocol [Count, sum] "Connections closed: bytes that are no request.";
        Counter http_requests [Count] "Requests over HTTP.";
    }
    /// Requests of Kafka clients.
    requests: RequestMetrics {
        ByApi received [Count, sum] "Requests received, by API.";
        ByError errors [Count, sum] "Errors answered, by name.";
        Counter inbound [Bytes, core] "Bytes read from clients.";
        Counter outbound [Bytes, core] "Bytes written to clients.";
        Histogram produce [Time, sum] "Time from a produce's length to its answer being sent.";
        Histogram fetch [Time, sum] "Time from a fetch's length to its answer, waits included.";
        Histogram other [Time] "Time from any other request's length to its answer being sent.";
    }
    /// Where the time of an acknowledged produce request goes; the stages add up to
    /// `requests.produce`.
    stages: StageMetrics {
        Histogram admission [Time, sum] "Produce: waiting for memory, before it was read.";
        Histogram read [Time, sum] "Produce: from then to its last byte; 0 if that was there.";
        Histogram append [Time, sum] "Produce: decoded, checked, given offsets, staged.";
        Histogram staged [Time, sum] "Produce: staged, until the write of its block began.";
        Histogram write [Time, sum] "Produce: the write of its block (durable with O_DSYNC).";
        Histogram flush [Time, sum] "Produce: the fdatasync of its block; 0 with O_DSYNC.";
        Histogram order [Time, sum] "Produce: its block waited for earlier ones to be durable.";
        Histogram reply [Time, sum] "Produce: answered, in the order of the connection's requests.";
    }
    /// Where the time of a fetch goes; the stages add up to `requests.fetch`.
    fetch_stages: FetchStageMetrics {
        Histogram receive [Time, sum] "Fetch: from its length to its last byte, waits included.";
        Histogram wait [Time, sum] "Fetch: waiting for records.";
        Histogram plan [Time, sum] "Fetch: finding what to read, and memory for it.";
        Histogram read [Time, sum] "Fetch: reading records from memory, disk or other cores.";
        Histogram reply [Time, sum] "Fetch: answered, in the order of the connection's requests.";
    }
    /// Memory units, taken before a request is read.
    admission: AdmissionMetrics {
        Gauge used [Bytes, core] "Memory units taken.";
        Counter waits [Count, sum] "Requests that had to wait for memory units.";
    }
    /// What producers sent.
    produce: ProduceMetrics {
        Counter records [Count, core] "Records accepted.";
        Counter batches [Count, core] "Record batches accepted.";
        Counter accepted [Bytes, core] "Bytes of record batches accepted.";
        Counter rejected [Count, sum] "Record batches refused.";
        Counter duplicates [Count, sum] "Record batches that were there already: a retry.";
        Counter unacknowledged [Count, sum] "Record batches taken with acks=0.";
    }
    /// What consumers read.
    fetch: FetchMetrics {
        Counter records [Count, core] "Records served.";
        Counter served [Bytes, core] "Bytes of record batches served.";
        Gauge parked [Count, core] "Fetches waiting for records.";
        Counter parks [Count] "Fetches that had to wait for records.";
        Counter expired [Count] "Fetches that waited in vain.";
    }
    /// Parts of requests that another core owns.
    forward: ForwardMetrics {
        Counter sent [Count, core] "Parts sent to another core.";
        Counter received [Count] "Parts received from another core.";
        Counter refused [Count, sum] "Parts refused because the lane was full.";
    }
    /// The shards' journals on this core.
    journal: JournalMetrics {
        Counter blocks [Count, core] "Blocks written.";
        Counter written [Bytes, core] "Bytes written, headers and padding included.";
        Counter payload [Bytes] "Bytes of entries in the blocks written.";
        Counter entries [Count, core] "Entries written.";
        Counter seals [Count] "Blocks written only to vouch for their predecessor.";
        Counter flushes [Count, core] "fdatasync calls.";
        Counter segments_made [Count] "Segment files made.";
        Counter zeroed [Bytes] "Bytes of zeros written so that small blocks cost one flush.";
        Counter segments_recycled [Count] "Segment files used again.";
        Counter checkpoints [Count] "Checkpoints written.";
        Counter read [Bytes, sum] "Bytes read from segment files.";
        Counter damaged_reads [Count, sum] "Reads that failed their checksum.";
        Counter rolls [Count] "Segments begun.";
        Counter cache_hits [Count, sum] "Extents served from recent blocks in memory.";
        Counter cache_misses [Count, sum] "Extents read from the disk.";
        Counter cuts [Count] "Torn tails cut by recovery.";
        Counter damaged_blocks [Count, sum] "Damaged places met by recovery.";
        Counter space_waits [Count, sum] "Times a segment could not be made: the disk is full.";
        Counter room_waits [Count, sum] "Times a producer waited because too much was staged.";
        Gauge staged [Bytes, core] "Bytes staged and not yet durable.";
        Gauge in_flight [Count] "Blocks being written.";
        Gauge segments [Count] "Segment files in use.";
        Gauge cached [Bytes, core] "Bytes of recent blocks kept in memory.";
        Histogram block_entries [Count] "Entries in a block.";
        Histogram block [Bytes] "Size of a block.";
        Histogram write [Time, core] "Time of one block's write (durable with O_DSYNC).";
        Histogram flush [Time, core] "Time of one fdatasync.";
    }
    /// The shards on this core.
    shard: ShardMetrics {
        Gauge shards [Count] "Shards of this core.";
        Gauge partitions [Count, core] "Partitions of this core.";
        Gauge quarantined [Count, sum] "Extents set aside because they are damaged.";
    }
    /// The executor itself.
    runtime: RuntimeMetrics {
        Counter cpu [Time, core] "CPU time of the core's thread.";
        Counter wall [Time, core] "Time since the core's thread started.";
        Counter watchdog_kicks [Count, sum] "Times the watchdog had to wake the executor.";
        Counter timers_late [Count, sum] "Ticks that came more than 10 ms late.";
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

    /// The name of a member of a family: an API or an error.
    #[must_use]
    pub fn member_name(&self, index: usize) -> String {
        super::labels::name(self.kind, index)
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
