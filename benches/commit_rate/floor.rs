//! The floor: one 4 KiB `pwrite` and one `fdatasync` at a time, on a file written before.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const BLOCK_BYTES: usize = 4096;
const FILE_BYTES: usize = 64 << 20;

#[repr(align(4096))]
struct Block([u8; BLOCK_BYTES]);

/// A prewritten file, open with `O_DIRECT`.
pub struct Floor {
    file: File,
}

impl Floor {
    /// Writes the whole file once, so that no later write changes metadata.
    pub fn prepare(path: &Path) -> Floor {
        let mut file = File::create(path).expect("the floor's file can be made");
        let zeros = vec![0u8; 1 << 20];
        for _ in 0..FILE_BYTES / zeros.len() {
            file.write_all(&zeros).expect("there is room");
        }
        file.sync_all().expect("the disk works");
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_DIRECT)
            .open(path);
        Floor {
            file: file.expect("the file system has O_DIRECT"),
        }
    }

    /// Blocks a second, written and flushed one by one, for `span`.
    pub fn run(&self, span: Duration) -> f64 {
        let block = Block([0x5a; BLOCK_BYTES]);
        let descriptor = self.file.as_raw_fd();
        let begin = Instant::now();
        let mut blocks = 0usize;
        while begin.elapsed() < span {
            let at = blocks * BLOCK_BYTES % FILE_BYTES;
            // SAFETY: the buffer lives across the call, is aligned, and as long as it is said to
            // be.
            let written = unsafe {
                libc::pwrite(
                    descriptor,
                    block.0.as_ptr().cast(),
                    BLOCK_BYTES,
                    at as libc::off_t,
                )
            };
            assert_eq!(written, BLOCK_BYTES as isize, "a short or failed write");
            // SAFETY: the descriptor is open as long as `self.file` is.
            assert_eq!(unsafe { libc::fdatasync(descriptor) }, 0, "a failed flush");
            blocks += 1;
        }
        blocks as f64 / begin.elapsed().as_secs_f64()
    }
}
