//! The command line as it is typed. What it means is decided by the verbs.

mod flags;
mod load;

pub use flags::KeyFlags;
pub use load::{ArrivalsArg, FromArg, LoadArgs, ToldVerb};

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "penstock",
    version,
    about = "A durable, ordered message broker that speaks the Kafka protocol",
    after_help = "Exit codes: 0 done or stopped as asked, 1 misuse or a failed request, 2 \
                  configuration or port, 3 the host lacks something, 4 data directory refused, \
                  5 the disk failed, 6 a bug, 10-14 what `load` found, 141 \
                  the reader of the output went away."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run the broker
    Serve(ConfigArgs),
    /// Create, list, describe, alter and delete topics
    Topic(TopicArgs),
    /// Send lines, files or JSON records to a topic
    Produce(ProduceArgs),
    /// Read records of a topic
    Consume(ConsumeArgs),
    /// Load a broker at a set rate and report what it did
    Load(Box<LoadArgs>),
    /// Print the broker's metrics as JSON, or what happened between two dumps
    Dump(DumpArgs),
    /// Watch the broker's cores and topics, live or played back
    Top(TopArgs),
    /// Check a data directory while no broker uses it
    Verify(VerifyArgs),
    /// Measure what a disk can do
    Probe(ProbeArgs),
    /// Check how this host is set up for the broker; change it, or print how
    Tune(TuneArgs),
    /// Print every key: value, default, source, meaning; and every limit
    Config(ShowConfigArgs),
}

/// Where the configuration comes from.
#[derive(Args, Clone, Debug)]
pub struct ConfigArgs {
    /// Configuration file [default: ./penstock.toml if it exists]
    #[arg(long = "config", value_name = "FILE", env = "PENSTOCK_CONFIG")]
    pub file: Option<PathBuf>,
    /// One flag for each key.
    #[command(flatten)]
    pub keys: KeyFlags,
}

/// `config`.
#[derive(Args, Debug)]
pub struct ShowConfigArgs {
    /// Show these keys only
    #[arg(value_name = "KEY")]
    pub only: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// As for `serve`.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// How to reach the broker.
#[derive(Args, Clone, Debug, Serialize)]
pub struct BrokerArgs {
    /// Broker to ask first: HOST:PORT, or several separated by commas
    #[arg(
        long,
        value_name = "ADDR",
        env = "PENSTOCK_BROKER",
        default_value = "127.0.0.1:9092"
    )]
    pub broker: String,
}

/// `topic`.
#[derive(Args, Debug)]
pub struct TopicArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: TopicVerb,
}

/// The verbs of `topic`.
#[derive(Debug, Subcommand)]
pub enum TopicVerb {
    /// Create topics
    Create {
        /// Their names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Partitions of each [default: the broker's num_partitions]
        #[arg(long, short, value_name = "N")]
        partitions: Option<i32>,
        /// A setting of the topics, such as retention.ms=3600000
        #[arg(long = "config", short, value_name = "K=V")]
        configs: Vec<String>,
        /// Succeed where the topic exists already
        #[arg(long)]
        if_not_exists: bool,
        /// What is common to the verbs.
        #[command(flatten)]
        common: TopicCommon,
    },
    /// List topics
    List {
        /// What is common to the verbs.
        #[command(flatten)]
        common: TopicCommon,
    },
    /// Show partitions, leaders, offsets and settings
    Describe {
        /// Their names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// What is common to the verbs.
        #[command(flatten)]
        common: TopicCommon,
    },
    /// Add partitions
    Alter {
        /// Its name
        name: String,
        /// Grow to so many partitions
        #[arg(long, short, value_name = "N")]
        partitions: i32,
        /// What is common to the verbs.
        #[command(flatten)]
        common: TopicCommon,
    },
    /// Delete topics with all their records
    Delete {
        /// Their names
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        /// What is common to the verbs.
        #[command(flatten)]
        common: TopicCommon,
    },
}

/// What all verbs of `topic` take.
#[derive(Args, Clone, Debug)]
pub struct TopicCommon {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The broker.
    #[command(flatten)]
    pub broker: BrokerArgs,
}

