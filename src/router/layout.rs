//! Where every shard lives, and how a core is known to Kafka clients.

use crate::base::ids::{CoreId, ShardId, TopicPartition};
use crate::limits::CORES_PER_HOST_MAX;

/// The fixed arithmetic of one running broker. The same on every core.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Layout {
    /// This host's number; its brokers are `host × 1024 + core`.
    pub host_id: i32,
    /// Number of cores (executors).
    pub cores: u16,
    /// Number of shards, fixed when the store was made.
    pub shards: u16,
    /// The advertised endpoints: the k-th listens on core k.
    pub endpoints: Vec<Endpoint>,
    /// The store's id, which is the cluster id Kafka clients see.
    pub cluster_id: String,
    /// The rack all endpoints of this host share.
    pub rack: Option<String>,
}

/// One advertised endpoint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Endpoint {
    /// Host name or address as clients are told it.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Layout {
    /// The core on which a shard lives: shards map onto however many cores the process has.
    #[must_use]
    pub fn core_of(&self, shard: ShardId) -> CoreId {
        assert!(shard.0 < self.shards, "there is no such shard");
        CoreId(shard.0 % self.cores)
    }

    /// The endpoint that clients are told for a core: its own, or with fewer endpoints than cores
    /// the one of core `c mod endpoints`, which then costs one hop.
    #[must_use]
    pub fn endpoint_of(&self, core: CoreId) -> usize {
        usize::from(core.0) % self.endpoints.len()
    }

    /// The Kafka broker id of an endpoint.
    #[must_use]
    pub fn broker_id(&self, endpoint: usize) -> i32 {
        assert!(endpoint < self.endpoints.len(), "there is no such endpoint");
        self.host_id * CORES_PER_HOST_MAX + i32::try_from(endpoint).expect("endpoints are few")
    }

    /// The broker id that leads a partition.
    #[must_use]
    pub fn leader_of(&self, key: &TopicPartition) -> i32 {
        self.broker_id(self.endpoint_of(self.core_of(key.shard(self.shards))))
    }

    /// The broker id that coordinates a group (or queue, or transaction) of this name:
    /// `hash(name) mod shards`, by CRC32C, which no restart changes.
    #[must_use]
    pub fn coordinator_of(&self, name: &str) -> i32 {
        let hash = crc32c::crc32c(name.as_bytes()) % u32::from(self.shards);
        let shard = ShardId(u16::try_from(hash).expect("a remainder of a u16 fits a u16"));
        self.broker_id(self.endpoint_of(self.core_of(shard)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{PartitionIndex, TopicId};

    fn layout(cores: u16, shards: u16, endpoints: u16) -> Layout {
        Layout {
            host_id: 1,
            cores,
            shards,
            endpoints: (0..endpoints)
                .map(|port| Endpoint {
                    host: "h".to_owned(),
                    port: 9092 + port,
                })
                .collect(),
            cluster_id: "c".to_owned(),
            rack: None,
        }
    }

    /// Goal: every partition has exactly one leader, an endpoint that exists, whatever the counts.
    /// Method: all small combinations.
    #[test]
    fn every_partition_has_a_leader() {
        for cores in 1..=4 {
            for shards in 1..=4 {
                for endpoints in 1..=cores {
                    let layout = layout(cores, shards, endpoints);
                    for partition in 0..8 {
                        let key = TopicPartition {
                            topic: TopicId([7; 16]),
                            partition: PartitionIndex(partition),
                        };
                        let leader = layout.leader_of(&key);
                        assert!((1024..1024 + i32::from(endpoints)).contains(&leader));
                    }
                }
            }
        }
    }

    /// Goal: consecutive partitions spread evenly over the shards.
    #[test]
    fn partitions_spread_evenly() {
        let layout = layout(4, 4, 4);
        let mut counts = [0; 4];
        for partition in 0..64 {
            let key = TopicPartition {
                topic: TopicId([3; 16]),
                partition: PartitionIndex(partition),
            };
            counts[usize::try_from(layout.leader_of(&key) - 1024).expect("an endpoint")] += 1;
        }
        assert_eq!(counts, [16; 4]);
    }
}
