//! A shard's state as bytes, for the journal's checkpoint files (which carry the CRC and the
//! position). Little endian throughout:
//!
//! ```text
//! u16 version = 1 │ u8 unknown_damage │ i64 producer_id_next │ u32 length, catalogue as JSON
//! u32 partitions, each:
//!   [16] topic │ i32 partition │ i64 log_start │ i64 committed │ u8 seen_after_damage
//!   u8 quarantined (then i64 from │ u32 length, reason)
//!   u32 extents, each:   i64 first │ i64 last │ i64 max timestamp so far
//!                        u64 position │ u32 length │ i32 leader epoch
//!   u32 producers, each: i64 id │ i16 epoch │ u8 batches, each: i32 first │ i32 last │ i64 offset
//! ```
//! Only durable state enters: see `Partition::durable_producers`.

use super::catalog::Catalog;
use super::machine::ShardState;
use super::partition::{Partition, Quarantine, StoredExtent};
use super::producers::{PRODUCER_WINDOW, ProducerWindow, Producers, RememberedBatch};
use crate::base::ids::{
    Offset, PartitionIndex, Position, ProducerId, ShardId, StageSequence, TopicId, TopicPartition,
};
use crate::journal::Extent;
use bytes::{Buf, BufMut};
use std::collections::VecDeque;

const VERSION: u16 = 1;
/// Bytes of an extent.
const EXTENT_BYTES: usize = 40;
/// Bytes of a producer whose window is full.
const PRODUCER_BYTES: usize = 11 + PRODUCER_WINDOW * 16;

/// The durable state of a shard as bytes.
#[must_use]
pub fn encode(state: &ShardState) -> Vec<u8> {
    let partitions = state.partitions.values();
    let extents: usize = partitions.clone().map(|known| known.extents.len()).sum();
    let producers: usize = partitions.map(|known| known.durable_producers.len()).sum();
    let mut out = Vec::with_capacity(
        4096 + 64 * state.partitions.len() + EXTENT_BYTES * extents + PRODUCER_BYTES * producers,
    );
    out.put_u16_le(VERSION);
    out.put_u8(u8::from(state.unknown_damage));
    out.put_i64_le(state.producer_id_next);
    let catalog = serde_json::to_vec(&state.catalog.to_saved())
        .expect("a catalogue has only strings and numbers");
    put_block(&mut out, &catalog);
    put_count(&mut out, state.partitions.len());
    for (key, partition) in &state.partitions {
        put_partition(&mut out, key, partition);
    }
    out
}

