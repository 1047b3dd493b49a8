//! Segment files: their names, which one is written, the next one made ready ahead, and the house
//! task that prepares and recycles them in the background.
//!
//! * A segment has a fixed length, and its space is taken when it is made, so an append never meets
//!   `ENOSPC`. Where small blocks will lie, every byte has been written once, so that an append
//!   changes no metadata and costs one flush (`commit/ahead`).
//! * A file gets its journal name, and that name is durable, before the first block is written to
//!   it.
//! * A dead segment becomes a spare by a rename; a spare is only stale bytes, which the incarnation
//!   and position of every block tell from live ones.

use super::commit::Core;
use super::commit::ahead::Ahead;
use super::{CommitMode, JournalConfig};
use crate::env::sim::Bug;
use crate::env::{File, OpenMode};
use crate::limits::{BLOCK_ALIGN, SPACE_RETRY_MS, SPARE_SEGMENTS_MAX};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// What a file name in a shard's folder says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum FileName {
    /// A segment, by number.
    Segment(u64),
    /// A segment that is used for nothing, complete.
    Spare,
    /// A segment whose making did not end.
    Unfinished,
    /// A checkpoint, by number.
    Checkpoint(u64),
    /// A report of a recovery.
    Report,
    /// Not ours.
    Other,
}

impl FileName {
    pub(super) fn parse(name: &str) -> FileName {
        let number = |text: &str| {
            let hex = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            hex.then(|| u64::from_str_radix(text, 16).ok()).flatten()
        };
        let within = |prefix: &str, suffix: &str| {
            let middle = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
            number(middle)
        };
        if let Some(segment) = within("journal-", ".seg") {
            FileName::Segment(segment)
        } else if within("spare-", ".seg").is_some() {
            FileName::Spare
        } else if within("spare-", ".tmp").is_some() {
            FileName::Unfinished
        } else if let Some(checkpoint) = within("checkpoint-", ".ckpt") {
            FileName::Checkpoint(checkpoint)
        } else if name.starts_with("recovery-") && name.ends_with(".json") {
            FileName::Report
        } else {
            FileName::Other
        }
    }
}

/// Path of a segment file.
pub(super) fn segment_path(dir: &Path, segment: u64) -> PathBuf {
    assert!(
        segment <= u64::from(u32::MAX),
        "segment numbers have eight hex digits"
    );
    dir.join(format!("journal-{segment:08x}.seg"))
}

/// Path of a checkpoint file.
pub(super) fn checkpoint_path(dir: &Path, number: u64) -> PathBuf {
    assert!(
        number <= u64::from(u32::MAX),
        "checkpoint numbers have eight hex digits"
    );
    dir.join(format!("checkpoint-{number:08x}.ckpt"))
}

pub(super) fn spare_path(dir: &Path, segment: u64) -> PathBuf {
    dir.join(format!("spare-{segment:08x}.seg"))
}

pub(super) fn unfinished_path(dir: &Path, segment: u64) -> PathBuf {
    dir.join(format!("spare-{segment:08x}.tmp"))
}

/// How segments are opened for writing.
pub(super) fn write_mode(config: &JournalConfig) -> OpenMode {
    match config.commit_mode {
        CommitMode::Dsync => OpenMode::WriteDsync,
        CommitMode::Fdatasync => OpenMode::Write,
    }
}

/// A segment open for writing.
pub(super) struct OpenSegment {
    /// Its number.
    pub number: u64,
    /// The file.
    pub file: File,
    /// Whether it was all zeros when it got its name.
    pub fresh: bool,
    /// Its first place that was never written, when it was opened.
    pub written: u64,
}

/// The files of one journal.
pub(super) struct Segments {
    active: OpenSegment,
    next: Option<OpenSegment>,
    spares: Vec<PathBuf>,
}

impl Segments {
    pub(super) fn new(
        active: OpenSegment,
        next: Option<OpenSegment>,
        spares: Vec<PathBuf>,
    ) -> Self {
        let follows = next
            .as_ref()
            .is_none_or(|next| next.number == active.number + 1);
        assert!(follows, "the next segment follows the active one");
        Self {
            active,
            next,
            spares,
        }
    }

    /// What is known of the active segment's places.
    pub(super) fn ahead(&self, config: &JournalConfig) -> Ahead {
        Ahead::new(config, self.active.number, self.active.written)
    }

    pub(super) fn active_file(&self) -> File {
        self.active.file.clone()
    }

    /// The open file of this segment, if it is the active one.
    pub(super) fn file_of(&self, segment: u64) -> Option<File> {
        (self.active.number == segment).then(|| self.active.file.clone())
    }

    pub(super) fn has_next(&self) -> bool {
        self.next.is_some()
    }

    /// Makes the next segment the active one.
    pub(super) fn roll(&mut self) -> Option<&OpenSegment> {
        let next = self.next.take()?;
        assert_eq!(
            next.number,
            self.active.number + 1,
            "segments are contiguous"
        );
        self.active = next;
        Some(&self.active)
    }
}

/// What the house task may do next.
enum Chore {
    Retire(u64),
    Prepare(u64),
    RemoveSpare(PathBuf),
    Rest,
}

/// Starts the house task, unless it runs already or has nothing to do.
pub(super) fn keep_house(core: &Rc<Core>) {
    if core.housekeeping.get() || matches!(next_chore(core), Chore::Rest) {
        return;
    }
    core.housekeeping.set(true);
    core.env.spawn("segment house", house(Rc::clone(core)));
}

