//! One process per data directory, by a lock of the kernel that ends with the process, however it
//! ends. A file with a process id in it would outlive a crash and name a stranger.
//!
//! The lock file is a full block of text, because it serves a second purpose: it is the file that
//! lies ready when an executor asks glommio for the first time whether the device can be polled
//! (see `real::disk`).

use crate::env::error::at_path;
use crate::limits::BLOCK_ALIGN;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Name of the lock file in the data directory.
pub const LOCK_FILE: &str = "LOCK";

const LOCK_TEXT: &str = "Penstock holds a kernel lock on this file while it runs; leave it here.\n";

/// Why the data directory could not be locked.
#[derive(Debug)]
pub enum LockError {
    /// Another process serves it.
    Held {
        /// The lock file.
        path: PathBuf,
    },
    /// The lock file cannot be made, opened or locked.
    Io(io::Error),
}

impl fmt::Display for LockError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Held { path } => write!(
                formatter,
                "another penstock process is serving this data directory (it holds the lock {}); \
                 stop it, or give this one its own --data",
                path.display()
            ),
            LockError::Io(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for LockError {}

/// The data directory as an absolute path; made, with its parents, if it is missing and `create` is
/// set.
///
/// # Errors
/// Names the path. `NotFound` if it is missing and may not be made.
pub fn data_dir(path: &Path, create: bool) -> io::Result<PathBuf> {
    if create && !path.exists() {
        make_durable_dir(path)?;
    }
    let absolute = std::fs::canonicalize(path).map_err(|error| at_path("open", path, error))?;
    if !absolute.is_dir() {
        return Err(at_path("open", path, io::ErrorKind::NotADirectory.into()));
    }
    Ok(absolute)
}

/// Whether a file of this name is there.
#[must_use]
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Makes a directory and its missing parents; each name is durable before the next is made in it.
fn make_durable_dir(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !parent.exists() {
        make_durable_dir(parent)?;
    }
    std::fs::create_dir(path).map_err(|error| at_path("create", path, error))?;
    let synced = File::open(parent).and_then(|folder| folder.sync_all());
    synced.map_err(|error| at_path("flush", parent, error))
}

/// The lock on a data directory; held until it is dropped or the process ends.
#[derive(Debug)]
pub struct DataLock {
    file: File,
    path: PathBuf,
}

impl DataLock {
    /// Locks an existing directory, without waiting.
    ///
    /// # Errors
    /// [`LockError::Held`] if another process (or this one) has it; nothing is changed then.
    pub fn acquire(directory: &Path) -> Result<DataLock, LockError> {
        let path = directory.join(LOCK_FILE);
        let fail = |operation| {
            let path = path.clone();
            move |error| LockError::Io(at_path(operation, &path, error))
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o640)
            .open(&path)
            .map_err(fail("open"))?;
        // SAFETY: a plain system call on an open descriptor.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let error = io::Error::last_os_error();
            return Err(match error.raw_os_error() {
                Some(libc::EWOULDBLOCK) => LockError::Held { path },
                _ => fail("lock")(error),
            });
        }
        let len_bytes = file.metadata().map_err(fail("look at"))?.len();
        if len_bytes < BLOCK_ALIGN as u64 {
            let mut block = LOCK_TEXT.as_bytes().to_vec();
            block.resize(BLOCK_ALIGN, b'\n');
            file.write_all(&block)
                .and_then(|()| file.sync_all())
                .map_err(fail("write"))?;
        }
        Ok(DataLock { file, path })
    }

    /// The lock file: never empty, flushed, on the data file system.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the lock back.
    pub fn release(self) {
        drop(self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a second holder is refused at once and the lock ends with its holder. Method: flock is
    /// per open file, so a second open in this process stands for a second process.
    #[test]
    fn second_holder_is_refused() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let first = DataLock::acquire(directory.path()).expect("free");
        let second = DataLock::acquire(directory.path());
        let text = match second {
            Err(error @ LockError::Held { .. }) => error.to_string(),
            other => panic!("expected a refusal, got {other:?}"),
        };
        assert!(text.contains("LOCK"), "{text}");
        first.release();
        let third = DataLock::acquire(directory.path()).expect("free again");
        assert_eq!(
            third.path().metadata().expect("file").len(),
            BLOCK_ALIGN as u64
        );
    }

    /// Goal: a missing directory is an error that names it. Method: lock inside one.
    #[test]
    fn missing_directory_is_named() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let missing = directory.path().join("not-there");
        match DataLock::acquire(&missing) {
            Err(LockError::Io(error)) => {
                assert!(error.to_string().contains("not-there"), "{error}");
                assert_eq!(error.kind(), io::ErrorKind::NotFound);
            }
            other => panic!("expected an error, got {other:?}"),
        }
    }
}
