//! Which messages a lane sends, and when it may: the schedule's, or its own as fast as the window
//! allows.

use crate::load::plan::schedule::{Schedule, Stream, share};
use std::sync::Arc;

/// How a stage is paced.
#[derive(Clone, Debug)]
pub enum Pace {
    /// Open loop: by the schedule alone.
    Open(Arc<Schedule>),
    /// Closed loop: a message is meant to be sent when there is room for it.
    Closed {
        /// For so long, in nanoseconds.
        length_ns: u64,
        /// At most so many messages, over all processes.
        count: Option<u64>,
    },
    /// Nothing is sent.
    Silent {
        /// For so long, in nanoseconds.
        length_ns: u64,
    },
}

impl Pace {
    /// When the stage ends, from its start.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        match self {
            Pace::Open(schedule) => schedule.end_ns(),
            Pace::Closed { length_ns, .. } | Pace::Silent { length_ns } => *length_ns,
        }
    }

    /// The part of it that a lane walks: of a producer, every `step`-th message from `first` on.
    #[must_use]
    pub fn course(&self, producer: u64, producers: u64, (first, step): (u64, u64)) -> Course {
        match self {
            Pace::Open(schedule) => Course::Open(Box::new(Stream::new(
                schedule,
                producer,
                producers,
                (first, step),
            ))),
            Pace::Closed { count, .. } => Course::Closed {
                next: first,
                step,
                limit: share(count.unwrap_or(u64::MAX), producer, producers),
            },
            Pace::Silent { .. } => Course::Closed {
                next: 0,
                step: 1,
                limit: 0,
            },
        }
    }
}

/// A lane's walk along the pace.
#[derive(Clone, Debug)]
pub enum Course {
    /// By the schedule.
    Open(Box<Stream>),
    /// By the window.
    Closed {
        /// Number of the next message.
        next: u64,
        /// From one to the next.
        step: u64,
        /// No message has this number or a higher one.
        limit: u64,
    },
}

impl Course {
    /// Number of the next message, and when it is meant to be sent: from the stage's start; `None`
    /// for "now".
    pub fn peek(&mut self) -> Option<(u64, Option<u64>)> {
        match self {
            Course::Open(stream) => stream.peek().map(|(number, time)| (number, Some(time))),
            Course::Closed { next, limit, .. } => (*next < *limit).then_some((*next, None)),
        }
    }

    /// Goes past it.
    pub fn advance(&mut self) {
        match self {
            Course::Open(stream) => stream.advance(),
            Course::Closed { next, step, .. } => *next += *step,
        }
    }
}
