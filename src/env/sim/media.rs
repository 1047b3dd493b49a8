//! What lies on the simulated disk: the rules of power loss, as a state machine over events.
//!
//! Each 4 KiB sector of a write is *in flight → volatile → durable*:
//! * submitted: in flight; a crash may keep it or not, sector by sector (a torn write);
//! * completed: volatile; reads see it, a crash still may keep it or not;
//! * durable: by a flush of the file *submitted after* the write completed and itself completed; a
//!   write through an `O_DSYNC` file is durable by its own completion, and not before.
//!
//! Names and file lengths obey the same rules (names per directory, with `sync_dir`; lengths with
//! the file). A failed flush of a file forgets: what it covered stays undecided until it is written
//! anew, whatever a later flush answers. Flushes reach one file only, the least any file system
//! promises.
//!
//! Contents are shared by reference count and copied when changed, so that a crash image
//! (`image.rs`) costs microseconds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The unit that a power cut keeps or loses as a whole.
pub const SECTOR_BYTES: usize = 4096;

/// A comparison with it, or a copy of it, is fast in unoptimised builds, too.
const ZEROS: [u8; SECTOR_BYTES] = [0; SECTOR_BYTES];

/// Contents of a sector; `None` is all zeros.
pub type Slot = Option<Rc<[u8; SECTOR_BYTES]>>;

/// A file's identity, whatever its names are.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct InodeId(pub(super) u32);

/// An operation's identity, in order of submission.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct OpId(pub(super) u64);

/// What a name stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Entry {
    /// A file.
    File(InodeId),
    /// A folder.
    Folder,
}

/// A change of names in one directory; atomic.
#[derive(Clone, Debug)]
pub enum DirChange {
    /// A new name.
    Link(Rc<str>, Entry),
    /// A name goes.
    Unlink(Rc<str>),
    /// A name moves, replacing the target.
    Rename(Rc<str>, Rc<str>, Entry),
}

/// One change an operation makes.
#[derive(Clone, Debug)]
pub enum Change {
    /// Sectors are written.
    Write {
        /// To which file.
        inode: InodeId,
        /// From which sector on.
        first_sector: usize,
        /// Their contents.
        slots: Rc<[Slot]>,
        /// Durable by completion.
        dsync: bool,
    },
    /// A file gets a length.
    Length(InodeId, u64),
    /// Names change.
    Names(Rc<Path>, DirChange),
}

/// What a flush covers.
#[derive(Clone, Debug)]
pub enum SyncTarget {
    /// One file's contents and length.
    File(InodeId),
    /// One directory's names.
    Dir(Rc<Path>),
}

/// One entry of a disk's event log.
#[derive(Clone, Debug)]
pub enum Event {
    /// A change was handed to the disk.
    Submit(OpId, Change),
    /// A change ended well.
    Complete(OpId),
    /// A change failed. Of a write, so many sectors landed (a read tells); all else did not happen.
    Fail(OpId, usize),
    /// A flush was handed to the disk.
    SyncSubmit(OpId, SyncTarget),
    /// A flush ended well.
    SyncComplete(OpId),
    /// A flush failed (or lied): it made nothing durable, and what it covered never will be.
    SyncFail(OpId),
    /// A note of the test, for instance an acknowledgement.
    Mark(u64),
}

/// One possible value of a sector or length that a crash may choose.
#[derive(Clone, Debug)]
pub(super) struct Version<T> {
    op: OpId,
    pub(super) value: T,
    completed: Option<u64>,
    orphan: bool,
}

/// A durable value and the ones that might replace it.
type Pending<T> = Vec<Version<T>>;

/// One file.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    pub(super) durable: Rc<Vec<Slot>>,
    pub(super) visible: Rc<Vec<Slot>>,
    pub(super) pending: BTreeMap<usize, Pending<Slot>>,
    pub(super) len_durable: u64,
    pub(super) len_visible: u64,
    pub(super) len_pending: Pending<u64>,
}

/// Names of one directory.
pub(super) type Names = BTreeMap<Rc<str>, Entry>;

/// One directory.
#[derive(Clone, Debug, Default)]
pub(super) struct Dir {
    pub(super) durable: Rc<Names>,
    pub(super) visible: Rc<Names>,
    pub(super) pending: Pending<DirChange>,
}

/// What is under way: a change, or a flush with the completions it covers.
#[derive(Clone, Debug)]
pub(super) enum InFlight {
    Change(Change),
    Sync(SyncTarget, u64),
}

