//! A run on the terminal: at most 80 columns but for what is long by nature (the command), the
//! verdict first and where the figures come from last.

use super::spectrum::{Point, QUANTILES, Spectrum};
use super::summary::Summary;
use super::verdict::is_closed_loop;
use crate::base::units::{self, Micro};
use crate::load::run::{Run, StepVerdict};
use comfy_table::{Cell, CellAlignment, Table, presets};
use std::fmt::Write as _;

/// Mark of a percentile with few samples beyond.
const FEW: &str = "*";

/// The table, for the locale's terminal.
#[must_use]
pub fn table(run: &Run) -> String {
    text(run, &Summary::of(run), micro_of_terminal())
}

/// How the micro sign is written on this terminal.
#[must_use]
pub fn micro_of_terminal() -> Micro {
    Micro::of_locale(|name| std::env::var(name).ok())
}

/// The table, for a terminal that can show `micro`.
#[must_use]
pub fn text(run: &Run, summary: &Summary, micro: Micro) -> String {
    let mut text = micro.apply(&summary.verdict.headline());
    text.push('\n');
    for finding in summary.verdict.findings.iter().skip(1) {
        let _ = writeln!(text, "also {}: {}", finding.kind.name(), finding.text);
    }
    for note in &summary.verdict.notes {
        let _ = writeln!(text, "note: {note}");
    }
    for part in [
        counts(run, summary),
        latencies(summary, micro),
        errors(run),
        steps(summary, micro),
        verification(run),
        thresholds(summary, micro),
        about(run, summary, micro),
    ] {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(&part);
        }
    }
    text
}

