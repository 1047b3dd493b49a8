//! What can go wrong between a client verb and the broker.

use crate::admin::error::AdminError;
use crate::wire::{DecodeError, EncodeError, ErrorCode};
use std::fmt;
use std::io;

/// Why a request has no good answer.
#[derive(Debug)]
pub enum ClientError {
    /// Nobody listens there, or the name is unknown.
    Unreachable {
        /// The address tried.
        address: String,
        /// Whether no broker was ever reached: then waiting is not worth while.
        first: bool,
        /// The kernel's reason.
        error: io::Error,
    },
    /// The connection ended, or nothing came in time.
    Lost {
        /// The broker's address.
        address: String,
        /// The kernel's reason.
        error: io::Error,
    },
    /// The answer cannot be understood, or the request not be said.
    Protocol {
        /// The broker's address.
        address: String,
        /// What is wrong.
        problem: String,
    },
    /// There is no such topic, and it is not to be made.
    NoTopic(String),
    /// The topic has fewer partitions.
    NoPartition {
        /// The topic.
        topic: String,
        /// The partition asked for.
        partition: i32,
        /// How many there are.
        partitions: usize,
    },
    /// The broker said no.
    Refused {
        /// What was asked, such as "partition 3 of orders".
        subject: String,
        /// Kafka's number.
        code: i16,
        /// The broker's words, if it had any.
        message: Option<String>,
    },
}

impl ClientError {
    /// A refusal, with the broker's words.
    #[must_use]
    pub fn refused(subject: impl Into<String>, code: i16, message: Option<String>) -> ClientError {
        ClientError::Refused {
            subject: subject.into(),
            code,
            message,
        }
    }

    /// Whether the same request may succeed later, perhaps at another broker.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        match self {
            ClientError::Unreachable { first, .. } => !first,
            ClientError::Lost { .. } => true,
            ClientError::Protocol { .. }
            | ClientError::NoTopic(_)
            | ClientError::NoPartition { .. } => false,
            ClientError::Refused { code, .. } => {
                ErrorCode::from_code(*code).is_some_and(ErrorCode::is_retriable)
            }
        }
    }

    /// Kafka's number, if the broker gave one.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            ClientError::Refused { code, .. } => ErrorCode::from_code(*code),
            ClientError::NoTopic(_) | ClientError::NoPartition { .. } => {
                Some(ErrorCode::UnknownTopicOrPartition)
            }
            _ => None,
        }
    }

    pub(super) fn encode(address: &str, error: &EncodeError) -> ClientError {
        ClientError::Protocol {
            address: address.to_owned(),
            problem: error.to_string(),
        }
    }

    pub(super) fn decode(address: &str, error: &DecodeError) -> ClientError {
        ClientError::Protocol {
            address: address.to_owned(),
            problem: error.to_string(),
        }
    }
}

/// Kafka's name and number, and the broker's words or ours.
#[must_use]
pub fn describe_code(code: i16, message: Option<&str>) -> String {
    match (ErrorCode::from_code(code), message) {
        (Some(known), Some(message)) if !message.is_empty() => {
            format!("{} ({code}): {message}", known.name())
        }
        (Some(known), _) => known.to_string(),
        (None, message) => format!(
            "error {code}: {}",
            message.unwrap_or("unknown to this program")
        ),
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Unreachable { address, error, .. } => write!(
                f,
                "{error}: no broker at {address}? `penstock serve` starts one; --broker or \
                 PENSTOCK_BROKER names another"
            ),
            ClientError::Lost { address, error } => {
                write!(f, "lost the broker at {address}: {error}")
            }
            ClientError::Protocol { address, problem } => write!(
                f,
                "the broker at {address} and this program do not understand each other: {problem}"
            ),
            ClientError::NoTopic(topic) => write!(
                f,
                "there is no topic {topic}; `penstock topic list` lists those there are"
            ),
            ClientError::NoPartition {
                topic,
                partition,
                partitions,
            } => write!(
                f,
                "there is no partition {partition} of {topic}: it has {partitions}, from 0"
            ),
            ClientError::Refused {
                subject,
                code,
                message,
            } => {
                write!(f, "{subject}: {}", describe_code(*code, message.as_deref()))
            }
        }
    }
}

impl std::error::Error for ClientError {}

impl From<ClientError> for AdminError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::NoTopic(_)
            | ClientError::NoPartition { .. }
            | ClientError::Refused { .. } => AdminError::Failed(error.to_string()),
            _ => AdminError::Broker(error.to_string()),
        }
    }
}
