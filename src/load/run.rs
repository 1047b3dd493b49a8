//! What one run of the load generator was and saw. Every output — table, JSON, `.hgrm`, `.hlog`,
//! CSV, page — is made from this and from nothing else, so that they tell one story.
//!
//! A message is counted in the interval, step and phase of its **intended** send: its answer may
//! come much later, and still belongs there. So every interval is complete by itself:
//!
//! ```text
//! offered = sent + unsent        sent = acknowledged + failed + unanswered
//! ```
//!
//! Two counts go by the clock instead, because a rate over time needs them:
//! [`Counts::acknowledged_meanwhile`] and [`Counts::received_meanwhile`]. What comes after the end
//! of the last interval is counted in it.
//!
//! Intervals lie on a grid that starts at [`Run::began_unix_us`], so that runs split over
//! processes add up: merging is the sum of counts and of histograms, interval by interval.
//!
//! Invariants: intervals are ordered by `at_ms` and do not overlap; each lies in one step and one
//! phase; the sums above hold in each.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Smallest latency told apart, in microseconds.
pub const LATENCY_US_MIN: u64 = 1;
/// Largest latency told apart, in microseconds: an hour. Longer ones count as this one.
pub const LATENCY_US_MAX: u64 = 3_600_000_000;
/// Significant decimal digits of every latency.
pub const LATENCY_DIGITS: u8 = 3;

/// An empty latency histogram, in microseconds.
#[must_use]
pub fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(LATENCY_US_MIN, LATENCY_US_MAX, LATENCY_DIGITS)
        .expect("the bounds are constants that fit")
}

/// The same, but only as large as what is recorded asks for: a run has five for each interval, and
/// few of them meet an hour. `record` lets it grow; `saturating_record` does not.
#[must_use]
pub fn growing_histogram() -> Histogram<u64> {
    let most = 2 * LATENCY_US_MIN;
    let mut histogram = Histogram::new_with_bounds(LATENCY_US_MIN, most, LATENCY_DIGITS)
        .expect("the bounds are constants that fit");
    histogram.auto(true);
    histogram
}

/// One run.
#[derive(Debug)]
pub struct Run {
    /// When the first interval began, microseconds since 1970.
    pub began_unix_us: u64,
    /// What ran where, so that it can be repeated.
    pub about: About,
    /// The rates that were offered, in order; at least one.
    pub steps: Vec<Step>,
    /// The time line.
    pub intervals: Vec<Interval>,
    /// Failed sends by the error's name.
    pub failures: Vec<Failure>,
    /// What happened that a reader of the time line should see.
    pub events: Vec<Event>,
    /// How long it took before the first interval, reported apart.
    pub setup: Setup,
    /// What the check of every received payload found; `None` when it was not asked for or nothing
    /// was consumed.
    pub verification: Option<Verification>,
    /// How it ended.
    pub ended: Ended,
}

/// Where the figures come from.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct About {
    /// The exact command.
    pub command: String,
    /// Our version and commit.
    pub version: String,
    /// Kernel release.
    pub kernel: String,
    /// Processor model and how many we may use.
    pub cpu: String,
    /// Name and version of the broker as far as it tells, and its advertised addresses.
    pub broker: String,
    /// The broker's durability as stated by the user or by the broker (`--durability`).
    pub durability: String,
    /// Clock source of the kernel.
    pub clock_source: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// The whole plan: every setting by its flag's name, defaults included.
    pub plan: serde_json::Map<String, serde_json::Value>,
    /// Busy share of each generator worker, 0 to 1, over the measured phase: all time not spent
    /// waiting for sockets and timers, so it includes waiting for a CPU.
    pub worker_busy: Vec<f64>,
    /// The machine's own bare 4 KiB write + flush, when it was measured (`--probe DIR`).
    pub floor: Option<Floor>,
}

/// The machine's own limit.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Floor {
    /// Median of a bare write + flush.
    pub p50_us: u64,
    /// 99th percentile of it.
    pub p99_us: u64,
}

