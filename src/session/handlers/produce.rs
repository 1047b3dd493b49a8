//! Produce: from the request to staged parts (in order, before the next request is read), and from
//! their results to the answer.

use super::partition_of;
use crate::journal::CommitTimes;
use crate::router::produce::Produced;
use crate::router::{ProducePart, Staged};
use crate::session::Session;
use crate::session::errors::append_error;
use crate::session::progress::Progress;
use crate::session::replies::Reply;
use crate::shard::{AppendError, Appended};
use crate::wire::produce::{
    ProducePartitionResponse, ProduceRequest, ProduceResponse, ProduceTopicResponse,
};
use crate::wire::schema::Text;
use crate::wire::{ErrorCode, RequestHeader};

/// What is known of one partition of the request before its batch is durable.
enum Part {
    /// The n-th staged part.
    Staged(usize),
    /// Refused before staging.
    Refused(ErrorCode, String),
}

/// A request whose parts are staged.
struct Pending {
    request: ProduceRequest,
    /// In the order of the request's partitions.
    parts: Vec<Part>,
    staged: Staged,
}

impl Session {
    pub(in crate::session) async fn produce(
        &self,
        header: RequestHeader,
        request: ProduceRequest,
    ) -> Reply {
        let acknowledged = request.acks != 0;
        let pending = self.stage(&header, request, acknowledged).await;
        let staged_ns = self.router.env.clock().now_ns();
        let session = self.clone();
        Reply::Later(Box::pin(async move {
            if !acknowledged {
                return None;
            }
            let (response, commit) = session.finish(pending).await;
            let mut answer = session.answer(&header, &response.into())?;
            answer.progress = Progress::Produce { staged_ns, commit };
            Some(answer)
        }))
    }

    async fn stage(
        &self,
        header: &RequestHeader,
        request: ProduceRequest,
        acknowledged: bool,
    ) -> Pending {
        let mut parts = Vec::new();
        let mut batches = Vec::new();
        let refused = refused_as_a_whole(&request);
        let catalog = self.router.catalog();
        for topic in &request.topics {
            let known = if header.api_version >= 13 {
                catalog.by_id(topic.topic_id)
            } else {
                catalog.by_name(&topic.name)
            };
            for partition in &topic.partitions {
                if let Some((code, text)) = &refused {
                    parts.push(Part::Refused(*code, text.clone()));
                    continue;
                }
                let key = known.and_then(|topic| partition_of(topic, partition.index));
                let part = match (key, known, partition.records) {
                    (Some(key), Some(topic), Some(batch)) if !batch.is_empty() => {
                        let bytes_max = topic.message_bytes_max(self.settings.message_bytes_max);
                        batches.push(ProducePart {
                            key,
                            batch,
                            bytes_max,
                        });
                        Part::Staged(batches.len() - 1)
                    }
                    (Some(_), ..) => Part::Refused(
                        ErrorCode::InvalidRecord,
                        "a partition without records".to_owned(),
                    ),
                    (None, None, _) if header.api_version >= 13 => Part::Refused(
                        ErrorCode::UnknownTopicId,
                        "there is no topic of this id".to_owned(),
                    ),
                    (None, ..) => Part::Refused(
                        ErrorCode::UnknownTopicOrPartition,
                        "there is no such topic or partition".to_owned(),
                    ),
                };
                parts.push(part);
            }
        }
        if !acknowledged {
            let count = batches.len() as u64;
            self.router.metrics.produce.unacknowledged.add(count);
        }
        let staged = self.router.stage(batches, acknowledged).await;
        Pending {
            request,
            parts,
            staged,
        }
    }

    async fn finish(&self, pending: Pending) -> (ProduceResponse, Option<CommitTimes>) {
        let Produced {
            answers: results,
            commit,
        } = pending.staged.finish().await;
        let mut parts = pending.parts.into_iter();
        let topics = pending
            .request
            .topics
            .iter()
            .map(|topic| ProduceTopicResponse {
                partitions: topic
                    .partitions
                    .iter()
                    .map(|partition| {
                        let part = parts
                            .next()
                            .expect("a part for each partition of the request");
                        self.partition_answer(partition.index, part, &results)
                    })
                    .collect(),
                name: topic.name,
                topic_id: topic.topic_id,
            });
        let response = ProduceResponse {
            topics: topics.collect(),
            ..ProduceResponse::default()
        };
        (response, commit)
    }

    fn partition_answer(
        &self,
        index: i32,
        part: Part,
        results: &[Result<Appended, AppendError>],
    ) -> ProducePartitionResponse {
        let (code, text) = match part {
            Part::Refused(code, text) => (code, text),
            Part::Staged(at) => match &results[at] {
                Ok(appended) => {
                    return ProducePartitionResponse {
                        index,
                        base_offset: appended.base_offset.0,
                        log_start_offset: appended.log_start.0,
                        ..ProducePartitionResponse::default()
                    };
                }
                Err(error) => append_error(error),
            },
        };
        self.count_error(code);
        self.router.metrics.produce.rejected.inc();
        ProducePartitionResponse {
            index,
            error_code: code.code(),
            error_message: Some(Text::from(text)),
            ..ProducePartitionResponse::default()
        }
    }
}

fn refused_as_a_whole(request: &ProduceRequest) -> Option<(ErrorCode, String)> {
    if !matches!(request.acks, -1..=1) {
        return Some((
            ErrorCode::InvalidRequiredAcks,
            format!("acks is {}; it may be 0, 1 or -1 (all)", request.acks),
        ));
    }
    request.transactional_id.is_some().then(|| {
        (
            ErrorCode::InvalidRequest,
            "transactions are not served by this broker".to_owned(),
        )
    })
}
