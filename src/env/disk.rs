//! Files as the journal needs them: fixed length, aligned, `O_DIRECT`, and the directory operations
//! around them. Every error is an `io::Error` whose text names the operation and the path; the
//! kernel's number is found by [`super::raw_os_error`].

use super::buffer::{Buffer, SharedBuffer};
use super::real::disk::{RealDisk, RealFile};
use super::sim;
use crate::limits::BLOCK_ALIGN;
use std::io;
use std::path::Path;

/// How a journal file is opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OpenMode {
    /// Read only.
    Read,
    /// Read and write; a write is durable only after [`File::sync_data`].
    Write,
    /// Read and write with `O_DSYNC`; a write is durable when it completes.
    WriteDsync,
}

/// One entry of a directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DirEntry {
    /// File name without its folder.
    pub name: String,
    /// Length in bytes.
    pub len_bytes: u64,
}

/// The disk as one executor reaches it. Cheap to clone.
#[derive(Clone)]
pub struct Disk {
    inner: DiskInner,
}

#[derive(Clone)]
enum DiskInner {
    Real(RealDisk),
    Sim(sim::SimDisk),
}

impl Disk {
    pub(super) fn real() -> Disk {
        Disk {
            inner: DiskInner::Real(RealDisk),
        }
    }

    pub(super) fn simulated(disk: sim::SimDisk) -> Disk {
        Disk {
            inner: DiskInner::Sim(disk),
        }
    }

    /// Makes a directory and its parents; existing ones are fine. Durable after `sync_dir` of each
    /// parent.
    pub async fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        match &self.inner {
            DiskInner::Real(disk) => disk.create_dir_all(path).await,
            DiskInner::Sim(disk) => disk.create_dir_all(path).await,
        }
    }

    /// The files (not folders) of a directory, sorted by name.
    pub async fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        match &self.inner {
            DiskInner::Real(disk) => disk.list(path).await,
            DiskInner::Sim(disk) => disk.list(path).await,
        }
    }

    /// Makes a new file (it must not exist) that reads as `len_bytes` zeros, takes its whole space,
    /// really writes at least the first `written_bytes` of it (both multiples of 4,096, not zero),
    /// in slices that yield to foreground work, and flushes it. Where the file system cannot take
    /// space without writing, all of it is written.
    ///
    /// The *name* is durable only after `sync_dir`. `ENOSPC` comes from here, never from an append;
    /// what was made is removed again then.
    pub async fn create_allocated(
        &self,
        path: &Path,
        len_bytes: u64,
        written_bytes: u64,
    ) -> io::Result<()> {
        assert!(
            written_bytes > 0,
            "an unwritten file would mislead glommio's IOPOLL probe"
        );
        assert!(
            written_bytes <= len_bytes,
            "no more is written than there is"
        );
        assert!(
            len_bytes.is_multiple_of(BLOCK_ALIGN as u64),
            "file lengths are aligned"
        );
        assert!(
            written_bytes.is_multiple_of(BLOCK_ALIGN as u64),
            "written lengths are aligned"
        );
        match &self.inner {
            DiskInner::Real(disk) => disk.create_allocated(path, len_bytes, written_bytes).await,
            DiskInner::Sim(disk) => disk.create_allocated(path, len_bytes, written_bytes).await,
        }
    }

    /// Where the first place at or behind `position` lies that is taken and was never written, a
    /// multiple of 4,096; the file's length, if there is none or the file system does not tell.
    pub async fn written_until(&self, path: &Path, position: u64) -> io::Result<u64> {
        match &self.inner {
            DiskInner::Real(disk) => disk.written_until(path, position).await,
            DiskInner::Sim(disk) => disk.written_until(path, position).await,
        }
    }

    /// Opens an existing file. It must not be empty.
    pub async fn open(&self, path: &Path, mode: OpenMode) -> io::Result<File> {
        let inner = match &self.inner {
            DiskInner::Real(disk) => FileInner::Real(disk.open(path, mode).await?),
            DiskInner::Sim(disk) => FileInner::Sim(disk.open(path, mode).await?),
        };
        Ok(File { inner })
    }

    /// Renames, replacing `target`. Durable after `sync_dir`.
    pub async fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        match &self.inner {
            DiskInner::Real(disk) => disk.rename(source, target).await,
            DiskInner::Sim(disk) => disk.rename(source, target).await,
        }
    }

    /// Removes a file. Durable after `sync_dir`.
    pub async fn remove(&self, path: &Path) -> io::Result<()> {
        match &self.inner {
            DiskInner::Real(disk) => disk.remove(path).await,
            DiskInner::Sim(disk) => disk.remove(path).await,
        }
    }

    /// Makes every name change in this directory durable.
    pub async fn sync_dir(&self, path: &Path) -> io::Result<()> {
        match &self.inner {
            DiskInner::Real(disk) => disk.sync_dir(path).await,
            DiskInner::Sim(disk) => disk.sync_dir(path).await,
        }
    }

    /// Reads a small metadata file (store mark, checkpoint) as a whole; a longer one than
    /// `len_bytes_max` is an error of kind `InvalidData`.
    pub async fn read_small(&self, path: &Path, len_bytes_max: usize) -> io::Result<Vec<u8>> {
        match &self.inner {
            DiskInner::Real(disk) => disk.read_small(path, len_bytes_max).await,
            DiskInner::Sim(disk) => disk.read_small(path, len_bytes_max).await,
        }
    }

    /// Writes a small metadata file under a *new* name and flushes it. The name is durable only
    /// after `sync_dir`. A file that could not be written in full is removed again.
    pub async fn write_small_new(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        match &self.inner {
            DiskInner::Real(disk) => disk.write_small_new(path, bytes).await,
            DiskInner::Sim(disk) => disk.write_small_new(path, bytes).await,
        }
    }

    /// Bytes free for us on the file system that holds `path`.
    pub async fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        match &self.inner {
            DiskInner::Real(disk) => disk.free_bytes(path).await,
            DiskInner::Sim(disk) => disk.free_bytes(path).await,
        }
    }
}

