//! Produce (0): records on their way in, both directions of it.
//!
//! The hot path of a producer. A request is walked once and copied never: the record batches of
//! each partition are a slice of the frame; and a client that has many leaves them where it built
//! them ([`ProduceCall`]). Versions 0–2 are read and written only to be refused in
//! their own words, since the advertised range must start at 0 (older librdkafka otherwise stops
//! compressing in silence).

use bytes::Bytes;

use super::header::RequestHeader;
use super::messages::{LeaderIdAndEpoch, NodeEndpoint};
use super::schema::{
    Array, EncodeError, Form, LAST, Message, Text, Wire, Writer, message, structure,
};
use crate::base::ids::TopicId;

structure! {
    /// A partition's records.
    ProducePartition {
        /// Index in the topic.
        index: i32 [0, LAST] = 0,
        /// One record batch of magic 2; null and empty are errors of the client.
        records: Option<Bytes> [0, LAST] = None,
    }
    /// A topic's partitions.
    ProduceTopic {
        /// Its name, up to version 12.
        name: Text [0, 12] = Text::default(),
        /// Its id, from version 13.
        topic_id: TopicId [13, LAST] = TopicId::default(),
        /// Its partitions.
        partitions: Array<ProducePartition> [0, LAST] = Array::default(),
    }
    /// Records to append.
    ProduceRequest {
        /// The transactional id, if any.
        transactional_id: Option<Text> [3, LAST] = None,
        /// 0: no answer is expected; 1 and -1: answer when durable.
        acks: i16 [0, LAST] = 0,
        /// How long the broker may take, in milliseconds.
        timeout_ms: i32 [0, LAST] = 0,
        /// The topics.
        topics: Array<ProduceTopic> [0, LAST] = Array::default(),
    }
    /// A record that made its batch be refused.
    RecordError {
        /// Index in the batch.
        batch_index: i32 [8, LAST] = 0,
        /// What is wrong with it, in words.
        message: Option<Text> [8, LAST] = None,
    }
    /// A partition's answer.
    ProducePartitionResponse {
        /// Index in the topic.
        index: i32 [0, LAST] = 0,
        /// Kafka's error code.
        error_code: i16 [0, LAST] = 0,
        /// Offset of the first record, -1 on error.
        base_offset: i64 [0, LAST] = -1,
        /// The broker's time if the topic uses it, else -1, in milliseconds.
        log_append_time_ms: i64 [2, LAST] = -1,
        /// The partition's first offset, -1 if unknown.
        log_start_offset: i64 [5, LAST] = -1,
        /// The records that made the batch be refused.
        record_errors: Array<RecordError> [8, LAST] = Array::default(),
        /// What went wrong, in words.
        error_message: Option<Text> [8, LAST] = None,
        @tagged {
            /// Who leads the partition now.
            current_leader: LeaderIdAndEpoch [0, 10] = LeaderIdAndEpoch::default(),
        }
    }
    /// A topic's answer.
    ProduceTopicResponse {
        /// Its name, up to version 12.
        name: Text [0, 12] = Text::default(),
        /// Its id, from version 13.
        topic_id: TopicId [13, LAST] = TopicId::default(),
        /// Its partitions.
        partitions: Array<ProducePartitionResponse> [0, LAST] = Array::default(),
    }
    /// What became of the records.
    ProduceResponse {
        /// One answer for each topic.
        topics: Array<ProduceTopicResponse> [0, LAST] = Array::default(),
        /// How long the client is asked to wait, in milliseconds.
        throttle_time_ms: i32 [1, LAST] = 0,
        @tagged {
            /// Where the brokers named as current leaders are.
            node_endpoints: Array<NodeEndpoint> [0, 10] = Array::default(),
        }
    }
}

message! {
    ProduceRequest flexible from 9;
    ProduceResponse flexible from 9;
}

/// One batch of a [`ProduceCall`].
#[derive(Clone, Copy, Debug)]
pub struct CallBatch<'a> {
    /// The topic's name.
    pub topic: &'a Text,
    /// Index in the topic.
    pub index: i32,
    /// Length of the batch, in bytes.
    pub bytes: usize,
}

/// A request whose batches stay in the buffers they were built in. Up to version 12, which names
/// topics.
#[derive(Clone, Copy, Debug)]
pub struct ProduceCall<'a> {
    /// 0: no answer is expected; 1 and -1: answer when durable.
    pub acks: i16,
    /// How long the broker may take, in milliseconds.
    pub timeout_ms: i32,
    /// The batches, those of one topic one after the other.
    pub batches: &'a [CallBatch<'a>],
}

