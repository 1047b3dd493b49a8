//! One blocking connection to one broker. Requests may be sent ahead; answers come in their order.

use super::error::ClientError;
use crate::env::blocking::BlockingStream;
use crate::limits;
use crate::wire::client::Conversation;
use crate::wire::frame::{FrameBounds, PREFIX_BYTES};
use crate::wire::messages::{ApiVersion, ApiVersionsRequest};
use crate::wire::{ErrorCode, Request, Response, Text, versions};
use bytes::Bytes;
use std::io::{self, Read, Write};
use std::time::Duration;

const CLIENT_ID: &str = "penstock-cli";

/// The newest version of each API that the verbs are written for. Newer ones of these identify
/// topics by id only, or belong to transactions.
const VERSIONS_MAX: [(i16, i16); 10] = [
    (versions::PRODUCE, 11),
    (versions::FETCH, 12),
    (versions::LIST_OFFSETS, 8),
    (versions::METADATA, 12),
    (versions::CREATE_TOPICS, 7),
    (versions::DELETE_TOPICS, 5),
    (versions::INIT_PRODUCER_ID, 4),
    (versions::DESCRIBE_CONFIGS, 4),
    (versions::CREATE_PARTITIONS, 3),
    (versions::DESCRIBE_CLUSTER, 1),
];

/// A connection whose broker's versions are known.
pub struct Connection {
    address: String,
    stream: BlockingStream,
    conversation: Conversation,
    ranges: Vec<ApiVersion>,
}

impl Connection {
    /// Connects and asks which versions the broker speaks.
    ///
    /// # Errors
    /// The broker cannot be reached, or is none.
    pub fn open(address: &str) -> Result<Connection, ClientError> {
        let timeout = Duration::from_millis(limits::CLIENT_TIMEOUT_MS);
        let stream = BlockingStream::connect(address, timeout).map_err(|error| {
            ClientError::Unreachable {
                address: address.to_owned(),
                first: false,
                error,
            }
        })?;
        let conversation = Conversation::new(CLIENT_ID);
        let address = address.to_owned();
        let mut connection = Connection {
            address,
            stream,
            conversation,
            ranges: Vec::new(),
        };
        connection.ask_versions()?;
        Ok(connection)
    }

    /// Where the broker is.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    fn ask_versions(&mut self) -> Result<(), ClientError> {
        // Old brokers answer an unknown version in version 0; it is simplest to ask again.
        for version in [3, 0] {
            let request = ApiVersionsRequest {
                client_software_name: Text::from("penstock"),
                client_software_version: Text::from(env!("CARGO_PKG_VERSION")),
                ..ApiVersionsRequest::default()
            };
            self.send_version(version, &request.into())?;
            match self.receive() {
                Ok(Response::ApiVersions(response)) if response.error_code == 0 => {
                    self.ranges = response.api_keys.to_vec();
                    return Ok(());
                }
                Ok(Response::ApiVersions(response)) if version == 0 => {
                    let subject = format!("the broker at {}", self.address);
                    return Err(ClientError::refused(subject, response.error_code, None));
                }
                Ok(_) => {}
                Err(error @ ClientError::Protocol { .. }) if version == 0 => return Err(error),
                Err(ClientError::Protocol { .. }) => {
                    let fresh = Conversation::new(CLIENT_ID);
                    self.conversation = fresh;
                }
                Err(error) => return Err(error),
            }
        }
        Err(self.protocol("it does not say which versions it speaks"))
    }

    /// The version to use of an API: the newest both sides know.
    fn version(&self, api_key: i16) -> Result<i16, ClientError> {
        let wanted = VERSIONS_MAX.iter().find(|(key, _)| *key == api_key);
        let (_, ours_max) = wanted.expect("every request the verbs make is in the table");
        let ours_min = versions::served(api_key).map_or(0, |range| range.min);
        let theirs = self.ranges.iter().find(|range| range.api_key == api_key);
        let version = theirs
            .map(|range| {
                (
                    range.max_version.min(*ours_max),
                    range.min_version.max(ours_min),
                )
            })
            .filter(|(version, least)| version >= least)
            .map(|(version, _)| version);
        version.ok_or_else(|| {
            self.protocol(&format!(
                "it has no usable version of {}",
                versions::name(api_key)
            ))
        })
    }

    /// Whether the broker serves an API at all.
    #[must_use]
    pub fn serves(&self, api_key: i16) -> bool {
        self.version(api_key).is_ok()
    }

    /// Sends a request without waiting for its answer.
    ///
    /// # Errors
    /// The connection is lost, or the broker does not know the request.
    pub fn send(&mut self, request: &Request) -> Result<(), ClientError> {
        let version = self.version(request.api_key())?;
        self.send_version(version, request)
    }

    fn send_version(&mut self, version: i16, request: &Request) -> Result<(), ClientError> {
        let frame = self.conversation.ask(version, request);
        let frame = frame.map_err(|error| ClientError::encode(&self.address, &error))?;
        let sent = self
            .stream
            .write_all(&frame)
            .and_then(|()| self.stream.flush());
        sent.map_err(|error| self.lost(error))
    }

    /// Waits for the answer to the oldest request that has none.
    ///
    /// # Errors
    /// The connection is lost, or the answer makes no sense. The connection is of no use after
    /// that.
    pub fn receive(&mut self) -> Result<Response, ClientError> {
        let mut prefix = [0; PREFIX_BYTES];
        self.stream
            .read_exact(&mut prefix)
            .map_err(|error| self.lost(error))?;
        let bounds = FrameBounds::response(limits::CLIENT_RESPONSE_BYTES_MAX);
        let length = bounds
            .check(prefix)
            .map_err(|error| self.protocol(&error.to_string()))?;
        let mut frame = vec![0; length];
        self.stream
            .read_exact(&mut frame)
            .map_err(|error| self.lost(error))?;
        let answer = self.conversation.answer(&Bytes::from(frame));
        answer.map_err(|error| ClientError::decode(&self.address, &error))
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// As `send` and `receive`.
    pub fn ask(&mut self, request: &Request) -> Result<Response, ClientError> {
        self.send(request)?;
        self.receive()
    }

    fn lost(&self, error: io::Error) -> ClientError {
        let error = match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other("it closed the connection"),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let seconds = limits::CLIENT_TIMEOUT_MS / 1000;
                io::Error::other(format!("no answer within {seconds} s"))
            }
            _ => error,
        };
        ClientError::Lost {
            address: self.address.clone(),
            error,
        }
    }

    fn protocol(&self, problem: &str) -> ClientError {
        ClientError::Protocol {
            address: self.address.clone(),
            problem: problem.to_owned(),
        }
    }

    /// The error for an answer of another kind than was asked for.
    #[must_use]
    pub fn unexpected(&self) -> ClientError {
        self.protocol("the answer is of another kind than the request")
    }
}

/// Kafka's error code as a result.
///
/// # Errors
/// A refusal, unless the code is 0.
pub fn check(subject: &str, code: i16, message: Option<&Text>) -> Result<(), ClientError> {
    if code == ErrorCode::None.code() {
        return Ok(());
    }
    Err(ClientError::refused(
        subject,
        code,
        message.map(ToString::to_string),
    ))
}
