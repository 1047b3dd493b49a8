//! Answers leave in the order of their requests.
//!
//! The reading half of a connection puts one [`Reply`] per request into [`Replies`]; the writing
//! half takes them out in order, waits for those that are not ready, and writes what is ready
//! together in one piece. The queue is bounded: a connection with too many requests in flight is
//! not read from. Lives on one core, between the two tasks of one connection.

use super::Session;
use super::admission::Units;
use super::progress::{Arrival, Progress};
use super::watch::Watch;
use crate::env::net::WriteHalf;
use crate::limits::{REPLY_COALESCE_BYTES, WRITE_STALL_MAX};
use bytes::{Bytes, BytesMut};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// A frame that is still being made; `None` if the request is to have no answer.
pub type LaterFrame = Pin<Box<dyn Future<Output = Option<Answer>>>>;

/// A frame and the memory it stands for.
pub struct Answer {
    /// The whole frame, its length included.
    pub frame: Bytes,
    /// Given back once the frame is written.
    pub units: Option<Units>,
    /// What became of the request meanwhile.
    pub progress: Progress,
}

impl From<Bytes> for Answer {
    fn from(frame: Bytes) -> Self {
        Self {
            frame,
            units: None,
            progress: Progress::Other,
        }
    }
}

/// What a request comes to.
pub enum Reply {
    /// Ready.
    Now(Answer),
    /// Waits for the disk, another core, or records.
    Later(LaterFrame),
}

struct Queued {
    reply: Reply,
    request: Received,
}

/// A request that was read.
pub struct Received {
    /// Its own memory: its bytes may be staged until the answer is out.
    pub units: Units,
    /// How it came in.
    pub arrival: Arrival,
}

/// The replies of one connection that are not written yet.
#[derive(Clone)]
pub struct Replies {
    shared: Rc<Shared>,
}

struct Shared {
    queue: RefCell<VecDeque<Queued>>,
    in_flight: Cell<usize>,
    in_flight_max: usize,
    /// No further request will come.
    ended: Cell<bool>,
    /// The writing half is gone: nothing can be answered any more.
    broken: Cell<bool>,
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
}

impl Replies {
    /// A queue for at most `in_flight_max` requests.
    #[must_use]
    pub fn new(in_flight_max: usize) -> Self {
        assert!(in_flight_max > 0, "one request must fit");
        Self {
            shared: Rc::new(Shared {
                queue: RefCell::default(),
                in_flight: Cell::new(0),
                in_flight_max,
                ended: Cell::new(false),
                broken: Cell::new(false),
                reader: RefCell::default(),
                writer: RefCell::default(),
            }),
        }
    }

