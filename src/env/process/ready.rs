//! The ready file: its name appears, whole, once everything is served. A script waits for it.

use crate::env::error::at_path;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Removes what an earlier process left under this name, before anything else is done; none is
/// fine.
///
/// # Errors
/// When it exists and cannot be removed: a stale file would tell scripts a lie.
pub fn remove_ready_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(at_path("remove the stale ready file", path, error))
        }
        _ => Ok(()),
    }
}

/// Writes the ready file under a temporary name in the same folder and renames it, so that a reader
/// sees all of it or nothing.
///
/// # Errors
/// Names the file; nothing is left under the temporary name.
pub fn write_ready_file(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let outcome = fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&temporary, path));
    outcome.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        at_path("write the ready file", path, error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: written whole, replaced whole, removed, and no temporary left. Method: do it and list.
    #[test]
    fn appears_whole_and_alone() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("ready.json");
        remove_ready_file(&path).expect("nothing there is fine");
        write_ready_file(&path, "first").expect("written");
        write_ready_file(&path, "{}").expect("replaced");
        assert_eq!(fs::read_to_string(&path).expect("readable"), "{}");
        assert_eq!(fs::read_dir(directory.path()).expect("listed").count(), 1);
        remove_ready_file(&path).expect("removed");
        assert!(!path.exists());
    }

    /// Goal: a failure names the path. Method: a folder that is not there.
    #[test]
    fn failure_names_the_path() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = directory.path().join("missing").join("ready.json");
        let error = write_ready_file(&path, "{}").expect_err("no folder");
        assert!(error.to_string().contains("ready.json"), "{error}");
    }
}
