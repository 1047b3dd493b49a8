//! The client's half of a conversation: numbers requests, and matches answers with them.
//!
//! Sans-io: who owns the socket writes what [`Conversation::ask`] returns and hands each frame that
//! comes back to [`Conversation::answer`]. Answers come in the order of the requests.

use std::collections::VecDeque;

use bytes::Bytes;

use super::header::RequestHeader;
use super::produce::ProduceCall;
use super::request::{self, Request};
use super::response::{self, Response};
use super::schema::{DecodeError, EncodeError, Text};
use super::versions;

/// Requests that are on their way.
#[derive(Debug)]
pub struct Conversation {
    client_id: Option<Text>,
    correlation_id_next: i32,
    pending: VecDeque<Pending>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    correlation_id: i32,
    api_key: i16,
    version: i16,
}

impl Conversation {
    /// A conversation in which nothing has been asked.
    #[must_use]
    pub fn new(client_id: &str) -> Self {
        Self {
            client_id: Some(Text::from(client_id)),
            correlation_id_next: 1,
            pending: VecDeque::new(),
        }
    }

    /// The frame to send. A Produce with acks 0 expects no answer; every other request one.
    ///
    /// # Errors
    /// The version is not one this codec knows, or something is too long.
    pub fn ask(&mut self, version: i16, request: &Request) -> Result<Bytes, EncodeError> {
        let header = self.header(request.api_key(), version);
        let frame = request::encode(&header, request)?;
        let silent = matches!(request, Request::Produce(produce) if produce.acks == 0);
        self.asked(&header, silent);
        Ok(frame)
    }

    /// The frame of a Produce without its batches, which are sent from where they lie: each before
    /// the position that `cuts` (emptied first) takes for it.
    ///
    /// # Errors
    /// The version names topics by id, or something is too long.
    pub fn ask_produce(
        &mut self,
        version: i16,
        call: &ProduceCall<'_>,
        cuts: &mut Vec<usize>,
    ) -> Result<Bytes, EncodeError> {
        let header = self.header(versions::PRODUCE, version);
        let frame = call.encode(&header, cuts)?;
        self.asked(&header, call.acks == 0);
        Ok(frame)
    }

    fn header(&self, api_key: i16, version: i16) -> RequestHeader {
        RequestHeader {
            api_key,
            api_version: version,
            correlation_id: self.correlation_id_next,
            client_id: self.client_id.clone(),
        }
    }

    /// Notes that a request is on its way; a silent one has no answer.
    fn asked(&mut self, header: &RequestHeader, silent: bool) {
        self.correlation_id_next = self.correlation_id_next.wrapping_add(1).max(1);
        if !silent {
            self.pending.push_back(Pending {
                correlation_id: header.correlation_id,
                api_key: header.api_key,
                version: header.api_version,
            });
        }
    }

    /// Requests without an answer so far.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The answer in a frame (without its length), to the oldest request that has none.
    ///
    /// # Errors
    /// The frame is malformed, answers another request, or nothing was asked. The connection is of
    /// no use after that.
    pub fn answer(&mut self, frame: &Bytes) -> Result<Response, DecodeError> {
        let Some(pending) = self.pending.pop_front() else {
            return Err(DecodeError::TrailingBytes { left: frame.len() });
        };
        let (received, response) = response::decode(pending.api_key, pending.version, frame)?;
        if received != pending.correlation_id {
            return Err(DecodeError::CorrelationMismatch {
                sent: pending.correlation_id,
                received,
            });
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::messages::{MetadataRequest, MetadataResponse};
    use crate::wire::produce::ProduceRequest;
    use crate::wire::{RequestHeader, Response, response};

    fn answer_to(frame: &Bytes, correlation_id: i32) -> Bytes {
        let (header, _) = RequestHeader::decode(&frame.slice(4..)).expect("our own header");
        let response = Response::Metadata(MetadataResponse::default());
        let version = header.api_version;
        let frame = response::encode(versions::METADATA, version, correlation_id, &response);
        frame.expect("a small answer").slice(4..)
    }

    /// Goal: answers belong to requests. Method: two requests, answered in order; then an answer
    /// with another's number, and one to nothing.
    #[test]
    fn answers_belong_to_requests() {
        let mut client = Conversation::new("test");
        let question = Request::Metadata(MetadataRequest::default());
        let first = client.ask(12, &question).expect("a small request");
        let second = client.ask(4, &question).expect("a small request");
        assert_eq!(client.pending(), 2);
        assert!(client.answer(&answer_to(&first, 1)).is_ok());
        let mixed = DecodeError::CorrelationMismatch {
            sent: 2,
            received: 1,
        };
        assert_eq!(client.answer(&answer_to(&second, 1)), Err(mixed));
        assert!(
            client.answer(&answer_to(&second, 2)).is_err(),
            "nothing was asked"
        );
    }

    /// Goal: a Produce without acknowledgement waits for nothing.
    #[test]
    fn acks_0_expects_no_answer() {
        let mut client = Conversation::new("test");
        let produce = Request::Produce(ProduceRequest::default());
        client.ask(7, &produce).expect("a small request");
        assert_eq!(client.pending(), 0);
        let refused = client.ask(2, &produce);
        let (api_key, version) = (versions::PRODUCE, 2);
        assert_eq!(
            refused,
            Err(EncodeError::UnsupportedVersion { api_key, version })
        );
    }
}
