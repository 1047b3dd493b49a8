//! The real disk against the kernel, in a temporary directory beside the build (the system's own
//! may be memory without direct I/O).

use super::*;
use crate::env::real::executor::run_one;
use crate::env::{Disk, Env, File, raw_os_error};
use std::cell::Cell;
use std::collections::VecDeque;

/// Runs `body` on an executor with a fresh directory.
fn with_disk<F: Future<Output = ()> + 'static>(
    body: impl FnOnce(Env, PathBuf) -> F + Clone + Send + 'static,
) {
    let binary = std::env::current_exe().expect("this binary");
    let beside = binary.parent().expect("a folder");
    let directory = tempfile::tempdir_in(beside).expect("temporary directory");
    let path = directory.path().to_path_buf();
    run_one("disk", |core| async move { body(core.env, path).await }).expect("an executor");
}

async fn zeroed(disk: &Disk, path: &Path, mode: OpenMode) -> File {
    disk.create_allocated(path, 1 << 20, 1 << 20)
        .await
        .expect("created");
    disk.open(path, mode).await.expect("opened")
}

fn pattern(file: &File, len_bytes: usize) -> SharedBuffer {
    let mut buffer = file.buffer(len_bytes);
    for (index, byte) in buffer.as_mut().iter_mut().enumerate() {
        *byte = (index / 7 % 251) as u8;
    }
    buffer.freeze()
}

/// Goal: what is written is read, in every mode, as a whole and in parts, and the end of the file
/// shortens a read. Method: write at an offset and read around it.
#[test]
fn writes_are_read_back_in_every_mode() {
    with_disk(|env, directory| async move {
        let disk = env.disk();
        for (name, mode) in [("w", OpenMode::Write), ("d", OpenMode::WriteDsync)] {
            let path = directory.join(name);
            let file = zeroed(&disk, &path, mode).await;
            let bytes = pattern(&file, 64 << 10);
            file.write_all_at(bytes.clone(), 8192)
                .await
                .expect("written");
            // A view of a part cannot be handed to the device as it is.
            file.write_all_at(bytes.slice(4096..12288), 512 << 10)
                .await
                .expect("written");
            file.sync_data().await.expect("flushed");
            let reader = disk.open(&path, OpenMode::Read).await.expect("opened");
            let read = reader.read_at(4096, 72 << 10).await.expect("read");
            assert!(read[..4096].iter().all(|byte| *byte == 0), "zeroed before");
            assert_eq!(read[4096..4096 + (64 << 10)], *bytes);
            assert!(
                read[4096 + (64 << 10)..].iter().all(|byte| *byte == 0),
                "zeroed after"
            );
            let read = reader.read_at(512 << 10, 8192).await.expect("read");
            assert_eq!(*read, bytes[4096..12288]);
            assert_eq!(
                reader
                    .read_at((1 << 20) - 4096, 8192)
                    .await
                    .expect("read")
                    .len(),
                4096
            );
            assert_eq!(reader.read_at(1 << 20, 4096).await.expect("read").len(), 0);
        }
    });
}

/// Goal: O_DSYNC reaches the kernel. Method: ask it for the flags of the open descriptor.
#[test]
fn dsync_is_set_on_the_descriptor() {
    with_disk(|env, directory| async move {
        let path = directory.join("file");
        env.disk()
            .create_allocated(&path, 4096, 4096)
            .await
            .expect("created");
        for (mode, expected) in [(OpenMode::Write, false), (OpenMode::WriteDsync, true)] {
            let file = RealDisk.open(&path, mode).await.expect("opened");
            // SAFETY: asks for flags of an open descriptor.
            let flags = unsafe { libc::fcntl(file.open.dma.as_raw_fd(), libc::F_GETFL) };
            assert_eq!(flags & libc::O_DSYNC != 0, expected, "{mode:?}");
            assert!(flags & libc::O_DIRECT != 0, "{mode:?}");
        }
    });
}

/// Goal: a buffer never shows memory of an earlier one. Method: dirty buffers, drop them, take
/// more.
#[test]
fn buffers_are_zeroed() {
    with_disk(|env, directory| async move {
        let file = zeroed(&env.disk(), &directory.join("file"), OpenMode::Write).await;
        for len_bytes in [4096, 64 << 10, 4096, 4 << 20] {
            for _ in 0..8 {
                let mut buffer = file.buffer(len_bytes);
                assert_eq!(buffer.len(), len_bytes);
                assert!(buffer.as_mut().iter().all(|byte| *byte == 0));
                buffer.as_mut().fill(0xa5);
            }
        }
    });
}

/// Goal: a file is zeroed over its whole length, in slices with others in between, also when the
/// length is not a multiple of the slice; its space is taken; it must be new. Method: recycle space
/// that held other bytes, and count how often another task ran.
#[test]
fn created_files_are_zero_and_new() {
    with_disk(|env, directory| async move {
        let disk = env.disk();
        let path = directory.join("segment");
        let turns = Rc::new(Cell::new(0));
        let (counted, other) = (Rc::clone(&turns), env.clone());
        env.spawn("foreground", async move {
            for _ in 0..10_000 {
                counted.set(counted.get() + 1);
                other.yield_now().await;
            }
        });
        let len_bytes = 8 * ZERO_SLICE_BYTES as u64 + 12_288;
        disk.create_allocated(&path, len_bytes, len_bytes)
            .await
            .expect("created");
        assert!(turns.get() >= 8, "{} turns between the slices", turns.get());
        let metadata = fs::metadata(&path).expect("there");
        assert_eq!(metadata.len(), len_bytes);
        let blocks = std::os::unix::fs::MetadataExt::blocks(&metadata);
        assert!(blocks * 512 >= len_bytes, "space is taken");
        let bytes = fs::read(&path).expect("readable");
        assert!(bytes.iter().all(|byte| *byte == 0));
        let error = disk
            .create_allocated(&path, 4096, 4096)
            .await
            .expect_err("exists");
        assert_eq!(raw_os_error(&error), Some(libc::EEXIST));
        assert_eq!(fs::metadata(&path).expect("kept").len(), len_bytes);
    });
}

