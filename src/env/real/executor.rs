//! Starts one pinned glommio executor per core and waits for them.
//!
//! Settings are measured (glommio 0.9.0): ring depth 128, 2 MiB of registered memory, 20 µs of spin
//! before parking, the default preempt timer (a shorter one makes the park hang of `watchdog`
//! likely), two unpinned blocking threads per executor. No `Latency::Matters` queues, for the same
//! reason.
//!
//! A panic of a core ends the process, by the panic hook that `serve` installs: half a broker must
//! not go on serving.

use super::watchdog::Watched;
use crate::base::exit::ExitCode;
use crate::env::error::{at, at_path, from_glommio};
use crate::env::{Env, process};
use crate::limits::{
    BLOCKING_THREADS, EXECUTOR_RETRY_MS_MAX, EXECUTOR_RETRY_PAUSE_MS, IO_MEMORY_BYTES, RING_DEPTH,
    SPIN_BEFORE_PARK_US,
};
use futures_lite::FutureExt;
use glommio::io::DmaFile;
use glommio::{LocalExecutor, LocalExecutorBuilder, Placement, PoolPlacement};
use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the main future of a core is given.
pub struct Core {
    /// Index of this core, from 0.
    pub index: usize,
    /// Number of cores.
    pub count: usize,
    /// The CPU it is pinned to.
    pub cpu: usize,
    /// Its surroundings.
    pub env: Env,
}

/// How the cores are started.
#[derive(Clone, Debug)]
pub struct CoreSettings {
    /// CPU of each core. One CPU may carry several cores.
    pub cpus: Vec<usize>,
    /// Prefix of the thread names.
    pub name: String,
    /// A file of at least 4 KiB, flushed, on the data file system (the lock file): the first that
    /// each executor opens there, so that glommio learns truthfully whether the device can be
    /// polled.
    pub prime: Option<PathBuf>,
}

/// The CPUs for `count` cores out of the `allowed` ones: each in turn, around again if there are
/// fewer.
#[must_use]
pub fn place_cores(count: usize, allowed: &[usize]) -> Vec<usize> {
    assert!(!allowed.is_empty(), "a process runs on some CPU");
    (0..count)
        .map(|index| allowed[index % allowed.len()])
        .collect()
}

/// The running cores.
pub struct Cores<T> {
    threads: Vec<JoinHandle<Option<T>>>,
}

impl<T> Cores<T> {
    /// Waits for the main future of every core, in order of their index. Blocks this thread.
    ///
    /// # Panics
    /// With the panic of a core, where no panic hook ended the process already.
    #[must_use]
    pub fn join(self) -> Vec<T> {
        let join = |thread: JoinHandle<Option<T>>| match thread.join() {
            Ok(outcome) => outcome.expect("a started core runs its main future to the end"),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        self.threads.into_iter().map(join).collect()
    }
}

/// Starts one executor per entry of `settings.cpus` and runs `main` on each. Returns once all of
/// them exist; if one cannot be made, none has run `main` and all are gone again.
///
/// When a main future returns, tasks still suspended on that core are not dropped, and their
/// sockets stay open until the process ends: shut connections down and drain first.
///
/// # Errors
/// The first executor that could not be made, with what the kernel said.
pub fn run_cores<M, F, T>(settings: &CoreSettings, main: M) -> io::Result<Cores<T>>
where
    M: FnOnce(Core) -> F + Clone + Send + 'static,
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let count = settings.cpus.len();
    assert!(count > 0, "at least one core");
    let (report, reports) = flume::bounded::<io::Result<()>>(count);
    let mut threads = Vec::with_capacity(count);
    let mut starts = Vec::with_capacity(count);
    for (index, cpu) in settings.cpus.iter().copied().enumerate() {
        let (start, started) = flume::bounded::<()>(1);
        let seat = Seat {
            index,
            count,
            cpu,
            prime: settings.prime.clone(),
        };
        let (main, report) = (main.clone(), report.clone());
        let thread = std::thread::Builder::new()
            .name(format!("{}-{index}", settings.name))
            .spawn(move || core_thread(seat, main, &report, &started))
            .map_err(|error| at("start", format!("the thread of core {index}"), error))?;
        threads.push(thread);
        starts.push(start);
    }
    drop(report);
    let mut made = 0;
    let failure = reports
        .iter()
        .take(count)
        .find_map(|outcome| match outcome {
            Ok(()) => {
                made += 1;
                None
            }
            Err(error) => Some(error),
        });
    if let Some(error) = failure {
        drop(starts);
        for thread in threads {
            let _ = thread.join();
        }
        return Err(at("start", "an executor".to_owned(), error));
    }
    if made == count {
        for start in &starts {
            // The thread waits for exactly this.
            let _ = start.send(());
        }
    }
    // A thread that ended without a report panicked; `join` tells.
    drop(starts);
    Ok(Cores { threads })
}

