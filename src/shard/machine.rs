//! The shard as a deterministic state machine: `journal entries → state`.
//!
//! Everything a shard knows follows from its journal, applied in order, and it changes only here:
//! when an entry is durable, live and in replay alike. (What was *staged* and is still in flight is
//! kept beside it, in `Partition::next` and `Partition::staged_producers`.)

use super::catalog::{Catalog, TopicChange};
use super::checkpoint;
use super::partition::Partition;
use crate::base::ids::{Offset, ShardId, TopicId, TopicPartition};
use crate::journal::{EntryKind, EntryView, Extent, Location, StateMachine};
use std::collections::HashMap;

/// The state of one shard. Lives on the core that owns the shard.
pub struct ShardState {
    /// Which shard this is.
    pub shard: ShardId,
    /// The partitions that have, or had, records.
    pub partitions: HashMap<TopicPartition, Partition>,
    /// The catalogue; only shard 0's is ever filled.
    pub catalog: Catalog,
    /// The next producer id to reserve; only shard 0's is used.
    pub producer_id_next: i64,
    /// Extents whose records are dead, to be handed back to the journal.
    pub released: Vec<Extent>,
    /// A block was found whose contents are unknown. A partition without a later entry may have
    /// lost its newest records in it, so it takes no more: an offset is never assigned twice.
    pub unknown_damage: bool,
}

impl ShardState {
    /// An empty shard.
    #[must_use]
    pub fn new(shard: ShardId) -> Self {
        Self {
            shard,
            partitions: HashMap::new(),
            catalog: Catalog::default(),
            producer_id_next: 0,
            released: Vec::new(),
            unknown_damage: false,
        }
    }

    /// Whether a partition may assign offsets.
    #[must_use]
    pub fn takes_appends(&self, partition: &TopicPartition) -> bool {
        match self.partitions.get(partition) {
            Some(known) if known.quarantine.is_some() => false,
            Some(known) => !self.unknown_damage || known.seen_after_damage,
            None => !self.unknown_damage,
        }
    }

    fn apply_damage(&mut self, partition: Option<TopicPartition>, base: Offset, count: u32) {
        let Some(partition) = partition else {
            self.unknown_damage = true;
            for known in self.partitions.values_mut() {
                known.seen_after_damage = false;
            }
            return;
        };
        let known = self.partitions.entry(partition).or_default();
        let last = base.0 + i64::from(count) - 1;
        known.set_quarantine(
            base,
            format!("offsets {base} to {last} are damaged on disk"),
        );
    }

    fn apply_state(&mut self, kind: EntryKind, body: &[u8]) {
        match kind {
            EntryKind::Topic => self.catalog.apply(decode_topic_change(body)),
            EntryKind::Producers => self.producer_id_next = decode_producer_ids(body),
            EntryKind::TopicDropped => self.drop_topic(decode_topic_dropped(body)),
            other => {
                panic!("the journal delivered {other:?}, which no shard of this version stages")
            }
        }
    }

    fn drop_topic(&mut self, topic: TopicId) {
        let gone: Vec<TopicPartition> = self
            .partitions
            .keys()
            .filter(|key| key.topic == topic)
            .copied()
            .collect();
        for key in gone {
            let mut partition = self
                .partitions
                .remove(&key)
                .expect("the key was just listed");
            partition.parked.wake_all();
            self.released
                .extend(partition.extents.iter().map(|stored| stored.extent));
        }
    }
}

impl StateMachine for ShardState {
    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let shard = self.shard;
        *self = checkpoint::decode(shard, bytes)?;
        Ok(())
    }

    fn apply(&mut self, _location: Location, entry: EntryView<'_>) {
        match entry {
            EntryView::Records {
                partition,
                base_offset,
                record_count,
                extent,
                batches,
            } => {
                let known = self.partitions.entry(partition).or_default();
                known.seen_after_damage = true;
                known.apply(base_offset, record_count, extent, batches);
            }
            EntryView::State { kind, body } => self.apply_state(kind, body),
            EntryView::Damaged {
                partition,
                base_offset,
                record_count,
                ..
            } => {
                self.apply_damage(partition, base_offset, record_count);
            }
        }
    }
}

/// The body of a topic-change entry.
#[must_use]
pub fn encode_topic_change(change: &TopicChange) -> Vec<u8> {
    serde_json::to_vec(change).expect("a topic change has only strings and numbers")
}

fn decode_topic_change(body: &[u8]) -> TopicChange {
    serde_json::from_slice(body)
        .expect("an entry whose CRC holds was written by `encode_topic_change`")
}

