//! A blocking TCP stream whose every wait has a bound.

use crate::env::error::at;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// A connection that gives up when the other side is silent for longer than its patience.
#[derive(Debug)]
pub struct BlockingStream {
    stream: TcpStream,
    address: String,
    patience: Duration,
}

/// The addresses of "host:port".
///
/// # Errors
/// `InvalidInput` and resolver errors, with the text that was given.
pub fn resolve(address: &str) -> io::Result<Vec<SocketAddr>> {
    let fail = |error| at("find", address.to_owned(), error);
    let found: Vec<SocketAddr> = address.to_socket_addrs().map_err(fail)?.collect();
    if found.is_empty() {
        return Err(fail(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it has no address",
        )));
    }
    Ok(found)
}

impl BlockingStream {
    /// Connects to the first of the name's addresses that answers. `patience` bounds the connecting
    /// as a whole and then every single read and write.
    ///
    /// # Errors
    /// What the last address said, with the text that was given.
    pub fn connect(address: &str, patience: Duration) -> io::Result<BlockingStream> {
        let start = Instant::now();
        let mut outcome = Err(io::Error::from(io::ErrorKind::TimedOut));
        for resolved in resolve(address)? {
            let left = patience.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            outcome = TcpStream::connect_timeout(&resolved, left);
            if outcome.is_ok() {
                break;
            }
        }
        let named = |error| at("connect to", address.to_owned(), error);
        let stream = outcome.map_err(named)?;
        stream.set_nodelay(true).map_err(named)?;
        let mut stream = BlockingStream {
            stream,
            address: address.to_owned(),
            patience,
        };
        stream.set_patience(patience)?;
        Ok(stream)
    }

    /// Changes how long a read or write may wait.
    ///
    /// # Errors
    /// If it is zero.
    pub fn set_patience(&mut self, patience: Duration) -> io::Result<()> {
        self.patience = patience;
        let outcome = self.stream.set_read_timeout(Some(patience));
        outcome
            .and_then(|()| self.stream.set_write_timeout(Some(patience)))
            .map_err(|error| at("set a time limit for", self.address.clone(), error))
    }

    /// The address as it was given.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The socket's own end and the address that answered.
    ///
    /// # Errors
    /// If the connection is gone.
    pub fn peer(&self) -> io::Result<SocketAddr> {
        self.stream
            .peer_addr()
            .map_err(|error| self.named("look at", error))
    }

    fn named(&self, operation: &'static str, error: io::Error) -> io::Error {
        // A time limit of a socket shows as EAGAIN.
        let error = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no answer within {} ms", self.patience.as_millis()),
            ),
            io::ErrorKind::Interrupted => return error,
            _ => error,
        };
        at(operation, self.address.clone(), error)
    }
}

impl Read for BlockingStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream
            .read(bytes)
            .map_err(|error| self.named("read from", error))
    }
}

impl Write for BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream
            .write(bytes)
            .map_err(|error| self.named("write to", error))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Goal: bytes go both ways, and silence ends with an error that names the address and the
    /// limit. Method: a peer that answers once and then keeps the connection open.
    #[test]
    fn silence_has_an_end() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("free port");
        let address = listener.local_addr().expect("bound").to_string();
        let thread = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("accepted");
            let mut bytes = [0; 4];
            peer.read_exact(&mut bytes).expect("received");
            peer.write_all(&bytes).expect("sent");
            std::thread::sleep(Duration::from_millis(600));
        });
        let patience = Duration::from_millis(150);
        let mut stream = BlockingStream::connect(&address, patience).expect("connected");
        stream.write_all(b"ping").expect("sent");
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes).expect("received");
        assert_eq!(&bytes, b"ping");
        let error = stream.read_exact(&mut bytes).expect_err("silence");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let text = error.to_string();
        assert!(text.contains(&address) && text.contains("150 ms"), "{text}");
        thread.join().expect("peer");
    }

    /// Goal: refusals and nonsense repeat what was given. Method: a port nobody has; no port.
    #[test]
    fn failures_are_named() {
        let free = TcpListener::bind("127.0.0.1:0")
            .expect("free")
            .local_addr()
            .expect("bound");
        let patience = Duration::from_secs(2);
        let error = BlockingStream::connect(&free.to_string(), patience).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(error.to_string().contains(&free.to_string()), "{error}");
        let error = BlockingStream::connect("nowhere", patience).expect_err("no port");
        assert!(error.to_string().contains("nowhere"), "{error}");
    }
}
