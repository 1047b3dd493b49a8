//! Files of client verbs, of the configuration and of offline tools.

use crate::env::disk::DirEntry;
use crate::env::error::{at, at_path};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Where a verb reads from: a file, or standard input for `-`.
pub struct Input {
    reader: Box<dyn BufRead>,
    name: String,
}

impl Input {
    /// Opens it.
    ///
    /// # Errors
    /// Names the file.
    pub fn open(path: &Path) -> io::Result<Input> {
        if path == Path::new("-") {
            let reader = Box::new(io::stdin().lock());
            return Ok(Input {
                reader,
                name: "standard input".to_owned(),
            });
        }
        let file = File::open(path).map_err(|error| at_path("open", path, error))?;
        Ok(Input {
            reader: Box::new(BufReader::new(file)),
            name: path.display().to_string(),
        })
    }

    /// The file's name, or "standard input".
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next line without its line feed, into `line` (emptied first); false at the end. A last
    /// line without a line feed counts.
    ///
    /// # Errors
    /// `InvalidData` for a line longer than `len_bytes_max`.
    pub fn read_line(&mut self, line: &mut Vec<u8>, len_bytes_max: usize) -> io::Result<bool> {
        line.clear();
        let bound = len_bytes_max as u64 + 1;
        let outcome = Read::take(&mut self.reader, bound).read_until(b'\n', line);
        let count = outcome.map_err(|error| at("read", self.name.clone(), error))?;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if count as u64 == bound {
            let text = format!("a line is longer than {len_bytes_max} bytes");
            let error = io::Error::new(io::ErrorKind::InvalidData, text);
            return Err(at("read", self.name.clone(), error));
        }
        Ok(count > 0)
    }
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.reader.read(bytes)
    }
}

/// A whole file of at most `len_bytes_max`.
///
/// # Errors
/// Names the file; `InvalidData` if it is longer.
pub fn read_file(path: &Path, len_bytes_max: usize) -> io::Result<Vec<u8>> {
    let fail = |error| at_path("read", path, error);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(fail)?;
    file.take(len_bytes_max as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    if bytes.len() > len_bytes_max {
        let text = format!("longer than {len_bytes_max} bytes");
        return Err(fail(io::Error::new(io::ErrorKind::InvalidData, text)));
    }
    Ok(bytes)
}

/// Writes a whole file under a temporary name and renames it: readers see the old or the new one.
///
/// # Errors
/// Names the file; nothing is left under the temporary name.
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let outcome = File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, path));
    outcome.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        at_path("write", path, error)
    })
}

/// As [`write_file`], with the file that was there kept under the same name and `.1`. At no time is
/// there no file, once there was one.
///
/// # Errors
/// As [`write_file`].
pub fn keep_previous(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".1");
    let previous = path.with_file_name(name);
    if path.exists() {
        let _ = fs::remove_file(&previous);
        // A file system without links has no previous one.
        let _ = fs::hard_link(path, &previous);
    }
    write_file(path, bytes)
}

/// The files (not folders) of a directory, sorted by name.
///
/// # Errors
/// Names the directory.
pub fn list_files(path: &Path) -> io::Result<Vec<DirEntry>> {
    crate::env::real::disk::list_files(path).map_err(|error| at_path("list directory", path, error))
}

/// Reads a file at any position: offline tools that look at segments. Goes through the page cache,
/// so never on a directory that a broker serves.
#[derive(Debug)]
pub struct FileReader {
    file: File,
    path: PathBuf,
    len_bytes: u64,
}

impl FileReader {
    /// Opens it.
    ///
    /// # Errors
    /// Names the file.
    pub fn open(path: &Path) -> io::Result<FileReader> {
        let fail = |error| at_path("open", path, error);
        let file = File::open(path).map_err(fail)?;
        let len_bytes = file.metadata().map_err(fail)?.len();
        Ok(FileReader {
            file,
            path: path.to_path_buf(),
            len_bytes,
        })
    }

    /// Length in bytes when it was opened.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Fills `bytes` from `position` as far as the file goes; gives the count.
    ///
    /// # Errors
    /// Names file and position.
    pub fn read_at(&self, bytes: &mut [u8], position: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            let outcome = self
                .file
                .read_at(&mut bytes[filled..], position + filled as u64);
            match outcome {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let subject = format!("{} at {position}", self.path.display());
                    return Err(at("read", subject, error));
                }
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: lines come one by one, with and without a last line feed, empty ones too, and a too
    /// long one is an error. Method: a small file.
    #[test]
    fn lines_are_read() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("lines");
        write_file(&path, b"one\n\nthree").expect("written");
        let mut input = Input::open(&path).expect("opened");
        let mut line = Vec::new();
        let mut lines = Vec::new();
        while input.read_line(&mut line, 5).expect("read") {
            lines.push(line.clone());
        }
        assert_eq!(lines, [&b"one"[..], b"", b"three"]);
        let mut input = Input::open(&path).expect("opened");
        assert!(input.read_line(&mut line, 4).expect("read"));
        assert!(input.read_line(&mut line, 4).expect("read"));
        let error = input.read_line(&mut line, 4).expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    /// Goal: one previous version is kept, whole. Method: write three.
    #[test]
    fn the_previous_version_is_kept() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("dump.json");
        for text in [&b"1"[..], b"2", b"3"] {
            keep_previous(&path, text).expect("written");
        }
        assert_eq!(fs::read(&path).expect("read"), b"3");
        let previous = directory.path().join("dump.json.1");
        assert_eq!(fs::read(previous).expect("read"), b"2");
        assert_eq!(list_files(directory.path()).expect("listed").len(), 2);
    }

    /// Goal: whole files are bounded, readers stop at the end, and listings are sorted. Method:
    /// try.
    #[test]
    fn files_are_read_and_listed() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("b");
        write_file(&path, b"12345").expect("written");
        write_file(&directory.path().join("a"), b"").expect("written");
        assert_eq!(read_file(&path, 5).expect("read"), b"12345");
        let error = read_file(&path, 4).expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let reader = FileReader::open(&path).expect("opened");
        let mut bytes = [0; 8];
        assert_eq!(reader.read_at(&mut bytes, 3).expect("read"), 2);
        assert_eq!(&bytes[..2], b"45");
        let names: Vec<String> = list_files(directory.path())
            .expect("listed")
            .into_iter()
            .map(|e| e.name)
            .collect();
        assert_eq!(names, ["a", "b"]);
    }
}
