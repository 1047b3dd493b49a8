//! Durability: the only room that knows blocks and files.
//!
//! Everything a shard must make durable goes through one sequential stream of blocks. The shard
//! *stages* entries; the writer packs everything staged into a block, writes it durably, and only
//! then hands the entries to the shard's [`StateMachine`], in journal order: live and in replay
//! alike. So state = last checkpoint + replay, and the one wait a producer knows is
//! [`Journal::committed`].
//!
//! Reading order: `format` (bytes), `pack` (what goes into a block), `commit` (when it is durable),
//! `recover` (what a crash means), `scan` (how recovery reads), `reader`, `space`, `segment`.
//!
//! Invariants:
//! * a ticket is released only when its block and every earlier one are durable, in position order;
//!   after one failure no ticket is ever released (`commit`);
//! * nothing persistent is trusted over the journal; nothing is deleted or cut because it is
//!   damaged (`recover`);
//! * a segment is used again only if none of its records is alive, both kept checkpoints say so,
//!   and no reader holds it (`space`).
//!
//! A journal lives on the core of its shard and never leaves it.

mod checkpoint;
mod commit;
mod error;
pub mod format;
mod pack;
mod reader;
mod recover;
mod segment;
mod space;
pub mod store;
mod verify;

#[cfg(test)]
mod tests;

pub use commit::CommitTimes;
pub use error::{JournalError, Poisoned, ReadError};
pub use format::EntryKind;
pub use recover::{Cut, CutReason, Damage, DamageKind, RecoveryReport};
pub use verify::{VerifyReport, verify};

use crate::base::ids::{
    BlockSequence, Offset, Position, ShardId, StageSequence, Term, TopicPartition,
};
use crate::env::{Env, SharedBuffer};
use crate::limits;
use crate::metrics::JournalMetrics;
use bytes::Bytes;
use std::cell::RefCell;
use std::future::Future;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// How a block is made durable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CommitMode {
    /// The write itself (`O_DSYNC`): durable when it completes.
    Dsync,
    /// A write, then `fdatasync` submitted after the write completed.
    Fdatasync,
}

/// Called once, with the reason, when a journal is poisoned: the server ends the process.
pub type PoisonHook = Rc<dyn Fn(&Poisoned)>;

/// Everything a journal must be told. Sizes are in bytes.
#[derive(Clone)]
pub struct JournalConfig {
    /// The shard's own folder.
    pub dir: PathBuf,
    /// The shard.
    pub shard: ShardId,
    /// Whether the journal may be made: only while the *store* is being made. Otherwise a folder
    /// without a journal is a missing journal, and is refused: "cannot read" is not "empty".
    pub create: bool,
    /// Length of each segment; fixed when the journal is made.
    pub segment_bytes: u64,
    /// Soft limit of a block: only a single larger item makes a larger one.
    pub block_bytes_max: usize,
    /// Hard limit of a block.
    pub block_bytes_hard_max: usize,
    /// Length from which on a block needs no zeros under it.
    pub large_block_bytes_min: u64,
    /// Blocks beyond the durable prefix at any time.
    pub commit_depth: usize,
    /// How a block is made durable.
    pub commit_mode: CommitMode,
    /// Quiet time before the last block is sealed.
    pub idle_seal: Duration,
    /// Recent blocks kept in memory.
    pub cache_bytes_max: usize,
    /// Staged and unpacked bytes above which [`Journal::room`] waits.
    pub staged_bytes_max: usize,
    /// Leadership term written into each block.
    pub term: Term,
    /// Called when the journal is poisoned.
    pub on_poison: PoisonHook,
}

impl JournalConfig {
    /// Defaults for a shard whose folder is `dir`.
    #[must_use]
    pub fn new(dir: PathBuf, shard: ShardId) -> Self {
        Self {
            dir,
            shard,
            create: false,
            segment_bytes: limits::SEGMENT_BYTES_DEFAULT,
            block_bytes_max: limits::BLOCK_BYTES_MAX,
            block_bytes_hard_max: limits::BLOCK_BYTES_HARD_MAX,
            large_block_bytes_min: limits::LARGE_BLOCK_BYTES_MIN,
            commit_depth: limits::COMMIT_DEPTH,
            commit_mode: CommitMode::Dsync,
            idle_seal: Duration::from_millis(limits::IDLE_SEAL_MS),
            cache_bytes_max: limits::JOURNAL_CACHE_BYTES_MAX,
            staged_bytes_max: limits::STAGED_BYTES_MAX,
            term: Term(1),
            on_poison: Rc::new(|_| {}),
        }
    }

