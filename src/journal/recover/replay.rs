//! Opening a journal: find the newest whole checkpoint, replay what follows, repair the tail, hand
//! over to the writer.

use super::report::{Cut, Damage, DamageKind, RecoveryReport};
use super::scan::{ALIGN, Identity, Scanned, Scanner};
use super::walk::{Cursor, Lost, Place, Step, Walk};
use crate::base::ids::{BlockSequence, Offset, Position};
use crate::env::sim::Bug;
use crate::env::{Env, File, OpenMode};
use crate::journal::checkpoint::{self, Checkpoint};
use crate::journal::commit::{self, Core, DurableEnd, Parts};
use crate::journal::format::{self, DirectoryEntry, EntryError, EntryKind, SealReason};
use crate::journal::pack::{Planner, SMALL_BLOCK_BYTES, Tail};
use crate::journal::segment::{self, FileName, OpenSegment, Segments};
use crate::journal::space::Space;
use crate::journal::store;
use crate::journal::{EntryView, Extent, JournalConfig, JournalError, StateMachine};
use crate::limits::{RECOVERY_REPORTS_MAX, SCAN_BYTES};
use crate::metrics::JournalMetrics;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// The files of a shard's folder.
#[derive(Default)]
struct Inventory {
    /// Segments and their lengths.
    segments: BTreeMap<u64, u64>,
    spares: Vec<PathBuf>,
    unfinished: Vec<PathBuf>,
    checkpoints: Vec<u64>,
    reports: Vec<PathBuf>,
}

/// One opening.
struct Opening {
    env: Env,
    config: JournalConfig,
    machine: Rc<RefCell<dyn StateMachine>>,
    inventory: Inventory,
    space: Space,
    counters: Rc<JournalMetrics>,
    report: RecoveryReport,
    last_end: DurableEnd,
    /// Checkpoint files that are not whole.
    torn_checkpoints: Vec<u64>,
    /// Newest checkpoint that the replayed part of the journal names.
    named_checkpoint: u64,
    /// Replayed blocks that no later block vouches for.
    unvouched: VecDeque<Scanned>,
}

/// See [`crate::journal::Journal::open`].
pub(in crate::journal) async fn open(
    env: Env,
    config: JournalConfig,
    machine: Rc<RefCell<dyn StateMachine>>,
) -> Result<(Rc<Core>, RecoveryReport), JournalError> {
    let start_ns = env.clock().now_ns();
    let mut opening = Opening {
        space: Space::new(config.segment_bytes),
        inventory: take_inventory(&env, &config).await?,
        counters: JournalMetrics::new(),
        report: RecoveryReport::default(),
        last_end: DurableEnd {
            sequence: BlockSequence(0),
            position: Position(0),
            end: Position(0),
            digest: 0,
            incarnation: 0,
        },
        torn_checkpoints: Vec::new(),
        named_checkpoint: 0,
        unvouched: VecDeque::new(),
        env,
        config,
        machine,
    };
    let checkpoint = opening.restore().await?;
    let mut walk = opening.begin(checkpoint).await?;
    let cut = opening.replay(&mut walk).await?;
    opening.judge_checkpoints().await?;
    let core = opening.hand_over(walk, cut).await?;
    let passed_ns = core.env.clock().now_ns() - start_ns;
    let mut report = opening.report;
    report.duration = Duration::from_nanos(passed_ns);
    write_report(&core, &opening.inventory.reports, &mut report).await?;
    commit::start(&core);
    Ok((core, report))
}

async fn take_inventory(env: &Env, config: &JournalConfig) -> Result<Inventory, JournalError> {
    let disk = env.disk();
    let dir = &config.dir;
    if config.create {
        disk.create_dir_all(dir).await?;
        store::sync_ancestors(env, dir).await?;
    }
    let mut inventory = Inventory::default();
    for entry in disk.list(dir).await? {
        let path = dir.join(&entry.name);
        match FileName::parse(&entry.name) {
            FileName::Segment(number) => {
                inventory.segments.insert(number, entry.len_bytes);
            }
            FileName::Spare if entry.len_bytes == config.segment_bytes => {
                inventory.spares.push(path);
            }
            FileName::Spare | FileName::Unfinished => inventory.unfinished.push(path),
            FileName::Checkpoint(number) => inventory.checkpoints.push(number),
            FileName::Report => inventory.reports.push(path),
            FileName::Other => {}
        }
    }
    inventory.checkpoints.sort_unstable();
    if !config.create && inventory.segments.is_empty() {
        return Err(JournalError::missing(
            &segment::segment_path(dir, 0),
            "the store exists, but this shard has no journal",
        ));
    }
    // What was seen must be what a crash leaves: names first, contents when the replay begins.
    disk.sync_dir(dir).await?;
    Ok(inventory)
}

