//! SIGTERM and SIGINT as messages; the second one ends the process at once. SIGUSR1 as a message.
//! SIGPIPE either way.
//!
//! Signals are taken on a thread of their own, never on an executor.

use crate::base::exit::ExitCode;
use crate::env::error::at;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use std::io;

/// The operator asked the process to stop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StopSignal {
    /// Ctrl-C.
    Interrupt,
    /// `kill`, systemd, an orchestrator.
    Terminate,
}

impl StopSignal {
    /// The name an operator knows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StopSignal::Interrupt => "SIGINT",
            StopSignal::Terminate => "SIGTERM",
        }
    }
}

/// Calls `on_stop` once, on the signal thread, for the first SIGTERM or SIGINT (send a message from
/// it). The second one ends the process on the spot with code 0: it stops as asked, and the journal
/// makes that as safe as `kill -9`.
///
/// # Errors
/// When the kernel refuses the handler or the thread.
pub fn watch_stop_signals(on_stop: impl FnOnce(StopSignal) + Send + 'static) -> io::Result<()> {
    watch_stop_signals_or(ExitCode::Stopped, on_stop)
}

/// The same for a process whose work is lost by the second signal: it ends with `second`.
///
/// # Errors
/// As [`watch_stop_signals`].
pub fn watch_stop_signals_or(
    second: ExitCode,
    on_stop: impl FnOnce(StopSignal) + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])
        .map_err(|error| at("handle", "SIGTERM and SIGINT".to_owned(), error))?;
    let mut on_stop = Some(on_stop);
    super::spawn_thread("signals", move || {
        for signal in signals.forever() {
            let signal = if signal == SIGINT {
                StopSignal::Interrupt
            } else {
                StopSignal::Terminate
            };
            match on_stop.take() {
                Some(on_stop) => on_stop(signal),
                None => super::exit_now(
                    second,
                    &format!("stopped at once by a second {}", signal.name()),
                ),
            }
        }
    })?;
    Ok(())
}

/// Calls `on_ask` on a thread of its own for each SIGUSR1, which would end the process otherwise.
///
/// # Errors
/// When the kernel refuses the handler or the thread.
pub fn watch_dump_signal(mut on_ask: impl FnMut() + Send + 'static) -> io::Result<()> {
    let mut signals =
        Signals::new([SIGUSR1]).map_err(|error| at("handle", "SIGUSR1".to_owned(), error))?;
    super::spawn_thread("dump signal", move || {
        for _ in signals.forever() {
            on_ask();
        }
    })?;
    Ok(())
}

/// For the broker: a reader that closes a pipe, or a dead standard output, is an error of the call
/// and not the end of the process. (Rust starts that way; an embedding process may have changed
/// it.)
pub fn ignore_sigpipe() {
    set_sigpipe(libc::SIG_IGN);
}

/// For client verbs: when the reader of a pipe goes (`penstock consume | head -1`), the process
/// ends quietly, as every Unix tool does (the shell shows 141).
pub fn restore_sigpipe() {
    set_sigpipe(libc::SIG_DFL);
}

fn set_sigpipe(action: libc::sighandler_t) {
    // SAFETY: SIG_IGN and SIG_DFL run no code of ours.
    unsafe { libc::signal(libc::SIGPIPE, action) };
}
