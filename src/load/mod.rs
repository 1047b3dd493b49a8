//! The load generator: open loop, free of coordinated omission, for any broker that speaks the
//! Kafka protocol.
//!
//! [`run`] is what a run was and saw: the one story that every output tells. [`report`] tells it as
//! table, JSON, `.hgrm`, `.hlog` and CSV, [`page`] as a picture.

pub mod page;
pub mod report;
pub mod run;
