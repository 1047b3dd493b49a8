//! Producers that each wait for one acknowledgement before they send the next request: one thread,
//! one epoll, one prebuilt request per connection. Three system calls a message are all it costs,
//! so that the client does not measure itself, and every system is loaded by the same loop: only
//! the bytes differ ([`Protocol`]).
//!
//! A closed loop says how many acknowledgements a number of waiting producers get; it says nothing
//! of a rate that does not wait, for which there is `penstock load`.

#![allow(dead_code, reason = "every bench uses its own part of this")]

pub mod amqp;
pub mod kafka;
pub mod nats;
pub mod poll;
pub mod redis;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use poll::Poll;

/// Time before counting begins.
const WARM: Duration = Duration::from_millis(300);
/// Room for the answers on one connection that were not yet taken.
const ANSWER_BYTES: usize = 4096;

/// How to speak with one system.
pub trait Protocol {
    /// A connection ready to publish: every handshake done, still blocking.
    fn connect(&self, index: usize) -> TcpStream;

    /// What producer `index` sends again and again.
    fn request(&self, index: usize) -> Vec<u8>;

    /// What lies at the front of the bytes received.
    fn next(&self, received: &[u8]) -> Next;
}

/// What the front of received bytes is.
pub enum Next {
    /// Not whole yet.
    Partial,
    /// The acknowledgement of the request, so many bytes long.
    Acknowledged(usize),
    /// Something that asks for nothing, so many bytes long.
    Ignored(usize),
    /// Something that must be answered with these bytes.
    Asked(usize, &'static [u8]),
}

/// One run.
pub struct Measured {
    /// Requests acknowledged a second.
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub max_us: f64,
    /// Requests counted.
    pub counted: u64,
    /// Processor time of the client's thread against elapsed time.
    pub client_cpu_percent: f64,
}

struct Producer {
    stream: TcpStream,
    request: Vec<u8>,
    written: usize,
    answer: [u8; ANSWER_BYTES],
    have: usize,
    begin: Instant,
}

/// Runs `producers` producers for `span` after a short warm-up. `bounds` is called when counting
/// begins and when it ends: what the server used in between is between the two calls.
pub fn run(
    protocol: &dyn Protocol,
    producers: usize,
    span: Duration,
    mut bounds: impl FnMut(),
) -> Measured {
    let poll = Poll::new();
    let mut crowd: Vec<Producer> = (0..producers)
        .map(|index| Producer::new(protocol, index))
        .collect();
    for (index, producer) in crowd.iter_mut().enumerate() {
        poll.watch(&producer.stream, index as u64);
        producer.begin_next();
    }
    let mut histogram = Histogram::<u64>::new(3).expect("a valid precision");
    let counting_from = Instant::now() + WARM;
    let until = counting_from + span;
    let mut cpu_from = None;
    let mut cpu = None;
    let mut open = producers;
    let mut ready = Vec::new();
    while open > 0 {
        poll.wait(&mut ready);
        let now = Instant::now();
        if now >= counting_from && cpu_from.is_none() {
            cpu_from = Some(poll::thread_cpu());
            bounds();
        }
        if now >= until && cpu.is_none() {
            cpu = Some(poll::thread_cpu());
            bounds();
        }
        for &index in &ready {
            let producer = &mut crowd[index as usize];
            producer.write();
            if !producer.receive(protocol) {
                continue;
            }
            if now >= counting_from && now < until {
                let took_ns = now.duration_since(producer.begin).as_nanos() as u64;
                histogram.record(took_ns).expect("the histogram grows");
            }
            if now < until {
                producer.begin_next();
            } else {
                open -= 1;
            }
        }
    }
    let used = cpu.unwrap_or_default() - cpu_from.unwrap_or_default();
    let us = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1000.0;
    Measured {
        per_second: histogram.len() as f64 / span.as_secs_f64(),
        p50_us: us(0.5),
        p99_us: us(0.99),
        p999_us: us(0.999),
        max_us: histogram.max() as f64 / 1000.0,
        counted: histogram.len(),
        client_cpu_percent: used.as_secs_f64() / span.as_secs_f64() * 100.0,
    }
}

impl Producer {
    fn new(protocol: &dyn Protocol, index: usize) -> Producer {
        let stream = protocol.connect(index);
        stream.set_nodelay(true).expect("a fresh socket");
        stream.set_nonblocking(true).expect("a fresh socket");
        Producer {
            stream,
            request: protocol.request(index),
            written: 0,
            answer: [0; ANSWER_BYTES],
            have: 0,
            begin: Instant::now(),
        }
    }

    fn begin_next(&mut self) {
        self.begin = Instant::now();
        self.written = 0;
        self.write();
    }

    /// Hands over as much of the request as the socket takes; the poll says when it takes more.
    fn write(&mut self) {
        while self.written < self.request.len() {
            match self.stream.write(&self.request[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("the connection failed: {error}"),
            }
        }
    }

    /// Whether the acknowledgement is there.
    fn receive(&mut self, protocol: &dyn Protocol) -> bool {
        loop {
            match self.stream.read(&mut self.answer[self.have..]) {
                Ok(0) => panic!("the server closed a good connection"),
                Ok(count) => self.have += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) => panic!("the connection failed: {error}"),
            }
            if self.take(protocol) {
                return true;
            }
        }
    }

    /// Takes what was received off the front, until the acknowledgement or until more is needed.
    fn take(&mut self, protocol: &dyn Protocol) -> bool {
        loop {
            let (length, acknowledged) = match protocol.next(&self.answer[..self.have]) {
                Next::Partial => return false,
                Next::Acknowledged(length) => (length, true),
                Next::Ignored(length) => (length, false),
                Next::Asked(length, reply) => {
                    let sent = self.stream.write(reply).expect("the socket takes a reply");
                    assert_eq!(sent, reply.len(), "the socket takes a whole short reply");
                    (length, false)
                }
            };
            self.answer.copy_within(length..self.have, 0);
            self.have -= length;
            if acknowledged {
                return true;
            }
        }
    }
}