/// One offered rate.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Step {
    /// Its name in the report: `1`, `2`, … or `confirm`.
    pub name: String,
    /// Messages a second; for a ramp, the rate at its start. `None`: as fast as the window allows
    /// (closed loop, and the report says so).
    pub rate_per_s: Option<f64>,
    /// For a ramp, the rate at its end.
    pub rate_until_per_s: Option<f64>,
    /// When it began, from the start of the run.
    pub at_ms: u64,
    /// How long it lasted.
    pub length_ms: u64,
    /// What the search made of it; `None` when there was no search.
    pub verdict: Option<StepVerdict>,
}

/// Whether a step of a search met its bound.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepVerdict {
    /// Met, and the rate was kept.
    Held,
    /// The latency bound was broken, or answers did not keep up.
    Broken,
    /// Sends failed.
    Errors,
    /// We could not keep the schedule, so the step says nothing about the broker.
    GeneratorLimited,
}

/// Whether an interval is in the summary.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// In the data, out of the summary.
    WarmUp,
    /// In both.
    Measured,
}

/// One stretch of the time line, by default a second.
#[derive(Debug)]
pub struct Interval {
    /// When it began, from the start of the run.
    pub at_ms: u64,
    /// How long it is; the last one may be short.
    pub length_ms: u64,
    /// Which of [`Run::steps`].
    pub step: usize,
    /// Whether it is in the summary.
    pub phase: Phase,
    /// How many of everything.
    pub counts: Counts,
    /// How long everything took.
    pub latencies: Latencies,
    /// The broker's own figures, when it is one of ours and its HTTP address is known.
    pub broker: Option<BrokerSample>,
}

/// Numbers of messages and bytes of one interval.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Counts {
    /// Messages whose intended send lies here.
    pub offered: u64,
    /// Of those, handed to a socket.
    pub sent: u64,
    /// Of those sent, acknowledged; without acknowledgements (acks 0), all that were sent.
    pub acknowledged: u64,
    /// Of those sent, answered with an error, or lost with their connection.
    pub failed: u64,
    /// Of those sent, without any answer at the end.
    pub unanswered: u64,
    /// Bytes of keys and values of the acknowledged ones.
    pub acknowledged_bytes: u64,
    /// Of those offered, received by a consumer (once per group of consumers).
    pub received: u64,
    /// Of those, received before their intended send by the clocks: never clamped, only counted.
    pub negative: u64,
    /// Messages of any interval acknowledged while this one lasted.
    pub acknowledged_meanwhile: u64,
    /// Messages of any interval received while this one lasted.
    pub received_meanwhile: u64,
    /// Bytes of keys and values of [`Self::received_meanwhile`].
    pub received_meanwhile_bytes: u64,
    /// Most messages sent and not answered at once, summed over workers.
    pub in_flight_max: u64,
}

/// The histograms of one interval, in microseconds ([`latency_histogram`]).
#[derive(Debug)]
pub struct Latencies {
    /// From the intended send to the acknowledgement; successes only.
    pub response: Histogram<u64>,
    /// From the actual send (the last byte handed to the socket) to the acknowledgement; successes
    /// only.
    pub service: Histogram<u64>,
    /// From the intended send until the end of the run, of messages without an answer: each is "at
    /// least this long", and the percentiles of `response` are told with them included.
    pub unanswered: Histogram<u64>,
    /// From the intended send to the receipt by a consumer.
    pub end_to_end: Histogram<u64>,
    /// The generator's own lag: until handed to the socket, counted from the intended send or, if
    /// that is later, from the moment the way was free: connected, room in the window of requests,
    /// room in the socket. What is waited before that is the broker's doing and shows in `response`
    /// alone. The way counts as free from the earliest moment at which the generator could have
    /// noticed, so that a generator too busy to look blames itself.
    pub schedule_lag: Histogram<u64>,
}

/// What a Penstock broker says of itself over one interval.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct BrokerSample {
    /// Device flushes a second, all cores.
    pub flushes_per_s: f64,
    /// 99th percentile of a flush (or of a block's durable write).
    pub flush_p99_us: u64,
    /// Messages per block.
    pub entries_per_block: f64,
    /// CPU of the broker, in cores.
    pub cpu_cores: f64,
}

/// Sends that failed in one way.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Failure {
    /// The Kafka error's name, such as `NOT_LEADER_OR_FOLLOWER`, or `CONNECTION_LOST`,
    /// `REQUEST_TIMED_OUT` for what never came back.
    pub error: String,
    /// Messages.
    pub count: u64,
    /// First time, from the start of the run.
    pub first_ms: u64,
    /// Last time, from the start of the run.
    pub last_ms: u64,
}

