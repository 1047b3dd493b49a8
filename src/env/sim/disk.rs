//! The simulated disk as tasks reach it: latencies, faults and the event log around [`Media`].
//!
//! An operation is logged when it is submitted and when it ends; between the two a crash may find
//! any part of it. It ends whether or not its future is still there, as in a kernel. Latencies and
//! so the order of completion come from the seed, unless the simulation is *instant*.

use super::Core;
use super::executor::Action;
use super::fault::{Fault, FaultPlan, OpKind};
use super::media::{
    Change, DirChange, Entry, Event, InodeId, Media, OpId, SECTOR_BYTES, SyncTarget, cut_slots,
};
use crate::env::buffer::SharedBuffer;
use crate::env::disk::{DirEntry, OpenMode};
use crate::env::error::at_path;
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Zeroing a new file shows this many intermediate lengths to a crash.
const ZERO_STEPS: u64 = 3;

/// The disk and what is under way on it.
#[derive(Default)]
pub(super) struct DiskState {
    pub(super) media: Media,
    pub(super) events: Vec<Event>,
    pub(super) faults: FaultPlan,
    recorded: bool,
    op_next: u64,
    ops: BTreeMap<OpId, Op>,
    /// How far from its start each file made in this run was written without a gap.
    written: BTreeMap<InodeId, u64>,
}

struct Op {
    /// How the event log will show its end.
    end: Event,
    /// What the caller will be told.
    answer: Result<(), i32>,
    ended: bool,
    waker: Option<Waker>,
}

impl DiskState {
    pub(super) fn new(media: Media, faults: FaultPlan, recorded: bool) -> Self {
        Self {
            op_next: media.op_last,
            media,
            faults,
            recorded,
            ..Self::default()
        }
    }

    pub(super) fn log(&mut self, event: Event) {
        self.media.apply(&event);
        if self.recorded {
            self.events.push(event);
        }
    }
}

impl Core {
    /// A timer says that an operation ends now.
    pub(super) fn disk_op_ends(&self, id: OpId) {
        self.executor.trace(id.0 ^ 0xd15c);
        let mut disk = self.disk.borrow_mut();
        let op = disk.ops.get_mut(&id).expect("an operation ends once");
        op.ended = true;
        let waker = op.waker.take();
        let end = op.end.clone();
        disk.log(end);
        drop(disk);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn latency_ns(&self) -> u64 {
        self.executor.chance(|rng| match rng.u8(0..32) {
            0 => rng.u64(1_000_000..8_000_000),
            1..4 => rng.u64(200_000..1_000_000),
            _ => rng.u64(10_000..200_000),
        })
    }
}

/// A change or flush under way.
struct OpFuture {
    core: Rc<Core>,
    op: OpId,
}

impl Future for OpFuture {
    type Output = Result<(), i32>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), i32>> {
        let mut disk = self.core.disk.borrow_mut();
        let op = disk
            .ops
            .get_mut(&self.op)
            .expect("an operation is asked until it has ended");
        if !op.ended {
            op.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        let answer = op.answer;
        disk.ops.remove(&self.op);
        Poll::Ready(answer)
    }
}

/// The disk of a simulation.
#[derive(Clone)]
pub struct SimDisk {
    pub(super) core: Rc<Core>,
}

impl SimDisk {
    /// Makes a directory and its parents.
    pub async fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut folder = PathBuf::from("/");
        for component in path.components() {
            let Component::Normal(name) = component else {
                continue;
            };
            let parent = folder.clone();
            folder.push(name);
            if self.lookup(&folder).is_none() {
                let name = text(name.to_str())?;
                let change = DirChange::Link(name, Entry::Folder);
                self.names(OpKind::Create, &folder, &parent, change).await?;
            }
        }
        Ok(())
    }

