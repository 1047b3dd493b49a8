//! The words and tables of a page: the strip of five tiles, the tables below the pictures, the
//! thresholds, and the foot that says where the figures come from.

use crate::base::units::{self, Micro, escape};
use crate::load::report::Kind;
use crate::load::report::spectrum::{Point, QUANTILES, Spectrum};
use crate::load::report::summary::Summary;
use crate::load::report::table::{point, provenance, step_verdict};
use crate::load::report::verdict::is_closed_loop;
use crate::load::run::Run;
use std::fmt::Write as _;

/// How a verdict looks: a class and a sign, so that colour is never alone.
#[must_use]
pub fn looks(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Valid => ("good", "✓"),
        Kind::GeneratorLimited | Kind::Overloaded | Kind::Interrupted | Kind::NoAnswer => {
            ("warn", "⚠")
        }
        Kind::VerificationFailed | Kind::NothingAcknowledged | Kind::BrokerLost | Kind::Errors => {
            ("bad", "✗")
        }
    }
}

/// The five tiles.
#[must_use]
pub fn strip(run: &Run, summary: &Summary) -> String {
    let verdict = &summary.verdict;
    let mut html = "<div class=\"strip\">".to_owned();
    for (class, name, value, more) in tiles(run, summary) {
        let _ = write!(
            html,
            "<div class=\"tile {class}\"><div class=\"name\">{name}</div>\
             <div class=\"value\">{}</div><div class=\"more\">{}</div></div>",
            escape(&value),
            escape(&more)
        );
    }
    html.push_str("</div>");
    for finding in verdict.findings.iter().skip(1) {
        let (_, sign) = looks(finding.kind);
        let (name, text) = (
            finding.kind.name(),
            escape(&Micro::Sign.apply(&finding.text)),
        );
        let _ = write!(
            html,
            "<p class=\"note\">{sign} also <b>{name}</b>: {text}</p>"
        );
    }
    for note in &verdict.notes {
        let _ = write!(html, "<p class=\"note\">Note: {}.</p>", escape(note));
    }
    html
}

/// One tile: its look, its name, its value, and a line more.
type Tile = (&'static str, String, String, String);

fn tiles(run: &Run, summary: &Summary) -> [Tile; 5] {
    let totals = &summary.totals;
    let counts = &totals.counts;
    let verdict = &summary.verdict;
    let (class, sign) = looks(verdict.kind());
    let (latency, spectrum) = totals.foremost();
    let errors = totals.errors();
    [
        (
            class,
            "verdict".to_owned(),
            format!("{sign} {}", verdict.kind().name()),
            Micro::Sign.apply(verdict.reason()),
        ),
        rates(run, summary),
        (
            "",
            format!("p50, {latency}"),
            figure(spectrum.at(0.5)),
            "half of the messages were faster".to_owned(),
        ),
        (
            "",
            format!("p99.9, {latency}"),
            figure(spectrum.at(0.999)),
            "one in a thousand was slower".to_owned(),
        ),
        (
            if errors > 0 { "bad" } else { "" },
            "unanswered + failed".to_owned(),
            units::count(errors),
            format!(
                "{} + {} of {} sent",
                units::count(counts.unanswered),
                units::count(counts.failed),
                units::count(counts.sent)
            ),
        ),
    ]
}

fn rates(run: &Run, summary: &Summary) -> Tile {
    let totals = &summary.totals;
    let counts = &totals.counts;
    if totals.is_consume_only() {
        let rate = units::short(totals.per_s(counts.received_meanwhile));
        let bytes = units::megabytes_per_s(totals.per_s(counts.received_meanwhile_bytes));
        return ("", "received".to_owned(), format!("{rate} /s"), bytes);
    }
    let offered = if is_closed_loop(run) {
        "all it took".to_owned()
    } else {
        units::short(totals.per_s(counts.offered))
    };
    let acked = totals.acknowledged_per_s();
    let bytes = units::megabytes_per_s(totals.per_s(counts.acknowledged_bytes));
    let by_clock = totals.acknowledged_meanwhile_per_s();
    let more = if by_clock < 0.99 * acked {
        format!("{bytes}; {} by the clock", units::rate(by_clock))
    } else {
        format!("{bytes}, acknowledged")
    };
    let value = format!("{offered} → {} /s", units::short(acked));
    ("", "offered → acknowledged".to_owned(), value, more)
}

fn figure(value: Option<Point>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| point(Some(value), Micro::Sign))
}

