//! What the handle, the writer, the readers and the house task of one journal share, and what
//! callers wait on. Every field is borrowed for a moment only, never across an await.

use super::ahead::Ahead;
use super::tickets::Tickets;
use super::times::{CommitTimes, RecentTimes};
use crate::base::ids::{BlockSequence, Position, StageSequence};
use crate::env::sim::Bug;
use crate::env::{Env, SharedBuffer};
use crate::journal::format::{self, EntryKind, Header};
use crate::journal::pack::{InFlight, Planner};
use crate::journal::reader::Reader;
use crate::journal::segment::{self, Segments};
use crate::journal::space::Space;
use crate::journal::{
    EntryView, Extent, JournalConfig, JournalError, Location, Poisoned, StagedEntry, StateMachine,
};
use crate::metrics::JournalMetrics;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Where the durable and applied prefix ends: what a checkpoint names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::journal) struct DurableEnd {
    /// Last durable block.
    pub sequence: BlockSequence,
    /// Where it starts.
    pub position: Position,
    /// Where the next one starts, if it fits.
    pub end: Position,
    /// Its digest.
    pub digest: u32,
    /// Nonce of its segment.
    pub incarnation: u64,
}

/// Everything of one journal that its handle, its writer and its readers share.
pub(in crate::journal) struct Core {
    pub(in crate::journal) env: Env,
    pub(in crate::journal) config: JournalConfig,
    /// Random id of the journal.
    pub(in crate::journal) journal: u64,
    pub(in crate::journal) planner: RefCell<Planner>,
    pub(in crate::journal) segments: RefCell<Segments>,
    pub(in crate::journal) ahead: RefCell<Ahead>,
    pub(in crate::journal) space: RefCell<Space>,
    pub(in crate::journal) reader: RefCell<Reader>,
    pub(in crate::journal) counters: Rc<JournalMetrics>,
    pub(in crate::journal) durable_end: Cell<DurableEnd>,
    /// A checkpoint is being written.
    pub(in crate::journal) checkpointing: Cell<bool>,
    /// The segment house task runs.
    pub(in crate::journal) housekeeping: Cell<bool>,
    pub(super) tickets: Tickets,
    recent_times: RefCell<RecentTimes>,
    pub(super) writer_waker: RefCell<Option<Waker>>,
    /// When the last block became durable.
    pub(super) last_commit_ns: Cell<u64>,
    /// The planner was asked in vain; something must happen before it is asked again.
    pub(super) blocked: Cell<bool>,
    pub(super) closing: Cell<bool>,
    pub(super) writer_ended: Cell<bool>,
    machine: Rc<RefCell<dyn StateMachine>>,
    room_waiters: RefCell<Vec<Waker>>,
    close_waiters: RefCell<Vec<Waker>>,
    applying: Cell<bool>,
}

/// What recovery hands over.
pub(in crate::journal) struct Parts {
    pub(in crate::journal) env: Env,
    pub(in crate::journal) config: JournalConfig,
    pub(in crate::journal) journal: u64,
    pub(in crate::journal) machine: Rc<RefCell<dyn StateMachine>>,
    pub(in crate::journal) planner: Planner,
    pub(in crate::journal) segments: Segments,
    pub(in crate::journal) space: Space,
    pub(in crate::journal) durable_end: DurableEnd,
    pub(in crate::journal) counters: Rc<JournalMetrics>,
}

impl Core {
    /// Puts the parts together. The writer is started by `start`.
    pub(in crate::journal) fn new(parts: Parts) -> Rc<Core> {
        let mut planner = parts.planner;
        if parts.env.planted(Bug::WatermarkPastDurable) {
            planner.plant_watermark_past_durable();
        }
        let reader = Reader::new(parts.config.cache_bytes_max);
        let now_ns = parts.env.clock().now_ns();
        let ahead = parts.segments.ahead(&parts.config);
        Rc::new(Core {
            env: parts.env,
            config: parts.config,
            journal: parts.journal,
            planner: RefCell::new(planner),
            ahead: RefCell::new(ahead),
            segments: RefCell::new(parts.segments),
            space: RefCell::new(parts.space),
            reader: RefCell::new(reader),
            counters: parts.counters,
            durable_end: Cell::new(parts.durable_end),
            checkpointing: Cell::new(false),
            housekeeping: Cell::new(false),
            machine: parts.machine,
            tickets: Tickets::default(),
            recent_times: RefCell::default(),
            room_waiters: RefCell::new(Vec::new()),
            close_waiters: RefCell::new(Vec::new()),
            writer_waker: RefCell::new(None),
            last_commit_ns: Cell::new(now_ns),
            applying: Cell::new(false),
            blocked: Cell::new(false),
            closing: Cell::new(false),
            writer_ended: Cell::new(false),
        })
    }

