//! Conducts a load: starts the workers, tells them one stage after the other, listens to how far
//! they are, and makes one [`Run`] of what they counted.
//!
//! The conductor is no part of any message's way: workers go on whatever it does. It lives on the
//! thread that called it.

use super::gather;
use super::honesty::Total;
use super::plan::timeline::Timeline;
use super::plan::{Leaders, Plan, spread::Spread};
use super::run::{About, Ended, Event, EventKind, Phase, Run, Setup, Step, StepVerdict};
use super::worker::{Command, Progress, Report, Stage, Surroundings, Tally, Worker, judge};
use crate::env::net::PollWaker;
use crate::env::process;
use crate::limits;
use core::time::Duration;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

/// How often the conductor looks around when nobody speaks.
const PATIENCE: Duration = Duration::from_millis(50);
/// How long a worker may take to end.
const LEAVE_MAX: Duration = Duration::from_secs(10);
/// From telling a stage until it begins: enough for every worker to hear of it.
const LEAD_NS: u64 = 20_000_000;

/// Why there is no result at all.
#[derive(Debug)]
pub enum LoadError {
    /// The broker was not reached in time; the last reason.
    Unreachable(String),
    /// The host lacks threads or descriptors.
    Host(io::Error),
    /// Stopped before anything was sent.
    Interrupted,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unreachable(reason) => f.write_str(reason),
            LoadError::Host(error) => error.fmt(f),
            LoadError::Interrupted => f.write_str("stopped before anything was sent"),
        }
    }
}

impl std::error::Error for LoadError {}

/// What the conductor needs of the world around it.
pub struct World<'a> {
    /// A message for each Ctrl-C.
    pub interrupts: flume::Receiver<()>,
    /// Asks the cluster who leads; runs on a thread of its own. `None` if nobody answers.
    pub ask_leaders: Box<dyn FnMut() -> Option<Leaders> + Send>,
    /// Is shown how far the load is, about once a second, and what happened when it happens.
    pub watch: Box<dyn FnMut(&Glimpse<'_>) + 'a>,
}

/// Something for whoever watches.
#[derive(Debug)]
pub enum Glimpse<'a> {
    /// How far each worker is; seconds since the stage began.
    Progress(f64, &'a BTreeMap<usize, Progress>),
    /// Something happened.
    Event(&'a Event),
}

/// What the measured part of a stage added up to.
#[derive(Debug)]
pub struct Outcome {
    /// The sums.
    pub total: Total,
    /// Busy share of the busiest worker, 0 to 1.
    pub busy: f64,
}

/// A stage as it is planned: everything but when.
#[derive(Clone, Debug)]
pub struct StagePlan {
    /// What is sent when.
    pub pace: super::worker::Pace,
    /// Its intervals.
    pub timeline: Arc<Timeline>,
    /// Where the part that is measured begins, from the stage's start.
    pub measured_from_ns: u64,
    /// Whether it is over by number rather than by the clock.
    pub is_counted: bool,
    /// The steps in it; their times from the stage's start.
    pub steps: Vec<Step>,
}

struct Seat {
    commands: flume::Sender<Command>,
    waker: PollWaker,
}

/// A load in progress.
pub struct Conductor<'a> {
    plan: Arc<Plan>,
    world: World<'a>,
    seats: Vec<Seat>,
    reports: flume::Receiver<(usize, Report)>,
    leaders: LeaderDesk,
    unix_offset_ns: u64,
    began_ns: Option<u64>,
    progress: BTreeMap<usize, Progress>,
    stalls: Vec<Vec<(u64, u64)>>,
    measured_ns: u64,
    idle_ns: Vec<u64>,
    is_interrupted: bool,
    last_trouble: Option<String>,
    run: Run,
}

/// Who asks for leaders, on a thread of its own.
struct LeaderDesk {
    asks: flume::Sender<()>,
    answers: flume::Receiver<Arc<Leaders>>,
}

