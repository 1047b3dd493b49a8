//! The files in which the kernel shows and takes its settings (`/proc`, `/sys`), below a root: `/`,
//! or a copy in a test. Whatever lies there (nothing, a folder where a file should be, megabytes,
//! bytes that are no text) is "not known", never a failure; only writing says why it failed.

use crate::env::error::at_path;
use crate::limits::{HOST_ENTRIES_MAX, HOST_FILE_BYTES_MAX};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

/// The settings of a host. Paths are absolute as on that host ("/proc/stat").
#[derive(Clone, Debug)]
pub struct HostTree {
    root: PathBuf,
}

impl HostTree {
    /// The tree below `root`; `/` is this host.
    #[must_use]
    pub fn new(root: &Path) -> HostTree {
        HostTree {
            root: root.to_path_buf(),
        }
    }

    /// Whether this is the running host and not a copy.
    #[must_use]
    pub fn is_this_host(&self) -> bool {
        self.root == Path::new("/")
    }

    fn below(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file, its first `HOST_FILE_BYTES_MAX` bytes; `None` if it cannot be read.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<String> {
        let path = self.below(path);
        // Opening a pipe or a device could wait for ever.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).custom_flags(libc::O_NONBLOCK);
        let mut bytes = Vec::new();
        let file: File = file.open(&path).ok()?;
        file.take(HOST_FILE_BYTES_MAX as u64)
            .read_to_end(&mut bytes)
            .ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The names in a folder, sorted, at most `HOST_ENTRIES_MAX`; none if it cannot be listed.
    #[must_use]
    pub fn list(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.below(path)) else {
            return Vec::new();
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.take(HOST_ENTRIES_MAX).collect();
        names.sort();
        names
    }

    /// Whether something has this name.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.below(path).exists()
    }

    /// Where a path leads once all links are followed, as a path of this tree; `None` if nowhere,
    /// or out of the tree.
    #[must_use]
    pub fn resolve(&self, path: &str) -> Option<String> {
        let root = fs::canonicalize(&self.root).ok()?;
        let target = fs::canonicalize(self.below(path)).ok()?;
        let below = target.strip_prefix(root).ok()?;
        Some(format!("/{}", below.to_str()?))
    }

    /// Writes a setting: a file of `/proc/sys`, `/proc/irq` or `/sys` that is there already. A
    /// kernel may take a value and keep another: read it back.
    ///
    /// # Errors
    /// Names the file. A path elsewhere is refused, also when a file of undo records asks for it.
    pub fn write_setting(&self, path: &str, value: &str) -> io::Result<()> {
        let allowed = ["/proc/sys/", "/proc/irq/", "/sys/"];
        let plain = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if !plain || !allowed.iter().any(|start| path.starts_with(start)) {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "no setting of the kernel");
            return Err(at_path("write", Path::new(path), error));
        }
        let mut options = OpenOptions::new();
        // The kernel's files ignore truncation; a copy must not keep the tail of a longer value.
        let options = options.write(true).truncate(true);
        let outcome = options
            .custom_flags(libc::O_NONBLOCK)
            .open(self.below(path))
            .and_then(|mut file| file.write_all(value.as_bytes()));
        outcome.map_err(|error| at_path("write", Path::new(path), error))
    }
}

/// The absolute form of a path that may not exist yet: its nearest folder that does, links
/// followed, and the rest as it was given.
#[must_use]
pub fn settled_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for folder in absolute.ancestors() {
        if let Ok(real) = fs::canonicalize(folder) {
            let rest = absolute.strip_prefix(folder).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() {
                real
            } else {
                real.join(rest)
            };
        }
    }
    absolute
}

/// Makes the folder of a file, with all above it; none is needed if it is there.
///
/// # Errors
/// Names the folder.
pub fn make_folder_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => {
            fs::create_dir_all(folder).map_err(|error| at_path("make", folder, error))
        }
        _ => Ok(()),
    }
}

/// Removes a file; none is fine.
///
/// # Errors
/// Names the file.
pub fn remove_file_if_any(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(at_path("remove", path, error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: whatever is there, reading does not fail or hang, and links stay inside. Method: a
    /// folder, a pipe, bytes that are no text, a link out of the tree.
    #[test]
    fn odd_things_are_not_known() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let root = directory.path();
        fs::create_dir_all(root.join("proc/folder")).expect("made");
        fs::write(root.join("proc/bytes"), [0xff, b'1', 0]).expect("written");
        std::os::unix::fs::symlink("/usr", root.join("proc/out")).expect("linked");
        std::os::unix::fs::symlink("folder", root.join("proc/in")).expect("linked");
        let status = std::process::Command::new("mkfifo")
            .arg(root.join("proc/pipe"))
            .status();
        assert!(status.expect("mkfifo").success());
        let tree = HostTree::new(root);
        for path in ["/proc/folder", "/proc/pipe", "/proc/absent", "/absent/x"] {
            assert_eq!(tree.read(path), None, "{path}");
        }
        assert_eq!(tree.read("/proc/bytes").as_deref(), Some("\u{fffd}1\0"));
        assert_eq!(tree.resolve("/proc/out"), None);
        assert_eq!(tree.resolve("/proc/in").as_deref(), Some("/proc/folder"));
        assert_eq!(tree.list("/proc/bytes"), Vec::<String>::new());
    }

    /// Goal: only settings are written, and none is made. Method: try other places.
    #[test]
    fn only_settings_are_written() {
        let directory = tempfile::tempdir().expect("temporary directory");
        fs::create_dir_all(directory.path().join("proc/sys/vm")).expect("made");
        let file = directory.path().join("proc/sys/vm/swappiness");
        fs::write(&file, "60\n").expect("written");
        let tree = HostTree::new(directory.path());
        tree.write_setting("/proc/sys/vm/swappiness", "1\n")
            .expect("written");
        assert_eq!(fs::read(&file).expect("read"), b"1\n");
        for path in [
            "/etc/passwd",
            "/proc/sys/../../etc/passwd",
            "/proc/sys/vm/absent",
            "proc/sys/vm/swappiness",
        ] {
            tree.write_setting(path, "1").expect_err(path);
        }
    }

    /// Goal: a folder that is to be made has an absolute name. Method: one below a link.
    #[test]
    fn a_path_to_be_is_settled() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let real = fs::canonicalize(directory.path()).expect("real");
        std::os::unix::fs::symlink(&real, real.join("link")).expect("linked");
        let settled = settled_path(&real.join("link/a/b"));
        assert_eq!(settled, real.join("a/b"));
        assert_eq!(settled_path(&real), real);
    }
}