    /// As [`Disk::list`](crate::env::Disk::list).
    pub async fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let path = absolute(path);
        self.delay(OpKind::Open, &path).await?;
        match self.lookup(&path) {
            Some(Entry::Folder) => {}
            Some(Entry::File(_)) => return Err(refused("list", &path, libc::ENOTDIR)),
            None => return Err(refused("list", &path, libc::ENOENT)),
        }
        let files = self.core.disk.borrow().media.files(&path);
        let entry = |(name, _, len_bytes): (Rc<str>, InodeId, u64)| DirEntry {
            name: name.as_ref().to_owned(),
            len_bytes,
        };
        Ok(files.into_iter().map(entry).collect())
    }

    /// Makes a new file of zeros and flushes it; its name waits for `sync_dir`. Space that is taken
    /// reads as zeros, so it is the same here whether it is written or not.
    pub async fn create_allocated(
        &self,
        path: &Path,
        len_bytes: u64,
        written_bytes: u64,
    ) -> io::Result<()> {
        let path = absolute(path);
        if len_bytes > self.free_now() {
            return Err(refused("allocate", &path, libc::ENOSPC));
        }
        let inode = self.create(&path).await?;
        let step = (len_bytes / ZERO_STEPS)
            .next_multiple_of(SECTOR_BYTES as u64)
            .max(1);
        let mut len = 0;
        while len < len_bytes {
            len = (len + step).min(len_bytes);
            self.change(OpKind::Write, &path, Change::Length(inode, len))
                .await?;
        }
        let written = (inode, written_bytes);
        self.core.disk.borrow_mut().written.extend([written]);
        self.sync(OpKind::Sync, &path, SyncTarget::File(inode))
            .await
    }

    /// As [`Disk::written_until`](crate::env::Disk::written_until). Of a file that was made before
    /// this run nothing is known, as on a file system that does not tell.
    pub async fn written_until(&self, path: &Path, position: u64) -> io::Result<u64> {
        let inode = self.file(&absolute(path))?;
        let disk = self.core.disk.borrow();
        let len = disk.media.len(inode);
        let written = disk.written.get(&inode).copied().unwrap_or(len);
        Ok(if position <= written { written } else { len })
    }

    /// As [`Disk::open`](crate::env::Disk::open).
    pub async fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SimFile> {
        let path = absolute(path);
        self.delay(OpKind::Open, &path).await?;
        let inode = self.file(&path)?;
        Ok(SimFile {
            disk: self.clone(),
            path: Rc::from(path),
            inode,
            mode,
        })
    }

    /// Renames within one directory, replacing the target.
    pub async fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        let (source, target) = (absolute(source), absolute(target));
        let entry = Entry::File(self.file(&source)?);
        let dir = folder_of(&source)?.to_owned();
        if dir != folder_of(&target)? {
            return Err(refused("rename", &source, libc::EXDEV));
        }
        let change = DirChange::Rename(name_of(&source)?, name_of(&target)?, entry);
        self.names(OpKind::Rename, &source, &dir, change).await
    }

    /// Removes a file.
    pub async fn remove(&self, path: &Path) -> io::Result<()> {
        let path = absolute(path);
        self.file(&path)?;
        let dir = folder_of(&path)?.to_owned();
        self.names(
            OpKind::Remove,
            &path,
            &dir,
            DirChange::Unlink(name_of(&path)?),
        )
        .await
    }

    /// Makes the names of a directory durable.
    pub async fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let path = absolute(path);
        if self.lookup(&path) != Some(Entry::Folder) {
            return Err(refused("sync", &path, libc::ENOENT));
        }
        let target = SyncTarget::Dir(Rc::from(path.as_path()));
        self.sync(OpKind::SyncDir, &path, target).await
    }

    /// A whole small file; `EFBIG` if it is longer than `len_bytes_max`.
    pub async fn read_small(&self, path: &Path, len_bytes_max: usize) -> io::Result<Vec<u8>> {
        let path = absolute(path);
        let fault = self.delay(OpKind::Read, &path).await?;
        let inode = self.file(&path)?;
        let len = self.core.disk.borrow().media.len(inode);
        match usize::try_from(len) {
            Ok(len) if len <= len_bytes_max => Ok(self.read_now(inode, 0, len, fault)),
            _ => {
                let long = io::Error::new(io::ErrorKind::InvalidData, "longer than expected");
                Err(at_path("read", &path, long))
            }
        }
    }

    /// Writes a small file under a new name and flushes it; its name waits for `sync_dir`.
    pub async fn write_small_new(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        let path = absolute(path);
        if bytes.len() as u64 > self.free_now() {
            return Err(refused("write", &path, libc::ENOSPC));
        }
        let inode = self.create(&path).await?;
        let len = bytes.len() as u64;
        self.change(OpKind::Write, &path, Change::Length(inode, len))
            .await?;
        let slots = Rc::from(cut_slots(&bytes));
        let write = Change::Write {
            inode,
            first_sector: 0,
            slots,
            dsync: false,
        };
        self.change(OpKind::Write, &path, write).await?;
        self.sync(OpKind::Sync, &path, SyncTarget::File(inode))
            .await
    }

    /// Bytes free on the simulated file system.
    pub async fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.delay(OpKind::Open, path).await?;
        Ok(self.free_now())
    }

    fn free_now(&self) -> u64 {
        let disk = self.core.disk.borrow();
        let folders = disk.media.dirs.keys();
        let files = folders.flat_map(|folder| disk.media.files(folder));
        let used: u64 = files.map(|(_, _, len)| len).sum();
        self.core.capacity_bytes.saturating_sub(used)
    }

    fn lookup(&self, path: &Path) -> Option<Entry> {
        self.core.disk.borrow().media.lookup(path)
    }

    fn file(&self, path: &Path) -> io::Result<InodeId> {
        match self.lookup(path) {
            Some(Entry::File(inode)) => Ok(inode),
            Some(Entry::Folder) => Err(refused("open", path, libc::EISDIR)),
            None => Err(refused("open", path, libc::ENOENT)),
        }
    }

    async fn create(&self, path: &Path) -> io::Result<InodeId> {
        if self.lookup(path).is_some() {
            return Err(refused("create", path, libc::EEXIST));
        }
        let dir = folder_of(path)?;
        if self.lookup(dir) != Some(Entry::Folder) {
            return Err(refused("create", path, libc::ENOENT));
        }
        let inode = self.core.disk.borrow().media.inode_next();
        let change = DirChange::Link(name_of(path)?, Entry::File(inode));
        self.names(OpKind::Create, path, dir, change).await?;
        Ok(inode)
    }

    async fn names(
        &self,
        kind: OpKind,
        path: &Path,
        dir: &Path,
        change: DirChange,
    ) -> io::Result<()> {
        self.change(kind, path, Change::Names(Rc::from(dir), change))
            .await
    }

    fn fault(&self, kind: OpKind, path: &Path) -> Option<Fault> {
        let path = path.to_str().unwrap_or_default();
        self.core.disk.borrow_mut().faults.count(kind, path)
    }

    /// An operation without a lasting effect: it only takes time, and may fail.
    async fn delay(&self, kind: OpKind, path: &Path) -> io::Result<Option<Fault>> {
        let fault = self.fault(kind, path);
        if !self.core.instant {
            let latency = Duration::from_nanos(self.core.latency_ns());
            super::SimClock {
                core: Rc::clone(&self.core),
            }
            .sleep(latency)
            .await;
        }
        match fault {
            Some(Fault::Errno(errno)) => Err(refused(kind.verb(), path, errno)),
            Some(Fault::Short) if kind != OpKind::Read => {
                Err(refused(kind.verb(), path, libc::EIO))
            }
            _ => Ok(fault),
        }
    }

    async fn change(&self, kind: OpKind, path: &Path, change: Change) -> io::Result<()> {
        let sectors = match &change {
            Change::Write { slots, .. } => slots.len(),
            Change::Length(..) | Change::Names(..) => 0,
        };
        let fault = self.fault(kind, path);
        let op = self.op_next();
        let failed = || Event::Fail(op, self.core.executor.chance(|rng| rng.usize(0..=sectors)));
        let (end, answer) = match fault {
            None | Some(Fault::Lie | Fault::BitFlip) => (Event::Complete(op), Ok(())),
            Some(Fault::Errno(errno)) => (failed(), Err(errno)),
            Some(Fault::Short) => (failed(), Err(libc::EIO)),
        };
        let outcome = self
            .under_way(op, Event::Submit(op, change), end, answer)
            .await;
        outcome.map_err(|errno| refused(kind.verb(), path, errno))
    }

    async fn sync(&self, kind: OpKind, path: &Path, target: SyncTarget) -> io::Result<()> {
        let fault = self.fault(kind, path);
        let op = self.op_next();
        let (end, answer) = match fault {
            None | Some(Fault::BitFlip) => (Event::SyncComplete(op), Ok(())),
            Some(Fault::Lie) => (Event::SyncFail(op), Ok(())),
            Some(Fault::Errno(errno)) => (Event::SyncFail(op), Err(errno)),
            Some(Fault::Short) => (Event::SyncFail(op), Err(libc::EIO)),
        };
        let outcome = self
            .under_way(op, Event::SyncSubmit(op, target), end, answer)
            .await;
        outcome.map_err(|errno| refused(kind.verb(), path, errno))
    }

    fn op_next(&self) -> OpId {
        let mut disk = self.core.disk.borrow_mut();
        disk.op_next += 1;
        OpId(disk.op_next)
    }

    async fn under_way(
        &self,
        op: OpId,
        start: Event,
        end: Event,
        answer: Result<(), i32>,
    ) -> Result<(), i32> {
        if self.core.instant {
            let mut disk = self.core.disk.borrow_mut();
            disk.log(start);
            disk.log(end);
            return answer;
        }
        self.submit(op, start, end, answer);
        let core = Rc::clone(&self.core);
        OpFuture { core, op }.await
    }

    /// Logs the start of an operation and sets the timer for its end.
    fn submit(&self, op: OpId, start: Event, end: Event, answer: Result<(), i32>) {
        self.core.executor.trace(op.0 ^ digest(&start));
        let mut disk = self.core.disk.borrow_mut();
        disk.log(start);
        let under_way = Op {
            end,
            answer,
            ended: false,
            waker: None,
        };
        disk.ops.insert(op, under_way);
        drop(disk);
        let latency_ns = self.core.latency_ns();
        self.core.executor.timer(latency_ns, Action::Disk(op));
    }

    fn read_now(
        &self,
        inode: InodeId,
        position: u64,
        len_bytes: usize,
        fault: Option<Fault>,
    ) -> Vec<u8> {
        let mut bytes = self
            .core
            .disk
            .borrow()
            .media
            .read(inode, position, len_bytes);
        match fault {
            Some(Fault::BitFlip) if !bytes.is_empty() => {
                let bit = self
                    .core
                    .executor
                    .chance(|rng| rng.usize(0..bytes.len() * 8));
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            Some(Fault::Short) => bytes.truncate(bytes.len() / 2),
            _ => {}
        }
        bytes
    }
}