/// A whole disk.
#[derive(Clone, Debug)]
pub struct Media {
    pub(super) inodes: BTreeMap<InodeId, Inode>,
    pub(super) dirs: BTreeMap<Rc<Path>, Dir>,
    pub(super) in_flight: BTreeMap<OpId, InFlight>,
    completions: u64,
    /// The highest operation seen; a later run on this disk counts on from it.
    pub(super) op_last: u64,
}

impl Default for Media {
    fn default() -> Self {
        Self::new()
    }
}

impl Media {
    /// An empty disk: only the root directory.
    #[must_use]
    pub fn new() -> Self {
        let mut dirs = BTreeMap::new();
        dirs.insert(Rc::from(Path::new("/")), Dir::default());
        Self::quiet(BTreeMap::new(), dirs)
    }

    /// A disk on which nothing is undecided.
    pub(super) fn quiet(inodes: BTreeMap<InodeId, Inode>, dirs: BTreeMap<Rc<Path>, Dir>) -> Self {
        Self {
            inodes,
            dirs,
            in_flight: BTreeMap::new(),
            completions: 0,
            op_last: 0,
        }
    }

    /// The id the next new file gets.
    pub(super) fn inode_next(&self) -> InodeId {
        InodeId(self.inodes.keys().next_back().map_or(0, |last| last.0 + 1))
    }

    /// What `path` names at the moment, to a running process.
    #[must_use]
    pub fn lookup(&self, path: &Path) -> Option<Entry> {
        let Some(name) = path.file_name() else {
            return Some(Entry::Folder);
        };
        let dir = self.dirs.get(path.parent()?)?;
        dir.visible.get(name.to_str()?).copied()
    }

    /// Files of a directory as a running process sees them: name, id, length.
    #[must_use]
    pub fn files(&self, dir: &Path) -> Vec<(Rc<str>, InodeId, u64)> {
        let Some(dir) = self.dirs.get(dir) else {
            return Vec::new();
        };
        let files = dir.visible.iter().filter_map(|(name, entry)| match entry {
            Entry::File(inode) => Some((Rc::clone(name), *inode, self.len(*inode))),
            Entry::Folder => None,
        });
        files.collect()
    }

    /// A file's length as a running process sees it.
    #[must_use]
    pub fn len(&self, inode: InodeId) -> u64 {
        self.inode(inode).len_visible
    }

    /// Bytes from `position` on, at most `len_bytes`, ending with the file.
    #[must_use]
    pub fn read(&self, inode: InodeId, position: u64, len_bytes: usize) -> Vec<u8> {
        let file = self.inode(inode);
        let left = usize::try_from(file.len_visible.saturating_sub(position)).unwrap_or(usize::MAX);
        let wanted = len_bytes.min(left);
        let mut bytes = Vec::with_capacity(wanted.next_multiple_of(SECTOR_BYTES));
        let start = usize::try_from(position).expect("a simulated file fits in memory");
        assert!(
            start.is_multiple_of(SECTOR_BYTES),
            "a read begins at a sector"
        );
        let mut sector = start / SECTOR_BYTES;
        while bytes.len() < wanted {
            match file.visible.get(sector) {
                Some(Some(contents)) => bytes.extend_from_slice(&contents[..]),
                _ => bytes.extend_from_slice(&ZEROS),
            }
            sector += 1;
        }
        bytes.truncate(wanted);
        bytes
    }

    /// Whether this event, next, would take choices away from a crash (something becomes durable).
    #[must_use]
    pub fn settled_by(&self, event: &Event) -> bool {
        match event {
            Event::SyncComplete(_) => true,
            Event::Complete(op) => matches!(
                self.in_flight.get(op),
                Some(InFlight::Change(Change::Write { dsync: true, .. }))
            ),
            Event::Submit(..)
            | Event::Fail(..)
            | Event::SyncSubmit(..)
            | Event::SyncFail(_)
            | Event::Mark(_) => false,
        }
    }