impl<'a> Conductor<'a> {
    /// Starts the workers and waits until all their connections are up.
    ///
    /// # Errors
    /// They do not get up in time, or the host lacks something.
    pub fn start(
        plan: &Arc<Plan>,
        about: About,
        setup: Setup,
        world: World<'a>,
    ) -> Result<Conductor<'a>, LoadError> {
        let unix_offset_ns = process::unix_ns().saturating_sub(process::monotonic_ns());
        let (sender, reports) = flume::unbounded();
        let mut seats = Vec::new();
        for (number, (producers, consumers)) in shares(plan).into_iter().enumerate() {
            let around = Surroundings {
                plan: plan.clone(),
                spread: Spread::new(&plan.target),
                unix_offset_ns,
            };
            let people = (&producers[..], &consumers[..]);
            seats.push(seat(number, around, people, &sender)?);
        }
        let ask = { world }.split();
        let mut conductor = Conductor {
            plan: plan.clone(),
            stalls: vec![Vec::new(); seats.len()],
            idle_ns: vec![0; seats.len()],
            world: ask.0,
            seats,
            reports,
            leaders: LeaderDesk::open(ask.1)?,
            unix_offset_ns,
            began_ns: None,
            progress: BTreeMap::new(),
            measured_ns: 0,
            is_interrupted: false,
            last_trouble: None,
            run: gather::empty_run(about, setup),
        };
        conductor.wait_ready()?;
        Ok(conductor)
    }

    fn wait_ready(&mut self) -> Result<(), LoadError> {
        let begin = process::monotonic_ns();
        let mut missing = self.seats.len();
        while missing > 0 {
            if self.world.interrupts.try_recv().is_ok() {
                return Err(LoadError::Interrupted);
            }
            match self.reports.recv_timeout(PATIENCE) {
                Ok((_, Report::Ready)) => missing -= 1,
                Ok((_, report)) => self.note(report),
                Err(_) => {}
            }
            if process::monotonic_ns() - begin > self.plan.timeout_ns {
                let trouble = self.last_trouble.take();
                let reason = trouble.unwrap_or_else(|| "not every connection is up".to_owned());
                return Err(LoadError::Unreachable(reason));
            }
        }
        self.run.setup.connect_ms += (process::monotonic_ns() - begin) / 1_000_000;
        self.run.events.clear();
        Ok(())
    }

    /// Runs a stage to its end, adds it to the run, and says what it added up to.
    /// `start_at_unix_ms` is for the first.
    pub fn run_stage(&mut self, planned: &StagePlan, start_at_unix_ms: Option<u64>) -> Outcome {
        let begin_ns = self.begin_of_next(start_at_unix_ms);
        let began_ns = *self.began_ns.get_or_insert(begin_ns);
        let stage = Stage {
            begin_ns,
            pace: planned.pace.clone(),
            timeline: planned.timeline.clone(),
            measured_from_ns: planned.measured_from_ns,
            is_counted: planned.is_counted,
        };
        self.progress.clear();
        self.tell(|| Command::Stage(stage.clone()));
        let tallies = self.listen(&stage);
        let firsts = tallies.values().filter_map(|tally| tally.first_fetch_ns);
        let first_fetch_ms = firsts.min().map(|ns| ns / 1_000_000);
        let known = &mut self.run.setup.first_fetch_ms;
        *known = known.or(first_fetch_ms);
        let at_ms = (begin_ns - began_ns) / 1_000_000;
        let over_ns = tallies.values().map(|tally| tally.over_ns).max();
        let over_ns = over_ns.unwrap_or(0);
        let first_step = self.run.steps.len();
        self.add_steps(planned, at_ms, over_ns);
        let measured_ns = over_ns.saturating_sub(planned.measured_from_ns);
        self.measured_ns += measured_ns;
        let mut busy = 0.0f64;
        for (worker, tally) in &tallies {
            self.idle_ns[*worker] += tally.idle_ns;
            busy = busy.max(1.0 - tally.idle_ns as f64 / measured_ns.max(1) as f64);
        }
        let first = self.run.intervals.len();
        gather::add_intervals(
            &mut self.run,
            &planned.timeline,
            tallies,
            over_ns,
            (at_ms, first_step),
        );
        let added = self.run.intervals[first..].iter();
        Outcome {
            total: Total::of(added.filter(|interval| interval.phase == Phase::Measured)),
            busy,
        }
    }

    /// The next stage begins on the grid of intervals, and late enough to be heard of.
    fn begin_of_next(&self, start_at_unix_ms: Option<u64>) -> u64 {
        let earliest = process::monotonic_ns() + LEAD_NS;
        match (self.began_ns, start_at_unix_ms) {
            (Some(began_ns), _) => {
                let since = earliest.saturating_sub(began_ns);
                began_ns + since.next_multiple_of(self.plan.interval_ns)
            }
            (None, Some(unix_ms)) => (unix_ms * 1_000_000)
                .saturating_sub(self.unix_offset_ns)
                .max(earliest),
            (None, None) => earliest,
        }
    }

    fn tell(&self, command: impl Fn() -> Command) {
        for seat in &self.seats {
            // A worker that is gone has said why.
            let _ = seat.commands.send(command());
            seat.waker.wake();
        }
    }

    /// Listens until every worker is done with the stage.
    fn listen(&mut self, stage: &Stage) -> BTreeMap<usize, Box<Tally>> {
        let mut tallies = BTreeMap::new();
        let mut progress_at = stage.begin_ns;
        let mut moved = (0, process::monotonic_ns());
        while tallies.len() < self.seats.len() {
            match self.reports.recv_timeout(PATIENCE) {
                Ok((worker, Report::Done(tally))) => drop(tallies.insert(worker, tally)),
                Ok((_, Report::Progress(progress))) => {
                    self.progress.insert(progress.worker, *progress);
                }
                Ok((_, report)) => self.note(report),
                Err(flume::RecvTimeoutError::Disconnected) => break,
                Err(flume::RecvTimeoutError::Timeout) => {}
            }
            while let Ok(leaders) = self.leaders.answers.try_recv() {
                self.tell(|| Command::Leaders(leaders.clone()));
            }
            if self.world.interrupts.try_recv().is_ok() && !self.is_interrupted {
                self.is_interrupted = true;
                self.run.ended = Ended::Interrupted;
                self.event(
                    process::monotonic_ns(),
                    EventKind::Interrupted,
                    "Ctrl-C".to_owned(),
                );
                self.tell(|| Command::Stop);
            }
            let now = process::monotonic_ns();
            if now >= progress_at && !self.progress.is_empty() {
                progress_at = now + limits::LOAD_PROGRESS_MS * 1_000_000;
                let seconds = now.saturating_sub(stage.begin_ns) as f64 / 1e9;
                (self.world.watch)(&Glimpse::Progress(seconds, &self.progress));
            }
            self.end_what_is_received();
            self.end_what_is_stuck(stage, &mut moved, now);
        }
        tallies
    }

    /// Once the producers have their answers and every set of consumers has every message that was
    /// acknowledged, nothing more is to come.
    fn end_what_is_received(&mut self) {
        let Some(consume) = &self.plan.consume else {
            return;
        };
        let workers = self.progress.values();
        let is_settled =
            self.progress.len() == self.seats.len() && workers.clone().all(|one| one.is_settled);
        let acknowledged: u64 = workers.clone().map(|one| one.acknowledged).sum();
        let received: u64 = workers.map(|one| one.received).sum();
        if is_settled && received >= acknowledged * u64::from(consume.sets) {
            self.tell(|| Command::Received);
        }
    }

    /// A load limited by number would wait for ever for a broker that does not come back.
    fn end_what_is_stuck(&mut self, stage: &Stage, moved: &mut (u64, u64), now: u64) {
        let settled: u64 = self
            .progress
            .values()
            .map(|one| one.acknowledged + one.failed)
            .sum();
        if settled != moved.0 || now < stage.begin_ns {
            *moved = (settled, now);
        }
        let patience = 2 * self.plan.timeout_ns;
        if stage.is_counted && now - moved.1 > patience {
            self.run.ended = Ended::BrokerLost;
            self.tell(|| Command::Stop);
            moved.1 = now;
        }
    }

    fn note(&mut self, report: Report) {
        match report {
            Report::Event(at_ns, kind, text) => {
                self.last_trouble = Some(text.clone());
                self.event(at_ns, kind, text);
            }
            Report::Stall(worker, from, until) => self.stalls[worker].push((from, until)),
            // The desk asks once, however many workers want to know.
            Report::LeadersWanted => drop(self.leaders.asks.try_send(())),
            Report::Ready | Report::Progress(_) | Report::Done(_) | Report::Last(..) => {}
        }
    }

    fn event(&mut self, at_ns: u64, kind: EventKind, text: String) {
        let since = at_ns.saturating_sub(self.began_ns.unwrap_or(at_ns));
        let event = Event {
            at_ms: since / 1_000_000,
            kind,
            text,
        };
        let events = &mut self.run.events;
        // Several workers tell of one broker.
        let known = events.iter().rev().take(self.seats.len());
        let is_known = known
            .into_iter()
            .any(|one| one.text == event.text && event.at_ms.abs_diff(one.at_ms) < 1000);
        if !is_known && events.len() < limits::LOAD_EVENTS_MAX {
            (self.world.watch)(&Glimpse::Event(&event));
            events.push(event);
        }
    }

    /// The steps of a stage as far as they came to be.
    fn add_steps(&mut self, planned: &StagePlan, at_ms: u64, over_ns: u64) {
        let over_ms = (over_ns / 1_000_000).max(1);
        for step in planned.steps.iter().filter(|step| step.at_ms < over_ms) {
            let mut step = step.clone();
            step.length_ms = step.length_ms.min(over_ms - step.at_ms);
            step.at_ms += at_ms;
            if !self.run.steps.is_empty() {
                let text = match step.rate_per_s {
                    Some(rate) => format!("step {}: {rate:.0} messages a second", step.name),
                    None => format!("step {}: as fast as it goes", step.name),
                };
                self.run.events.push(Event {
                    at_ms: step.at_ms,
                    kind: EventKind::StepChange,
                    text,
                });
            }
            self.run.steps.push(step);
        }
        if planned.measured_from_ns > 0 && planned.measured_from_ns <= over_ns {
            self.run.events.push(Event {
                at_ms: at_ms + planned.measured_from_ns / 1_000_000,
                kind: EventKind::WarmUpEnd,
                text: "measured from here".to_owned(),
            });
        }
    }

    /// Whether it was stopped by hand, or the broker is gone: no further stage then.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.run.ended != Ended::Completed
    }

    /// What was gathered so far.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Notes what a search makes of the last step.
    pub fn note_verdict(&mut self, verdict: StepVerdict) {
        let last = self.run.steps.last_mut();
        last.expect("a stage has a step").verdict = Some(verdict);
    }

    /// Ends the workers and gives the run.
    #[must_use]
    pub fn finish(mut self) -> Run {
        self.tell(|| Command::Finish);
        let (mut sent, mut checks) = (Vec::new(), Vec::new());
        while checks.len() < self.seats.len() {
            match self.reports.recv_timeout(LEAVE_MAX) {
                Ok((_, Report::Last(of_worker, check))) => {
                    sent.extend(of_worker);
                    checks.push(*check);
                }
                Ok(_) => {}
                // A worker that is gone has said why.
                Err(_) => break,
            }
        }
        if let (true, Some(consume)) = (self.plan.verify, &self.plan.consume) {
            self.run.verification = Some(judge(checks, &sent, consume.sets));
        }
        let began_ns = self.began_ns.unwrap_or(0);
        for (from, until) in gather::in_all(&self.stalls) {
            let text = format!("no answer for {} ms", (until - from) / 1_000_000);
            self.run.events.push(Event {
                at_ms: from.saturating_sub(began_ns) / 1_000_000,
                kind: EventKind::Stall,
                text,
            });
        }
        self.run.events.sort_by_key(|event| event.at_ms);
        self.run.events.truncate(limits::LOAD_EVENTS_MAX);
        self.run.began_unix_us = (began_ns + self.unix_offset_ns) / 1000;
        let measured = self.measured_ns.max(1) as f64;
        let busy = |idle: &u64| (1.0 - *idle as f64 / measured).clamp(0.0, 1.0);
        self.run.about.worker_busy = self.idle_ns.iter().map(busy).collect();
        self.run
    }
}

