//! What the disk gives of the broker's own files without the broker: large `O_DIRECT` reads, one
//! file after the other, by one thread or several.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

const READ_BYTES: usize = 1 << 20;
const ALIGN: usize = 4096;

/// MB/s of `threads` threads that share the files below `folder`.
///
/// # Errors
/// A file cannot be read.
pub fn read_mb_per_s(folder: &Path, threads: usize) -> Result<f64, String> {
    let mut files = Vec::new();
    find(folder, &mut files).map_err(|error| error.to_string())?;
    let begin = Instant::now();
    let read = std::thread::scope(|scope| {
        let files = &files;
        let share = |lane: usize| -> std::io::Result<u64> {
            files
                .iter()
                .skip(lane)
                .step_by(threads)
                .map(|path| read(path))
                .sum()
        };
        let lanes = (0..threads).map(|lane| scope.spawn(move || share(lane)));
        // All of them begin before the first is waited for.
        let lanes: Vec<_> = lanes.collect();
        let each = lanes.into_iter().map(|lane| lane.join().expect("no panic"));
        each.sum::<std::io::Result<u64>>()
    });
    let bytes = read.map_err(|error| error.to_string())?;
    Ok(bytes as f64 / 1e6 / begin.elapsed().as_secs_f64())
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, length) = (entry.file_type()?, entry.metadata()?.len());
        if kind.is_dir() {
            find(&entry.path(), files)?;
        } else if length >= READ_BYTES as u64 {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(())
}

fn read(path: &Path) -> std::io::Result<u64> {
    let mut options = OpenOptions::new();
    let mut file: File = options.read(true).custom_flags(libc::O_DIRECT).open(path)?;
    let mut memory = vec![0u8; READ_BYTES + ALIGN];
    let start = memory.as_ptr().align_offset(ALIGN);
    let buffer = &mut memory[start..start + READ_BYTES];
    let mut bytes = 0;
    loop {
        match file.read(buffer)? {
            0 => return Ok(bytes),
            count => bytes += count as u64,
        }
    }
}
