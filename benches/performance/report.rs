//! How the outcome is told: a table for people, one document for programs.

use std::fmt::Write as _;
use std::time::Duration;

use crate::bench::Bench;
use crate::figures::{Figure, Figures, Goal};
use crate::machine;
use crate::rows::{ELSEWHERE, ROWS, Row};
use serde_json::{Value, json};

/// Version of the document's layout.
const SCHEMA: u64 = 1;

/// A row that was measured, or could not be.
pub struct Measured {
    pub row: &'static Row,
    pub figures: Figures,
    pub failure: Option<String>,
    pub rounds: usize,
    pub took: Duration,
    pub raw: Vec<Value>,
}

impl Measured {
    /// Whether every goal was met.
    pub fn is_met(&self) -> bool {
        let mut goals = self.figures.all.iter().filter_map(Figure::is_met);
        self.failure.is_none() && goals.all(|met| met)
    }

    /// A figure of a load that could not keep its schedule says more about the load.
    fn word(&self) -> &'static str {
        let is_doubted = !self.figures.doubts().is_empty();
        match (&self.failure, self.is_met(), is_doubted) {
            (Some(_), _, _) => "FAILED",
            (None, true, false) => "met",
            (None, true, true) => "met, in doubt",
            (None, false, false) => "MISSED",
            (None, false, true) => "MISSED, in doubt",
        }
    }
}

/// All rows with their goals.
pub fn list() -> String {
    let mut text = String::new();
    for row in ROWS {
        let _ = writeln!(
            text,
            "{:<4} {}\n     goal: {}",
            row.name, row.what, row.goal
        );
    }
    for (name, what, how) in ELSEWHERE {
        let _ = writeln!(text, "{name:<4} {what}\n     elsewhere: {how}");
    }
    text
}

/// What stands above the table.
pub fn head(bench: &Bench) -> String {
    let machine = machine::describe(&bench.folder);
    let text = |key: &str| machine[key].as_str().unwrap_or_default().to_owned();
    let mount = |key: &str| machine["file_system"][key].as_str().unwrap_or_default();
    let mut head = format!(
        "{}\ncommit {}, kernel {}, {} CPUs ({}), {} on {} ({})\n{} s each\n",
        text("command"),
        text("commit"),
        text("kernel"),
        machine["cpus"],
        text("cpu"),
        mount("type"),
        mount("device"),
        mount("options"),
        bench.seconds,
    );
    if !bench.full {
        head += "a short round to test the bench itself: these are no figures\n";
    }
    head
}

/// One row's part of the table.
pub fn row(measured: &Measured) -> String {
    let row = measured.row;
    let mut text = format!(
        "\n{} {}: {}  [{} rounds, {:.0} s]\n  goal: {}\n",
        row.name,
        row.what,
        measured.word(),
        measured.rounds,
        measured.took.as_secs_f64(),
        row.goal
    );
    for figure in &measured.figures.all {
        let spread = format!("{} .. {}", short(figure.min()), short(figure.max()));
        let goal = match figure.goal {
            Goal::None => String::new(),
            Goal::AtMost(most) => format!("<= {}", short(most)),
            Goal::AtLeast(least) => format!(">= {}", short(least)),
        };
        let word = match figure.is_met() {
            None => "",
            Some(true) => "met",
            Some(false) => "MISSED",
        };
        let line = format!(
            "  {:<58} {:>9}  {spread:>21}  {goal:<9} {word}",
            figure.name,
            short(figure.median()),
        );
        text += line.trim_end();
        text.push('\n');
    }
    for doubt in measured.figures.doubts() {
        let _ = writeln!(text, "  in doubt: {doubt}");
    }
    for note in &measured.figures.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    if let Some(failure) = &measured.failure {
        let _ = writeln!(text, "  FAILED: {failure}");
    }
    text
}

/// Four digits at least, no more decimals than they need.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// Everything.
pub fn document(bench: &Bench, all: &[Measured]) -> Value {
    let rows = all.iter().map(|measured| {
        let row = measured.row;
        let figures = measured.figures.all.iter().map(Figure::to_json);
        json!({
            "row": row.name,
            "what": row.what,
            "goal": row.goal,
            "outcome": measured.word(),
            "failure": measured.failure,
            "rounds": measured.rounds,
            "took_s": measured.took.as_secs_f64(),
            "figures": figures.collect::<Vec<_>>(),
            "doubts": measured.figures.doubts(),
            "notes": measured.figures.notes,
            "raw": measured.raw,
        })
    });
    json!({
        "schema": SCHEMA,
        "is_a_measurement": bench.full,
        "machine": machine::describe(&bench.folder),
        "seconds": bench.seconds,
        "rows": rows.collect::<Vec<_>>(),
    })
}