/// Goal: a file that cannot be allocated is an error with number and path, and nothing is left.
/// Method: more than the file system has.
#[test]
fn full_disk_is_met_before_any_write() {
    with_disk(|env, directory| async move {
        let disk = env.disk();
        let path = directory.join("huge");
        let free = disk.free_bytes(&directory).await.expect("free space");
        assert!(free > 0);
        let len_bytes = (free * 2).next_multiple_of(4096);
        let error = disk
            .create_allocated(&path, len_bytes, len_bytes)
            .await
            .expect_err("too much");
        let number = raw_os_error(&error);
        assert!(
            matches!(number, Some(libc::ENOSPC | libc::EFBIG)),
            "{error}"
        );
        assert!(error.to_string().contains("cannot allocate"), "{error}");
        assert!(error.to_string().contains("huge"), "{error}");
        assert!(!path.exists(), "nothing is left");
    });
}

/// Goal: directory operations do what they say and name what failed. Method: one of each.
#[test]
fn directory_operations() {
    with_disk(|env, directory| async move {
        let disk = env.disk();
        let folder = directory.join("a").join("b");
        disk.create_dir_all(&folder).await.expect("made");
        disk.create_dir_all(&folder)
            .await
            .expect("existing is fine");
        disk.create_dir_all(&folder.join("folder"))
            .await
            .expect("made");
        disk.write_small_new(&folder.join("two"), b"22".to_vec())
            .await
            .expect("written");
        disk.write_small_new(&folder.join("one"), b"1".to_vec())
            .await
            .expect("written");
        let entry = |name: &str, len_bytes| DirEntry {
            name: name.to_owned(),
            len_bytes,
        };
        let listed = disk.list(&folder).await.expect("listed");
        assert_eq!(listed, [entry("one", 1), entry("two", 2)]);

        let error = disk
            .write_small_new(&folder.join("one"), vec![])
            .await
            .expect_err("exists");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        disk.rename(&folder.join("one"), &folder.join("two"))
            .await
            .expect("replaced");
        disk.sync_dir(&folder).await.expect("flushed");
        assert_eq!(
            disk.read_small(&folder.join("two"), 1).await.expect("read"),
            b"1"
        );
        let error = disk
            .read_small(&folder.join("two"), 0)
            .await
            .expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        disk.remove(&folder.join("two")).await.expect("removed");
        let error = disk.remove(&folder.join("two")).await.expect_err("gone");
        assert_eq!(raw_os_error(&error), Some(libc::ENOENT));
        assert!(error.to_string().contains("cannot remove"), "{error}");
        let error = disk
            .open(&folder.join("two"), OpenMode::Read)
            .await
            .err()
            .expect("gone");
        assert_eq!(raw_os_error(&error), Some(libc::ENOENT));
        assert!(error.to_string().contains("two"), "{error}");
    });
}

/// Goal: a failed write says how much, where, of which file, and the number. Method: write to a
/// file opened for reading.
#[test]
fn failed_write_is_named() {
    with_disk(|env, directory| async move {
        let path = directory.join("file");
        let file = zeroed(&env.disk(), &path, OpenMode::Read).await;
        let bytes = pattern(&file, 8192);
        let error = file.write_all_at(bytes, 4096).await.expect_err("read only");
        assert_eq!(raw_os_error(&error), Some(libc::EBADF));
        let text = error.to_string();
        assert!(
            text.contains("8192 bytes of") && text.contains("at 4096"),
            "{text}"
        );
    });
}

/// Feeds `continue_short_writes` with scripted outcomes; gives the offsets asked for.
fn short_writes(script: &[usize], total: usize) -> (Vec<usize>, io::Result<()>) {
    let mut script: VecDeque<usize> = script.iter().copied().collect();
    let mut offsets = Vec::new();
    let outcome = futures_lite::future::block_on(continue_short_writes(total, |offset| {
        offsets.push(offset);
        let written = script.pop_front().unwrap_or(total - offset);
        async move { Ok(written) }
    }));
    (offsets, outcome)
}

/// Goal: short writes go on from the last whole block until all is written; without progress, or
/// without end, they fail. Method: scripted kernels.
#[test]
fn short_writes_are_continued() {
    let (offsets, outcome) = short_writes(&[8192, 4096 + 100], 32_768);
    outcome.expect("all written");
    assert_eq!(offsets, [0, 8192, 12_288]);

    let (offsets, outcome) = short_writes(&[4096, 0], 32_768);
    let error = outcome.expect_err("no progress");
    assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    assert!(error.to_string().contains("4096 of 32768"), "{error}");
    assert_eq!(offsets, [0, 4096]);

    let endless = vec![4096; SHORT_WRITES_MAX + 2];
    let (offsets, outcome) = short_writes(&endless, 4096 * (SHORT_WRITES_MAX + 3));
    outcome.expect_err("bounded");
    assert_eq!(offsets.len(), SHORT_WRITES_MAX + 1);
}
