//! What the tests of the real binary share: a broker process, a blocking Kafka client and the
//! recorder of histories.
//!
//! The client is written by hand against the published protocol, in the newest versions without
//! compact encoding, and shares no code with the broker: a mistake in the broker's own encoder
//! cannot hide behind the same mistake in its test. It negotiates nothing and retries nothing;
//! what to do after an error is the test's affair.
//!
//! * [`broker`] — start, ready file, kill, stop, exit code, memory, dump
//! * [`client`] — one blocking connection
//! * [`batch`] — record batches (magic 2), built and taken apart
//! * [`cluster`] — which endpoint leads which partition
//! * [`history`] — events appended to a file before anybody acts on them

#![allow(dead_code, reason = "every test binary uses its own part of this")]

pub mod batch;
pub mod broker;
pub mod bytes;
pub mod client;
pub mod cluster;
pub mod history;