/// Runs `main` on a single executor and waits for it: offline tools and tests.
///
/// # Errors
/// As [`run_cores`].
pub fn run_one<M, F, T>(name: &str, main: M) -> io::Result<T>
where
    M: FnOnce(Core) -> F + Clone + Send + 'static,
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let allowed = process::affinity_cpus();
    // Several of them at once (tests) spread over the CPUs.
    let cpu = allowed[TURN.fetch_add(1, Ordering::Relaxed) % allowed.len()];
    let settings = CoreSettings {
        cpus: vec![cpu],
        name: name.to_owned(),
        prime: None,
    };
    let outcome = run_cores(&settings, main)?.join().pop();
    Ok(outcome.expect("one core, one outcome"))
}

/// Which core a thread is.
struct Seat {
    index: usize,
    count: usize,
    cpu: usize,
    prime: Option<PathBuf>,
}

/// The body of a core's thread: `None` if it was not started because another core failed.
fn core_thread<M, F, T>(
    seat: Seat,
    main: M,
    report: &flume::Sender<io::Result<()>>,
    started: &flume::Receiver<()>,
) -> Option<T>
where
    M: FnOnce(Core) -> F,
    F: Future<Output = T>,
{
    let executor = match make_executor(seat.cpu) {
        Ok(executor) => executor,
        Err(error) => {
            // The receiver waits for as many reports as there are threads.
            let _ = report.send(Err(error));
            return None;
        }
    };
    let _ = report.send(Ok(()));
    started.recv().ok()?;
    // Lives on this thread's stack, so that the thread is not watched when it is gone, however it
    // goes.
    let watched = Watched::start().unwrap_or_else(|error| {
        process::exit_now(ExitCode::Host, &error.to_string());
    });
    match executor.run(run_core(seat, &watched, main)) {
        Ok(outcome) => Some(outcome),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// The main future, guarded: its panic passes through this thread and not through glommio. In the
/// broker the panic hook has ended the process before.
async fn run_core<M, F, T>(seat: Seat, watched: &Watched, main: M) -> std::thread::Result<T>
where
    M: FnOnce(Core) -> F,
    F: Future<Output = T>,
{
    watched.start_heartbeat();
    if let Some(path) = &seat.prime {
        prime_poll_detection(path).await;
    }
    let core = Core {
        index: seat.index,
        count: seat.count,
        cpu: seat.cpu,
        env: Env::real(),
    };
    AssertUnwindSafe(async move { main(core).await })
        .catch_unwind()
        .await
}

/// Lets glommio read a block of a written file before it meets any other file of that device.
async fn prime_poll_detection(path: &std::path::Path) {
    let outcome = match DmaFile::open(path).await {
        Ok(file) => file.close().await,
        Err(error) => Err(error),
    };
    if let Err(error) = outcome {
        let error = at_path("open", path, from_glommio(error));
        process::exit_now(ExitCode::Host, &error.to_string());
    }
}

/// Makes an executor on this thread. The rings of a process that just ended stay charged to the
/// user's locked memory for a moment, so `ENOMEM` is tried again for a while.
fn make_executor(cpu: usize) -> io::Result<LocalExecutor> {
    let start = Instant::now();
    loop {
        let outcome = LocalExecutorBuilder::new(Placement::Fixed(cpu))
            .io_memory(IO_MEMORY_BYTES)
            .ring_depth(RING_DEPTH)
            .spin_before_park(Duration::from_micros(SPIN_BEFORE_PARK_US))
            .blocking_thread_pool_placement(PoolPlacement::Unbound(BLOCKING_THREADS))
            .make();
        let error = match outcome {
            Ok(executor) => return Ok(executor),
            Err(error) => from_glommio(error),
        };
        let no_memory = error.raw_os_error() == Some(libc::ENOMEM);
        if !no_memory || start.elapsed() >= Duration::from_millis(EXECUTOR_RETRY_MS_MAX) {
            return Err(error);
        }
        std::thread::sleep(Duration::from_millis(EXECUTOR_RETRY_PAUSE_MS));
    }
}

#[cfg(test)]
mod tests;
