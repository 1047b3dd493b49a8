//! One worker of the load: a thread on a CPU of its own that serves its connections in one loop,
//! without a lock and without another thread on the way of a message.
//!
//! A worker owns whole producers and consumers. It is told stages one after the other and hands its
//! [`Tally`] over when each ends; between those it says only how far it is.

mod check;
mod duty;
mod lane;
mod link;
mod pace;
mod reader;
mod request;
mod settle;
mod tally;

pub use check::{Check, Sent, judge};
pub use duty::Worker;
pub use link::LinkError;
pub use pace::Pace;
pub use tally::{Cell, Tally};

use super::plan::spread::Spread;
use super::plan::timeline::Timeline;
use super::plan::{Consume, Leaders, Plan, Produce};
use crate::load::run::EventKind;
use std::sync::Arc;

/// A stretch of the load that is counted as a whole.
#[derive(Clone, Debug)]
pub struct Stage {
    /// When it begins, on this process's monotonic clock.
    pub begin_ns: u64,
    /// What is sent when.
    pub pace: Pace,
    /// Its intervals.
    pub timeline: Arc<Timeline>,
    /// Where the part that is measured begins, from the stage's start.
    pub measured_from_ns: u64,
    /// Whether it is over once every message is sent and settled, rather than by the clock.
    pub is_counted: bool,
}

impl Stage {
    /// When it ends, on this process's monotonic clock.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.begin_ns.saturating_add(self.pace.end_ns())
    }
}

/// What a worker is told.
pub enum Command {
    /// Run another stage; the one before is over.
    Stage(Stage),
    /// This is who leads the partitions.
    Leaders(Arc<Leaders>),
    /// Take no further messages: the stage ends now.
    Stop,
    /// Everything that was acknowledged was received: no need to wait for more.
    Received,
    /// End.
    Finish,
}

/// What a worker says.
pub enum Report {
    /// Every connection is up.
    Ready,
    /// How far it is.
    Progress(Box<Progress>),
    /// Something happened, at that moment of the monotonic clock.
    Event(u64, EventKind, String),
    /// No answer came from the first of these moments to the second, though some were due.
    Stall(usize, u64, u64),
    /// Somebody else leads a partition, or nobody.
    LeadersWanted,
    /// The stage is over.
    Done(Box<Tally>),
    /// The worker ends: what its producers sent and its consumers received.
    Last(Vec<Sent>, Box<Check>),
}

/// How far a worker is.
#[derive(Debug)]
pub struct Progress {
    /// Which worker.
    pub worker: usize,
    /// Messages so far, of the stage.
    pub sent: u64,
    /// Messages so far, of the stage.
    pub acknowledged: u64,
    /// Messages so far, of the stage.
    pub failed: u64,
    /// Messages of this stage and run that consumers received.
    pub received: u64,
    /// Whether no producer has anything left to send or to wait for.
    pub is_settled: bool,
    /// Messages handed over and not answered.
    pub in_flight: u64,
    /// Largest schedule lag since the last time.
    pub lag_ns: u64,
    /// Latencies since the last time.
    pub recent: Option<hdrhistogram::Histogram<u64>>,
}

/// What a worker works in: nothing of it changes.
pub struct Surroundings {
    /// The load.
    pub plan: Arc<Plan>,
    /// Where messages go.
    pub spread: Spread,
    /// From this process's monotonic clock to nanoseconds since 1970.
    pub unix_offset_ns: u64,
}

impl Surroundings {
    /// What is sent; only lanes ask, and there are none without.
    #[must_use]
    pub fn produce(&self) -> &Produce {
        self.plan
            .produce
            .as_ref()
            .expect("a lane belongs to a producer")
    }

    /// What is read; only readers ask.
    #[must_use]
    pub fn consume(&self) -> &Consume {
        self.plan
            .consume
            .as_ref()
            .expect("a reader belongs to a consumer")
    }
}