    /// Carries out one event.
    pub fn apply(&mut self, event: &Event) {
        if let Event::Submit(op, _) | Event::SyncSubmit(op, _) = event {
            self.op_last = self.op_last.max(op.0);
        }
        match event {
            Event::Submit(op, change) => self.submit(*op, change),
            Event::Complete(op) => self.complete(*op, None),
            Event::Fail(op, landed) => {
                self.complete(*op, Some(*landed));
                self.forget(*op);
            }
            Event::SyncSubmit(op, target) => {
                let flight = InFlight::Sync(target.clone(), self.completions);
                self.in_flight.insert(*op, flight);
            }
            Event::SyncComplete(op) => self.synced(*op, true),
            Event::SyncFail(op) => self.synced(*op, false),
            Event::Mark(_) => {}
        }
    }

    fn inode(&self, inode: InodeId) -> &Inode {
        self.inodes
            .get(&inode)
            .expect("an inode outlives its names")
    }

    fn submit(&mut self, op: OpId, change: &Change) {
        match change {
            Change::Write {
                inode,
                first_sector,
                slots,
                ..
            } => {
                let file = self.inodes.get_mut(inode).expect("a write names a file");
                for (index, slot) in slots.iter().enumerate() {
                    let versions = file.pending.entry(first_sector + index).or_default();
                    versions.push(Version::new(op, slot.clone()));
                }
            }
            Change::Length(inode, len) => {
                let file = self
                    .inodes
                    .get_mut(inode)
                    .expect("a length belongs to a file");
                file.len_pending.push(Version::new(op, *len));
            }
            Change::Names(dir, change) => {
                match change {
                    DirChange::Link(_, Entry::File(inode)) => {
                        self.inodes.entry(*inode).or_default();
                    }
                    DirChange::Link(name, Entry::Folder) => {
                        let folder: PathBuf = dir.join(&**name);
                        self.dirs.entry(Rc::from(folder)).or_default();
                    }
                    DirChange::Unlink(_) | DirChange::Rename(..) => {}
                }
                let dir = self
                    .dirs
                    .get_mut(dir)
                    .expect("names change in a folder that exists");
                dir.pending.push(Version::new(op, change.clone()));
            }
        }
        self.in_flight.insert(op, InFlight::Change(change.clone()));
    }

    /// Ends a change: all of it, or (failed) only its first `landed` sectors.
    pub(super) fn complete(&mut self, op: OpId, landed: Option<usize>) {
        let Some(InFlight::Change(change)) = self.in_flight.remove(&op) else {
            panic!("only a change in flight ends");
        };
        self.completions += 1;
        let order = self.completions;
        match change {
            Change::Write {
                inode,
                first_sector,
                slots,
                dsync,
            } => {
                let file = self.inodes.get_mut(&inode).expect("a write names a file");
                let count = landed.map_or(slots.len(), |landed| landed.min(slots.len()));
                let durable = dsync && landed.is_none();
                for (index, slot) in slots.iter().take(count).enumerate() {
                    file.sector_completed(op, first_sector + index, slot, order, durable);
                }
            }
            Change::Length(..) | Change::Names(..) if landed.is_some() => {}
            Change::Length(inode, len) => {
                let file = self
                    .inodes
                    .get_mut(&inode)
                    .expect("a length belongs to a file");
                stamp(&mut file.len_pending, op, order);
                file.len_visible = len;
            }
            Change::Names(path, change) => {
                let dir = self
                    .dirs
                    .get_mut(&path)
                    .expect("a folder outlives its changes");
                stamp(&mut dir.pending, op, order);
                change_names(Rc::make_mut(&mut dir.visible), &change);
            }
        }
    }

    /// What of this operation was not carried out never will be.
    pub(super) fn forget(&mut self, op: OpId) {
        for file in self.inodes.values_mut() {
            file.pending.retain(|_, versions| {
                versions.retain(|version| !version.is_unfinished(op));
                !versions.is_empty()
            });
            file.len_pending
                .retain(|version| !version.is_unfinished(op));
        }
        for dir in self.dirs.values_mut() {
            dir.pending.retain(|version| !version.is_unfinished(op));
        }
    }

    fn synced(&mut self, op: OpId, well: bool) {
        let Some(InFlight::Sync(target, horizon)) = self.in_flight.remove(&op) else {
            panic!("only a flush in flight ends");
        };
        match target {
            SyncTarget::File(inode) => {
                let file = self
                    .inodes
                    .get_mut(&inode)
                    .expect("an inode outlives its names");
                if well {
                    file.flush(horizon);
                } else {
                    file.pending
                        .values_mut()
                        .for_each(|versions| orphan(versions, horizon));
                    orphan(&mut file.len_pending, horizon);
                }
            }
            SyncTarget::Dir(path) => {
                let dir = self
                    .dirs
                    .get_mut(&path)
                    .expect("a folder outlives its changes");
                // A file system that cannot commit names keeps them for the next attempt, or stops.
                if well {
                    dir.flush(horizon);
                }
            }
        }
    }
}