fn next_chore(core: &Core) -> Chore {
    if core.is_ending() {
        return Chore::Rest;
    }
    let space = core.space.borrow();
    let segments = core.segments.borrow();
    let mut dead = space.reclaimable();
    if core.env.planted(Bug::RecycledTooEarly) {
        let durable = core.durable_end.get().position.0 / core.config.segment_bytes;
        dead = space.reclaimable_too_early(durable);
    }
    if let Some(dead) = dead {
        assert!(
            dead < segments.active.number,
            "the active segment is never retired"
        );
        return Chore::Retire(dead);
    }
    // A name that is there thus proves that the mark of the segment before it is durable: recovery
    // tells a wiped segment from one that was never begun by it, and finds at most one segment
    // behind a cut.
    let begun = core.durable_end.get().position.0 / core.config.segment_bytes;
    if segments.next.is_none() && begun == segments.active.number {
        return Chore::Prepare(segments.active.number + 1);
    }
    if segments.spares.len() > SPARE_SEGMENTS_MAX {
        return Chore::RemoveSpare(segments.spares[0].clone());
    }
    Chore::Rest
}

async fn house(core: Rc<Core>) {
    loop {
        let done = match next_chore(&core) {
            Chore::Rest => break,
            Chore::Retire(segment) => retire(&core, segment).await,
            Chore::Prepare(segment) => prepare(&core, segment).await,
            Chore::RemoveSpare(path) => remove_spare(&core, path).await,
        };
        match done {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                core.counters.space_waits.inc();
                core.env
                    .clock()
                    .sleep(Duration::from_millis(SPACE_RETRY_MS))
                    .await;
            }
            Err(error) => core.poison("segment files could not be kept", &error),
        }
    }
    core.housekeeping.set(false);
    core.wake_closers();
}

/// A dead segment becomes a spare.
async fn retire(core: &Rc<Core>, segment: u64) -> io::Result<()> {
    assert!(!core.is_ending(), "a journal that ends recycles nothing");
    core.space.borrow_mut().strike(segment);
    core.reader
        .borrow_mut()
        .forget(segment, core.config.segment_bytes);
    core.counters.segments.set(core.space.borrow().len() as i64);
    let dir = &core.config.dir;
    let spare = spare_path(dir, segment);
    let disk = core.env.disk();
    disk.rename(&segment_path(dir, segment), &spare).await?;
    disk.sync_dir(dir).await?;
    core.segments.borrow_mut().spares.push(spare);
    Ok(())
}

/// Makes the next segment ready: from a spare, or a new one.
async fn prepare(core: &Rc<Core>, number: u64) -> io::Result<()> {
    let spare = core.segments.borrow_mut().spares.pop();
    let fresh = spare.is_none();
    let dir = &core.config.dir;
    let disk = core.env.disk();
    let source = match spare {
        Some(spare) => {
            core.counters.segments_recycled.inc();
            spare
        }
        None => make(core, number).await?,
    };
    let path = segment_path(dir, number);
    disk.rename(&source, &path).await?;
    if !core.env.planted(Bug::NoDirectorySync) {
        disk.sync_dir(dir).await?;
    }
    let file = disk.open(&path, write_mode(&core.config)).await?;
    let written = disk.written_until(&path, 0).await?;
    let mut segments = core.segments.borrow_mut();
    assert!(segments.next.is_none() && segments.active.number + 1 == number);
    segments.next = Some(OpenSegment {
        number,
        file,
        fresh,
        written,
    });
    drop(segments);
    core.unblock_writer();
    Ok(())
}

async fn make(core: &Rc<Core>, number: u64) -> io::Result<PathBuf> {
    let path = unfinished_path(&core.config.dir, number);
    let disk = core.env.disk();
    let len_bytes = core.config.segment_bytes;
    let written_bytes = match core.ahead.borrow().prepares_zeros() {
        true => len_bytes,
        false => BLOCK_ALIGN as u64,
    };
    let made = disk.create_allocated(&path, len_bytes, written_bytes).await;
    if let Err(error) = made {
        // A half-made file only holds space; what matters is the first error.
        let _ = disk.remove(&path).await;
        return Err(error);
    }
    core.counters.segments_made.inc();
    core.counters.zeroed.add(written_bytes);
    Ok(path)
}

async fn remove_spare(core: &Rc<Core>, path: PathBuf) -> io::Result<()> {
    core.env.disk().remove(&path).await?;
    core.segments
        .borrow_mut()
        .spares
        .retain(|spare| *spare != path);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: names are read as they are written, and nothing else is ours. Method: each kind, and
    /// near misses.
    #[test]
    fn names() {
        let dir = Path::new("/data");
        let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let segment = name(segment_path(dir, 0xab));
        assert_eq!(FileName::parse(&segment), FileName::Segment(0xab));
        let checkpoint = name(checkpoint_path(dir, 7));
        assert_eq!(FileName::parse(&checkpoint), FileName::Checkpoint(7));
        assert_eq!(FileName::parse(&name(spare_path(dir, 7))), FileName::Spare);
        let unfinished = name(unfinished_path(dir, 7));
        assert_eq!(FileName::parse(&unfinished), FileName::Unfinished);
        assert_eq!(FileName::parse("recovery-1-2.json"), FileName::Report);
        for other in [
            "journal-1.seg",
            "journal-0000000g.seg",
            "LOCK",
            "journal-+0000001.seg",
        ] {
            assert_eq!(FileName::parse(other), FileName::Other, "{other}");
        }
    }
}
