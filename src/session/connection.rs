//! One client: its bytes in, its requests in order, its answers in order.
//!
//! Two tasks. The reading task (here) takes memory units, reads a frame, decodes it, and starts it;
//! a produce is *staged* before the next frame is read, so one connection pipelines and its order
//! is fixed. The writing task (`replies.rs`) waits for each answer in turn. Lives on one core.

use super::Session;
use super::admission::Units;
use super::progress::Arrival;
use super::replies::{Received, Replies, Reply, WriteEnd, WriteWatch, write_replies};
use super::watch::Watch;
use crate::env::net::{Conn, ReadHalf};
use crate::limits::{
    BODY_BYTES_PER_S_MIN, FRAME_SMALL_BYTES_MAX, READ_BUFFER_BYTES, READ_SPARE_BYTES_MIN,
    REQUEST_UNITS_MIN_BYTES,
};
use crate::wire::frame::{FrameBounds, PREFIX_BYTES};
use crate::wire::{RequestHeader, refusal, request, versions};
use bytes::{Buf, Bytes, BytesMut};
use futures_lite::future::poll_once;
use std::rc::Rc;
use std::time::Duration;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    /// The peer closed it, or it broke.
    Gone,
    /// The broker is stopping.
    Stopping,
    /// It asked nothing for too long.
    Idle,
    /// A request did not arrive in time.
    SlowBody,
    /// Its bytes are no Kafka request.
    Protocol,
    /// Its answers cannot be written any more.
    Unanswerable,
}

/// The bytes that came and were not used yet.
struct Inbound {
    half: ReadHalf,
    buffer: BytesMut,
    watch: Rc<Watch>,
}

impl Inbound {
    /// Reads more; 0 at the end of the stream. Dropping the future loses nothing.
    async fn fill(&mut self) -> std::io::Result<usize> {
        // What is left of the buffer will do for many small requests; a new one costs more.
        let spare = self.buffer.capacity() - self.buffer.len();
        let room = if spare < READ_SPARE_BYTES_MIN {
            READ_BUFFER_BYTES
        } else {
            spare.min(READ_BUFFER_BYTES)
        };
        self.half.read_into(&mut self.buffer, room).await
    }

    /// Moves what is missing from the buffer, then from the socket, until `target` has `length`
    /// bytes; false at the end of the stream.
    async fn read_to(&mut self, target: &mut BytesMut, length: usize) -> bool {
        let ready = self.buffer.len().min(length - target.len());
        target.extend_from_slice(&self.buffer[..ready]);
        self.buffer.advance(ready);
        while target.len() < length {
            match self.half.read_into(target, length - target.len()).await {
                Ok(0) | Err(_) => return false,
                Ok(_) => {}
            }
        }
        true
    }
}

/// Serves one connection until it ends.
pub async fn serve(session: Session, conn: Conn, replies: Replies, watch: Rc<Watch>) {
    let peer = conn.peer();
    let (half, output) = conn.split();
    let writes = WriteWatch {
        session: session.clone(),
        watch: Rc::clone(&watch),
    };
    let writing = write_replies(replies.clone(), output, writes);
    let (finished, writer_finished) = flume::bounded::<WriteEnd>(1);
    session.router.env.spawn("connection writer", async move {
        let _ = finished.send(writing.await);
    });
    let mut inbound = Inbound {
        half,
        buffer: BytesMut::new(),
        watch,
    };
    let end = read_requests(&session, &mut inbound, &replies).await;
    match end {
        // Nobody is there to be answered: what waits (a fetch may, for minutes) is dropped.
        End::Gone => replies.give_up(),
        _ => replies.end(),
    }
    let write_end = writer_finished.recv_async().await.unwrap_or(WriteEnd::Gone);
    inbound.half.control().shutdown();
    note_end(&session, end, write_end);
    tracing::debug!(%peer, ?end, ?write_end, "connection closed");
}

fn note_end(session: &Session, end: End, write_end: WriteEnd) {
    let metrics = session.metrics();
    let connections = &metrics.connections;
    match end {
        End::Idle => connections.closed_idle.inc(),
        End::SlowBody => connections.closed_slow_body.inc(),
        End::Protocol => connections.closed_protocol.inc(),
        End::Gone | End::Stopping | End::Unanswerable => {}
    }
    if write_end == WriteEnd::SlowReader {
        connections.closed_slow_reader.inc();
    }
}

