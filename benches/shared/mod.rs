//! What more than one bench needs.
//!
//! * [`crowd`] — many connections, one thread: one prebuilt request in flight on each
//! * [`produce_frame`], [`was_refused`] — a request of one message, and its answer
//! * [`median`], [`raise_descriptors`], [`thread_cpu`]

#![allow(dead_code, reason = "every bench uses its own part of this")]

pub mod crowd;

use std::time::Duration;

use crate::support::batch::{self, NOBODY, Record};
use crate::support::client::{frame, produce_body};

/// The middle value; the mean of the two in the middle. There must be one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

/// A whole request of one message of `bytes` for a partition.
pub fn produce_frame(topic: &str, partition: i32, correlation: i32, bytes: usize) -> Vec<u8> {
    let record = Record {
        timestamp_ms: 1_700_000_000_000,
        value: Some(vec![b'm'; bytes]),
        ..Record::default()
    };
    let batch = batch::build(NOBODY, &[record]);
    frame(
        0,
        7,
        correlation,
        &produce_body(topic, partition, -1, &batch),
    )
}

/// Whether the answer to such a request is an error.
pub fn was_refused(topic: &str, answer: &[u8]) -> bool {
    let error_at = 4 + 4 + 4 + 2 + topic.len() + 4 + 4;
    answer[error_at..error_at + 2] != [0, 0]
}

/// As many descriptors as this process may have.
pub fn raise_descriptors() {
    // SAFETY: plain structs in, plain structs out.
    unsafe {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
}

/// Processor time of this thread.
pub fn thread_cpu() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure lives across the call.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(read, 0, "the clock exists");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
