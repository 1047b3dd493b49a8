//! Where the dumps come from: a broker that is asked now and then, or a file that is played back at
//! the pace at which it was written. A thread of its own, so that keys never wait for a broker.

use crate::admin::client::http;
use crate::admin::error::AdminError;
use crate::env::blocking::Input;
use crate::env::process;
use crate::limits;
use crate::metrics::Dump;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the thread tells.
pub enum Report {
    /// The next dump.
    Dump(Box<Dump>),
    /// There was no answer, and why.
    Lost(String),
    /// The file has no more.
    Ended,
}

/// Longest pause of a playback, whatever the gap in the file.
const GAP_MAX: Duration = Duration::from_secs(2);

/// Asks a broker every `interval`, for ever.
///
/// # Errors
/// No thread is to be had.
pub fn live(address: String, interval: Duration) -> Result<flume::Receiver<Report>, AdminError> {
    start(move |reports| {
        let patience = Duration::from_millis(limits::TOP_PATIENCE_MS);
        loop {
            let begun_ns = process::monotonic_ns();
            let report = match http::dump(&address, patience) {
                Ok(dump) => Report::Dump(Box::new(dump)),
                Err(error) => Report::Lost(error.cause()),
            };
            if reports.send(report).is_err() {
                return;
            }
            let took = Duration::from_nanos(process::monotonic_ns() - begun_ns);
            process::sleep_blocking(interval.saturating_sub(took).max(interval / 10));
        }
    })
}

/// Plays a file back, once.
///
/// # Errors
/// It cannot be opened, its first line is no dump, or no thread is to be had.
pub fn replay(path: &Path) -> Result<flume::Receiver<Report>, AdminError> {
    // A file that is none is refused before the screen is taken.
    Tape::open(path)?.next()?;
    let path = path.to_owned();
    start(move |reports| {
        let opened = Tape::open(&path).and_then(|mut tape| Ok((tape.next()?, tape)));
        let Ok((mut next, mut tape)) = opened else {
            let _ = reports.send(Report::Lost("it is gone".to_owned()));
            return;
        };
        while let Some(dump) = next {
            let unix_ms = dump.unix_ms;
            if reports.send(Report::Dump(Box::new(dump))).is_err() {
                return;
            }
            next = match tape.next() {
                Ok(next) => next,
                Err(error) => {
                    let _ = reports.send(Report::Lost(error.to_string()));
                    return;
                }
            };
            if let Some(next) = &next {
                let gap_ms = u64::try_from(next.unix_ms - unix_ms).unwrap_or(0);
                process::sleep_blocking(Duration::from_millis(gap_ms).min(GAP_MAX));
            }
        }
        let _ = reports.send(Report::Ended);
    })
}

fn start(
    body: impl FnOnce(flume::Sender<Report>) + Send + 'static,
) -> Result<flume::Receiver<Report>, AdminError> {
    let (send, reports) = flume::bounded(1);
    process::spawn_thread("dumps", move || body(send))
        .map_err(|error| AdminError::Host(error.to_string()))?;
    Ok(reports)
}

/// A file of dumps, one a line, or one alone however it is laid out. Read as it goes: a night of
/// them need not fit in memory.
pub struct Tape {
    input: Input,
    path: PathBuf,
    lines: u64,
}

impl Tape {
    /// Opens it.
    ///
    /// # Errors
    /// It is not there.
    pub fn open(path: &Path) -> Result<Tape, AdminError> {
        let input = Input::open(path).map_err(|error| AdminError::Input("dumps".into(), error))?;
        Ok(Tape {
            input,
            path: path.to_owned(),
            lines: 0,
        })
    }

    /// The next dump; `None` at the end.
    ///
    /// # Errors
    /// A line is no dump.
    pub fn next(&mut self) -> Result<Option<Dump>, AdminError> {
        let mut line = Vec::new();
        loop {
            let more = self
                .input
                .read_line(&mut line, limits::CLIENT_HTTP_BYTES_MAX);
            let more = more.map_err(|error| AdminError::Input("dumps".into(), error))?;
            if !more {
                return Ok(None);
            }
            self.lines += 1;
            if !line.trim_ascii().is_empty() {
                break;
            }
        }
        let mut parsed = serde_json::from_slice(&line);
        if parsed.is_err() && self.lines == 1 {
            // One dump over many lines: its first line is no document of its own.
            let limit = limits::CLIENT_HTTP_BYTES_MAX as u64;
            let rest = (&mut self.input).take(limit).read_to_end(&mut line);
            rest.map_err(|error| AdminError::Input("dumps".into(), error))?;
            parsed = serde_json::from_slice(&line);
        }
        let bad = |problem: String| {
            let (path, number) = (self.path.display(), self.lines);
            AdminError::Usage(format!("{path}, line {number}, is no dump: {problem}"))
        };
        let document = parsed.map_err(|error| bad(error.to_string()))?;
        Dump::from_json(&document).map(Some).map_err(bad)
    }
}
