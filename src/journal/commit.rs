//! The commit loop: *a ticket is released only when its block and every earlier one are durable (by
//! the completion of its `O_DSYNC` write, or by an `fdatasync` submitted after its write
//! completed); tickets are released in position order; after one failure no ticket is ever
//! released.*
//!
//! One writer task per journal owns every write: its futures are never dropped before they end,
//! because a dropped write may still land. It packs as soon as it may (no linger): while
//! `commit_depth` blocks are in flight, everything staged gathers into the next one. A block that
//! completes ahead of an earlier one waits for it. Newly durable blocks are applied to the state
//! machine in order, then their tickets are released: so who holds a released ticket sees its
//! effect.
//!
//! After a quiet time the writer seals the last block; an idle journal then writes nothing and has
//! no timer. Lives on the core of its shard.

mod tickets;

use super::format::{self, EntryKind, Header, SealReason, SegmentMark};
use super::pack::{Draft, InFlight, Plan, Planner, SMALL_BLOCK_BYTES};
use super::reader::Reader;
use super::segment::{self, Segments};
use super::space::Space;
use super::{
    CommitMode, EntryView, Extent, JournalConfig, JournalError, Location, Poisoned, StagedEntry,
    StateMachine,
};
use crate::base::ids::{BlockSequence, Position, StageSequence};
use crate::env::sim::Bug;
use crate::env::{Clock, Env, File, SharedBuffer};
use crate::metrics::JournalMetrics;
use futures_util::stream::{FuturesUnordered, Stream};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tickets::Tickets;

/// Where the durable and applied prefix ends: what a checkpoint names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct DurableEnd {
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
pub(super) struct Core {
    pub(super) env: Env,
    pub(super) config: JournalConfig,
    /// Random id of the journal.
    pub(super) journal: u64,
    pub(super) planner: RefCell<Planner>,
    pub(super) segments: RefCell<Segments>,
    pub(super) space: RefCell<Space>,
    pub(super) reader: RefCell<Reader>,
    pub(super) counters: Rc<JournalMetrics>,
    pub(super) durable_end: Cell<DurableEnd>,
    /// A checkpoint is being written.
    pub(super) checkpointing: Cell<bool>,
    /// The segment house task runs.
    pub(super) housekeeping: Cell<bool>,
    machine: Rc<RefCell<dyn StateMachine>>,
    tickets: Tickets,
    room_waiters: RefCell<Vec<Waker>>,
    close_waiters: RefCell<Vec<Waker>>,
    writer_waker: RefCell<Option<Waker>>,
    last_commit_ns: Cell<u64>,
    applying: Cell<bool>,
    blocked: Cell<bool>,
    closing: Cell<bool>,
    writer_ended: Cell<bool>,
}

/// What recovery hands over.
pub(super) struct Parts {
    pub(super) env: Env,
    pub(super) config: JournalConfig,
    pub(super) journal: u64,
    pub(super) machine: Rc<RefCell<dyn StateMachine>>,
    pub(super) planner: Planner,
    pub(super) segments: Segments,
    pub(super) space: Space,
    pub(super) durable_end: DurableEnd,
    pub(super) counters: Rc<JournalMetrics>,
}