/// Compression of record batches.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say all")]
pub enum CompressionArg {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// Which acknowledgement to wait for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum AcksArg {
    /// None: what was lost is not known.
    #[value(name = "0")]
    Zero,
    /// Durable on the leader.
    #[value(name = "1")]
    One,
    /// Durable everywhere it must be.
    #[value(name = "all", alias = "-1")]
    All,
}

/// `produce`.
#[derive(Args, Debug)]
#[command(
    after_help = "Every line is a record. An empty line is a record with an empty value; a \
                        null value (a tombstone) can be written with --json."
)]
pub struct ProduceArgs {
    /// The topic
    pub topic: String,
    /// Files to read; `-` is standard input [default: -]
    #[arg(value_name = "FILE")]
    pub inputs: Vec<String>,
    /// Split each line at the first of this: key before, value after
    #[arg(long, short = 'K', value_name = "TEXT", conflicts_with_all = ["json", "raw", "key"])]
    pub key_separator: Option<String>,
    /// Key of every record
    #[arg(long, short, value_name = "KEY", conflicts_with = "json")]
    pub key: Option<String>,
    /// Header of every record; may be given more than once
    #[arg(
        long = "header",
        short = 'H',
        value_name = "K=V",
        conflicts_with = "json"
    )]
    pub headers: Vec<String>,
    /// Partition of every record [default: by key, else spread]
    #[arg(long, short, value_name = "N")]
    pub partition: Option<i32>,
    /// Compress the batches
    #[arg(long, short = 'z', value_enum, default_value = "none")]
    pub compression: CompressionArg,
    /// Acknowledgement to wait for
    #[arg(long, value_enum, default_value = "all", allow_hyphen_values = true)]
    pub acks: AcksArg,
    /// Lines are JSON records as `consume --json` writes them
    #[arg(long, conflicts_with = "raw")]
    pub json: bool,
    /// With --json: choose the partition by key, not as the record says
    #[arg(long, requires = "json")]
    pub repartition: bool,
    /// The whole of each input is one record
    #[arg(long)]
    pub raw: bool,
    /// Without the producer id and sequence numbers that make retries safe
    #[arg(long)]
    pub no_idempotence: bool,
    /// Print a JSON line for each acknowledged record: input line, partition, offset
    #[arg(long)]
    pub report: bool,
    /// The broker.
    #[command(flatten)]
    pub broker: BrokerArgs,
}

/// `consume`.
#[derive(Args, Debug)]
#[command(
    after_help = "OFFSET is a number; -N means N before the end. TIME is milliseconds since \
    1970, a date such as 2026-11-30 or 2026-11-30T19:30:00Z, or an age such as -90s, -15m, -2h, \
    -7d.\n\
    Format: %k key, %v value, %h headers, %o offset, %p partition, %T timestamp in ms, %t topic, \
    %K %V lengths, %% percent; \\n \\t \\0 \\xNN. Modifiers: %v{hex}, %v{base64}, %k{json}, \
    %T{iso}."
)]
pub struct ConsumeArgs {
    /// The topic
    pub topic: String,
    /// Where to begin: beginning, end, OFFSET or @TIME
    #[arg(
        long,
        short = 'o',
        value_name = "WHERE",
        default_value = "beginning",
        allow_hyphen_values = true
    )]
    pub from: String,
    /// Where to stop, not included: end (as it is now), OFFSET or @TIME
    #[arg(long, short, value_name = "WHERE", allow_hyphen_values = true)]
    pub until: Option<String>,
    /// Only this partition; may be given more than once
    #[arg(long, short, value_name = "N")]
    pub partition: Vec<i32>,
    /// Stop after so many records
    #[arg(long, short = 'n', value_name = "N")]
    pub count: Option<u64>,
    /// Wait for further records (the default without --until and --count)
    #[arg(long, short = 'F', conflicts_with = "until")]
    pub follow: bool,
    /// How to write a record [default: "%v\n"]
    #[arg(long, short, value_name = "FORMAT", conflicts_with_all = ["json", "raw"])]
    pub format: Option<String>,
    /// Write JSON lines that `produce --json` reads back
    #[arg(long, conflicts_with = "raw")]
    pub json: bool,
    /// Write values only, with nothing between them
    #[arg(long)]
    pub raw: bool,
    /// The broker.
    #[command(flatten)]
    pub broker: BrokerArgs,
}