/// An open file of a simulation.
#[derive(Clone)]
pub struct SimFile {
    disk: SimDisk,
    path: Rc<Path>,
    inode: InodeId,
    mode: OpenMode,
}

impl SimFile {
    /// Where the file was when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all of `bytes` at `position`, both in whole sectors and inside the file.
    pub async fn write_all_at(&self, bytes: SharedBuffer, position: u64) -> io::Result<()> {
        let start = usize::try_from(position).expect("a simulated file fits in memory");
        assert!(
            start.is_multiple_of(SECTOR_BYTES),
            "a write begins at a sector"
        );
        assert!(
            bytes.len().is_multiple_of(SECTOR_BYTES),
            "a write has whole sectors"
        );
        if self.mode == OpenMode::Read {
            return Err(refused("write", &self.path, libc::EBADF));
        }
        let len = self.disk.core.disk.borrow().media.len(self.inode);
        if position + bytes.len() as u64 > len {
            // Journal files have a fixed length: a write past it is a mistake worth an error.
            return Err(refused("write", &self.path, libc::EFBIG));
        }
        let end = position + bytes.len() as u64;
        if let Some(written) = self
            .disk
            .core
            .disk
            .borrow_mut()
            .written
            .get_mut(&self.inode)
            && position <= *written
        {
            *written = end.max(*written);
        }
        let write = Change::Write {
            inode: self.inode,
            first_sector: start / SECTOR_BYTES,
            slots: Rc::from(cut_slots(&bytes)),
            dsync: self.mode == OpenMode::WriteDsync,
        };
        self.disk.change(OpKind::Write, &self.path, write).await
    }