    /// Most bytes ever in flight: what a single crash can have torn. One block is always allowed,
    /// however large.
    #[must_use]
    pub fn window_bytes(&self) -> u32 {
        let deep = self.commit_depth * (self.block_bytes_max + limits::BLOCK_ALIGN);
        let bytes = deep.max(self.block_bytes_hard_max + limits::BLOCK_ALIGN);
        u32::try_from(bytes).expect("validated: the window is below 4 GiB")
    }

    /// Whether the numbers fit together.
    pub fn validate(&self) -> Result<(), JournalError> {
        let align = limits::BLOCK_ALIGN;
        let checks = [
            (
                self.segment_bytes.is_multiple_of(align as u64),
                "segment_bytes is no multiple of 4096",
            ),
            (
                self.segment_bytes >= (self.block_bytes_hard_max + 2 * align) as u64,
                "a segment cannot hold the largest block",
            ),
            (
                self.segment_bytes <= u64::from(u32::MAX),
                "segment_bytes is above 4 GiB",
            ),
            (
                self.block_bytes_max >= 2 * align && self.block_bytes_max.is_multiple_of(align),
                "block_bytes_max is no multiple of 4096, or below 8192",
            ),
            (
                self.block_bytes_max <= self.block_bytes_hard_max
                    && self.block_bytes_hard_max <= limits::BLOCK_BYTES_HARD_MAX,
                "block_bytes_max is above the hard limit",
            ),
            (
                (1..=64).contains(&self.commit_depth),
                "commit_depth is not within 1..=64",
            ),
        ];
        for (holds, what) in checks {
            if !holds {
                return Err(JournalError::Config(what.to_owned()));
            }
        }
        Ok(())
    }
}

/// One item to be made durable.
#[derive(Clone, Debug)]
pub enum StagedEntry {
    /// Record batches of one partition, validated, in order.
    Records {
        /// The partition.
        partition: TopicPartition,
        /// Offset of the first record; stamped into the batches when they are packed.
        base_offset: Offset,
        /// Stamped into the batches when they are packed.
        leader_epoch: i32,
        /// Offsets that the batches span together.
        record_count: u32,
        /// One or more whole batches, whose offsets are not yet right.
        batches: Bytes,
    },
    /// Anything else.
    State {
        /// What it is; none of the journal's own kinds.
        kind: EntryKind,
        /// Its content.
        body: Bytes,
    },
}

/// Where a partition's batches of one block lie: all that is needed to read and verify them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Extent {
    /// First byte in the journal.
    pub position: Position,
    /// Bytes.
    pub len_bytes: u32,
    /// Leader epoch in every batch.
    pub leader_epoch: i32,
    /// Offset of the first record.
    pub base_offset: Offset,
}

/// Where an entry stands in the journal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Location {
    /// Its block.
    pub block: BlockSequence,
    /// Where the block starts.
    pub position: Position,
    /// The block's term.
    pub term: Term,
}

/// A durable entry, as the state machine sees it.
#[derive(Clone, Copy, Debug)]
pub enum EntryView<'block> {
    /// Record batches of one partition, in one block; bytes as they will be served.
    Records {
        /// The partition.
        partition: TopicPartition,
        /// Offset of the first record.
        base_offset: Offset,
        /// Offsets that the batches span.
        record_count: u32,
        /// Where they lie.
        extent: Extent,
        /// The batches.
        batches: &'block [u8],
    },
    /// Anything else.
    State {
        /// What it is.
        kind: EntryKind,
        /// Its content.
        body: &'block [u8],
    },
    /// Only in replay: something acknowledged cannot be read any more.
    Damaged {
        /// Whose records are damaged; `None` if a block's header is, so that nobody can tell: then
        /// every partition of the shard may miss records between what precedes and what follows.
        partition: Option<TopicPartition>,
        /// Offset of the first damaged record; 0 if unknown.
        base_offset: Offset,
        /// Offsets concerned; 0 if unknown.
        record_count: u32,
        /// Where the damage lies. `len_bytes` is 0 if unknown.
        extent: Extent,
    },
}

/// The shard's state. `apply` is the one point where it changes: live and in replay, in journal
/// order, only once durable.
///
/// In one block, the records of all partitions come first, then the other entries in the order of
/// staging. The journal holds no borrow of its own during `apply`, so a machine may stage and
/// release in it; it must not start a checkpoint in it.
pub trait StateMachine {
    /// Replaces the whole state by a checkpoint's.
    ///
    /// # Errors
    /// If the bytes are not a state of this version; the text says why.
    fn restore(&mut self, checkpoint: &[u8]) -> Result<(), String>;

