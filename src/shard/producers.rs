//! What a partition remembers of its idempotent producers, so that a retry makes no second copy.
//!
//! Invariants: a producer's remembered batches are contiguous in sequence; at most
//! [`PRODUCER_WINDOW`] of them are kept, each with the offset it got; a batch found in the window
//! is answered with *that* offset and never appended again. Sequences run from 0 to `i32::MAX` and
//! wrap to 0. Pure: no clock, no I/O; rebuilt from the journal by replay.

use crate::base::ids::{Offset, ProducerId, StageSequence};
use crate::limits::PRODUCERS_PER_PARTITION_MAX;
use std::collections::{HashMap, VecDeque};

/// Batches remembered per producer: Kafka's clients keep at most five in flight.
pub const PRODUCER_WINDOW: usize = 5;

/// How a batch identifies itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BatchStamp {
    /// The producer.
    pub producer: ProducerId,
    /// Its epoch: a newer one fences the older.
    pub epoch: i16,
    /// Sequence of the batch's first record.
    pub first_sequence: i32,
    /// Number of records, at least 1.
    pub record_count: i32,
}

impl BatchStamp {
    /// Sequence of the batch's last record, wrapping after `i32::MAX`.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        sequence_add(self.first_sequence, self.record_count - 1)
    }
}

/// One remembered batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RememberedBatch {
    /// Sequence of its first record.
    pub first_sequence: i32,
    /// Sequence of its last record.
    pub last_sequence: i32,
    /// Offset of its first record.
    pub base_offset: Offset,
    /// Where it was staged in this process; 0 if it was already durable when the process started.
    pub staged: StageSequence,
}

/// What to do with a batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// New: append it.
    Fresh,
    /// Seen before: answer with what it got then, once that is durable.
    Duplicate(RememberedBatch),
}

/// Why a batch is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SequenceError {
    /// It does not follow the last one.
    OutOfOrder {
        /// The sequence that would have been accepted.
        expected: i32,
        /// The sequence that came.
        found: i32,
    },
    /// Its epoch is older than the newest seen.
    Fenced,
}

/// One producer's window.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProducerWindow {
    /// The newest epoch seen.
    pub epoch: i16,
    /// Its last batches, oldest first.
    pub batches: VecDeque<RememberedBatch>,
}

/// The producers of one partition.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Producers {
    windows: HashMap<ProducerId, ProducerWindow>,
}

impl Producers {
    /// Judges a batch without remembering it.
    ///
    /// # Errors
    /// [`SequenceError`] if it neither follows the producer's last batch nor repeats one of the
    /// remembered ones. A producer never heard of may start anywhere, as in Kafka: its state may
    /// have been forgotten.
    pub fn judge(&self, stamp: &BatchStamp) -> Result<Verdict, SequenceError> {
        let Some(window) = self.windows.get(&stamp.producer) else {
            return Ok(Verdict::Fresh);
        };
        if stamp.epoch < window.epoch {
            return Err(SequenceError::Fenced);
        }
        if stamp.epoch > window.epoch {
            return follows(0, stamp.first_sequence);
        }
        let last_sequence = stamp.last_sequence();
        let repeated = window.batches.iter().find(|batch| {
            batch.first_sequence == stamp.first_sequence && batch.last_sequence == last_sequence
        });
        if let Some(batch) = repeated {
            return Ok(Verdict::Duplicate(*batch));
        }
        match window.batches.back() {
            Some(last) => follows(sequence_add(last.last_sequence, 1), stamp.first_sequence),
            None => Ok(Verdict::Fresh),
        }
    }

    /// Remembers a batch that was judged fresh (or replayed from the journal).
    pub fn remember(&mut self, stamp: &BatchStamp, base_offset: Offset, staged: StageSequence) {
        assert!(stamp.record_count > 0, "a batch has at least one record");
        if !self.windows.contains_key(&stamp.producer) {
            self.make_room();
        }
        let window = self
            .windows
            .entry(stamp.producer)
            .or_insert_with(|| ProducerWindow {
                epoch: stamp.epoch,
                batches: VecDeque::with_capacity(PRODUCER_WINDOW),
            });
        if window.epoch != stamp.epoch {
            window.epoch = stamp.epoch;
            window.batches.clear();
        }
        if window.batches.len() == PRODUCER_WINDOW {
            window.batches.pop_front();
        }
        window.batches.push_back(RememberedBatch {
            first_sequence: stamp.first_sequence,
            last_sequence: stamp.last_sequence(),
            base_offset,
            staged,
        });
    }

    /// Puts back a window from a checkpoint.
    pub fn restore(&mut self, producer: ProducerId, window: ProducerWindow) {
        assert!(
            window.batches.len() <= PRODUCER_WINDOW,
            "a window holds five batches"
        );
        self.windows.insert(producer, window);
    }

    /// Every producer and its window.
    pub fn iter(&self) -> impl Iterator<Item = (&ProducerId, &ProducerWindow)> {
        self.windows.iter()
    }