impl Opening {
    fn path(&self, segment: u64) -> PathBuf {
        segment::segment_path(&self.config.dir, segment)
    }

    /// Restores the newest whole checkpoint.
    async fn restore(&mut self) -> Result<Option<Checkpoint>, JournalError> {
        let disk = self.env.disk();
        let mut newest: Option<Checkpoint> = None;
        let mut older = None;
        for &number in self.inventory.checkpoints.iter().rev() {
            self.space.checkpoint_tried(number);
            if older.is_some() {
                continue;
            }
            match checkpoint::load(&disk, &self.config, number).await? {
                None => self.torn_checkpoints.push(number),
                Some(whole) if newest.is_none() => newest = Some(whole),
                Some(whole) => older = Some(whole.kept()),
            }
        }
        let Some(mut checkpoint) = newest else {
            return Ok(None);
        };
        if let Some(older) = older {
            self.space.keep(older);
        }
        self.space.keep(checkpoint.kept());
        let state = std::mem::take(&mut checkpoint.state);
        let restored = self.machine.borrow_mut().restore(&state);
        restored.map_err(|what| {
            let path = segment::checkpoint_path(&self.config.dir, checkpoint.number);
            JournalError::corrupt(&path, checkpoint.last.position, what)
        })?;
        self.report.checkpoint = Some(checkpoint.number);
        Ok(Some(checkpoint))
    }

    /// Flushes what will be replayed, and finds where to start.
    async fn begin(&mut self, checkpoint: Option<Checkpoint>) -> Result<Walk, JournalError> {
        let first = match &checkpoint {
            Some(checkpoint) => checkpoint.last.position.0 / self.config.segment_bytes,
            None => 0,
        };
        let all: BTreeSet<u64> = self.inventory.segments.keys().copied().collect();
        if self.config.create && all.is_empty() {
            self.make_first().await?;
        } else if !all.contains(&first) {
            let what = match checkpoint {
                Some(_) => "the newest checkpoint's replay starts in it",
                None => "no checkpoint is whole, so the replay must start in it",
            };
            return Err(JournalError::missing(&self.path(first), what));
        }
        let replayed: BTreeSet<u64> = self
            .inventory
            .segments
            .keys()
            .copied()
            .filter(|number| *number >= first)
            .collect();
        for (number, expected) in replayed.iter().zip(first..) {
            if *number != expected {
                let what = format!("segment {number:08x} follows it");
                return Err(JournalError::missing(&self.path(expected), what));
            }
            self.check_length(*number)?;
            if !self.env.planted(Bug::RecoveryNotFlushed) {
                let mode = OpenMode::Write;
                let file = self.env.disk().open(&self.path(*number), mode).await?;
                file.sync_data().await?;
            }
        }
        let scanner = Scanner::new(self.env.clone(), self.config.clone());
        match checkpoint {
            Some(checkpoint) => self.begin_at(scanner, replayed, checkpoint).await,
            None => {
                let cursor = Cursor {
                    place: None,
                    sequence: BlockSequence(0),
                    digest: 0,
                    sealed: false,
                    window_bytes: 0,
                };
                Ok(Walk::new(scanner, replayed, cursor, None))
            }
        }
    }

    fn check_length(&self, segment: u64) -> Result<(), JournalError> {
        let len = self.inventory.segments[&segment];
        if len == self.config.segment_bytes {
            return Ok(());
        }
        let what = format!(
            "the file has {len} bytes, segments of this journal have {}",
            self.config.segment_bytes
        );
        let position = Position(segment * self.config.segment_bytes + len);
        Err(JournalError::corrupt(&self.path(segment), position, what))
    }