/// A table; the first row is its head.
#[must_use]
pub fn table(rows: &[Vec<String>]) -> String {
    let mut html = "<div class=\"scroll\"><table>".to_owned();
    for (index, row) in rows.iter().enumerate() {
        let tag = if index == 0 { "th" } else { "td" };
        html.push_str("<tr>");
        for cell in row {
            let _ = write!(html, "<{tag}>{}</{tag}>", escape(cell));
        }
        html.push_str("</tr>");
    }
    html.push_str("</table></div>");
    html
}

/// The percentiles of every latency that has samples, and what each latency is.
#[must_use]
pub fn latencies(summary: &Summary) -> String {
    let mut rows = vec![latency_head()];
    let mut definitions = String::new();
    for (name, definition, spectrum) in summary.totals.latencies() {
        if spectrum.count() > 0 {
            rows.push(latency_row(name, spectrum));
            let definition = escape(definition);
            let _ = write!(definitions, "<b>{name}</b>: {definition}.<br>");
        }
    }
    let marks = marks(&rows);
    format!("{}<p class=\"note\">{definitions}{marks}</p>", table(&rows))
}

/// What the marks of a table mean, as far as it has any.
#[must_use]
pub fn marks(rows: &[Vec<String>]) -> String {
    let has = |mark: &str| rows.iter().flatten().any(|cell| cell.contains(mark));
    let mut text = String::new();
    if has("*") {
        text.push_str("<b>*</b> fewer than 10 samples lie beyond it. ");
    }
    if has("≥") {
        text.push_str("<b>≥</b> a message without an answer is among them: at least so long.");
    }
    text
}

fn latency_head() -> Vec<String> {
    let names = QUANTILES.iter().map(|(_, name)| *name);
    let head = ["latency", "samples", "mean"]
        .into_iter()
        .chain(names)
        .chain(["max"]);
    head.map(ToOwned::to_owned).collect()
}

fn latency_row(name: &str, spectrum: &Spectrum) -> Vec<String> {
    let mean = spectrum.mean().map_or_else(String::new, |(mean, open)| {
        let sign = if open { "≥ " } else { "" };
        format!("{sign}{}", units::latency(mean, Micro::Sign))
    });
    let mut row = vec![name.to_owned(), units::count(spectrum.count()), mean];
    row.extend(
        QUANTILES
            .iter()
            .map(|(quantile, _)| figure(spectrum.at(*quantile))),
    );
    row.push(figure(spectrum.max()));
    row
}

/// The response times of several runs.
#[must_use]
pub fn compared(runs: &[(String, &Run, &Summary)]) -> String {
    let mut head = latency_head();
    head[0] = "run".to_owned();
    head.splice(
        1..1,
        ["verdict", "offered", "acknowledged"].map(ToOwned::to_owned),
    );
    let mut rows = vec![head];
    for (name, _, summary) in runs {
        let totals = &summary.totals;
        let mut row = latency_row(name, &totals.response);
        let (_, sign) = looks(summary.verdict.kind());
        let verdict = format!("{sign} {}", summary.verdict.kind().name());
        let offered = units::rate(totals.per_s(totals.counts.offered));
        let acked = units::rate(totals.acknowledged_per_s());
        row.splice(1..1, [verdict, offered, acked]);
        rows.push(row);
    }
    format!("{}<p class=\"note\">{}</p>", table(&rows), marks(&rows))
}

/// Every step with its verdict.
#[must_use]
pub fn steps(summary: &Summary) -> String {
    let head = [
        "step",
        "offered",
        "acknowledged",
        "p50",
        "p99",
        "p99.9",
        "max",
        "verdict",
    ];
    let mut rows = vec![head.map(ToOwned::to_owned).to_vec()];
    for (index, figures) in summary.steps.iter().enumerate() {
        let totals = &figures.totals;
        let chosen = if summary.chosen() == Some(index) {
            " ← answer"
        } else {
            ""
        };
        rows.push(vec![
            figures.step.name.clone(),
            units::rate(totals.per_s(totals.counts.offered)),
            units::rate(totals.acknowledged_per_s()),
            figure(totals.response.at(0.5)),
            figure(totals.response.at(0.99)),
            figure(totals.response.at(0.999)),
            figure(totals.response.max()),
            format!("{}{chosen}", step_verdict(figures.step.verdict)),
        ]);
    }
    format!("{}<p class=\"note\">{}</p>", table(&rows), marks(&rows))
}

