//! Several systems beside each other: the same load, in rounds that took turns (ABAB), so that what
//! changes with the machine's mood hits all alike. Read from one JSON file:
//!
//! ```json
//! {
//!   "schema_version": 1,
//!   "title": "Durable produce, 100-byte messages",
//!   "about": {"kernel": "6.18", "disk": "…"},
//!   "limit": {"flushes_per_s": 9800, "p50_us": 95, "p99_us": 240},
//!   "baseline": "penstock",
//!   "systems": [{"name": "penstock", "version": "0.1 6909b8f", "durability": "commits flushed",
//!                "command": "penstock serve …", "note": ""}],
//!   "results": [
//!     {"system": "penstock", "case": "produce 100 B", "producers": 8, "round": 1,
//!      "acks_per_s": 28900.5, "p50_us": 260, "p99_us": 610, "verdict": "valid"},
//!     {"system": "penstock", "case": "produce 100 B", "producers": 8, "round": 2,
//!      "hlog": ["p8-2.hlog"]}
//!   ]
//! }
//! ```
//!
//! `about` is shown as it is. `limit` (optional, each part too) is the machine's bare write +
//! flush: the same grey rule in every panel. `baseline` names the system that ratios are of. A
//! result has its figures, or `hlog`: logs of `penstock load` beside this file, merged if several.
//! `p50_us`, `p99_us`, `verdict` and everything of a system but its name may be missing. A ratio is
//! made within a round; its spread is over the rounds.

use super::panels::{self, Panel, Value};
use super::parts::{looks, table};
use super::{document, paragraph};
use crate::base::units::{Micro, escape, finite, latency, number, rate, share};
use crate::env::blocking::{read_file, write_file};
use crate::limits::{LOAD_COMPARE_SYSTEMS_MAX, LOAD_LOG_BYTES_MAX};
use crate::load::report::summary::Summary;
use crate::load::report::table::micro_of_terminal;
use crate::load::report::{hlog, merge};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};

/// The file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the module says what each is")]
pub struct Comparison {
    pub schema_version: u32,
    pub title: String,
    #[serde(default)]
    pub about: Map<String, serde_json::Value>,
    #[serde(default)]
    pub limit: Limit,
    pub baseline: String,
    pub systems: Vec<System>,
    pub results: Vec<Outcome>,
}

/// The machine's own limit.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the module says what each is")]
pub struct Limit {
    pub flushes_per_s: Option<f64>,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
}

/// One of the systems.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the module says what each is")]
pub struct System {
    pub name: String,
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub durability: String,
    #[serde(default)]
    pub command: String,
    #[serde(default)]
    pub note: String,
}

/// What one system did in one round.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the module says what each is")]
pub struct Outcome {
    pub system: String,
    pub case: String,
    pub producers: u32,
    pub round: u32,
    pub acks_per_s: Option<f64>,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub verdict: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hlog: Vec<PathBuf>,
}

/// Why no comparison was made.
#[derive(Debug)]
pub enum CompareError {
    /// A file could not be read or written; it is named.
    Io(io::Error),
    /// Not the JSON that the module describes.
    Json(serde_json::Error),
    /// A log that is not ours.
    Log(PathBuf, hlog::HlogError),
    /// Logs that are not parts of one run.
    Merge(merge::MergeError),
    /// A result or the baseline names a system that is not listed.
    System(String),
    /// More systems than a page can hold, or none.
    Number,
    /// Written for a later version.
    Version(u32),
}

const SCHEMA_VERSION: u32 = 1;

/// Reads a comparison, writes the files asked for, gives the terminal's text.
///
/// # Errors
/// What is not as it should be.
pub fn run(path: &Path, html: Option<&Path>, json: Option<&Path>) -> Result<String, CompareError> {
    let bytes = read_file(path, LOAD_LOG_BYTES_MAX).map_err(CompareError::Io)?;
    let mut comparison: Comparison = serde_json::from_slice(&bytes).map_err(CompareError::Json)?;
    comparison.complete(path.parent().unwrap_or(Path::new("")))?;
    if let Some(html) = html {
        write_file(html, comparison.page().as_bytes()).map_err(CompareError::Io)?;
    }
    if let Some(json) = json {
        let text = format!("{:#}\n", json!(comparison));
        write_file(json, text.as_bytes()).map_err(CompareError::Io)?;
    }
    Ok(comparison.text(micro_of_terminal()))
}