    /// Reads `len_bytes` at `position`; fewer only at the end of the file.
    pub async fn read_at(&self, position: u64, len_bytes: usize) -> io::Result<SharedBuffer> {
        let fault = self.disk.delay(OpKind::Read, &self.path).await?;
        Ok(SharedBuffer::from(
            self.disk.read_now(self.inode, position, len_bytes, fault),
        ))
    }

    /// Makes every write completed before this call durable.
    pub async fn sync_data(&self) -> io::Result<()> {
        let target = SyncTarget::File(self.inode);
        self.disk.sync(OpKind::Sync, &self.path, target).await
    }
}

/// Folds what an operation does into one number for the trace.
fn digest(event: &Event) -> u64 {
    let fold = |text: &str| u64::from(crc32c::crc32c(text.as_bytes()));
    match event {
        Event::Submit(
            _,
            Change::Write {
                inode,
                first_sector,
                slots,
                dsync,
            },
        ) => {
            let contents = slots.iter().flatten();
            let crc = contents.fold(0, |crc, sector| crc32c::crc32c_append(crc, &sector[..]));
            let place = (u64::from(inode.0) << 33) ^ ((*first_sector as u64) << 1);
            place ^ u64::from(*dsync) ^ (u64::from(crc) << 32)
        }
        Event::Submit(_, Change::Length(inode, len)) => u64::from(inode.0) ^ (len << 8),
        Event::Submit(_, Change::Names(dir, change)) => fold(&format!("{dir:?} {change:?}")),
        other => fold(&format!("{other:?}")),
    }
}

/// What a kernel would answer.
fn refused(operation: &'static str, path: &Path, errno: i32) -> io::Error {
    at_path(operation, path, io::Error::from_raw_os_error(errno))
}

/// Paths are read from the root, whatever the process's folder is.
fn absolute(path: &Path) -> PathBuf {
    Path::new("/").join(path)
}

fn folder_of(path: &Path) -> io::Result<&Path> {
    path.parent()
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
}

fn name_of(path: &Path) -> io::Result<Rc<str>> {
    text(path.file_name().and_then(|name| name.to_str()))
}

fn text(name: Option<&str>) -> io::Result<Rc<str>> {
    name.map(Rc::from)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
}