/// The body of a producer-ids entry: the next id that was never handed out, 8 bytes little endian.
#[must_use]
pub fn encode_producer_ids(next: i64) -> Vec<u8> {
    next.to_le_bytes().to_vec()
}

fn decode_producer_ids(body: &[u8]) -> i64 {
    let bytes = body.try_into().expect("a producer-ids entry has 8 bytes");
    i64::from_le_bytes(bytes)
}

/// The body of a topic-dropped entry: the topic's id, 16 bytes.
#[must_use]
pub fn encode_topic_dropped(topic: TopicId) -> Vec<u8> {
    topic.0.to_vec()
}

fn decode_topic_dropped(body: &[u8]) -> TopicId {
    TopicId(body.try_into().expect("a topic-dropped entry has 16 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{BlockSequence, PartitionIndex, Position, Term};
    use crate::base::record_batch::{BatchBuilder, RecordData, set_base_offset};

    const LOCATION: Location = Location {
        block: BlockSequence(1),
        position: Position(0),
        term: Term(1),
    };

    fn key(partition: i32) -> TopicPartition {
        TopicPartition {
            topic: TopicId([1; 16]),
            partition: PartitionIndex(partition),
        }
    }

    fn extent(base: i64, len_bytes: usize) -> Extent {
        Extent {
            position: Position(4096),
            len_bytes: u32::try_from(len_bytes).expect("small"),
            leader_epoch: 0,
            base_offset: Offset(base),
        }
    }

    /// Replays one record of a partition at an offset.
    fn replay(state: &mut ShardState, partition: i32, base: i64) {
        let mut builder = BatchBuilder::new();
        builder.append(&RecordData::default());
        let mut batch = builder.finish();
        set_base_offset(&mut batch, base);
        state.apply(
            LOCATION,
            EntryView::Records {
                partition: key(partition),
                base_offset: Offset(base),
                record_count: 1,
                extent: extent(base, batch.len()),
                batches: &batch,
            },
        );
    }

    fn damage(state: &mut ShardState, partition: Option<i32>, base: i64) {
        state.apply(
            LOCATION,
            EntryView::Damaged {
                partition: partition.map(key),
                base_offset: Offset(base),
                record_count: 1,
                extent: extent(base, 0),
            },
        );
    }

    /// Goal: damage in one partition stops that one at the damage, and no other. Method: replay two
    /// partitions, damage one in the middle, go on with both.
    #[test]
    fn damage_stops_its_own_partition() {
        let mut state = ShardState::new(ShardId(1));
        for base in 0..3 {
            replay(&mut state, 0, base);
            replay(&mut state, 1, base);
        }
        damage(&mut state, Some(0), 3);
        replay(&mut state, 0, 4);
        replay(&mut state, 1, 3);
        assert_eq!(state.partitions[&key(0)].committed, Offset(3));
        assert!(
            !state.takes_appends(&key(0)),
            "its next offset would be a second one"
        );
        assert_eq!(state.partitions[&key(1)].committed, Offset(4));
        assert!(state.takes_appends(&key(1)));
    }

    /// Goal: after a block whose contents nobody knows, a partition takes appends only if a later
    /// entry proves that it lost nothing; one with a gap is stopped at the gap.
    #[test]
    fn unknown_damage_stops_all_that_nothing_vouches_for() {
        let mut state = ShardState::new(ShardId(1));
        for partition in 0..3 {
            replay(&mut state, partition, 0);
        }
        damage(&mut state, None, 0);
        replay(&mut state, 0, 1);
        replay(&mut state, 1, 2);
        assert!(
            state.takes_appends(&key(0)),
            "a later entry follows without a gap"
        );
        assert!(!state.takes_appends(&key(1)), "offset 1 is missing");
        assert_eq!(state.partitions[&key(1)].committed, Offset(1));
        assert!(
            !state.takes_appends(&key(2)),
            "nothing tells whether it lost its newest records"
        );
        assert!(
            !state.takes_appends(&key(9)),
            "nor whether this one ever had any"
        );
    }

    /// Goal: a dropped topic gives all its room back, once.
    #[test]
    fn a_dropped_topic_releases_its_extents() {
        let mut state = ShardState::new(ShardId(1));
        for base in 0..5 {
            replay(&mut state, 0, base);
        }
        let body = encode_topic_dropped(TopicId([1; 16]));
        let dropped = EntryView::State {
            kind: EntryKind::TopicDropped,
            body: &body,
        };
        state.apply(LOCATION, dropped);
        assert_eq!(state.released.len(), 5);
        assert!(state.partitions.is_empty());
        state.apply(LOCATION, dropped);
        assert_eq!(state.released.len(), 5);
    }
}
