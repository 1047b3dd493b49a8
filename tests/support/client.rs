//! One blocking connection: requests out, answers in, in order.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::bytes::{Malformed, Reader, Writer};

/// Error codes the tests tell apart.
pub mod code {
    pub const NONE: i16 = 0;
    pub const OFFSET_OUT_OF_RANGE: i16 = 1;
    pub const CORRUPT_MESSAGE: i16 = 2;
    pub const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    pub const LEADER_NOT_AVAILABLE: i16 = 5;
    pub const NOT_LEADER_OR_FOLLOWER: i16 = 6;
    pub const REQUEST_TIMED_OUT: i16 = 7;
    pub const MESSAGE_TOO_LARGE: i16 = 10;
    pub const TOPIC_ALREADY_EXISTS: i16 = 36;
    pub const OUT_OF_ORDER_SEQUENCE_NUMBER: i16 = 45;
    pub const DUPLICATE_SEQUENCE_NUMBER: i16 = 46;
    pub const KAFKA_STORAGE_ERROR: i16 = 56;
    pub const UNKNOWN_PRODUCER_ID: i16 = 59;
    pub const INVALID_RECORD: i16 = 87;
}

/// Why a call did not return an answer.
#[derive(Debug)]
pub enum Failure {
    /// The connection failed: the outcome is unknown.
    Io(io::Error),
    /// The answer is not in the protocol: a fault of the broker.
    Malformed(&'static str),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

impl From<Malformed> for Failure {
    fn from(error: Malformed) -> Failure {
        Failure::Malformed(error.0)
    }
}

/// What was appended where.
#[derive(Clone, Copy, Debug)]
pub struct Produced {
    pub error: i16,
    pub base_offset: i64,
    pub log_start: i64,
}

/// One partition of a fetch's answer.
#[derive(Clone, Debug)]
pub struct Fetched {
    pub topic: String,
    pub partition: i32,
    pub error: i16,
    pub high_watermark: i64,
    pub log_start: i64,
    pub batches: Vec<u8>,
}

/// A partition in the answer to Metadata.
#[derive(Clone, Debug)]
pub struct Leader {
    pub error: i16,
    pub partition: i32,
    pub broker: i32,
}

/// The answer to Metadata.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    pub brokers: Vec<(i32, String, i32)>,
    pub topics: Vec<(i16, String, Vec<Leader>)>,
}

/// A request's frame, length prefix included. Header version 1.
pub fn frame(api_key: i16, version: i16, correlation: i32, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(body.len() + 32);
    frame.put_i32(0);
    frame.put_i16(api_key);
    frame.put_i16(version);
    frame.put_i32(correlation);
    frame.put_string(Some("penstock-test"));
    frame.extend_from_slice(body);
    let length = i32::try_from(frame.len() - 4).expect("test requests are far below 2 GiB");
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame
}

/// Body of Produce v7 with one batch.
pub fn produce_body(topic: &str, partition: i32, acks: i16, batch: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(batch.len() + 64);
    body.put_string(None);
    body.put_i16(acks);
    body.put_i32(30_000);
    body.put_i32(1);
    body.put_string(Some(topic));
    body.put_i32(1);
    body.put_i32(partition);
    body.put_bytes(batch);
    body
}

/// Body of Fetch v11 of some partitions of one topic, each from its offset.
pub fn fetch_body(topic: &str, from: &[(i32, i64)], wait_ms: i32, bytes_max: i32) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_i32(-1);
    body.put_i32(wait_ms);
    body.put_i32(1);
    body.put_i32(bytes_max);
    body.put_i8(0);
    body.put_i32(0);
    body.put_i32(-1);
    body.put_i32(1);
    body.put_string(Some(topic));
    body.put_i32(i32::try_from(from.len()).expect("few partitions"));
    for &(partition, offset) in from {
        body.put_i32(partition);
        body.put_i32(-1);
        body.put_i64(offset);
        body.put_i64(-1);
        body.put_i32(bytes_max);
    }
    body.put_i32(0);
    body.put_string(Some(""));
    body
}

/// A blocking connection to one endpoint.
pub struct Connection {
    stream: TcpStream,
    correlation: i32,
    /// Requests sent whose answers were not yet read.
    expected: std::collections::VecDeque<i32>,
}

