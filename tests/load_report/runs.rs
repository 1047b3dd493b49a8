//! Runs as a generator would record them, made up by small simulations of a broker: each message
//! has an intended send, waits for room, is served, and is counted where it was meant to be sent.

use penstock::load::run::{
    About, BrokerSample, Counts, Ended, Event, EventKind, Failure, Floor, Interval, Latencies,
    Phase, Run, Setup, Step, StepVerdict, Verification,
};

/// A random number generator of our own, so that every picture is the same each time.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % bound.max(1)
    }

    /// From 0 to 1, never 0.
    pub fn share(&mut self) -> f64 {
        (self.below(1 << 40) + 1) as f64 / (1u64 << 40) as f64
    }

    /// A service time: exponential tail on a floor.
    pub fn service_us(&mut self, floor: f64, mean: f64) -> f64 {
        floor - self.share().ln() * mean
    }
}

/// Where synthetic runs began.
pub const BEGAN_UNIX_US: u64 = 1_796_078_160_000_000;

pub fn about(command: &str) -> About {
    let mut plan = serde_json::Map::new();
    plan.insert("rate".to_owned(), "10000".into());
    plan.insert(
        "fail-if".to_owned(),
        serde_json::json!(["p99>10ms", "errors>0"]),
    );
    About {
        command: command.to_owned(),
        version: "penstock 0.1.0 (1ac77fd)".to_owned(),
        kernel: "Linux 6.18.5".to_owned(),
        cpu: "EPYC 9454, 2 of 2 cores".to_owned(),
        broker: "Penstock 0.1.0 at 127.0.0.1:9092".to_owned(),
        durability: "every commit flushed".to_owned(),
        clock_source: "tsc".to_owned(),
        seed: 42,
        plan,
        worker_busy: vec![0.31, 0.284],
        floor: Some(Floor {
            p50_us: 95,
            p99_us: 260,
        }),
    }
}

pub fn empty_run() -> Run {
    Run {
        began_unix_us: BEGAN_UNIX_US,
        about: about("penstock load --rate 10000"),
        steps: vec![step("1", Some(10_000.0), 0, 10_000)],
        intervals: Vec::new(),
        failures: Vec::new(),
        events: Vec::new(),
        setup: Setup {
            connect_ms: 12,
            join_ms: None,
            first_fetch_ms: None,
        },
        verification: None,
        ended: Ended::Completed,
    }
}

pub fn step(name: &str, rate: Option<f64>, at_ms: u64, length_ms: u64) -> Step {
    Step {
        name: name.to_owned(),
        rate_per_s: rate,
        rate_until_per_s: None,
        at_ms,
        length_ms,
        verdict: None,
    }
}

pub fn interval(at_ms: u64, length_ms: u64, step: usize, phase: Phase) -> Interval {
    Interval {
        at_ms,
        length_ms,
        step,
        phase,
        counts: Counts::default(),
        latencies: Latencies::new(),
        broker: None,
    }
}

/// What a simulated broker does.
pub struct Broker {
    /// Service time without any queue: floor and mean of the tail, in microseconds.
    pub floor_us: f64,
    pub tail_us: f64,
    /// A share of slow messages and what they take in addition.
    pub slow: (f64, f64),
    /// Messages a second it can do at most.
    pub capacity_per_s: f64,
    /// Stands still from, for, in microseconds from the start.
    pub stall: Option<(u64, u64)>,
    /// Late by this much: the generator's own fault.
    pub lag_us: f64,
}

impl Default for Broker {
    fn default() -> Self {
        Broker {
            floor_us: 180.0,
            tail_us: 60.0,
            slow: (0.0, 0.0),
            capacity_per_s: 1e9,
            stall: None,
            lag_us: 4.0,
        }
    }
}

/// A second each, without a hole.
fn lay_intervals(run: &mut Run, warm_up_s: u64) {
    for (index, step) in run.steps.iter().enumerate() {
        for second in 0..step.length_ms / 1000 {
            let at_ms = step.at_ms + second * 1000;
            let phase = if at_ms < warm_up_s * 1000 {
                Phase::WarmUp
            } else {
                Phase::Measured
            };
            run.intervals.push(interval(at_ms, 1000, index, phase));
        }
    }
}

