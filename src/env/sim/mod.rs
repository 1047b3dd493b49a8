//! The simulated side: seeded clock, disk, chance and tasks. No glommio, no kernel.

use super::buffer::SharedBuffer;
use super::disk::{DirEntry, OpenMode};
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

/// Simulated environment.
pub struct SimEnv;

#[expect(unused_variables, clippy::unimplemented, clippy::unused_async)]
impl SimEnv {
    /// The virtual clock.
    pub fn clock(&self) -> SimClock {
        unimplemented!()
    }
    /// The simulated disk.
    pub fn disk(&self) -> SimDisk {
        unimplemented!()
    }
    /// Schedules a task.
    pub fn spawn(&self, name: &'static str, future: Pin<Box<dyn Future<Output = ()>>>) {
        unimplemented!()
    }
    /// The next number of the seed.
    pub fn random_u64(&self) -> u64 {
        unimplemented!()
    }
    /// Lets the other tasks go first.
    pub async fn yield_now(&self) {
        unimplemented!()
    }
    /// Runs `work` in its turn.
    pub async fn spawn_blocking<T>(&self, work: impl FnOnce() -> T) -> T {
        unimplemented!()
    }
}

/// Virtual time.
#[derive(Clone)]
pub struct SimClock;

#[expect(unused_variables, clippy::unimplemented, clippy::unused_async)]
impl SimClock {
    /// Virtual nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        unimplemented!()
    }
    /// Virtual wall clock.
    pub fn unix_ms(&self) -> i64 {
        unimplemented!()
    }
    /// Sleeps in virtual time.
    pub async fn sleep(&self, duration: Duration) {
        unimplemented!()
    }
}

/// The simulated disk.
#[derive(Clone)]
pub struct SimDisk;

#[expect(unused_variables, clippy::unimplemented, clippy::unused_async)]
impl SimDisk {
    /// As [`super::Disk::create_dir_all`].
    pub async fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        unimplemented!()
    }
    /// As [`super::Disk::list`].
    pub async fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        unimplemented!()
    }
    /// As [`super::Disk::create_zeroed`].
    pub async fn create_zeroed(&self, path: &Path, len_bytes: u64) -> io::Result<()> {
        unimplemented!()
    }
    /// As [`super::Disk::open`].
    pub async fn open(&self, path: &Path, mode: OpenMode) -> io::Result<SimFile> {
        unimplemented!()
    }
    /// As [`super::Disk::rename`].
    pub async fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        unimplemented!()
    }
    /// As [`super::Disk::remove`].
    pub async fn remove(&self, path: &Path) -> io::Result<()> {
        unimplemented!()
    }
    /// As [`super::Disk::sync_dir`].
    pub async fn sync_dir(&self, path: &Path) -> io::Result<()> {
        unimplemented!()
    }
    /// As [`super::Disk::read_small`].
    pub async fn read_small(&self, path: &Path, len_bytes_max: usize) -> io::Result<Vec<u8>> {
        unimplemented!()
    }
    /// As [`super::Disk::write_small_new`].
    pub async fn write_small_new(&self, path: &Path, bytes: Vec<u8>) -> io::Result<()> {
        unimplemented!()
    }
    /// As [`super::Disk::free_bytes`].
    pub async fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        unimplemented!()
    }
}

/// An open simulated file.
#[derive(Clone)]
pub struct SimFile;

#[expect(unused_variables, clippy::unimplemented, clippy::unused_async)]
impl SimFile {
    /// As [`super::File::write_all_at`].
    pub async fn write_all_at(&self, buffer: SharedBuffer, position: u64) -> io::Result<()> {
        unimplemented!()
    }
    /// As [`super::File::read_at`].
    pub async fn read_at(&self, position: u64, len_bytes: usize) -> io::Result<SharedBuffer> {
        unimplemented!()
    }
    /// As [`super::File::sync_data`].
    pub async fn sync_data(&self) -> io::Result<()> {
        unimplemented!()
    }
}
