//! One run, told as table, JSON, `.hgrm`, `.hlog`, CSV and page. [`Summary`] decides what is said;
//! the formats only write it, so they agree.
//!
//! `spectrum` (one latency) → `totals` (sums and rates) → `verdict` (what they are worth) →
//! `summary`; `gate` holds it against thresholds; `table`, `json`, `hgrm`, `csv`, `hlog` and
//! `crate::load::page` write; `merge` makes one run of several.

pub mod csv;
pub mod gate;
pub mod hgrm;
pub mod hlog;
pub mod json;
pub mod merge;
pub mod spectrum;
pub mod summary;
pub mod table;
pub mod totals;
pub mod verdict;

pub use gate::{Checked, Gate, GateError};
pub use summary::Summary;
pub use table::table;
pub use verdict::{Kind, Verdict};

use super::page;
use super::run::Run;
use crate::env::blocking::{read_file, write_file};
use crate::limits::{LOAD_LOG_BYTES_MAX, LOAD_OVERLAY_RUNS_MAX};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Where results go; what is `None` is not written. Each file is complete or not there at all.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Outputs {
    /// Everything, mergeable.
    pub hlog: Option<PathBuf>,
    /// Percentiles as text; further latencies lie beside it.
    pub hgrm: Option<PathBuf>,
    /// The summary and the time line.
    pub json: Option<PathBuf>,
    /// The time line.
    pub csv: Option<PathBuf>,
    /// The page.
    pub html: Option<PathBuf>,
}

/// How several logs are told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Together {
    /// As one run: they are the processes of one load.
    Merge,
    /// Side by side: they are different runs.
    Overlay,
}

/// Why no report was made.
#[derive(Debug)]
pub enum AgainError {
    /// A file could not be read or written; it is named.
    Io(io::Error),
    /// A file is no log of ours.
    Log(PathBuf, hlog::HlogError),
    /// Runs that cannot be merged.
    Merge(merge::MergeError),
    /// More runs than a picture can hold apart.
    TooMany,
    /// What only one run has was asked of several.
    OneRunOnly(&'static str),
}

/// Writes the files of one run.
///
/// # Errors
/// Names the file; those before it are written.
pub fn write_all(run: &Run, outputs: &Outputs) -> io::Result<()> {
    let summary = Summary::of(run);
    if let Some(path) = &outputs.hlog {
        write_file(path, hlog::text(run).as_bytes())?;
    }
    if let Some(path) = &outputs.hgrm {
        for (path, text) in hgrm::files(path, &summary.totals) {
            write_file(&path, text.as_bytes())?;
        }
    }
    if let Some(path) = &outputs.json {
        let text = format!("{:#}\n", json::document(run, &summary));
        write_file(path, text.as_bytes())?;
    }
    if let Some(path) = &outputs.csv {
        write_file(path, csv::text(run).as_bytes())?;
    }
    if let Some(path) = &outputs.html {
        write_file(path, page::single(run, &summary).as_bytes())?;
    }
    Ok(())
}

/// What [`again`] has to say.
#[derive(Clone, Debug)]
pub struct Told {
    /// For the terminal.
    pub text: String,
    /// Whether a threshold was crossed.
    pub crossed: bool,
}

/// Makes a report again from logs, merged or overlaid. A single log is told as it was, whatever
/// `together` says; thresholds in `fail_if` stand in for those of the logs.
///
/// # Errors
/// Which file is not as it should be.
pub fn again(
    logs: &[PathBuf],
    together: Together,
    fail_if: &[Gate],
    outputs: &Outputs,
) -> Result<Told, AgainError> {
    let mut runs = Vec::new();
    for path in logs {
        let bytes = read_file(path, LOAD_LOG_BYTES_MAX).map_err(AgainError::Io)?;
        let text = String::from_utf8_lossy(&bytes);
        let run = hlog::parse(&text).map_err(|error| AgainError::Log(path.clone(), error))?;
        runs.push((page::run_name(path), run));
    }
    if together == Together::Merge && runs.len() > 1 {
        let parts = runs.drain(..).map(|(_, run)| run).collect();
        runs.push((
            String::new(),
            merge::merge(parts).map_err(AgainError::Merge)?,
        ));
    }
    for (_, run) in runs.iter_mut().filter(|_| !fail_if.is_empty()) {
        Gate::into_plan(fail_if, &mut run.about);
    }
    let summaries: Vec<Summary> = runs.iter().map(|(_, run)| Summary::of(run)).collect();
    let mut thresholds = summaries.iter().flat_map(|summary| &summary.thresholds);
    let crossed = thresholds.any(|checked| checked.failed);
    let text = if let [(_, run)] = runs.as_slice() {
        write_all(run, outputs).map_err(AgainError::Io)?;
        table(run)
    } else {
        overlay(&runs, &summaries, outputs)?
    };
    Ok(Told { text, crossed })
}

fn overlay(
    runs: &[(String, Run)],
    summaries: &[Summary],
    outputs: &Outputs,
) -> Result<String, AgainError> {
    if runs.len() > LOAD_OVERLAY_RUNS_MAX {
        return Err(AgainError::TooMany);
    }
    for (path, what) in [
        (&outputs.hlog, "--hlog"),
        (&outputs.hgrm, "--hgrm"),
        (&outputs.csv, "--csv"),
    ] {
        if path.is_some() {
            return Err(AgainError::OneRunOnly(what));
        }
    }
    let told: Vec<(String, &Run, &Summary)> = runs
        .iter()
        .zip(summaries)
        .map(|((name, run), summary)| (name.clone(), run, summary))
        .collect();
    if let Some(path) = &outputs.json {
        let text = format!("{:#}\n", json::documents(&told));
        write_file(path, text.as_bytes()).map_err(AgainError::Io)?;
    }
    if let Some(path) = &outputs.html {
        write_file(path, page::overlay(&told).as_bytes()).map_err(AgainError::Io)?;
    }
    let micro = table::micro_of_terminal();
    let texts = told
        .iter()
        .map(|(name, run, summary)| format!("{name}\n{}", table::text(run, summary, micro)));
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

impl fmt::Display for AgainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgainError::Io(error) => error.fmt(f),
            AgainError::Log(path, error) => write!(f, "{}: {error}", path.display()),
            AgainError::Merge(error) => error.fmt(f),
            AgainError::TooMany => write!(
                f,
                "a picture holds {LOAD_OVERLAY_RUNS_MAX} runs apart, not more"
            ),
            AgainError::OneRunOnly(flag) => write!(
                f,
                "{flag} holds one run: leave it out, or merge the logs with --merge"
            ),
        }
    }
}

impl std::error::Error for AgainError {}
