//! A view of a record batch (magic 2), the unit in which records arrive, rest and leave.
//!
//! ```text
//!  0 base offset i64 ─────────── assigned by the broker ┐ outside the checksum,
//!  8 length i32 (of all after it)                       │ so they are patched in place
//! 12 leader epoch i32 ────────── assigned by the broker ┘
//! 16 magic i8 = 2
//! 17 crc u32 (CRC-32C of all after it)
//! 21 attributes i16: codec (0–2), timestamp type (3), transactional (4), control (5)
//! 23 last offset delta i32
//! 27 base timestamp i64
//! 35 max timestamp i64
//! 43 producer id i64
//! 51 producer epoch i16
//! 53 base sequence i32
//! 57 record count i32
//! 61 records, possibly compressed as a whole
//! ```
//!
//! Invariant: a [`BatchView`] spans exactly one batch whose length field is right and whose magic
//! is 2; everything else is checked by who needs it. Nothing here allocates but the
//! builders.

mod batches;
mod builder;
mod error;
mod fields;
mod patch;
mod records;
mod writer;

#[cfg(test)]
mod tests;

pub use batches::Batches;
pub use builder::{BatchBuilder, RecordData};
pub use error::BatchError;
pub use patch::{
    replace_records, seal, set_base_offset, set_leader_epoch, set_log_append_time, set_producer,
};
pub use records::{HeaderView, Headers, RecordView, Records};
pub use writer::{BatchWriter, RECORD_OVERHEAD_BYTES_MAX};

/// Bytes before the first record.
pub const HEADER_BYTES: usize = 61;
/// Bytes before what the length field counts.
pub const LENGTH_OVERHEAD_BYTES: usize = 12;
/// First byte under the checksum.
const CRC_START: usize = 21;
const MAGIC: i8 = 2;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[repr(i16)]
pub enum Codec {
    /// Not at all.
    #[default]
    None = 0,
    /// gzip.
    Gzip = 1,
    /// Snappy, raw or in Xerial frames.
    Snappy = 2,
    /// LZ4 frames.
    Lz4 = 3,
    /// Zstandard.
    Zstd = 4,
}

impl Codec {
    /// Every codec.
    pub const ALL: [Codec; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The codec of a batch's attributes, if there is such a one.
    #[must_use]
    pub const fn from_attributes(attributes: i16) -> Option<Self> {
        match attributes & 0x07 {
            0 => Some(Self::None),
            1 => Some(Self::Gzip),
            2 => Some(Self::Snappy),
            3 => Some(Self::Lz4),
            4 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Its name as configurations spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// The codec of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

/// Whose clock a batch's timestamps are of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimestampType {
    /// The producer's.
    CreateTime,
    /// The broker's, at the time of appending.
    LogAppendTime,
}

/// One batch, borrowed. Fields are read where they lie.
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'a> {
    bytes: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// The batch at the front of `bytes`, and what follows it.
    ///
    /// # Errors
    /// There is no whole batch of magic 2 there.
    pub fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), BatchError> {
        let left = bytes.len();
        if left < HEADER_BYTES {
            return Err(BatchError::Truncated {
                needed: HEADER_BYTES,
                left,
            });
        }
        let magic = bytes[16] as i8;
        if magic != MAGIC {
            return Err(BatchError::Magic { magic });
        }
        let length = i32::from_be_bytes(field(bytes, 8));
        let body = usize::try_from(length).unwrap_or(0);
        if body < HEADER_BYTES - LENGTH_OVERHEAD_BYTES {
            return Err(BatchError::Length { length });
        }
        let needed = LENGTH_OVERHEAD_BYTES + body;
        if needed > left {
            return Err(BatchError::Truncated { needed, left });
        }
        let (batch, rest) = bytes.split_at(needed);
        Ok((Self { bytes: batch }, rest))
    }

    /// The only batch in `bytes`.
    ///
    /// # Errors
    /// There is no whole batch of magic 2, or more than one.
    pub fn only(bytes: &'a [u8]) -> Result<Self, BatchError> {
        match Self::split(bytes)? {
            (batch, []) => Ok(batch),
            (_, rest) => Err(BatchError::MoreThanOne { left: rest.len() }),
        }
    }

    /// The batch's bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Offset of the first record.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        i64::from_be_bytes(field(self.bytes, 0))
    }