    /// Begins behind a checkpoint, once its last block is found where it says.
    async fn begin_at(
        &mut self,
        mut scanner: Scanner,
        replayed: BTreeSet<u64>,
        checkpoint: Checkpoint,
    ) -> Result<Walk, JournalError> {
        let last = checkpoint.last;
        let segment_bytes = self.config.segment_bytes;
        let segment = last.position.0 / segment_bytes;
        self.check_old_segments(&mut scanner, &checkpoint, segment)
            .await?;
        let present = |number: u64| self.inventory.segments.contains_key(&number);
        let found = scanner.identity(segment, &present).await?;
        let mark = found.and_then(|identity| identity.mark);
        let offset = last.position.0 - segment * segment_bytes;
        let header = scanner
            .header(segment, offset, Some(last.incarnation))
            .await?;
        let anchored = header.is_some_and(|header| header.digest == last.digest);
        let foreign = mark.is_some_and(|mark| mark.journal != checkpoint.journal);
        if foreign || (!anchored && found.is_none_or(|id| id.incarnation != last.incarnation)) {
            let path = self.path(segment);
            return Err(JournalError::foreign(
                &path,
                "it is not the segment its checkpoint names",
            ));
        }
        if !anchored {
            self.note_anchor(&mut scanner, segment, &last).await?;
        }
        self.last_end = last;
        self.report.replay_from = last.end;
        let cursor = Cursor {
            place: Some(Place {
                segment,
                offset: last.end.0 - segment * segment_bytes,
                identity: Identity {
                    incarnation: last.incarnation,
                    mark,
                },
            }),
            sequence: last.sequence,
            digest: last.digest,
            sealed: false,
            window_bytes: header.map_or(0, |header| header.window_bytes),
        };
        Ok(Walk::new(
            scanner,
            replayed,
            cursor,
            Some(checkpoint.journal),
        ))
    }

    /// The checkpoint's last block is not readable. That is rot of a block nobody needs any more if
    /// the next one chains to it; otherwise the journal ends before its checkpoint.
    async fn note_anchor(
        &mut self,
        scanner: &mut Scanner,
        segment: u64,
        last: &DurableEnd,
    ) -> Result<(), JournalError> {
        let offset = last.end.0 - segment * self.config.segment_bytes;
        let mut next = None;
        if offset + ALIGN <= self.config.segment_bytes {
            next = scanner
                .header(segment, offset, Some(last.incarnation))
                .await?;
        }
        if next.is_none() && self.inventory.segments.contains_key(&(segment + 1)) {
            next = scanner.header(segment + 1, 0, None).await?;
        }
        if next.is_none_or(|next| next.previous_digest != last.digest) {
            let what = "the last block its newest checkpoint knows is not there";
            return Err(JournalError::corrupt(
                &self.path(segment),
                last.position,
                what,
            ));
        }
        self.report.damaged(Damage {
            file: self.path(segment),
            position: last.position,
            len_bytes: last.end.0 - last.position.0,
            kind: DamageKind::Blocks {
                first: last.sequence,
                last: last.sequence,
            },
            what: "the header of a block before the checkpoint is damaged".to_owned(),
        });
        Ok(())
    }

    /// Segments before the replay: those with live records must be there and be what they were.
    async fn check_old_segments(
        &mut self,
        scanner: &mut Scanner,
        checkpoint: &Checkpoint,
        first: u64,
    ) -> Result<(), JournalError> {
        for row in &checkpoint.rows {
            let there = self.inventory.segments.get(&row.segment).copied();
            // Later ones were only begun then; the replay says what became of them.
            if row.segment > first {
                continue;
            }
            if there.is_none() && (row.live_bytes > 0 || row.segment == first) {
                let what = "the newest checkpoint knows live records in it";
                return Err(JournalError::missing(&self.path(row.segment), what));
            }
            let Some(len) = there else {
                continue;
            };
            self.space.insert(*row);
            if row.live_bytes == 0 || row.segment == first {
                continue;
            }
            let present = |number: u64| self.inventory.segments.contains_key(&number);
            let identity = scanner.identity(row.segment, &present).await?;
            if identity.is_some_and(|identity| identity.incarnation != row.incarnation) {
                let path = self.path(row.segment);
                let what = "it is not the segment that the newest checkpoint knows";
                return Err(JournalError::foreign(&path, what));
            }
            if len != self.config.segment_bytes || identity.is_none() {
                self.report.damaged(Damage {
                    file: self.path(row.segment),
                    position: Position(row.segment * self.config.segment_bytes),
                    len_bytes: row.end_bytes,
                    kind: DamageKind::File,
                    what: format!("the file has {len} bytes, or its first blocks are damaged"),
                });
            }
        }
        // Files that no checkpoint needs: a recycling that a crash interrupted.
        for &segment in self.inventory.segments.keys() {
            if segment < first && !self.space.contains(segment) {
                self.space.begin(segment, 0);
            }
        }
        Ok(())
    }