fn grid(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn lines(table: &Table) -> String {
    let mut text = String::new();
    for line in table.lines() {
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn counts(run: &Run, summary: &Summary) -> String {
    let totals = &summary.totals;
    let counts = &totals.counts;
    let mut table = grid(&["", "messages", "rate", "bytes"]);
    let mut row = |name: &str, count: u64, bytes: Option<u64>| {
        let rate = units::rate(totals.per_s(count));
        let bytes = bytes.map_or_else(String::new, |bytes| {
            units::megabytes_per_s(totals.per_s(bytes))
        });
        table.add_row([name, &units::count(count), &rate, &bytes]);
    };
    row("offered", counts.offered, None);
    row("sent", counts.sent, None);
    row(
        "acknowledged",
        counts.acknowledged,
        Some(counts.acknowledged_bytes),
    );
    row("  by the clock", counts.acknowledged_meanwhile, None);
    row("failed", counts.failed, None);
    row("unanswered", counts.unanswered, None);
    row("unsent", totals.unsent(), None);
    if run
        .intervals
        .iter()
        .any(|i| i.counts.received_meanwhile > 0)
    {
        row("received", counts.received, None);
        let bytes = Some(counts.received_meanwhile_bytes);
        row("  by the clock", counts.received_meanwhile, bytes);
    }
    let left_out = match summary.warm_up_ms {
        0 => String::new(),
        ms => format!(", warm-up of {} left out", units::seconds(ms)),
    };
    let measured = units::seconds(totals.length_ms);
    let scope = &summary.scope;
    format!("over {scope}: {measured}{left_out}\n{}", lines(&table))
}

fn latencies(summary: &Summary, micro: Micro) -> String {
    let shown: Vec<_> = summary
        .totals
        .latencies()
        .into_iter()
        .filter(|(_, _, spectrum)| spectrum.count() > 0)
        .collect();
    if shown.is_empty() {
        return "latency: no samples\n".to_owned();
    }
    let names = shown.iter().map(|(name, ..)| *name);
    let header: Vec<&str> = ["latency"].into_iter().chain(names).collect();
    let mut table = grid(&header);
    let mut row = |name: &str, cell: &dyn Fn(&Spectrum) -> String| {
        let cells = shown.iter().map(|(_, _, spectrum)| cell(spectrum));
        table.add_row([name.to_owned()].into_iter().chain(cells));
    };
    row("samples", &|spectrum| units::count(spectrum.count()));
    row("mean", &|spectrum| {
        spectrum.mean().map_or_else(String::new, |(mean, open)| {
            let sign = if open { micro.at_least() } else { "" };
            format!("{sign}{}", units::latency(mean, micro))
        })
    });
    for (quantile, name) in QUANTILES {
        row(name, &|spectrum| point(spectrum.at(quantile), micro));
    }
    row("max", &|spectrum| point(spectrum.max(), micro));
    let mut text = lines(&table);
    for (name, definition, _) in &shown {
        let _ = writeln!(text, "{name}: {definition}");
    }
    if text.contains(FEW) {
        let _ = writeln!(text, "{FEW} fewer than 10 samples beyond it");
    }
    if text.contains(micro.at_least()) {
        let sign = micro.at_least().trim_end();
        let _ = writeln!(
            text,
            "{sign} a message without an answer is among them: at least so long"
        );
    }
    text
}

/// A figure with its marks.
#[must_use]
pub fn point(point: Option<Point>, micro: Micro) -> String {
    point.map_or_else(String::new, |point| {
        let sign = if point.at_least { micro.at_least() } else { "" };
        let few = if point.few { FEW } else { "" };
        format!("{sign}{}{few}", units::latency(point.us as f64, micro))
    })
}

fn errors(run: &Run) -> String {
    if run.failures.is_empty() {
        return String::new();
    }
    let mut table = grid(&["error", "messages", "first", "last"]);
    for failure in &run.failures {
        let at = |ms: u64| format!("+{}", units::seconds(ms));
        let (first, last) = (at(failure.first_ms), at(failure.last_ms));
        table.add_row([&failure.error, &units::count(failure.count), &first, &last]);
    }
    lines(&table)
}

fn steps(summary: &Summary, micro: Micro) -> String {
    if !summary.has_steps() {
        return String::new();
    }
    let mut table = grid(&["step", "offered", "acked", "p50", "p99", "p99.9", "verdict"]);
    let chosen = summary.chosen();
    for (index, figures) in summary.steps.iter().enumerate() {
        let totals = &figures.totals;
        let response = |quantile| Cell::new(point(totals.response.at(quantile), micro));
        let verdict = step_verdict(figures.step.verdict);
        let mark = if chosen == Some(index) {
            " <- answer"
        } else {
            ""
        };
        table.add_row([
            Cell::new(&figures.step.name),
            Cell::new(units::rate(totals.per_s(totals.counts.offered))),
            Cell::new(units::rate(totals.acknowledged_per_s())),
            response(0.5),
            response(0.99),
            response(0.999),
            Cell::new(format!("{verdict}{mark}")).set_alignment(CellAlignment::Left),
        ]);
    }
    lines(&table)
}

/// What a search made of a step, in words.
#[must_use]
pub fn step_verdict(verdict: Option<StepVerdict>) -> &'static str {
    match verdict {
        None => "",
        Some(StepVerdict::Held) => "held",
        Some(StepVerdict::Broken) => "bound broken",
        Some(StepVerdict::Errors) => "errors",
        Some(StepVerdict::GeneratorLimited) => "generator-limited",
    }
}

fn verification(run: &Run) -> String {
    let Some(found) = &run.verification else {
        return String::new();
    };
    let word = if found.passed() { "passed" } else { "FAILED" };
    let mut text = format!(
        "verification {word}: {} payloads proven",
        units::count(found.proven)
    );
    for (count, what) in [
        (found.lost, "lost"),
        (found.duplicated, "duplicated"),
        (found.reordered, "reordered"),
        (found.damaged, "damaged"),
        (found.foreign, "foreign"),
    ] {
        let _ = write!(text, ", {} {what}", units::count(count));
    }
    text.push('\n');
    for example in &found.examples {
        let _ = writeln!(text, "  {example}");
    }
    text
}

fn thresholds(summary: &Summary, micro: Micro) -> String {
    let mut text = String::new();
    for checked in &summary.thresholds {
        let word = if checked.failed { "FAILED" } else { "ok" };
        let _ = writeln!(
            text,
            "{word:<6}  fails if {}: measured {}",
            checked.text,
            micro.apply(&checked.measured)
        );
    }
    text
}

fn about(run: &Run, summary: &Summary, micro: Micro) -> String {
    let mut text = String::new();
    for (name, value) in provenance(run, summary, micro) {
        let _ = writeln!(text, "{name:<13} {value}");
    }
    text
}

/// Where the figures come from: the tail of the table and the foot of the page.
#[must_use]
pub fn provenance(run: &Run, summary: &Summary, micro: Micro) -> Vec<(&'static str, String)> {
    let about = &run.about;
    let lag = |quantile| point(summary.totals.schedule_lag.at(quantile), micro);
    let busy: Vec<String> = about
        .worker_busy
        .iter()
        .map(|share| units::percent(*share))
        .collect();
    let setup = &run.setup;
    let mut times = vec![format!("connected in {}", units::seconds(setup.connect_ms))];
    times.extend(
        setup
            .join_ms
            .map(|ms| format!("joined in {}", units::seconds(ms))),
    );
    let fetched = setup.first_fetch_ms;
    times.extend(fetched.map(|ms| format!("first record after {}", units::seconds(ms))));
    let floor = about.floor.map(|floor| {
        let us = |us: u64| units::latency(us as f64, micro);
        format!("p50 {}, p99 {}", us(floor.p50_us), us(floor.p99_us))
    });
    let lag = match (summary.totals.schedule_lag.count(), is_closed_loop(run)) {
        (_, true) => "closed loop: no schedule".to_owned(),
        (0, false) => String::new(),
        _ => format!("p99 {}, p99.9 {}", lag(0.99), lag(0.999)),
    };
    let all = [
        ("began", units::date_time(run.began_unix_us)),
        ("repeat with", about.command.clone()),
        ("generator", about.version.clone()),
        ("broker", about.broker.clone()),
        ("durability", about.durability.clone()),
        ("kernel", about.kernel.clone()),
        ("processor", about.cpu.clone()),
        ("clock source", about.clock_source.clone()),
        ("seed", about.seed.to_string()),
        ("schedule lag", lag),
        ("workers busy", busy.join(", ")),
        ("bare flush", floor.unwrap_or_default()),
        ("before start", times.join(", ")),
        ("samples", units::count(summary.totals.response.count())),
    ];
    all.into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect()
}
