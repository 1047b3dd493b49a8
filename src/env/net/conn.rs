//! One TCP connection: two halves for two tasks, and a control to end it from a third.
//!
//! The halves share glommio's stream through a `RefCell` that is borrowed for one poll at a time,
//! never across an await.

use crate::env::error::{at, from_glommio};
use bytes::BytesMut;
use futures_lite::{AsyncRead, AsyncWrite};
use glommio::net::TcpStream;
use glommio::timer::Timer;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Parts of one answer that go to the kernel in one call.
const PARTS_PER_SEND_MAX: usize = 64;

pub(super) struct Shared {
    stream: RefCell<TcpStream>,
    fd: RawFd,
    peer: SocketAddr,
    local: SocketAddr,
}

/// A connection, both halves together. Closed (with a FIN at once) when the last half and control
/// are dropped.
pub struct Conn {
    reader: ReadHalf,
    writer: WriteHalf,
}

/// The reading half; one task.
pub struct ReadHalf {
    shared: Rc<Shared>,
}

/// The writing half; one task.
pub struct WriteHalf {
    shared: Rc<Shared>,
}

/// Ends a connection from anywhere on its core. Keeps the descriptor open as long as it lives.
#[derive(Clone)]
pub struct ConnControl {
    shared: Rc<Shared>,
}

impl Shared {
    pub(super) fn poll_read(
        &self,
        context: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut stream = self.stream.borrow_mut();
        Pin::new(&mut *stream)
            .poll_read(context, bytes)
            .map_err(|error| self.error("read", error))
    }

    pub(super) fn poll_write(
        &self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut stream = self.stream.borrow_mut();
        let outcome = Pin::new(&mut *stream).poll_write(context, bytes);
        outcome.map_err(|error| self.error("write to", error))
    }

    pub(super) fn shutdown(&self, how: libc::c_int) {
        // SAFETY: the descriptor is open while the stream lives. The only errors tell that the
        // other side was faster.
        unsafe { libc::shutdown(self.fd, how) };
    }

    fn error(&self, operation: &'static str, error: io::Error) -> io::Error {
        at(operation, self.peer.to_string(), error)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The close itself comes on a later turn of the reactor, which a busy core may reach late.
        self.shutdown(libc::SHUT_RDWR);
    }
}

impl Conn {
    pub(super) fn from_stream(stream: TcpStream) -> io::Result<Conn> {
        stream.set_nodelay(true).map_err(from_glommio)?;
        let peer = stream.peer_addr().map_err(from_glommio)?;
        let local = stream.local_addr().map_err(from_glommio)?;
        let fd = stream.as_raw_fd();
        let shared = Rc::new(Shared {
            stream: RefCell::new(stream),
            fd,
            peer,
            local,
        });
        let reader = ReadHalf {
            shared: Rc::clone(&shared),
        };
        Ok(Conn {
            reader,
            writer: WriteHalf { shared },
        })
    }

    /// Connects within `timeout`.
    ///
    /// # Errors
    /// `TimedOut`, `ConnectionRefused` and the like, with the address.
    pub async fn connect(address: SocketAddr, timeout: Duration) -> io::Result<Conn> {
        let fail = |error| at("connect to", address.to_string(), error);
        let connecting = TcpStream::connect_timeout(address, timeout);
        let stream = connecting
            .await
            .map_err(|error| fail(from_glommio(error)))?;
        Conn::from_stream(stream).map_err(fail)
    }

    /// Gives the halves to two tasks.
    #[must_use]
    pub fn split(self) -> (ReadHalf, WriteHalf) {
        (self.reader, self.writer)
    }

    /// The reading half, in place.
    pub fn reader(&mut self) -> &mut ReadHalf {
        &mut self.reader
    }

    /// The writing half, in place.
    pub fn writer(&mut self) -> &mut WriteHalf {
        &mut self.writer
    }

    /// The other side's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.reader.shared.peer
    }

    /// Our address, as the other side dialled it.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.reader.shared.local
    }

    /// A handle to end it from another task.
    #[must_use]
    pub fn control(&self) -> ConnControl {
        ConnControl {
            shared: Rc::clone(&self.reader.shared),
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.reader.shared
    }
}

impl ReadHalf {
    /// Reads what is there, at least one byte: 0 means that the other side has ended its half, or
    /// that the connection was shut down here. Dropping the future loses nothing, so it can be
    /// given a [`super::super::Clock::deadline`].
    ///
    /// # Errors
    /// Of the connection, with the peer's address.
    pub async fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| self.shared.poll_read(context, bytes)).await
    }

    /// Appends to `buffer` what is there, at least one and at most `bytes_max` bytes; else as
    /// [`ReadHalf::read`].
    ///
    /// # Errors
    /// As [`ReadHalf::read`].
    pub async fn read_into(
        &mut self,
        buffer: &mut BytesMut,
        bytes_max: usize,
    ) -> io::Result<usize> {
        buffer.reserve(bytes_max);
        poll_fn(|context| {
            let spare = &mut buffer.spare_capacity_mut()[..bytes_max];
            // SAFETY: glommio hands this memory to `recv` and reads none of it; the length grows
            // only over bytes that the kernel has written.
            let count = unsafe {
                let bytes = std::slice::from_raw_parts_mut(spare.as_mut_ptr().cast(), bytes_max);
                let count = ready!(self.shared.poll_read(context, bytes))?;
                assert!(count <= bytes_max, "the kernel read more than it was asked");
                buffer.set_len(buffer.len() + count);
                count
            };
            Poll::Ready(Ok(count))
        })
        .await
    }

    /// A handle to end the connection from another task.
    #[must_use]
    pub fn control(&self) -> ConnControl {
        ConnControl {
            shared: Rc::clone(&self.shared),
        }
    }
}

