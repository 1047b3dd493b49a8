//! Makes batches, for clients and tests; a broker never makes one.

use super::fields::{header, length, varint, zigzag};
use super::{HEADER_BYTES, patch};

/// A record to append.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordData<'a> {
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value; null is a tombstone.
    pub value: Option<&'a [u8]>,
    /// Its headers, in order; keys may repeat.
    pub headers: &'a [(&'a str, Option<&'a [u8]>)],
    /// Its time, in milliseconds since 1970.
    pub timestamp: i64,
}

/// Collects records into one uncompressed batch.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    bytes: Vec<u8>,
    body: Vec<u8>,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
    producer: (i64, i16, i32),
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuilder {
    /// An empty batch of no idempotent producer.
    #[must_use]
    pub fn new() -> Self {
        Self {
            bytes: vec![0; HEADER_BYTES],
            body: Vec::new(),
            count: 0,
            base_timestamp: 0,
            max_timestamp: -1,
            producer: (-1, -1, -1),
        }
    }

    /// Makes the batch one of an idempotent producer.
    #[must_use]
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.producer = (id, epoch, base_sequence);
        self
    }

    /// Adds a record.
    ///
    /// # Panics
    /// A length does not fit 32 bits.
    pub fn append(&mut self, record: &RecordData<'_>) -> &mut Self {
        if self.count == 0 {
            self.base_timestamp = record.timestamp;
        }
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        let body = &mut self.body;
        body.clear();
        body.push(0);
        varint(
            body,
            zigzag(record.timestamp.wrapping_sub(self.base_timestamp)),
        );
        varint(body, zigzag(i64::from(self.count)));
        nullable(body, record.key);
        nullable(body, record.value);
        varint(body, zigzag(length(record.headers.len())));
        for (key, value) in record.headers {
            nullable(body, Some(key.as_bytes()));
            nullable(body, *value);
        }
        varint(&mut self.bytes, zigzag(length(self.body.len())));
        self.bytes.extend_from_slice(&self.body);
        self.count += 1;
        self
    }

    /// Records so far.
    #[must_use]
    pub fn count(&self) -> i32 {
        self.count
    }

    /// Bytes of the batch so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The batch: base offset 0, leader epoch -1, sealed.
    ///
    /// # Panics
    /// There is no record.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let batch = &mut self.bytes;
        header(batch, self.count, self.base_timestamp, self.max_timestamp);
        let (id, epoch, base_sequence) = self.producer;
        patch::set_producer(batch, id, epoch, base_sequence);
        self.bytes
    }
}

fn nullable(bytes: &mut Vec<u8>, value: Option<&[u8]>) {
    varint(bytes, zigzag(value.map_or(-1, |value| length(value.len()))));
    bytes.extend_from_slice(value.unwrap_or_default());
}