impl ProduceCall<'_> {
    /// The frame without its batches. `cuts` (emptied first) takes, for each batch, the position
    /// in the frame's bytes before which the batch is to be sent.
    ///
    /// # Errors
    /// A name or the frame is too long for its length field.
    pub(super) fn encode(
        &self,
        header: &RequestHeader,
        cuts: &mut Vec<usize>,
    ) -> Result<Bytes, EncodeError> {
        let (api_key, version) = (header.api_key, header.api_version);
        if !(super::versions::PRODUCE_VERSION_MIN..=12).contains(&version) {
            return Err(EncodeError::UnsupportedVersion { api_key, version });
        }
        cuts.clear();
        let form = ProduceRequest::form(version);
        let mut writer = Writer::new(form, 96 + 16 * self.batches.len());
        writer.raw(&[0; 4]);
        header.write(&mut writer, form.flexible);
        None::<Text>.write(&mut writer); // transactional id
        self.acks.write(&mut writer);
        self.timeout_ms.write(&mut writer);
        let same_topic = |a: &CallBatch<'_>, b: &CallBatch<'_>| a.topic == b.topic;
        writer.count(Some(self.batches.chunk_by(same_topic).count()));
        for partitions in self.batches.chunk_by(same_topic) {
            partitions[0].topic.write(&mut writer);
            writer.count(Some(partitions.len()));
            for partition in partitions {
                partition.index.write(&mut writer);
                writer.blob_length(Some(partition.bytes));
                cuts.push(writer.len());
                end_structure(form, &mut writer);
            }
            end_structure(form, &mut writer);
        }
        end_structure(form, &mut writer);
        writer.finish_frame_around(self.batches.iter().map(|batch| batch.bytes).sum())
    }
}

/// A flexible structure without tagged fields ends in their count, 0.
fn end_structure(form: Form, writer: &mut Writer) {
    if form.flexible {
        writer.unsigned_varint(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Request, request};

    /// Goal: a request in pieces is the request. Method: two topics, three batches, in a flexible
    /// and a plain version; put together and decoded it must equal what was meant.
    #[test]
    fn pieces_put_together_are_the_request() {
        let names = [Text::from("a"), Text::from("orders")];
        let bodies: [&[u8]; 3] = [&[1; 5], &[2; 300], &[3; 70_000]];
        for version in [3, 8, 9, 12] {
            let batches = [(0, 4), (1, 0), (1, 9)].map(|(topic, index): (usize, i32)| CallBatch {
                topic: &names[topic],
                index,
                bytes: 0,
            });
            let mut batches = batches.to_vec();
            for (batch, body) in batches.iter_mut().zip(bodies) {
                batch.bytes = body.len();
            }
            let call = ProduceCall {
                acks: -1,
                timeout_ms: 1234,
                batches: &batches,
            };
            let header = RequestHeader {
                api_version: version,
                ..RequestHeader::default()
            };
            let mut cuts = Vec::new();
            let pieces = call.encode(&header, &mut cuts).expect("a small request");
            let mut frame = Vec::new();
            let mut from = 0;
            for (cut, body) in cuts.iter().zip(bodies) {
                frame.extend_from_slice(&pieces[from..*cut]);
                frame.extend_from_slice(body);
                from = *cut;
            }
            frame.extend_from_slice(&pieces[from..]);
            let prefix = u32::from_be_bytes(frame[..4].try_into().expect("four bytes"));
            assert_eq!(prefix as usize, frame.len() - 4);
            let frame = Bytes::from(frame).slice(4..);
            let (header, body) = RequestHeader::decode(&frame).expect("a header");
            let Request::Produce(meant) = request::decode(&header, &body).expect("a request")
            else {
                panic!("another request");
            };
            assert_eq!((meant.acks, meant.timeout_ms), (-1, 1234));
            let topics = meant.topics.to_vec();
            assert_eq!(topics.len(), 2);
            let found: Vec<(String, i32, Bytes)> = topics
                .iter()
                .flat_map(|topic| {
                    let name = topic.name.to_string();
                    let partitions = topic.partitions.to_vec().into_iter();
                    partitions.map(move |partition| {
                        let records = partition.records.expect("not null");
                        (name.clone(), partition.index, records)
                    })
                })
                .collect();
            assert_eq!(found.len(), 3);
            for (found, (batch, body)) in found.iter().zip(batches.iter().zip(bodies)) {
                assert_eq!(found.0, batch.topic.to_string());
                assert_eq!((found.1, &found.2[..]), (batch.index, body));
            }
        }
    }
}
