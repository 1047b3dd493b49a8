//! What the memory budget is split into: a fixed part, and of the rest 40 % for requests, 30 % for
//! fetches and what is left for the cache. The total is computed and printed at start-up;
//! everything that grows takes from one of the parts.

use super::keys::Config;
use crate::limits;
use serde_json::{Value, json};

/// The parts of the budget, in bytes, for the whole process. Their sum is `total_bytes`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MemoryBudget {
    /// Executors the budget is divided among.
    pub cores: usize,
    /// Everything.
    pub total_bytes: u64,
    /// Program, rings, connections, blocks being written.
    pub fixed_bytes: u64,
    /// Requests read and not yet answered, staged entries included.
    pub request_bytes: u64,
    /// Fetch responses not yet sent.
    pub fetch_bytes: u64,
    /// Recent blocks kept for readers.
    pub cache_bytes: u64,
}

impl MemoryBudget {
    /// Splits the configured total.
    ///
    /// # Errors
    /// The least total that would do, in bytes, if the configured one is too small.
    pub fn new(config: &Config, cores: usize) -> Result<MemoryBudget, u64> {
        assert!(cores > 0, "a process has at least one core");
        let total_bytes = config.memory_bytes;
        let least = least_bytes(config, cores);
        if total_bytes < least {
            return Err(least);
        }
        let fixed_bytes = fixed_bytes(config, cores);
        let shared_bytes = total_bytes - fixed_bytes;
        let request_bytes = shared_bytes / 100 * limits::MEMORY_REQUEST_PERCENT;
        let fetch_bytes = shared_bytes / 100 * limits::MEMORY_FETCH_PERCENT;
        let cache_bytes = total_bytes - fixed_bytes - request_bytes - fetch_bytes;
        Ok(MemoryBudget {
            cores,
            total_bytes,
            fixed_bytes,
            request_bytes,
            fetch_bytes,
            cache_bytes,
        })
    }

    /// One core's part of the request budget, in bytes.
    #[must_use]
    pub fn request_bytes_per_core(&self) -> usize {
        per_core(self.request_bytes, self.cores)
    }

    /// One core's part of the fetch budget, in bytes.
    #[must_use]
    pub fn fetch_bytes_per_core(&self) -> usize {
        per_core(self.fetch_bytes, self.cores)
    }

    /// One core's part of the cache, in bytes.
    #[must_use]
    pub fn cache_bytes_per_core(&self) -> usize {
        per_core(self.cache_bytes, self.cores)
    }

    /// For `config --json`, the ready file and `/dump`.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "total_bytes": self.total_bytes,
            "fixed_bytes": self.fixed_bytes,
            "request_bytes": self.request_bytes,
            "fetch_bytes": self.fetch_bytes,
            "cache_bytes": self.cache_bytes,
            "cores": self.cores,
            "request_bytes_per_core": self.request_bytes_per_core(),
            "fetch_bytes_per_core": self.fetch_bytes_per_core(),
            "cache_bytes_per_core": self.cache_bytes_per_core(),
        })
    }
}

fn per_core(bytes: u64, cores: usize) -> usize {
    usize::try_from(bytes / cores as u64).unwrap_or(usize::MAX)
}

/// What is taken whatever the load.
fn fixed_bytes(config: &Config, cores: usize) -> u64 {
    let blocks = u64::from(config.commit_depth) * config.block_bytes_max;
    limits::MEMORY_PROCESS_BYTES
        + cores as u64 * (limits::MEMORY_CORE_BYTES + blocks)
        + u64::from(config.max_connections) * limits::MEMORY_CONNECTION_BYTES
}

/// The least total: each core can admit the largest frame, answer the largest batch, and cache a
/// little.
pub(super) fn least_bytes(config: &Config, cores: usize) -> u64 {
    let cores_u64 = cores as u64;
    let frames = cores_u64 * limits::FRAME_BYTES_MAX as u64;
    let for_requests = frames * 100 / limits::MEMORY_REQUEST_PERCENT;
    let for_fetches = frames * 100 / limits::MEMORY_FETCH_PERCENT;
    let cache_percent = 100 - limits::MEMORY_REQUEST_PERCENT - limits::MEMORY_FETCH_PERCENT;
    let for_cache = cores_u64 * limits::MEMORY_CACHE_CORE_BYTES_MIN * 100 / cache_percent;
    let shared_bytes = for_requests.max(for_fetches).max(for_cache);
    // Whole mebibytes read better in a message, and cover the rounding of the split.
    (fixed_bytes(config, cores) + shared_bytes + (1 << 20)).next_multiple_of(1 << 20)
}

/// The default total on a host (or in a control group) of so much memory.
pub(super) fn default_bytes(config: &Config, cores: usize, host_bytes: u64) -> u64 {
    let wanted =
        (host_bytes / 100 * limits::MEMORY_HOST_PERCENT).min(limits::MEMORY_BYTES_DEFAULT_MAX);
    wanted.max(least_bytes(config, cores))
}
