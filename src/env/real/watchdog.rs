//! Wakes executors that parked although work was ready.
//!
//! glommio 0.9.0 takes "the preempt timer fired before I ran anything" for "nothing to run", and
//! then sleeps until an unrelated completion or a signal arrives. Its published source is used
//! unmodified, so the signal comes from here: each executor beats by a timer, a thread looks
//! whether the beat goes on, and sends SIGUSR2 (whose handler does nothing) where it stands still.
//! An executor that is merely busy is not disturbed by it.
//!
//! At one beat in 250 ms an idle core is woken four times a second, which does not show in its CPU
//! time; a hang is bounded by one second.

use crate::env::error::at;
use crate::limits::{HEARTBEAT_MS, WATCHDOG_CHECK_MS};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

/// Signals sent to executors that stood still, since the start of the process.
static KICKS: AtomicU64 = AtomicU64::new(0);
/// The executors that are watched.
static WATCHED: Mutex<Vec<Arc<Pulse>>> = Mutex::new(Vec::new());

/// How often an executor stood still and was kicked; for metrics. More than a few a day tell that
/// something keeps an executor from its reactor.
#[must_use]
pub fn kicks() -> u64 {
    KICKS.load(Ordering::Relaxed)
}

/// Beats of every executor that is watched, in the order in which they were started: whether all
/// of them go on is for the caller to see, by looking again after more than two `HEARTBEAT_MS`.
#[must_use]
pub fn beats() -> Vec<u64> {
    let watched = lock_watched();
    let beats = watched.iter();
    beats
        .map(|pulse| pulse.beats.load(Ordering::Relaxed))
        .collect()
}

/// The pulse of one executor thread.
struct Pulse {
    thread: libc::pthread_t,
    beats: AtomicU64,
    /// Beats at the last look of the watchdog.
    seen: AtomicU64,
    ended: AtomicBool,
}

/// Keeps the calling thread watched until it is dropped, which must happen on that thread.
pub(super) struct Watched {
    pulse: Arc<Pulse>,
}

impl Watched {
    /// Starts watching the calling thread, which is about to run an executor.
    pub(super) fn start() -> io::Result<Watched> {
        start_watchdog()?;
        let pulse = Arc::new(Pulse {
            // SAFETY: no argument, cannot fail.
            thread: unsafe { libc::pthread_self() },
            beats: AtomicU64::new(1),
            seen: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        });
        lock_watched().push(Arc::clone(&pulse));
        Ok(Watched { pulse })
    }

    /// Starts the heartbeat, on the executor of the watched thread.
    pub(super) fn start_heartbeat(&self) {
        let beating = Arc::clone(&self.pulse);
        let heartbeat = async move {
            while !beating.ended.load(Ordering::Relaxed) {
                beating.beats.fetch_add(1, Ordering::Relaxed);
                glommio::timer::Timer::new(Duration::from_millis(HEARTBEAT_MS)).await;
            }
        };
        let queue = glommio::executor().current_task_queue();
        glommio::spawn_local_into(heartbeat, queue)
            .expect("the queue of the running task exists")
            .detach();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Under the lock the watchdog holds while it signals: after this, the thread may end.
        let mut watched = lock_watched();
        self.pulse.ended.store(true, Ordering::Relaxed);
        watched.retain(|pulse| !Arc::ptr_eq(pulse, &self.pulse));
    }
}

fn lock_watched() -> std::sync::MutexGuard<'static, Vec<Arc<Pulse>>> {
    // Nothing under the lock can leave the list half-changed.
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread once per process.
fn start_watchdog() -> io::Result<()> {
    static STARTED: Once = Once::new();
    let mut outcome = Ok(());
    STARTED.call_once(|| {
        outcome = install_empty_handler().and_then(|()| {
            crate::env::process::spawn_thread("watchdog", || {
                loop {
                    std::thread::sleep(Duration::from_millis(WATCHDOG_CHECK_MS));
                    kick_the_still();
                }
            })
            .map(drop)
        });
    });
    outcome
}

fn kick_the_still() {
    for pulse in lock_watched().iter() {
        let beats = pulse.beats.load(Ordering::Relaxed);
        if pulse.seen.swap(beats, Ordering::Relaxed) == beats {
            KICKS.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the thread is alive: it takes itself off this list, under the lock held here,
            // before it ends.
            unsafe { libc::pthread_kill(pulse.thread, libc::SIGUSR2) };
        }
    }
}

/// The signal's only effect shall be that the system call it meets returns `EINTR`, so `SA_RESTART`
/// is not set.
fn install_empty_handler() -> io::Result<()> {
    extern "C" fn nothing(_signal: libc::c_int) {}
    // SAFETY: a handler that does nothing is safe in any state of the thread it interrupts.
    let outcome = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as libc::sighandler_t;
        libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut())
    };
    if outcome == 0 {
        return Ok(());
    }
    Err(at(
        "handle",
        "SIGUSR2".to_owned(),
        io::Error::last_os_error(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Goal: an executor that stands still is kicked and goes on, and a beating one is left alone.
    /// Method: an executor sleeps for two seconds (no kick may come), then blocks its thread in a
    /// system call that only a signal can end.
    #[test]
    fn still_executor_is_kicked() {
        crate::env::real::executor::run_one("still", |core| async move {
            core.env.clock().sleep(Duration::from_millis(10)).await;
            let pulse = lock_watched()
                .iter()
                // SAFETY: cannot fail.
                .find(|pulse| pulse.thread == unsafe { libc::pthread_self() })
                .cloned()
                .expect("this executor is watched");
            let before = pulse.beats.load(Ordering::Relaxed);
            core.env.clock().sleep(Duration::from_secs(1)).await;
            let beats = pulse.beats.load(Ordering::Relaxed) - before;
            assert!((1..=8).contains(&beats), "{beats} beats in a second");

            let kicks_before = kicks();
            let start = Instant::now();
            // SAFETY: sleeps; returns early when a signal is handled.
            unsafe { libc::usleep(900_000 * 4) };
            assert!(
                start.elapsed() < Duration::from_secs(3),
                "the signal ended the sleep"
            );
            assert!(kicks() > kicks_before);
        })
        .expect("an executor");
    }

    /// Goal: an executor that ended is not signalled. Method: none of the list is left by this one.
    #[test]
    fn ended_executor_is_forgotten() {
        let thread = crate::env::real::executor::run_one("brief", |_core| async move {
            // SAFETY: cannot fail.
            unsafe { libc::pthread_self() }
        })
        .expect("an executor");
        assert!(lock_watched().iter().all(|pulse| pulse.thread != thread));
    }
}