    /// Replays to the end; what is returned is the cut, if there must be one.
    async fn replay(&mut self, walk: &mut Walk) -> Result<Option<Cut>, JournalError> {
        loop {
            match walk.step().await? {
                Step::Block(block) => {
                    self.apply(&block, false)?;
                    let vouched = block.header.durable;
                    self.unvouched
                        .retain(|earlier| earlier.header.sequence > vouched);
                    self.unvouched.push_back(block);
                }
                Step::Damaged(block) => self.apply(&block, true)?,
                Step::Lost(lost) => self.lose(&lost, walk),
                Step::End(reason) => {
                    self.check_end(walk)?;
                    let place = walk.cursor.place;
                    return Ok(reason.zip(place).map(|(reason, place)| Cut {
                        file: self.path(place.segment),
                        position: walk.scanner.position(place.segment, place.offset),
                        sequence: BlockSequence(walk.cursor.sequence.0 + 1),
                        reason,
                    }));
                }
            }
        }
    }

    /// A segment is named only once the one before it is begun for good (`segment`), so at most one
    /// segment lies behind the end. With more, the first of them is wiped.
    fn check_end(&self, walk: &Walk) -> Result<(), JournalError> {
        let (end, _) = walk.place();
        let behind = self.inventory.segments.range(end + 1..);
        if behind.count() <= 1 {
            return Ok(());
        }
        let position = walk.scanner.position(end + 1, 0);
        let what = "it has no first block, but the segment after it was made ready";
        Err(JournalError::corrupt(&self.path(end + 1), position, what))
    }

    /// Applies the entries of a block; of a rotten one, those that are whole.
    fn apply(&mut self, block: &Scanned, rotten: bool) -> Result<(), JournalError> {
        let header = &block.header;
        self.note_block(block);
        self.report.blocks += 1;
        self.report.bytes += block.bytes.len() as u64;
        if self.env.planted(Bug::TrustCheckpointOverJournal) && self.report.checkpoint.is_some() {
            return Ok(());
        }
        let machine = Rc::clone(&self.machine);
        let mut machine = machine.borrow_mut();
        let mut concerned = false;
        for index in 0..header.entry_count as usize {
            let entry = self.entry(block, index)?;
            let view = commit::view(header, &entry, &block.bytes);
            let whole = !rotten || block.entry_is_whole(&entry);
            if !whole {
                concerned = true;
                self.damaged_entry(block, &entry)?;
            }
            if whole && let Some(number) = block.named_checkpoint(&entry) {
                self.named_checkpoint = self.named_checkpoint.max(number);
            }
            let Some(view) = view else {
                continue;
            };
            if entry.kind == EntryKind::Records {
                self.space.lives(block.segment, entry.body_len);
            }
            let view = match whole {
                true => view,
                false => EntryView::Damaged {
                    partition: Some(entry.partition),
                    base_offset: entry.base_offset,
                    record_count: entry.record_count,
                    extent: commit::extent(header, &entry),
                },
            };
            machine.apply(commit::location(header), view);
        }
        if rotten && !concerned {
            self.note_damage(block, DamageKind::Bookkeeping, "no entry is concerned");
        }
        Ok(())
    }

    /// A checkpoint that is not whole is damage if the journal names it; otherwise its writing was
    /// interrupted, and what there is of it is no use to anybody.
    async fn judge_checkpoints(&mut self) -> Result<(), JournalError> {
        for number in std::mem::take(&mut self.torn_checkpoints) {
            if number <= self.named_checkpoint {
                self.report.checkpoints_damaged += 1;
            } else {
                let path = segment::checkpoint_path(&self.config.dir, number);
                self.env.disk().remove(&path).await?;
            }
        }
        Ok(())
    }

    fn entry(&self, block: &Scanned, index: usize) -> Result<DirectoryEntry, JournalError> {
        let file = self.path(block.segment);
        block.entry(index).map_err(|error| match error {
            EntryError::UnknownKind(kind) => JournalError::Version {
                file,
                version: format::FORMAT_VERSION,
                what: format!("with an entry of the unknown kind {kind}"),
            },
            EntryError::Bounds => JournalError::corrupt(
                &file,
                block.header.position,
                "a directory record names bytes outside its block",
            ),
        })
    }