impl Core {
    /// Puts the parts together. The writer is started by [`start`].
    pub(super) fn new(parts: Parts) -> Rc<Core> {
        let mut planner = parts.planner;
        if parts.env.planted(Bug::WatermarkPastDurable) {
            planner.plant_watermark_past_durable();
        }
        let reader = Reader::new(parts.config.cache_bytes_max);
        let now_ns = parts.env.clock().now_ns();
        Rc::new(Core {
            env: parts.env,
            config: parts.config,
            journal: parts.journal,
            planner: RefCell::new(planner),
            segments: RefCell::new(parts.segments),
            space: RefCell::new(parts.space),
            reader: RefCell::new(reader),
            counters: parts.counters,
            durable_end: Cell::new(parts.durable_end),
            checkpointing: Cell::new(false),
            housekeeping: Cell::new(false),
            machine: parts.machine,
            tickets: Tickets::default(),
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

    pub(super) fn stage(&self, entry: StagedEntry) -> StageSequence {
        assert!(!self.closing.get(), "staged after close");
        let now_ns = self.env.clock().now_ns();
        let mut planner = self.planner.borrow_mut();
        let sequence = planner.stage(entry, now_ns);
        if self.tickets.is_poisoned() {
            planner.drop_staged();
        }
        self.note_staged(&planner);
        drop(planner);
        self.wake_writer();
        StageSequence(sequence)
    }

    pub(super) async fn committed(&self, sequence: StageSequence) -> Result<(), Poisoned> {
        self.tickets.wait(sequence.0).await
    }

    pub(super) fn committed_sequence(&self) -> StageSequence {
        StageSequence(self.tickets.committed())
    }

    pub(super) async fn room(&self) -> Result<(), Poisoned> {
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

    pub(super) fn release(self: &Rc<Self>, extent: Extent) {
        let segment = extent.position.0 / self.config.segment_bytes;
        self.space.borrow_mut().died(segment, extent.len_bytes);
        segment::keep_house(self);
    }

    pub(super) fn replay_bytes(&self) -> u64 {
        let end = self.durable_end.get().end.0;
        let from = self
            .space
            .borrow()
            .replay_from()
            .map_or(0, |position| position.0);
        end.saturating_sub(from)
    }

    pub(super) fn metrics(&self) -> Rc<JournalMetrics> {
        Rc::clone(&self.counters)
    }

    pub(super) fn poisoned(&self) -> Option<Poisoned> {
        self.tickets.poisoned()
    }

    pub(super) fn is_applying(&self) -> bool {
        self.applying.get()
    }

    pub(super) async fn close(&self) -> Result<(), JournalError> {
        self.closing.set(true);
        self.wake_writer();
        poll_fn(|context| {
            if self.writer_ended.get() && !self.housekeeping.get() {
                return Poll::Ready(());
            }
            self.close_waiters
                .borrow_mut()
                .push(context.waker().clone());
            Poll::Pending
        })
        .await;
        match self.tickets.poisoned() {
            Some(poisoned) => Err(JournalError::Poisoned(poisoned)),
            None => Ok(()),
        }
    }

    /// Whether nothing more will be written, so that housekeeping may end.
    pub(super) fn is_ending(&self) -> bool {
        self.writer_ended.get() || self.tickets.is_poisoned()
    }

    /// Something the writer may have waited for has happened.
    pub(super) fn unblock_writer(&self) {
        self.blocked.set(false);
        self.wake_writer();
    }

    pub(super) fn wake_closers(&self) {
        let wakers = std::mem::take(&mut *self.close_waiters.borrow_mut());
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The disk failed: nothing is acknowledged any more, and the server is told.
    pub(super) fn poison(&self, what: &str, error: &io::Error) {
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

    fn wake_room(&self) {
        let wakers = std::mem::take(&mut *self.room_waiters.borrow_mut());
        wakers.into_iter().for_each(Waker::wake);
    }

    fn note_staged(&self, planner: &Planner) {
        let bytes = i64::try_from(planner.staged_bytes()).unwrap_or(i64::MAX);
        self.counters.staged.set(bytes);
        self.counters.in_flight.set(planner.in_flight() as i64);
    }

    /// Hands a durable block to the state machine, then releases its tickets.
    fn apply_block(&self, block: &InFlight) {
        let buffer = block
            .buffer
            .as_ref()
            .expect("a block keeps its bytes until it is applied");
        let end = self.mark_durable(block, buffer);
        assert_eq!(end.sequence, block.header.sequence);
        self.applying.set(true);
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
pub(super) fn location(header: &Header) -> Location {
    Location {
        block: header.sequence,
        position: header.position,
        term: header.term,
    }
}

/// An entry as the state machine sees it; `None` for the journal's own.
pub(super) fn view<'block>(
    header: &Header,
    entry: &format::DirectoryEntry,
    block: &'block [u8],
) -> Option<EntryView<'block>> {
    let start = header.header_len as usize + entry.body_offset as usize;
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
pub(super) fn extent(header: &Header, entry: &format::DirectoryEntry) -> Extent {
    let start = u64::from(header.header_len) + u64::from(entry.body_offset);
    Extent {
        position: Position(header.position.0 + start),
        len_bytes: entry.body_len,
        leader_epoch: entry.leader_epoch,
        base_offset: entry.base_offset,
    }
}

/// Starts the writer and the housekeeping of a journal that recovery has opened.
pub(super) fn start(core: &Rc<Core>) {
    let writer = run(Rc::clone(core));
    core.env.spawn("journal writer", writer);
    segment::keep_house(core);
}

/// One write under way.
struct Written {
    sequence: BlockSequence,
    result: io::Result<()>,
    write_ns: u64,
    flush_ns: Option<u64>,
}

type Write = Pin<Box<dyn Future<Output = Written>>>;

/// What the writer does next.
enum Event {
    Written(Written),
    Submit,
    Seal,
    End,
}

/// The writer. The only place where blocks are written while the journal is open.
async fn run(core: Rc<Core>) {
    let mut writes: FuturesUnordered<Write> = FuturesUnordered::new();
    let mut quiet = Quiet {
        clock: core.env.clock(),
        timer: None,
    };
    loop {
        let event = poll_fn(|context| next_event(&core, &mut writes, &mut quiet, context)).await;
        match event {
            Event::Written(written) => finish_write(&core, written),
            Event::Submit => submit(&core, &mut writes),
            Event::Seal => seal(&core, &mut writes),
            Event::End => break,
        }
    }
    assert!(writes.is_empty(), "the writer never drops a write");
    core.writer_ended.set(true);
    core.wake_closers();
}

fn next_event(
    core: &Core,
    writes: &mut FuturesUnordered<Write>,
    quiet: &mut Quiet,
    context: &mut Context<'_>,
) -> Poll<Event> {
    if let Poll::Ready(Some(written)) = Pin::new(&mut *writes).poll_next(context) {
        return Poll::Ready(Event::Written(written));
    }
    *core.writer_waker.borrow_mut() = Some(context.waker().clone());
    if core.tickets.is_poisoned() {
        return match writes.is_empty() {
            true => Poll::Ready(Event::End),
            false => Poll::Pending,
        };
    }
    let planner = core.planner.borrow();
    if planner.wants_block() && !core.blocked.get() {
        return Poll::Ready(Event::Submit);
    }
    if !planner.is_idle() {
        return Poll::Pending;
    }
    let sealed = planner.tail().sealed;
    drop(planner);
    match (core.closing.get(), sealed) {
        (true, true) => Poll::Ready(Event::End),
        (true, false) => Poll::Ready(Event::Seal),
        (false, true) => Poll::Pending,
        (false, false) => {
            let since = core.last_commit_ns.get();
            let over = quiet.poll_over(since, core.config.idle_seal, context);
            over.map(|()| Event::Seal)
        }
    }
}

/// The timer behind the seal. Under load it is set once per quiet time, not once per commit.
struct Quiet {
    clock: Clock,
    timer: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Quiet {
    /// Ready once `quiet` has passed since the instant `since_ns`.
    fn poll_over(&mut self, since_ns: u64, quiet: Duration, context: &mut Context<'_>) -> Poll<()> {
        let quiet_ns = u64::try_from(quiet.as_nanos()).unwrap_or(u64::MAX);
        loop {
            if let Some(timer) = &mut self.timer {
                if timer.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.timer = None;
            }
            let passed_ns = self.clock.now_ns().saturating_sub(since_ns);
            if passed_ns >= quiet_ns {
                return Poll::Ready(());
            }
            let clock = self.clock.clone();
            let rest = Duration::from_nanos(quiet_ns - passed_ns);
            self.timer = Some(Box::pin(async move { clock.sleep(rest).await }));
        }
    }
}

fn submit(core: &Rc<Core>, writes: &mut FuturesUnordered<Write>) {
    let plan = core.planner.borrow_mut().plan();
    match plan {
        Plan::Wait => core.blocked.set(true),
        Plan::Roll => roll(core, writes),
        Plan::Block(draft) => submit_block(core, draft, writes),
    }
}

fn submit_block(core: &Rc<Core>, draft: Draft, writes: &mut FuturesUnordered<Write>) {
    let file = active_file(core);
    let mut buffer = file.buffer(draft.block_len());
    let mut planner = core.planner.borrow_mut();
    let offset = planner.pack(draft, buffer.as_mut());
    let buffer = buffer.freeze();
    let header = planner.keep(buffer.clone());
    let stage_packed = planner.stage_packed();
    let has_room = planner.staged_bytes() <= core.config.staged_bytes_max;
    core.note_staged(&planner);
    drop(planner);
    core.counters.entries.add(u64::from(header.entry_count));
    core.counters
        .block_entries
        .record(u64::from(header.entry_count));
    if core.env.planted(Bug::AcknowledgeBeforeFlush) {
        core.tickets.release(stage_packed);
    }
    if has_room {
        core.wake_room();
    }
    push_write(core, file, buffer, offset, header.sequence, writes);
}

/// Begins the next segment with its mark; the block that did not fit follows by itself.
fn roll(core: &Rc<Core>, writes: &mut FuturesUnordered<Write>) {
    let Some((number, fresh)) = core.segments.borrow_mut().roll() else {
        core.blocked.set(true);
        segment::keep_house(core);
        return;
    };
    let file = active_file(core);
    let mut buffer = file.buffer(SMALL_BLOCK_BYTES);
    let incarnation = core.env.random_u64();
    let mut planner = core.planner.borrow_mut();
    let mark = SegmentMark {
        segment: number,
        journal: core.journal,
        previous_incarnation: planner.tail().incarnation,
        segment_bytes: core.config.segment_bytes,
        fresh,
    };
    let offset = planner.pack_mark(&mark, incarnation, buffer.as_mut());
    let buffer = buffer.freeze();
    let header = planner.keep(buffer.clone());
    drop(planner);
    core.space.borrow_mut().begin(number, incarnation);
    core.counters.rolls.inc();
    core.counters.segments.set(core.space.borrow().len() as i64);
    push_write(core, file, buffer, offset, header.sequence, writes);
    segment::keep_house(core);
}

fn seal(core: &Rc<Core>, writes: &mut FuturesUnordered<Write>) {
    let plan = core.planner.borrow().plan_small();
    let ready = core.segments.borrow().has_next();
    match plan {
        _ if core.env.planted(Bug::SealMissing) => core.planner.borrow_mut().skip_seal(),
        Plan::Wait => unreachable!("an idle journal has room for a small block"),
        // The mark of the next segment vouches as well as a seal. Without a next segment (the disk
        // is full) the seal is left out: it only narrows a window, and a close must not hang on it.
        Plan::Roll if ready => roll(core, writes),
        Plan::Roll => core.planner.borrow_mut().skip_seal(),
        Plan::Block(_) => {
            let reason = match core.closing.get() {
                true => SealReason::Close,
                false => SealReason::Idle,
            };
            let file = active_file(core);
            let mut buffer = file.buffer(SMALL_BLOCK_BYTES);
            let mut planner = core.planner.borrow_mut();
            let offset = planner.pack_seal(&format::encode_seal(reason, None), buffer.as_mut());
            let buffer = buffer.freeze();
            let header = planner.keep(buffer.clone());
            drop(planner);
            core.counters.seals.inc();
            push_write(core, file, buffer, offset, header.sequence, writes);
        }
    }
}

fn active_file(core: &Core) -> File {
    core.segments.borrow().active_file()
}

fn push_write(
    core: &Rc<Core>,
    file: File,
    buffer: SharedBuffer,
    offset: u64,
    sequence: BlockSequence,
    writes: &mut FuturesUnordered<Write>,
) {
    let now_ns = core.env.clock().now_ns();
    let counters = &core.counters;
    counters.blocks.inc();
    counters.written.add(buffer.len() as u64);
    counters.block.record(buffer.len() as u64);
    counters
        .in_flight
        .set(core.planner.borrow().in_flight() as i64);
    let staged_at_ns = core.planner.borrow().newest_staged_at_ns();
    if staged_at_ns > 0 {
        counters.waited.record(now_ns.saturating_sub(staged_at_ns));
    }
    writes.push(Box::pin(write_block(
        Rc::clone(core),
        file,
        buffer,
        offset,
        sequence,
    )));
}

async fn write_block(
    core: Rc<Core>,
    file: File,
    buffer: SharedBuffer,
    offset: u64,
    sequence: BlockSequence,
) -> Written {
    let clock = core.env.clock();
    let start_ns = clock.now_ns();
    let flushes = core.config.commit_mode == CommitMode::Fdatasync;
    if flushes && core.env.planted(Bug::FlushBeforeWriteCompletes) {
        let both = (file.write_all_at(buffer, offset), file.sync_data());
        let (written, flushed) = futures_lite::future::zip(both.0, both.1).await;
        return Written {
            sequence,
            result: written.and(flushed),
            write_ns: clock.now_ns() - start_ns,
            flush_ns: None,
        };
    }
    let mut result = file.write_all_at(buffer, offset).await;
    let written_ns = clock.now_ns();
    let mut flush_ns = None;
    if flushes && result.is_ok() {
        result = file.sync_data().await;
        if result.is_err() && core.env.planted(Bug::FailedFlushRetried) {
            result = file.sync_data().await;
        }
        flush_ns = Some(clock.now_ns() - written_ns);
    }
    Written {
        sequence,
        result,
        write_ns: written_ns - start_ns,
        flush_ns,
    }
}

/// A write ended: the durable prefix may have grown.
fn finish_write(core: &Rc<Core>, written: Written) {
    core.counters.write.record(written.write_ns);
    if let Some(flush_ns) = written.flush_ns {
        core.counters.flushes.inc();
        core.counters.flush.record(flush_ns);
    }
    if let Err(error) = written.result {
        core.poison("a journal block could not be made durable", &error);
        return;
    }
    if core.tickets.is_poisoned() {
        return;
    }
    core.last_commit_ns.set(core.env.clock().now_ns());
    core.planner.borrow_mut().written(written.sequence);
    if core.env.planted(Bug::TicketsOutOfOrder) {
        let stage_last = core.planner.borrow().stage_last_of(written.sequence);
        let stage_last = stage_last.max(core.tickets.committed());
        core.tickets.release(stage_last);
    }
    loop {
        let durable = core.planner.borrow_mut().pop_durable();
        let Some(block) = durable else {
            break;
        };
        core.apply_block(&block);
    }
    if !core.segments.borrow().has_next() {
        // The mark of the active segment may just have become durable.
        segment::keep_house(core);
    }
    core.blocked.set(false);
    core.note_staged(&core.planner.borrow());
}
