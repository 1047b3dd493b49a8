//! Makes uncompressed batches into one buffer that is used again, for clients that make very many:
//! every record is written once, in place, and its value is handed out to be filled in.

use super::HEADER_BYTES;
use super::fields::{header, length, varint, zigzag};

/// Most bytes of a record beside its key and value: six varints and the attributes.
pub const RECORD_OVERHEAD_BYTES_MAX: usize = 36;

/// A batch that is being written. Reusing it costs no allocation.
#[derive(Clone, Debug, Default)]
pub struct BatchWriter {
    bytes: Vec<u8>,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl BatchWriter {
    /// A writer into `bytes`, whose content is dropped and whose room is kept.
    #[must_use]
    pub fn new(mut bytes: Vec<u8>) -> BatchWriter {
        bytes.clear();
        bytes.resize(HEADER_BYTES, 0);
        BatchWriter {
            bytes,
            count: 0,
            base_timestamp: 0,
            max_timestamp: 0,
        }
    }

    /// Adds a record without headers, `timestamp` in milliseconds since 1970, and gives its value
    /// where it lies now, to be changed in place.
    ///
    /// # Panics
    /// A length does not fit 32 bits.
    pub fn append(&mut self, timestamp: i64, key: Option<&[u8]>, value: &[u8]) -> &mut [u8] {
        if self.count == 0 {
            self.base_timestamp = timestamp;
            self.max_timestamp = timestamp;
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        let timestamp_delta = zigzag(timestamp.wrapping_sub(self.base_timestamp));
        let offset_delta = zigzag(i64::from(self.count));
        let key_length = zigzag(key.map_or(-1, |key| length(key.len())));
        let value_length = zigzag(length(value.len()));
        let fields = [timestamp_delta, offset_delta, key_length, value_length];
        // Attributes and the count of headers, 0 both, take a byte each.
        let body = 2
            + fields.map(varint_bytes).iter().sum::<usize>()
            + key.map_or(0, <[u8]>::len)
            + value.len();
        let out = &mut self.bytes;
        varint(out, zigzag(length(body)));
        out.push(0);
        varint(out, timestamp_delta);
        varint(out, offset_delta);
        varint(out, key_length);
        out.extend_from_slice(key.unwrap_or_default());
        varint(out, value_length);
        let start = out.len();
        out.extend_from_slice(value);
        out.push(0);
        self.count += 1;
        &mut self.bytes[start..start + value.len()]
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

    /// The batch with its header written but not sealed: [`super::set_producer`] or
    /// [`super::seal`] does that.
    ///
    /// # Panics
    /// There is no record.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let batch = &mut self.bytes;
        header(batch, self.count, self.base_timestamp, self.max_timestamp);
        batch[43..57].copy_from_slice(&[0xff; 14]); // no producer: -1, -1, -1
        self.bytes
    }
}

fn varint_bytes(value: u64) -> usize {
    let bits = u64::BITS - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use super::super::{BatchBuilder, RecordData, patch};
    use super::*;

    /// Goal: both builders make the same bytes, also in a buffer that was used before. Method:
    /// records with and without keys, of lengths around each varint's edge, times that go back.
    #[test]
    fn it_makes_what_the_builder_makes() {
        let mut bytes = vec![7; 100_000];
        for size in [0, 1, 62, 63, 64, 127, 8191, 8192, 70_000] {
            let mut builder = BatchBuilder::new().producer(9, 2, 77);
            let mut writer = BatchWriter::new(bytes);
            for (index, key) in [None, Some(&b"key"[..]), Some(&b""[..])].iter().enumerate() {
                let value = vec![index as u8 + 1; size];
                let timestamp = 1_700_000_000_000 - 5000 * index as i64;
                builder.append(&RecordData {
                    key: *key,
                    value: Some(&value),
                    headers: &[],
                    timestamp,
                });
                let template = vec![0; size];
                let place = writer.append(timestamp, *key, &template);
                place.copy_from_slice(&value);
            }
            assert_eq!((writer.count(), writer.bytes()), (3, builder.bytes()));
            let mut written = writer.finish();
            patch::set_producer(&mut written, 9, 2, 77);
            assert_eq!(written, builder.finish(), "{size}");
            bytes = written;
        }
    }
}