    /// Offset of the last record; wraps where the header lies.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.base_offset()
            .wrapping_add(i64::from(self.last_offset_delta()))
    }

    /// Epoch of the leader that appended the batch.
    #[must_use]
    pub fn leader_epoch(&self) -> i32 {
        i32::from_be_bytes(field(self.bytes, 12))
    }

    /// The checksum as stored.
    #[must_use]
    pub fn crc(&self) -> u32 {
        u32::from_be_bytes(field(self.bytes, 17))
    }

    /// Whether the checksum is that of the bytes.
    #[must_use]
    pub fn crc_ok(&self) -> bool {
        self.crc() == crc32c::crc32c(&self.bytes[CRC_START..])
    }

    /// The attribute bits.
    #[must_use]
    pub fn attributes(&self) -> i16 {
        i16::from_be_bytes(field(self.bytes, 21))
    }

    /// How the records are compressed, if the attributes name a codec that exists.
    #[must_use]
    pub fn codec(&self) -> Option<Codec> {
        Codec::from_attributes(self.attributes())
    }

    /// Whose clock the timestamps are of.
    #[must_use]
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes() & 0x08 == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Whether the batch is part of a transaction.
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.attributes() & 0x10 != 0
    }

    /// Whether the batch holds the end of a transaction rather than a client's records.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.attributes() & 0x20 != 0
    }

    /// Offset of the last record, from the first.
    #[must_use]
    pub fn last_offset_delta(&self) -> i32 {
        i32::from_be_bytes(field(self.bytes, 23))
    }

    /// Time from which the records' times are counted, in milliseconds since 1970.
    #[must_use]
    pub fn base_timestamp(&self) -> i64 {
        i64::from_be_bytes(field(self.bytes, 27))
    }

    /// The newest record's time, in milliseconds since 1970.
    #[must_use]
    pub fn max_timestamp(&self) -> i64 {
        i64::from_be_bytes(field(self.bytes, 35))
    }

    /// The idempotent producer's id, -1 for none.
    #[must_use]
    pub fn producer_id(&self) -> i64 {
        i64::from_be_bytes(field(self.bytes, 43))
    }

    /// The idempotent producer's epoch, -1 for none.
    #[must_use]
    pub fn producer_epoch(&self) -> i16 {
        i16::from_be_bytes(field(self.bytes, 51))
    }

    /// The first record's sequence number, -1 for none.
    #[must_use]
    pub fn base_sequence(&self) -> i32 {
        i32::from_be_bytes(field(self.bytes, 53))
    }

    /// Number of records, as the header says.
    #[must_use]
    pub fn record_count(&self) -> i32 {
        i32::from_be_bytes(field(self.bytes, 57))
    }

    /// The records as they lie there, possibly compressed.
    #[must_use]
    pub fn records_bytes(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..]
    }

    /// Iterates the records in `uncompressed`, which is [`Self::records_bytes`] of an uncompressed
    /// batch or what decompression made of it.
    #[must_use]
    pub fn records<'b>(&self, uncompressed: &'b [u8]) -> Records<'b> {
        let log_append_time = match self.timestamp_type() {
            TimestampType::CreateTime => None,
            TimestampType::LogAppendTime => Some(self.max_timestamp()),
        };
        Records::new(
            uncompressed,
            self.record_count(),
            self.base_offset(),
            self.base_timestamp(),
            log_append_time,
        )
    }

    /// Checks what a producer may send: the header's counts, a known codec, no transaction, and
    /// the checksum. The records themselves are not looked at.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate_produced(&self) -> Result<(), BatchError> {
        if self.codec().is_none() {
            let attributes = self.attributes();
            return Err(BatchError::Codec { attributes });
        }
        if self.is_control() {
            return Err(BatchError::Control);
        }
        if self.is_transactional() {
            return Err(BatchError::Transactional);
        }
        let count = self.record_count();
        let last_offset_delta = self.last_offset_delta();
        if count <= 0 || last_offset_delta != count - 1 {
            return Err(BatchError::Count {
                count,
                last_offset_delta,
            });
        }
        if self.codec() == Some(Codec::None) {
            self.check_count_fits(count)?;
        }
        if !self.crc_ok() {
            return Err(BatchError::Crc);
        }
        Ok(())
    }

    /// An uncompressed record takes at least seven bytes.
    fn check_count_fits(&self, count: i32) -> Result<(), BatchError> {
        let left = self.records_bytes().len();
        let needed = usize::try_from(count).unwrap_or(usize::MAX);
        match needed.checked_mul(records::RECORD_BYTES_MIN) {
            Some(needed) if needed <= left => Ok(()),
            _ => Err(BatchError::Truncated { needed, left }),
        }
    }
}

/// A fixed field of a header that is known to be whole.
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&bytes[at..at + N]);
    value
}
