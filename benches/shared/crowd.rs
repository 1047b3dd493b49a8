//! A crowd of clients in one thread: one epoll, one connection and one prebuilt request each, at
//! most one in flight. Three system calls a message are all it costs, so that the client does not
//! measure itself.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const EVENTS_MAX: usize = 1024;
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
        let mut answered = Vec::new();
        for index in self.poll.wait(wait_ms) {
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

/// An epoll descriptor, edge-triggered.
struct Poll {
    descriptor: OwnedFd,
}

impl Poll {
    fn new() -> Poll {
        // SAFETY: a plain system call; the descriptor it returns is owned from here on.
        let descriptor = unsafe {
            let raw = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            assert!(raw >= 0, "no epoll");
            OwnedFd::from_raw_fd(raw)
        };
        Poll { descriptor }
    }

    fn watch(&self, stream: &TcpStream, index: u64) {
        let events = (libc::EPOLLIN | libc::EPOLLET) as u32;
        let mut event = libc::epoll_event { events, u64: index };
        // SAFETY: both descriptors are open, and the event lives across the call.
        let added = unsafe {
            libc::epoll_ctl(
                self.descriptor.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                stream.as_raw_fd(),
                &raw mut event,
            )
        };
        assert_eq!(added, 0, "the socket can be watched");
    }

    fn wait(&self, wait_ms: i32) -> Vec<u64> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        // SAFETY: the array lives across the call and is as long as it is said to be.
        let count = unsafe {
            let descriptor = self.descriptor.as_raw_fd();
            libc::epoll_wait(descriptor, events.as_mut_ptr(), EVENTS_MAX as i32, wait_ms)
        };
        let events = &events[..usize::try_from(count).unwrap_or(0)];
        events.iter().map(|event| event.u64).collect()
    }
}
