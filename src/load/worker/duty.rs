//! The loop of a worker: what falls due, what sockets can do, what is looked after, then a wait.
//!
//! Tokens of sockets are places: first the lanes, then the readers.

use super::check::{Check, Sent};
use super::lane::Lane;
use super::link::{Link, LinkError};
use super::reader::Reader;
use super::tally::{Books, Tally};
use super::{Command, Progress, Report, Surroundings};
use crate::env::net::{Poll, PollWaker, Ready};
use crate::limits;
use crate::load::run::EventKind;
use core::net::SocketAddr;
use core::time::Duration;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A wait longer than this was a sleep: what woke it up did not happen before.
const SLEPT_NS: u64 = 50_000;

/// Where a stage is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Act {
    /// Before the first, or between two.
    Waiting,
    Running,
    /// No further messages; answers are waited for until then.
    Draining(u64),
}

/// A lane for each producer and group of partitions.
fn lanes(around: &Surroundings, producers: &[u32]) -> Vec<Lane> {
    let mut lanes = Vec::new();
    for producer in producers {
        for (group, partitions) in around.spread.groups.iter().enumerate() {
            let first = partitions.partitions[0] as usize;
            let address = around.plan.target.leaders.addresses[first];
            let link = Link::new(address, lanes.len());
            lanes.push(Lane::new(*producer, group, link, around));
        }
    }
    lanes
}

/// A reader for each consumer and group of partitions of which it has any; tokens from `token` on.
fn readers(around: &Surroundings, consumers: &[(u32, u32)], token: usize) -> Vec<Reader> {
    let mut readers = Vec::new();
    for (set, consumer) in consumers {
        let all = around.consume().consumers;
        for group in &around.spread.groups {
            let numbers = group.partitions.iter().copied();
            let numbers: Vec<u32> = numbers.filter(|n| n % all == *consumer).collect();
            if let Some(first) = numbers.first() {
                let address = around.plan.target.leaders.addresses[*first as usize];
                let link = Link::new(address, token + readers.len());
                readers.push(Reader::new(*set, &numbers, link, around));
            }
        }
    }
    readers
}

/// The worker.
pub struct Worker {
    number: usize,
    around: Surroundings,
    poll: Poll,
    lanes: Vec<Lane>,
    readers: Vec<Reader>,
    check: Check,
    books: Books,
    act: Act,
    is_ready: bool,
    reminders: BinaryHeap<Reverse<(u64, usize)>>,
    care_at: u64,
    progress_at: u64,
    heard_at: u64,
    /// Whether receipts need not be waited for.
    all_received: bool,
    down: BTreeMap<SocketAddr, bool>,
    scratch: Vec<u8>,
    commands: flume::Receiver<Command>,
    reports: flume::Sender<(usize, Report)>,
}

