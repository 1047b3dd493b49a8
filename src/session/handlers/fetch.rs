//! Fetch: which partitions, within which limits; and the answer, copied once into its frame.

use super::partition_of;
use crate::base::ids::{Offset, TopicId};
use crate::limits::{FETCH_BYTES_MAX, FETCH_SMALL_BYTES_MAX, FETCH_WAIT_MAX};
use crate::router::fetch::FetchedHere;
use crate::router::{Chunk, FetchPart};
use crate::session::Session;
use crate::session::errors::fetch_error;
use crate::session::progress::Progress;
use crate::session::replies::{Answer, Reply};
use crate::shard::FetchError;
use crate::shard::append::LEADER_EPOCH;
use crate::wire::fetch::{FetchPartition, FetchReply, FetchRequest, PartitionReply, TopicReply};
use crate::wire::{ErrorCode, RequestHeader};
use std::time::Duration;

/// What is known of one partition of the request before it is read.
enum Part {
    /// The n-th partition to read.
    Read(usize),
    /// Refused.
    Refused(ErrorCode),
}

impl Session {
    pub(in crate::session) fn fetch(&self, header: RequestHeader, request: FetchRequest) -> Reply {
        let session = self.clone();
        Reply::Later(Box::pin(async move {
            Some(session.fetch_answer(&header, &request).await)
        }))
    }

    async fn fetch_answer(&self, header: &RequestHeader, request: &FetchRequest) -> Answer {
        if request.session_id != 0 && request.session_epoch > 0 {
            // Sessions are declined; a client that goes on with one is told to start over.
            let code = ErrorCode::FetchSessionIdNotFound;
            self.count_error(code);
            let reply: FetchReply<Chunk> = FetchReply {
                error_code: code.code(),
                ..FetchReply::default()
            };
            return Answer::from(self.encode_fetch(header, &reply));
        }
        let (parts, reads) = self.fetch_parts(header, request);
        let wanted = usize::try_from(request.max_bytes)
            .unwrap_or(0)
            .min(FETCH_BYTES_MAX);
        let bytes_min = usize::try_from(request.min_bytes).unwrap_or(0);
        let wait = wait_of(request);
        // A partition that is refused, like one with an error, is answered without waiting.
        let refused = parts.iter().any(|part| matches!(part, Part::Refused(_)));
        let clock = self.router.env.clock();
        let mut waited_ns = None;
        if !refused && !wait.is_zero() {
            let waiting = self.router.wait_for(&reads, bytes_min, wait);
            if self.unless_stopping(waiting).await.unwrap_or(true) {
                waited_ns = Some(clock.now_ns());
            }
        }
        let foreseen = self.router.foresee(&reads);
        let held = wanted.min(foreseen.total_bytes).max(foreseen.first_bytes);
        let mut units = if held <= FETCH_SMALL_BYTES_MAX {
            self.small_fetches.take(FETCH_SMALL_BYTES_MAX).await
        } else {
            let least = foreseen.first_bytes.max(FETCH_SMALL_BYTES_MAX);
            self.large_fetches.take_share(held, least).await
        };
        let bytes_max = wanted.min(units.bytes());
        let planned_ns = clock.now_ns();
        let found = self.router.fetch(&reads, bytes_max).await;
        let read_ns = clock.now_ns();
        let reply = self.fetch_reply(request, parts, found);
        units.resize(reply.records_bytes().max(1));
        let frame = self.encode_fetch(header, &reply);
        Answer {
            frame,
            units: Some(units),
            progress: Progress::Fetch {
                waited_ns,
                planned_ns,
                read_ns,
            },
        }
    }

    fn encode_fetch(&self, header: &RequestHeader, reply: &FetchReply<Chunk>) -> bytes::Bytes {
        reply
            .encode(header.api_version, header.correlation_id)
            .expect("a fetch answer is bounded by the limits of a fetch, so it encodes")
    }

