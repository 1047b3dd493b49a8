//! Reading a topic forward: keeps a position in each partition and asks the leaders, all at once.

use super::retry::Backoff;
use super::{Client, ClientError, Landmark, check};
use crate::limits;
use crate::wire::fetch::{FetchPartition, FetchRequest, FetchTopic};
use crate::wire::{ErrorCode, Response, Text};
use bytes::Bytes;
use std::collections::BTreeMap;

/// What one partition had to give.
#[derive(Debug)]
pub struct Fetched {
    /// The partition.
    pub partition: i32,
    /// Whole record batches; the first may begin before the position.
    pub batches: Bytes,
    /// The offset after the last durable record.
    pub high_watermark: i64,
}

/// Positions in the partitions of a topic.
pub struct Fetcher {
    topic: String,
    positions: BTreeMap<i32, i64>,
    backoff: Backoff,
}

impl Fetcher {
    /// Begins at these offsets.
    #[must_use]
    pub fn new(topic: &str, positions: BTreeMap<i32, i64>) -> Fetcher {
        Fetcher {
            topic: topic.to_owned(),
            positions,
            backoff: Backoff::default(),
        }
    }

    /// The next offset wanted of a partition, while it is read.
    #[must_use]
    pub fn position(&self, partition: i32) -> Option<i64> {
        self.positions.get(&partition).copied()
    }

    /// Moves on in a partition.
    pub fn advance(&mut self, partition: i32, position: i64) {
        self.positions.insert(partition, position);
    }

    /// Reads no more of a partition.
    pub fn finish(&mut self, partition: i32) {
        self.positions.remove(&partition);
    }

    /// Whether nothing is left to read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.positions.is_empty()
    }

    /// Asks every leader once and returns what they had. Waits at most about a second where there
    /// is nothing. What can be cured is cured: a moved leader is found, a lost broker is waited
    /// for.
    ///
    /// # Errors
    /// What cannot be cured, or not in time.
    pub fn round(&mut self, client: &mut Client) -> Result<Vec<Fetched>, ClientError> {
        match self.round_once(client) {
            Ok(fetched) => {
                self.backoff = Backoff::default();
                Ok(fetched)
            }
            Err(error) => {
                client.forget_topic(&self.topic);
                self.backoff.wait_after(error)?;
                Ok(Vec::new())
            }
        }
    }

    fn round_once(&mut self, client: &mut Client) -> Result<Vec<Fetched>, ClientError> {
        let mut by_leader: BTreeMap<String, Vec<(i32, i64)>> = BTreeMap::new();
        for (partition, position) in &self.positions {
            let leader = client.leader(&self.topic, *partition)?;
            by_leader
                .entry(leader)
                .or_default()
                .push((*partition, *position));
        }
        // Answers are awaited one leader after another, so several must not each wait long.
        let max_wait_ms = if by_leader.len() == 1 { 1000 } else { 100 };
        for (leader, positions) in &by_leader {
            let request = self.request(positions, max_wait_ms);
            if let Err(error) = client.connection(leader)?.send(&request.into()) {
                by_leader
                    .keys()
                    .for_each(|leader| client.disconnect(leader));
                return Err(error);
            }
        }
        let mut fetched = Vec::new();
        for leader in by_leader.keys() {
            let answer = client
                .connection(leader)
                .and_then(|connection| connection.receive());
            match answer.and_then(|answer| self.read(client, answer, &mut fetched)) {
                Ok(()) => {}
                Err(error) => {
                    // Other answers are still on their way: those connections are of no use either.
                    by_leader
                        .keys()
                        .for_each(|leader| client.disconnect(leader));
                    return Err(error);
                }
            }
        }
        Ok(fetched)
    }

    fn request(&self, positions: &[(i32, i64)], max_wait_ms: i32) -> FetchRequest {
        let bytes_max = i32::try_from(limits::CLIENT_FETCH_BYTES_MAX).unwrap_or(i32::MAX);
        let partitions = positions
            .iter()
            .map(|(partition, position)| FetchPartition {
                partition: *partition,
                fetch_offset: *position,
                partition_max_bytes: bytes_max,
                ..FetchPartition::default()
            });
        let topic = FetchTopic {
            name: Text::from(self.topic.as_str()),
            partitions: partitions.collect(),
            ..FetchTopic::default()
        };
        FetchRequest {
            max_wait_ms,
            min_bytes: 1,
            max_bytes: bytes_max.saturating_mul(4),
            topics: vec![topic].into(),
            ..FetchRequest::default()
        }
    }

    fn read(
        &mut self,
        client: &mut Client,
        answer: Response,
        fetched: &mut Vec<Fetched>,
    ) -> Result<(), ClientError> {
        let Response::Fetch(response) = answer else {
            return Err(client.unexpected());
        };
        check(
            &format!("reading {}", self.topic),
            response.error_code,
            None,
        )?;
        for answer in response
            .topics
            .iter()
            .flat_map(|topic| topic.partitions.to_vec())
        {
            let partition = answer.partition_index;
            let subject = format!("partition {partition} of {}", self.topic);
            if answer.error_code == ErrorCode::OffsetOutOfRange.code() {
                self.resume(client, partition)?;
                continue;
            }
            check(&subject, answer.error_code, None)?;
            fetched.push(Fetched {
                partition,
                batches: answer.records.unwrap_or_default(),
                high_watermark: answer.high_watermark,
            });
        }
        Ok(())
    }

    /// Retention overtook the reader: it goes on where the partition now begins, and says so.
    fn resume(&mut self, client: &mut Client, partition: i32) -> Result<(), ClientError> {
        let position = self.position(partition).unwrap_or(0);
        let starts = client.offsets(&self.topic, &[partition], Landmark::Beginning)?;
        let start = starts.get(&partition).copied().unwrap_or(0);
        if start <= position {
            let subject = format!("partition {partition} of {}", self.topic);
            let words = format!("offset {position} is beyond its end");
            let code = ErrorCode::OffsetOutOfRange.code();
            return Err(ClientError::refused(subject, code, Some(words)));
        }
        crate::admin::output::note(&format!(
            "penstock: partition {partition}: offsets {position} to {} are gone (retention)",
            start - 1
        ));
        self.advance(partition, start);
        Ok(())
    }
}
