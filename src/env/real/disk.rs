//! Files and directories through glommio. Lives on every core.
//!
//! Data goes through `O_DIRECT` on the ring. Metadata calls (`open(O_CREAT)`, `rename`, `readdir`,
//! `statvfs` …) block in the kernel and have no ring operation in glommio, so they run on the
//! executor's two blocking threads.
//!
//! Invariant: no file is opened on the ring before its first block was really written. glommio asks
//! whether a device can be polled by reading one block of the first file it opens there; an empty
//! or unwritten file answers yes on any device, and later reads fail with `EOPNOTSUPP`.

use super::spawn_blocking;
use crate::env::buffer::{Buffer, SharedBuffer};
use crate::env::disk::{DirEntry, OpenMode};
use crate::env::error::{at, at_path, from_glommio};
use crate::limits::{BLOCK_ALIGN, SHORT_WRITES_MAX, ZERO_SLICE_BYTES};
use glommio::io::{DmaBuffer, DmaFile, OpenOptions};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The real disk; it has no state of its own.
#[derive(Clone, Copy)]
pub(in crate::env) struct RealDisk;

/// Runs a blocking file-system call and names it in its error.
async fn metadata_call<T: Send + 'static>(
    operation: &'static str,
    path: &Path,
    call: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let path = path.to_path_buf();
    spawn_blocking(move || call(&path).map_err(|error| at_path(operation, &path, error))).await
}

impl RealDisk {
    pub(in crate::env) async fn create_dir_all(self, path: &Path) -> io::Result<()> {
        metadata_call("make directory", path, |path| fs::create_dir_all(path)).await
    }

    pub(in crate::env) async fn list(self, path: &Path) -> io::Result<Vec<DirEntry>> {
        metadata_call("list directory", path, list_files).await
    }

    pub(in crate::env) async fn create_allocated(
        self,
        path: &Path,
        len_bytes: u64,
        written_bytes: u64,
    ) -> io::Result<()> {
        let allocate = move |path: &Path| allocate_new(path, len_bytes);
        let space = metadata_call("allocate", path, allocate).await?;
        let written_bytes = match space {
            Space::Taken => written_bytes,
            // Only a byte that was written has its place: an append must not meet a full disk.
            Space::OnlyPromised => len_bytes,
        };
        let outcome = self.fill_with_zeros(path, written_bytes).await;
        if outcome.is_err() {
            // The first error is the one to tell; a left-over file is swept at the next start.
            let _ = self.remove(path).await;
        }
        outcome
    }

    /// Writes zeros over the first bytes and flushes. The very first block is written already.
    async fn fill_with_zeros(self, path: &Path, len_bytes: u64) -> io::Result<()> {
        if len_bytes == BLOCK_ALIGN as u64 {
            return Ok(());
        }
        let file = self.open(path, OpenMode::Write).await?;
        let slice_bytes = usize::try_from(len_bytes)
            .unwrap_or(usize::MAX)
            .min(ZERO_SLICE_BYTES);
        let mut zeros = file.buffer_unwiped(slice_bytes);
        zeros.as_mut().fill(0);
        let zeros = zeros.freeze();
        let mut position = 0;
        while position < len_bytes {
            let rest = usize::try_from(len_bytes - position).unwrap_or(usize::MAX);
            let slice = zeros.slice(0..slice_bytes.min(rest));
            let written = slice.len() as u64;
            file.write_all_at(slice, position).await?;
            position += written;
            super::yield_now().await;
        }
        file.sync_data().await
    }

    pub(in crate::env) async fn written_until(self, path: &Path, position: u64) -> io::Result<u64> {
        metadata_call("ask where the hole is of", path, move |path| {
            first_hole(path, position)
        })
        .await
    }

