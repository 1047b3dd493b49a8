//! Why bytes are not a message, and why a message cannot become bytes.

use std::fmt;

/// Why bytes from a peer were refused. Nothing was allocated on their account.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DecodeError {
    /// A value reaches past the end.
    Truncated {
        /// Bytes the value needs.
        needed: usize,
        /// Bytes there are.
        left: usize,
    },
    /// A length or count below zero that is not the null marker.
    NegativeLength {
        /// The length as it came.
        length: i64,
    },
    /// Null where the schema has a value.
    UnexpectedNull,
    /// A count that the bytes left cannot hold, or above the limit.
    CountTooLarge {
        /// The count as it came.
        count: usize,
        /// Bytes there are.
        left: usize,
    },
    /// A string that is not UTF-8.
    InvalidUtf8,
    /// A variable-length integer of too many bytes.
    InvalidVarint,
    /// Tagged fields that are not in strictly rising order.
    TagOrder {
        /// The tag that is out of place.
        tag: u32,
    },
    /// A known tagged field whose value does not fill its declared size.
    TagSize {
        /// The tag.
        tag: u32,
    },
    /// Bytes after the message.
    TrailingBytes {
        /// How many.
        left: usize,
    },
    /// This decoder does not know that version of that API.
    UnsupportedVersion {
        /// The API key.
        api_key: i16,
        /// The version.
        version: i16,
    },
    /// A response that answers another request.
    CorrelationMismatch {
        /// The id that was sent.
        sent: i32,
        /// The id that came.
        received: i32,
    },
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, left } => {
                write!(f, "a value needs {needed} bytes but only {left} are left")
            }
            Self::NegativeLength { length } => write!(f, "a length of {length}"),
            Self::UnexpectedNull => f.write_str("null where a value must be"),
            Self::CountTooLarge { count, left } => {
                write!(f, "a count of {count} with {left} bytes left")
            }
            Self::InvalidUtf8 => f.write_str("a string that is not UTF-8"),
            Self::InvalidVarint => f.write_str("a variable-length integer of too many bytes"),
            Self::TagOrder { tag } => write!(f, "tagged field {tag} is out of order"),
            Self::TagSize { tag } => write!(f, "tagged field {tag} does not fill its size"),
            Self::TrailingBytes { left } => write!(f, "{left} bytes after the message"),
            Self::UnsupportedVersion { api_key, version } => {
                write!(f, "version {version} of API {api_key} is not supported")
            }
            Self::CorrelationMismatch { sent, received } => {
                write!(
                    f,
                    "the answer to request {received} came for request {sent}"
                )
            }
        }
    }
}

impl std::error::Error for DecodeError {}

/// Why a message could not be written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EncodeError {
    /// A string longer than its length field can say.
    StringTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// An array, a byte field or a frame longer than its length field can say.
    TooLarge {
        /// Its length.
        length: usize,
    },
    /// The body's kind and the API key do not belong together.
    WrongApi {
        /// The API key.
        api_key: i16,
    },
    /// The API or version is not one this codec writes.
    UnsupportedVersion {
        /// The API key.
        api_key: i16,
        /// The version.
        version: i16,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StringTooLong { length } => write!(f, "a string of {length} bytes"),
            Self::TooLarge { length } => write!(f, "a length of {length}"),
            Self::WrongApi { api_key } => write!(f, "the body does not belong to API {api_key}"),
            Self::UnsupportedVersion { api_key, version } => {
                write!(f, "version {version} of API {api_key} is not supported")
            }
        }
    }
}

impl std::error::Error for EncodeError {}
