//! Reserving an address, listening on it, and stopping.
//!
//! The address is taken before recovery, on any thread, so that a second broker is refused before
//! it has done anything; clients are let in when the core calls [`BoundSocket::listen`].

use super::conn::Conn;
use crate::env::error::{at, from_glommio};
use crate::env::process;
use crate::limits::{BIND_RETRY_MS_MAX, BIND_RETRY_PAUSE_MS};
use glommio::net::TcpListener;
use socket2::{Domain, Protocol, Socket, Type};
use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{FromRawFd, IntoRawFd, RawFd};
use std::rc::Rc;
use std::time::Duration;

/// An address that is ours, but does not let anyone in yet. Can be sent to its core.
#[derive(Debug)]
pub struct BoundSocket {
    socket: Socket,
    address: SocketAddr,
}

/// Takes `address` (`host:port`, `[::1]:9092`; port 0 takes a free one) for this process alone.
/// Names are resolved, and a taken address is tried for half a second, so never call it on an
/// executor.
///
/// # Errors
/// `AddrInUse` if anyone listens there, `InvalidInput` if it is no address.
pub fn bind(address: &str) -> io::Result<BoundSocket> {
    let fail = |error| at("listen on", address.to_owned(), error);
    let resolved = address.to_socket_addrs().map_err(fail)?.next();
    let none = || io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    let resolved = resolved.ok_or_else(|| fail(none()))?;
    // The kernel lets go of a dead process's rings after it has reported the process dead, and with
    // them of its listeners: up to 38 ms later, measured over 15 kills with 20 open connections. A
    // supervisor that starts the broker again at once must not find its address taken.
    let start_ns = process::monotonic_ns();
    loop {
        let outcome = bind_socket(resolved);
        let waited_ms = (process::monotonic_ns() - start_ns) / 1_000_000;
        match outcome {
            Err(error)
                if error.kind() == io::ErrorKind::AddrInUse && waited_ms < BIND_RETRY_MS_MAX =>
            {
                process::sleep_blocking(Duration::from_millis(BIND_RETRY_PAUSE_MS));
            }
            other => return other.map_err(fail),
        }
    }
}

fn bind_socket(address: SocketAddr) -> io::Result<BoundSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // Over connections of an earlier process in TIME_WAIT; another listener still excludes. Never
    // SO_REUSEPORT.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    let address = socket.local_addr()?.as_socket();
    let address = address.ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))?;
    Ok(BoundSocket { socket, address })
}

impl BoundSocket {
    /// The address, with the real port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets clients in, on the executor this is called on. At most `backlog` of them wait to be
    /// accepted (the kernel also bounds it by `net.core.somaxconn`).
    ///
    /// # Errors
    /// `AddrInUse` if another process that reserved the same address listened first.
    pub fn listen(self, backlog: u32) -> io::Result<Listener> {
        let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        let fail = |error| at("listen on", self.address.to_string(), error);
        self.socket.listen(backlog).map_err(fail)?;
        let fd = self.socket.into_raw_fd();
        // SAFETY: the descriptor was just given up by its only owner.
        let listener = unsafe { TcpListener::from_raw_fd(fd) };
        let shared = Shared {
            listener,
            fd,
            address: self.address,
            stopped: Cell::new(false),
        };
        Ok(Listener {
            shared: Rc::new(shared),
        })
    }
}

struct Shared {
    listener: TcpListener,
    fd: RawFd,
    address: SocketAddr,
    stopped: Cell<bool>,
}

/// A listening socket with one accept loop.
pub struct Listener {
    shared: Rc<Shared>,
}

/// Stops a [`Listener`] from another task of the same core.
#[derive(Clone)]
pub struct ListenerStop {
    shared: Rc<Shared>,
}

impl Listener {
    /// The address, with the real port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// A handle to stop it.
    #[must_use]
    pub fn stopper(&self) -> ListenerStop {
        ListenerStop {
            shared: Rc::clone(&self.shared),
        }
    }

    /// The next client, or `None` once stopped. **Never drop this future before it is ready** (no
    /// deadline, no race): the kernel's accepted socket would be lost and its client hang.
    ///
    /// # Errors
    /// When the process or host ran out of descriptors or memory: pause and go on. A client that
    /// left while it waited is no error.
    pub async fn accept(&mut self) -> io::Result<Option<Conn>> {
        loop {
            let outcome = self.shared.listener.shared_accept().await;
            if self.shared.stopped.get() {
                if let Ok(accepted) = outcome {
                    // It came in the same instant; binding it to a stream closes it properly.
                    drop(accepted.bind_to_executor());
                }
                return Ok(None);
            }
            match outcome.map_err(from_glommio) {
                // `Err` here means the client is gone already.
                Ok(accepted) => {
                    if let Ok(conn) = Conn::from_stream(accepted.bind_to_executor()) {
                        return Ok(Some(conn));
                    }
                }
                Err(error) if is_of_the_client(&error) => {}
                Err(error) => {
                    return Err(at("accept on", self.shared.address.to_string(), error));
                }
            }
        }
    }
}

/// Whether a failed accept tells about one client and not about the listener or the host.
fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EINTR
                | libc::EAGAIN
                | libc::ECONNABORTED
                | libc::EPROTO
                | libc::ENETDOWN
                | libc::ENOPROTOOPT
                | libc::EHOSTDOWN
                | libc::EHOSTUNREACH
                | libc::EOPNOTSUPP
                | libc::ENETUNREACH
                | libc::EPERM
        )
    )
}

impl ListenerStop {
    /// Refuses new clients from now on and ends the accept loop.
    pub fn stop(&self) {
        self.shared.stopped.set(true);
        // SAFETY: the descriptor is open while `shared` lives. Shutting a listener down makes a
        // suspended accept return; closing it would not.
        unsafe { libc::shutdown(self.shared.fd, libc::SHUT_RDWR) };
    }
}
