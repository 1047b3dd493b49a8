//! The load generator: open loop, free of coordinated omission, for any broker that speaks the
//! Kafka protocol.
//!
//! A [`plan`] says what is sent when, by arithmetic alone; each [`worker`] is a thread that does
//! its share of it; [`conduct`] starts them, tells them the stages and gathers what they counted.
//! [`honesty`] says whether the generator kept its schedule, [`search`] looks for the highest rate.
//! [`run`] is what a run was and saw: the one story that every output tells. [`report`] tells it as
//! table, JSON, `.hgrm`, `.hlog` and CSV, [`page`] as a picture.

pub mod conduct;
mod gather;
pub mod honesty;
pub mod page;
pub mod plan;
pub mod report;
pub mod run;
pub mod search;
pub mod worker;
