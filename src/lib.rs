//! Penstock: a durable, ordered, thread-per-core message broker that speaks the Kafka protocol.
//!
//! One executor per CPU core; each core owns its shards completely; each shard owns one journal.
//! The folder shows the data path: `session` (one client) → `router` (which shard) → `shard`
//! (order) → `journal` (durability) → `env` (the only door to the kernel). `docs/ARCHITECTURE.md`
//! has the picture, `tests/tidy.rs` checks who may import whom.

pub mod admin;
pub mod base;
pub mod check;
pub mod config;
pub mod env;
pub mod journal;
pub mod limits;
pub mod load;
pub mod metrics;
pub mod router;
pub mod server;
pub mod session;
pub mod shard;
pub mod wire;
