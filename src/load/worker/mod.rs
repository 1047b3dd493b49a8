//! One worker of the load: a thread on a CPU of its own that serves its connections in one loop,
//! without a lock and without another thread on the way of a message.
//!
//! A worker owns whole producers and consumers. It is told stages one after the other and hands its
//! [`Tally`] over when each ends; between those it says only how far it is.

mod lane;
mod link;
mod pace;
mod request;
mod settle;
mod tally;

pub use lane::Lane;
pub use link::LinkError;
pub use pace::Pace;
pub use tally::{Cell, Tally};

use super::plan::spread::Spread;
use super::plan::timeline::Timeline;
use super::plan::{Leaders, Plan, Produce};
use crate::env::net::{Poll, PollWaker, Ready};
use crate::env::process;
use crate::limits;
use crate::load::run::EventKind;
use core::net::SocketAddr;
use core::time::Duration;
use link::Link;
use request::Spare;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use tally::Books;

/// A wait longer than this was a sleep: what woke it up did not happen before.
const SLEPT_NS: u64 = 50_000;

/// A stretch of the load that is counted as a whole.
#[derive(Clone, Debug)]
pub struct Stage {
    /// When it begins, on this process's monotonic clock.
    pub begin_ns: u64,
    /// What is sent when.
    pub pace: Pace,
    /// Its intervals.
    pub timeline: Arc<Timeline>,
    /// Where the part that is measured begins, from the stage's start.
    pub measured_from_ns: u64,
    /// Whether it is over once every message is sent and settled, rather than by the clock.
    pub is_counted: bool,
}

impl Stage {
    /// When it ends, on this process's monotonic clock.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.begin_ns.saturating_add(self.pace.end_ns())
    }
}

/// What a worker is told.
pub enum Command {
    /// Run another stage; the one before is over.
    Stage(Stage),
    /// This is who leads the partitions.
    Leaders(Arc<Leaders>),
    /// Take no further messages: the stage ends now.
    Stop,
    /// End.
    Finish,
}

/// What a worker says.
pub enum Report {
    /// Every connection is up.
    Ready,
    /// How far it is.
    Progress(Box<Progress>),
    /// Something happened, at that moment of the monotonic clock.
    Event(u64, EventKind, String),
    /// No answer came from the first of these moments to the second, though some were due.
    Stall(usize, u64, u64),
    /// Somebody else leads a partition, or nobody.
    LeadersWanted,
    /// The stage is over.
    Done(Box<Tally>),
}

/// How far a worker is.
#[derive(Debug)]
pub struct Progress {
    /// Which worker.
    pub worker: usize,
    /// Messages so far, of the stage.
    pub sent: u64,
    /// Messages so far, of the stage.
    pub acknowledged: u64,
    /// Messages so far, of the stage.
    pub failed: u64,
    /// Messages handed over and not answered.
    pub in_flight: u64,
    /// Largest schedule lag since the last time.
    pub lag_ns: u64,
    /// Latencies since the last time.
    pub recent: Option<hdrhistogram::Histogram<u64>>,
}

/// What a worker works in: nothing of it changes.
pub struct Surroundings {
    /// The load.
    pub plan: Arc<Plan>,
    /// Where messages go.
    pub spread: Spread,
    /// From this process's monotonic clock to nanoseconds since 1970.
    pub unix_offset_ns: u64,
}

impl Surroundings {
    /// What is sent; only lanes ask, and there are none without.
    #[must_use]
    pub fn produce(&self) -> &Produce {
        self.plan
            .produce
            .as_ref()
            .expect("a lane belongs to a producer")
    }
}

/// Where a stage is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Act {
    /// Before the first, or between two.
    Waiting,
    Running,
    /// No further messages; answers are waited for until then.
    Draining(u64),
}