impl<T> Version<T> {
    fn new(op: OpId, value: T) -> Self {
        Self {
            op,
            value,
            completed: None,
            orphan: false,
        }
    }

    pub(super) fn is_unfinished(&self, op: OpId) -> bool {
        self.op == op && self.completed.is_none()
    }

    fn covered(&self, horizon: u64) -> bool {
        !self.orphan && self.completed.is_some_and(|order| order <= horizon)
    }

    /// In the order in which a crash that keeps it applies it: completed ones first.
    pub(super) fn rank(&self) -> (u64, OpId) {
        (self.completed.unwrap_or(u64::MAX), self.op)
    }
}

impl Inode {
    fn sector_completed(
        &mut self,
        op: OpId,
        sector: usize,
        slot: &Slot,
        order: u64,
        durable: bool,
    ) {
        *slot_mut(&mut self.visible, sector) = slot.clone();
        let versions = self
            .pending
            .get_mut(&sector)
            .expect("a write in flight is pending");
        stamp(versions, op, order);
        if durable {
            *slot_mut(&mut self.durable, sector) = slot.clone();
            versions.retain(|version| version.completed.is_none());
            if versions.is_empty() {
                self.pending.remove(&sector);
            }
        }
    }

    fn flush(&mut self, horizon: u64) {
        let durable = &mut self.durable;
        self.pending.retain(|sector, versions| {
            if let Some(value) = settle(versions, horizon) {
                *slot_mut(durable, *sector) = value;
            }
            !versions.is_empty()
        });
        if let Some(len) = settle(&mut self.len_pending, horizon) {
            self.len_durable = len;
        }
    }
}

impl Dir {
    fn flush(&mut self, horizon: u64) {
        self.pending.sort_by_key(Version::rank);
        let durable = Rc::make_mut(&mut self.durable);
        self.pending.retain(|version| {
            let covered = version.covered(horizon);
            if covered {
                change_names(durable, &version.value);
            }
            !covered
        });
    }
}

/// The newest value that a flush makes durable; it and all older ones are settled.
fn settle<T: Clone>(versions: &mut Pending<T>, horizon: u64) -> Option<T> {
    let covered = versions.iter().filter(|version| version.covered(horizon));
    let newest = covered.max_by_key(|version| version.completed)?;
    let (order, value) = (newest.completed, newest.value.clone());
    versions.retain(|version| version.completed.is_none() || version.completed > order);
    Some(value)
}

fn stamp<T>(versions: &mut Pending<T>, op: OpId, order: u64) {
    let mine = versions.iter_mut().find(|version| version.op == op);
    mine.expect("a change in flight is pending").completed = Some(order);
}

fn orphan<T>(versions: &mut Pending<T>, horizon: u64) {
    for version in versions
        .iter_mut()
        .filter(|version| version.covered(horizon))
    {
        version.orphan = true;
    }
}

pub(super) fn change_names(names: &mut Names, change: &DirChange) {
    match change {
        DirChange::Link(name, entry) => {
            names.insert(Rc::clone(name), *entry);
        }
        DirChange::Unlink(name) => {
            names.remove(name);
        }
        DirChange::Rename(source, target, entry) => {
            names.remove(source);
            names.insert(Rc::clone(target), *entry);
        }
    }
}

pub(super) fn slot_mut(slots: &mut Rc<Vec<Slot>>, sector: usize) -> &mut Slot {
    let slots = Rc::make_mut(slots);
    if slots.len() <= sector {
        slots.resize(sector + 1, None);
    }
    &mut slots[sector]
}

/// Cuts bytes into sectors, the last one filled up with zeros.
pub(super) fn cut_slots(bytes: &[u8]) -> Vec<Slot> {
    let sectors = bytes.chunks(SECTOR_BYTES).map(|chunk| {
        if *chunk == ZEROS[..chunk.len()] {
            return None;
        }
        let mut sector = Rc::new([0u8; SECTOR_BYTES]);
        let contents = Rc::get_mut(&mut sector).expect("a new sector has one owner");
        contents[..chunk.len()].copy_from_slice(chunk);
        Some(sector)
    });
    sectors.collect()
}
