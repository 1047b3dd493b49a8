//! ListOffsets: where a partition starts and ends, and offsets by time.

use super::fetch::epoch_error;
use super::partition_of;
use crate::base::record_batch::BatchView;
use crate::router::offsets::{OffsetAnswer, OffsetFound, OffsetPart, OffsetQuery};
use crate::session::Session;
use crate::session::errors::fetch_error;
use crate::session::replies::Reply;
use crate::shard::append::LEADER_EPOCH;
use crate::wire::messages::{
    EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ListOffsetsPartitionResponse, ListOffsetsRequest,
    ListOffsetsResponse, ListOffsetsTopicResponse, MAX_TIMESTAMP,
};
use crate::wire::{ErrorCode, RequestHeader, codec};

/// The earliest offset on this host, with tiered storage; without, the earliest.
const EARLIEST_LOCAL_TIMESTAMP: i64 = -4;
/// The latest offset in tiered storage, and the earliest not yet there: there is no such storage.
const TIERED_TIMESTAMPS: [i64; 2] = [-5, -6];

impl Session {
    pub(in crate::session) fn list_offsets(
        &self,
        header: RequestHeader,
        request: ListOffsetsRequest,
    ) -> Reply {
        let session = self.clone();
        self.later(
            header,
            async move { session.offsets_response(&request).await },
        )
    }

    async fn offsets_response(&self, request: &ListOffsetsRequest) -> ListOffsetsResponse {
        let catalog = self.router.catalog();
        let mut reads = Vec::new();
        let mut refused = Vec::new();
        for topic in &request.topics {
            let known = catalog.by_name(&topic.name);
            for partition in &topic.partitions {
                let key = known.and_then(|topic| partition_of(topic, partition.partition_index));
                let code = match key {
                    None => Some(ErrorCode::UnknownTopicOrPartition),
                    Some(_) => epoch_error(partition.current_leader_epoch),
                };
                if let (Some(key), None) = (key, code) {
                    reads.push(OffsetPart {
                        key,
                        query: query_of(partition.timestamp),
                    });
                }
                refused.push(code);
            }
        }
        let mut answers = self.router.offsets(reads).await.into_iter();
        let mut refused = refused.into_iter();
        let topics = request.topics.iter().map(|topic| ListOffsetsTopicResponse {
            partitions: topic
                .partitions
                .iter()
                .map(|partition| {
                    let (index, timestamp) = (partition.partition_index, partition.timestamp);
                    match refused
                        .next()
                        .expect("an entry for each partition of the request")
                    {
                        Some(code) => self.offset_error(index, code),
                        None => {
                            let answer = answers.next().expect("an answer for each that was read");
                            self.offset_answer(index, timestamp, answer)
                        }
                    }
                })
                .collect(),
            name: topic.name,
        });
        ListOffsetsResponse {
            topics: topics.collect(),
            ..ListOffsetsResponse::default()
        }
    }

    fn offset_error(&self, index: i32, code: ErrorCode) -> ListOffsetsPartitionResponse {
        self.count_error(code);
        ListOffsetsPartitionResponse {
            partition_index: index,
            error_code: code.code(),
            ..ListOffsetsPartitionResponse::default()
        }
    }

    fn offset_answer(
        &self,
        index: i32,
        timestamp: i64,
        answer: OffsetAnswer,
    ) -> ListOffsetsPartitionResponse {
        let found = match answer {
            Ok(found) => found,
            Err(error) => return self.offset_error(index, fetch_error(error)),
        };
        let located = match timestamp {
            LATEST_TIMESTAMP => Ok((found.ends.committed.0, -1)),
            EARLIEST_TIMESTAMP | EARLIEST_LOCAL_TIMESTAMP => Ok((found.ends.log_start.0, -1)),
            tiered if TIERED_TIMESTAMPS.contains(&tiered) => Ok((-1, -1)),
            MAX_TIMESTAMP => locate(&found, None),
            wanted_ms => locate(&found, Some(wanted_ms)),
        };
        match located {
            Ok((offset, timestamp)) => ListOffsetsPartitionResponse {
                partition_index: index,
                timestamp,
                offset,
                leader_epoch: LEADER_EPOCH,
                ..ListOffsetsPartitionResponse::default()
            },
            Err(code) => self.offset_error(index, code),
        }
    }
}

fn query_of(timestamp: i64) -> OffsetQuery {
    match timestamp {
        MAX_TIMESTAMP => OffsetQuery::MaxTimestamp,
        0.. => OffsetQuery::Time(timestamp),
        _ => OffsetQuery::Ends,
    }
}

/// Finds the record inside the batch: the first at or after a time, or the first with the largest
/// timestamp. Its offset and its own timestamp; (-1, -1) if there is none.
fn locate(found: &OffsetFound, wanted_ms: Option<i64>) -> Result<(i64, i64), ErrorCode> {
    let Some(batch) = &found.batch else {
        return Ok((-1, -1));
    };
    let view = BatchView::only(batch).map_err(|_| ErrorCode::CorruptMessage)?;
    let wanted_ms = wanted_ms.unwrap_or_else(|| view.max_timestamp());
    let records = codec::uncompressed_records(&view).map_err(|_| ErrorCode::CorruptMessage)?;
    for record in view.records(&records) {
        let record = record.map_err(|_| ErrorCode::CorruptMessage)?;
        if record.timestamp >= wanted_ms {
            return Ok((record.offset, record.timestamp));
        }
    }
    Ok((-1, -1))
}
