//! A producer that never gives up what it owes: batches keep their sequence over every reconnect,
//! and are sent again in their first order, as real clients do.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

use penstock::base::ids::Offset;
use penstock::check::event::{self, Sent};
use penstock::check::{Action, Outcome};

use crate::field::{Field, PARTITIONS, TOPIC};
use crate::support::batch::{self, CRC_AT, Identity, NOBODY};
use crate::support::client::{Failure, Produced, code, produce_body};
use crate::support::cluster::Cluster;
use crate::support::history;

/// Answers in a row that say "out of order" to a batch with nothing before it.
const DISORDER_MAX: u32 = 10;
/// Once in so many answers the client hangs up instead of reading: the broker did the work, the
/// client never hears of it, and the retry must not double it (R14).
const ABSENT_ONE_IN: u32 = 150;

/// How a producer works.
#[derive(Clone, Copy, Debug)]
pub struct Habit {
    pub idempotent: bool,
    pub acks: i16,
    /// Batches in flight.
    pub window: usize,
}

struct Batch {
    partition: i32,
    op: u64,
    t_invoke: u64,
    /// How often its bytes may have reached the broker.
    attempts: u16,
    /// Built to be refused: its checksum is wrong.
    broken: bool,
    records: Vec<event::Record>,
    bytes: Vec<u8>,
}

/// One producer.
pub struct Producer {
    number: u32,
    habit: Habit,
    random: fastrand::Rng,
    identity: Option<(i64, i16)>,
    /// Next sequence per partition, as the protocol counts (idempotent only).
    sequences: [i32; PARTITIONS as usize],
    /// Next value.
    value_next: u64,
    op_next: u64,
    open: VecDeque<Batch>,
    disorder: u32,
}

impl Producer {
    pub fn new(number: u32, habit: Habit, field: &Field) -> Producer {
        Producer {
            number,
            habit,
            random: field.random(number),
            identity: None,
            sequences: [0; PARTITIONS as usize],
            value_next: 0,
            op_next: 0,
            open: VecDeque::new(),
            disorder: 0,
        }
    }

    /// Sends until the field drains and nothing is open.
    pub fn run(mut self, field: &Field) {
        let mut cluster: Option<Cluster> = None;
        while !(field.is_over() || field.is_draining() && self.open.is_empty()) {
            let Some(connected) = cluster.as_mut() else {
                cluster = self.reconnect(field);
                if cluster.is_none() {
                    thread::sleep(Duration::from_millis(self.random.u64(1..20)));
                }
                continue;
            };
            if self.step(field, connected).is_err() {
                cluster = None;
                self.give_some_up(field);
            }
        }
        while let Some(batch) = self.open.pop_front() {
            field.fault(format!(
                "producer {}: never answered: op {}",
                self.number, batch.op
            ));
            self.note(field, &batch, Outcome::Info, None);
        }
    }

    /// Connects, makes sure of a producer id, and sends again what is open, in order.
    fn reconnect(&mut self, field: &Field) -> Option<Cluster> {
        let mut cluster = field.connect(self.number)?;
        if self.habit.idempotent && self.identity.is_none() {
            let answer = cluster
                .to(TOPIC, 0)
                .and_then(|connection| connection.init_producer_id());
            match answer {
                Ok((code::NONE, id, epoch)) => self.identity = Some((id, epoch)),
                Ok(_) | Err(Failure::Io(_)) => return None,
                Err(Failure::Malformed(why)) => {
                    field.fault(format!("producer {}: InitProducerId: {why}", self.number));
                    return None;
                }
            }
        }
        for batch in &mut self.open {
            if send(&mut cluster, self.habit.acks, batch).is_err() {
                return None;
            }
        }
        Some(cluster)
    }

    /// Fills the window, or takes one answer. An error means: reconnect.
    fn step(&mut self, field: &Field, cluster: &mut Cluster) -> Result<(), Failure> {
        if !field.is_draining() && self.open.len() < self.habit.window {
            if self.random.u32(0..3) == 0 {
                thread::sleep(Duration::from_micros(self.random.u64(0..4000)));
            }
            let mut batch = self.make(field);
            if self.habit.acks == 0 {
                let sent = send(cluster, 0, &mut batch);
                let outcome = if sent.is_ok() {
                    Outcome::Ok
                } else {
                    Outcome::Info
                };
                self.note(field, &batch, outcome, None);
                return sent;
            }
            self.open.push_back(batch);
            let batch = self.open.back_mut().expect("pushed just now");
            return send(cluster, self.habit.acks, batch);
        }
        let Some(first) = self.open.front() else {
            return Ok(());
        };
        if self.random.u32(0..ABSENT_ONE_IN) == 0 {
            return Err(Failure::Io(ErrorKind::ConnectionAborted.into()));
        }
        let answer = cluster.to(TOPIC, first.partition)?.receive_produced();
        match answer {
            Ok(answer) => self.take_answer(field, answer),
            Err(Failure::Malformed(why)) => {
                field.fault(format!("producer {}: Produce: {why}", self.number));
                Err(Failure::Malformed(why))
            }
            Err(error) => Err(error),
        }
    }

