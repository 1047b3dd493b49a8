//! Bytes ⇄ requests: frames, headers and Kafka's messages, every length checked.
//!
//! Pure: no async, no clock, no I/O; used by the session on its core and by clients alike. The way
//! in: [`frame`] cuts the stream, [`header`] says which request it is, [`versions`] whether it is
//! served, [`request`] decodes it (or [`refusal`] answers it in Kafka's own words). The way out:
//! [`response`], or for records [`fetch::FetchReply`].
//!
//! Messages are declared in [`messages`], [`produce`] and [`fetch`] with the macro of [`schema`].
//! The generated `kafka-wire` types serve only [`refusal`] and, in tests, as an oracle: they
//! allocate up to 64 times the bytes of a hostile request, where the rule is twice.

pub mod client;
pub mod codec;
pub mod error;
pub mod fetch;
pub mod frame;
pub mod fuzz;
pub mod header;
pub mod messages;
pub mod produce;
pub mod refusal;
pub mod request;
pub mod response;
pub mod schema;
pub mod versions;

#[cfg(test)]
mod tests;

pub use error::ErrorCode;
pub use header::RequestHeader;
pub use request::Request;
pub use response::Response;
pub use schema::{Array, DecodeError, EncodeError, Text};