impl LeaderDesk {
    fn open(mut ask: Box<dyn FnMut() -> Option<Leaders> + Send>) -> Result<LeaderDesk, LoadError> {
        let (asks, asked) = flume::bounded::<()>(1);
        let (sender, answers) = flume::unbounded();
        let body = move || {
            while asked.recv().is_ok() {
                let told = ask().map(|leaders| sender.send(Arc::new(leaders)));
                if told.is_some_and(|told| told.is_err()) {
                    return;
                }
                process::sleep_blocking(Duration::from_millis(limits::LOAD_BACKOFF_MS_MAX));
            }
        };
        process::spawn_thread("load-leaders", body).map_err(LoadError::Host)?;
        Ok(LeaderDesk { asks, answers })
    }
}

type AskLeaders = Box<dyn FnMut() -> Option<Leaders> + Send>;

impl<'a> World<'a> {
    /// Takes out the question about leaders, which goes to another thread.
    fn split(mut self) -> (World<'a>, AskLeaders) {
        let ask = std::mem::replace(&mut self.ask_leaders, Box::new(|| None));
        (self, ask)
    }
}

/// Producers, and consumers with their set.
type Share = (Vec<u32>, Vec<(u32, u32)>);

/// Which producers and which consumers (with their set) each worker has: dealt out in turn,
/// producers first.
fn shares(plan: &Plan) -> Vec<Share> {
    let mut shares = vec![(Vec::new(), Vec::new()); plan.cpus.len()];
    let mut turn = 0;
    if let Some(produce) = &plan.produce {
        for producer in produce.own() {
            shares[turn % plan.cpus.len()].0.push(producer);
            turn += 1;
        }
    }
    if let Some(consume) = &plan.consume {
        let all = (0..consume.sets).flat_map(|set| {
            let consumers = 0..consume.consumers;
            consumers.map(move |consumer| (set, consumer))
        });
        for consumer in all {
            shares[turn % plan.cpus.len()].1.push(consumer);
            turn += 1;
        }
    }
    shares
}

fn seat(
    number: usize,
    around: Surroundings,
    (producers, consumers): (&[u32], &[(u32, u32)]),
    reports: &flume::Sender<(usize, Report)>,
) -> Result<Seat, LoadError> {
    let (commands, told) = flume::unbounded();
    let cpu = around.plan.cpus[number];
    let worker = Worker::new(number, around, producers, consumers, told, reports.clone());
    let worker = worker.map_err(LoadError::Host)?;
    let waker = worker.waker();
    let body = move || {
        // A CPU that is not ours to choose is no reason to stop.
        let _ = process::pin_thread(cpu);
        worker.run();
    };
    process::spawn_thread(&format!("load-{number}"), body).map_err(LoadError::Host)?;
    Ok(Seat { commands, waker })
}