/// The counts of the measured phase.
#[must_use]
pub fn counts(summary: &Summary) -> String {
    let totals = &summary.totals;
    let counts = &totals.counts;
    let mut rows = vec![
        ["messages", "count", "a second"]
            .map(ToOwned::to_owned)
            .to_vec(),
    ];
    for (name, count) in [
        ("offered", counts.offered),
        ("sent", counts.sent),
        ("acknowledged", counts.acknowledged),
        ("failed", counts.failed),
        ("unanswered", counts.unanswered),
        ("not sent", totals.unsent()),
        ("received", counts.received),
        (
            "acknowledged while measured, by the clock",
            counts.acknowledged_meanwhile,
        ),
        (
            "received while measured, by the clock",
            counts.received_meanwhile,
        ),
    ] {
        let rate = units::rate(totals.per_s(count));
        rows.push(vec![name.to_owned(), units::count(count), rate]);
    }
    let left_out = match summary.warm_up_ms {
        0 => String::new(),
        ms => format!(
            " A warm-up of {} is in the pictures and not in here.",
            units::seconds(ms)
        ),
    };
    format!(
        "<p class=\"note\">Over {}: {}.{left_out} offered = sent + not sent; sent = acknowledged + \
         failed + unanswered.</p>{}",
        summary.scope,
        units::seconds(totals.length_ms),
        table(&rows)
    )
}

/// Failures by name; empty without any.
#[must_use]
pub fn errors(run: &Run) -> String {
    if run.failures.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        ["error", "messages", "first", "last"]
            .map(ToOwned::to_owned)
            .to_vec(),
    ];
    for failure in &run.failures {
        rows.push(vec![
            failure.error.clone(),
            units::count(failure.count),
            format!("+{}", units::seconds(failure.first_ms)),
            format!("+{}", units::seconds(failure.last_ms)),
        ]);
    }
    format!("<h2>Errors</h2>{}", table(&rows))
}

/// What checking the payloads found; empty when nothing was checked.
#[must_use]
pub fn verification(run: &Run) -> String {
    let Some(found) = &run.verification else {
        return String::new();
    };
    let (class, sign) = if found.passed() {
        ("ok", "✓ passed")
    } else {
        ("bad", "✗ failed")
    };
    let mut html = format!(
        "<h2>Verification of every payload</h2><p><span class=\"tick-{class}\">{sign}</span>: {} \
         proven, {} lost, {} duplicated, {} reordered, {} damaged, {} foreign</p>",
        units::count(found.proven),
        units::count(found.lost),
        units::count(found.duplicated),
        units::count(found.reordered),
        units::count(found.damaged),
        units::count(found.foreign)
    );
    if !found.examples.is_empty() {
        html.push_str("<ul>");
        for example in &found.examples {
            let _ = write!(html, "<li><code>{}</code></li>", escape(example));
        }
        html.push_str("</ul>");
    }
    html
}

/// The thresholds with tick or cross; empty without any.
#[must_use]
pub fn thresholds(summary: &Summary) -> String {
    if summary.thresholds.is_empty() {
        return String::new();
    }
    let mut html = "<h2>Thresholds</h2><ul class=\"plain\">".to_owned();
    for checked in &summary.thresholds {
        let (class, sign) = if checked.failed {
            ("bad", "✗")
        } else {
            ("ok", "✓")
        };
        let text = escape(&checked.text);
        let measured = escape(&Micro::Sign.apply(&checked.measured));
        let _ = write!(
            html,
            "<li><span class=\"tick-{class}\">{sign}</span> fails if <code>{text}</code>: measured \
             {measured}</li>"
        );
    }
    html.push_str("</ul>");
    html
}

/// Where the figures come from.
#[must_use]
pub fn foot(run: &Run, summary: &Summary) -> String {
    let mut html = "<h2>Where this comes from</h2><table class=\"foot\">".to_owned();
    for (name, value) in provenance(run, summary, Micro::Sign) {
        let class = if name == "repeat with" {
            " class=\"code\""
        } else {
            ""
        };
        let _ = write!(
            html,
            "<tr><td>{name}</td><td{class}>{}</td></tr>",
            escape(&value)
        );
    }
    html.push_str("</table>");
    if !run.about.plan.is_empty() {
        html.push_str("<details><summary>every setting</summary><table class=\"foot\">");
        for (name, value) in &run.about.plan {
            let value = match value.as_str() {
                Some(text) => text.to_owned(),
                None => value.to_string(),
            };
            let (name, value) = (escape(name), escape(&value));
            let _ = write!(
                html,
                "<tr><td>{name}</td><td class=\"code\">{value}</td></tr>"
            );
        }
        html.push_str("</table></details>");
    }
    html
}