async fn read_requests(session: &Session, inbound: &mut Inbound, replies: &Replies) -> End {
    loop {
        if !replies.room().await {
            return End::Unanswerable;
        }
        let length = match read_length(session, inbound).await {
            Ok(length) => length,
            Err(end) => return end,
        };
        if session.stopping() {
            return End::Stopping;
        }
        let (frame, request) = match read_body(session, inbound, length).await {
            Ok(read) => read,
            Err(end) => return end,
        };
        session
            .metrics()
            .requests
            .inbound
            .add((PREFIX_BYTES + length) as u64);
        match start(session, frame).await {
            Some(reply) => replies.push(reply, request),
            None => return End::Protocol,
        }
    }
}

/// Reads a frame's length; waits for it as long as a connection may be idle, which is the tick's
/// affair.
async fn read_length(session: &Session, inbound: &mut Inbound) -> Result<usize, End> {
    while inbound.buffer.len() < PREFIX_BYTES {
        let recent_ns = session.recent_ns();
        inbound.watch.waiting_since_ns.set(recent_ns);
        match inbound.fill().await {
            Ok(0) | Err(_) if session.stopping() => return Err(End::Stopping),
            Ok(0) | Err(_) if inbound.watch.was_idle.get() => return Err(End::Idle),
            Ok(0) | Err(_) => return Err(End::Gone),
            Ok(_) => {}
        }
    }
    inbound.watch.waiting_since_ns.set(0);
    let prefix = *inbound
        .buffer
        .first_chunk::<PREFIX_BYTES>()
        .expect("four bytes are there");
    let length = FrameBounds::REQUEST.check(prefix).map_err(|error| {
        tracing::debug!(%error, "a connection does not speak Kafka");
        End::Protocol
    })?;
    inbound.buffer.advance(PREFIX_BYTES);
    Ok(length)
}

/// Takes the memory for a frame and reads it. A frame of up to 64 KiB is admitted at once from the
/// share that is kept for small ones; a larger one first proves with its first 64 KiB that it is
/// really coming, and only then takes its whole length: announcing 10 MiB costs a peer nothing, so
/// it must not cost us 10 MiB.
async fn read_body(
    session: &Session,
    inbound: &mut Inbound,
    length: usize,
) -> Result<(Bytes, Received), End> {
    let small = length.min(FRAME_SMALL_BYTES_MAX);
    let clock = session.router.env.clock();
    let announced_ns = clock.now_ns();
    let mut taking = session
        .small_requests
        .take(small.max(REQUEST_UNITS_MIN_BYTES));
    let (units, admitted_ns) = match poll_once(&mut taking).await {
        Some(units) => (units, announced_ns),
        None => (taking.await, clock.now_ns()),
    };
    let received = |units: Units, received_ns: u64| Received {
        units,
        arrival: Arrival {
            announced_ns,
            admitted_ns,
            received_ns,
        },
    };
    if inbound.buffer.len() >= length {
        let frame = inbound.buffer.split_to(length).freeze();
        return Ok((frame, received(units, admitted_ns)));
    }
    let seconds = (length / BODY_BYTES_PER_S_MIN) as u64;
    let allowed = session
        .settings
        .body_deadline
        .min(Duration::from_secs(seconds + 1));
    let allowed = allowed.max(Duration::from_secs(5).min(session.settings.body_deadline));
    let reading = async {
        let mut frame = BytesMut::with_capacity(small);
        if !inbound.read_to(&mut frame, small).await {
            return None;
        }
        if length == small {
            return Some((frame.freeze(), units));
        }
        let whole_units = session.large_requests.take(length).await;
        drop(units);
        let mut whole = BytesMut::with_capacity(length);
        whole.extend_from_slice(&frame);
        drop(frame);
        let complete = inbound.read_to(&mut whole, length).await;
        complete.then(|| (whole.freeze(), whole_units))
    };
    match clock.deadline(allowed, reading).await {
        Some(Some((frame, units))) => Ok((frame, received(units, clock.now_ns()))),
        Some(None) => Err(End::Gone),
        None => Err(End::SlowBody),
    }
}

/// Decodes a frame and starts its request; `None` if it is no request at all. It is all that lies
/// between a connection's two tasks, so tests and benches ask a core through it without a socket.
pub async fn start(session: &Session, frame: Bytes) -> Option<Reply> {
    let (header, body) = RequestHeader::decode(&frame).ok()?;
    session.metrics().requests.received.inc(header.api_key);
    if !versions::support(header.api_key, header.api_version).is_served() {
        return match refusal::refuse(&header, &body) {
            refusal::Refusal::Answer(answer) => Some(Reply::Now(answer.into())),
            refusal::Refusal::Close => None,
        };
    }
    match request::decode(&header, &body) {
        Ok(decoded) => session.start(header, decoded).await,
        Err(error) => {
            tracing::debug!(api = versions::name(header.api_key), version = header.api_version,
                %error, "a request does not decode");
            None
        }
    }
}