/// Plays the run's steps against a broker, in intervals of a second, the first `warm_up_s` of which
/// are warm-up.
pub fn play(run: &mut Run, broker: &Broker, warm_up_s: u64, seed: u64) {
    let mut dice = Dice::new(seed);
    let until_ms = run
        .steps
        .last()
        .map_or(0, |step| step.at_ms + step.length_ms);
    lay_intervals(run, warm_up_s);
    let mut free_us = 0.0_f64;
    for (step_index, step) in run.steps.iter().enumerate() {
        let rate = step.rate_per_s.unwrap_or(broker.capacity_per_s);
        let messages = (rate * step.length_ms as f64 / 1e3) as u64;
        for message in 0..messages {
            let intended = step.at_ms as f64 * 1e3 + message as f64 * 1e6 / rate;
            let lag = broker.lag_us * -dice.share().ln();
            let mut start = (intended + lag).max(free_us);
            if let Some((from, long)) = broker.stall {
                let (from, until) = (from as f64, (from + long) as f64);
                if start >= from && start < until {
                    start = until;
                }
            }
            free_us = start.max(free_us) + 1e6 / broker.capacity_per_s;
            // At most this many wait in the window; the others wait to be sent.
            let sent = (intended + lag).max(start - 20_000.0);
            let mut service = dice.service_us(broker.floor_us, broker.tail_us);
            if dice.share() < broker.slow.0 {
                service += dice.service_us(broker.slow.1, broker.slow.1 / 5.0);
            }
            let answered = start + service;
            // Intervals are seconds without a hole.
            let meant = (intended / 1e6) as usize;
            let interval = &mut run.intervals[meant];
            assert_eq!(interval.step, step_index);
            interval.counts.offered += 1;
            if sent > until_ms as f64 * 1e3 {
                continue;
            }
            interval.counts.sent += 1;
            record(&mut interval.latencies.schedule_lag, lag);
            if answered > (until_ms + 500) as f64 * 1e3 {
                interval.counts.unanswered += 1;
                let waited = (until_ms + 500) as f64 * 1e3 - intended;
                record(&mut interval.latencies.unanswered, waited);
                continue;
            }
            interval.counts.acknowledged += 1;
            interval.counts.acknowledged_bytes += 100;
            record(&mut interval.latencies.response, answered - intended);
            record(&mut interval.latencies.service, answered - sent);
            let by_clock = (answered / 1e6) as usize;
            if let Some(interval) = run.intervals.get_mut(by_clock) {
                interval.counts.acknowledged_meanwhile += 1;
            }
            let waiting = ((answered - sent) * rate / 1e6) as u64 + 1;
            let interval = &mut run.intervals[meant];
            interval.counts.in_flight_max = interval.counts.in_flight_max.max(waiting);
        }
    }
    for interval in &mut run.intervals {
        interval.broker = Some(BrokerSample {
            flushes_per_s: 4200.0 + dice.below(600) as f64,
            flush_p99_us: 300 + dice.below(120),
            entries_per_block: 2.4,
            cpu_cores: 0.62,
        });
    }
}

fn record(histogram: &mut hdrhistogram::Histogram<u64>, us: f64) {
    histogram.saturating_record(us.max(0.0) as u64);
}

/// Ten seconds of calm after two of warm-up.
pub fn calm(rate: f64, seconds: u64, seed: u64) -> Run {
    let mut run = empty_run();
    run.steps = vec![step("1", Some(rate), 0, seconds * 1000)];
    play(&mut run, &Broker::default(), 2, seed);
    run.events
        .push(event(2000, EventKind::WarmUpEnd, "warm-up ended"));
    run
}

/// A broker that stands still for a second.
pub fn stalled() -> Run {
    let mut run = empty_run();
    run.about.command = "penstock load --topic events --rate 5000 --duration 30s --value-size 100 \
        --producers 64 --probe /var/lib/penstock --fail-if 'p99>10ms' --fail-if 'errors>0'"
        .to_owned();
    run.steps = vec![step("1", Some(5000.0), 0, 30_000)];
    let broker = Broker {
        stall: Some((14_200_000, 1_000_000)),
        capacity_per_s: 40_000.0,
        ..Broker::default()
    };
    play(&mut run, &broker, 3, 7);
    run.events = vec![
        event(3000, EventKind::WarmUpEnd, "warm-up ended"),
        event(
            14_200,
            EventKind::Stall,
            "no answer for 1,000 ms while 5,000 were due",
        ),
        event(
            22_000,
            EventKind::BrokerLost,
            "connection 3 to 127.0.0.1:9092 was reset",
        ),
        event(
            22_400,
            EventKind::BrokerBack,
            "connection 3 is back after 400 ms",
        ),
    ];
    run.failures.push(Failure {
        error: "CONNECTION_LOST".to_owned(),
        count: 12,
        first_ms: 22_000,
        last_ms: 22_010,
    });
    let interval = &mut run.intervals[22];
    interval.counts.failed += 12;
    interval.counts.acknowledged -= 12;
    run
}

