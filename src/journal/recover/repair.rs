//! The end of a recovery: the tail is repaired, what nothing vouches for is written once more, and
//! the running journal is put together.

use super::opening::Opening;
use super::report::{Cut, RecoveryReport};
use super::scan::{ALIGN, Scanned};
use super::walk::Walk;
use crate::base::ids::Position;
use crate::env::sim::Bug;
use crate::env::{File, SharedBuffer};
use crate::journal::commit::{Core, Parts};
use crate::journal::format::{self, SealReason};
use crate::journal::pack::{Planner, SMALL_BLOCK_BYTES, Tail};
use crate::journal::segment::{self, OpenSegment, Segments};
use crate::journal::space::Space;
use crate::journal::{CommitTimes, JournalError};
use crate::limits::{BLOCK_ALIGN, RECOVERY_REPORTS_MAX, SCAN_BYTES};
use std::path::PathBuf;
use std::rc::Rc;

impl Opening {
    /// Repairs the tail and puts the running journal together.
    pub(super) async fn hand_over(
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
        assert_eq!(
            begun,
            walk.cursor.sequence.0 > 0,
            "a journal begins with its first block"
        );
        assert!(
            self.last_end.sequence <= walk.cursor.sequence,
            "nothing unread was applied"
        );
        let next = self
            .settle_files(&walk, &file, cut.is_some() || !begun)
            .await?;
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
            written: self.written_until(active, planner.tail().offset).await?,
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

    /// Decides what becomes of the files behind the end: of a journal that ends well, the next
    /// segment is kept ready; behind a cut everything is wiped and spare.
    async fn settle_files(
        &mut self,
        walk: &Walk,
        active: &File,
        wipe: bool,
    ) -> Result<Option<OpenSegment>, JournalError> {
        let end = walk.cursor.place.map_or(0, |place| place.segment);
        let behind = self.inventory.segments.range(end + 1..);
        let later: Vec<u64> = behind.map(|(number, _)| *number).collect();
        let mut next = None;
        if wipe {
            if !self.env.planted(Bug::CutNotZeroed) {
                self.zero_behind(walk, active, &later).await?;
            }
            self.drop_later(&later).await?;
        } else if let Some((&first, rest)) = later.split_first() {
            self.drop_later(rest).await?;
            next = Some(OpenSegment {
                number: first,
                file: self.open_for_writing(first).await?,
                fresh: false,
                written: self.written_until(first, 0).await?,
            });
        }
        for path in &self.inventory.unfinished {
            self.env.disk().remove(path).await?;
        }
        Ok(next)
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

    async fn written_until(&self, segment: u64, position: u64) -> Result<u64, JournalError> {
        let path = self.path(segment);
        Ok(self.env.disk().written_until(&path, position).await?)
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
        assert!(
            window >= u64::from(self.config.window_bytes()),
            "all that was in flight"
        );
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
        buffer: SharedBuffer,
        offset: u64,
    ) -> Result<(), JournalError> {
        let header = planner.keep(buffer.clone());
        file.write_all_at(buffer.clone(), offset).await?;
        file.sync_data().await?;
        planner.written(header.sequence, CommitTimes::default());
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

fn is_blank(sector: &[u8]) -> bool {
    sector == [0; BLOCK_ALIGN]
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
            Ok(bytes) => bytes.len() == len && bytes.chunks(BLOCK_ALIGN).all(is_blank),
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

pub(super) async fn write_report(
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