    pub(in crate::journal) fn stage(&self, entry: StagedEntry) -> StageSequence {
        assert!(!self.closing.get(), "staged after close");
        let mut planner = self.planner.borrow_mut();
        let sequence = planner.stage(entry);
        if self.tickets.is_poisoned() {
            planner.drop_staged();
        }
        self.note_staged(&planner);
        drop(planner);
        self.wake_writer();
        StageSequence(sequence)
    }

    pub(in crate::journal) async fn committed(
        &self,
        sequence: StageSequence,
    ) -> Result<(), Poisoned> {
        self.tickets.wait(sequence.0).await
    }

    pub(in crate::journal) fn committed_sequence(&self) -> StageSequence {
        StageSequence(self.tickets.committed())
    }

    pub(in crate::journal) fn times_of(&self, sequence: StageSequence) -> Option<CommitTimes> {
        self.recent_times.borrow().of(sequence.0)
    }

    pub(in crate::journal) async fn room(&self) -> Result<(), Poisoned> {
        let mut waited = false;
        poll_fn(|context| {
            if let Some(poisoned) = self.tickets.poisoned() {
                return Poll::Ready(Err(poisoned));
            }
            if self.planner.borrow().staged_bytes() <= self.config.staged_bytes_max {
                return Poll::Ready(Ok(()));
            }
            if !waited {
                waited = true;
                self.counters.room_waits.inc();
            }
            self.room_waiters.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    pub(in crate::journal) fn release(self: &Rc<Self>, extent: Extent) {
        assert!(extent.len_bytes > 0, "an extent is not empty");
        assert!(
            extent.position < self.durable_end.get().end,
            "only durable records die"
        );
        let segment = extent.position.0 / self.config.segment_bytes;
        self.space.borrow_mut().died(segment, extent.len_bytes);
        segment::keep_house(self);
    }

    pub(in crate::journal) fn replay_bytes(&self) -> u64 {
        let end = self.durable_end.get().end.0;
        let from = self
            .space
            .borrow()
            .replay_from()
            .map_or(0, |position| position.0);
        end.saturating_sub(from)
    }

    pub(in crate::journal) fn metrics(&self) -> Rc<JournalMetrics> {
        Rc::clone(&self.counters)
    }

    pub(in crate::journal) fn poisoned(&self) -> Option<Poisoned> {
        self.tickets.poisoned()
    }

    pub(in crate::journal) fn is_applying(&self) -> bool {
        self.applying.get()
    }

    pub(in crate::journal) async fn close(&self) -> Result<(), JournalError> {
        self.closing.set(true);
        self.wake_writer();
        self.when(|| {
            let quiet = !self.housekeeping.get() && !self.ahead.borrow().is_running();
            self.writer_ended.get() && quiet
        })
        .await;
        match self.tickets.poisoned() {
            Some(poisoned) => Err(JournalError::Poisoned(poisoned)),
            None => Ok(()),
        }
    }

    pub(in crate::journal) async fn checkpoint_ended(&self) {
        self.when(|| !self.checkpointing.get()).await;
    }

    /// Waits for something that is followed by [`Core::wake_closers`].
    async fn when(&self, done: impl Fn() -> bool) {
        poll_fn(|context| {
            if done() {
                return Poll::Ready(());
            }
            self.close_waiters
                .borrow_mut()
                .push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Whether nothing more will be written, so that housekeeping may end.
    pub(in crate::journal) fn is_ending(&self) -> bool {
        self.writer_ended.get() || self.tickets.is_poisoned()
    }

    /// Something the writer may have waited for has happened.
    pub(in crate::journal) fn unblock_writer(&self) {
        self.blocked.set(false);
        self.wake_writer();
    }

    pub(in crate::journal) fn wake_closers(&self) {
        let wakers = std::mem::take(&mut *self.close_waiters.borrow_mut());
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The disk failed: nothing is acknowledged any more, and the server is told.
    pub(in crate::journal) fn poison(&self, what: &str, error: &io::Error) {
        let reason = format!("shard {}: {what}: {error}", self.config.shard);
        let poisoned = Poisoned {
            reason: reason.into(),
        };
        if !self.tickets.poison(poisoned.clone()) {
            return;
        }
        tracing::error!("{poisoned}");
        self.planner.borrow_mut().drop_staged();
        self.wake_room();
        self.wake_writer();
        (self.config.on_poison)(&poisoned);
    }

    fn wake_writer(&self) {
        let waker = self.writer_waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn wake_room(&self) {
        let wakers = std::mem::take(&mut *self.room_waiters.borrow_mut());
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(super) fn note_staged(&self, planner: &Planner) {
        let bytes = i64::try_from(planner.staged_bytes()).unwrap_or(i64::MAX);
        self.counters.staged.set(bytes);
        self.counters.in_flight.set(planner.in_flight() as i64);
    }

    /// Hands a durable block to the state machine, then releases its tickets.
    pub(super) fn apply_block(&self, block: &InFlight) {
        let buffer = block
            .buffer
            .as_ref()
            .expect("a block keeps its bytes until it is applied");
        let end = self.mark_durable(block, buffer);
        assert_eq!(end.sequence, block.header.sequence);
        assert!(
            !self.tickets.is_poisoned(),
            "nothing is applied after a failure"
        );
        assert!(
            !self.applying.replace(true),
            "blocks are applied one after the other"
        );
        let mut machine = self.machine.borrow_mut();
        let mut payload = 0;
        for index in 0..block.header.entry_count as usize {
            let entry = format::decode_entry(&block.header, index, buffer);
            let entry = entry.expect("the block was packed by this process");
            payload += u64::from(entry.body_len);
            let Some(view) = view(&block.header, &entry, buffer) else {
                continue;
            };
            if let EntryView::Records { extent, .. } = view {
                self.space
                    .borrow_mut()
                    .lives(block.segment, extent.len_bytes);
            }
            machine.apply(location(&block.header), view);
        }
        drop(machine);
        self.applying.set(false);
        self.counters.payload.add(payload);
        if let Some(times) = block.times {
            let released_ns = self.last_commit_ns.get();
            let times = CommitTimes {
                released_ns,
                ..times
            };
            self.recent_times.borrow_mut().note(block.stage_last, times);
        }
        if !self.env.planted(Bug::AcknowledgeBeforeFlush) {
            self.tickets.release(block.stage_last);
        }
    }

    fn mark_durable(&self, block: &InFlight, buffer: &SharedBuffer) -> DurableEnd {
        let header = &block.header;
        let before = self.durable_end.get();
        assert_eq!(
            header.sequence.0,
            before.sequence.0 + 1,
            "blocks become durable in order"
        );
        let end = DurableEnd {
            sequence: header.sequence,
            position: header.position,
            end: Position(header.position.0 + buffer.len() as u64),
            digest: header.digest,
            incarnation: header.incarnation,
        };
        assert!(end.end > before.end, "the journal only grows");
        self.durable_end.set(end);
        let offset = end.end.0 - block.segment * self.config.segment_bytes;
        self.space
            .borrow_mut()
            .wrote(block.segment, offset, header.sequence);
        let cached = self
            .reader
            .borrow_mut()
            .keep(header.position, buffer.clone());
        self.counters.cached.set(cached as i64);
        end
    }
}

/// Where a block's entries stand.
pub(in crate::journal) fn location(header: &Header) -> Location {
    Location {
        block: header.sequence,
        position: header.position,
        term: header.term,
    }
}

/// An entry as the state machine sees it; `None` for the journal's own.
pub(in crate::journal) fn view<'block>(
    header: &Header,
    entry: &format::DirectoryEntry,
    block: &'block [u8],
) -> Option<EntryView<'block>> {
    let start = header.header_len as usize + entry.body_offset as usize;
    assert!(block.len() >= header.block_len(), "a whole block is viewed");
    let body = &block[start..start + entry.body_len as usize];
    if entry.kind.is_internal() {
        return None;
    }
    if entry.kind != EntryKind::Records {
        return Some(EntryView::State {
            kind: entry.kind,
            body,
        });
    }
    Some(EntryView::Records {
        partition: entry.partition,
        base_offset: entry.base_offset,
        record_count: entry.record_count,
        extent: extent(header, entry),
        batches: body,
    })
}

/// Where the batches of an entry lie.
pub(in crate::journal) fn extent(header: &Header, entry: &format::DirectoryEntry) -> Extent {
    let start = u64::from(header.header_len) + u64::from(entry.body_offset);
    Extent {
        position: Position(header.position.0 + start),
        len_bytes: entry.body_len,
        leader_epoch: entry.leader_epoch,
        base_offset: entry.base_offset,
    }
}
