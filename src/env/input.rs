//! Files that a client verb reads. Blocking: never on an executor.

use super::error::at_path;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Whether there is something of this name.
#[must_use]
pub fn exists(path: &Path) -> bool {
    path.exists()
}

/// Opens a file to be read from its start.
///
/// # Errors
/// Names the path.
pub fn open(path: &Path) -> io::Result<impl Read + Send + use<>> {
    File::open(path).map_err(|error| at_path("open", path, error))
}

/// Reads a whole file of at most `len_bytes_max`.
///
/// # Errors
/// Names the path; `FileTooLarge` where it is longer.
pub fn read_whole(path: &Path, len_bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(len_bytes_max)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let read = open(path)?.take(limit).read_to_end(&mut bytes);
    read.map_err(|error| at_path("read", path, error))?;
    if bytes.len() > len_bytes_max {
        let error = io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is longer than {len_bytes_max} bytes"),
        );
        return Err(at_path("read", path, error));
    }
    Ok(bytes)
}
