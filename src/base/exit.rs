//! The process exit codes. Scripts depend on them; they never change meaning.

/// Why the process ends. The number is the process exit status.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum ExitCode {
    /// Stopped as asked.
    Stopped = 0,
    /// The command line was misused, or a client verb failed.
    Misuse = 1,
    /// The configuration is wrong, or an address is taken.
    Configuration = 2,
    /// The host lacks something: `io_uring`, locked memory, `O_DIRECT`.
    Host = 3,
    /// The data directory was refused: locked, of another version, or corrupt.
    DataRefused = 4,
    /// The disk failed while running.
    DiskFailed = 5,
    /// A bug: an assertion or a panic.
    Bug = 6,
    /// `load`: a gate (`--fail-if`) failed.
    GateFailed = 10,
    /// `load`: the generator was the limit, so the figures say little of the broker.
    GeneratorLimited = 11,
    /// `load`: a payload was lost, doubled, out of order, damaged or not ours.
    VerificationFailed = 12,
    /// `load`: nothing was acknowledged.
    NothingAcknowledged = 13,
    /// `load`: sends failed, and no gate said how many may.
    SendsFailed = 14,
}

impl ExitCode {
    /// The number the shell sees.
    #[must_use]
    pub const fn code(self) -> i32 {
        self as i32
    }
}
