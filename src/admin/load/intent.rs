//! From flags to a plan: what was typed becomes what is meant, or is refused.

use super::texts;
use crate::admin::cli::{AcksArg, ArrivalsArg, LoadArgs};
use crate::admin::error::AdminError;
use crate::base::record_batch::{Codec, HEADER_BYTES};
use crate::env::{blocking, process};
use crate::limits;
use crate::load::conduct::StagePlan;
use crate::load::plan::message::{Filler, STAMP_BYTES, Sizes};
use crate::load::plan::schedule::{Arrivals, Schedule, Stretch};
use crate::load::plan::timeline::{Section, Timeline};
use crate::load::plan::{Consume, Plan, Produce, Target};
use crate::load::run::{Phase, Step};
use crate::load::search::Bound;
use crate::load::worker::Pace;
use std::path::Path;
use std::sync::Arc;

const MS: u64 = 1_000_000;
/// A load limited by number has no other end: the length of its last step is this.
const ENDLESS_NS: u64 = u64::MAX / 4;
const DURATION_DEFAULT_NS: u64 = 10_000 * MS;

/// The rates of a load.
#[derive(Clone, Debug)]
pub enum Rates {
    /// One after the other; `None` is a closed loop.
    Steps(Vec<Option<(f64, f64)>>),
    /// Nothing is sent.
    Silent,
    /// The highest that keeps a bound, from this one on, in steps of so many nanoseconds.
    Search(Bound, f64, u64),
}

/// Everything but the cluster.
#[derive(Clone, Debug)]
pub struct Intent {
    /// Seed of every random choice.
    pub seed: u64,
    /// The rates.
    pub rates: Rates,
    /// Length of each, in nanoseconds.
    pub length_ns: u64,
    /// Length of the warm-up, in nanoseconds.
    pub warm_up_ns: u64,
    /// Length of an interval, in nanoseconds.
    pub interval_ns: u64,
    /// Number of messages, if that is what ends the load.
    pub count: Option<u64>,
    /// How messages are spread within a rate.
    pub arrivals: Arrivals,
}

fn usage(problem: String) -> AdminError {
    AdminError::Usage(problem)
}

/// Reads the rates and times.
///
/// # Errors
/// `Usage`: they do not make sense.
pub fn read(args: &LoadArgs) -> Result<Intent, AdminError> {
    let rates = rates(args).map_err(usage)?;
    let warm_up_ns = texts::time_ns(&args.warm_up).map_err(usage)? / MS * MS;
    let length_ns = match (&args.duration, args.count) {
        (Some(text), _) => texts::time_ns(text).map_err(usage)?.max(MS) / MS * MS,
        (None, Some(_)) => ENDLESS_NS,
        (None, None) if args.consume_only => ENDLESS_NS,
        (None, None) => DURATION_DEFAULT_NS,
    };
    let steps = match &rates {
        Rates::Steps(steps) => steps.len() as u64,
        Rates::Silent | Rates::Search(..) => 1,
    };
    // Reading has nothing to warm up for, and would be over before that.
    let warm_up_ns = if args.consume_only { 0 } else { warm_up_ns };
    let whole_ns = warm_up_ns.saturating_add(length_ns.saturating_mul(steps));
    let interval_ns = match args.interval_ms {
        Some(0) => return Err(usage("an interval takes at least 1 ms".to_owned())),
        Some(ms) => ms * MS,
        None => {
            let whole_ns = match length_ns {
                ENDLESS_NS => counted_ns(args.count, &rates),
                _ => whole_ns,
            };
            let least = whole_ns.div_ceil(limits::LOAD_INTERVALS_MAX);
            least.max(1000 * MS).next_multiple_of(1000 * MS)
        }
    };
    Ok(Intent {
        seed: args.seed.unwrap_or_else(random_seed),
        rates,
        length_ns,
        warm_up_ns,
        interval_ns,
        count: args.count,
        arrivals: match args.arrivals {
            ArrivalsArg::Constant => Arrivals::Constant,
            ArrivalsArg::Poisson => Arrivals::Poisson,
        },
    })
}

/// How long a number of messages takes at a rate that is known, about.
fn counted_ns(count: Option<u64>, rates: &Rates) -> u64 {
    match (count, rates) {
        (Some(count), Rates::Steps(steps)) => match steps.first() {
            Some(Some((rate, _))) => (count as f64 / rate * 1e9) as u64,
            _ => 0,
        },
        _ => 0,
    }
}

/// Small enough to be typed again.
fn random_seed() -> u64 {
    u64::from(u32::from_le_bytes(process::random_bytes::<4>()))
}

