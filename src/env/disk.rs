//! Files as the journal needs them: fixed length, aligned, `O_DIRECT`, and the directory operations
//! around them. Every error is an `io::Error` with the kernel's number in `raw_os_error`, and its
//! text names the operation and the path.

use super::buffer::{Buffer, SharedBuffer};
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
    _private: (),
}

impl Disk {
    /// Makes a directory and its parents; existing ones are fine. Durable after `sync_dir` of each parent.
    pub async fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        unimplemented!()
    }

    /// The files (not folders) of a directory, sorted by name.
    pub async fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let _ = path;
        unimplemented!()
    }

    /// Makes a new file (it must not exist), allocates `len_bytes` and writes zeros over all of it,
    /// in slices that yield to foreground work, then flushes it. The *name* is durable only after
    /// `sync_dir`. `ENOSPC` comes from here, never from an append.
    pub async fn create_zeroed(&self, path: &Path, len_bytes: u64) -> io::Result<()> {
        let _ = (path, len_bytes);
        unimplemented!()
    }

    /// Opens an existing file.
    pub async fn open(&self, path: &Path, mode: OpenMode) -> io::Result<File> {
        let _ = (path, mode);
        unimplemented!()
    }

    /// Renames, replacing `target`. Durable after `sync_dir`.
    pub async fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        let _ = (source, target);
        unimplemented!()
    }

    /// Removes a file. Durable after `sync_dir`.
    pub async fn remove(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        unimplemented!()
    }

    /// Makes every name change in this directory durable.
    pub async fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        unimplemented!()
    }

    /// Reads a small metadata file (store mark, checkpoint) as a whole; at most `len_bytes_max`.
    pub async fn read_small(&self, path: &Path, len_bytes_max: usize) -> io::Result<Vec<u8>> {
        let _ = (path, len_bytes_max);
        unimplemented!()
    }

    /// Writes a small metadata file under a *new* name and flushes it. The name is durable only after
    /// `sync_dir`.
    pub async fn write_small_new(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        let _ = (path, bytes);
        unimplemented!()
    }

    /// Bytes free for us on the file system that holds `path`.
    pub async fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let _ = path;
        unimplemented!()
    }
}

/// An open file. Cheap to clone (one descriptor, counted); closed when the last clone is dropped.
#[derive(Clone)]
pub struct File {
    _private: (),
}

impl File {
    /// A zeroed, aligned buffer to write to this file; `len_bytes` must be a multiple of 4,096.
    #[must_use]
    pub fn buffer(&self, len_bytes: usize) -> Buffer {
        let _ = len_bytes;
        unimplemented!()
    }

    /// Writes the whole of `buffer` at `position` (both multiples of 4,096): a short write is
    /// continued until all is written, and a write that cannot make progress is an error. The
    /// future must not be dropped before it ends.
    pub async fn write_all_at(&self, buffer: SharedBuffer, position: u64) -> io::Result<()> {
        let _ = (buffer, position);
        unimplemented!()
    }

    /// Reads `len_bytes` at `position` (both multiples of 4,096). Fewer bytes come back only at the
    /// end of the file.
    pub async fn read_at(&self, position: u64, len_bytes: usize) -> io::Result<SharedBuffer> {
        let _ = (position, len_bytes);
        unimplemented!()
    }

    /// Makes every write *completed before this call* durable (`fdatasync`).
    pub async fn sync_data(&self) -> io::Result<()> {
        unimplemented!()
    }
}