/// The figures of one system at one number of producers, over the rounds.
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            *values.get(middle)?
        } else {
            f64::midpoint(*values.get(middle.checked_sub(1)?)?, *values.get(middle)?)
        };
        Some(Spread {
            median,
            least: *values.first()?,
            most: *values.last()?,
        })
    }

    fn written(&self, number: impl Fn(f64) -> String) -> String {
        if self.most <= self.least {
            return number(self.median);
        }
        let (least, most) = (number(self.least), number(self.most));
        format!("{} ({least} – {most})", number(self.median))
    }
}

impl Comparison {
    /// Reads the logs that results name, and checks what is said.
    ///
    /// # Errors
    /// What is not as it should be.
    pub fn complete(&mut self, folder: &Path) -> Result<(), CompareError> {
        if self.schema_version != SCHEMA_VERSION {
            return Err(CompareError::Version(self.schema_version));
        }
        if !(1..=LOAD_COMPARE_SYSTEMS_MAX).contains(&self.systems.len()) {
            return Err(CompareError::Number);
        }
        let known: BTreeSet<&String> = self.systems.iter().map(|system| &system.name).collect();
        let named = self.results.iter().map(|result| &result.system);
        if let Some(stranger) = named
            .chain([&self.baseline])
            .find(|name| !known.contains(name))
        {
            return Err(CompareError::System(stranger.clone()));
        }
        for result in self
            .results
            .iter_mut()
            .filter(|result| !result.hlog.is_empty())
        {
            let mut runs = Vec::new();
            for path in &result.hlog {
                let path = folder.join(path);
                let bytes = read_file(&path, LOAD_LOG_BYTES_MAX).map_err(CompareError::Io)?;
                let log = hlog::parse(&String::from_utf8_lossy(&bytes));
                runs.push(log.map_err(|error| CompareError::Log(path, error))?);
            }
            let summary = Summary::of(&merge::merge(runs).map_err(CompareError::Merge)?);
            let us = |quantile| summary.totals.response.at(quantile).map(|p| p.us as f64);
            result.acks_per_s = Some(summary.totals.acknowledged_per_s());
            result.p50_us = us(0.5);
            result.p99_us = us(0.99);
            result.verdict = Some(summary.verdict.kind().name().to_owned());
        }
        Ok(())
    }

    /// The page.
    #[must_use]
    pub fn page(&self) -> String {
        let rounds: BTreeSet<u32> = self.results.iter().map(|result| result.round).collect();
        let mut body = format!(
            "<h1>{}</h1><p class=\"dim\">{} systems, {} rounds that took turns; every panel of a \
             row has the same axes</p>",
            escape(&self.title),
            self.systems.len(),
            rounds.len()
        );
        for case in self.cases() {
            self.case(&mut body, &case);
        }
        body.push_str(&self.foot());
        document(&self.title, &body, &json!(self))
    }

    fn case(&self, body: &mut String, case: &str) {
        let _ = write!(body, "<h2>{}</h2>", escape(case));
        body.push_str(&paragraph(&format!(
            "How many times the rate of each other system {} reaches: median over the rounds, and \
             the least and most of one round.",
            escape(&self.baseline)
        )));
        body.push_str(&table(&self.ratios(case)));
        body.push_str("<h3>Acknowledged messages a second</h3>");
        let limit = self
            .limit
            .flushes_per_s
            .map(finite)
            .filter(|limit| *limit > 0.0);
        if let Some(limit) = limit {
            let words = "A dot is a round. The grey rule: bare write + flush, one by one, on this \
                         machine:";
            body.push_str(&paragraph(&format!("{words} {}.", rate(limit))));
        }
        body.push_str(&self.panels(case, &[(Value::Rate, "line panel")], limit));
        body.push_str("<h3>Response time: p50 (lower line) and p99 (upper line)</h3>");
        let lines = [(Value::P50, "line plain"), (Value::P99, "line k99")];
        let limit = self.limit.p50_us.map(finite).filter(|limit| *limit > 0.0);
        if let Some(limit) = limit {
            let limit = latency(limit, Micro::Sign);
            let words = format!("The grey rule: the median of a bare write + flush, {limit}.");
            body.push_str(&paragraph(&words));
        }
        body.push_str(&self.panels(case, &lines, limit));
        body.push_str(&table(&self.figures(case)));
    }

