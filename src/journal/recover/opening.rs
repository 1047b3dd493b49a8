//! Opening a journal: take stock of the files, restore the newest whole checkpoint, flush what will
//! be replayed, and find where the replay starts. `replay` and `repair` do the rest.

use super::repair::write_report;
use super::report::{Damage, DamageKind, RecoveryReport};
use super::scan::{ALIGN, Identity, Scanned, Scanner};
use super::walk::{Cursor, Place, Walk};
use crate::base::ids::{BlockSequence, Position};
use crate::env::sim::Bug;
use crate::env::{Env, OpenMode};
use crate::journal::checkpoint::{self, Checkpoint};
use crate::journal::commit::{self, Core, DurableEnd};
use crate::journal::segment::{self, FileName};
use crate::journal::space::Space;
use crate::journal::{JournalConfig, JournalError, StateMachine, store};
use crate::metrics::JournalMetrics;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// The files of a shard's folder.
#[derive(Default)]
pub(super) struct Inventory {
    /// Segments and their lengths.
    pub(super) segments: BTreeMap<u64, u64>,
    pub(super) spares: Vec<PathBuf>,
    pub(super) unfinished: Vec<PathBuf>,
    pub(super) checkpoints: Vec<u64>,
    pub(super) reports: Vec<PathBuf>,
}

/// One opening.
pub(super) struct Opening {
    pub(super) env: Env,
    pub(super) config: JournalConfig,
    pub(super) machine: Rc<RefCell<dyn StateMachine>>,
    pub(super) inventory: Inventory,
    pub(super) space: Space,
    pub(super) counters: Rc<JournalMetrics>,
    pub(super) report: RecoveryReport,
    pub(super) last_end: DurableEnd,
    /// Checkpoint files that are not whole.
    pub(super) torn_checkpoints: Vec<u64>,
    /// Newest checkpoint that the replayed part of the journal names.
    pub(super) named_checkpoint: u64,
    /// Replayed blocks that no later block vouches for.
    pub(super) unvouched: VecDeque<Scanned>,
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
    let listed = disk.list(dir).await.map_err(|error| match error.kind() {
        // A folder that is not there is a missing journal, not a failing disk.
        io::ErrorKind::NotFound => JournalError::missing(dir, "the shard's folder is not there"),
        _ => error.into(),
    });
    for entry in listed? {
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
    pub(super) fn path(&self, segment: u64) -> PathBuf {
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
                self.space.stray(number);
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
        // Kept ones are counted before the strays are: nothing is removed before the next is
        // written.
        if let Some(older) = older {
            assert!(older.number < checkpoint.number);
            self.space.keep_found(older);
        }
        self.space.keep_found(checkpoint.kept());
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
        assert!(last.position < last.end, "a block has bytes");
        assert!(last.sequence.0 > 0, "a checkpoint follows the first block");
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
        let len_bytes = self.config.segment_bytes;
        disk.create_allocated(&unfinished, len_bytes, len_bytes)
            .await?;
        disk.rename(&unfinished, &path).await?;
        disk.sync_dir(&self.config.dir).await?;
        self.counters.segments_made.inc();
        self.counters.zeroed.add(len_bytes);
        self.inventory.segments.insert(0, self.config.segment_bytes);
        Ok(())
    }
}
