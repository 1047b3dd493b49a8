//! From the checkpoint to the end of the journal, block by block, into the state machine; and what
//! is damaged on the way.

use super::opening::Opening;
use super::report::{Cut, Damage, DamageKind};
use super::scan::Scanned;
use super::walk::{Lost, Step, Walk};
use crate::base::ids::{BlockSequence, Offset, Position};
use crate::env::sim::Bug;
use crate::journal::commit::{self, DurableEnd};
use crate::journal::format::{self, DirectoryEntry, EntryError, EntryKind};
use crate::journal::segment;
use crate::journal::{EntryView, Extent, JournalError, Location};
use std::rc::Rc;

impl Opening {
    /// Replays to the end; what is returned is the cut, if there must be one.
    pub(super) async fn replay(&mut self, walk: &mut Walk) -> Result<Option<Cut>, JournalError> {
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
        assert!(
            rotten || block.payload_valid,
            "only whole blocks are applied in full"
        );
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
    pub(super) async fn judge_checkpoints(&mut self) -> Result<(), JournalError> {
        for number in std::mem::take(&mut self.torn_checkpoints) {
            if number <= self.named_checkpoint {
                self.report.checkpoints_damaged += 1;
                self.space.stray(number);
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
    pub(super) fn note_block(&mut self, block: &Scanned) {
        let header = &block.header;
        let start = block.segment * self.config.segment_bytes;
        if !self.space.contains(block.segment) {
            self.space.begin(block.segment, header.incarnation);
        }
        let end = header.position.0 + block.bytes.len() as u64;
        assert!(
            header.sequence > self.last_end.sequence,
            "blocks are passed in order"
        );
        assert!(
            header.position >= self.last_end.end,
            "the journal only grows"
        );
        assert_eq!(header.position.0 / self.config.segment_bytes, block.segment);
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
        assert!(
            lost.from < lost.to && lost.first <= lost.last,
            "something lies between"
        );
        assert_eq!(
            walk.cursor.sequence, lost.last,
            "the walk resumed behind it"
        );
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
        let location = Location {
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
}