impl WriteHalf {
    /// Writes all `parts` in order, as one stream of bytes. `stall_max` bounds the time in which
    /// the other side takes nothing at all; a slow but living reader may take longer in sum.
    ///
    /// After an error, or if the future is dropped, part of the bytes may be written: a stream that
    /// broke off in the middle of a frame is of no use, so on an error the connection is shut down
    /// here too.
    ///
    /// # Errors
    /// `TimedOut` for a reader that stands still, `BrokenPipe` and the like for one that is gone.
    pub async fn write_all(&mut self, parts: &[&[u8]], stall_max: Duration) -> io::Result<()> {
        let outcome = self.write_parts(parts, stall_max).await;
        if outcome.is_err() {
            self.shared.shutdown(libc::SHUT_RDWR);
        }
        outcome
    }

    async fn write_parts(&mut self, parts: &[&[u8]], stall_max: Duration) -> io::Result<()> {
        let mut rest = Rest {
            parts,
            part: 0,
            offset: 0,
        };
        rest.skip_empty();
        while !rest.is_done() {
            let count = match send_now(self.shared.fd, &rest) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.write_when_writable(rest.first(), stall_max).await?
                }
                Err(error) => return Err(self.shared.error("write to", error)),
            };
            rest.advance(count);
        }
        Ok(())
    }

    /// glommio has no bare wait for writability, so the wait is a write of the first part.
    async fn write_when_writable(
        &mut self,
        bytes: &[u8],
        stall_max: Duration,
    ) -> io::Result<usize> {
        let writing = poll_fn(|context| self.shared.poll_write(context, bytes));
        let stalling = async {
            Timer::new(stall_max).await;
            let text = format!("the reader took nothing for {} ms", stall_max.as_millis());
            Err(self
                .shared
                .error("write to", io::Error::new(io::ErrorKind::TimedOut, text)))
        };
        futures_lite::future::or(writing, stalling).await
    }

    /// Tells the other side that nothing more will come; reading goes on.
    pub fn finish(&mut self) {
        self.shared.shutdown(libc::SHUT_WR);
    }

    /// A handle to end the connection from another task.
    #[must_use]
    pub fn control(&self) -> ConnControl {
        ConnControl {
            shared: Rc::clone(&self.shared),
        }
    }
}

impl ConnControl {
    /// Ends both directions at once: a suspended read returns 0, a suspended write fails, and the
    /// tasks end by themselves.
    pub fn shutdown(&self) {
        self.shared.shutdown(libc::SHUT_RDWR);
    }

    /// Ends the reading only: what came before is still read, then a read returns 0; writing goes
    /// on.
    pub fn stop_reading(&self) {
        self.shared.shutdown(libc::SHUT_RD);
    }

    /// The other side's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.shared.peer
    }
}

/// What of a write is left.
struct Rest<'a> {
    parts: &'a [&'a [u8]],
    part: usize,
    offset: usize,
}

impl<'a> Rest<'a> {
    fn is_done(&self) -> bool {
        self.part == self.parts.len()
    }

    fn first(&self) -> &'a [u8] {
        &self.parts[self.part][self.offset..]
    }

    fn skip_empty(&mut self) {
        while self.part < self.parts.len() && self.offset == self.parts[self.part].len() {
            self.part += 1;
            self.offset = 0;
        }
    }

    fn advance(&mut self, count: usize) {
        let mut left = count;
        while left > 0 {
            assert!(!self.is_done(), "the kernel wrote more than it was given");
            let step = left.min(self.first().len());
            self.offset += step;
            left -= step;
            self.skip_empty();
        }
    }
}

/// Hands the kernel as much as it takes without waiting. Never raises SIGPIPE.
fn send_now(fd: RawFd, rest: &Rest<'_>) -> io::Result<usize> {
    let mut vectors = [libc::iovec {
        iov_base: std::ptr::null_mut(),
        iov_len: 0,
    }; PARTS_PER_SEND_MAX];
    let following = rest.parts[rest.part + 1..].iter().copied();
    let slices = std::iter::once(rest.first()).chain(following);
    let mut used = 0;
    for (vector, slice) in vectors.iter_mut().zip(slices) {
        *vector = libc::iovec {
            iov_base: slice.as_ptr().cast_mut().cast(),
            iov_len: slice.len(),
        };
        used += 1;
    }
    // SAFETY: the vectors point at live slices, which `sendmsg` only reads; the other fields are
    // empty.
    let count = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = vectors.as_mut_ptr();
        message.msg_iovlen = used;
        libc::sendmsg(
            fd,
            &raw const message,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}
