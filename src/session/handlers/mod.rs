//! One file per kind of request: from the decoded request to its answer.

mod cluster;
mod configs;
mod fetch;
mod metadata;
mod offsets;
mod produce;
mod topics;

use super::Session;
use super::replies::{Answer, Reply};
use crate::base::ids::{PartitionIndex, TopicPartition};
use crate::shard::catalog::Topic;
use crate::wire::{ErrorCode, RequestHeader, Response, response};
use std::future::Future;

impl Session {
    /// Encodes an answer that is ready.
    fn answer(&self, header: &RequestHeader, response: &Response) -> Option<Answer> {
        let encoded = response::encode(
            header.api_key,
            header.api_version,
            header.correlation_id,
            response,
        );
        match encoded {
            Ok(frame) => Some(Answer::from(frame)),
            Err(error) => panic!(
                "our own answer to API {} does not encode: {error}",
                header.api_key
            ),
        }
    }

    fn now(&self, header: &RequestHeader, response: impl Into<Response>) -> Reply {
        let answer = self.answer(header, &response.into());
        Reply::Now(answer.expect("an answer that is ready is there"))
    }

    /// An answer that takes time: `work` runs when the answers before it are out.
    fn later<R: Into<Response>>(
        &self,
        header: RequestHeader,
        work: impl Future<Output = R> + 'static,
    ) -> Reply {
        let session = self.clone();
        Reply::Later(Box::pin(async move {
            let response = work.await.into();
            session.answer(&header, &response)
        }))
    }

    /// Counts an error code that is answered.
    fn count_error(&self, code: ErrorCode) {
        if !code.is_none() {
            self.router.metrics.requests.errors.inc(code.code());
        }
    }
}

/// A partition of a topic, if the topic has it.
fn partition_of(topic: &Topic, index: i32) -> Option<TopicPartition> {
    (0..topic.partitions)
        .contains(&index)
        .then_some(TopicPartition {
            topic: topic.id,
            partition: PartitionIndex(index),
        })
}
