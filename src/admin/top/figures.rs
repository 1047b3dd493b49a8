//! The numbers of a frame, worked out from two dumps. What needs an interval is `None` while there
//! is only one dump.

use crate::metrics::{CoreSnapshot, Dump, HistogramSnapshot, Reading};

/// From one dump to the next.
pub struct Step<'a> {
    /// The one before, if there is one of the same process.
    pub earlier: Option<&'a Dump>,
    /// The newest.
    pub now: &'a Dump,
    /// What happened between them.
    pub since: Option<Dump>,
}

impl<'a> Step<'a> {
    /// Works the difference out, once for all who need it.
    #[must_use]
    pub fn new(earlier: Option<&'a Dump>, now: &'a Dump) -> Step<'a> {
        Step {
            earlier,
            now,
            since: earlier.map(|earlier| now.since(earlier)),
        }
    }
}

/// What is shown of one core, or of all.
#[derive(Clone, Debug, Default)]
pub struct CoreFigures {
    /// The core.
    pub core: u16,
    /// Share of the time that its thread was on the CPU.
    pub busy: Option<f64>,
    /// Records accepted a second.
    pub in_per_s: Option<f64>,
    /// Bytes of record batches accepted a second.
    pub in_bytes_per_s: Option<f64>,
    /// Records served a second.
    pub out_per_s: Option<f64>,
    /// Bytes of record batches served a second.
    pub out_bytes_per_s: Option<f64>,
    /// Blocks made durable a second.
    pub flushes_per_s: Option<f64>,
    /// Entries in a block, on average.
    pub entries_per_block: Option<f64>,
    /// 99th percentile of making one block durable, in ns.
    pub flush_p99_ns: Option<u64>,
    /// Parts of requests sent on to another core, a second.
    pub forwarded_per_s: Option<f64>,
    /// Open connections.
    pub connections: u64,
    /// Memory held: requests, answers, staged and recent blocks, in bytes.
    pub memory_bytes: u64,
}

/// What is shown of one topic.
#[derive(Clone, Debug, Default)]
pub struct TopicLine {
    /// Its name.
    pub name: String,
    /// Its partitions.
    pub partitions: u64,
    /// Records accepted a second.
    pub in_per_s: Option<f64>,
    /// Bytes accepted a second.
    pub in_bytes_per_s: Option<f64>,
    /// Records served a second.
    pub out_per_s: Option<f64>,
    /// Bytes served a second.
    pub out_bytes_per_s: Option<f64>,
    /// Records that can be read.
    pub log_records: u64,
    /// Their bytes.
    pub log_bytes: u64,
}

/// Everything a frame shows.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Each core.
    pub cores: Vec<CoreFigures>,
    /// All of them.
    pub total: CoreFigures,
    /// What the time of produce requests went into, as shares of 1, largest first.
    pub waiting: Vec<(&'static str, f64)>,
    /// The busiest core against the mean.
    pub imbalance: Option<f64>,
    /// Share of the CPUs' time that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// The topics that the dump lists.
    pub topics: Vec<TopicLine>,
    /// How many it does not list.
    pub topics_omitted: u64,
}

/// Below this the busiest core is not busy, and a ratio would be noise.
const BUSY_LEAST: f64 = 0.05;

impl Figures {
    /// The figures at the end of a step, with the rates of it.
    #[must_use]
    pub fn of(step: &Step<'_>) -> Figures {
        let (now, since) = (step.now, &step.since);
        let seconds = since.as_ref().map(|since| since.uptime_ms as f64 / 1000.0);
        let interval = since.as_ref().zip(seconds.filter(|seconds| *seconds > 0.0));
        let cores: Vec<CoreFigures> = now
            .cores
            .iter()
            .map(|core| {
                let interval = interval.and_then(|(since, seconds)| {
                    let since = since.cores.iter().find(|since| since.core == core.core);
                    since.zip(Some(seconds))
                });
                core_figures(core, interval)
            })
            .collect();
        let sum = interval.map(|(since, seconds)| (since.total(), seconds));
        let sum = sum.as_ref().map(|(since, seconds)| (since, *seconds));
        Figures {
            imbalance: imbalance(&cores),
            total: core_figures(&now.total(), sum),
            waiting: sum.map_or_else(Vec::new, |(since, _)| waiting(since)),
            steal: steal(step.earlier, now),
            topics: topics(interval, now),
            topics_omitted: now.topics.omitted,
            cores,
        }
    }
}

fn counter(core: &CoreSnapshot, group: &str, name: &str) -> u64 {
    match core.reading(group, name) {
        Some(Reading::Counter(count)) => *count,
        Some(Reading::Gauge(value)) => u64::try_from(*value).unwrap_or(0),
        other => panic!("{group}.{name} is no number: {other:?}"),
    }
}

/// A distribution of the table.
pub(super) fn histogram<'a>(
    core: &'a CoreSnapshot,
    group: &str,
    name: &str,
) -> &'a HistogramSnapshot {
    match core.reading(group, name) {
        Some(Reading::Histogram(histogram)) => histogram,
        other => panic!("{group}.{name} is no distribution: {other:?}"),
    }
}

