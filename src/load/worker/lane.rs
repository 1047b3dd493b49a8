//! One producer's connection to one broker: takes messages as they fall due, hands them over while
//! the window has room, and keeps nothing for those that wait but its place in the schedule.
//!
//! ```text
//! course ──due──▶ request ──room──▶ handed over ──answer──▶ settled
//!   ▲ (arithmetic)      └──── queue[handed..] ──┘└ queue[..handed] ┘
//! ```
//!
//! *Whose lag it is.* While the window is full, the socket takes no bytes or the connection is
//! down, waiting is the broker's doing. `free_since` is the moment the way was last free again —
//! at the earliest the moment at which we could have noticed. What passes between that (or the
//! intended send, whichever is later) and the hand-over is our own lag, and nothing else is.
//!
//! Invariants: a request is handed over whole or counts as not sent; the first `handed` requests of
//! the queue are on their way and are answered in order; the sequence numbers of a partition are
//! given out in the order of the hand-over.

use super::link::{Link, LinkError};
use super::pace::Course;
use super::request::{Batch, Identity, OpenBatch, Request};
use super::tally::Books;
use super::{Stage, Surroundings};
use crate::base::record_batch::{HEADER_BYTES, RECORD_OVERHEAD_BYTES_MAX};
use crate::limits;
use crate::load::plan::message::{KEY_BYTES, Stamp};
use crate::load::plan::spread::{Group, Place};
use crate::load::plan::{Leaders, Produce};
use crate::wire::messages::InitProducerIdRequest;
use std::collections::{BTreeMap, VecDeque};

/// No batch is open.
const CLOSED: u32 = u32::MAX;

/// What a lane keeps of one partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// Next sequence number of the idempotent producer.
    pub sequence: i32,
    /// Index of its batch in the request that is being built.
    open: u32,
    /// Messages of this producer to this partition so far.
    pub count: u64,
}

/// A message that is due next.
#[derive(Clone, Copy, Debug)]
struct Next {
    number: u64,
    /// From the stage's start; `None` in a closed loop.
    time: Option<u64>,
    slot: Option<usize>,
    key: Option<[u8; KEY_BYTES]>,
}

/// Where an idempotent producer's identity stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Standing {
    /// Not idempotent.
    Anonymous,
    /// It has none, or one whose sequences have a hole.
    Wanted,
    /// Asked for.
    Asked,
    /// It has one.
    Known(i64, i16),
}

/// One producer's connection to one broker.
pub struct Lane {
    pub(super) producer: u32,
    pub(super) group: usize,
    pub(super) link: Link,
    pub(super) slots: Vec<Slot>,
    pub(super) standing: Standing,
    pub(super) queue: VecDeque<Request>,
    pub(super) handed: usize,
    /// Messages, by slot, from `.0` to before `.1`, of which no acknowledgement came.
    pub(super) unproven: BTreeMap<usize, Vec<(u64, u64)>>,
    course: Course,
    next: Option<Next>,
    turn: usize,
    free_since: u64,
    is_free: bool,
    socket_full: bool,
    /// Whether the worker has a reminder for this lane.
    pub(super) reminded: bool,
}

impl Lane {
    /// A lane that has nothing to send yet.
    #[must_use]
    pub fn new(producer: u32, group: usize, link: Link, surroundings: &Surroundings) -> Lane {
        let slots = surroundings.spread.groups[group].partitions.len();
        let idempotent = surroundings.produce().idempotent;
        let slot = Slot {
            sequence: 0,
            open: CLOSED,
            count: 0,
        };
        Lane {
            producer,
            group,
            link,
            slots: vec![slot; slots],
            standing: if idempotent {
                Standing::Wanted
            } else {
                Standing::Anonymous
            },
            queue: VecDeque::new(),
            handed: 0,
            unproven: BTreeMap::new(),
            course: Course::Closed {
                next: 0,
                step: 1,
                limit: 0,
            },
            next: None,
            // Producers started together should not all begin with the same partition.
            turn: producer as usize % slots,
            free_since: 0,
            is_free: false,
            socket_full: false,
            reminded: false,
        }
    }

