//! One connection of the load: made, lost and made again, with a pause that grows.
//!
//! A link is *up* once the broker said which versions it speaks. Whole small requests go through
//! [`Link::say`]; the large ones of producers are handed over in pieces from where they lie
//! ([`Link::hand_over`]). Neither ever waits: what finds no room is tried again when the socket
//! says so.
//!
//! Invariant: the bytes of a request are never mixed with those of another, since pieces are taken
//! only when nothing said before is left.

use crate::env::net::{Poll, PollSocket};
use crate::limits;
use crate::wire::client::Conversation;
use crate::wire::frame::{FrameBounds, FrameSplitter};
use crate::wire::messages::{ApiVersion, ApiVersionsRequest};
use crate::wire::{Request, Response, versions};
use core::net::SocketAddr;
use std::fmt;
use std::io::{self, IoSlice};

const CLIENT_ID: &str = "penstock-load";

/// The newest version of each API that the load is written for: newer ones name topics by id.
const VERSIONS_MAX: [(i16, i16); 3] = [
    (versions::PRODUCE, 11),
    (versions::FETCH, 12),
    (versions::INIT_PRODUCER_ID, 4),
];

/// Why a link went down.
#[derive(Debug)]
pub enum LinkError {
    /// The socket.
    Io(io::Error),
    /// The broker closed it.
    Closed,
    /// An answer makes no sense, or a request cannot be said.
    Protocol(String),
    /// An answer took too long.
    Late,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Io(error) => error.fmt(f),
            LinkError::Closed => f.write_str("the broker closed the connection"),
            LinkError::Protocol(problem) => f.write_str(problem),
            LinkError::Late => f.write_str("no answer in time"),
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Until that moment.
    Down(u64),
    /// Since that moment.
    Connecting(u64),
    /// The versions are asked for, since that moment.
    Greeting(u64),
    Up,
}

/// A connection to one broker.
pub struct Link {
    address: SocketAddr,
    token: usize,
    state: State,
    socket: Option<PollSocket>,
    conversation: Conversation,
    splitter: FrameSplitter,
    ranges: Vec<ApiVersion>,
    /// Said and not handed over yet.
    outgoing: Vec<u8>,
    backoff_ns: u64,
    was_up: bool,
}

impl Link {
    /// A link that has not connected yet.
    #[must_use]
    pub fn new(address: SocketAddr, token: usize) -> Link {
        Link {
            address,
            token,
            state: State::Down(0),
            socket: None,
            conversation: Conversation::new(CLIENT_ID),
            splitter: new_splitter(),
            ranges: Vec::new(),
            outgoing: Vec::new(),
            backoff_ns: limits::CLIENT_BACKOFF_MS * 1_000_000,
            was_up: false,
        }
    }

    /// Where the broker is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the next connection goes.
    pub fn set_address(&mut self, address: SocketAddr) {
        self.address = address;
    }

    /// Whether requests can be said.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Whether it was up at least once.
    #[must_use]
    pub fn was_up(&self) -> bool {
        self.was_up
    }

    /// When [`Link::tend`] has something to do without any event.
    #[must_use]
    pub fn due_ns(&self, timeout_ns: u64) -> Option<u64> {
        match self.state {
            State::Down(until) => Some(until),
            State::Connecting(since) | State::Greeting(since) => Some(since + timeout_ns),
            State::Up => None,
        }
    }

    /// Connects when it is time to, and gives up what takes too long.
    ///
    /// # Errors
    /// It cannot be made; the caller tells [`Link::fail`].
    pub fn tend(&mut self, poll: &Poll, now: u64, timeout_ns: u64) -> Result<(), LinkError> {
        match self.state {
            State::Down(until) if now >= until => {
                self.conversation = Conversation::new(CLIENT_ID);
                self.splitter = new_splitter();
                self.outgoing.clear();
                self.state = State::Connecting(now);
                let socket = PollSocket::connect(poll, self.address, self.token);
                self.socket = Some(socket.map_err(LinkError::Io)?);
                Ok(())
            }
            State::Connecting(since) | State::Greeting(since) if now >= since + timeout_ns => {
                Err(LinkError::Late)
            }
            _ => Ok(()),
        }
    }

    /// Takes the connection down; the next try is after a pause. Says whether it had been up.
    pub fn fail(&mut self, now: u64) -> bool {
        let was_up = self.is_up();
        self.socket = None;
        self.state = State::Down(now + self.backoff_ns);
        self.backoff_ns = (2 * self.backoff_ns).min(limits::LOAD_BACKOFF_MS_MAX * 1_000_000);
        was_up
    }