/// What it took to make blocks durable: flushes where there are any, else the writes themselves.
pub(super) fn flushes(core: &CoreSnapshot) -> &HistogramSnapshot {
    let flush = histogram(core, "journal", "flush");
    if flush.counts.is_empty() {
        histogram(core, "journal", "write")
    } else {
        flush
    }
}

fn core_figures(now: &CoreSnapshot, interval: Option<(&CoreSnapshot, f64)>) -> CoreFigures {
    let rate = |group: &str, name: &str| {
        interval.map(|(since, seconds)| counter(since, group, name) as f64 / seconds)
    };
    let since = interval.map(|(since, _)| since);
    let ratio = |above: (&str, &str), below: (&str, &str)| {
        let since = since?;
        let below = counter(since, below.0, below.1);
        (below > 0).then(|| counter(since, above.0, above.1) as f64 / below as f64)
    };
    let durable = since.map(|since| &flushes(since).counts);
    CoreFigures {
        core: now.core,
        busy: ratio(("runtime", "cpu"), ("runtime", "wall")),
        in_per_s: rate("produce", "records"),
        in_bytes_per_s: rate("produce", "accepted"),
        out_per_s: rate("fetch", "records"),
        out_bytes_per_s: rate("fetch", "served"),
        flushes_per_s: interval
            .map(|(since, seconds)| flushes(since).counts.len() as f64 / seconds),
        entries_per_block: ratio(("journal", "entries"), ("journal", "blocks")),
        flush_p99_ns: durable
            .filter(|counts| !counts.is_empty())
            .map(|counts| counts.value_at_quantile(0.99)),
        forwarded_per_s: rate("forward", "sent"),
        connections: counter(now, "connections", "open"),
        memory_bytes: counter(now, "admission", "used")
            + counter(now, "journal", "staged")
            + counter(now, "journal", "cached"),
    }
}

/// Where the time of produce requests went. The stages are those of the metrics, put together by
/// what would make them shorter: a better disk, more CPU, the network and the client, memory.
fn waiting(since: &CoreSnapshot) -> Vec<(&'static str, f64)> {
    let sum = |names: &[&str]| -> u64 {
        let one = |name: &&str| histogram(since, "stages", name).sum;
        names.iter().map(one).sum()
    };
    let parts = [
        ("flush", sum(&["staged", "write", "flush", "order"])),
        ("cpu", sum(&["append", "reply"])),
        ("net", sum(&["read"])),
        ("memory", sum(&["admission"])),
    ];
    let whole: u64 = parts.iter().map(|(_, ns)| ns).sum();
    if whole == 0 {
        return Vec::new();
    }
    let mut shares: Vec<(&str, f64)> = parts
        .iter()
        .map(|(name, ns)| (*name, *ns as f64 / whole as f64))
        .collect();
    shares.sort_by(|left, right| right.1.total_cmp(&left.1));
    shares.retain(|(name, share)| *share >= 0.005 || *name != "memory");
    shares
}

fn imbalance(cores: &[CoreFigures]) -> Option<f64> {
    let busy: Vec<f64> = cores.iter().filter_map(|core| core.busy).collect();
    let most = busy.iter().copied().fold(0.0, f64::max);
    let mean = busy.iter().sum::<f64>() / busy.len().max(1) as f64;
    (busy.len() > 1 && most >= BUSY_LEAST).then(|| most / mean)
}

fn steal(earlier: Option<&Dump>, now: &Dump) -> Option<f64> {
    let earlier = earlier?;
    let of = |dump: &Dump| dump.process["host"]["cpus_steal_us"].as_u64();
    let stolen_us = of(now)?.checked_sub(of(earlier)?)?;
    let passed_ms = u64::try_from(now.unix_ms - earlier.unix_ms).ok()?;
    // Cores that share a CPU count it once.
    let mut cpus: Vec<u32> = now.cores.iter().map(|core| core.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let whole_us = passed_ms * 1000 * cpus.len() as u64;
    (whole_us > 0).then(|| stolen_us as f64 / whole_us as f64)
}

fn topics(interval: Option<(&Dump, f64)>, now: &Dump) -> Vec<TopicLine> {
    let lines = now.topics.listed.iter().enumerate().map(|(index, topic)| {
        let since = interval.and_then(|(since, seconds)| {
            // `since` lists the topics of `now`, in the same order.
            let since = since.topics.listed.get(index)?;
            (since.id == topic.id).then_some((since, seconds))
        });
        let rate = |of: fn(&crate::metrics::TopicFigures) -> u64| {
            since.map(|(since, seconds)| of(since) as f64 / seconds)
        };
        TopicLine {
            name: topic.name.clone(),
            partitions: topic.partitions,
            in_per_s: rate(|topic| topic.in_records),
            in_bytes_per_s: rate(|topic| topic.in_bytes),
            out_per_s: rate(|topic| topic.out_records),
            out_bytes_per_s: rate(|topic| topic.out_bytes),
            log_records: topic.log_records,
            log_bytes: topic.log_bytes,
        }
    });
    lines.collect()
}
