//! One consumer's connection to one broker: reads its partitions, tells how long each message took
//! from the moment it was meant to be sent, and checks its bytes if asked to.
//!
//! Which partitions a reader has is given to it; consumer groups will be another giver.

use super::Surroundings;
use super::check::Check;
use super::link::{Link, LinkError};
use super::settle::error_name;
use super::tally::{Books, note, us};
use crate::base::record_batch::{BatchView, Batches};
use crate::limits;
use crate::load::plan::message::Stamp;
use crate::load::plan::{Consume, Leaders};
use crate::wire::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic};
use crate::wire::{ErrorCode, Response, Text, codec};
use std::collections::BTreeMap;

/// A partition that is read.
#[derive(Clone, Copy, Debug)]
struct Part {
    number: u32,
    offset: i64,
    end: i64,
}

/// One consumer's connection to one broker.
pub struct Reader {
    pub(super) link: Link,
    set: u32,
    parts: Vec<Part>,
    /// Place among `parts`, by topic and index.
    places: BTreeMap<(usize, i32), usize>,
    /// Since when an answer is waited for.
    asked_at: Option<u64>,
    /// After an error, not before.
    pause_until: u64,
    /// When the first request left, until the first record came.
    first_asked_at: Option<u64>,
    /// How long the first record took, in nanoseconds.
    pub(super) first_fetch_ns: Option<u64>,
}

impl Reader {
    /// A reader of these partitions for one set of consumers.
    #[must_use]
    pub fn new(set: u32, numbers: &[u32], link: Link, around: &Surroundings) -> Reader {
        let target = &around.plan.target;
        let parts: Vec<Part> = numbers
            .iter()
            .map(|number| {
                let partition = &target.partitions[*number as usize];
                Part {
                    number: *number,
                    offset: partition.begin,
                    end: partition.end,
                }
            })
            .collect();
        let place = |(place, part): (usize, &Part)| {
            let partition = &target.partitions[part.number as usize];
            ((partition.topic, partition.index), place)
        };
        Reader {
            link,
            set,
            places: parts.iter().enumerate().map(place).collect(),
            parts,
            asked_at: None,
            pause_until: 0,
            first_asked_at: None,
            first_fetch_ns: None,
        }
    }