    fn damaged_entry(
        &mut self,
        block: &Scanned,
        entry: &DirectoryEntry,
    ) -> Result<(), JournalError> {
        let kind = DamageKind::of(entry);
        if kind == DamageKind::State {
            // Going on without it would show a state that never was.
            let what = format!("an acknowledged entry of kind {:?} is damaged", entry.kind);
            let file = self.path(block.segment);
            return Err(JournalError::corrupt(&file, block.header.position, what));
        }
        self.note_damage(block, kind, "an acknowledged block's body is damaged");
        Ok(())
    }

    fn note_damage(&mut self, block: &Scanned, kind: DamageKind, what: &str) {
        self.report.damaged(Damage {
            file: self.path(block.segment),
            position: block.header.position,
            len_bytes: block.bytes.len() as u64,
            kind,
            what: what.to_owned(),
        });
    }

    /// Keeps the books of a block that is passed.
    fn note_block(&mut self, block: &Scanned) {
        let header = &block.header;
        let start = block.segment * self.config.segment_bytes;
        if !self.space.contains(block.segment) {
            self.space.begin(block.segment, header.incarnation);
        }
        let end = header.position.0 + block.bytes.len() as u64;
        self.space
            .wrote(block.segment, end - start, header.sequence);
        self.last_end = DurableEnd {
            sequence: header.sequence,
            position: header.position,
            end: Position(end),
            digest: header.digest,
            incarnation: header.incarnation,
        };
    }

    /// Acknowledged blocks are gone: the shard is told that nobody knows whose records they held.
    fn lose(&mut self, lost: &Lost, walk: &Walk) {
        let segment = lost.from.0 / self.config.segment_bytes;
        let kind = lost.damage_kind();
        self.report.damaged(Damage {
            file: self.path(segment),
            position: lost.from,
            len_bytes: lost.to.0 - lost.from.0,
            kind,
            what: "headers of acknowledged blocks are damaged".to_owned(),
        });
        let resumed = walk.cursor.place.expect("a walk resumes at a place");
        if !self.space.contains(resumed.segment) {
            self.space
                .begin(resumed.segment, resumed.identity.incarnation);
        }
        if lost.only_mark {
            return;
        }
        let location = crate::journal::Location {
            block: lost.first,
            position: lost.from,
            term: self.config.term,
        };
        let view = EntryView::Damaged {
            partition: None,
            base_offset: Offset(0),
            record_count: 0,
            extent: Extent {
                position: lost.from,
                len_bytes: 0,
                leader_epoch: 0,
                base_offset: Offset(0),
            },
        };
        self.machine.borrow_mut().apply(location, view);
    }

    /// Makes the first segment's file.
    async fn make_first(&mut self) -> Result<(), JournalError> {
        let path = self.path(0);
        let disk = self.env.disk();
        let unfinished = segment::unfinished_path(&self.config.dir, 0);
        if let Some(index) = self
            .inventory
            .unfinished
            .iter()
            .position(|path| *path == unfinished)
        {
            self.inventory.unfinished.swap_remove(index);
            disk.remove(&unfinished).await?;
        }
        disk.create_zeroed(&unfinished, self.config.segment_bytes)
            .await?;
        disk.rename(&unfinished, &path).await?;
        disk.sync_dir(&self.config.dir).await?;
        self.counters.segments_made.inc();
        self.inventory.segments.insert(0, self.config.segment_bytes);
        Ok(())
    }

