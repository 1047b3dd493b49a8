//! Which partition a message goes to, and so which broker: the partitions are grouped by their
//! leader as it is at the start, and a producer has one connection, a *lane*, for each group.
//!
//! The lanes of a producer share its messages by arithmetic alone, so that a broker that stalls
//! holds up none of the others'.

use super::message::{KEY_BYTES, Keys};
use super::{Partition, Target};
use crate::base::murmur2::partition_of;

/// No slot: the partition belongs to another group.
const ELSEWHERE: u32 = u32::MAX;

/// Partitions with one leader.
#[derive(Clone, Debug)]
pub struct Group {
    /// Their numbers, counted over all topics.
    pub partitions: Vec<u32>,
    /// For each partition of the load, its place among `partitions`.
    slots: Vec<u32>,
}

/// How messages are spread over the groups.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The groups, in order of their first partition.
    pub groups: Vec<Group>,
    /// First partition of each topic and how many it has.
    topics: Vec<(u32, i32)>,
    /// Whether groups have equally many partitions, so that messages without a key are dealt out.
    even: bool,
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// To this slot of the group.
    Slot(usize),
    /// To any of the group.
    Any,
    /// Not to this group.
    Elsewhere,
}

impl Spread {
    /// Groups the partitions of a cluster.
    #[must_use]
    pub fn new(target: &Target) -> Spread {
        let addresses = &target.leaders.addresses;
        assert_eq!(addresses.len(), target.partitions.len(), "one leader each");
        let mut groups: Vec<Group> = Vec::new();
        let mut known = Vec::new();
        for (number, address) in (0u32..).zip(addresses) {
            let position = known.iter().position(|one| one == address);
            let position = position.unwrap_or_else(|| {
                known.push(*address);
                groups.push(Group {
                    partitions: Vec::new(),
                    slots: vec![ELSEWHERE; addresses.len()],
                });
                groups.len() - 1
            });
            let group = &mut groups[position];
            group.slots[number as usize] = group.partitions.len() as u32;
            group.partitions.push(number);
        }
        let mut topics: Vec<(u32, i32)> = Vec::new();
        for (number, Partition { topic, of, .. }) in (0u32..).zip(&target.partitions) {
            if topics.len() == *topic {
                topics.push((number, *of));
            }
        }
        let size = groups.first().map_or(0, |group| group.partitions.len());
        let even = groups.iter().all(|group| group.partitions.len() == size);
        Spread {
            groups,
            topics,
            even,
        }
    }

    /// Whether a producer's messages are dealt out to its lanes in turn.
    #[must_use]
    pub fn is_dealt(&self, keys: &Keys) -> bool {
        matches!(keys, Keys::None) && self.even
    }

    /// Which of a producer's messages a group's lane walks along: every `.1`-th from `.0` on.
    #[must_use]
    pub fn part(&self, group: usize, keys: &Keys) -> (u64, u64) {
        if self.is_dealt(keys) {
            (group as u64, self.groups.len() as u64)
        } else {
            (0, 1)
        }
    }

    /// Where a message goes, seen from one group. Its key is `key`.
    #[must_use]
    pub fn place(
        &self,
        group: usize,
        keys: &Keys,
        (producer, message): (u64, u64),
        key: Option<&[u8; KEY_BYTES]>,
    ) -> Place {
        let whole = &self.groups[group];
        let partition = match (keys, key) {
            (Keys::None, _) if self.even => return Place::Any,
            (_, Some(key)) => {
                let topic = (message % self.topics.len() as u64) as usize;
                let (first, count) = self.topics[topic];
                first + partition_of(key, count) as u32
            }
            (_, None) => ((producer.wrapping_add(message)) % whole.slots.len() as u64) as u32,
        };
        match (whole.slots[partition as usize], keys) {
            (ELSEWHERE, _) => Place::Elsewhere,
            (_, Keys::None) => Place::Any,
            (slot, _) => Place::Slot(slot as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::plan::Leaders;
    use std::sync::Arc;

    fn target(leaders: &[u16], topics: &[i32]) -> Target {
        let addresses = leaders.iter().map(|port| ([127, 0, 0, 1], *port).into());
        let partitions = topics.iter().enumerate().flat_map(|(topic, of)| {
            (0..*of).map(move |index| Partition {
                topic,
                index,
                of: *of,
                begin: 0,
                end: 0,
            })
        });
        Target {
            topics: Vec::new(),
            partitions: partitions.collect(),
            leaders: Arc::new(Leaders {
                addresses: addresses.collect(),
            }),
        }
    }

    /// Goal: each message goes to exactly one group, whatever the keys, and fairly. Method: two
    /// topics over two leaders that have equally many partitions or not; all kinds of keys; count
    /// what each group's lane takes.
    #[test]
    fn each_message_has_one_place() {
        for leaders in [[1, 2, 1, 2], [1, 1, 1, 2]] {
            let spread = Spread::new(&target(&leaders, &[3, 1]));
            assert_eq!(spread.groups.len(), 2);
            for keys in [
                Keys::None,
                Keys::Spread,
                Keys::RoundRobin(50),
                Keys::Uniform(50),
            ] {
                let mut taken = [0, 0];
                for message in 0..4000u64 {
                    let key = keys.of(1, 5, message);
                    let mut places = 0;
                    for (group, taken) in taken.iter_mut().enumerate() {
                        let (first, step) = spread.part(group, &keys);
                        let place = spread.place(group, &keys, (5, message), key.as_ref());
                        if message % step == first % step && place != Place::Elsewhere {
                            *taken += 1;
                            places += 1;
                        }
                    }
                    assert_eq!(places, 1, "{keys:?} {message}");
                }
                if key_less(&keys) {
                    let ones = leaders.iter().filter(|leader| **leader == 1).count();
                    assert_eq!(taken[0], 1000 * ones, "{keys:?}");
                }
            }
        }
    }

    fn key_less(keys: &Keys) -> bool {
        matches!(keys, Keys::None | Keys::Spread)
    }
}