/// `dump`.
#[derive(Args, Debug)]
#[command(
    after_help = "The broker also writes a dump into a file (see `penstock config dump_file`) \
                  when it stops and when it is sent SIGUSR1."
)]
pub struct DumpArgs {
    /// HTTP address of the broker
    #[arg(
        long,
        value_name = "ADDR",
        env = "PENSTOCK_HTTP",
        default_value = "127.0.0.1:9080"
    )]
    pub http: String,
    /// Read a dump from a file instead; of one a line, the last
    #[arg(long, value_name = "FILE", conflicts_with_all = ["diff", "interval", "follow"])]
    pub file: Option<String>,
    /// Print what happened between two dumps in files, with rates
    #[arg(long, num_args = 2, value_names = ["EARLIER", "LATER"],
        conflicts_with_all = ["interval", "follow"])]
    pub diff: Option<Vec<String>>,
    /// Print what happens in the next S seconds, with rates
    #[arg(long, value_name = "S")]
    pub interval: Option<f64>,
    /// Print a whole dump a line every --interval seconds (1 by default), for `top --from`
    #[arg(long)]
    pub follow: bool,
    /// With --follow: stop after so many
    #[arg(long, value_name = "N", requires = "follow")]
    pub count: Option<u64>,
    /// Without the encoded histograms that make dumps mergeable
    #[arg(long)]
    pub brief: bool,
}

/// `top`.
#[derive(Args, Debug)]
pub struct TopArgs {
    /// HTTP address of the broker
    #[arg(
        long,
        value_name = "ADDR",
        env = "PENSTOCK_HTTP",
        default_value = "127.0.0.1:9080"
    )]
    pub http: String,
    /// Seconds between two looks
    #[arg(long, value_name = "S", default_value = "1")]
    pub interval: f64,
    /// Play back a file that `dump --follow` wrote
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Print one frame as text and end, as when the output is no terminal
    #[arg(long, visible_alias = "plain")]
    pub once: bool,
    /// Size of the frame [default: the terminal's; without one 80 columns, as many rows as needed]
    #[arg(long, value_name = "COLUMNSxROWS")]
    pub size: Option<String>,
    /// Letters and digits only [default: as the locale can show]
    #[arg(long)]
    pub ascii: bool,
    /// What to show first
    #[arg(long, value_enum, default_value = "cores")]
    pub tab: TabArg,
}

/// The tabs of `top`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
#[expect(missing_docs, reason = "the names say all")]
pub enum TabArg {
    Cores,
    Topics,
    Groups,
}

/// `verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// The data directory
    #[arg(default_value = "./penstock-data", value_name = "DIR")]
    pub directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `probe`.
#[derive(Args, Debug)]
pub struct ProbeArgs {
    /// A folder on the disk; a file is made in it and removed
    #[arg(default_value = ".", value_name = "DIR")]
    pub directory: PathBuf,
    /// Time for each measurement, in seconds
    #[arg(long, value_name = "S", default_value = "2")]
    pub seconds: u64,
    /// Size of the file, in MiB
    #[arg(long, value_name = "MIB", default_value = "256")]
    pub size_mib: u64,
    /// Only these measurements, by their names in the JSON
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `tune`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 nothing to change (or applied, or undone), 1 misuse or a \
    setting that could not be written, 2 configuration, 3 something should be changed.\n\
    The settings are those of `serve`: the checks are made for the broker that it would start."
)]
pub struct TuneArgs {
    /// Only these checks
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Without these checks
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["script", "apply", "undo"])]
    pub json: bool,
    /// Print the changes as a shell script instead
    #[arg(long, conflicts_with_all = ["apply", "undo"])]
    pub script: bool,
    /// Make the changes (root); they last until the host is restarted
    #[arg(long, conflicts_with = "undo")]
    pub apply: bool,
    /// Do not ask
    #[arg(long, short, requires = "apply")]
    pub yes: bool,
    /// Give every setting that --apply changed what it had before (root)
    #[arg(long, conflicts_with_all = ["only", "skip"])]
    pub undo: bool,
    /// Where --apply records what was before
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/var/lib/penstock-tune.json"
    )]
    pub undo_file: PathBuf,
    /// Look at a copy of /proc and /sys below this folder instead of this host
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub root: PathBuf,
    /// The broker's settings.
    #[command(flatten)]
    pub config: ConfigArgs,
}
