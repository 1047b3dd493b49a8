//! A crowd of clients in one thread: one epoll, one connection and one prebuilt request each, at
//! most one in flight. Three system calls a message are all it costs, so that the client does not
//! measure itself.
//!
//! `closed_loop` counts and times what producers of any system do; this one gives every answer
//! back, so that its user decides what follows, and may stop while requests are on their way.

#[allow(dead_code, reason = "its other user waits in another way")]
#[path = "../closed_loop/poll.rs"]
mod poll;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::support::batch::{self, NOBODY, Record};
use crate::support::client::{frame, produce_body};
use poll::Poll;

/// Longest answer that is understood.
const ANSWER_BYTES_MAX: usize = 256;

/// The crowd.
pub struct Crowd {
    poll: Poll,
    members: Vec<Member>,
}

struct Member {
    stream: TcpStream,
    request: Vec<u8>,
    answer: [u8; ANSWER_BYTES_MAX],
    have: usize,
}

impl Crowd {
    /// Connects everybody to their endpoint; the request is a whole frame.
    pub fn connect(plan: impl IntoIterator<Item = (SocketAddr, Vec<u8>)>) -> Crowd {
        let poll = Poll::new();
        let mut members = Vec::new();
        for (endpoint, request) in plan {
            let stream = TcpStream::connect(endpoint).expect("the broker takes connections");
            stream.set_nodelay(true).expect("a fresh socket");
            stream.set_nonblocking(true).expect("a fresh socket");
            poll.watch(&stream, members.len() as u64);
            members.push(Member {
                stream,
                request,
                answer: [0; ANSWER_BYTES_MAX],
                have: 0,
            });
        }
        Crowd { poll, members }
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Sends a member's request; its last one must have been answered.
    pub fn send(&mut self, index: usize) {
        let member = &mut self.members[index];
        member.have = 0;
        let written = member.stream.write(&member.request);
        let written = written.expect("an idle socket takes a small request");
        assert_eq!(
            written,
            member.request.len(),
            "an idle socket takes a whole small request"
        );
    }

    /// Sends everybody's.
    pub fn send_all(&mut self) {
        for index in 0..self.members.len() {
            self.send(index);
        }
    }

    /// The members whose answer is there now; waits for at most `wait_ms`. It may be nobody.
    pub fn wait(&mut self, wait_ms: i32) -> Vec<usize> {
        let (mut ready, mut answered) = (Vec::new(), Vec::new());
        self.poll.wait_for(&mut ready, wait_ms);
        for index in ready {
            let index = index as usize;
            if self.members[index].receive() {
                answered.push(index);
            }
        }
        answered
    }

    /// A member's last answer, with its length in front.
    pub fn answer(&self, index: usize) -> &[u8] {
        let member = &self.members[index];
        &member.answer[..member.have]
    }
}

impl Member {
    /// Whether the answer is there as a whole.
    fn receive(&mut self) -> bool {
        loop {
            match self.stream.read(&mut self.answer[self.have..]) {
                Ok(0) => panic!("the broker closed a good connection, or its answer is too long"),
                Ok(count) => self.have += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) => panic!("the connection failed: {error}"),
            }
            if let Some(length) = self.answer[..self.have].first_chunk::<4>()
                && self.have == u32::from_be_bytes(*length) as usize + 4
            {
                return true;
            }
        }
    }
}

/// A whole request of one message of `bytes` for a partition.
pub fn produce_frame(topic: &str, partition: i32, correlation: i32, bytes: usize) -> Vec<u8> {
    let record = Record {
        timestamp_ms: 1_700_000_000_000,
        value: Some(vec![b'm'; bytes]),
        ..Record::default()
    };
    let batch = batch::build(NOBODY, &[record]);
    frame(
        0,
        7,
        correlation,
        &produce_body(topic, partition, -1, &batch),
    )
}

/// Whether the answer to such a request is an error.
pub fn was_refused(topic: &str, answer: &[u8]) -> bool {
    let error_at = 4 + 4 + 4 + 2 + topic.len() + 4 + 4;
    answer[error_at..error_at + 2] != [0, 0]
}
