//! Why a record batch was refused.

use std::fmt;

/// What is wrong with a record batch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BatchError {
    /// Something reaches past the end.
    Truncated {
        /// Bytes it needs.
        needed: usize,
        /// Bytes there are.
        left: usize,
    },
    /// A format other than magic 2.
    Magic {
        /// The magic.
        magic: i8,
    },
    /// A length field no batch can have.
    Length {
        /// The length.
        length: i32,
    },
    /// More than one batch where one is allowed.
    MoreThanOne {
        /// Bytes after the first.
        left: usize,
    },
    /// A codec that does not exist.
    Codec {
        /// The attributes.
        attributes: i16,
    },
    /// A control batch from a client.
    Control,
    /// A transactional batch, which is not served.
    Transactional,
    /// No record, or a count that does not fit the last offset.
    Count {
        /// The record count.
        count: i32,
        /// The last record's offset from the first.
        last_offset_delta: i32,
    },
    /// The checksum is not that of the bytes.
    Crc,
    /// A record's variable-length integer has too many bytes.
    Varint,
    /// A record's length, or one inside it, is negative or does not fit.
    RecordLength {
        /// The length.
        length: i64,
    },
    /// A header key that is null or not UTF-8.
    HeaderKey,
    /// Bytes after the last record.
    TrailingBytes {
        /// How many.
        left: usize,
    },
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, left } => {
                write!(f, "{needed} bytes are needed but only {left} are there")
            }
            Self::Magic { magic } => write!(f, "record format {magic}; only 2 is accepted"),
            Self::Length { length } => write!(f, "a batch length of {length}"),
            Self::MoreThanOne { left } => {
                write!(f, "{left} bytes after the one batch that is allowed")
            }
            Self::Codec { attributes } => write!(f, "unknown codec in attributes {attributes}"),
            Self::Control => f.write_str("a control batch from a client"),
            Self::Transactional => f.write_str("a transactional batch"),
            Self::Count {
                count,
                last_offset_delta,
            } => write!(
                f,
                "{count} records with a last offset delta of {last_offset_delta}"
            ),
            Self::Crc => f.write_str("the checksum does not match"),
            Self::Varint => f.write_str("a variable-length integer of too many bytes"),
            Self::RecordLength { length } => write!(f, "a length of {length} inside a record"),
            Self::HeaderKey => f.write_str("a header key that is null or not UTF-8"),
            Self::TrailingBytes { left } => write!(f, "{left} bytes after the last record"),
        }
    }
}

impl std::error::Error for BatchError {}
