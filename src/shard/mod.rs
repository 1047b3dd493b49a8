//! What one core owns: a shard's journal and the partitions that hash to it.
//!
//! A [`Shard`] is a handle: cheap to clone, `!Send`, alive on the core that owns the shard and
//! nowhere else. It has one writer (this core), so it needs no lock; its state is never borrowed
//! across an `.await`.

pub mod append;
pub mod catalog;
mod checkpoint;
pub mod control;
pub mod error;
pub mod machine;
pub mod parked;
pub mod partition;
pub mod producers;
pub mod read;
pub mod topic_config;

pub use append::Appended;
pub use error::{AppendError, FetchError, TopicError};
pub use machine::ShardState;

use crate::base::ids::{ShardId, StageSequence, TopicId};
use crate::env::Env;
use crate::journal::{
    CommitTimes, EntryKind, Journal, JournalConfig, JournalError, Poisoned, RecoveryReport,
    StagedEntry,
};
use crate::limits::{CHECKPOINT_INTERVAL, CHECKPOINT_JOURNAL_BYTES_MIN, CHECKPOINT_JOURNAL_SHARE};
use crate::metrics::JournalMetrics;
use bytes::Bytes;
use catalog::Catalog;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// One shard, on the core that owns it.
#[derive(Clone)]
pub struct Shard {
    inner: Rc<Inner>,
}

/// What the clones of a [`Shard`] share.
pub struct Inner {
    env: Env,
    journal: Journal,
    state: Rc<RefCell<ShardState>>,
    closing: Cell<bool>,
    last_ticket: Cell<StageSequence>,
    checkpoint_bytes: Cell<u64>,
}

impl std::ops::Deref for Shard {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl Shard {
    /// Opens a shard: recovers its journal and rebuilds its state. Everything it trusts is durable
    /// when this returns.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails or the data must be refused.
    pub async fn open(
        env: Env,
        config: JournalConfig,
    ) -> Result<(Self, RecoveryReport), JournalError> {
        let shard = config.shard;
        let state = Rc::new(RefCell::new(ShardState::new(shard)));
        let machine: Rc<RefCell<dyn crate::journal::StateMachine>> = state.clone();
        let (journal, report) = Journal::open(env.clone(), config, machine).await?;
        let shard = Self {
            inner: Rc::new(Inner {
                env,
                journal,
                state,
                closing: Cell::new(false),
                last_ticket: Cell::new(StageSequence(0)),
                checkpoint_bytes: Cell::new(0),
            }),
        };
        shard.release_dead();
        Ok((shard, report))
    }

    /// Which shard this is.
    #[must_use]
    pub fn id(&self) -> ShardId {
        self.state.borrow().shard
    }

    /// Waits until everything staged up to `ticket` is durable. Ticket 0 (a batch from before this
    /// process) is.
    ///
    /// # Errors
    /// [`Poisoned`] if the disk failed: the batch may or may not exist.
    pub async fn durable(&self, ticket: StageSequence) -> Result<(), Poisoned> {
        self.journal.committed(ticket).await
    }

    /// When the block of a durable ticket was written, if it was not too long ago.
    #[must_use]
    pub fn commit_times(&self, ticket: StageSequence) -> Option<CommitTimes> {
        self.journal.times_of(ticket)
    }

    /// Waits while too much is staged and not yet written: a producer that is held here is not read
    /// from, which is the back-pressure it feels.
    ///
    /// # Errors
    /// [`Poisoned`] if the disk failed.
    pub async fn room(&self) -> Result<(), Poisoned> {
        self.journal.room().await
    }

    /// The journal's figures.
    #[must_use]
    pub fn journal_metrics(&self) -> Rc<JournalMetrics> {
        self.journal.metrics()
    }

    /// Number of partitions that have, or had, records.
    #[must_use]
    pub fn partition_count(&self) -> usize {
        self.state.borrow().partitions.len()
    }

    /// Number of partitions with damage.
    #[must_use]
    pub fn quarantined_count(&self) -> usize {
        let state = self.state.borrow();
        state
            .partitions
            .values()
            .filter(|partition| partition.quarantine.is_some())
            .count()
    }

    /// Lets go of the partitions of topics that `catalog` says are deleted. Their ids are noted in
    /// this shard's journal; their room is given back once that note is durable.
    pub fn drop_deleted(&self, catalog: &Catalog) {
        if self.closing.get() || self.journal.poisoned().is_some() {
            return; // The next start compares with the catalogue again.
        }
        let gone: Vec<TopicId> = {
            let state = self.state.borrow();
            let mut ids: Vec<TopicId> = state.partitions.keys().map(|key| key.topic).collect();
            ids.sort_unstable();
            ids.dedup();
            ids.retain(|id| catalog.was_deleted(*id));
            ids
        };
        for id in gone {
            for (key, partition) in &mut self.state.borrow_mut().partitions {
                if key.topic == id {
                    partition.parked.wake_all();
                }
            }
            self.stage_state(EntryKind::TopicDropped, machine::encode_topic_dropped(id));
        }
    }

    fn stage_state(&self, kind: EntryKind, body: Vec<u8>) -> StageSequence {
        self.stage_entry(StagedEntry::State {
            kind,
            body: Bytes::from(body),
        })
    }

    fn stage_entry(&self, entry: StagedEntry) -> StageSequence {
        let ticket = self.journal.stage(entry);
        self.last_ticket.set(ticket);
        ticket
    }

    /// Hands dead extents back to the journal.
    fn release_dead(&self) {
        let released = std::mem::take(&mut self.state.borrow_mut().released);
        for extent in released {
            self.journal.release(extent);
        }
    }

    /// Keeps house until the shard closes: gives back dead room, and checkpoints when enough was
    /// journalled since the last one that replaying it would cost time. Run as a task of its own.
    pub async fn keep_house(self) {
        while !self.closing.get() && self.journal.poisoned().is_none() {
            self.env.clock().sleep(CHECKPOINT_INTERVAL).await;
            if self.closing.get() {
                // The close makes a checkpoint of its own.
                break;
            }
            self.release_dead();
            // A checkpoint names every extent, so a large one is worth making less often.
            let worth_bytes = CHECKPOINT_JOURNAL_SHARE * self.checkpoint_bytes.get();
            if self.journal.replay_bytes() < worth_bytes.max(CHECKPOINT_JOURNAL_BYTES_MIN) {
                continue;
            }
            if let Err(error) = self.checkpoint().await {
                tracing::error!(shard = self.id().0, %error, "the checkpoint failed");
            }
        }
    }

    /// Writes a checkpoint of the durable state, so that the next start replays little.
    ///
    /// # Errors
    /// [`JournalError`] if the disk refuses it. The journal itself is whole without it.
    pub async fn checkpoint(&self) -> Result<(), JournalError> {
        let bytes = checkpoint::encode(&self.state.borrow());
        self.checkpoint_bytes.set(bytes.len() as u64);
        self.journal.checkpoint(bytes).await
    }

    /// Refuses new appends, commits what is staged, checkpoints, seals and closes the journal.
    ///
    /// # Errors
    /// [`JournalError`] if the disk fails meanwhile.
    pub async fn close(&self) -> Result<(), JournalError> {
        self.closing.set(true);
        if self.last_ticket.get() > StageSequence(0)
            && self.durable(self.last_ticket.get()).await.is_ok()
        {
            // One at a time: the house task may be in the middle of one.
            self.journal.checkpoint_ended().await;
            self.checkpoint().await?;
        }
        self.journal.close().await
    }
}
