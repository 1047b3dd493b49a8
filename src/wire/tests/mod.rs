//! Tests of the room as a whole: against recordings of real clients, and against other codecs.

mod captures;
mod differential;
mod recording;

pub(in crate::wire) use recording::{Pair, recording};