    fn panels(&self, case: &str, lines: &[(Value, &'static str)], limit: Option<f64>) -> String {
        let panels: Vec<Panel<'_>> = self
            .systems
            .iter()
            .map(|system| Panel {
                title: &system.name,
                results: self.of(case, &system.name).collect(),
            })
            .collect();
        panels::draw(&panels, &self.producers(case), lines, limit)
    }

    fn of<'a>(&'a self, case: &'a str, system: &'a str) -> impl Iterator<Item = &'a Outcome> {
        let wanted = move |result: &&Outcome| result.case == case && result.system == system;
        self.results.iter().filter(wanted)
    }

    /// In the order in which the file names them.
    fn cases(&self) -> Vec<String> {
        let mut cases: Vec<String> = Vec::new();
        for result in &self.results {
            if !cases.contains(&result.case) {
                cases.push(result.case.clone());
            }
        }
        cases
    }

    fn producers(&self, case: &str) -> Vec<u32> {
        let results = self.results.iter().filter(|result| result.case == case);
        let producers: BTreeSet<u32> = results.map(|result| result.producers).collect();
        producers.into_iter().collect()
    }

    /// The rate of the baseline by that of another, round by round.
    fn ratio(&self, case: &str, system: &str, producers: u32) -> Option<Spread> {
        let rate = |name: &str, round: u32| {
            let found = self
                .of(case, name)
                .find(|r| r.producers == producers && r.round == round);
            found.and_then(|result| result.acks_per_s).map(finite)
        };
        let rounds = self
            .of(case, system)
            .filter(|result| result.producers == producers);
        let ratios = rounds.filter_map(|result| {
            let theirs = rate(system, result.round).filter(|theirs| *theirs > 0.0)?;
            Some(share(rate(&self.baseline, result.round)?, theirs))
        });
        Spread::of(ratios)
    }

    fn ratios(&self, case: &str) -> Vec<Vec<String>> {
        let producers = self.producers(case);
        let mut rows = vec![vec!["against".to_owned()]];
        rows[0].extend(producers.iter().map(|number| producers_text(*number)));
        for system in self
            .systems
            .iter()
            .filter(|system| system.name != self.baseline)
        {
            let mut row = vec![system.name.clone()];
            row.extend(producers.iter().map(|number| {
                let spread = self.ratio(case, &system.name, *number);
                spread.map_or_else(|| "–".to_owned(), |spread| ratio_text(&spread))
            }));
            rows.push(row);
        }
        rows
    }

    fn figures(&self, case: &str) -> Vec<Vec<String>> {
        let head = [
            "system",
            "producers",
            "acknowledged a second",
            "p50",
            "p99",
            "verdicts",
        ];
        let mut rows = vec![head.map(ToOwned::to_owned).to_vec()];
        for system in &self.systems {
            for producers in self.producers(case) {
                let at = || {
                    self.of(case, &system.name)
                        .filter(move |r| r.producers == producers)
                };
                if at().next().is_none() {
                    continue;
                }
                let written = |values: Option<Spread>, form: &dyn Fn(f64) -> String| {
                    values.map_or_else(|| "–".to_owned(), |spread| spread.written(form))
                };
                let us = |us: f64| latency(us, Micro::Sign);
                let rates = Spread::of(at().filter_map(|r| r.acks_per_s.map(finite)));
                rows.push(vec![
                    system.name.clone(),
                    producers.to_string(),
                    written(rates, &number),
                    written(Spread::of(at().filter_map(|r| r.p50_us.map(finite))), &us),
                    written(Spread::of(at().filter_map(|r| r.p99_us.map(finite))), &us),
                    verdicts(at()),
                ]);
            }
        }
        rows
    }

