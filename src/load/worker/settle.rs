//! What becomes of requests: acknowledged, refused, lost with their connection, or left without an
//! answer at the end. Each message ends in exactly one of these.

use super::Surroundings;
use super::lane::{Lane, Standing};
use super::link::LinkError;
use super::request::{Batch, Request};
use super::tally::{AcknowledgedBatch, Books};
use crate::wire::produce::{ProducePartitionResponse, ProduceResponse};
use crate::wire::{ErrorCode, Response};

/// Name of a failure without a code: the connection went away.
pub const CONNECTION_LOST: &str = "CONNECTION_LOST";
/// Name of a failure without a code: no answer in time. Kafka's own word for it.
pub const REQUEST_TIMED_OUT: &str = "REQUEST_TIMED_OUT";

impl Lane {
    /// Reads answers and settles what they are about. Says whether any came.
    ///
    /// # Errors
    /// The connection is lost, or an answer makes no sense.
    pub fn hear(
        &mut self,
        scratch: &mut [u8],
        books: &mut Books,
        around: &Surroundings,
    ) -> Result<bool, LinkError> {
        let mut heard = false;
        loop {
            let more = self.link.read(scratch)?;
            while let Some(answer) = self.link.answer()? {
                heard = true;
                match answer {
                    Response::Produce(response) => self.settle(&response, books, around)?,
                    Response::InitProducerId(response) if response.error_code == 0 => {
                        self.standing =
                            Standing::Known(response.producer_id, response.producer_epoch);
                        self.slots.iter_mut().for_each(|slot| slot.sequence = 0);
                    }
                    Response::InitProducerId(response) => {
                        let name = error_name(response.error_code);
                        let text = format!("no producer id: {name}");
                        return Err(LinkError::Protocol(text));
                    }
                    _ => {
                        let text = "the answer is of another kind than the request";
                        return Err(LinkError::Protocol(text.to_owned()));
                    }
                }
            }
            if !more {
                return Ok(heard);
            }
        }
    }

    /// Settles the oldest request with its answer.
    fn settle(
        &mut self,
        response: &ProduceResponse,
        books: &mut Books,
        around: &Surroundings,
    ) -> Result<(), LinkError> {
        if self.handed == 0 {
            let text = "an answer to nothing".to_owned();
            return Err(LinkError::Protocol(text));
        }
        let mut request = self.queue.pop_front().expect("it was handed over");
        self.handed -= 1;
        books.tally.returned(request.messages);
        let mut codes: Vec<Option<i16>> = vec![None; request.batches.len()];
        let mut place = 0;
        for topic in response.topics.iter() {
            for partition in topic.partitions.iter() {
                let found = self.find(&request, &topic.name, &partition, place, around);
                let Some(found) = found else { continue };
                codes[found] = Some(partition.error_code);
                place = found + 1;
            }
        }
        let mut again = Vec::new();
        let batches = std::mem::take(&mut request.batches);
        for (batch, code) in batches.into_iter().zip(codes) {
            match code {
                Some(code) if is_success(code) => self.acknowledge(batch, &request, books),
                Some(code) => {
                    let retriable = is_worth_a_retry(code);
                    books.leaders_wanted |= retriable;
                    let name = error_name(code);
                    again.extend(self.refuse(batch, name, retriable, &request, books));
                }
                None => {
                    let name = "UNKNOWN_SERVER_ERROR";
                    self.give_up(&batch, request.interval, name, books);
                }
            }
        }
        self.send_again(again, request, books);
        Ok(())
    }

    /// The batch that a partition's answer is about. Answers mostly come in the order of the
    /// batches, so the search begins behind the last.
    fn find(
        &self,
        request: &Request,
        topic: &crate::wire::Text,
        answer: &ProducePartitionResponse,
        place: usize,
        around: &Surroundings,
    ) -> Option<usize> {
        let target = &around.plan.target;
        let partitions = &around.spread.groups[self.group].partitions;
        let is_it = |batch: &Batch| {
            let partition = &target.partitions[partitions[batch.slot] as usize];
            partition.index == answer.index && target.topics[partition.topic] == *topic
        };
        let count = request.batches.len();
        let order = (place..count).chain(0..place.min(count));
        order
            .into_iter()
            .find(|index| is_it(&request.batches[*index]))
    }

    fn acknowledge(&mut self, batch: Batch, request: &Request, books: &mut Books) {
        let clock_index = books.clock_index();
        let acknowledged = AcknowledgedBatch {
            intended: &batch.intended,
            handed_at: request.handed_at,
            bytes: batch.payload_bytes,
        };
        let now = books.now;
        books
            .tally
            .acknowledged(request.interval, clock_index, &acknowledged, now);
        books.spare.reclaim(batch);
    }

