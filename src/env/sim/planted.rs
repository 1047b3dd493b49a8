//! Planted bugs (reliability.md, R20): mistakes the harness must notice, switched on one at a time.
//!
//! Why: a crash test that has never failed proves nothing. Each variant names a decision point in
//! the code that asks `env.planted(Bug::X)`. The real side always answers no, so nothing here can
//! be reached outside a simulation; `tests/crash_images/` switches each on and demands a verdict.

/// A mistake that can be switched on under simulation.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Bug {
    /// A ticket is released when its block is submitted, before anything is durable.
    AcknowledgeBeforeFlush,
    /// `fdatasync` is submitted beside the write instead of after its completion.
    FlushBeforeWriteCompletes,
    /// A new or recycled segment is used without syncing the directory.
    NoDirectorySync,
    /// Recovery cuts at the first invalid block even if a later one vouches for it.
    CutAcknowledgedData,
    /// Recovery believes the checkpoint and does not replay the tail behind it.
    TrustCheckpointOverJournal,
    /// `durable_seq` names blocks that are not durable yet.
    WatermarkPastDurable,
    /// Recovery does not compare the incarnation, so a block of a recycled segment is believed.
    StaleBlockAccepted,
    /// Recovery does not check the chain from block to block.
    ChainNotChecked,
    /// A ticket is released as soon as its own block is durable, not waiting for earlier ones.
    TicketsOutOfOrder,
    /// A failed flush is tried again, and its success believed.
    FailedFlushRetried,
    /// No seal is written when the journal falls idle.
    SealMissing,
    /// Recovery cuts without zeroing the region where in-flight blocks may lie.
    CutNotZeroed,
    /// Recovery does not flush what it trusts before it is served.
    RecoveryNotFlushed,
    /// The payload's checksum is not compared.
    PayloadNotChecked,
    /// Recovery takes its own flush for enough, although one before it may have failed and
    /// forgotten.
    FailedFlushTrusted,
    /// A segment is recycled while the checkpoint still needs its replay.
    RecycledTooEarly,
}