    /// Repairs the tail and puts the running journal together.
    async fn hand_over(
        &mut self,
        mut walk: Walk,
        cut: Option<Cut>,
    ) -> Result<Rc<Core>, JournalError> {
        let begun = walk.cursor.place.is_some();
        if !begun && !self.config.create {
            let what = "the first block of the journal is not there";
            return Err(JournalError::corrupt(&self.path(0), Position(0), what));
        }
        let active = walk.cursor.place.map_or(0, |place| place.segment);
        let file = self.open_for_writing(active).await?;
        self.rewrite_unvouched().await?;
        let later: Vec<u64> = self
            .inventory
            .segments
            .keys()
            .copied()
            .filter(|number| *number > active)
            .collect();
        let mut next = None;
        if cut.is_some() || !begun {
            if !self.env.planted(Bug::CutNotZeroed) {
                self.zero_behind(&walk, &file, &later).await?;
            }
            self.drop_later(&later).await?;
        } else if let Some((&first, rest)) = later.split_first() {
            self.drop_later(rest).await?;
            next = Some(OpenSegment {
                number: first,
                file: self.open_for_writing(first).await?,
                fresh: false,
            });
        }
        for path in &self.inventory.unfinished {
            self.env.disk().remove(path).await?;
        }
        walk.scanner.forget();
        let journal = walk.journal.unwrap_or_else(|| self.env.random_u64());
        let mut planner = Planner::new(&self.config, self.tail(&walk));
        if !begun {
            self.write_first_mark(&mut planner, &file, journal).await?;
        } else {
            self.write_first_seal(&mut planner, &file, &walk, cut.as_ref())
                .await?;
        }
        self.report.cut = cut;
        self.report.created = !begun;
        self.report.end = self.last_end.end;
        let fresh = walk
            .cursor
            .place
            .is_some_and(|place| place.identity.is_fresh());
        let active = OpenSegment {
            number: active,
            file,
            fresh,
        };
        let spares = std::mem::take(&mut self.inventory.spares);
        self.counters.segments.set(self.space.len() as i64);
        self.counters.cuts.add(u64::from(self.report.cut.is_some()));
        self.counters.damaged_blocks.add(self.report.damage_total);
        Ok(Core::new(Parts {
            env: self.env.clone(),
            config: self.config.clone(),
            journal,
            machine: Rc::clone(&self.machine),
            planner,
            segments: Segments::new(active, next, spares),
            space: std::mem::replace(&mut self.space, Space::new(self.config.segment_bytes)),
            durable_end: self.last_end,
            counters: Rc::clone(&self.counters),
        }))
    }

    /// Writes the blocks that nothing vouches for once more, and flushes.
    ///
    /// A flush that failed before this start has left blocks that can be read and that no later
    /// flush makes durable (it answers that all is well): only a new write does.
    async fn rewrite_unvouched(&mut self) -> Result<(), JournalError> {
        let blocks = std::mem::take(&mut self.unvouched);
        let planted = |bug| self.env.planted(bug);
        if planted(Bug::FailedFlushTrusted) || planted(Bug::RecoveryNotFlushed) {
            return Ok(());
        }
        let Some(first) = blocks.front() else {
            return Ok(());
        };
        let mut segment = first.segment;
        let mut file = self.open_for_writing(segment).await?;
        for block in blocks {
            if block.segment != segment {
                file.sync_data().await?;
                segment = block.segment;
                file = self.open_for_writing(segment).await?;
            }
            let offset = block.header.position.0 - segment * self.config.segment_bytes;
            file.write_all_at(block.bytes, offset).await?;
        }
        file.sync_data().await?;
        Ok(())
    }

    async fn open_for_writing(&self, segment: u64) -> Result<File, JournalError> {
        let mode = segment::write_mode(&self.config);
        Ok(self.env.disk().open(&self.path(segment), mode).await?)
    }

    fn tail(&self, walk: &Walk) -> Tail {
        let cursor = &walk.cursor;
        let place = cursor.place;
        Tail {
            segment: place.map_or(0, |place| place.segment),
            offset: place.map_or(0, |place| place.offset),
            incarnation: place.map_or(0, |place| place.identity.incarnation),
            sequence: cursor.sequence,
            digest: cursor.digest,
            sealed: cursor.sealed,
        }
    }

    /// Zeroes what blocks that were in flight may have left behind the cut.
    async fn zero_behind(
        &mut self,
        walk: &Walk,
        active: &File,
        later: &[u64],
    ) -> Result<(), JournalError> {
        let window = walk.window_bytes().next_multiple_of(ALIGN);
        let offset = walk.cursor.place.map_or(0, |place| place.offset);
        let end = (offset + window).min(self.config.segment_bytes);
        zero(active, offset, end).await?;
        for &segment in later {
            let file = self.open_for_writing(segment).await?;
            zero(&file, 0, window.min(self.config.segment_bytes)).await?;
        }
        Ok(())
    }

    /// Later segments hold nothing that is trusted: they become spares.
    async fn drop_later(&mut self, later: &[u64]) -> Result<(), JournalError> {
        let disk = self.env.disk();
        for &segment in later {
            let spare = segment::spare_path(&self.config.dir, segment);
            disk.rename(&self.path(segment), &spare).await?;
            self.inventory.spares.push(spare);
        }
        if !later.is_empty() {
            disk.sync_dir(&self.config.dir).await?;
        }
        Ok(())
    }