    /// A batch was refused: gives it back if it may be sent again.
    fn refuse(
        &mut self,
        batch: Batch,
        name: &'static str,
        retriable: bool,
        request: &Request,
        books: &mut Books,
    ) -> Option<Batch> {
        if retriable && books.retries > request.attempts && !books.is_over() {
            return Some(batch);
        }
        self.give_up(&batch, request.interval, name, books);
        books.spare.reclaim(batch);
        None
    }

    /// A batch failed for good. The sequence of an idempotent producer has a hole now.
    fn give_up(&mut self, batch: &Batch, interval: usize, name: &'static str, books: &mut Books) {
        let since = books.since_begin_ns();
        let count = batch.intended.len() as u64;
        books.tally.failed(interval, count, name, since);
        self.forget(batch);
        if self.standing != Standing::Anonymous && self.standing != Standing::Asked {
            self.standing = Standing::Wanted;
        }
    }

    /// Notes that nobody promised that a batch is there.
    fn forget(&mut self, batch: &Batch) {
        let end = batch.first + batch.intended.len() as u64;
        let ranges = self.unproven.entry(batch.slot).or_default();
        match ranges.last_mut() {
            Some(last) if last.1 == batch.first => last.1 = end,
            _ => ranges.push((batch.first, end)),
        }
    }

    /// Puts batches behind what is on its way and before what is not.
    fn send_again(&mut self, batches: Vec<Batch>, old: Request, books: &mut Books) {
        if batches.is_empty() {
            return;
        }
        let mut request = Request::new(batches, old.interval, old.ripe_at);
        request.sent = old.sent;
        request.attempts = old.attempts + 1;
        // Retries keep their order among each other.
        let rest = self.queue.iter().skip(self.handed);
        let place = self.handed + rest.take_while(|later| later.attempts > 0).count();
        self.queue.insert(place, request);
        books.leaders_wanted = true;
    }

    /// Without acknowledgements, handed over is all there is to know.
    pub(super) fn settle_unasked(&mut self, books: &mut Books) {
        let mut request = self.queue.pop_front().expect("it was just handed over");
        self.handed -= 1;
        books.tally.returned(request.messages);
        for batch in std::mem::take(&mut request.batches) {
            self.acknowledge(batch, &request, books);
        }
    }

    /// The connection is lost: what was handed over failed, or is sent again; the rest waits for
    /// the next connection.
    pub fn lost(&mut self, error: &LinkError, books: &mut Books, timeout_ns: u64) {
        let handed: Vec<Request> = self.queue.drain(..self.handed).collect();
        self.reset();
        self.link.fail(books.now);
        for mut request in handed {
            books.tally.returned(request.messages);
            let waited = books.now.saturating_sub(request.handed_at);
            let late = matches!(error, LinkError::Late) && waited > timeout_ns;
            let name = if late {
                REQUEST_TIMED_OUT
            } else {
                CONNECTION_LOST
            };
            let mut again = Vec::new();
            for batch in std::mem::take(&mut request.batches) {
                again.extend(self.refuse(batch, name, true, &request, books));
            }
            self.send_again(again, request, books);
        }
    }

    /// The stage is over: what is on its way has no answer, what is not was never sent. Says
    /// whether anything was on its way, whose answers nobody would understand later.
    pub fn end(&mut self, books: &mut Books) -> bool {
        let now = books.now;
        let requests: Vec<Request> = self.queue.drain(..).collect();
        let is_dirty = requests.iter().any(Request::is_framed);
        for (index, request) in requests.into_iter().enumerate() {
            if index < self.handed {
                books.tally.returned(request.messages);
            }
            for batch in request.batches {
                if request.sent {
                    let interval = request.interval;
                    books.tally.unanswered(interval, &batch.intended, now);
                }
                self.forget(&batch);
                books.spare.reclaim(batch);
            }
        }
        self.handed = 0;
        if is_dirty && self.standing != Standing::Anonymous {
            self.standing = Standing::Wanted;
        }
        is_dirty
    }
}

/// A sequence that is there already was acknowledged to somebody who did not hear it.
fn is_success(code: i16) -> bool {
    code == ErrorCode::None.code() || code == ErrorCode::DuplicateSequenceNumber.code()
}

/// Whether the same batch may be taken later. A sequence out of order follows from an earlier batch
/// that is tried again.
fn is_worth_a_retry(code: i16) -> bool {
    let known = ErrorCode::from_code(code);
    known.is_some_and(|error| error.is_retriable() || error == ErrorCode::OutOfOrderSequenceNumber)
}

/// Kafka's name of an error.
#[must_use]
pub fn error_name(code: i16) -> &'static str {
    ErrorCode::from_code(code).map_or("UNKNOWN_SERVER_ERROR", ErrorCode::name)
}