    /// Applies one durable entry.
    fn apply(&mut self, location: Location, entry: EntryView<'_>);
}

/// A shard's journal. Cheap to clone; clones are the same journal.
#[derive(Clone)]
pub struct Journal {
    core: Rc<commit::Core>,
}

impl Journal {
    /// Opens the journal, makes it if `config.create` allows, and replays it into `machine`. When
    /// this returns, everything that was replayed is on the platter.
    ///
    /// # Errors
    /// See [`JournalError`]: whatever is refused is left as it is.
    pub async fn open(
        env: Env,
        config: JournalConfig,
        machine: Rc<RefCell<dyn StateMachine>>,
    ) -> Result<(Journal, RecoveryReport), JournalError> {
        config.validate()?;
        let (core, report) = recover::open(env, config, machine).await?;
        Ok((Journal { core }, report))
    }

    /// Stages an entry: its place in the order is fixed now. Never waits; ask [`Journal::room`]
    /// first if it is large.
    ///
    /// # Panics
    /// If the entry is larger than a block may be, of one of the journal's own kinds, or the
    /// journal is closed: bugs of the caller.
    pub fn stage(&self, entry: StagedEntry) -> StageSequence {
        if let StagedEntry::State { kind, .. } = &entry {
            assert!(
                !kind.is_internal(),
                "a kind of the journal's own was staged"
            );
        }
        self.core.stage(entry)
    }

    /// Waits until the entry and all before it are durable *and applied*. May be dropped at will.
    ///
    /// # Errors
    /// If the journal was poisoned first: the entry may or may not be durable.
    pub async fn committed(&self, sequence: StageSequence) -> Result<(), Poisoned> {
        self.core.committed(sequence).await
    }

    /// When the block of a committed entry was written; `None` for one that was committed too long
    /// ago. Ask in the turn in which [`Journal::committed`] is over.
    #[must_use]
    pub fn times_of(&self, sequence: StageSequence) -> Option<CommitTimes> {
        self.core.times_of(sequence)
    }

    /// The last staged entry that is durable and applied.
    #[must_use]
    pub fn committed_sequence(&self) -> StageSequence {
        self.core.committed_sequence()
    }

    /// Waits while more than `staged_bytes_max` is staged.
    ///
    /// # Errors
    /// If the journal is poisoned.
    pub async fn room(&self) -> Result<(), Poisoned> {
        self.core.room().await
    }

    /// The batches of one extent: from memory if recent, else from the disk with every batch
    /// verified.
    ///
    /// # Errors
    /// See [`ReadError`]; never wrong bytes.
    pub async fn read(&self, extent: Extent) -> Result<SharedBuffer, ReadError> {
        reader::read(&self.core, extent).await
    }

    /// As [`Journal::read`] for several extents, in this order; neighbours are read together.
    pub async fn read_many(&self, extents: &[Extent]) -> Vec<Result<SharedBuffer, ReadError>> {
        reader::read_many(&self.core, extents).await
    }

    /// The extent's records are dead for good (retention, deleted topic). Each extent is released
    /// once; those that a replay finds dead are released after [`Journal::open`].
    pub fn release(&self, extent: Extent) {
        self.core.release(extent);
    }

    /// Writes a checkpoint. `state` is the machine's state at the moment of this *call* (not of the
    /// first poll).
    ///
    /// # Errors
    /// If the file could not be written (the journal goes on), or the journal is poisoned.
    ///
    /// # Panics
    /// If called inside [`StateMachine::apply`], or while another one is being written: see
    /// [`Journal::checkpoint_ended`].
    pub fn checkpoint(
        &self,
        state: Vec<u8>,
    ) -> impl Future<Output = Result<(), JournalError>> + 'static {
        checkpoint::write(Rc::clone(&self.core), state)
    }

    /// Waits for the checkpoint that is being written, if one is.
    pub async fn checkpoint_ended(&self) {
        self.core.checkpoint_ended().await;
    }

    /// Journal bytes written since the newest checkpoint: what a recovery would replay.
    #[must_use]
    pub fn replay_bytes(&self) -> u64 {
        self.core.replay_bytes()
    }

    /// Commits what is staged, seals the last block and stops the writer. Nothing may be staged
    /// afterwards.
    ///
    /// # Errors
    /// If the journal is poisoned.
    pub async fn close(&self) -> Result<(), JournalError> {
        self.core.close().await
    }

    /// The counters, shared.
    #[must_use]
    pub fn metrics(&self) -> Rc<JournalMetrics> {
        self.core.metrics()
    }

    /// Why the journal is poisoned, if it is.
    #[must_use]
    pub fn poisoned(&self) -> Option<Poisoned> {
        self.core.poisoned()
    }
}