/// An open file. Cheap to clone (one descriptor, counted); closed when the last clone is dropped.
#[derive(Clone)]
pub struct File {
    inner: FileInner,
}

#[derive(Clone)]
enum FileInner {
    Real(RealFile),
    Sim(sim::SimFile),
}

impl File {
    /// A zeroed, aligned buffer to write to this file; `len_bytes` must be a multiple of 4,096.
    #[must_use]
    pub fn buffer(&self, len_bytes: usize) -> Buffer {
        let mut buffer = self.buffer_unwiped(len_bytes);
        buffer.as_mut().fill(0);
        buffer
    }

    /// As [`File::buffer`], with whatever the memory held before: for a caller who sets every byte,
    /// so that no old memory reaches the disk.
    #[must_use]
    pub fn buffer_unwiped(&self, len_bytes: usize) -> Buffer {
        assert!(
            len_bytes.is_multiple_of(BLOCK_ALIGN),
            "buffer lengths are aligned"
        );
        match &self.inner {
            FileInner::Real(file) => file.buffer_unwiped(len_bytes),
            FileInner::Sim(_) => Buffer::heap_unwiped(len_bytes),
        }
    }

    /// Writes the whole of `buffer` at `position` (both multiples of 4,096): a short write is
    /// continued until all is written, and a write that cannot make progress is an error. The
    /// future must not be dropped before it ends.
    pub async fn write_all_at(&self, buffer: SharedBuffer, position: u64) -> io::Result<()> {
        assert!(
            buffer.len().is_multiple_of(BLOCK_ALIGN),
            "write lengths are aligned"
        );
        assert!(
            position.is_multiple_of(BLOCK_ALIGN as u64),
            "write positions are aligned"
        );
        match &self.inner {
            FileInner::Real(file) => file.write_all_at(buffer, position).await,
            FileInner::Sim(file) => file.write_all_at(buffer, position).await,
        }
    }

    /// Reads `len_bytes` at `position` (both multiples of 4,096). Fewer bytes come back only at the
    /// end of the file.
    pub async fn read_at(&self, position: u64, len_bytes: usize) -> io::Result<SharedBuffer> {
        assert!(
            len_bytes.is_multiple_of(BLOCK_ALIGN),
            "read lengths are aligned"
        );
        assert!(
            position.is_multiple_of(BLOCK_ALIGN as u64),
            "read positions are aligned"
        );
        match &self.inner {
            FileInner::Real(file) => file.read_at(position, len_bytes).await,
            FileInner::Sim(file) => file.read_at(position, len_bytes).await,
        }
    }

    /// Makes every write *completed before this call* durable (`fdatasync`). A failure is final:
    /// the kernel reports it once and forgets, so it must never be retried.
    pub async fn sync_data(&self) -> io::Result<()> {
        match &self.inner {
            FileInner::Real(file) => file.sync_data().await,
            FileInner::Sim(file) => file.sync_data().await,
        }
    }
}
