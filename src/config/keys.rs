//! The one table of configuration keys. The `Config` struct, the flags of `serve`, the environment
//! variables, the file's keys, `penstock config` and the ranges are all made from it.

use super::value::{CommitMode, Cores, Endpoints, LogFormat, Setting};
use crate::limits;
use core::net::SocketAddr;
use serde_json::Value;
use std::path::PathBuf;

/// When a changed value takes effect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect {
    /// At the next start.
    Restart,
    /// Only when a store is made; a store that exists keeps what it was made with.
    Creation,
    /// At the next start, for topics that do not set their own.
    TopicDefault,
}

impl Effect {
    /// As `penstock config` says it.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Effect::Restart => "restart",
            Effect::Creation => "store creation",
            Effect::TopicDefault => "restart (default of topics)",
        }
    }
}

/// What a value may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Range {
    /// Described in words; the type checks it.
    Words(&'static str),
    /// A number in these bounds, both included.
    Between(u64, u64),
    /// A number of bytes in these bounds, both included.
    Bytes(u64, u64),
    /// A number of bytes in these bounds, both included and both multiples of 4,096, as it must be.
    Blocks(u64, u64),
}

impl Range {
    /// As `penstock config` says it.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Range::Words(words) => words.to_owned(),
            Range::Between(least, most) => format!("{least} – {most}"),
            Range::Bytes(least, most) => format!("{} – {}", least.show(), most.show()),
            Range::Blocks(least, most) => {
                format!("{} – {}, a multiple of 4096", least.show(), most.show())
            }
        }
    }

    /// Checks a value.
    fn check<T: Setting>(self, value: &T) -> Result<(), String> {
        let (least, most) = match self {
            Range::Words(_) => return Ok(()),
            Range::Between(least, most)
            | Range::Bytes(least, most)
            | Range::Blocks(least, most) => (least, most),
        };
        let Some(number) = value.magnitude() else {
            return Ok(());
        };
        let aligned =
            !matches!(self, Range::Blocks(..)) || number.is_multiple_of(limits::BLOCK_ALIGN as u64);
        if number < least || number > most || !aligned {
            return Err(format!("must be {}", self.text()));
        }
        Ok(())
    }
}

/// One key: everything that is said about it anywhere.
#[derive(Debug)]
pub struct Key {
    /// Its name in the file; `PENSTOCK_` and capitals in the environment; dashes as a flag.
    pub name: &'static str,
    /// Its type, as Rust spells it.
    pub kind: &'static str,
    /// Its default as text, possibly empty (none) or `auto`.
    pub default: &'static str,
    /// What it may be.
    pub range: Range,
    /// When a change takes effect.
    pub effect: Effect,
    /// What it is for, in a sentence.
    pub meaning: &'static str,
}

impl Key {
    /// The environment variable that sets it.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("PENSTOCK_{}", self.name.to_uppercase())
    }

    /// The flag that sets it, without dashes in front.
    #[must_use]
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Whether the flag may stand alone, meaning `true`.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.kind == "bool"
    }
}

/// Reads a value that may be left to the program: `auto` is 0 until it is worked out.
fn parse_auto(text: &str) -> Result<u64, String> {
    if text == "auto" {
        Ok(0)
    } else {
        u64::parse(text)
    }
}

macro_rules! keys {
    ($($name:ident: $type:ty = $default:literal, $range:expr, $effect:ident, $meaning:literal
        $(, via $parse:ident)?;)*) => {
        /// Every setting, resolved. Made by `config::load`.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            $(#[doc = $meaning] pub $name: $type,)*
        }

        /// Every key, in the order in which they are explained.
        pub const KEYS: &[Key] = &[$(Key {
            name: stringify!($name),
            kind: stringify!($type),
            default: $default,
            range: $range,
            effect: Effect::$effect,
            meaning: $meaning,
        }),*];

        impl Config {
            /// The built-in defaults, before `auto` values are worked out.
            pub(super) fn defaults() -> Result<Config, String> {
                Ok(Config { $($name: keys!(@parse $type, $default $(, $parse)?)?,)* })
            }

            /// Sets one key from text, within its range. The key must be known.
            pub(super) fn set(&mut self, key: &str, text: &str) -> Result<(), String> {
                match key {
                    $(stringify!($name) => {
                        let value: $type = keys!(@parse $type, text $(, $parse)?)?;
                        // What is worked out later has no number to check yet.
                        if text != "auto" {
                            Range::check($range, &value)?;
                        }
                        self.$name = value;
                        Ok(())
                    })*
                    _ => Err("is not a key".into()),
                }
            }

            /// The value of a key, as text and as JSON.
            #[must_use]
            pub fn show(&self, key: &str) -> Option<(String, Value)> {
                match key {
                    $(stringify!($name) => Some((self.$name.show(), self.$name.json())),)*
                    _ => None,
                }
            }
        }
    };
    (@parse $type:ty, $text:expr) => { <$type as Setting>::parse($text) };
    (@parse $type:ty, $text:expr, $parse:ident) => { $parse($text) };
}