    pub(in crate::env) async fn open(self, path: &Path, mode: OpenMode) -> io::Result<RealFile> {
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::Write => {
                options.write(true);
            }
            OpenMode::WriteDsync => {
                options.write(true).custom_flags(libc::O_DSYNC);
            }
        }
        let dma = options
            .dma_open(path)
            .await
            .map_err(|error| at_path("open", path, from_glommio(error)))?;
        let path = path.to_path_buf();
        Ok(RealFile {
            open: Rc::new(OpenFile { dma, path }),
        })
    }

    pub(in crate::env) async fn rename(self, source: &Path, target: &Path) -> io::Result<()> {
        let target = target.to_path_buf();
        metadata_call("rename", source, move |source| fs::rename(source, target)).await
    }

    pub(in crate::env) async fn remove(self, path: &Path) -> io::Result<()> {
        metadata_call("remove", path, |path| fs::remove_file(path)).await
    }

    pub(in crate::env) async fn sync_dir(self, path: &Path) -> io::Result<()> {
        metadata_call("flush directory", path, |path| {
            fs::File::open(path)?.sync_all()
        })
        .await
    }

    pub(in crate::env) async fn read_small(
        self,
        path: &Path,
        len_bytes_max: usize,
    ) -> io::Result<Vec<u8>> {
        metadata_call("read", path, move |path| read_bounded(path, len_bytes_max)).await
    }

    pub(in crate::env) async fn write_small_new(
        self,
        path: &Path,
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        metadata_call("write", path, move |path| write_new(path, &bytes)).await
    }

    pub(in crate::env) async fn free_bytes(self, path: &Path) -> io::Result<u64> {
        metadata_call("ask the free space of", path, free_bytes).await
    }
}

pub(in crate::env) fn list_files(path: &Path) -> io::Result<Vec<DirEntry>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_file() {
            let name = entry.file_name().into_string().map_err(|name| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("file name {} is not UTF-8", name.display()),
                )
            })?;
            files.push(DirEntry {
                name,
                len_bytes: metadata.len(),
            });
        }
    }
    files.sort_unstable_by(|left, right| left.name.cmp(&right.name));
    Ok(files)
}

/// What `fallocate` did.
pub(in crate::env) enum Space {
    /// The blocks are the file's own, unwritten.
    Taken,
    /// The file is as long as asked, and has no blocks yet.
    OnlyPromised,
}

/// Makes the file, takes its whole space (so that a full disk is met before a byte is written) and
/// really writes its first block (see the invariant above).
fn allocate_new(path: &Path, len_bytes: u64) -> io::Result<Space> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o640)
        .open(path)?;
    let filled = fallocate(&file, len_bytes).and_then(|space| {
        file.write_all(&[0; BLOCK_ALIGN])?;
        file.sync_data()?;
        Ok(space)
    });
    if filled.is_err() {
        // As in `create_allocated`: the first error is the one to tell.
        let _ = fs::remove_file(path);
    }
    filled
}

/// Takes the space of a file, without writing it.
pub(in crate::env) fn fallocate(file: &fs::File, len_bytes: u64) -> io::Result<Space> {
    let length =
        libc::off_t::try_from(len_bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    loop {
        // SAFETY: a plain system call on an open descriptor; no memory is handed over.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
            return Ok(Space::Taken);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            // Not every file system can allocate ahead; then the zeros meet a full disk.
            Some(libc::EOPNOTSUPP) => return file.set_len(len_bytes).map(|()| Space::OnlyPromised),
            _ => return Err(error),
        }
    }
}

/// Space that is taken but unwritten counts as a hole on ext4 and XFS; a file system that cannot
/// tell says that the only hole is behind the end.
fn first_hole(path: &Path, position: u64) -> io::Result<u64> {
    let file = fs::File::open(path)?;
    let len_bytes = file.metadata()?.len();
    if position >= len_bytes {
        return Ok(len_bytes);
    }
    let start =
        libc::off_t::try_from(position).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    // SAFETY: a plain system call on an open descriptor; no memory is handed over.
    let hole = unsafe { libc::lseek(file.as_raw_fd(), start, libc::SEEK_HOLE) };
    let hole = u64::try_from(hole).map_err(|_| io::Error::last_os_error())?;
    Ok(hole.next_multiple_of(BLOCK_ALIGN as u64).min(len_bytes))
}

