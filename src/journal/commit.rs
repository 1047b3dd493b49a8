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

pub(super) mod ahead;
mod core;
mod tickets;
mod times;

pub(super) use self::core::{Core, DurableEnd, Parts, extent, location, view};
pub use self::times::CommitTimes;

use super::CommitMode;
use super::format::{self, SealReason, SegmentMark};
use super::pack::{Draft, Plan, SMALL_BLOCK_BYTES};
use super::segment;
use crate::base::ids::BlockSequence;
use crate::env::sim::Bug;
use crate::env::{Clock, File, SharedBuffer};
use futures_util::stream::{FuturesUnordered, Stream};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

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
    times: CommitTimes,
    flushed: bool,
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
    let place = planner.place_of(SMALL_BLOCK_BYTES);
    drop(planner);
    if !sealed && core.ahead.borrow().is_in_the_way(&place) {
        return Poll::Pending;
    }
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
    assert!(
        !core.tickets.is_poisoned(),
        "nothing is written after a failure"
    );
    assert!(!core.writer_ended.get(), "only the writer writes");
    let mut planner = core.planner.borrow_mut();
    let place = planner.place_of(draft.block_len());
    if core.ahead.borrow().is_in_the_way(&place) {
        core.blocked.set(true);
        return;
    }
    let wants_zeros = core.ahead.borrow_mut().place(&place);
    let file = active_file(core);
    let mut buffer = file.buffer_unwiped(draft.block_len());
    assert_eq!(buffer.len(), draft.block_len());
    let offset = planner.pack(draft, buffer.as_mut());
    assert_eq!(offset, place.start, "a block lies where it was placed");
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
    if wants_zeros {
        ahead::write_zeros(core);
    }
    push_write(core, file, buffer, offset, header.sequence, writes);
}

/// Begins the next segment with its mark; the block that did not fit follows by itself.
fn roll(core: &Rc<Core>, writes: &mut FuturesUnordered<Write>) {
    let mut segments = core.segments.borrow_mut();
    let Some(active) = segments.roll() else {
        drop(segments);
        core.blocked.set(true);
        segment::keep_house(core);
        return;
    };
    let (number, fresh) = (active.number, active.fresh);
    core.ahead.borrow_mut().roll(number, active.written);
    drop(segments);
    core.ahead
        .borrow_mut()
        .place(&(0..SMALL_BLOCK_BYTES as u64));
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
            let place = planner.place_of(SMALL_BLOCK_BYTES);
            core.ahead.borrow_mut().place(&place);
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
    assert!(
        offset + buffer.len() as u64 <= core.config.segment_bytes,
        "inside its segment"
    );
    assert_eq!(
        core.planner.borrow().tail().sequence,
        sequence,
        "the block packed last"
    );
    let counters = &core.counters;
    counters.blocks.inc();
    counters.written.add(buffer.len() as u64);
    counters.block.record(buffer.len() as u64);
    counters
        .in_flight
        .set(core.planner.borrow().in_flight() as i64);
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
    let began_ns = clock.now_ns();
    let flushes = core.config.commit_mode == CommitMode::Fdatasync;
    if flushes && core.env.planted(Bug::FlushBeforeWriteCompletes) {
        let both = (file.write_all_at(buffer, offset), file.sync_data());
        let (written, flushed) = futures_lite::future::zip(both.0, both.1).await;
        let written_ns = clock.now_ns();
        return Written {
            sequence,
            result: written.and(flushed),
            times: CommitTimes {
                began_ns,
                written_ns,
                flushed_ns: written_ns,
                released_ns: 0,
            },
            flushed: false,
        };
    }
    let mut result = file.write_all_at(buffer, offset).await;
    let written_ns = clock.now_ns();
    let mut flushed_ns = written_ns;
    let flushed = flushes && result.is_ok();
    if flushes && result.is_ok() {
        result = file.sync_data().await;
        if result.is_err() && core.env.planted(Bug::FailedFlushRetried) {
            result = file.sync_data().await;
        }
        flushed_ns = clock.now_ns();
    }
    Written {
        sequence,
        result,
        times: CommitTimes {
            began_ns,
            written_ns,
            flushed_ns,
            released_ns: 0,
        },
        flushed,
    }
}

/// A write ended: the durable prefix may have grown.
fn finish_write(core: &Rc<Core>, written: Written) {
    let times = written.times;
    core.counters
        .write
        .record(times.written_ns - times.began_ns);
    if written.flushed {
        core.counters.flushes.inc();
        core.counters
            .flush
            .record(times.flushed_ns - times.written_ns);
    }
    if let Err(error) = written.result {
        core.poison("a journal block could not be made durable", &error);
        return;
    }
    if core.tickets.is_poisoned() {
        return;
    }
    assert!(
        core.planner.borrow().in_flight() > 0,
        "a write ends while in flight"
    );
    // The write ended just now: what it saw of the clock will do for all that follows from it.
    core.last_commit_ns.set(times.flushed_ns);
    core.planner.borrow_mut().written(written.sequence, times);
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