impl Connection {
    /// Connects; every read and write fails after `timeout`.
    pub fn open(address: SocketAddr, timeout: Duration) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(Connection {
            stream,
            correlation: 0,
            expected: std::collections::VecDeque::new(),
        })
    }

    /// The socket, for tests that misbehave.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Sends a request; its answer must be received in turn.
    pub fn send(&mut self, api_key: i16, version: i16, body: &[u8]) -> io::Result<()> {
        self.correlation += 1;
        self.expected.push_back(self.correlation);
        self.stream
            .write_all(&frame(api_key, version, self.correlation, body))
    }

    /// Sends a request that has no answer (acks 0).
    pub fn send_unanswered(&mut self, api_key: i16, version: i16, body: &[u8]) -> io::Result<()> {
        self.correlation += 1;
        self.stream
            .write_all(&frame(api_key, version, self.correlation, body))
    }

    /// Receives the answer to the oldest request not yet answered, without its header.
    pub fn receive(&mut self) -> Result<Vec<u8>, Failure> {
        let mut head = [0u8; 4];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes(head) as usize;
        if !(4..=256 << 20).contains(&length) {
            return Err(Failure::Malformed("the length of an answer"));
        }
        let mut answer = vec![0u8; length];
        self.stream.read_exact(&mut answer)?;
        let expected = self.expected.pop_front();
        if expected != Some(Reader(&answer).i32()?) {
            return Err(Failure::Malformed(
                "the correlation id is not that of the next request",
            ));
        }
        answer.drain(..4);
        Ok(answer)
    }

    /// One request, one answer.
    pub fn call(&mut self, api_key: i16, version: i16, body: &[u8]) -> Result<Vec<u8>, Failure> {
        self.send(api_key, version, body)?;
        self.receive()
    }

    /// ApiVersions v0: `(key, min, max)` of everything served.
    pub fn api_versions(&mut self) -> Result<Vec<(i16, i16, i16)>, Failure> {
        let answer = self.call(18, 0, &[])?;
        let mut reader = Reader(&answer);
        if reader.i16()? != code::NONE {
            return Err(Failure::Malformed("ApiVersions 0 must always work"));
        }
        let count = reader.count()?;
        let mut served = Vec::new();
        for _ in 0..count {
            served.push((reader.i16()?, reader.i16()?, reader.i16()?));
        }
        Ok(served)
    }

    /// Metadata v4 of the named topics, or of all; makes none.
    pub fn metadata(&mut self, topics: Option<&[&str]>) -> Result<Metadata, Failure> {
        let mut body = Vec::new();
        match topics {
            Some(topics) => {
                body.put_i32(i32::try_from(topics.len()).expect("few topics"));
                topics.iter().for_each(|topic| body.put_string(Some(topic)));
            }
            None => body.put_i32(-1),
        }
        body.put_i8(0);
        let answer = self.call(3, 4, &body)?;
        Ok(read_metadata(&mut Reader(&answer))?)
    }

    /// CreateTopics v2 of one topic: the error code.
    pub fn create_topic(
        &mut self,
        topic: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) -> Result<i16, Failure> {
        let mut body = Vec::new();
        body.put_i32(1);
        body.put_string(Some(topic));
        body.put_i32(partitions);
        body.put_i16(1);
        body.put_i32(0);
        body.put_i32(i32::try_from(configs.len()).expect("few settings"));
        for (name, value) in configs {
            body.put_string(Some(name));
            body.put_string(Some(value));
        }
        body.put_i32(30_000);
        body.put_i8(0);
        let answer = self.call(19, 2, &body)?;
        let mut reader = Reader(&answer);
        reader.i32()?;
        if reader.count()? != 1 || reader.string()?.as_deref() != Some(topic) {
            return Err(Failure::Malformed("CreateTopics answers another topic"));
        }
        Ok(reader.i16()?)
    }

    /// InitProducerId v1: error, producer id, epoch.
    pub fn init_producer_id(&mut self) -> Result<(i16, i64, i16), Failure> {
        let mut body = Vec::new();
        body.put_string(None);
        body.put_i32(60_000);
        let answer = self.call(22, 1, &body)?;
        let mut reader = Reader(&answer);
        reader.i32()?;
        Ok((reader.i16()?, reader.i64()?, reader.i16()?))
    }

    /// ListOffsets v2 of one partition (−2 first, −1 next, or a time): error and offset.
    pub fn list_offset(
        &mut self,
        topic: &str,
        partition: i32,
        timestamp: i64,
    ) -> Result<(i16, i64), Failure> {
        let mut body = Vec::new();
        body.put_i32(-1);
        body.put_i8(0);
        body.put_i32(1);
        body.put_string(Some(topic));
        body.put_i32(1);
        body.put_i32(partition);
        body.put_i64(timestamp);
        let answer = self.call(2, 2, &body)?;
        let mut reader = Reader(&answer);
        reader.i32()?;
        if reader.count()? != 1 || reader.string()?.as_deref() != Some(topic) {
            return Err(Failure::Malformed("ListOffsets answers another topic"));
        }
        if reader.count()? != 1 || reader.i32()? != partition {
            return Err(Failure::Malformed("ListOffsets answers another partition"));
        }
        let error = reader.i16()?;
        reader.i64()?;
        Ok((error, reader.i64()?))
    }

    /// Produce v7 of one batch, answer awaited.
    pub fn produce(
        &mut self,
        topic: &str,
        partition: i32,
        acks: i16,
        batch: &[u8],
    ) -> Result<Produced, Failure> {
        self.send(0, 7, &produce_body(topic, partition, acks, batch))?;
        self.receive_produced()
    }

    /// The answer to a Produce v7 of one batch that was sent before.
    pub fn receive_produced(&mut self) -> Result<Produced, Failure> {
        let answer = self.receive()?;
        let mut reader = Reader(&answer);
        if reader.count()? != 1 {
            return Err(Failure::Malformed("Produce answers other topics"));
        }
        reader.string()?;
        if reader.count()? != 1 {
            return Err(Failure::Malformed("Produce answers other partitions"));
        }
        reader.i32()?;
        let (error, base_offset) = (reader.i16()?, reader.i64()?);
        reader.i64()?;
        let log_start = reader.i64()?;
        Ok(Produced {
            error,
            base_offset,
            log_start,
        })
    }

    /// Fetch v11 of some partitions of one topic.
    pub fn fetch(
        &mut self,
        topic: &str,
        from: &[(i32, i64)],
        wait_ms: i32,
        bytes_max: i32,
    ) -> Result<Vec<Fetched>, Failure> {
        let answer = self.call(1, 11, &fetch_body(topic, from, wait_ms, bytes_max))?;
        let mut reader = Reader(&answer);
        reader.i32()?;
        if reader.i16()? != code::NONE {
            return Err(Failure::Malformed(
                "a fetch without a session failed as a whole",
            ));
        }
        reader.i32()?;
        Ok(read_fetched(&mut reader)?)
    }
}

