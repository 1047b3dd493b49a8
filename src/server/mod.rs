//! Starts the cores, wires them together, stops them. `serve` is the whole life of a broker:
//!
//! 1. *Prepare*: check the host, take the addresses, lock the data directory. A start that is
//!    refused here has changed nothing in the directory.
//! 2. *Open*: one executor per core; each recovers its shards. Nobody listens yet.
//! 3. *Serve*: lanes, control task, the catalogue on every core, then the listeners, then the ready
//!    file and word to the supervisor, which hears from then on that every core is alive.
//! 4. *Stop*: no more requests are read; those that were are acknowledged or refused; then every
//!    journal is checkpointed, sealed and closed.
//!
//! The main thread only conducts: it sends each core one [`Command`] at a time and waits for all.

mod banner;
mod core;
mod dump;
mod http;
mod logging;
mod prepare;
mod supervisor;

use self::core::{Command, CoreReport, CoreSeat};
use self::dump::DumpRequest;
use self::prepare::{Prepared, StartError};
use self::supervisor::Reporter;
use crate::base::exit::ExitCode;
use crate::config::Loaded;
use crate::env::process::{self, StopSignal};
use crate::env::real::executor::{CoreSettings, Cores, run_cores};
use crate::limits::{CLOSE_TIMEOUT, DRAIN_TIMEOUT, DUMP_TIMEOUT};
use crate::router::control::ControlRequest;
use crate::router::mesh::LaneRequest;
use std::time::Duration;

/// Runs a broker until it is told to stop. Returns the exit code of the process.
#[must_use]
pub fn serve(loaded: Loaded) -> ExitCode {
    let _log = logging::start(&loaded.config);
    let _ = process::uptime_ms();
    process::ignore_sigpipe();
    process::refuse_huge_pages();
    let (stop, stopped) = flume::bounded::<StopSignal>(1);
    let watching = process::watch_stop_signals(move |signal| {
        let _ = stop.try_send(signal);
    });
    let (dumps, dumps_end) = flume::bounded::<DumpRequest>(2);
    let ask = dumps.clone();
    let watching = watching.and_then(|()| {
        process::watch_dump_signal(move || {
            // One that waits already will do.
            let _ = ask.try_send(None);
        })
    });
    let outcome = watching
        .map_err(|error| StartError::Host(error.to_string()))
        .and_then(|()| prepare::prepare(&loaded))
        .and_then(|prepared| {
            let conductor = start_cores(&loaded, &prepared, (dumps, dumps_end))?;
            run(loaded, prepared, conductor, &stopped)
        });
    match outcome {
        Ok(()) => ExitCode::Stopped,
        Err(error) => {
            crate::admin::output::note(&format!("penstock: {error}"));
            error.exit_code()
        }
    }
}

/// The cores, as the main thread conducts them.
struct Conductor {
    commands: Vec<flume::Sender<Command>>,
    reports: flume::Receiver<CoreReport>,
    dumps: flume::Sender<DumpRequest>,
    cores: Cores<()>,
}

impl Conductor {
    /// Sends the same command to every core.
    fn tell_all(&self, command: impl Fn() -> Command) {
        for sender in &self.commands {
            // A core that is gone has reported why, or has ended the process.
            let _ = sender.send(command());
        }
    }

    /// Waits until every core has opened its shards. A stop meanwhile ends the process on the spot:
    /// nothing was promised to anybody yet, and recovery may take longer than a stop may.
    fn await_opened(
        &self,
        stopped: &flume::Receiver<StopSignal>,
        reporter: &mut Reporter,
    ) -> Result<Vec<CoreReport>, StartError> {
        let mut reports = Vec::with_capacity(self.commands.len());
        while reports.len() < self.commands.len() {
            if !stopped.is_empty() {
                process::exit_now(ExitCode::Stopped, "stopped before recovery had ended");
            }
            reporter.recovering(reports.len(), self.commands.len());
            match self.reports.recv_timeout(OPEN_POLL) {
                Ok(CoreReport::Failed(error)) => return Err(error),
                Ok(report) => reports.push(report),
                Err(flume::RecvTimeoutError::Timeout) => {}
                Err(flume::RecvTimeoutError::Disconnected) => return Err(StartError::Silent),
            }
        }
        Ok(reports)
    }