    fn fetch_parts(
        &self,
        header: &RequestHeader,
        request: &FetchRequest,
    ) -> (Vec<Part>, Vec<FetchPart>) {
        let catalog = self.router.catalog();
        let (mut parts, mut reads) = (Vec::new(), Vec::new());
        for topic in &request.topics {
            let by_id = header.api_version >= 13;
            let known = if by_id {
                catalog.by_id(topic.topic_id)
            } else {
                catalog.by_name(&topic.name)
            };
            for partition in &topic.partitions {
                let key = known.and_then(|topic| partition_of(topic, partition.partition));
                let refused = match (known, key) {
                    (None, _) if by_id => Some(ErrorCode::UnknownTopicId),
                    (_, None) => Some(ErrorCode::UnknownTopicOrPartition),
                    _ => epoch_error(partition.current_leader_epoch),
                };
                match (refused, key) {
                    (None, Some(key)) => {
                        reads.push(FetchPart {
                            key,
                            offset: Offset(partition.fetch_offset),
                            bytes_max: partition_bytes_max(&partition),
                        });
                        parts.push(Part::Read(reads.len() - 1));
                    }
                    (code, _) => parts.push(Part::Refused(
                        code.unwrap_or(ErrorCode::UnknownTopicOrPartition),
                    )),
                }
            }
        }
        (parts, reads)
    }

    fn fetch_reply(
        &self,
        request: &FetchRequest,
        parts: Vec<Part>,
        found: Vec<FetchedHere>,
    ) -> FetchReply<Chunk> {
        let mut found: Vec<Option<FetchedHere>> = found.into_iter().map(Some).collect();
        let mut parts = parts.into_iter();
        let mut topics = Vec::with_capacity(request.topics.len());
        for topic in &request.topics {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for partition in &topic.partitions {
                let part = parts
                    .next()
                    .expect("a part for each partition of the request");
                let answer = match part {
                    Part::Refused(code) => Err(code),
                    Part::Read(at) => Ok(found[at].take().expect("each part is read once")),
                };
                partitions.push(self.partition_reply(partition.partition, answer));
            }
            topics.push(TopicReply {
                name: topic.name,
                topic_id: TopicId(topic.topic_id.0),
                partitions,
            });
        }
        FetchReply {
            topics,
            ..FetchReply::default()
        }
    }

    fn partition_reply(
        &self,
        index: i32,
        answer: Result<FetchedHere, ErrorCode>,
    ) -> PartitionReply<Chunk> {
        match answer {
            Ok(Ok(found)) => PartitionReply {
                high_watermark: found.committed.0,
                last_stable_offset: found.committed.0,
                log_start_offset: found.log_start.0,
                records: found.chunks,
                ..PartitionReply::error(index, 0)
            },
            Ok(Err(error)) => {
                let code = fetch_error(error);
                self.count_error(code);
                let mut reply = PartitionReply::error(index, code.code());
                if let FetchError::OffsetOutOfRange {
                    log_start,
                    committed,
                } = error
                {
                    reply.high_watermark = committed.0;
                    reply.last_stable_offset = committed.0;
                    reply.log_start_offset = log_start.0;
                }
                reply
            }
            Err(code) => {
                self.count_error(code);
                PartitionReply::error(index, code.code())
            }
        }
    }
}

fn wait_of(request: &FetchRequest) -> Duration {
    let wait_ms = u64::try_from(request.max_wait_ms).unwrap_or(0);
    Duration::from_millis(wait_ms).min(FETCH_WAIT_MAX)
}

fn partition_bytes_max(partition: &FetchPartition) -> usize {
    usize::try_from(partition.partition_max_bytes).unwrap_or(0)
}

/// The error for a client that believes in another leader epoch than ours; -1 is "do not check".
pub(super) fn epoch_error(epoch: i32) -> Option<ErrorCode> {
    match epoch {
        -1 | LEADER_EPOCH => None,
        older if older < LEADER_EPOCH => Some(ErrorCode::FencedLeaderEpoch),
        _ => Some(ErrorCode::UnknownLeaderEpoch),
    }
}