    async fn write_first_mark(
        &mut self,
        planner: &mut Planner,
        file: &File,
        journal: u64,
    ) -> Result<(), JournalError> {
        let incarnation = self.env.random_u64();
        let mark = format::SegmentMark {
            segment: 0,
            journal,
            previous_incarnation: 0,
            segment_bytes: self.config.segment_bytes,
            fresh: true,
        };
        let mut buffer = file.buffer(SMALL_BLOCK_BYTES);
        let offset = planner.pack_mark(&mark, incarnation, buffer.as_mut());
        self.space.begin(0, incarnation);
        self.write_own(planner, file, buffer.freeze(), offset).await
    }

    /// After a cut, a seal that names it; and one that announces a wider window than the last block
    /// knows, so that the next recovery does too.
    async fn write_first_seal(
        &mut self,
        planner: &mut Planner,
        file: &File,
        walk: &Walk,
        cut: Option<&Cut>,
    ) -> Result<(), JournalError> {
        let wider = self.config.window_bytes() > walk.cursor.window_bytes;
        let reason = match cut {
            Some(_) => SealReason::Cut,
            None if wider => SealReason::Open,
            None => return Ok(()),
        };
        if planner.tail().offset + ALIGN > self.config.segment_bytes {
            // No block fits here any more: the next segment's mark will vouch.
            return Ok(());
        }
        let body = format::encode_seal(reason, cut.map(|cut| (cut.position, cut.sequence)));
        let mut buffer = file.buffer(SMALL_BLOCK_BYTES);
        let offset = planner.pack_seal(&body, buffer.as_mut());
        self.write_own(planner, file, buffer.freeze(), offset).await
    }

    /// Writes a block of recovery's own and makes it durable.
    async fn write_own(
        &mut self,
        planner: &mut Planner,
        file: &File,
        buffer: crate::env::SharedBuffer,
        offset: u64,
    ) -> Result<(), JournalError> {
        let header = planner.keep(buffer.clone());
        file.write_all_at(buffer.clone(), offset).await?;
        file.sync_data().await?;
        planner.written(header.sequence);
        let block = planner.pop_durable().expect("its only block is written");
        self.note_block(&Scanned {
            header,
            segment: block.segment,
            bytes: buffer,
            payload_valid: true,
        });
        assert!(planner.is_idle());
        Ok(())
    }
}

/// Zeroes the sectors of a range that are not zero, and flushes.
async fn zero(file: &File, start: u64, end: u64) -> Result<(), JournalError> {
    assert!(start <= end && start.is_multiple_of(ALIGN) && end.is_multiple_of(ALIGN));
    let mut at = start;
    while at < end {
        let len = usize::try_from(end - at)
            .unwrap_or(usize::MAX)
            .min(SCAN_BYTES);
        let blank = match file.read_at(at, len).await {
            Ok(bytes) => bytes.len() == len && bytes.iter().all(|byte| *byte == 0),
            Err(_) => false,
        };
        if !blank {
            file.write_all_at(file.buffer(len).freeze(), at).await?;
        }
        at += len as u64;
    }
    file.sync_data().await?;
    Ok(())
}

async fn write_report(
    core: &Rc<Core>,
    reports: &[PathBuf],
    report: &mut RecoveryReport,
) -> Result<(), JournalError> {
    if !report.is_remarkable() {
        return Ok(());
    }
    let disk = core.env.disk();
    let sequence = core.durable_end.get().sequence.0;
    let named = |number: usize| {
        let name = format!("recovery-{sequence:016x}-{number:04x}.json");
        core.config.dir.join(name)
    };
    let mut free = (0..=reports.len()).map(named);
    let path = free.find(|path| !reports.contains(path));
    let path = path.expect("more names than reports");
    let mut bytes = report.to_json().to_string().into_bytes();
    bytes.push(b'\n');
    disk.write_small_new(&path, bytes).await?;
    let surplus = (reports.len() + 1).saturating_sub(RECOVERY_REPORTS_MAX);
    for old in reports.iter().take(surplus) {
        disk.remove(old).await?;
    }
    disk.sync_dir(&core.config.dir).await?;
    tracing::warn!(
        shard = core.config.shard.0,
        damage = report.damage_total,
        cut = report.cut.is_some(),
        "recovery found something: see {}",
        path.display()
    );
    report.file = Some(path);
    Ok(())
}
