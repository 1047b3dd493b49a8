//! Ids as newtypes: two integers of one type in a signature are a mistake waiting to happen.

use std::fmt;

macro_rules! newtype {
    ($(#[$meta:meta])* $name:ident($inner:ty)) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

newtype! {
    /// A record's offset in its partition, from 0.
    Offset(i64)
}
newtype! {
    /// A partition's index in its topic, from 0.
    PartitionIndex(i32)
}
newtype! {
    /// A shard: the unit of ownership and of order of durability; its number is fixed for ever.
    ShardId(u16)
}
newtype! {
    /// An executor of this process, from 0. Which CPU it is pinned to is the server's affair.
    CoreId(u16)
}
newtype! {
    /// A block's number in its journal, from 1; 0 means "none yet".
    BlockSequence(u64)
}
newtype! {
    /// A byte position in a shard's journal: `segment number × segment length + offset in the
    /// file`.
    Position(u64)
}
newtype! {
    /// Leadership term of a shard; 1 until there is replication.
    Term(u64)
}
newtype! {
    /// The number of a staged item in its shard, from 1, in the order of staging.
    StageSequence(u64)
}
newtype! {
    /// A producer id as handed out by `InitProducerId`; -1 on the wire means "none".
    ProducerId(i64)
}

/// A topic's UUID: made once, never used again.
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TopicId(pub [u8; 16]);

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// One partition of one topic, by id: the key of everything a shard keeps.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TopicPartition {
    /// The topic.
    pub topic: TopicId,
    /// The partition within it.
    pub partition: PartitionIndex,
}

impl TopicPartition {
    /// The shard that owns this partition, for ever: `(hash(topic id) + partition) mod shards`, so
    /// that consecutive partitions of a topic spread evenly.
    ///
    /// The hash is the first eight bytes of the id, which are random (UUID version 4).
    #[must_use]
    pub fn shard(&self, shards: u16) -> ShardId {
        assert!(shards > 0, "a store has at least one shard");
        let mut head = [0u8; 8];
        head.copy_from_slice(&self.topic.0[..8]);
        let hash = u64::from_le_bytes(head) % u64::from(shards);
        let partition = u64::from(self.partition.0.unsigned_abs());
        let shard = (hash + partition) % u64::from(shards);
        ShardId(u16::try_from(shard).expect("a remainder of a u16 fits a u16"))
    }
}
