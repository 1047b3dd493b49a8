//! Many non-blocking sockets on one thread, for the load generator: readiness from the kernel and
//! nothing else. No io_uring, so it works where that is forbidden. Never on an executor.
//!
//! Invariant: a [`PollSocket`] is known to its [`Poll`] from the moment it exists until it is
//! dropped, so a token never stands for a socket that is gone.

use crate::env::error::at;
use polling::{Event, Events, PollMode, Poller};
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

/// The sockets of one thread.
pub struct Poll {
    poller: Arc<Poller>,
    events: Events,
}

/// A socket that can go on.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// The token it was connected with.
    pub token: usize,
    /// There are bytes, an end or an error to read.
    pub readable: bool,
    /// There is room for bytes, or the connection stands.
    pub writable: bool,
}

/// Wakes a [`Poll`] that waits, from any thread.
#[derive(Clone)]
pub struct PollWaker {
    poller: Arc<Poller>,
}

impl PollWaker {
    /// The wait ends at once, or the next one does.
    pub fn wake(&self) {
        // Fails only where the process has no descriptors left, and then the wait ends by time.
        let _ = self.poller.notify();
    }
}

impl Poll {
    /// No sockets yet.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn new() -> io::Result<Poll> {
        let poller = Poller::new().map_err(|error| at("start", "polling".to_owned(), error))?;
        Ok(Poll {
            poller: Arc::new(poller),
            events: Events::new(),
        })
    }

    /// What ends a wait early.
    #[must_use]
    pub fn waker(&self) -> PollWaker {
        PollWaker {
            poller: self.poller.clone(),
        }
    }

    /// Waits until a socket can go on or `most` is over (`None`: for ever), and puts what can go
    /// on into `ready` (emptied first). The time limit has the resolution of the kernel's timers.
    ///
    /// # Errors
    /// The kernel refuses, which it does for no socket of ours.
    pub fn wait(&mut self, ready: &mut Vec<Ready>, most: Option<Duration>) -> io::Result<()> {
        ready.clear();
        self.events.clear();
        match self.poller.wait(&mut self.events, most) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(at("wait for", "sockets".to_owned(), error)),
        }
        ready.extend(self.events.iter().map(|event| Ready {
            token: event.key,
            readable: event.readable,
            writable: event.writable,
        }));
        Ok(())
    }
}

/// A TCP connection whose calls never wait.
pub struct PollSocket {
    socket: Socket,
    poller: Arc<Poller>,
    address: SocketAddr,
    token: usize,
    wants_room: bool,
}

impl PollSocket {
    /// Starts to connect. The socket is reported writable once the connection stands or failed;
    /// [`PollSocket::connected`] tells which.
    ///
    /// # Errors
    /// No descriptors, or no way to that address.
    pub fn connect(poll: &Poll, address: SocketAddr, token: usize) -> io::Result<PollSocket> {
        let named = |error| at("connect to", address.to_string(), error);
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None);
        let socket = socket.map_err(named)?;
        socket.set_nonblocking(true).map_err(named)?;
        socket.set_nodelay(true).map_err(named)?;
        match socket.connect(&address.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(named(error)),
        }
        let interest = Event::all(token);
        // SAFETY: the descriptor is taken from the poller again before it is closed (`drop`).
        let added = unsafe {
            let fd = socket.as_raw_fd();
            poll.poller.add_with_mode(fd, interest, PollMode::Level)
        };
        added.map_err(named)?;
        Ok(PollSocket {
            socket,
            poller: poll.poller.clone(),
            address,
            token,
            wants_room: true,
        })
    }

    /// Whether the connection stands, once the socket was reported writable.
    ///
    /// # Errors
    /// Why it does not.
    pub fn connected(&self) -> io::Result<()> {
        let outcome = self.socket.take_error();
        let failed = outcome.and_then(|error| error.map_or(Ok(()), Err));
        failed.map_err(|error| at("connect to", self.address.to_string(), error))
    }

    /// Whether to be told when there is room for bytes; bytes to read are always told.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn want_room(&mut self, wanted: bool) -> io::Result<()> {
        if wanted == self.wants_room {
            return Ok(());
        }
        let mut interest = Event::readable(self.token);
        interest.writable = wanted;
        let changed = self
            .poller
            .modify_with_mode(&self.socket, interest, PollMode::Level);
        changed.map_err(|error| at("watch", self.address.to_string(), error))?;
        self.wants_room = wanted;
        Ok(())
    }

    /// Reads what is there: `None` if nothing is, 0 at the other side's end.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn read(&mut self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        let outcome = (&self.socket).read(bytes);
        self.conclude("read from", outcome)
    }

    /// Hands over as much as there is room for: `None` if there is none.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        let outcome = (&self.socket).write_vectored(slices);
        self.conclude("write to", outcome)
    }

    fn conclude(
        &self,
        operation: &'static str,
        outcome: io::Result<usize>,
    ) -> io::Result<Option<usize>> {
        match outcome {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(at(operation, self.address.to_string(), error)),
        }
    }
}

impl Drop for PollSocket {
    fn drop(&mut self) {
        // It was added when it was made; a failure leaves nothing, as closing forgets it too.
        let _ = self.poller.delete(&self.socket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Goal: bytes go both ways without a call that waits, and a wake ends a wait. Method: an
    /// echo in blocking code; a wait without end that was woken before.
    #[test]
    fn bytes_go_both_ways() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let echo = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("accepted");
            let mut bytes = [0; 8];
            peer.read_exact(&mut bytes).expect("received");
            peer.write_all(&bytes).expect("sent");
        });
        let mut poll = Poll::new().expect("a descriptor");
        let mut ready = Vec::new();
        poll.waker().wake();
        poll.wait(&mut ready, None).expect("woken");
        assert!(ready.is_empty());
        let mut socket = PollSocket::connect(&poll, address, 7).expect("on its way");
        while !ready.iter().any(|one| one.writable) {
            poll.wait(&mut ready, None).expect("waited");
        }
        socket.connected().expect("stands");
        let pieces = [IoSlice::new(b"drop"), IoSlice::new(b"wise")];
        assert_eq!(socket.write(&pieces).expect("sent"), Some(8));
        socket.want_room(false).expect("changed");
        let mut bytes = [0; 16];
        let mut count = 0;
        while count < 8 {
            poll.wait(&mut ready, None).expect("waited");
            assert!(ready.iter().all(|one| one.token == 7));
            count += socket
                .read(&mut bytes[count..])
                .expect("received")
                .unwrap_or(0);
        }
        assert_eq!(&bytes[..8], b"dropwise");
        echo.join().expect("the peer");
    }

    /// Goal: a refusal is told when asked. Method: a port nobody has.
    #[test]
    fn a_refusal_is_told() {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = free.local_addr().expect("bound");
        drop(free);
        let mut poll = Poll::new().expect("a descriptor");
        let mut ready = Vec::new();
        let socket = PollSocket::connect(&poll, address, 0);
        let refused = match socket {
            Ok(socket) => {
                poll.wait(&mut ready, None).expect("waited");
                socket.connected().expect_err("refused")
            }
            Err(error) => error,
        };
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert!(refused.to_string().contains(&address.to_string()));
    }
}
