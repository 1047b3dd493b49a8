//! An epoll descriptor, edge-triggered, and the clock of this thread's processor time.

use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

const EVENTS_MAX: usize = 1024;
/// Longest silence of every connection at once before the run is given up.
const SILENCE_MS: i32 = 30_000;

pub struct Poll {
    descriptor: OwnedFd,
}

impl Poll {
    pub fn new() -> Poll {
        // SAFETY: a plain system call; the descriptor it returns is owned from here on.
        let descriptor = unsafe {
            let raw = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            assert!(raw >= 0, "no epoll");
            OwnedFd::from_raw_fd(raw)
        };
        Poll { descriptor }
    }

    pub fn watch(&self, stream: &TcpStream, index: u64) {
        let events = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET) as u32;
        let mut event = libc::epoll_event { events, u64: index };
        // SAFETY: both descriptors are open, and the event lives across the call.
        let added = unsafe {
            libc::epoll_ctl(
                self.descriptor.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                stream.as_raw_fd(),
                &raw mut event,
            )
        };
        assert_eq!(added, 0, "the socket can be watched");
    }

    /// The connections that have something to read or take more; waits for at most 30 s.
    pub fn wait(&self, ready: &mut Vec<u64>) {
        self.wait_for(ready, SILENCE_MS);
        assert!(!ready.is_empty(), "no answer for thirty seconds");
    }

    /// The same, and it may be none: waits for at most `wait_ms`.
    pub fn wait_for(&self, ready: &mut Vec<u64>, wait_ms: i32) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        // SAFETY: the array lives across the call and is as long as it is said to be.
        let count = unsafe {
            let descriptor = self.descriptor.as_raw_fd();
            libc::epoll_wait(descriptor, events.as_mut_ptr(), EVENTS_MAX as i32, wait_ms)
        };
        let events = &events[..usize::try_from(count).unwrap_or(0)];
        ready.clear();
        ready.extend(events.iter().map(|event| event.u64));
    }
}

/// Processor time of this thread.
pub fn thread_cpu() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure lives across the call.
    let read = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(read, 0, "the clock exists");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