    /// Waits until every core has reported once.
    fn await_all(&self, timeout: Duration) -> Result<Vec<CoreReport>, StartError> {
        let deadline_ns = process::monotonic_ns() + timeout.as_nanos() as u64;
        let mut reports = Vec::with_capacity(self.commands.len());
        while reports.len() < self.commands.len() {
            let left_ns = deadline_ns.saturating_sub(process::monotonic_ns());
            match self.reports.recv_timeout(Duration::from_nanos(left_ns)) {
                Ok(CoreReport::Failed(error)) => return Err(error),
                Ok(report) => reports.push(report),
                Err(_) => return Err(StartError::Silent),
            }
        }
        Ok(reports)
    }
}

/// How often a start that recovers looks whether it is to stop.
const OPEN_POLL: Duration = Duration::from_millis(100);
/// How long cores may take to wire themselves together.
const WIRE_TIMEOUT: Duration = Duration::from_secs(60);

fn run(
    loaded: Loaded,
    prepared: Prepared,
    conductor: Conductor,
    stopped: &flume::Receiver<StopSignal>,
) -> Result<(), StartError> {
    let mut reporter = Reporter::new();
    let opened = conductor.await_opened(stopped, &mut reporter)?;
    banner::report_recovery(&opened);
    for step in [Command::Wire, Command::Publish, Command::Listen] {
        conductor.tell_all(|| step);
        let done = conductor.await_all(WIRE_TIMEOUT)?;
        if step == Command::Publish {
            banner::report_store(&prepared, &done);
        }
    }
    if let Some(path) = &loaded.config.ready_file {
        let text = banner::ready_text(&loaded, &prepared);
        process::write_ready_file(path, &text)
            .map_err(|error| StartError::Configuration(error.to_string()))?;
    }
    banner::print(&loaded, &prepared);
    reporter.serving(&prepared.sockets.kafka_addresses());
    let signal = reporter.watch_until_stopped(stopped);
    tracing::info!(signal = signal.name(), "stopping");
    if let Some(path) = &loaded.config.ready_file {
        let _ = process::remove_ready_file(path);
    }
    stop(conductor)
}

fn stop(conductor: Conductor) -> Result<(), StartError> {
    conductor.tell_all(|| Command::Drain);
    // A client that does not take its answer must not hold the stop up.
    let _ = conductor.await_all(DRAIN_TIMEOUT);
    let (reply, written) = flume::bounded(1);
    if conductor.dumps.try_send(Some(reply)).is_ok() {
        let _ = written.recv_timeout(DUMP_TIMEOUT);
    }
    conductor.tell_all(|| Command::Close);
    match conductor.await_all(CLOSE_TIMEOUT) {
        // A disk that is busy with something else for seconds: everything acknowledged is on it,
        // and ending here is as safe as a kill. Being asked to stop and stopping is not a failure.
        Err(StartError::Silent) => {
            tracing::warn!(
                "the journals could not be sealed in time; the next start reads the tail"
            );
            return Ok(());
        }
        closed => closed?,
    };
    drop(conductor.commands);
    let _ = conductor.cores.join();
    tracing::info!("stopped");
    Ok(())
}

fn start_cores(
    loaded: &Loaded,
    prepared: &Prepared,
    (dumps, dumps_end): (flume::Sender<DumpRequest>, flume::Receiver<DumpRequest>),
) -> Result<Conductor, StartError> {
    let count = loaded.cpus.len();
    let lane_depth = loaded.config.lane_depth as usize;
    let (lanes, lane_ends): (Vec<_>, Vec<_>) = (0..count)
        .map(|_| flume::bounded::<LaneRequest>(lane_depth))
        .unzip();
    let (control, control_end) = flume::bounded::<ControlRequest>(lane_depth);
    let (commands, command_ends): (Vec<_>, Vec<_>) =
        (0..count).map(|_| flume::bounded::<Command>(4)).unzip();
    let (report, reports) = flume::bounded::<CoreReport>(4 * count);
    let seat = CoreSeat {
        loaded: loaded.clone(),
        layout: prepared.layout.clone(),
        store: prepared.store.clone(),
        sockets: prepared.sockets.clone(),
        lanes,
        lane_ends,
        control,
        control_end,
        command_ends,
        dumps_end,
        report,
    };
    let settings = CoreSettings {
        cpus: loaded.cpus.clone(),
        name: "core".to_owned(),
        prime: Some(prepared.lock.path().to_owned()),
    };
    let cores = run_cores(&settings, move |core| core::live(core, seat))
        .map_err(|error| StartError::Host(error.to_string()))?;
    Ok(Conductor {
        commands,
        reports,
        dumps,
        cores,
    })
}