impl Failure {
    /// Adds these failures, which were told `later_ms` from another beginning, to `all`.
    pub fn add_to(mut self, all: &mut Vec<Failure>, later_ms: u64) {
        self.first_ms += later_ms;
        self.last_ms += later_ms;
        match all.iter_mut().find(|known| known.error == self.error) {
            Some(known) => {
                known.count += self.count;
                known.first_ms = known.first_ms.min(self.first_ms);
                known.last_ms = known.last_ms.max(self.last_ms);
            }
            None => all.push(self),
        }
    }
}

/// A moment worth a mark on the time line.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Event {
    /// When, from the start of the run.
    pub at_ms: u64,
    /// What kind.
    pub kind: EventKind,
    /// In words, one line.
    pub text: String,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A connection to the broker was lost.
    BrokerLost,
    /// And came back.
    BrokerBack,
    /// No answer at all for more than 100 ms while some were due.
    Stall,
    /// The warm-up ended.
    WarmUpEnd,
    /// Another rate began.
    StepChange,
    /// Ctrl-C.
    Interrupted,
}

/// Time spent before the first message.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Setup {
    /// Making topics, connecting, reading metadata.
    pub connect_ms: u64,
    /// Consumers joining their group; `None` without groups.
    pub join_ms: Option<u64>,
    /// From the consumers' first request to their first record; `None` when none came.
    pub first_fetch_ms: Option<u64>,
}

/// What checking every received payload found.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Verification {
    /// Payloads received and proven.
    pub proven: u64,
    /// Acknowledged and never received.
    pub lost: u64,
    /// Received more than once by one group.
    pub duplicated: u64,
    /// Received behind a later one of the same producer and partition.
    pub reordered: u64,
    /// Whose bytes are not what was sent.
    pub damaged: u64,
    /// That we did not send.
    pub foreign: u64,
    /// The first few findings, one line each.
    pub examples: Vec<String>,
}

impl Verification {
    /// Whether nothing is wrong and something was proven.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.proven > 0
            && self.lost == 0
            && self.duplicated == 0
            && self.reordered == 0
            && self.damaged == 0
            && self.foreign == 0
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// As planned.
    Completed,
    /// By Ctrl-C; everything until then is there.
    Interrupted,
    /// No connection to the broker came back.
    BrokerLost,
}

impl Counts {
    /// Adds another process's or worker's counts of the same interval.
    pub fn add(&mut self, other: &Counts) {
        self.offered += other.offered;
        self.sent += other.sent;
        self.acknowledged += other.acknowledged;
        self.failed += other.failed;
        self.unanswered += other.unanswered;
        self.acknowledged_bytes += other.acknowledged_bytes;
        self.received += other.received;
        self.negative += other.negative;
        self.acknowledged_meanwhile += other.acknowledged_meanwhile;
        self.received_meanwhile += other.received_meanwhile;
        self.received_meanwhile_bytes += other.received_meanwhile_bytes;
        self.in_flight_max += other.in_flight_max;
    }
}

impl Latencies {
    /// All empty.
    #[must_use]
    pub fn new() -> Latencies {
        Latencies {
            response: latency_histogram(),
            service: latency_histogram(),
            unanswered: latency_histogram(),
            end_to_end: latency_histogram(),
            schedule_lag: latency_histogram(),
        }
    }

    /// All empty, each only as large as what is recorded asks for.
    #[must_use]
    pub fn growing() -> Latencies {
        Latencies {
            response: growing_histogram(),
            service: growing_histogram(),
            unanswered: growing_histogram(),
            end_to_end: growing_histogram(),
            schedule_lag: growing_histogram(),
        }
    }

    /// Adds another process's or worker's latencies of the same interval.
    pub fn add(&mut self, other: &Latencies) {
        let pairs = [
            (&mut self.response, &other.response),
            (&mut self.service, &other.service),
            (&mut self.unanswered, &other.unanswered),
            (&mut self.end_to_end, &other.end_to_end),
            (&mut self.schedule_lag, &other.schedule_lag),
        ];
        for (mine, theirs) in pairs {
            mine.add(theirs)
                .expect("latency histograms grow as they must");
        }
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies::new()
    }
}
