//! NATS JetStream's client protocol: a publish with a reply subject, and the stream's
//! acknowledgement on it. One stream on file, one subject a producer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::{Next, Protocol};

/// A server and the size of a message.
pub struct Nats {
    address: SocketAddr,
    message_bytes: usize,
}

const STREAM: &str = r#"{"name":"rate","subjects":["rate.>"],"storage":"file","num_replicas":1}"#;
const HELLO: &str = concat!(
    r#"CONNECT {"verbose":false,"pedantic":false,"lang":"bench","version":"1","protocol":1,"#,
    r#""headers":true,"no_responders":true}"#,
    "\r\n"
);

impl Nats {
    /// Makes the stream unless it is there.
    pub fn open(address: SocketAddr, message_bytes: usize) -> Nats {
        let nats = Nats {
            address,
            message_bytes,
        };
        let mut stream = nats.connect(usize::MAX);
        let length = STREAM.len();
        let subject = "$JS.API.STREAM.CREATE.rate";
        let inbox = inbox(usize::MAX);
        write!(stream, "PUB {subject} {inbox} {length}\r\n{STREAM}\r\n").expect("it reads");
        let created =
            |text: &str| text.contains("stream_create_response") && text.ends_with("\r\n");
        let answer = read_until(&mut stream, created);
        assert!(
            !answer.contains("\"error\"") || answer.contains("already in use"),
            "no stream: {answer}"
        );
        nats
    }
}

fn inbox(index: usize) -> String {
    format!("_INBOX.{index}")
}

/// Reads until `done` says so of everything read.
fn read_until(stream: &mut TcpStream, done: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    let mut chunk = [0u8; 4096];
    while !done(&text) {
        let count = stream.read(&mut chunk).expect("the server answers");
        assert!(count > 0, "the server closed the connection: {text}");
        text += std::str::from_utf8(&chunk[..count]).expect("the server speaks text");
    }
    text
}

impl Protocol for Nats {
    fn connect(&self, index: usize) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("the server takes connections");
        let inbox = inbox(index);
        write!(stream, "{HELLO}SUB {inbox} 1\r\nPING\r\n").expect("it reads");
        // Whatever the server says behind its pong, it says in whole lines.
        let heard = |text: &str| text.contains("PONG\r\n") && text.ends_with("\r\n");
        read_until(&mut stream, heard);
        stream
    }

    fn request(&self, index: usize) -> Vec<u8> {
        let (length, inbox) = (self.message_bytes, inbox(index));
        let mut request = format!("PUB rate.{index} {inbox} {length}\r\n").into_bytes();
        request.resize(request.len() + length, b'm');
        request.extend_from_slice(b"\r\n");
        request
    }

    /// `MSG <subject> <sid> <bytes>` with `{"stream":…,"seq":…}`, or a ping.
    fn next(&self, received: &[u8]) -> Next {
        let Some(end) = received.windows(2).position(|pair| pair == b"\r\n") else {
            return Next::Partial;
        };
        let line = std::str::from_utf8(&received[..end]).expect("the server speaks text");
        let head = end + 2;
        match line.split(' ').next() {
            Some("PING") => Next::Asked(head, b"PONG\r\n"),
            Some("PONG" | "+OK" | "INFO") => Next::Ignored(head),
            Some("MSG") => {
                let length = line.rsplit(' ').next().and_then(|text| text.parse().ok());
                let length: usize = length.expect("a message has a length");
                let Some(body) = received.get(head..head + length + 2) else {
                    return Next::Partial;
                };
                let body = std::str::from_utf8(body).expect("an acknowledgement is JSON");
                assert!(
                    body.contains("\"seq\":") && !body.contains("\"error\""),
                    "a publish was refused: {body}"
                );
                Next::Acknowledged(head + length + 2)
            }
            _ => panic!("the server said {line}"),
        }
    }
}
