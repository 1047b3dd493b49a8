//! What every room may use: ids as newtypes, the record batch view, exit codes. Pure and
//! synchronous.

pub mod base64;
pub mod exit;
pub mod ids;
pub mod murmur2;
pub mod record_batch;