fn rates(args: &LoadArgs) -> Result<Rates, String> {
    if args.consume_only {
        return Ok(Rates::Silent);
    }
    if let Some(text) = &args.ramp {
        let ends = texts::range(text, texts::rate)?;
        return Ok(Rates::Steps(vec![Some(ends)]));
    }
    if let Some(text) = &args.search {
        let (name, limit) = text
            .split_once('<')
            .ok_or_else(|| format!("`{text}` is no bound: 'p99<10ms' is"))?;
        let limit_us = texts::time_ns(limit)? / 1000;
        let bound = Bound::new(text, name.trim(), limit_us)?;
        let step_ns = texts::time_ns(&args.search_step)?.max(MS) / MS * MS;
        let from = texts::rate(&args.search_from)?;
        return Ok(Rates::Search(bound, from, step_ns));
    }
    let one = |text: &str| -> Result<Option<(f64, f64)>, String> {
        match text.trim() {
            "max" => Ok(None),
            text => texts::rate(text).map(|rate| Some((rate, rate))),
        }
    };
    let list = args.steps.as_deref().unwrap_or(&args.rate);
    let steps: Vec<_> = list.split(',').map(one).collect::<Result<_, _>>()?;
    if steps.len() > 1 && steps.iter().any(Option::is_none) {
        return Err("`max` is no step beside others".to_owned());
    }
    Ok(Rates::Steps(steps))
}

impl Intent {
    /// The one stage of a load whose rates are known beforehand.
    #[must_use]
    pub fn stage(&self) -> StagePlan {
        match &self.rates {
            Rates::Steps(steps) => self.stage_of(steps, |number| (number + 1).to_string()),
            Rates::Search(_, from, _) => self.search_stage(*from, self.length_ns, "confirm"),
            Rates::Silent => self.silent_stage(),
        }
    }

    /// One step of a search: it warms up anew, as every rate has its own settled state.
    #[must_use]
    pub fn search_stage(&self, rate: f64, length_ns: u64, name: &str) -> StagePlan {
        let mut intent = self.clone();
        intent.length_ns = length_ns;
        intent.warm_up_ns = self.warm_up_ns.min(length_ns / 2) / MS * MS;
        intent.stage_of(&[Some((rate, rate))], |_| name.to_owned())
    }

    fn silent_stage(&self) -> StagePlan {
        let mut stage = self.stage_of(&[None], |number| (number + 1).to_string());
        stage.pace = Pace::Silent {
            length_ns: self.length_ns,
        };
        stage.is_counted = self.length_ns == ENDLESS_NS;
        stage
    }

    fn stage_of(&self, rates: &[Option<(f64, f64)>], name: impl Fn(usize) -> String) -> StagePlan {
        let first = rates[0];
        let mut sections = vec![section(self.warm_up_ns, 0, Phase::WarmUp)];
        let mut stretches = Vec::new();
        let mut stretch = |length_ns: u64, ends: Option<(f64, f64)>| {
            if let (Some((rate_start, rate_end)), true) = (ends, length_ns > 0) {
                stretches.push(Stretch {
                    length_ns,
                    rate_start,
                    rate_end,
                });
            }
        };
        stretch(self.warm_up_ns, first.map(|(start, _)| (start, start)));
        let mut steps = Vec::new();
        let mut at_ns = self.warm_up_ns;
        for (number, ends) in rates.iter().enumerate() {
            stretch(self.length_ns, *ends);
            sections.push(section(self.length_ns, number, Phase::Measured));
            // The warm-up is a part of the first step.
            let (from_ns, length_ns) = match number {
                0 => (0, self.warm_up_ns + self.length_ns),
                _ => (at_ns, self.length_ns),
            };
            steps.push(Step {
                name: name(number),
                rate_per_s: ends.map(|(start, _)| start),
                rate_until_per_s: ends.filter(|(a, b)| a != b).map(|(_, end)| end),
                at_ms: from_ns / MS,
                length_ms: length_ns / MS,
                verdict: None,
            });
            at_ns += self.length_ns;
        }
        let pace = if first.is_some() {
            let schedule = Schedule::new(&stretches, self.arrivals, self.seed, self.count);
            Pace::Open(Arc::new(schedule))
        } else {
            Pace::Closed {
                length_ns: at_ns,
                count: self.count,
            }
        };
        StagePlan {
            pace,
            timeline: Arc::new(Timeline::new(self.interval_ns, &sections)),
            measured_from_ns: self.warm_up_ns,
            is_counted: self.count.is_some(),
            steps,
        }
    }
}

fn section(length_ns: u64, step: usize, phase: Phase) -> Section {
    Section {
        length_ns,
        step,
        phase,
    }
}

/// The plan of a load on a cluster.
///
/// # Errors
/// `Usage`: flags that do not make sense, or not together.
pub fn plan(args: &LoadArgs, intent: &Intent, target: Target) -> Result<Plan, AdminError> {
    let allowed = process::affinity_cpus();
    let mut cpus = texts::cpus(args.workers.as_deref(), &allowed).map_err(usage)?;
    let produce = match intent.rates {
        Rates::Silent => None,
        Rates::Steps(_) | Rates::Search(..) => Some(produce(args, intent)?),
    };
    let consume = consume(args)?;
    let is_stamped = produce.as_ref().is_none_or(|produce| produce.stamped);
    if consume.is_some() && !is_stamped {
        return Err(usage(format!(
            "a message is told again only if it has {STAMP_BYTES} bytes at least (--size)"
        )));
    }
    if args.verify && (consume.is_none() || produce.is_none()) {
        return Err(usage(
            "--verify checks what this load sends and reads: it needs --consumers".to_owned(),
        ));
    }
    // A worker with nobody to work for would only take a CPU.
    let producers = produce.as_ref().map_or(0, |produce| produce.own().count());
    let consumers = consume.as_ref().map_or(0, |one| one.sets * one.consumers);
    cpus.truncate((producers + consumers as usize).max(1));
    let seed = intent.seed;
    let start = args
        .start_at
        .unwrap_or_else(|| process::unix_ms().unsigned_abs());
    Ok(Plan {
        seed,
        run: run_number(seed, start),
        cpus,
        produce,
        consume,
        verify: args.verify,
        timeout_ns: args.timeout_ms.max(1) * MS,
        drain_ns: args.drain_ms * MS,
        interval_ns: intent.interval_ns,
        watched: false,
        target,
    })
}

