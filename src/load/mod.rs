//! The load generator: open loop, free of coordinated omission, for any broker that speaks the
//! Kafka protocol.
//!
//! [`run`] is what a run was and saw: the one story that every output tells.

pub mod run;
