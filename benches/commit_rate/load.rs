//! The producers: one thread, one epoll, one prebuilt request per connection, one in flight each.
//! Three system calls a message are all it costs, so that the client does not measure itself.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::support::batch::{self, NOBODY, Record};
use crate::support::client::{frame, produce_body};
use crate::support::cluster::Cluster;

/// Bytes of each message's value.
const MESSAGE_BYTES: usize = 100;
/// Time before counting begins.
const WARM: Duration = Duration::from_millis(300);
const EVENTS_MAX: usize = 1024;

/// Where the messages go.
pub struct Target {
    pub endpoint: SocketAddr,
    pub topic: String,
    pub partitions: i32,
}

/// One run.
pub struct Measured {
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Processor time of the client's thread against elapsed time.
    pub client_cpu_percent: f64,
}

struct Producer {
    stream: TcpStream,
    request: Vec<u8>,
    answer: [u8; 256],
    have: usize,
    begin: Instant,
}

/// Runs `producers` producers for `span` after a short warm-up.
pub fn run(target: &Target, producers: usize, span: Duration) -> Measured {
    let poll = Poll::new();
    let mut crowd = connect(target, producers);
    for (index, producer) in crowd.iter_mut().enumerate() {
        poll.watch(&producer.stream, index as u64);
        producer.send();
    }
    let error_at = 4 + 4 + 4 + 2 + target.topic.len() + 4 + 4;
    let mut histogram = Histogram::<u64>::new(3).expect("a valid precision");
    let counting_from = Instant::now() + WARM;
    let until = counting_from + span;
    let mut cpu_from = None;
    let mut counted = 0u64;
    let mut open = producers;
    while open > 0 {
        let ready = poll.wait();
        let now = Instant::now();
        if now >= counting_from && cpu_from.is_none() {
            cpu_from = Some(thread_cpu());
        }
        for index in ready {
            let producer = &mut crowd[index as usize];
            if !producer.receive(error_at) {
                continue;
            }
            if now >= counting_from && now < until {
                counted += 1;
                let took_ns = now.duration_since(producer.begin).as_nanos() as u64;
                histogram.record(took_ns).expect("the histogram grows");
            }
            if now < until {
                producer.send();
            } else {
                open -= 1;
            }
        }
    }
    let cpu = thread_cpu().saturating_sub(cpu_from.unwrap_or_default());
    let us = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1000.0;
    Measured {
        per_second: counted as f64 / span.as_secs_f64(),
        p50_us: us(0.5),
        p99_us: us(0.99),
        client_cpu_percent: cpu.as_secs_f64() / span.as_secs_f64() * 100.0,
    }
}

fn connect(target: &Target, producers: usize) -> Vec<Producer> {
    let timeout = Duration::from_secs(30);
    let cluster = Cluster::open(target.endpoint, &[&target.topic], timeout);
    let cluster = cluster.expect("Metadata answers");
    assert_eq!(
        cluster.partitions(&target.topic),
        target.partitions as usize
    );
    let make = |index: usize| {
        let partition = index as i32 % target.partitions;
        let value = Some(vec![b'm'; MESSAGE_BYTES]);
        let record = Record {
            timestamp_ms: 1_700_000_000_000,
            value,
            ..Record::default()
        };
        let bytes = batch::build(NOBODY, &[record]);
        let body = produce_body(&target.topic, partition, -1, &bytes);
        let stream = TcpStream::connect(cluster.leader(&target.topic, partition));
        let stream = stream.expect("the leader takes connections");
        stream.set_nodelay(true).expect("a fresh socket");
        stream.set_nonblocking(true).expect("a fresh socket");
        let request = frame(0, 7, index as i32, &body);
        Producer {
            stream,
            request,
            answer: [0; 256],
            have: 0,
            begin: Instant::now(),
        }
    };
    (0..producers).map(make).collect()
}

impl Producer {
    fn send(&mut self) {
        self.begin = Instant::now();
        self.have = 0;
        let written = self.stream.write(&self.request);
        let written = written.expect("an idle socket takes a small request");
        assert_eq!(
            written,
            self.request.len(),
            "an idle socket takes a whole small request"
        );
    }

    /// Whether the answer is there; it must be a success.
    fn receive(&mut self, error_at: usize) -> bool {
        loop {
            match self.stream.read(&mut self.answer[self.have..]) {
                Ok(0) => panic!("the broker closed a good connection"),
                Ok(count) => self.have += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) => panic!("the connection failed: {error}"),
            }
            let word = |at: usize| {
                let bytes = self.answer[at..at + 4].try_into().expect("four bytes");
                i32::from_be_bytes(bytes) as usize
            };
            if self.have >= 4 && self.have == word(0) + 4 {
                let error = &self.answer[error_at..error_at + 2];
                assert_eq!(error, [0, 0], "a produce was refused");
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

    /// The producers that have something to read; waits for at most 10 s.
    fn wait(&self) -> Vec<u64> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        // SAFETY: the array lives across the call and is as long as it is said to be.
        let count = unsafe {
            let descriptor = self.descriptor.as_raw_fd();
            libc::epoll_wait(descriptor, events.as_mut_ptr(), EVENTS_MAX as i32, 10_000)
        };
        assert!(count > 0, "no answer for ten seconds");
        events[..count as usize]
            .iter()
            .map(|event| event.u64)
            .collect()
    }
}

/// Processor time of this thread.
fn thread_cpu() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure lives across the call.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(read, 0, "the clock exists");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
