//! A scratch file for measuring a disk: `O_DIRECT`, of bounded size, and gone whatever happens,
//! because its name is removed as soon as it is open. Blocking: never on an executor.

use super::error::at_path;
use super::process;
use super::real::disk;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Alignment of buffers and positions, in bytes.
const ALIGN: usize = 4096;

/// Bytes at an aligned address, as `O_DIRECT` wants them.
pub struct AlignedBytes {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    /// `len` random bytes: a device may treat zeros, or repetition, in its own way.
    #[must_use]
    pub fn random(len: usize) -> AlignedBytes {
        let mut bytes = vec![0; len + ALIGN];
        let start = bytes.as_ptr().align_offset(ALIGN);
        assert!(
            start < ALIGN,
            "an address within a page reaches the next page"
        );
        let seed = u64::from_le_bytes(process::random_bytes::<8>());
        fastrand::Rng::with_seed(seed).fill(&mut bytes[start..start + len]);
        AlignedBytes { bytes, start, len }
    }

    fn get(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    fn get_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }

    /// The bytes, for work in memory.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        self.get()
    }
}

/// The scratch file. Its positions may be written and read in any order.
pub struct ScratchFile {
    file: File,
    direct: bool,
}

impl ScratchFile {
    /// Makes the file in `folder`.
    ///
    /// # Errors
    /// Names the path.
    pub fn create(folder: &Path) -> io::Result<ScratchFile> {
        let path = folder.join(format!(".penstock-probe-{}", process::process_id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let direct = options.clone().custom_flags(libc::O_DIRECT).open(&path);
        let (file, direct) = match direct {
            Ok(file) => (file, true),
            // Some file systems have no direct I/O; the name may be there although opening failed.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                let _ = fs::remove_file(&path);
                let file = options.open(&path);
                (
                    file.map_err(|error| at_path("create", &path, error))?,
                    false,
                )
            }
            Err(error) => return Err(at_path("create", &path, error)),
        };
        fs::remove_file(&path).map_err(|error| at_path("remove", &path, error))?;
        Ok(ScratchFile { file, direct })
    }

    /// The same file again, opened so that each write is durable when it returns.
    ///
    /// # Errors
    /// The kernel's.
    pub fn durable(&self) -> io::Result<ScratchFile> {
        self.reopen(libc::O_DSYNC)
    }

    /// The same file again.
    ///
    /// # Errors
    /// The kernel's.
    pub fn again(&self) -> io::Result<ScratchFile> {
        self.reopen(0)
    }

    fn reopen(&self, flags: i32) -> io::Result<ScratchFile> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let direct = if self.direct { libc::O_DIRECT } else { 0 };
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(direct | flags);
        let file = options.open(&path);
        let file = file.map_err(|error| at_path("open again", Path::new(&path), error))?;
        Ok(ScratchFile {
            file,
            direct: self.direct,
        })
    }

    /// Takes space for `len_bytes` and writes none of it: a log always writes places like these.
    ///
    /// # Errors
    /// The kernel's; the disk is full.
    pub fn allocate(&self, len_bytes: u64) -> io::Result<()> {
        disk::fallocate(&self.file, len_bytes).map(|_| ())
    }

    /// Whether transfers go past the page cache.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Writes all of `bytes` at `position`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_at(&self, bytes: &AlignedBytes, position: u64) -> io::Result<()> {
        self.file.write_all_at(bytes.get(), position)
    }

    /// Fills `bytes` from `position`.
    ///
    /// # Errors
    /// The kernel's; the end of the file.
    pub fn read_at(&self, bytes: &mut AlignedBytes, position: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes.get_mut(), position)
    }

    /// `fdatasync`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Bytes free for us on the file system that holds `folder`.
///
/// # Errors
/// Names the folder.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    disk::free_bytes(folder).map_err(|error| at_path("look at", folder, error))
}

/// One TCP connection to ourselves: writes `bytes`, has them sent back, and so on. Returns the time
/// of each round trip, in nanoseconds.
///
/// # Errors
/// The kernel's.
pub fn loopback_echo(bytes: usize, for_ns: u64) -> io::Result<Vec<u64>> {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let mut near = std::net::TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let echo = process::spawn_thread("echo", move || {
        let mut buffer = vec![0; bytes];
        while far.read_exact(&mut buffer).is_ok() && far.write_all(&buffer).is_ok() {}
    })?;
    let mut buffer = vec![7; bytes];
    let mut times = Vec::new();
    let start = process::monotonic_ns();
    let mut now = start;
    while now - start < for_ns {
        near.write_all(&buffer)?;
        near.read_exact(&mut buffer)?;
        let then = std::mem::replace(&mut now, process::monotonic_ns());
        times.push(now - then);
    }
    drop(near);
    let _ = echo.join();
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: nothing is left behind, and what is written is read. Method: a real file in a fresh
    /// folder, looked at while the file is open.
    #[test]
    fn the_scratch_file_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = ScratchFile::create(folder.path()).expect("created");
        assert_eq!(fs::read_dir(folder.path()).expect("lists").count(), 0);
        let bytes = AlignedBytes::random(8192);
        file.durable()
            .expect("opens again")
            .write_at(&bytes, 4096)
            .expect("writes");
        file.sync_data().expect("syncs");
        let mut read = AlignedBytes::random(8192);
        assert_ne!(read.as_slice(), bytes.as_slice());
        file.again()
            .expect("opens again")
            .read_at(&mut read, 4096)
            .expect("reads");
        assert_eq!(read.as_slice(), bytes.as_slice());
        assert!(free_bytes(folder.path()).expect("known") > 0);
        let fresh = ScratchFile::create(folder.path()).expect("created again");
        fresh.allocate(8192).expect("takes space");
        fresh
            .read_at(&mut read, 0)
            .expect("is as long as was asked");
        assert!(read.as_slice().iter().all(|byte| *byte == 0));
        assert!(ScratchFile::create(Path::new("/nonexistent")).is_err());
    }

    /// Goal: the echo measures. Method: a few milliseconds of it.
    #[test]
    fn the_echo_measures() {
        let times = loopback_echo(1024, 5_000_000).expect("works");
        assert!(!times.is_empty());
        assert!(times.iter().all(|time| *time > 0));
    }
}
