//! `penstock load report` and `penstock load compare`: reports made again from what was written
//! before, without a broker.

use crate::admin::error::AdminError;
use crate::admin::output::Output;
use crate::base::exit::ExitCode;
use crate::load::page::compare;
use crate::load::report::{Gate, Outputs, Together, again};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Files of a report, of one load or of several.
#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FilesArgs {
    /// Write the page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the figures as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the time line as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the percentiles as text; further latencies lie beside it
    #[arg(long, value_name = "FILE")]
    pub hgrm: Option<PathBuf>,
    /// Write the log from which all of these can be made again
    #[arg(long, value_name = "FILE")]
    pub hlog: Option<PathBuf>,
}

impl FilesArgs {
    /// As the reports take them.
    #[must_use]
    pub fn outputs(&self) -> Outputs {
        Outputs {
            hlog: self.hlog.clone(),
            hgrm: self.hgrm.clone(),
            json: self.json.clone(),
            csv: self.csv.clone(),
            html: self.html.clone(),
        }
    }
}

/// `load report`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Exit codes: 0 told, and every --fail-if holds; 1 a file is not as it should \
                        be; 10 a --fail-if was crossed."
)]
pub struct ReportArgs {
    /// Logs that `penstock load --hlog` wrote
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// They are the processes of one load: add them up
    #[arg(long, conflicts_with = "overlay")]
    pub merge: bool,
    /// They are different runs: set up to six side by side (the default)
    #[arg(long)]
    pub overlay: bool,
    /// Fail when this is crossed, such as p99>10ms or errors>0, instead of what the logs say; may
    /// be given more than once
    #[arg(long = "fail-if", value_name = "THRESHOLD", value_parser = Gate::parse)]
    pub fail_if: Vec<Gate>,
    /// Where the report goes.
    #[command(flatten)]
    pub files: FilesArgs,
}

/// `load compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareArgs {
    /// What was measured of which system, as JSON (docs: src/load/page/compare.rs)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Write the page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the figures as JSON, logs included
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Runs `load report`.
///
/// # Errors
/// `Failed`: a file is not as it should be. `Ended`: a threshold was crossed.
pub fn report(args: &ReportArgs, out: &mut Output) -> Result<(), AdminError> {
    let together = if args.merge {
        Together::Merge
    } else {
        Together::Overlay
    };
    let told = again(&args.logs, together, &args.fail_if, &args.files.outputs());
    let told = told.map_err(|error| AdminError::Failed(error.to_string()))?;
    out.bytes(told.text.as_bytes())?;
    out.flush()?;
    if told.crossed {
        let text = "a threshold was crossed".to_owned();
        return Err(AdminError::Ended(ExitCode::GateFailed, text));
    }
    Ok(())
}

/// Runs `load compare`.
///
/// # Errors
/// `Failed`: a file is not as it should be.
pub fn compare(args: &CompareArgs, out: &mut Output) -> Result<(), AdminError> {
    let text = compare::run(&args.file, args.html.as_deref(), args.json.as_deref());
    let text = text.map_err(|error| AdminError::Failed(error.to_string()))?;
    out.bytes(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Parser, error::ErrorKind};

    #[derive(Debug, Parser)]
    enum Line {
        Report(ReportArgs),
        Compare(CompareArgs),
    }

    fn parse(line: &str) -> Result<Line, clap::Error> {
        Line::try_parse_from(line.split(' '))
    }

    /// Goal: the command line says what is meant, and a wrong threshold is refused before anything
    /// is read. Method: lines as they are typed.
    #[test]
    fn lines_are_understood() {
        let line = parse("load report a.hlog b.hlog --merge --fail-if p99>10ms --html p.html");
        let Ok(Line::Report(args)) = line else {
            panic!("{line:?}");
        };
        assert!(args.merge && args.logs.len() == 2);
        assert_eq!(args.fail_if[0].text(), "p99>10ms");
        assert!(matches!(
            parse("load compare c.json --html p.html"),
            Ok(Line::Compare(_))
        ));
        let error = parse("load report a.hlog --merge --overlay").expect_err("both");
        assert_eq!(error.kind(), ErrorKind::ArgumentConflict);
        let error = parse("load report a.hlog --fail-if eror>0").expect_err("unknown");
        assert!(
            error.to_string().contains("did you mean `errors`?"),
            "{error}"
        );
        assert!(parse("load report").is_err());
    }
}