    /// Number of producers remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.windows.len()
    }

    /// Whether no producer is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Forgets the tenth that wrote longest ago when the table is full: the same choice live and in
    /// replay, because it depends on offsets only.
    fn make_room(&mut self) {
        if self.windows.len() < PRODUCERS_PER_PARTITION_MAX {
            return;
        }
        let mut ages: Vec<(Offset, ProducerId)> = self
            .windows
            .iter()
            .map(|(producer, window)| {
                let last = window
                    .batches
                    .back()
                    .map_or(Offset(-1), |batch| batch.base_offset);
                (last, *producer)
            })
            .collect();
        ages.sort_unstable();
        for (_, producer) in ages.iter().take(PRODUCERS_PER_PARTITION_MAX / 10) {
            self.windows.remove(producer);
        }
    }
}

fn follows(expected: i32, found: i32) -> Result<Verdict, SequenceError> {
    if found == expected {
        Ok(Verdict::Fresh)
    } else {
        Err(SequenceError::OutOfOrder { expected, found })
    }
}

/// Adds to a sequence; after `i32::MAX` comes 0.
fn sequence_add(sequence: i32, count: i32) -> i32 {
    let sum = i64::from(sequence) + i64::from(count);
    let wrapped = sum % (i64::from(i32::MAX) + 1);
    i32::try_from(wrapped).expect("a remainder below 2^31 fits an i32")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(epoch: i16, first_sequence: i32, record_count: i32) -> BatchStamp {
        BatchStamp {
            producer: ProducerId(7),
            epoch,
            first_sequence,
            record_count,
        }
    }

    fn filled(count: i32) -> Producers {
        let mut producers = Producers::default();
        for index in 0..count {
            let batch = stamp(0, index * 10, 10);
            assert_eq!(producers.judge(&batch), Ok(Verdict::Fresh));
            let number = u64::try_from(index + 1).expect("small");
            producers.remember(&batch, Offset(i64::from(index) * 10), StageSequence(number));
        }
        producers
    }

    /// Goal: a retry of any of the last five gets the offset it had. Method: nine batches, ask
    /// again.
    #[test]
    fn last_five_are_answered_with_their_offset() {
        let producers = filled(9);
        for index in 4..9 {
            let Ok(Verdict::Duplicate(batch)) = producers.judge(&stamp(0, index * 10, 10)) else {
                panic!("batch {index} is not recognised");
            };
            assert_eq!(batch.base_offset, Offset(i64::from(index) * 10));
        }
        assert_eq!(
            producers.judge(&stamp(0, 30, 10)),
            Err(SequenceError::OutOfOrder {
                expected: 90,
                found: 30
            })
        );
    }

    /// Goal: a gap is refused and named; an old epoch is fenced; a new epoch starts at 0.
    #[test]
    fn gaps_and_epochs() {
        let mut producers = filled(2);
        assert_eq!(
            producers.judge(&stamp(0, 21, 1)),
            Err(SequenceError::OutOfOrder {
                expected: 20,
                found: 21
            })
        );
        assert!(producers.judge(&stamp(1, 20, 1)).is_err());
        assert_eq!(producers.judge(&stamp(1, 0, 1)), Ok(Verdict::Fresh));
        producers.remember(&stamp(1, 0, 1), Offset(20), StageSequence(3));
        assert_eq!(
            producers.judge(&stamp(0, 20, 1)),
            Err(SequenceError::Fenced)
        );
        assert_eq!(producers.judge(&stamp(1, 1, 1)), Ok(Verdict::Fresh));
    }

    /// Goal: a part of a remembered batch is no duplicate (its records would be lost). Method: the
    /// same first sequence with another count.
    #[test]
    fn a_batch_of_another_length_is_no_duplicate() {
        let producers = filled(2);
        assert!(producers.judge(&stamp(0, 10, 9)).is_err());
        assert!(producers.judge(&stamp(0, 10, 11)).is_err());
    }

    /// Goal: sequences wrap to 0 after `i32::MAX`, inside a batch and between batches.
    #[test]
    fn sequences_wrap() {
        let mut producers = Producers::default();
        producers.remember(&stamp(0, i32::MAX - 1, 2), Offset(0), StageSequence(1));
        assert_eq!(producers.judge(&stamp(0, 0, 1)), Ok(Verdict::Fresh));
        let across = stamp(0, i32::MAX, 3);
        assert_eq!(across.last_sequence(), 1);
    }

    /// Goal: the table is bounded, and forgets those that wrote longest ago.
    #[test]
    fn the_table_is_bounded() {
        let mut producers = Producers::default();
        let count = i64::try_from(PRODUCERS_PER_PARTITION_MAX).expect("small") + 1;
        for id in 0..count {
            let batch = BatchStamp {
                producer: ProducerId(id),
                ..stamp(0, 0, 1)
            };
            producers.remember(&batch, Offset(id), StageSequence(1));
        }
        assert!(producers.len() <= PRODUCERS_PER_PARTITION_MAX);
        let newest = BatchStamp {
            producer: ProducerId(count - 1),
            ..stamp(0, 0, 1)
        };
        assert!(matches!(
            producers.judge(&newest),
            Ok(Verdict::Duplicate(_))
        ));
        let oldest = BatchStamp {
            producer: ProducerId(0),
            ..stamp(0, 0, 1)
        };
        assert_eq!(producers.judge(&oldest), Ok(Verdict::Fresh));
    }
}