impl Worker {
    /// A worker for these producers and these consumers, each with its set. Connects once it runs.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn new(
        number: usize,
        around: Surroundings,
        producers: &[u32],
        consumers: &[(u32, u32)],
        commands: flume::Receiver<Command>,
        reports: flume::Sender<(usize, Report)>,
    ) -> std::io::Result<Worker> {
        let lanes = lanes(&around, producers);
        let readers = readers(&around, consumers, lanes.len());
        let books = Books::new(&around.plan);
        Ok(Worker {
            number,
            around,
            poll: Poll::new()?,
            lanes,
            readers,
            check: Check::default(),
            books,
            act: Act::Waiting,
            is_ready: false,
            reminders: BinaryHeap::new(),
            care_at: 0,
            progress_at: 0,
            heard_at: 0,
            all_received: true,
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
                    Ok(Command::Finish) | Err(flume::TryRecvError::Disconnected) => {
                        return self.take_leave();
                    }
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
                self.all_received = self.readers.is_empty();
                self.act = Act::Running;
                self.remind_all();
            }
            Command::Leaders(leaders) => {
                for lane in &mut self.lanes {
                    lane.follow(&leaders, &self.around);
                }
                for reader in &mut self.readers {
                    reader.follow(&leaders);
                }
            }
            Command::Stop => self.books.stopped = true,
            Command::Received => self.all_received = true,
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
        let begin_ns = self.books.stage.begin_ns;
        for (token, lane) in self.lanes.iter_mut().enumerate() {
            lane.reminded = true;
            self.reminders.push(Reverse((begin_ns, token)));
        }
        let readers = self.lanes.len()..self.lanes.len() + self.readers.len();
        self.reminders
            .extend(readers.map(|token| Reverse((begin_ns, token))));
    }

    /// Lets every lane go on whose time has come.
    fn remind(&mut self) {
        while let Some(Reverse((at, token))) = self.reminders.peek().copied() {
            if at > self.books.now {
                return;
            }
            self.reminders.pop();
            if token >= self.lanes.len() {
                self.pump_reader(token);
                continue;
            }
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

    fn pump_reader(&mut self, token: usize) {
        if self.act == Act::Waiting {
            // Between stages nothing is asked for; what was asked for is still taken.
            return;
        }
        let place = token - self.lanes.len();
        match self.readers[place].pump(self.books.now, &self.around) {
            Ok(Some(at)) => self.reminders.push(Reverse((at, token))),
            Ok(None) => {}
            Err(error) => self.lose(token, &error),
        }
    }

    fn serve_reader(&mut self, ready: Ready) {
        let place = ready.token - self.lanes.len();
        let reader = &mut self.readers[place];
        let was_up = reader.link.is_up();
        let mut outcome = Ok(());
        if ready.writable {
            outcome = reader.link.writable(self.books.now);
        }
        if ready.readable && outcome.is_ok() {
            let (books, check) = (&mut self.books, &mut self.check);
            outcome = reader.hear(&mut self.scratch, books, check, &self.around);
        }
        if let Err(error) = outcome {
            return self.lose(ready.token, &error);
        }
        if !was_up && self.link(ready.token).is_up() {
            self.note_up(ready.token);
        }
        self.pump_reader(ready.token);
    }

    /// A socket can go on.
    fn serve(&mut self, ready: Ready) {
        let token = ready.token;
        if token >= self.lanes.len() {
            return self.serve_reader(ready);
        }
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
        let had_been_up = self.link(token).was_up();
        let address = self.link(token).address();
        match self.lanes.get_mut(token) {
            Some(lane) => lane.lost(error, &mut self.books, timeout_ns),
            None => {
                let place = token - self.lanes.len();
                self.readers[place].lost(self.books.now);
            }
        }
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

    fn link(&self, token: usize) -> &Link {
        match self.lanes.get(token) {
            Some(lane) => &lane.link,
            None => &self.readers[token - self.lanes.len()].link,
        }
    }

    fn note_up(&mut self, token: usize) {
        let address = self.link(token).address();
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
        self.care_for_readers();
        if self.books.tally.in_flight == 0 {
            // Nothing is due, so silence means nothing.
            self.heard_at = now;
        }
        if self.books.leaders_wanted {
            self.books.leaders_wanted = false;
            self.say(Report::LeadersWanted);
        }
        if let Some(trouble) = self.books.trouble.take() {
            self.say(Report::Event(now, EventKind::BrokerLost, trouble));
        }
        let all_up = self.lanes.iter().all(Lane::is_ready)
            && self.readers.iter().all(|reader| reader.link.is_up());
        if !self.is_ready && all_up {
            self.is_ready = true;
            self.say(Report::Ready);
        }
        let is_draining = matches!(self.act, Act::Draining(_));
        if self.act != Act::Waiting && (is_draining || now >= self.progress_at) {
            self.progress_at = now + limits::LOAD_PROGRESS_MS * 1_000_000;
            self.tell_progress();
        }
    }

    fn care_for_readers(&mut self) {
        let now = self.books.now;
        let timeout_ns = self.around.plan.timeout_ns;
        for place in 0..self.readers.len() {
            let token = self.lanes.len() + place;
            let reader = &mut self.readers[place];
            if reader.is_late(now, timeout_ns, &self.around) {
                self.lose(token, &LinkError::Late);
                continue;
            }
            let due = reader.link.due_ns(timeout_ns);
            if due.is_some_and(|due| due <= now) {
                let tended = reader.link.tend(&self.poll, now, timeout_ns);
                self.conclude(token, tended);
            }
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
            received: tally.received,
            is_settled: self.act != Act::Running
                && self.lanes.iter().all(|lane| lane.queue.is_empty()),
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
                        && self.lanes.iter_mut().all(|lane| lane.is_done(around))
                        && (!self.lanes.is_empty() || self.readers.iter().all(Reader::is_at_end)));
                if is_over {
                    self.finish();
                    let since = self.books.since_begin_ns();
                    self.books.tally.over_ns = since.min(self.books.stage.pace.end_ns());
                    self.act = Act::Draining(now + self.around.plan.drain_ns);
                }
            }
            Act::Draining(until) => {
                let is_empty = self.lanes.iter().all(|lane| lane.queue.is_empty());
                if (is_empty && self.all_received) || now >= until {
                    self.end_stage();
                }
            }
        }
    }

    /// The last turn: what was due just before the end goes out if there is room.
    fn finish(&mut self) {
        if self.books.stopped {
            return;
        }
        self.books.is_finishing = true;
        for token in 0..self.lanes.len() {
            self.pump(token);
        }
        self.books.is_finishing = false;
    }

    fn end_stage(&mut self) {
        if self.books.tally.in_flight > 0 {
            // A silence that lasts beyond the end is a stall as well.
            self.heard();
        }
        let end_ns = self.books.tally.over_ns;
        for token in 0..self.lanes.len() {
            let lane = &mut self.lanes[token];
            lane.offer_rest(end_ns, &mut self.books, &self.around);
            if lane.end(&mut self.books) {
                lane.reset();
                lane.link.fail(self.books.now);
            }
        }
        self.tell_progress();
        let firsts = self.readers.iter().filter_map(|one| one.first_fetch_ns);
        self.books.tally.first_fetch_ns = firsts.min();
        self.act = Act::Waiting;
        self.reminders.clear();
        self.lanes.iter_mut().for_each(|lane| lane.reminded = false);
        let tally = Tally::new(self.around.plan.watched);
        let tally = std::mem::replace(&mut self.books.tally, tally);
        self.say(Report::Done(Box::new(tally)));
    }

    /// Says what was sent and received, and ends.
    fn take_leave(mut self) {
        let mut sent = Vec::new();
        for lane in &mut self.lanes {
            let partitions = &self.around.spread.groups[lane.group].partitions;
            let slots = lane.slots.iter().enumerate();
            for (place, slot) in slots.filter(|(_, slot)| slot.count > 0) {
                let mut unproven = lane.unproven.remove(&place).unwrap_or_default();
                unproven.sort_unstable();
                sent.push(Sent {
                    producer: lane.producer,
                    partition: partitions[place],
                    count: slot.count,
                    unproven,
                });
            }
        }
        let check = std::mem::take(&mut self.check);
        self.say(Report::Last(sent, Box::new(check)));
    }
}
