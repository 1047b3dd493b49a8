//! Bounded retries with growing pauses.

use super::error::ClientError;
use crate::env::process;
use crate::limits;
use std::time::Duration;

const PAUSE_MS_MAX: u64 = 1000;

/// Counts attempts at one thing.
#[derive(Debug, Default)]
pub struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// Waits before another attempt, or hands the error back: it cannot be cured, or there were
    /// attempts enough.
    ///
    /// # Errors
    /// The same error.
    pub fn wait_after(&mut self, error: ClientError) -> Result<(), ClientError> {
        self.attempts += 1;
        if !error.is_retriable() || self.attempts >= limits::CLIENT_ATTEMPTS_MAX {
            return Err(error);
        }
        let doubled = limits::CLIENT_BACKOFF_MS << self.attempts.min(10);
        process::sleep_blocking(Duration::from_millis(doubled.min(PAUSE_MS_MAX)));
        Ok(())
    }
}

/// Does something until it succeeds or fails for good.
///
/// # Errors
/// The last error.
pub fn until_good<T>(
    mut attempt: impl FnMut() -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let mut backoff = Backoff::default();
    loop {
        match attempt() {
            Ok(value) => return Ok(value),
            Err(error) => backoff.wait_after(error)?,
        }
    }
}
