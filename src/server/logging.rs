//! Log lines leave through a thread of their own: no executor core ever writes a log.

use crate::base::exit::ExitCode;
use crate::config::{Config, LogFormat};
use crate::env::process;
use std::sync::Mutex;
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;

/// Flushes what is still to be written when the process ends by `exit_now`.
static GUARD: Mutex<Option<WorkerGuard>> = Mutex::new(None);

/// The log; flushed when dropped.
pub struct Log;

impl Drop for Log {
    fn drop(&mut self) {
        flush(ExitCode::Stopped);
    }
}

fn flush(_: ExitCode) {
    if let Ok(mut guard) = GUARD.try_lock() {
        drop(guard.take());
    }
}

/// Starts the log: to standard error, as the configuration says.
#[must_use]
pub fn start(config: &Config) -> Log {
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    if let Ok(mut slot) = GUARD.lock() {
        *slot = Some(guard);
    }
    process::set_exit_hook(flush);
    // glommio warns of what we do on purpose (buffers that are not registered).
    let filter = EnvFilter::try_new(format!("glommio=error,{}", config.log))
        .unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_target(false);
    let outcome = match config.log_format {
        LogFormat::Json => builder.json().try_init(),
        LogFormat::Text => builder.with_ansi(false).try_init(),
    };
    if let Err(error) = outcome {
        crate::admin::output::note(&format!("penstock: the log could not be started: {error}"));
    }
    Log
}