/// Two humps: most answers quick, one in five behind a slow flush.
pub fn bimodal() -> Run {
    let mut run = empty_run();
    run.steps = vec![step("1", Some(4000.0), 0, 40_000)];
    let broker = Broker {
        slow: (0.2, 6000.0),
        ..Broker::default()
    };
    play(&mut run, &broker, 2, 11);
    for interval in &mut run.intervals {
        interval.counts.received = interval.counts.acknowledged;
        interval.counts.received_meanwhile = interval.counts.acknowledged_meanwhile;
        interval.counts.received_meanwhile_bytes = interval.counts.acknowledged_meanwhile * 100;
        interval.latencies.end_to_end = interval.latencies.response.clone();
        interval.latencies.end_to_end.saturating_record(25_000);
    }
    run.verification = Some(Verification {
        proven: 160_000,
        ..Verification::default()
    });
    run.setup.join_ms = Some(320);
    run.setup.first_fetch_ms = Some(41);
    run
}

/// A search: rates that hold, break, fail and cannot be kept, and the confirmation.
pub fn search() -> Run {
    let mut run = empty_run();
    run.about.command = "penstock load --search 'p99<10ms'".to_owned();
    run.about
        .plan
        .insert("search".to_owned(), "p99<10ms".into());
    let rates = [
        2000.0, 4000.0, 8000.0, 16_000.0, 12_000.0, 10_000.0, 11_000.0, 10_000.0,
    ];
    let names = ["1", "2", "3", "4", "5", "6", "7", "confirm"];
    let verdicts = [
        StepVerdict::Held,
        StepVerdict::Held,
        StepVerdict::Held,
        StepVerdict::GeneratorLimited,
        StepVerdict::Errors,
        StepVerdict::Held,
        StepVerdict::Broken,
        StepVerdict::Held,
    ];
    run.steps = Vec::new();
    for (index, ((rate, name), verdict)) in rates.into_iter().zip(names).zip(verdicts).enumerate() {
        let mut step = step(name, Some(rate), index as u64 * 4000, 4000);
        step.verdict = Some(verdict);
        run.steps.push(step);
    }
    let mut parts = Vec::new();
    for (index, step) in run.steps.iter().enumerate() {
        let load = step.rate_per_s.unwrap_or(0.0) / 10_800.0;
        let mut part = empty_run();
        part.steps = vec![Step {
            at_ms: 0,
            ..step.clone()
        }];
        let broker = Broker {
            capacity_per_s: 10_800.0,
            tail_us: 40.0 + 300.0 * load.powi(4).min(3.0),
            ..Broker::default()
        };
        play(&mut part, &broker, 0, 90 + index as u64);
        for mut interval in part.intervals {
            interval.at_ms += step.at_ms;
            interval.step = index;
            parts.push(interval);
        }
    }
    run.intervals = parts;
    for step in &run.steps {
        let text = format!("step {}", step.name);
        run.events
            .push(event(step.at_ms, EventKind::StepChange, &text));
    }
    run
}

/// A generator that is late.
pub fn generator_limited() -> Run {
    let mut run = empty_run();
    run.steps = vec![step("1", Some(20_000.0), 0, 8000)];
    let broker = Broker {
        lag_us: 900.0,
        ..Broker::default()
    };
    play(&mut run, &broker, 1, 3);
    run.about.worker_busy = vec![0.997, 1.0];
    run
}

/// A broker that cannot do what is offered.
pub fn overloaded() -> Run {
    let mut run = empty_run();
    run.steps = vec![step("1", Some(12_000.0), 0, 10_000)];
    let broker = Broker {
        capacity_per_s: 7000.0,
        ..Broker::default()
    };
    play(&mut run, &broker, 1, 5);
    run
}

pub fn event(at_ms: u64, kind: EventKind, text: &str) -> Event {
    Event {
        at_ms,
        kind,
        text: text.to_owned(),
    }
}

/// Consumers alone: nothing is offered.
pub fn consumers_only() -> Run {
    let mut run = bimodal();
    run.verification = None;
    for interval in &mut run.intervals {
        interval.counts.offered = 0;
        interval.counts.sent = 0;
        interval.counts.acknowledged = 0;
        interval.counts.acknowledged_meanwhile = 0;
        interval.counts.acknowledged_bytes = 0;
        interval.counts.in_flight_max = 0;
        let end_to_end = interval.latencies.end_to_end.clone();
        interval.latencies = Latencies::new();
        interval.latencies.end_to_end = end_to_end;
    }
    run
}