    /// Whether everything is read that was there at the start.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.parts.iter().all(|part| part.offset >= part.end)
    }

    /// Asks for more if no answer is on its way. Says when it wants to be asked again.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn pump(&mut self, now: u64, around: &Surroundings) -> Result<Option<u64>, LinkError> {
        let consume = around.consume();
        if !self.link.is_up() || self.asked_at.is_some() {
            return Ok(None);
        }
        if now < self.pause_until {
            return Ok(Some(self.pause_until));
        }
        if consume.until_end && self.is_at_end() {
            return Ok(None);
        }
        self.link.say(&self.request(consume, around).into())?;
        self.asked_at = Some(now);
        self.first_asked_at.get_or_insert(now);
        Ok(None)
    }

    fn request(&self, consume: &Consume, around: &Surroundings) -> FetchRequest {
        let target = &around.plan.target;
        let topic_of = |part: &Part| target.partitions[part.number as usize].topic;
        let same = |a: &Part, b: &Part| topic_of(a) == topic_of(b);
        let topics = self.parts.chunk_by(same).map(|parts| {
            let partitions = parts
                .iter()
                .filter(|part| !consume.until_end || part.offset < part.end)
                .map(|part| FetchPartition {
                    partition: target.partitions[part.number as usize].index,
                    fetch_offset: part.offset,
                    partition_max_bytes: consume.partition_bytes,
                    ..FetchPartition::default()
                });
            FetchTopic {
                name: target.topics[topic_of(&parts[0])].clone(),
                partitions: partitions.collect(),
                ..FetchTopic::default()
            }
        });
        FetchRequest {
            max_wait_ms: consume.max_wait_ms,
            min_bytes: consume.min_bytes,
            max_bytes: consume.fetch_bytes,
            topics: topics
                .filter(|topic| !topic.partitions.is_empty())
                .collect(),
            ..FetchRequest::default()
        }
    }

    /// Reads answers and takes the records in them.
    ///
    /// # Errors
    /// The connection is lost, or an answer makes no sense.
    pub fn hear(
        &mut self,
        scratch: &mut [u8],
        books: &mut Books,
        check: &mut Check,
        around: &Surroundings,
    ) -> Result<(), LinkError> {
        loop {
            let more = self.link.read(scratch)?;
            while let Some(answer) = self.link.answer()? {
                let Response::Fetch(response) = answer else {
                    let text = "the answer is of another kind than the request";
                    return Err(LinkError::Protocol(text.to_owned()));
                };
                self.asked_at = None;
                books.tick();
                self.take(&response, books, check, around)?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn take(
        &mut self,
        response: &FetchResponse,
        books: &mut Books,
        check: &mut Check,
        around: &Surroundings,
    ) -> Result<(), LinkError> {
        if response.error_code != 0 {
            self.trouble(response.error_code, books);
        }
        for topic in response.topics.iter() {
            let Some(number) = topic_number(&around.plan.target.topics, &topic.name) else {
                continue;
            };
            for answer in topic.partitions.iter() {
                let Some(place) = self.places.get(&(number, answer.partition_index)) else {
                    continue;
                };
                let place = *place;
                if answer.error_code != ErrorCode::None.code() {
                    self.trouble(answer.error_code, books);
                    continue;
                }
                let records = answer.records.unwrap_or_default();
                for batch in Batches::with_partial_tail(&records) {
                    let batch = batch.map_err(|error| LinkError::Protocol(error.to_string()))?;
                    self.take_batch(place, &batch, books, check, around)?;
                }
            }
        }
        Ok(())
    }

    fn trouble(&mut self, code: i16, books: &mut Books) {
        self.pause_until = books.now + limits::LOAD_FETCH_PAUSE_MS * 1_000_000;
        books.leaders_wanted = true;
        books
            .trouble
            .get_or_insert_with(|| format!("fetch: {}", error_name(code)));
    }

    fn take_batch(
        &mut self,
        place: usize,
        batch: &BatchView<'_>,
        books: &mut Books,
        check: &mut Check,
        around: &Surroundings,
    ) -> Result<(), LinkError> {
        let protocol = |text: String| LinkError::Protocol(text);
        let records = codec::uncompressed_records(batch).map_err(|e| protocol(e.to_string()))?;
        let part = &mut self.parts[place];
        let (mut count, mut bytes) = (0, 0);
        if !batch.is_control() {
            for record in batch.records(&records) {
                let record = record.map_err(|error| protocol(error.to_string()))?;
                if record.offset < part.offset {
                    continue;
                }
                let value = record.value.unwrap_or_default();
                count += 1;
                bytes += (value.len() + record.key.map_or(0, <[u8]>::len)) as u64;
                let stamp = Stamp::read(value).filter(|stamp| stamp.run == around.plan.run);
                if let Some(stamp) = &stamp {
                    note_receipt(stamp, books, around);
                }
                if around.plan.verify {
                    check.take(self.set, part.number, stamp.as_ref(), value);
                }
            }
        }
        part.offset = part.offset.max(batch.last_offset().wrapping_add(1));
        if count > 0 && self.first_fetch_ns.is_none() {
            let since = self.first_asked_at.unwrap_or(books.now);
            self.first_fetch_ns = Some(books.now - since);
        }
        let clock_index = books.clock_index();
        let counts = &mut books.tally.cell(clock_index).counts;
        counts.received_meanwhile += count;
        counts.received_meanwhile_bytes += bytes;
        Ok(())
    }

    /// Another broker may lead the partitions now.
    pub fn follow(&mut self, leaders: &Leaders) {
        if let Some(part) = self.parts.first() {
            self.link
                .set_address(leaders.addresses[part.number as usize]);
        }
    }

    /// Whether an answer takes longer than it may.
    #[must_use]
    pub fn is_late(&self, now: u64, timeout_ns: u64, around: &Surroundings) -> bool {
        let patience =
            timeout_ns + u64::from(around.consume().max_wait_ms.unsigned_abs()) * 1_000_000;
        self.asked_at
            .is_some_and(|asked_at| now.saturating_sub(asked_at) > patience)
    }

    /// The connection is lost: what was not read is asked for again.
    pub fn lost(&mut self, now: u64) {
        self.asked_at = None;
        self.link.fail(now);
    }
}

/// A message of this run was received: in the interval of its intended send. One that was meant
/// for an earlier stage, or for after the end, belongs to no interval of this one.
fn note_receipt(stamp: &Stamp, books: &mut Books, around: &Surroundings) {
    let intended = stamp.intended_unix_ns.saturating_sub(around.unix_offset_ns);
    if intended < books.stage.begin_ns || intended >= books.stage.end_ns() {
        return;
    }
    let now = books.now;
    let index = books.index(intended);
    let cell = books.tally.cell(index);
    cell.counts.received += 1;
    if intended > now {
        cell.counts.negative += 1;
    } else {
        let taken = us(now - intended);
        note(&mut cell.latencies.end_to_end, taken, 1);
    }
    books.tally.received += 1;
}

fn topic_number(topics: &[Text], name: &Text) -> Option<usize> {
    topics.iter().position(|topic| topic == name)
}