    /// The socket has room: goes on connecting, or hands over what was said.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn writable(&mut self, now: u64) -> Result<(), LinkError> {
        if let (State::Connecting(_), Some(socket)) = (self.state, &self.socket) {
            socket.connected().map_err(LinkError::Io)?;
            self.state = State::Greeting(now);
            self.ask(0, &ApiVersionsRequest::default().into())?;
        }
        self.flush()
    }

    /// Reads what is there, at most one `scratch` of it; answers are then taken one by one with
    /// [`Link::answer`]. Says whether there may be more.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn read(&mut self, scratch: &mut [u8]) -> Result<bool, LinkError> {
        let Some(socket) = &mut self.socket else {
            return Ok(false);
        };
        match socket.read(scratch).map_err(LinkError::Io)? {
            None => Ok(false),
            Some(0) => Err(LinkError::Closed),
            Some(count) => {
                self.splitter.feed(&scratch[..count]);
                Ok(count == scratch.len())
            }
        }
    }

    /// The next answer that was read. The one about versions is taken here: then the link is up.
    ///
    /// # Errors
    /// It makes no sense, or the broker does not speak our versions.
    pub fn answer(&mut self) -> Result<Option<Response>, LinkError> {
        let protocol = |error: &dyn fmt::Display| LinkError::Protocol(error.to_string());
        let frame = self.splitter.next_frame().map_err(|e| protocol(&e))?;
        let Some(frame) = frame else {
            return Ok(None);
        };
        let answer = self.conversation.answer(&frame).map_err(|e| protocol(&e))?;
        match (self.state, answer) {
            (State::Greeting(_), Response::ApiVersions(versions)) if versions.error_code == 0 => {
                self.ranges = versions.api_keys.to_vec();
                self.state = State::Up;
                self.was_up = true;
                self.backoff_ns = limits::CLIENT_BACKOFF_MS * 1_000_000;
                self.answer()
            }
            (State::Up, answer) => Ok(Some(answer)),
            _ => Err(LinkError::Protocol(
                "it does not say which versions it speaks".to_owned(),
            )),
        }
    }

    /// Asks; the answer comes in its turn.
    ///
    /// # Errors
    /// The connection is lost, or the broker does not know the request.
    pub fn say(&mut self, request: &Request) -> Result<(), LinkError> {
        let version = self.version(request.api_key())?;
        self.ask(version, request)?;
        self.flush()
    }

    fn ask(&mut self, version: i16, request: &Request) -> Result<(), LinkError> {
        let frame = self.conversation.ask(version, request);
        let frame = frame.map_err(|error| LinkError::Protocol(error.to_string()))?;
        self.outgoing.extend_from_slice(&frame);
        Ok(())
    }

    /// The version to use of an API: the newest that both sides know.
    ///
    /// # Errors
    /// There is none.
    pub fn version(&self, api_key: i16) -> Result<i16, LinkError> {
        let wanted = VERSIONS_MAX.iter().find(|(key, _)| *key == api_key);
        let (_, ours) = wanted.expect("every request of the load is in the table");
        let theirs = self.ranges.iter().find(|range| range.api_key == api_key);
        let version = theirs
            .filter(|range| range.min_version <= *ours)
            .map(|range| range.max_version.min(*ours));
        version.ok_or_else(|| {
            let name = versions::name(api_key);
            LinkError::Protocol(format!("it has no usable version of {name}"))
        })
    }

    /// The conversation, for requests that are handed over in pieces.
    pub fn conversation(&mut self) -> &mut Conversation {
        &mut self.conversation
    }

    fn flush(&mut self) -> Result<(), LinkError> {
        let Some(socket) = &mut self.socket else {
            return Ok(());
        };
        while !self.outgoing.is_empty() {
            let slices = [IoSlice::new(&self.outgoing)];
            match socket.write(&slices).map_err(LinkError::Io)? {
                Some(count) => drop(self.outgoing.drain(..count)),
                None => break,
            }
        }
        let blocked = !self.outgoing.is_empty();
        socket.want_room(blocked).map_err(LinkError::Io)
    }

    /// Hands over as much of the pieces as there is room for: `None` if there is none now.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn hand_over(&mut self, pieces: &[IoSlice<'_>]) -> Result<Option<usize>, LinkError> {
        if !self.outgoing.is_empty() {
            return Ok(None);
        }
        let Some(socket) = &mut self.socket else {
            return Ok(None);
        };
        let count = socket.write(pieces).map_err(LinkError::Io)?;
        socket.want_room(count.is_none()).map_err(LinkError::Io)?;
        Ok(count)
    }
}

fn new_splitter() -> FrameSplitter {
    FrameSplitter::new(FrameBounds::response(limits::CLIENT_RESPONSE_BYTES_MAX))
}