/// Two runs have different numbers; the parts of one load have the same.
fn run_number(seed: u64, start_unix_ms: u64) -> u32 {
    (crate::load::plan::chance::mix(seed ^ start_unix_ms.rotate_left(20)) >> 32) as u32
}

fn produce(args: &LoadArgs, intent: &Intent) -> Result<Produce, AdminError> {
    let sizes = texts::sizes(&args.size).map_err(usage)?;
    let part = texts::part(&args.part).map_err(usage)?;
    if args.producers == 0 || part.1 > args.producers {
        return Err(usage(format!(
            "{} producers cannot be shared by {} processes",
            args.producers, part.1
        )));
    }
    if part.1 > 1 && (args.seed.is_none() || (args.consumers > 0 && args.start_at.is_none())) {
        return Err(usage(
            "the parts of one load know each other's messages by --seed and --start-at: give all \
             of them the same"
                .to_owned(),
        ));
    }
    let acks = match args.acks {
        AcksArg::Zero => 0,
        AcksArg::One => 1,
        AcksArg::All => -1,
    };
    let in_flight = args.in_flight;
    if in_flight == 0 || args.batch_messages == Some(0) {
        return Err(usage("a window of 0 sends nothing".to_owned()));
    }
    let idempotent = !args.no_idempotence && acks == -1;
    if idempotent && in_flight > 5 {
        return Err(usage(format!(
            "an idempotent producer has at most 5 requests on their way, not {in_flight}: a broker \
             remembers so many (--no-idempotence lifts that)"
        )));
    }
    Ok(Produce {
        producers: args.producers,
        part,
        arrivals: intent.arrivals,
        filler: filler(&args.payload, &sizes, intent.seed)?,
        stamped: Produce::can_be_stamped(&sizes),
        sizes,
        keys: texts::keys(&args.keys).map_err(usage)?,
        acks,
        idempotent,
        codec: codec_of(args),
        batch_bytes: texts::bytes(&args.batch_bytes)
            .map_err(usage)?
            .max(HEADER_BYTES),
        batch_messages: args.batch_messages.unwrap_or(usize::MAX),
        linger_ns: args.linger_us * 1000,
        in_flight,
        retries: args.retries,
    })
}

/// What is read, if anything.
fn consume(args: &LoadArgs) -> Result<Option<Consume>, AdminError> {
    let consumers = if args.consume_only {
        args.consumers.max(1)
    } else {
        args.consumers
    };
    if consumers == 0 {
        return Ok(None);
    }
    let size = |text: &str| -> Result<i32, AdminError> {
        let bytes = texts::bytes(text).map_err(usage)?;
        Ok(i32::try_from(bytes).expect("a size is below 16 MiB"))
    };
    Ok(Some(Consume {
        consumers,
        sets: args.consume_times.max(1),
        until_end: args.consume_only && args.duration.is_none(),
        fetch_bytes: size(&args.fetch_bytes)?,
        partition_bytes: size(&args.fetch_partition_bytes)?,
        min_bytes: size(&args.fetch_min_bytes)?,
        max_wait_ms: args.fetch_wait_ms.max(0),
    }))
}

fn codec_of(args: &LoadArgs) -> Codec {
    texts::codec(args.compression)
}

fn filler(text: &str, sizes: &Sizes, seed: u64) -> Result<Filler, AdminError> {
    let most = sizes.most();
    if text == "random" {
        return Ok(Filler::random(seed, most, 0.0));
    }
    if let Some(share) = text.strip_prefix("compress:") {
        let share = share.parse::<f64>().ok();
        let share = share.filter(|share| (0.0..=1.0).contains(share));
        let share = share.ok_or_else(|| usage(format!("`{text}`: a share is 0 to 1")))?;
        return Ok(Filler::random(seed, most, share));
    }
    let Some(path) = text.strip_prefix("file:") else {
        return Err(usage(format!(
            "`{text}` is none of random, compress:SHARE, file:PATH"
        )));
    };
    let sample = blocking::read_file(Path::new(path), limits::LOAD_SAMPLE_BYTES_MAX)
        .map_err(|error| AdminError::Input("payload".to_owned(), error))?;
    if sample.is_empty() {
        return Err(usage(format!("{path} is empty")));
    }
    Ok(Filler::sample(&sample, most, seed))
}
