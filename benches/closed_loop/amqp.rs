//! AMQP 0-9-1 as RabbitMQ speaks it: persistent messages to one durable quorum queue through the
//! default exchange, with publisher confirms. One channel a connection.
//!
//! ```text
//! frame: type u8 | channel u16 | bytes u32 | payload | 0xCE
//! ```

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::{Next, Protocol};

/// A server and the size of a message.
pub struct Amqp {
    address: SocketAddr,
    message_bytes: usize,
}

const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;
const END: u8 = 0xce;
const QUEUE: &str = "rate";

/// Class and method ids.
type Method = (u16, u16);
const START: Method = (10, 10);
const START_OK: Method = (10, 11);
const TUNE: Method = (10, 30);
const TUNE_OK: Method = (10, 31);
const OPEN: Method = (10, 40);
const OPEN_OK: Method = (10, 41);
const CHANNEL_OPEN: Method = (20, 10);
const CHANNEL_OPEN_OK: Method = (20, 11);
const DECLARE: Method = (50, 10);
const DECLARE_OK: Method = (50, 11);
const PUBLISH: Method = (60, 40);
const ACK: Method = (60, 80);
const CONFIRM: Method = (85, 10);
const CONFIRM_OK: Method = (85, 11);
/// Content class of a message, and the property flag of its delivery mode.
const BASIC: u16 = 60;
const DELIVERY_MODE: u16 = 1 << 12;
const PERSISTENT: u8 = 2;

fn short(text: &str) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(text.len()).expect("a short string")];
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

fn long(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("a few bytes");
    [&length.to_be_bytes(), bytes].concat()
}

fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    frame.extend_from_slice(&channel.to_be_bytes());
    frame.extend_from_slice(&long(payload));
    frame.push(END);
    frame
}

fn method(channel: u16, (class, id): Method, arguments: &[&[u8]]) -> Vec<u8> {
    let mut payload = [class.to_be_bytes(), id.to_be_bytes()].concat();
    payload.extend(arguments.concat());
    frame(METHOD, channel, &payload)
}

/// One whole frame at the front: its type, its payload, its length.
fn whole(received: &[u8]) -> Option<(u8, &[u8], usize)> {
    let bytes = received.get(3..7)?;
    let bytes = u32::from_be_bytes(bytes.try_into().expect("four bytes")) as usize;
    let frame = received.get(..7 + bytes + 1)?;
    assert_eq!(frame[frame.len() - 1], END, "a frame without its end");
    Some((frame[0], &frame[7..7 + bytes], frame.len()))
}

fn method_of(payload: &[u8]) -> Method {
    let word = |at: usize| u16::from_be_bytes([payload[at], payload[at + 1]]);
    (word(0), word(2))
}

/// A blocking conversation, one frame at a time.
struct Conversation {
    stream: TcpStream,
}

impl Conversation {
    fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// Waits for the method and returns its arguments.
    fn hear(&mut self, wanted: Method) -> Vec<u8> {
        loop {
            let mut head = [0u8; 7];
            self.stream.read_exact(&mut head).expect("it answers");
            let bytes = u32::from_be_bytes(head[3..].try_into().expect("four bytes"));
            let mut rest = vec![0u8; bytes as usize + 1];
            self.stream.read_exact(&mut rest).expect("a whole frame");
            if head[0] == HEARTBEAT {
                continue;
            }
            let got = method_of(&rest);
            let text = String::from_utf8_lossy(&rest[4..]);
            assert_eq!(got, wanted, "another method: {text}");
            return rest[4..rest.len() - 1].to_vec();
        }
    }

    /// From the greeting to a channel that confirms.
    fn open(address: SocketAddr) -> Conversation {
        let stream = TcpStream::connect(address).expect("the server takes connections");
        let mut talk = Conversation { stream };
        talk.say(b"AMQP\0\0\x09\x01");
        talk.hear(START);
        talk.say(&method(
            0,
            START_OK,
            &[
                &long(b""),
                &short("PLAIN"),
                &long(b"\0guest\0guest"),
                &short("en_US"),
            ],
        ));
        // Channel and frame limits as the server has them, no heartbeat.
        let tune = talk.hear(TUNE);
        talk.say(&method(0, TUNE_OK, &[&tune[..6], &[0, 0]]));
        talk.say(&method(0, OPEN, &[&short("/"), &short(""), &[0]]));
        talk.hear(OPEN_OK);
        talk.say(&method(1, CHANNEL_OPEN, &[&short("")]));
        talk.hear(CHANNEL_OPEN_OK);
        talk.say(&method(1, CONFIRM, &[&[0]]));
        talk.hear(CONFIRM_OK);
        talk
    }
}

impl Amqp {
    /// Declares the queue.
    pub fn open(address: SocketAddr, message_bytes: usize) -> Amqp {
        let mut talk = Conversation::open(address);
        let kind = [&short("x-queue-type")[..], b"S", &long(b"quorum")].concat();
        let durable = [0b10];
        talk.say(&method(
            1,
            DECLARE,
            &[&[0, 0], &short(QUEUE), &durable, &long(&kind)],
        ));
        talk.hear(DECLARE_OK);
        Amqp {
            address,
            message_bytes,
        }
    }
}

impl Protocol for Amqp {
    fn connect(&self, _index: usize) -> TcpStream {
        Conversation::open(self.address).stream
    }

    fn request(&self, _index: usize) -> Vec<u8> {
        let mut header = [BASIC.to_be_bytes(), [0, 0]].concat();
        header.extend_from_slice(&(self.message_bytes as u64).to_be_bytes());
        header.extend_from_slice(&DELIVERY_MODE.to_be_bytes());
        header.push(PERSISTENT);
        let publish = [&[0, 0][..], &short(""), &short(QUEUE), &[0]];
        [
            method(1, PUBLISH, &publish),
            frame(HEADER, 1, &header),
            frame(BODY, 1, &vec![b'm'; self.message_bytes]),
        ]
        .concat()
    }

    fn next(&self, received: &[u8]) -> Next {
        let Some((kind, payload, length)) = whole(received) else {
            return Next::Partial;
        };
        if kind == HEARTBEAT {
            return Next::Ignored(length);
        }
        let got = method_of(payload);
        assert_eq!(got, ACK, "a publish was refused");
        Next::Acknowledged(length)
    }
}
