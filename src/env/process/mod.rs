//! The process and its host: how it ends, its clocks outside executors, chance, and what it runs
//! on. Callable from any thread; nothing here needs glommio.

pub mod facts;
pub mod host_tree;
pub mod lock;
pub mod notify;
pub mod ready;
pub mod signals;
pub mod usage;

pub use facts::{
    affinity_cpus, clock_source, command_line, cpu_model, hostname, kernel_release, memory_bytes,
    process_id, random_bytes, refuse_huge_pages, thread_cpu_ns, user_is_root,
};
pub use host_tree::{HostTree, make_folder_of, remove_file_if_any, settled_path};
pub use lock::{DataLock, LockError, data_dir, is_file};
pub use notify::{Supervisor, SupervisorSettings};
pub use ready::{remove_ready_file, write_ready_file};
pub use signals::{
    StopSignal, ignore_sigpipe, restore_sigpipe, watch_dump_signal, watch_stop_signals,
    watch_stop_signals_or,
};
pub use usage::{Usage, usage};

use crate::base::exit::ExitCode;
use std::any::Any;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Set by the first thread that ends the process, so that one reason is told, not several.
static EXITING: AtomicBool = AtomicBool::new(false);
/// Called once before the process ends (flushes the log).
static EXIT_HOOK: OnceLock<fn(ExitCode)> = OnceLock::new();

/// Sets what is called, once, before [`exit_now`] ends the process: flush the log. It must not
/// block for long nor panic. Only the first call counts.
pub fn set_exit_hook(hook: fn(ExitCode)) {
    let _ = EXIT_HOOK.set(hook);
}

/// Ends the process at once, from any thread: tells `reason` on standard error, calls the exit
/// hook, and leaves without running destructors (which is as safe as `kill -9`, by design). If
/// another thread is already at it, this one waits for the end.
pub fn exit_now(code: ExitCode, reason: &str) -> ! {
    if EXITING.swap(true, Ordering::SeqCst) {
        // Normally gone within microseconds; a hook that hangs must not keep the process.
        std::thread::sleep(Duration::from_secs(2));
    } else {
        // What is said on a screen that is then left would be lost.
        super::blocking::give_back();
        // A dead standard error is no reason to fail differently.
        let _ = writeln!(std::io::stderr(), "penstock: {reason}");
        if let Some(hook) = EXIT_HOOK.get() {
            hook(code);
        }
    }
    // SAFETY: `_exit` only ends the process.
    unsafe { libc::_exit(code.code()) }
}

/// Makes a panic anywhere, also on a thread of a library, end the process with exit code 6 after
/// telling it once. For the broker; a client verb keeps the standard behaviour until it calls this.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("unnamed").to_owned();
        let place = panic
            .location()
            .map_or_else(String::new, |at| format!(" at {at}"));
        let text = panic_text(panic.payload());
        let trace = std::backtrace::Backtrace::capture();
        let trace = match trace.status() {
            std::backtrace::BacktraceStatus::Captured => format!("\n{trace}"),
            _ => String::new(),
        };
        let reason = format!("this is a bug: thread {name} panicked{place}: {text}{trace}");
        exit_now(ExitCode::Bug, &reason);
    }));
}

/// Ends the process for a panic that was caught where it must not pass (a task, a blocking thread).
pub(super) fn exit_for_panic(place: &str, panic: &(dyn Any + Send)) -> ! {
    exit_now(
        ExitCode::Bug,
        &format!("this is a bug: {place} panicked: {}", panic_text(panic)),
    )
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no text)")
}

/// Nanoseconds on the monotonic clock since the first call in this process.
#[must_use]
pub fn monotonic_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).expect("the process does not run for 584 years")
}

/// Milliseconds since 1970 on the wall clock; negative if the host's clock is before it.
#[must_use]
pub fn unix_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    }
}

/// Nanoseconds since 1970 on the wall clock; 0 if the host's clock is before it.
#[must_use]
pub fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// Keeps the calling thread on one CPU. Says whether the kernel agreed.
#[must_use]
pub fn pin_thread(cpu: usize) -> bool {
    core_affinity::set_for_current(core_affinity::CoreId { id: cpu })
}

/// Blocks this thread. Never on an executor.
pub fn sleep_blocking(duration: Duration) {
    std::thread::sleep(duration);
}

/// Milliseconds since this was first called; the server calls it when it starts.
#[must_use]
pub fn uptime_ms() -> u64 {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    let elapsed = STARTED.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// Starts a named thread that lives as long as it likes (it is not joined).
///
/// # Errors
/// When the kernel has no thread left.
pub fn spawn_thread(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(|error| super::error::at("start", format!("thread {name}"), error))
}

/// Marks a process that a test started from this test binary; a child test does nothing elsewhere,
/// so that running all ignored tests does not end the run.
#[cfg(test)]
pub(crate) const TEST_CHILD: &str = "PENSTOCK_TEST_CHILD";

#[cfg(test)]
pub(crate) fn is_test_child() -> bool {
    std::env::var_os(TEST_CHILD).is_some()
}

#[cfg(test)]
mod tests;