const MIB: u64 = 1 << 20;

keys! {
    data: PathBuf = "./penstock-data", Range::Words("a folder"), Restart,
        "Folder of the store; it is made if it does not exist";
    create: bool = "true", Range::Words("true or false"), Restart,
        "Whether a missing store may be made; false refuses instead (a volume that is not mounted)";
    kafka: SocketAddr = "127.0.0.1:9092", Range::Words("ADDRESS:PORT"), Restart,
        "Address for Kafka clients; endpoint k listens on port + k, port 0 takes free ports";
    http: SocketAddr = "127.0.0.1:9080", Range::Words("ADDRESS:PORT"), Restart,
        "Address of /healthz, /readyz, /metrics and /dump";
    insecure: bool = "false", Range::Words("true or false"), Restart,
        "Allow a listener beyond loopback although nobody has to authenticate";
    advertised_host: Option<String> = "", Range::Words("a host name or address"), Restart,
        "Host that Kafka clients are told to connect to; default: the address listened on";
    ready_file: Option<PathBuf> = "", Range::Words("a file"), Restart,
        "File written, atomically, once everything is served";
    dump_file: PathBuf = "auto", Range::Words("auto, none, or a file"), Restart,
        "File for the metrics of all cores as JSON, written at SIGUSR1 and at a stop; the one \
         before is kept as FILE.1; auto is dump.json in the data folder";
    cores: Cores = "all", Range::Words("all, a number, or a list such as 0,2-3"), Restart,
        "CPUs that get an executor, out of the process' affinity mask; more cores than \
         CPUs share them";
    shards: u16 = "0", Range::Between(0, limits::SHARDS_MAX as u64), Creation,
        "Shards of a new store; 0 means as many as cores";
    endpoints: Endpoints = "auto", Range::Between(1, limits::CORES_MAX as u64), Restart,
        "Cores advertised to Kafka clients as brokers of their own; auto is one each, at most 8";
    host_id: u16 = "0", Range::Between(0, 65_535), Restart,
        "Number of this host; a broker id is host × 1024 + core";
    rack: Option<String> = "", Range::Words("a name"), Restart,
        "Rack advertised for all endpoints of this host";
    memory_bytes: u64 = "auto", Range::Bytes(32 * MIB, 1 << 44), Restart,
        "Memory budget of the whole process; auto is a quarter of the host's or control group's \
         memory, at most 1 GiB, at least what the cores need", via parse_auto;
    segment_bytes: u64 = "64MiB", Range::Blocks(limits::SEGMENT_BYTES_MIN, 1024 * MIB), Creation,
        "Length of a journal file, written ahead of need";
    block_bytes_max: u64 = "1MiB", Range::Blocks(64 << 10, 16 * MIB), Restart,
        "Size at which a journal block stops gathering entries";
    commit_depth: u16 = "4", Range::Between(1, 16), Restart,
        "Journal blocks being written at once, per shard";
    commit_mode: CommitMode = "dsync", Range::Words("dsync or fdatasync"), Restart,
        "How a journal write becomes durable; `penstock probe` says which this disk does faster";
    idle_seal_ms: u32 = "50", Range::Between(1, 60_000), Restart,
        "Idle time after which a block is written that vouches for the last one";
    num_partitions: u32 = "4", Range::Between(1, limits::PARTITIONS_PER_TOPIC_MAX as u64),
        TopicDefault, "Partitions of a topic that is made without saying how many";
    auto_create_topics: bool = "true", Range::Words("true or false"), Restart,
        "Whether a client that asks for an unknown topic makes it";
    message_bytes_max: u64 = "1048588",
        Range::Bytes(1024, (limits::FRAME_BYTES_MAX - limits::FRAME_OVERHEAD_BYTES_MAX) as u64),
        TopicDefault, "Largest record batch a topic takes (`max.message.bytes`)";
    max_connections: u32 = "10000", Range::Between(1, 1_000_000), Restart,
        "Client connections of the process; more are closed at once";
    max_connections_per_ip: u32 = "256", Range::Between(1, 1_000_000), Restart,
        "Client connections from one address; loopback is exempt";
    accept_rate_max: u32 = "1000", Range::Between(1, 1_000_000), Restart,
        "Connections accepted in a second on one endpoint; more wait";
    requests_in_flight_max: u16 = "64", Range::Between(1, 1024), Restart,
        "Requests of one connection being worked on; its next one is not read";
    body_deadline_ms: u32 = "30000", Range::Between(100, 600_000), Restart,
        "Time in which a request must arrive once its length was read";
    idle_deadline_ms: u32 = "600000", Range::Between(1000, 86_400_000), Restart,
        "Time after which a connection that asks nothing is closed";
    lane_depth: u32 = "1024", Range::Between(16, 65_536), Restart,
        "Messages waiting between two cores, per direction; more get a retriable error";
    log: String = "info", Range::Words("a level or filter, such as info or warn,penstock=debug"),
        Restart, "What is logged, to standard error";
    log_format: LogFormat = "text", Range::Words("text or json"), Restart,
        "How log lines look";
}
