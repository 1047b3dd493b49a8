//! What every room may use: ids as newtypes, the record batch view, exit codes, numbers and names
//! as people read them. Pure and synchronous.

pub mod base64;
pub mod calendar;
pub mod exit;
pub mod ids;
pub mod murmur2;
pub mod nearest;
pub mod record_batch;
pub mod units;