    fn foot(&self) -> String {
        let mut html = "<h2>Where this comes from</h2><table class=\"foot\">".to_owned();
        let mut row = |name: &str, value: &str| {
            let (name, value) = (escape(name), escape(value));
            let _ = write!(html, "<tr><td>{name}</td><td>{value}</td></tr>");
        };
        for (name, value) in &self.about {
            row(name, value.as_str().unwrap_or(&value.to_string()));
        }
        for system in &self.systems {
            let parts = [
                &system.version,
                &system.durability,
                &system.command,
                &system.note,
            ];
            let parts: Vec<&str> = parts.into_iter().map(String::as_str).collect();
            let said: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            row(&system.name, &said.join(" · "));
        }
        let limit = &self.limit;
        let rate_text = limit.flushes_per_s.map(|limit| rate(finite(limit)));
        let us = |us: Option<f64>| us.map(|us| latency(us, Micro::Sign));
        let parts = [
            rate_text,
            us(limit.p50_us).map(|text| format!("p50 {text}")),
            us(limit.p99_us).map(|text| format!("p99 {text}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            row("bare write + flush", &parts.join(", "));
        }
        html.push_str("</table>");
        html
    }

    /// For a terminal that can show `micro`.
    #[must_use]
    pub fn text(&self, micro: Micro) -> String {
        let mut text = format!("{}\n", self.title);
        for case in self.cases() {
            let _ = writeln!(text, "\n{case}: {} against", self.baseline);
            for rows in [self.ratios(&case), self.figures(&case)] {
                text.push_str(&aligned(&rows));
                text.push('\n');
            }
        }
        match micro {
            Micro::Sign => text,
            Micro::Ascii => plain(&text),
        }
    }
}

/// In letters that every terminal has.
fn plain(text: &str) -> String {
    let mut plain = text.to_owned();
    for (sign, letters) in [
        ("µs", "us"),
        ("×", "x"),
        ("–", "-"),
        ("▲", "+"),
        ("▼", "-"),
        ("≈", "~"),
        ("✓ ", ""),
    ] {
        plain = plain.replace(sign, letters);
    }
    plain
}

fn producers_text(number: u32) -> String {
    if number == 1 {
        "1 producer".to_owned()
    } else {
        format!("{number} producers")
    }
}

/// With a sign only where every round says the same.
fn ratio_text(spread: &Spread) -> String {
    let times = |value: f64| {
        if value < 10.0 {
            format!("{value:.2}×")
        } else {
            format!("{value:.0}×")
        }
    };
    let sign = if spread.least > 1.0 {
        "▲ "
    } else if spread.most < 1.0 {
        "▼ "
    } else {
        "≈ "
    };
    format!("{sign}{}", spread.written(times))
}

/// Each different verdict once, with how often when not always.
fn verdicts<'a>(results: impl Iterator<Item = &'a Outcome>) -> String {
    let mut seen: Vec<(String, usize)> = Vec::new();
    for verdict in results.filter_map(|result| result.verdict.clone()) {
        match seen.iter_mut().find(|(known, _)| *known == verdict) {
            Some((_, times)) => *times += 1,
            None => seen.push((verdict, 1)),
        }
    }
    let valid = looks(crate::load::report::Kind::Valid).1;
    if let [(only, _)] = seen.as_slice() {
        return if only == "valid" {
            format!("{valid} {only}")
        } else {
            only.clone()
        };
    }
    let parts = seen
        .iter()
        .map(|(verdict, times)| format!("{verdict} ×{times}"));
    parts.collect::<Vec<_>>().join(", ")
}

fn aligned(rows: &[Vec<String>]) -> String {
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    for row in rows {
        table.add_row(row);
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompareError::Io(error) => error.fmt(f),
            CompareError::Json(error) => write!(f, "not a comparison: {error}"),
            CompareError::Log(path, error) => write!(f, "{}: {error}", path.display()),
            CompareError::Merge(error) => error.fmt(f),
            CompareError::System(name) => write!(f, "`{name}` is not among the systems"),
            CompareError::Version(version) => write!(
                f,
                "written for another version (schema {version}, this one reads {SCHEMA_VERSION})"
            ),
            CompareError::Number => {
                write!(f, "a page holds 1 to {LOAD_COMPARE_SYSTEMS_MAX} systems")
            }
        }
    }
}

impl std::error::Error for CompareError {}