fn read_fetched(reader: &mut Reader<'_>) -> Result<Vec<Fetched>, Malformed> {
    let mut all = Vec::new();
    for _ in 0..reader.count()? {
        let topic = reader.string()?.unwrap_or_default();
        for _ in 0..reader.count()? {
            let (partition, error) = (reader.i32()?, reader.i16()?);
            let high_watermark = reader.i64()?;
            reader.i64()?;
            let log_start = reader.i64()?;
            for _ in 0..reader.count()? {
                reader.take(16)?;
            }
            reader.i32()?;
            let batches = reader.bytes()?.to_vec();
            let topic = topic.clone();
            all.push(Fetched {
                topic,
                partition,
                error,
                high_watermark,
                log_start,
                batches,
            });
        }
    }
    Ok(all)
}

fn read_metadata(reader: &mut Reader<'_>) -> Result<Metadata, Malformed> {
    let mut metadata = Metadata::default();
    reader.i32()?;
    for _ in 0..reader.count()? {
        let (id, host, port) = (reader.i32()?, reader.string()?, reader.i32()?);
        reader.string()?;
        metadata.brokers.push((id, host.unwrap_or_default(), port));
    }
    reader.string()?;
    reader.i32()?;
    for _ in 0..reader.count()? {
        let (error, name) = (reader.i16()?, reader.string()?.unwrap_or_default());
        reader.bool()?;
        let mut leaders = Vec::new();
        for _ in 0..reader.count()? {
            let (error, partition, broker) = (reader.i16()?, reader.i32()?, reader.i32()?);
            for _ in 0..2 {
                let count = reader.count()?;
                reader.take(4 * count)?;
            }
            leaders.push(Leader {
                error,
                partition,
                broker,
            });
        }
        metadata.topics.push((error, name, leaders));
    }
    Ok(metadata)
}