fn read_bounded(path: &Path, len_bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let bound = len_bytes_max as u64 + 1;
    fs::File::open(path)?.take(bound).read_to_end(&mut bytes)?;
    if bytes.len() > len_bytes_max {
        let text = format!("longer than {len_bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(bytes)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o640)
        .open(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// Bytes free for us on the file system of `path`. Blocks.
pub(in crate::env) fn free_bytes(path: &Path) -> io::Result<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let mut facts = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends in zero, and the kernel fills the struct when it returns 0.
    let facts = unsafe {
        if libc::statvfs(path.as_ptr(), facts.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        facts.assume_init()
    };
    // `f_bavail`, not `f_bfree`: the blocks reserved for root are not for us.
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

/// One descriptor of a file with `O_DIRECT`, counted. Dropping the last closes it on the next turn
/// of the reactor.
#[derive(Clone)]
pub(in crate::env) struct RealFile {
    open: Rc<OpenFile>,
}

struct OpenFile {
    dma: DmaFile,
    path: PathBuf,
}

impl OpenFile {
    fn error(
        &self,
        operation: &'static str,
        len_bytes: usize,
        position: u64,
        source: io::Error,
    ) -> io::Error {
        let path = self.path.display();
        at(
            operation,
            format!("{len_bytes} bytes of {path} at {position}"),
            source,
        )
    }
}

impl RealFile {
    pub(in crate::env) fn buffer_unwiped(&self, len_bytes: usize) -> Buffer {
        Buffer::from_dma(self.open.dma.alloc_dma_buffer(len_bytes))
    }

    /// A buffer with a copy of `bytes`, which lie in memory the device cannot take as it is.
    fn aligned_copy(&self, bytes: &[u8]) -> Rc<DmaBuffer> {
        let mut copy = self.open.dma.alloc_dma_buffer(bytes.len());
        copy.as_bytes_mut().copy_from_slice(bytes);
        Rc::new(copy)
    }

    pub(in crate::env) async fn write_all_at(
        &self,
        buffer: SharedBuffer,
        position: u64,
    ) -> io::Result<()> {
        let open = Rc::clone(&self.open);
        let whole = match buffer.whole_dma() {
            Some(dma) => Rc::clone(dma),
            None if buffer.is_empty() => return Ok(()),
            None => self.aligned_copy(&buffer),
        };
        let total = buffer.len();
        let written = continue_short_writes(total, |offset| {
            let rest = if offset == 0 {
                Rc::clone(&whole)
            } else {
                self.aligned_copy(&buffer[offset..])
            };
            let open = Rc::clone(&open);
            async move {
                let outcome = open.dma.write_rc_at(rest, position + offset as u64).await;
                outcome.map_err(from_glommio)
            }
        });
        written
            .await
            .map_err(|source| self.open.error("write", total, position, source))
    }

    pub(in crate::env) async fn read_at(
        &self,
        position: u64,
        len_bytes: usize,
    ) -> io::Result<SharedBuffer> {
        if len_bytes == 0 {
            return Ok(SharedBuffer::from(Vec::new()));
        }
        let read = self
            .open
            .dma
            .read_at_aligned(position, len_bytes)
            .await
            .map_err(|error| {
                self.open
                    .error("read", len_bytes, position, from_glommio(error))
            })?;
        Ok(SharedBuffer::from_read(read))
    }

    pub(in crate::env) async fn sync_data(&self) -> io::Result<()> {
        let outcome = self.open.dma.fdatasync().await;
        outcome.map_err(|error| at_path("flush", &self.open.path, from_glommio(error)))
    }
}

/// Calls `write_from(offset)` until `total` bytes are written. A short write is legal (a signal, a
/// file system at its limit) and is continued from the last whole block, at most
/// [`SHORT_WRITES_MAX`] times; one without progress is an error.
async fn continue_short_writes<W>(
    total: usize,
    mut write_from: impl FnMut(usize) -> W,
) -> io::Result<()>
where
    W: Future<Output = io::Result<usize>>,
{
    let mut offset = 0;
    for _ in 0..=SHORT_WRITES_MAX {
        let written = write_from(offset).await?;
        assert!(
            written <= total - offset,
            "the kernel wrote more than it was given"
        );
        if offset + written == total {
            return Ok(());
        }
        // Direct writes end on a block, whatever the count says in between.
        offset += written / BLOCK_ALIGN * BLOCK_ALIGN;
        if written < BLOCK_ALIGN {
            break;
        }
    }
    let text = format!("a short write could not be continued: {offset} of {total} bytes written");
    Err(io::Error::new(io::ErrorKind::WriteZero, text))
}

#[cfg(test)]
mod tests;
