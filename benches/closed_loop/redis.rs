//! Redis Streams: `XADD key * m VALUE`, answered by the entry's id. Every producer appends to the
//! same stream.

use std::net::{SocketAddr, TcpStream};

use super::{Next, Protocol};

/// A server and the size of a message.
pub struct Redis {
    pub address: SocketAddr,
    pub message_bytes: usize,
}

impl Protocol for Redis {
    fn connect(&self, _index: usize) -> TcpStream {
        TcpStream::connect(self.address).expect("the server takes connections")
    }

    fn request(&self, _index: usize) -> Vec<u8> {
        let value = "m".repeat(self.message_bytes);
        let mut request = b"*5\r\n".to_vec();
        for word in ["XADD", "rate", "*", "m", &value] {
            request.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
        }
        request
    }

    /// A bulk string: `$<bytes>\r\n<id>\r\n`.
    fn next(&self, received: &[u8]) -> Next {
        let Some(end) = received.windows(2).position(|pair| pair == b"\r\n") else {
            return Next::Partial;
        };
        let line = std::str::from_utf8(&received[..end]).expect("the server speaks text");
        let length = line.strip_prefix('$').and_then(|text| text.parse().ok());
        let length: usize = length.unwrap_or_else(|| panic!("an append was refused: {line}"));
        let whole = end + 2 + length + 2;
        if received.len() < whole {
            return Next::Partial;
        }
        Next::Acknowledged(whole)
    }
}