fn put_partition(out: &mut Vec<u8>, key: &TopicPartition, partition: &Partition) {
    out.put_slice(&key.topic.0);
    out.put_i32_le(key.partition.0);
    out.put_i64_le(partition.log_start.0);
    out.put_i64_le(partition.committed.0);
    out.put_u8(u8::from(partition.seen_after_damage));
    out.put_u8(u8::from(partition.quarantine.is_some()));
    if let Some(quarantine) = &partition.quarantine {
        out.put_i64_le(quarantine.from.0);
        put_block(out, quarantine.reason.as_bytes());
    }
    put_count(out, partition.extents.len());
    for stored in &partition.extents {
        out.put_i64_le(stored.first.0);
        out.put_i64_le(stored.last.0);
        out.put_i64_le(stored.max_timestamp_so_far_ms);
        out.put_u64_le(stored.extent.position.0);
        out.put_u32_le(stored.extent.len_bytes);
        out.put_i32_le(stored.extent.leader_epoch);
    }
    put_count(out, partition.durable_producers.len());
    for (producer, window) in partition.durable_producers.iter() {
        out.put_i64_le(producer.0);
        out.put_i16_le(window.epoch);
        out.put_u8(u8::try_from(window.batches.len()).expect("a window holds five batches"));
        for batch in &window.batches {
            out.put_i32_le(batch.first_sequence);
            out.put_i32_le(batch.last_sequence);
            out.put_i64_le(batch.base_offset.0);
        }
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.put_u32_le(u32::try_from(count).expect("counts are bounded far below 2^32"));
}

fn put_block(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.put_slice(bytes);
}

/// Builds a shard's state from a checkpoint.
///
/// # Errors
/// A text, if the bytes are not such a state.
pub fn decode(shard: ShardId, bytes: &[u8]) -> Result<ShardState, String> {
    let mut input = bytes;
    let decoded = decode_state(shard, &mut input).map_err(|error| error.to_string())?;
    if !input.is_empty() {
        return Err(format!("{} bytes follow the state", input.len()));
    }
    Ok(decoded)
}

fn decode_state(
    shard: ShardId,
    input: &mut &[u8],
) -> Result<ShardState, Box<dyn std::error::Error>> {
    let version = input.try_get_u16_le()?;
    if version != VERSION {
        return Err(format!("checkpoint state version {version}; this is {VERSION}").into());
    }
    let mut state = ShardState::new(shard);
    state.unknown_damage = input.try_get_u8()? != 0;
    state.producer_id_next = input.try_get_i64_le()?;
    let saved = serde_json::from_slice(get_block(input)?)?;
    state.catalog = Catalog::from_saved(saved)?;
    for _ in 0..input.try_get_u32_le()? {
        let (key, partition) = get_partition(input)?;
        state.partitions.insert(key, partition);
    }
    Ok(state)
}

fn get_partition(
    input: &mut &[u8],
) -> Result<(TopicPartition, Partition), Box<dyn std::error::Error>> {
    let mut topic = [0u8; 16];
    input.try_copy_to_slice(&mut topic)?;
    let partition_index = PartitionIndex(input.try_get_i32_le()?);
    let key = TopicPartition {
        topic: TopicId(topic),
        partition: partition_index,
    };
    let mut partition = Partition {
        log_start: Offset(input.try_get_i64_le()?),
        committed: Offset(input.try_get_i64_le()?),
        ..Partition::default()
    };
    partition.next = partition.committed;
    partition.seen_after_damage = input.try_get_u8()? != 0;
    if input.try_get_u8()? != 0 {
        let from = Offset(input.try_get_i64_le()?);
        let reason = String::from_utf8(get_block(input)?.to_vec())?;
        partition.quarantine = Some(Quarantine { from, reason });
    }
    for _ in 0..input.try_get_u32_le()? {
        let first = Offset(input.try_get_i64_le()?);
        partition.keep_extent(StoredExtent {
            first,
            last: Offset(input.try_get_i64_le()?),
            max_timestamp_so_far_ms: input.try_get_i64_le()?,
            extent: Extent {
                position: Position(input.try_get_u64_le()?),
                len_bytes: input.try_get_u32_le()?,
                leader_epoch: input.try_get_i32_le()?,
                base_offset: first,
            },
        });
    }
    partition.durable_producers = get_producers(input)?;
    partition.staged_producers = partition.durable_producers.clone();
    Ok((key, partition))
}

fn get_producers(input: &mut &[u8]) -> Result<Producers, Box<dyn std::error::Error>> {
    let mut producers = Producers::default();
    for _ in 0..input.try_get_u32_le()? {
        let id = ProducerId(input.try_get_i64_le()?);
        let epoch = input.try_get_i16_le()?;
        let count = usize::from(input.try_get_u8()?);
        if count > PRODUCER_WINDOW {
            return Err(format!("a producer window of {count} batches").into());
        }
        let mut batches = VecDeque::with_capacity(PRODUCER_WINDOW);
        for _ in 0..count {
            batches.push_back(RememberedBatch {
                first_sequence: input.try_get_i32_le()?,
                last_sequence: input.try_get_i32_le()?,
                base_offset: Offset(input.try_get_i64_le()?),
                staged: StageSequence(0),
            });
        }
        producers.restore(id, ProducerWindow { epoch, batches });
    }
    Ok(producers)
}

fn get_block<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Box<dyn std::error::Error>> {
    let length = input.try_get_u32_le()? as usize;
    if length > input.len() {
        return Err(format!("a block of {length} bytes with {} left", input.len()).into());
    }
    let (block, rest) = input.split_at(length);
    *input = rest;
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::catalog::{Topic, TopicChange};
    use crate::shard::producers::BatchStamp;

    fn sample() -> ShardState {
        let mut state = ShardState::new(ShardId(0));
        state.producer_id_next = 5_000;
        state.catalog.apply(TopicChange::Created(Topic {
            id: TopicId([9; 16]),
            name: "orders".to_owned(),
            partitions: 3,
            config: Default::default(),
            created_ms: 1,
        }));
        let mut partition = Partition {
            committed: Offset(30),
            next: Offset(30),
            ..Default::default()
        };
        partition.extents.push_back(StoredExtent {
            first: Offset(0),
            last: Offset(29),
            max_timestamp_so_far_ms: 77,
            extent: Extent {
                position: Position(8192),
                len_bytes: 999,
                leader_epoch: 0,
                base_offset: Offset(0),
            },
        });
        let stamp = BatchStamp {
            producer: ProducerId(4),
            epoch: 2,
            first_sequence: 0,
            record_count: 30,
        };
        partition
            .durable_producers
            .remember(&stamp, Offset(0), StageSequence(0));
        partition.quarantine = Some(Quarantine {
            from: Offset(30),
            reason: "damaged".to_owned(),
        });
        let key = TopicPartition {
            topic: TopicId([9; 16]),
            partition: PartitionIndex(2),
        };
        state.partitions.insert(key, partition);
        state
    }

    /// Goal: a shard's state survives its checkpoint. Method: encode, decode, compare field by
    /// field.
    #[test]
    fn round_trip() {
        let state = sample();
        let bytes = encode(&state);
        let again = decode(ShardId(0), &bytes).expect("decodes");
        assert_eq!(again.producer_id_next, 5_000);
        assert_eq!(
            again.catalog.by_name("orders"),
            state.catalog.by_name("orders")
        );
        let (key, partition) = again.partitions.iter().next().expect("one partition");
        let before = &state.partitions[key];
        assert_eq!(partition.extents, before.extents);
        assert_eq!(partition.durable_producers, before.durable_producers);
        assert_eq!(partition.quarantine, before.quarantine);
        assert_eq!(partition.next, Offset(30));
        assert_eq!(encode(&again), bytes);
    }

    /// Goal: no cut of a checkpoint panics or passes. Method: every prefix, and one byte too many.
    #[test]
    fn every_prefix_is_refused() {
        let mut bytes = encode(&sample());
        for length in 0..bytes.len() {
            assert!(
                decode(ShardId(0), &bytes[..length]).is_err(),
                "prefix of {length} bytes"
            );
        }
        bytes.push(0);
        assert!(decode(ShardId(0), &bytes).is_err());
    }
}