    fn take_answer(&mut self, field: &Field, answer: Produced) -> Result<(), Failure> {
        let batch = self
            .open
            .pop_front()
            .expect("an answer was expected for it");
        let refused = |code: i16| matches!(code, code::CORRUPT_MESSAGE | code::INVALID_RECORD);
        match answer.error {
            code::NONE if batch.broken => {
                field.fault(format!(
                    "producer {}: a broken batch was taken",
                    self.number
                ));
                self.note(field, &batch, Outcome::Ok, Some(answer.base_offset));
            }
            code::NONE => {
                self.disorder = 0;
                self.note(field, &batch, Outcome::Ok, Some(answer.base_offset));
            }
            code::DUPLICATE_SEQUENCE_NUMBER if self.habit.idempotent => {
                self.note(field, &batch, Outcome::Ok, None);
            }
            code if refused(code) && batch.broken => {
                self.note(field, &batch, Outcome::Fail, None);
            }
            code => return self.retry(field, batch, code),
        }
        Ok(())
    }

    /// The head of the window was refused: put it back, and start the window over.
    fn retry(&mut self, field: &Field, batch: Batch, code: i16) -> Result<(), Failure> {
        let disorder = matches!(
            code,
            code::OUT_OF_ORDER_SEQUENCE_NUMBER | code::UNKNOWN_PRODUCER_ID
        );
        let retriable = matches!(
            code,
            code::NOT_LEADER_OR_FOLLOWER
                | code::LEADER_NOT_AVAILABLE
                | code::UNKNOWN_TOPIC_OR_PARTITION
                | code::REQUEST_TIMED_OUT
                | code::KAFKA_STORAGE_ERROR
        );
        self.disorder += u32::from(disorder);
        let number = self.number;
        if self.disorder == DISORDER_MAX {
            field.fault(format!(
                "producer {number}: code {code} to a batch that is next in order"
            ));
        } else if !disorder && !retriable {
            field.fault(format!("producer {number}: code {code} to a good batch"));
        }
        self.open.push_front(batch);
        thread::sleep(Duration::from_millis(10));
        Err(Failure::Malformed("refused; the window starts over"))
    }

    /// After a broken connection a producer without idempotence may stop to care.
    fn give_some_up(&mut self, field: &Field) {
        if self.habit.idempotent {
            return;
        }
        for batch in std::mem::take(&mut self.open) {
            if self.random.u32(0..10) < 3 {
                self.note(field, &batch, Outcome::Info, None);
            } else {
                self.open.push_back(batch);
            }
        }
    }

    fn make(&mut self, field: &Field) -> Batch {
        let partition = self.random.i32(0..PARTITIONS);
        let count = self.random.u32(1..=6);
        let mut seen = Vec::new();
        let mut records = Vec::new();
        for _ in 0..count {
            let length = match self.random.u32(0..100) {
                0..2 => self.random.usize(60_000..200_000),
                2..30 => self.random.usize(1_000..9_000),
                _ => self.random.usize(24..300),
            };
            let (record_seen, record) = history::make(self.number, self.value_next, length);
            self.value_next += 1;
            seen.push(record_seen);
            records.push(record);
        }
        let identity = match self.identity {
            Some((producer_id, epoch)) => {
                let base_sequence = self.sequences[partition as usize];
                self.sequences[partition as usize] += count as i32;
                Identity {
                    producer_id,
                    epoch,
                    base_sequence,
                }
            }
            None => NOBODY,
        };
        let mut bytes = batch::build(identity, &records);
        let alone = !self.habit.idempotent && self.habit.acks != 0;
        let broken = alone && self.random.u32(0..20) == 0;
        if broken {
            bytes[CRC_AT] ^= 0x40;
        }
        let (op, t_invoke) = (self.op_next, field.recorder.now());
        self.op_next += 1;
        Batch {
            partition,
            op,
            t_invoke,
            attempts: 0,
            broken,
            records: seen,
            bytes,
        }
    }

    fn note(&self, field: &Field, batch: &Batch, outcome: Outcome, base_offset: Option<i64>) {
        let sent = Sent {
            place: history::place(TOPIC, batch.partition),
            idempotent: self.habit.idempotent,
            acks: self.habit.acks,
            attempts: batch.attempts.max(1),
            base_offset: base_offset.map(Offset),
            records: batch.records.clone(),
        };
        field.recorder.note(
            self.number,
            batch.op,
            batch.t_invoke,
            outcome,
            Action::Send(sent),
        );
    }
}

/// Writes one batch to the leader of its partition.
fn send(cluster: &mut Cluster, acks: i16, batch: &mut Batch) -> Result<(), Failure> {
    let body = produce_body(TOPIC, batch.partition, acks, &batch.bytes);
    let connection = cluster.to(TOPIC, batch.partition)?;
    batch.attempts = batch.attempts.saturating_add(1);
    if acks == 0 {
        connection.send_unanswered(0, 7, &body)?;
    } else {
        connection.send(0, 7, &body)?;
    }
    Ok(())
}
