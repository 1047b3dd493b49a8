//! Asking leaders for offsets: first, last, or by time.

use super::retry::until_good;
use super::{Client, ClientError, check};
use crate::wire::messages::{
    EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ListOffsetsPartition, ListOffsetsRequest,
    ListOffsetsTopic,
};
use crate::wire::{Response, Text};
use std::collections::BTreeMap;

/// A point in a partition that a leader can find.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Landmark {
    /// The first offset that is kept.
    Beginning,
    /// The offset after the last durable record.
    End,
    /// The first record at or after this time, milliseconds since 1970; the end if there is none.
    Time(i64),
}

impl Client {
    /// The offset of `instant` in each of the partitions.
    ///
    /// # Errors
    /// A leader cannot be asked in time, or refuses.
    pub fn offsets(
        &mut self,
        topic: &str,
        partitions: &[i32],
        instant: Landmark,
    ) -> Result<BTreeMap<i32, i64>, ClientError> {
        let mut found = BTreeMap::new();
        until_good(|| {
            let missing: Vec<i32> = partitions
                .iter()
                .copied()
                .filter(|index| !found.contains_key(index))
                .collect();
            let asked = self.offsets_once(topic, &missing, instant, &mut found);
            if asked.is_err() {
                self.forget_topic(topic);
            }
            asked
        })?;
        let none: Vec<i32> = found
            .iter()
            .filter(|(_, offset)| **offset < 0)
            .map(|(index, _)| *index)
            .collect();
        if !none.is_empty() {
            // No record is that young: its place is the end.
            found.extend(self.offsets(topic, &none, Landmark::End)?);
        }
        Ok(found)
    }

    fn offsets_once(
        &mut self,
        topic: &str,
        partitions: &[i32],
        instant: Landmark,
        found: &mut BTreeMap<i32, i64>,
    ) -> Result<(), ClientError> {
        let mut by_leader: BTreeMap<String, Vec<i32>> = BTreeMap::new();
        for partition in partitions {
            by_leader
                .entry(self.leader(topic, *partition)?)
                .or_default()
                .push(*partition);
        }
        let timestamp = match instant {
            Landmark::Beginning => EARLIEST_TIMESTAMP,
            Landmark::End => LATEST_TIMESTAMP,
            Landmark::Time(unix_ms) => unix_ms,
        };
        for (leader, partitions) in by_leader {
            let partitions = partitions.iter().map(|index| ListOffsetsPartition {
                partition_index: *index,
                current_leader_epoch: -1,
                timestamp,
            });
            let topics = vec![ListOffsetsTopic {
                name: Text::from(topic),
                partitions: partitions.collect(),
            }];
            let request = ListOffsetsRequest {
                topics: topics.into(),
                ..ListOffsetsRequest::default()
            };
            let Response::ListOffsets(response) = self.ask_at(&leader, &request.into())? else {
                return Err(self.unexpected());
            };
            for partition in response
                .topics
                .iter()
                .flat_map(|topic| topic.partitions.to_vec())
            {
                let index = partition.partition_index;
                check(
                    &format!("partition {index} of {topic}"),
                    partition.error_code,
                    None,
                )?;
                found.insert(index, partition.offset);
            }
        }
        Ok(())
    }
}
