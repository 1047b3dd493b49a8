//! Reads records one at a time out of a batch's uncompressed records.
//!
//! ```text
//! record = length (bytes after it) · attributes i8 · timestamp delta · offset delta
//!          · key length (-1 null) · key · value length (-1 null) · value
//!          · header count · headers
//! header = key length · key · value length (-1 null) · value
//! ```
//! All integers but the attributes are zig-zag varints. A record is walked through when it is read,
//! so a [`RecordView`]'s headers can be iterated without errors. Nothing is allocated.

use super::BatchError;

/// Fewest bytes of a record: length, attributes, five varints.
pub(super) const RECORD_BYTES_MIN: usize = 7;

/// One record, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Its offset.
    pub offset: i64,
    /// Its time, in milliseconds since 1970.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value; null is a tombstone.
    pub value: Option<&'a [u8]>,
    headers: Headers<'a>,
}

impl<'a> RecordView<'a> {
    /// The headers, in order; keys may repeat.
    #[must_use]
    pub fn headers(&self) -> Headers<'a> {
        self.headers
    }
}

/// One header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderView<'a> {
    /// Its key.
    pub key: &'a str,
    /// Its value.
    pub value: Option<&'a [u8]>,
}

/// Iterator over a record's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Headers<'a> {
    type Item = HeaderView<'a>;

    fn next(&mut self) -> Option<HeaderView<'a>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let mut cursor = Cursor { bytes: self.bytes };
        let header = cursor
            .header()
            .expect("the record was walked through when it was read");
        self.bytes = cursor.bytes;
        Some(header)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Headers<'_> {}

/// Iterator over the records of one batch. After an error it ends.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    cursor: Cursor<'a>,
    left: i32,
    base_offset: i64,
    base_timestamp: i64,
    log_append_time: Option<i64>,
    ended: bool,
}

impl<'a> Records<'a> {
    /// Over `count` records in `bytes`, which must hold exactly those.
    pub(super) fn new(
        bytes: &'a [u8],
        count: i32,
        base_offset: i64,
        base_timestamp: i64,
        log_append_time: Option<i64>,
    ) -> Self {
        Self {
            cursor: Cursor { bytes },
            left: count,
            base_offset,
            base_timestamp,
            log_append_time,
            ended: false,
        }
    }

    fn record(&mut self) -> Result<RecordView<'a>, BatchError> {
        let length = self.cursor.varint()?;
        let mut body = Cursor {
            bytes: self.cursor.take(length)?,
        };
        body.take(1)?; // attributes: none are defined
        let timestamp_delta = body.varlong()?;
        let offset_delta = body.varint()?;
        let key = body.nullable()?;
        let value = body.nullable()?;
        let headers = body.headers()?;
        let delta_time = self.base_timestamp.wrapping_add(timestamp_delta);
        Ok(RecordView {
            offset: self.base_offset.wrapping_add(offset_delta),
            timestamp: self.log_append_time.unwrap_or(delta_time),
            key,
            value,
            headers,
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RecordView<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        if self.left <= 0 {
            self.ended = true;
            let left = self.cursor.bytes.len();
            return (left > 0).then_some(Err(BatchError::TrailingBytes { left }));
        }
        self.left -= 1;
        let record = self.record();
        self.ended = record.is_err();
        Some(record)
    }
}

#[derive(Clone, Copy, Debug)]
struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: i64) -> Result<&'a [u8], BatchError> {
        let Ok(needed) = usize::try_from(length) else {
            return Err(BatchError::RecordLength { length });
        };
        let left = self.bytes.len();
        if needed > left {
            return Err(BatchError::Truncated { needed, left });
        }
        let (taken, rest) = self.bytes.split_at(needed);
        self.bytes = rest;
        Ok(taken)
    }

    /// A zig-zag varint of at most `bytes_max` bytes.
    fn zigzag(&mut self, bytes_max: usize) -> Result<i64, BatchError> {
        let mut value: u64 = 0;
        for index in 0..bytes_max {
            let byte = self.take(1)?[0];
            let bits = u64::from(byte & 0x7f);
            let shift = 7 * index;
            if shift == 63 && bits > 1 {
                return Err(BatchError::Varint);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(BatchError::Varint)
    }

    fn varlong(&mut self) -> Result<i64, BatchError> {
        self.zigzag(10)
    }

    /// A 32-bit varint, widened so that lengths need no cast.
    fn varint(&mut self) -> Result<i64, BatchError> {
        let value = self.zigzag(5)?;
        match i32::try_from(value) {
            Ok(_) => Ok(value),
            Err(_) => Err(BatchError::Varint),
        }
    }

    fn nullable(&mut self) -> Result<Option<&'a [u8]>, BatchError> {
        match self.varint()? {
            -1 => Ok(None),
            length => self.take(length).map(Some),
        }
    }

    fn header(&mut self) -> Result<HeaderView<'a>, BatchError> {
        let key = self.nullable()?.ok_or(BatchError::HeaderKey)?;
        let key = std::str::from_utf8(key).map_err(|_| BatchError::HeaderKey)?;
        let value = self.nullable()?;
        Ok(HeaderView { key, value })
    }

    /// The headers that end a record, walked through; a header takes at least two bytes.
    fn headers(&mut self) -> Result<Headers<'a>, BatchError> {
        let length = self.varint()?;
        let count = usize::try_from(length).map_err(|_| BatchError::RecordLength { length })?;
        let left = self.bytes.len();
        if count.saturating_mul(2) > left {
            return Err(BatchError::Truncated {
                needed: count.saturating_mul(2),
                left,
            });
        }
        let bytes = self.bytes;
        for _ in 0..count {
            self.header()?;
        }
        match self.bytes.len() {
            0 => Ok(Headers { bytes, left: count }),
            left => Err(BatchError::TrailingBytes { left }),
        }
    }
}