    /// Begins to walk along another stage.
    pub fn begin(&mut self, stage: &Stage, surroundings: &Surroundings) {
        let produce = surroundings.produce();
        let part = surroundings.spread.part(self.group, &produce.keys);
        let producer = u64::from(self.producer);
        let producers = u64::from(produce.producers);
        self.course = stage.pace.course(producer, producers, part);
        self.next = None;
        self.free_since = stage.begin_ns;
    }

    /// Whether messages can be handed over: connected, and known to the broker if it has to be.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.link.is_up() && matches!(self.standing, Standing::Anonymous | Standing::Known(..))
    }

    /// Whether nothing is left to send or to be answered.
    pub fn is_done(&mut self, surroundings: &Surroundings) -> bool {
        self.queue.is_empty() && self.peek(surroundings).is_none()
    }

    /// Asks for an identity once nothing is on its way under the old one.
    pub(super) fn introduce(&mut self) -> Result<(), LinkError> {
        if self.standing == Standing::Wanted && self.link.is_up() && self.handed == 0 {
            self.standing = Standing::Asked;
            self.link.say(&InitProducerIdRequest::default().into())?;
        }
        Ok(())
    }

    /// The socket has room again.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn writable(&mut self, now: u64) -> Result<(), LinkError> {
        self.socket_full = false;
        self.link.writable(now)
    }

    /// Hands over what is due while there is room. Says when it wants to be asked again without any
    /// event: `None` if only an event can help.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn pump(
        &mut self,
        books: &mut Books,
        around: &Surroundings,
    ) -> Result<Option<u64>, LinkError> {
        self.introduce()?;
        loop {
            let free =
                self.is_ready() && !self.socket_full && self.handed < around.produce().in_flight;
            if free && !self.is_free {
                self.free_since = books.look_ns;
            }
            self.is_free = free;
            if !free {
                return Ok(None);
            }
            if self.handed == self.queue.len() {
                let Some(ripe_at) = self.ripe_at(books, around) else {
                    return Ok(None);
                };
                if books.is_over() {
                    if !self.may_finish(books) {
                        return Ok(None);
                    }
                } else if ripe_at > books.now {
                    return Ok(Some(ripe_at));
                }
                let request = self.build(ripe_at, books, around);
                self.queue.push_back(request);
            }
            self.hand_over(books, around)?;
        }
    }

    /// Whether, at the end, the lane is so close to its schedule that the rest of it still goes out
    /// if there is room: it was due, and only the turn of the loop came a little later.
    fn may_finish(&self, books: &Books) -> bool {
        let end_ns = books.stage.pace.end_ns();
        let close_ns = end_ns.saturating_sub(limits::LOAD_LAST_MS * 1_000_000);
        let time = self.next.and_then(|next| next.time);
        books.is_finishing && time.is_some_and(|time| time >= close_ns)
    }

    /// Hands over the first request that is not handed over yet, as far as there is room.
    fn hand_over(&mut self, books: &mut Books, around: &Surroundings) -> Result<(), LinkError> {
        let produce = around.produce();
        let partitions = &around.spread.groups[self.group].partitions;
        let request = &mut self.queue[self.handed];
        if !request.is_framed() {
            if let Standing::Known(id, epoch) = self.standing {
                identify(&mut request.batches, &mut self.slots, (id, epoch));
            }
            let partition_of = |slot: usize| partitions[slot];
            request.frame(
                &mut self.link,
                &around.plan,
                produce,
                partition_of,
                books.now,
            )?;
        }
        if !request.hand_over(&mut self.link)? {
            self.socket_full = true;
            return Ok(());
        }
        let now = books.tick();
        request.handed_at = now;
        let free_since = self.free_since.max(request.ripe_at);
        if !request.sent {
            request.sent = true;
            for batch in &request.batches {
                let tally = &mut books.tally;
                tally.sent(request.interval, &batch.intended, free_since, now);
            }
        }
        let messages = request.messages;
        self.handed += 1;
        let clock_index = books.clock_index();
        books.tally.departed(messages, clock_index);
        if produce.acks == 0 {
            self.settle_unasked(books);
        }
        Ok(())
    }

    fn peek(&mut self, around: &Surroundings) -> Option<Next> {
        if self.next.is_some() {
            return self.next;
        }
        let produce = around.produce();
        let producer = u64::from(self.producer);
        while let Some((number, time)) = self.course.peek() {
            self.course.advance();
            let key = produce.keys.of(around.plan.seed, producer, number);
            let message = (producer, number);
            let place = around
                .spread
                .place(self.group, &produce.keys, message, key.as_ref());
            let slot = match place {
                Place::Elsewhere => continue,
                Place::Any => None,
                Place::Slot(slot) => Some(slot),
            };
            self.next = Some(Next {
                number,
                time,
                slot,
                key,
            });
            return self.next;
        }
        None
    }

    /// When the next request has to leave: when its first message is due and has waited for others
    /// as long as it may, or when there are enough of them.
    fn ripe_at(&mut self, books: &Books, around: &Surroundings) -> Option<u64> {
        let produce = around.produce();
        let next = self.peek(around)?;
        let Some(time) = next.time else {
            return Some(books.now);
        };
        let begin = books.stage.begin_ns;
        if produce.linger_ns == 0 {
            return Some(begin + time);
        }
        let lingered = time + produce.linger_ns;
        let filled = match &self.course {
            // The next message is taken from the course already, so the count starts behind it.
            Course::Open(stream) => match messages_of_batch(produce) {
                0 | 1 => Some(time),
                count => stream.time_ahead(count - 2),
            },
            Course::Closed { .. } => None,
        };
        Some(begin + filled.map_or(lingered, |filled| filled.clamp(time, lingered)))
    }

    /// Takes all messages that are due into a request, as far as they fit.
    fn build(&mut self, ripe_at: u64, books: &mut Books, around: &Surroundings) -> Request {
        let produce = around.produce();
        let now = books.now;
        let begin = books.stage.begin_ns;
        let first = self.peek(around).expect("the caller saw one");
        let interval = books.index(first.time.map_or(now, |time| begin + time));
        let interval_end = books.stage.timeline.end_of(interval).saturating_add(begin);
        let mut open: Vec<OpenBatch> = Vec::new();
        let mut bytes = 0;
        let mut messages = 0;
        let turn = self.turn;
        self.turn = (turn + 1) % self.slots.len();
        while let Some(next) = self.peek(around) {
            let time = next.time.map_or(now, |time| begin + time);
            let first = messages == 0;
            let is_due = time <= now && time < interval_end;
            let size = produce
                .sizes
                .of(around.plan.seed, self.producer.into(), next.number);
            let slot = next.slot.unwrap_or(turn);
            let fits = self.fits(produce, &open, slot, size)
                && bytes + size <= limits::LOAD_REQUEST_BYTES_MAX
                && messages < produce.batch_messages;
            if !(first || is_due && fits) {
                break;
            }
            self.next = None;
            messages += 1;
            bytes += size + RECORD_OVERHEAD_BYTES_MAX;
            self.append(&mut open, (slot, size, time), &next, books, around);
        }
        books.tally.cell(interval).counts.offered += messages as u64;
        let close = |batch: OpenBatch| {
            self.slots[batch.slot].open = CLOSED;
            batch.close(produce.codec)
        };
        let mut batches: Vec<Batch> = open.into_iter().map(close).collect();
        // Batches of one topic go together, as the protocol wants them.
        batches.sort_by_key(|batch| batch.slot);
        let ripe_at = if produce.linger_ns == 0 { 0 } else { ripe_at };
        Request::new(batches, interval, ripe_at)
    }

    /// Whether a message still fits into the batch of its partition.
    fn fits(&self, produce: &Produce, open: &[OpenBatch], slot: usize, size: usize) -> bool {
        let Some(batch) = open.get(self.slots[slot].open as usize) else {
            return true;
        };
        batch.writer.bytes() + size + KEY_BYTES + RECORD_OVERHEAD_BYTES_MAX <= produce.batch_bytes
    }

    fn append(
        &mut self,
        open: &mut Vec<OpenBatch>,
        (slot, size, time): (usize, usize, u64),
        next: &Next,
        books: &mut Books,
        around: &Surroundings,
    ) {
        let place = &mut self.slots[slot];
        if place.open == CLOSED {
            place.open = open.len() as u32;
            open.push(books.spare.open(slot, place.count));
        }
        let sequence = place.count;
        place.count += 1;
        let batch = &mut open[place.open as usize];
        let produce = around.produce();
        let unix_ns = time + around.unix_offset_ns;
        let filler = produce.filler.of(self.producer.into(), next.number, size);
        let key = next.key.as_ref().map(|key| &key[..]);
        let timestamp = (unix_ns / 1_000_000).cast_signed();
        let payload = batch.writer.append(timestamp, key, filler);
        if produce.stamped {
            let stamp = Stamp {
                producer: self.producer,
                sequence,
                intended_unix_ns: unix_ns,
                run: around.plan.run,
                partition: around.spread.groups[self.group].partitions[slot],
            };
            stamp.put(payload, around.plan.verify);
        }
        batch.intended.push(time);
        batch.payload_bytes += (size + key.map_or(0, <[u8]>::len)) as u64;
    }

    /// Counts what the schedule still meant to be sent before `end_ns` (from the stage's start),
    /// and is not.
    pub fn offer_rest(&mut self, end_ns: u64, books: &mut Books, around: &Surroundings) {
        while let Some(time) = self.peek(around).and_then(|next| next.time) {
            if time >= end_ns {
                return;
            }
            self.next = None;
            let index = books.stage.timeline.index(time);
            let until = books.stage.timeline.end_of(index).min(end_ns);
            let mut count = 1;
            let group = &around.spread.groups[self.group];
            match &mut self.course {
                Course::Open(stream) if walks_alone(group, around) => {
                    count += stream.skip_until(until);
                }
                _ => {
                    while self
                        .peek(around)
                        .and_then(|next| next.time)
                        .is_some_and(|t| t < until)
                    {
                        self.next = None;
                        count += 1;
                    }
                }
            }
            books.tally.cell(index).counts.offered += count;
        }
    }

    /// Another broker may lead the partitions now.
    pub fn follow(&mut self, leaders: &Leaders, around: &Surroundings) {
        let first = around.spread.groups[self.group].partitions[0] as usize;
        self.link.set_address(leaders.addresses[first]);
    }

    /// Whether the oldest request, or the one that is being handed over, waits for too long.
    #[must_use]
    pub fn is_late(&self, now: u64, timeout_ns: u64) -> bool {
        let late = |since: u64| now.saturating_sub(since) > timeout_ns;
        let answer = self.handed > 0 && late(self.queue[0].handed_at);
        let partly = self.queue.get(self.handed);
        answer || partly.is_some_and(|request| request.is_framed() && late(request.begun_at))
    }

    /// The connection is gone: nothing that is on its way will be answered.
    pub(super) fn reset(&mut self) {
        for request in &mut self.queue {
            request.unframe();
        }
        self.handed = 0;
        self.is_free = false;
        self.socket_full = false;
        if self.standing == Standing::Asked {
            self.standing = Standing::Wanted;
        }
    }
}