    /// Waits until one more request may be read; false if nothing can be answered any more.
    pub async fn room(&self) -> bool {
        poll_fn(|context| {
            let shared = &self.shared;
            if shared.broken.get() {
                return Poll::Ready(false);
            }
            if shared.in_flight.get() < shared.in_flight_max {
                return Poll::Ready(true);
            }
            *shared.reader.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Whether every request so far is answered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.shared.in_flight.get() == 0
    }

    /// Adds the reply to the next request.
    pub fn push(&self, reply: Reply, request: Received) {
        let shared = &self.shared;
        if shared.broken.get() {
            return; // The peer went away while this request was started: nobody hears of it.
        }
        assert!(
            shared.in_flight.get() < shared.in_flight_max,
            "`room` was awaited"
        );
        assert!(!shared.ended.get(), "no request follows the end");
        shared.in_flight.set(shared.in_flight.get() + 1);
        shared
            .queue
            .borrow_mut()
            .push_back(Queued { reply, request });
        wake(&shared.writer);
    }

    /// Says that no further request comes: what is queued is still answered.
    pub fn end(&self) {
        self.shared.ended.set(true);
        wake(&self.shared.writer);
    }

    /// The next reply; `None` when all is answered and no more will come.
    async fn next(&self) -> Option<Queued> {
        poll_fn(|context| {
            let shared = &self.shared;
            if let Some(queued) = shared.queue.borrow_mut().pop_front() {
                return Poll::Ready(Some(queued));
            }
            if shared.ended.get() {
                return Poll::Ready(None);
            }
            *shared.writer.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn written(&self, count: usize) {
        self.shared
            .in_flight
            .set(self.shared.in_flight.get() - count);
        wake(&self.shared.reader);
    }

    /// Drops every reply that is not written: nothing can be answered any more.
    pub fn give_up(&self) {
        self.shared.broken.set(true);
        self.shared.ended.set(true);
        self.shared.queue.borrow_mut().clear();
        wake(&self.shared.reader);
        wake(&self.shared.writer);
    }

    /// Completes when nothing can be answered any more.
    async fn broken(&self) {
        poll_fn(|context| {
            if self.shared.broken.get() {
                return Poll::Ready(());
            }
            *self.shared.writer.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

fn wake(waker: &RefCell<Option<Waker>>) {
    if let Some(waker) = waker.borrow_mut().take() {
        waker.wake();
    }
}

/// How the writing half of a connection ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WriteEnd {
    /// Everything was answered.
    Finished,
    /// The peer is gone.
    Gone,
    /// The peer does not read its answers.
    SlowReader,
}

/// What is gathered for one write.
#[derive(Default)]
struct Gathered {
    answers: Vec<Answer>,
    /// The requests they answer, and those that have no answer.
    requests: Vec<Received>,
    /// How each answered request came in.
    arrivals: Vec<Arrival>,
    bytes: usize,
}

impl Gathered {
    fn add(&mut self, answer: Option<Answer>, request: Received) {
        if let Some(answer) = answer {
            self.bytes += answer.frame.len();
            self.arrivals.push(request.arrival);
            self.answers.push(answer);
        }
        self.requests.push(request);
    }

    /// One contiguous piece; a lone frame is not copied.
    fn contiguous(&mut self) -> Bytes {
        if self.answers.len() == 1 {
            return self.answers[0].frame.clone();
        }
        let mut whole = BytesMut::with_capacity(self.bytes);
        for answer in &self.answers {
            whole.extend_from_slice(&answer.frame);
        }
        whole.freeze()
    }
}

/// What is noted of a connection's writes.
pub struct WriteWatch {
    /// What the connections of this core share.
    pub session: Session,
    /// The connection's own notes.
    pub watch: Rc<Watch>,
}

impl WriteWatch {
    fn began(&self) {
        self.watch.writing_since_ns.set(self.session.recent_ns());
    }

    /// Counts what was written: one look at the clock for all of it.
    fn ended(&self, gathered: &Gathered) {
        self.watch.writing_since_ns.set(0);
        let metrics = &self.session.router.metrics;
        metrics.requests.outbound.add(gathered.bytes as u64);
        let sent_ns = self.session.router.env.clock().now_ns();
        for (answer, arrival) in gathered.answers.iter().zip(&gathered.arrivals) {
            answer.progress.count(arrival, sent_ns, metrics);
        }
    }
}

/// Writes the replies of one connection in order until there are no more, or the peer stops
/// reading.
pub async fn write_replies(replies: Replies, mut output: WriteHalf, watch: WriteWatch) -> WriteEnd {
    let mut held: Option<Queued> = None;
    loop {
        let queued = match held.take() {
            Some(queued) => queued,
            None => match replies.next().await {
                Some(queued) => queued,
                None => return WriteEnd::Finished,
            },
        };
        let mut gathered = Gathered::default();
        let gone = async {
            replies.broken().await;
            None
        };
        let answer = futures_lite::future::or(finish(queued.reply), gone).await;
        gathered.add(answer, queued.request);
        if replies.shared.broken.get() {
            return WriteEnd::Gone;
        }
        held = gather_ready(&replies, &mut gathered).await;
        let piece = gathered.contiguous();
        if !piece.is_empty() {
            watch.began();
            match output.write_all(&[&piece], WRITE_STALL_MAX).await {
                Ok(()) => watch.ended(&gathered),
                Err(error) => {
                    replies.give_up();
                    let slow = error.kind() == std::io::ErrorKind::TimedOut;
                    return if slow {
                        WriteEnd::SlowReader
                    } else {
                        WriteEnd::Gone
                    };
                }
            }
        }
        replies.written(gathered.requests.len());
    }
}

async fn finish(reply: Reply) -> Option<Answer> {
    match reply {
        Reply::Now(answer) => Some(answer),
        Reply::Later(frame) => frame.await,
    }
}

/// Adds the following replies that are ready now. The first that is not is handed back: it was
/// polled, and goes on where it is.
async fn gather_ready(replies: &Replies, gathered: &mut Gathered) -> Option<Queued> {
    while gathered.bytes < REPLY_COALESCE_BYTES {
        let mut queued = replies.shared.queue.borrow_mut().pop_front()?;
        let ready = match &mut queued.reply {
            Reply::Now(_) => None,
            Reply::Later(frame) => match futures_lite::future::poll_once(frame).await {
                Some(answer) => Some(answer),
                None => return Some(queued),
            },
        };
        match (ready, queued.reply) {
            (Some(answer), _) => gathered.add(answer, queued.request),
            (None, Reply::Now(answer)) => gathered.add(Some(answer), queued.request),
            (None, Reply::Later(_)) => unreachable!("a later reply is ready or was handed back"),
        }
    }
    None
}
