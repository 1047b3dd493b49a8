//! The flags of `load`.

use super::{AcksArg, BrokerArgs, CompressionArg};
use crate::admin::load::report::{CompareArgs, FilesArgs, ReportArgs};
use crate::load::report::{Gate, GateError};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// How messages are spread within a rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalsArg {
    /// Evenly.
    Constant,
    /// As independent users would.
    Poisson,
}

/// Where consumers begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum FromArg {
    /// At the first record that is kept.
    Beginning,
    /// At the end as it is before the load begins.
    End,
}

/// `load`.
#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(
    args_conflicts_with_subcommands = true,
    // A script gives its own flags first, and the last of each counts.
    args_override_self = true,
    after_help = "RATE is messages a second over all producers: 5000, 20k, 1.5M; `max` is a closed \
    loop, as fast as the window of requests allows, and is reported as such.\n\
    TIME is 500ms, 10s, 5m or 1h. SIZE is 100, 1KiB; sizes are SIZE, A..B, zipf:A..B[:EXPONENT], \
    or a list with weights such as 100*9,10KiB*1. KEYS is none (each request of a producer goes to \
    the next partition), spread (each message does), round-robin:N, uniform:N or \
    zipf:N[:EXPONENT]. PAYLOAD is random, compress:SHARE (so much of it zeros) or file:PATH.\n\
    The response time counts from the moment a message was meant to be sent, whatever the broker \
    does; what was meant to be sent and never was is reported beside it.\n\
    Exit codes: 0 done, 1 misuse or the broker refused, 10 a --fail-if gate failed, 11 the load \
    generator was the limit, 12 a payload was lost, doubled, out of order or damaged, 13 nothing \
    was acknowledged, 14 sends failed."
)]
pub struct LoadArgs {
    /// The topic; with --topics, the beginning of their names
    #[arg(long, value_name = "NAME", default_value = "load")]
    pub topic: String,
    /// Spread over so many topics
    #[arg(long, value_name = "N", default_value = "1")]
    pub topics: u32,
    /// Partitions of each topic, if it has to be made
    #[arg(long, short, value_name = "N", default_value = "1")]
    pub partitions: i32,
    /// Do not make topics that are missing
    #[arg(long)]
    pub no_create: bool,
    /// Messages a second, or max
    #[arg(long, short, value_name = "RATE", default_value = "1000")]
    pub rate: String,
    /// Instead, these rates one after the other, each for --duration
    #[arg(long, value_name = "RATE,RATE,...", conflicts_with_all = ["rate", "ramp", "search"])]
    pub steps: Option<String>,
    /// Instead, a rate that grows evenly over --duration
    #[arg(long, value_name = "A..B", conflicts_with_all = ["rate", "search"])]
    pub ramp: Option<String>,
    /// Instead, find the highest rate at which this holds, such as 'p99<10ms'
    #[arg(long, value_name = "BOUND", conflicts_with = "rate")]
    pub search: Option<String>,
    /// With --search: where to begin
    #[arg(long, value_name = "RATE", default_value = "1000", requires = "search")]
    pub search_from: String,
    /// With --search: how long each step lasts; the answer is confirmed for --duration
    #[arg(long, value_name = "TIME", default_value = "3s", requires = "search")]
    pub search_step: String,
    /// How messages are spread within a rate
    #[arg(long, value_enum, default_value = "constant")]
    pub arrivals: ArrivalsArg,
    /// How long each rate lasts [default: 10s, or as long as --count takes]
    #[arg(long, short, value_name = "TIME")]
    pub duration: Option<String>,
    /// Before that: in the data, out of the summary
    #[arg(long, short, value_name = "TIME", default_value = "1s")]
    pub warm_up: String,
    /// Send so many messages, those of the warm-up included, and end
    #[arg(long, short = 'n', value_name = "N", conflicts_with_all = ["steps", "ramp", "search"])]
    pub count: Option<u64>,
    /// Producers of the whole load
    #[arg(long, value_name = "N", default_value = "1")]
    pub producers: u32,
    /// Sizes of the payloads
    #[arg(long, short, value_name = "SIZES", default_value = "1KiB")]
    pub size: String,
    /// Keys, and so partitions
    #[arg(long, value_name = "KEYS", default_value = "none")]
    pub keys: String,
    /// Bytes of the payloads
    #[arg(long, value_name = "PAYLOAD", default_value = "random")]
    pub payload: String,
    /// Acknowledgement to wait for
    #[arg(long, value_enum, default_value = "all", allow_hyphen_values = true)]
    pub acks: AcksArg,
    /// Without producer ids and sequence numbers
    #[arg(long)]
    pub no_idempotence: bool,
    /// Compress the batches
    #[arg(long, short = 'z', value_enum, default_value = "none")]
    pub compression: CompressionArg,
    /// A batch takes no further message beyond so many bytes
    #[arg(long, value_name = "SIZE", default_value = "16KiB")]
    pub batch_bytes: String,
    /// A request takes at most so many messages
    #[arg(long, value_name = "N")]
    pub batch_messages: Option<usize>,
    /// Microseconds that a message waits for others to fill its batch
    #[arg(long, value_name = "US", default_value = "0")]
    pub linger_us: u64,
    /// Requests on their way at once, for each connection
    #[arg(long, value_name = "N", default_value = "5")]
    pub in_flight: usize,
    /// Consumers, among whom the partitions are shared out; 0 for none
    #[arg(long, value_name = "N", default_value = "0")]
    pub consumers: u32,
    /// Independent sets of so many consumers: each reads every message
    #[arg(long, value_name = "N", default_value = "1")]
    pub consume_times: u32,
    /// Read only: from the beginning to the end as it is now, or new messages for --duration
    #[arg(long)]
    pub consume_only: bool,
    /// Where consumers begin [default: end; beginning with --consume-only]
    #[arg(long, value_enum)]
    pub from: Option<FromArg>,
    /// Check every payload: nothing lost, doubled, out of order or damaged
    #[arg(long)]
    pub verify: bool,
    /// Most bytes of one fetch
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    pub fetch_bytes: String,
    /// Most bytes of one partition in one fetch
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    pub fetch_partition_bytes: String,
    /// Fewest bytes worth an answer to a fetch
    #[arg(long, value_name = "SIZE", default_value = "1")]
    pub fetch_min_bytes: String,
    /// How long the broker may wait for them, in milliseconds
    #[arg(long, value_name = "MS", default_value = "500")]
    pub fetch_wait_ms: i32,
    /// Send a request that failed again, up to so often
    #[arg(long, value_name = "N", default_value = "0")]
    pub retries: u32,
    /// How long a request may take, in milliseconds
    #[arg(long, value_name = "MS", default_value = "30000")]
    pub timeout_ms: u64,
    /// How long the end waits for the last answers and receipts, in milliseconds
    #[arg(long, value_name = "MS", default_value = "5000")]
    pub drain_ms: u64,
    /// Seed of every random choice [default: a random one, reported]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Generator threads, each on a CPU of its own: a number, or a list such as 0,2-3 (one CPU: 2,)
    /// [default: one for each CPU]
    #[arg(long, value_name = "N|LIST")]
    pub workers: Option<String>,
    /// Length of an interval, in milliseconds [default: 1000, longer for runs over 10 minutes]
    #[arg(long, value_name = "MS")]
    pub interval_ms: Option<u64>,
    /// This process is part I of N that make one load together: give all of them the same flags,
    /// --seed and --start-at among them
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    pub part: String,
    /// Begin at this moment, milliseconds since 1970
    #[arg(long, value_name = "UNIX_MS")]
    pub start_at: Option<u64>,
    /// HTTP address of the broker, if it is a Penstock: its own figures go beside ours
    #[arg(long, value_name = "ADDR", env = "PENSTOCK_HTTP")]
    pub broker_http: Option<String>,
    /// Measure a bare write + flush in this folder first: the machine's own limit
    #[arg(long, value_name = "DIR")]
    pub probe: Option<PathBuf>,
    /// What the broker promises, for the report
    #[arg(long, value_name = "TEXT", default_value = "not stated")]
    pub durability: String,
    /// Fail when this is crossed, such as p99>10ms or errors>0; may be given more than once
    #[arg(long = "fail-if", value_name = "THRESHOLD", value_parser = threshold)]
    pub fail_if: Vec<String>,
    /// Where the report goes.
    #[command(flatten)]
    #[serde(flatten)]
    pub files: FilesArgs,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
    /// The broker.
    #[command(flatten)]
    #[serde(flatten)]
    pub broker: BrokerArgs,
    /// Instead of a load: reports of loads that were.
    #[command(subcommand)]
    #[serde(skip)]
    pub told: Option<ToldVerb>,
}

/// Reports without a broker.
#[derive(Clone, Debug, Subcommand)]
pub enum ToldVerb {
    /// Make the report of a load, or of several, again from its logs
    Report(ReportArgs),
    /// Set measurements of several systems side by side
    Compare(CompareArgs),
}

/// A threshold that can be read, as it was written.
fn threshold(text: &str) -> Result<String, GateError> {
    Gate::parse(text).map(|gate| gate.text().to_owned())
}