/// Whether every message of a lane's course is the lane's.
fn walks_alone(group: &Group, around: &Surroundings) -> bool {
    let whole = group.partitions.len() == around.plan.target.partitions.len();
    whole || around.spread.is_dealt(&around.produce().keys)
}

/// How many messages fill a batch, about.
fn messages_of_batch(produce: &Produce) -> u64 {
    let size = usize::midpoint(produce.sizes.least(), produce.sizes.most()) + KEY_BYTES;
    let count = produce.batch_bytes.saturating_sub(HEADER_BYTES) / size;
    count.clamp(1, produce.batch_messages) as u64
}

/// Gives batches that have no identity, or that of another life, their sequence numbers.
fn identify(batches: &mut [Batch], slots: &mut [Slot], (id, epoch): (i64, i16)) {
    for batch in batches {
        let same = |known: Identity| known.id == id && known.epoch == epoch;
        if batch.identity.is_some_and(same) {
            continue;
        }
        let slot = &mut slots[batch.slot];
        batch.identity = Some(Identity {
            id,
            epoch,
            sequence: slot.sequence,
        });
        let count = i64::try_from(batch.intended.len()).expect("a batch is small");
        // After the largest number comes 0.
        let next = (i64::from(slot.sequence) + count) % (i64::from(i32::MAX) + 1);
        slot.sequence = i32::try_from(next).expect("below the modulus");
    }
}