/// The worker.
pub struct Worker {
    number: usize,
    around: Surroundings,
    poll: Poll,
    lanes: Vec<Lane>,
    books: Books,
    act: Act,
    is_ready: bool,
    reminders: BinaryHeap<Reverse<(u64, usize)>>,
    care_at: u64,
    progress_at: u64,
    heard_at: u64,
    down: BTreeMap<SocketAddr, bool>,
    scratch: Vec<u8>,
    commands: flume::Receiver<Command>,
    reports: flume::Sender<(usize, Report)>,
}

impl Worker {
    /// A worker for these producers. Connects once it runs.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn new(
        number: usize,
        around: Surroundings,
        producers: &[u32],
        commands: flume::Receiver<Command>,
        reports: flume::Sender<(usize, Report)>,
    ) -> std::io::Result<Worker> {
        let mut lanes = Vec::new();
        for producer in producers {
            for (group, partitions) in around.spread.groups.iter().enumerate() {
                let first = partitions.partitions[0] as usize;
                let address = around.plan.target.leaders.addresses[first];
                let link = Link::new(address, lanes.len());
                lanes.push(Lane::new(*producer, group, link, &around));
            }
        }
        let stage = Stage {
            begin_ns: 0,
            pace: Pace::Silent { length_ns: 1 },
            timeline: Arc::new(Timeline::default()),
            measured_from_ns: 0,
            is_counted: false,
        };
        let books = Books {
            stage,
            tally: Tally::new(around.plan.watched),
            look_ns: 0,
            now: process::monotonic_ns(),
            leaders_wanted: false,
            spare: Spare::default(),
            retries: around
                .plan
                .produce
                .as_ref()
                .map_or(0, |produce| produce.retries),
            stopped: false,
        };
        Ok(Worker {
            number,
            around,
            poll: Poll::new()?,
            lanes,
            books,
            act: Act::Waiting,
            is_ready: false,
            reminders: BinaryHeap::new(),
            care_at: 0,
            progress_at: 0,
            heard_at: 0,
            down: BTreeMap::new(),
            scratch: vec![0; limits::LOAD_READ_BYTES],
            commands,
            reports,
        })
    }

    /// What ends this worker's waits after a command.
    #[must_use]
    pub fn waker(&self) -> PollWaker {
        self.poll.waker()
    }

    /// Serves until it is told to finish, or nobody is there to tell.
    pub fn run(mut self) {
        let mut ready: Vec<Ready> = Vec::new();
        let mut looked_at = self.books.tick();
        loop {
            loop {
                match self.commands.try_recv() {
                    Ok(Command::Finish) | Err(flume::TryRecvError::Disconnected) => return,
                    Ok(command) => self.obey(command),
                    Err(flume::TryRecvError::Empty) => break,
                }
            }
            self.books.tick();
            if self.books.now >= self.care_at {
                self.care();
            }
            self.remind();
            self.advance();
            let before = self.books.tick();
            let most = Duration::from_nanos(self.next_ns().saturating_sub(before));
            if self.poll.wait(&mut ready, Some(most)).is_err() {
                self.say(Report::Event(
                    before,
                    EventKind::BrokerLost,
                    "the kernel refuses to wait for sockets".to_owned(),
                ));
                return;
            }
            let after = self.books.tick();
            let slept = after - before > SLEPT_NS;
            self.books.look_ns = if slept { after } else { looked_at };
            looked_at = after;
            if self.is_measured() {
                self.books.tally.idle_ns += after - before;
            }
            for one in &ready {
                self.books.tick();
                self.serve(*one);
            }
        }
    }

    fn say(&self, report: Report) {
        // Who does not listen any more has ended the load.
        let _ = self.reports.send((self.number, report));
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Stage(stage) => {
                for lane in &mut self.lanes {
                    lane.begin(&stage, &self.around);
                }
                self.heard_at = stage.begin_ns;
                self.progress_at = stage.begin_ns;
                self.books.tally = Tally::new(self.around.plan.watched);
                self.books.stage = stage;
                self.books.stopped = false;
                self.act = Act::Running;
                self.remind_all();
            }
            Command::Leaders(leaders) => {
                for lane in &mut self.lanes {
                    lane.follow(&leaders, &self.around);
                }
            }
            Command::Stop => self.books.stopped = true,
            Command::Finish => {}
        }
    }

    fn is_measured(&self) -> bool {
        let since = self.books.since_begin_ns();
        self.act == Act::Running && since >= self.books.stage.measured_from_ns
    }

    fn next_ns(&self) -> u64 {
        let mut next = self.care_at;
        if let Some(Reverse((at, _))) = self.reminders.peek() {
            next = next.min(*at);
        }
        if self.act == Act::Running {
            next = next.min(self.books.stage.end_ns());
        }
        next
    }

    fn remind_all(&mut self) {
        self.reminders.clear();
        for (token, lane) in self.lanes.iter_mut().enumerate() {
            lane.reminded = true;
            self.reminders
                .push(Reverse((self.books.stage.begin_ns, token)));
        }
    }

    /// Lets every lane go on whose time has come.
    fn remind(&mut self) {
        while let Some(Reverse((at, token))) = self.reminders.peek().copied() {
            if at > self.books.now {
                return;
            }
            self.reminders.pop();
            self.lanes[token].reminded = false;
            // The way is free since its time, not since the last look.
            self.books.look_ns = self.books.look_ns.max(at);
            self.pump(token);
        }
    }

    fn pump(&mut self, token: usize) {
        if self.act == Act::Waiting {
            let introduced = self.lanes[token].introduce();
            return self.conclude(token, introduced);
        }
        match self.lanes[token].pump(&mut self.books, &self.around) {
            Ok(Some(at)) if !self.lanes[token].reminded && !self.books.is_over() => {
                self.lanes[token].reminded = true;
                self.reminders.push(Reverse((at, token)));
            }
            Ok(_) => {}
            Err(error) => self.lose(token, &error),
        }
    }

    /// A socket can go on.
    fn serve(&mut self, ready: Ready) {
        let token = ready.token;
        if ready.writable {
            let outcome = self.lanes[token].writable(self.books.now);
            self.conclude(token, outcome);
        }
        if ready.readable {
            let was_up = self.lanes[token].link.is_up();
            let lane = &mut self.lanes[token];
            match lane.hear(&mut self.scratch, &mut self.books, &self.around) {
                Ok(heard) => {
                    if heard {
                        self.heard();
                    }
                    if !was_up && self.lanes[token].link.is_up() {
                        self.note_up(token);
                    }
                }
                Err(error) => self.lose(token, &error),
            }
        }
        self.pump(token);
    }

    fn conclude(&mut self, token: usize, outcome: Result<(), LinkError>) {
        if let Err(error) = outcome {
            self.lose(token, &error);
        }
    }

    /// An answer came: tells if none had come for long.
    fn heard(&mut self) {
        let now = self.books.now;
        let silence = now.saturating_sub(self.heard_at);
        if silence > limits::LOAD_STALL_MS * 1_000_000 && self.act != Act::Waiting {
            self.say(Report::Stall(self.number, self.heard_at, now));
        }
        self.heard_at = now;
    }

    fn lose(&mut self, token: usize, error: &LinkError) {
        let timeout_ns = self.around.plan.timeout_ns;
        let lane = &mut self.lanes[token];
        let had_been_up = lane.link.was_up();
        lane.lost(error, &mut self.books, timeout_ns);
        let address = lane.link.address();
        let is_down = self.down.entry(address).or_insert(false);
        if !*is_down {
            *is_down = true;
            let lost = if had_been_up { "lost" } else { "not reached" };
            let text = format!("{address} {lost}: {error}");
            let now = self.books.now;
            self.say(Report::Event(now, EventKind::BrokerLost, text));
        }
        self.books.leaders_wanted = true;
    }

    fn note_up(&mut self, token: usize) {
        let address = self.lanes[token].link.address();
        if self.down.insert(address, false) == Some(true) {
            let text = format!("{address} is back");
            self.say(Report::Event(self.books.now, EventKind::BrokerBack, text));
        }
    }

    /// What is looked after every few milliseconds: connections, requests that take too long,
    /// somebody who watches.
    fn care(&mut self) {
        let now = self.books.now;
        self.care_at = now + limits::LOAD_CARE_MS * 1_000_000;
        let timeout_ns = self.around.plan.timeout_ns;
        for token in 0..self.lanes.len() {
            let lane = &mut self.lanes[token];
            if lane.is_late(now, timeout_ns) {
                self.lose(token, &LinkError::Late);
                continue;
            }
            let due = lane.link.due_ns(timeout_ns);
            if due.is_some_and(|due| due <= now) {
                let tended = lane.link.tend(&self.poll, now, timeout_ns);
                self.conclude(token, tended);
            }
        }
        if self.books.tally.in_flight == 0 {
            // Nothing is due, so silence means nothing.
            self.heard_at = now;
        }
        if self.books.leaders_wanted {
            self.books.leaders_wanted = false;
            self.say(Report::LeadersWanted);
        }
        if !self.is_ready && self.lanes.iter().all(Lane::is_ready) {
            self.is_ready = true;
            self.say(Report::Ready);
        }
        if self.act != Act::Waiting && now >= self.progress_at {
            self.progress_at = now + limits::LOAD_PROGRESS_MS * 1_000_000;
            self.tell_progress();
        }
    }

    fn tell_progress(&mut self) {
        let tally = &mut self.books.tally;
        let recent = tally.recent.as_mut().map(|recent| {
            let taken = recent.clone();
            recent.reset();
            taken
        });
        let mut progress = Progress {
            worker: self.number,
            sent: 0,
            acknowledged: 0,
            failed: 0,
            in_flight: tally.in_flight,
            lag_ns: std::mem::take(&mut tally.recent_lag_ns),
            recent,
        };
        for cell in tally.cells.iter().flatten() {
            progress.sent += cell.counts.sent;
            progress.acknowledged += cell.counts.acknowledged;
            progress.failed += cell.counts.failed;
        }
        self.say(Report::Progress(Box::new(progress)));
    }

    /// Moves the stage on: to its end, and through the wait for the last answers.
    fn advance(&mut self) {
        let now = self.books.now;
        match self.act {
            Act::Waiting => {}
            Act::Running => {
                let around = &self.around;
                let is_over = self.books.is_over()
                    || (self.books.stage.is_counted
                        && now >= self.books.stage.begin_ns
                        && self.lanes.iter_mut().all(|lane| lane.is_done(around)));
                if is_over {
                    let since = self.books.since_begin_ns();
                    self.books.tally.over_ns = since.min(self.books.stage.pace.end_ns());
                    self.act = Act::Draining(now + self.around.plan.drain_ns);
                }
            }
            Act::Draining(until) => {
                let is_empty = self.lanes.iter().all(|lane| lane.queue.is_empty());
                if is_empty || now >= until {
                    self.end_stage();
                }
            }
        }
    }

    fn end_stage(&mut self) {
        let end_ns = self.books.tally.over_ns;
        for token in 0..self.lanes.len() {
            let lane = &mut self.lanes[token];
            lane.offer_rest(end_ns, &mut self.books, &self.around);
            if lane.end(&mut self.books) {
                lane.reset();
                lane.link.fail(self.books.now);
            }
        }
        self.act = Act::Waiting;
        self.reminders.clear();
        self.lanes.iter_mut().for_each(|lane| lane.reminded = false);
        let tally = Tally::new(self.around.plan.watched);
        let tally = std::mem::replace(&mut self.books.tally, tally);
        self.say(Report::Done(Box::new(tally)));
    }
}
