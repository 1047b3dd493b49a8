//! The page: one HTML file with everything in it, that works without a network and without
//! JavaScript, by day, by night and on grey paper. Each picture is drawn for a wide and for a
//! narrow screen; the data of every picture is embedded as JSON (`<script
//! type="application/json">`).
//!
//! `svg` draws; `spectrum` (C1), `timeline` with `columns` and `heat` (C2), `distribution`, `knee`
//! (C3) are the pictures; `parts` the words and tables; `compare` and `panels` set systems beside
//! each other.

mod columns;
pub mod compare;
mod distribution;
mod heat;
mod knee;
mod panels;
mod parts;
mod spectrum;
mod svg;
mod timeline;

use super::report::json;
use super::report::summary::Summary;
use super::report::verdict::is_closed_loop;
use super::run::Run;
use crate::base::units::{date_time, escape};
use serde_json::Value;
use spectrum::Line;
use std::path::Path;
use svg::both;

const STYLE: &str = include_str!("style.css");
/// Colours of overlaid runs.
const SERIES: [&str; 6] = ["s1", "s2", "s3", "s4", "s5", "s6"];

/// The page of one run.
#[must_use]
pub fn single(run: &Run, summary: &Summary) -> String {
    let verdict = &summary.verdict;
    let mut body = format!(
        "<h1>Load on {}</h1><p class=\"dim\">{} · durability: {}</p>",
        escape(broker(run)),
        date_time(run.began_unix_us),
        escape(stated(&run.about.durability))
    );
    body.push_str(&parts::strip(run, summary));
    body.push_str(&parts::thresholds(summary));
    body.push_str("<h2>How long messages took</h2>");
    body.push_str(&paragraph(spectrum_words(run, summary)));
    body.push_str(&both(|size| {
        let gap = summary.totals.service.count() > 0;
        spectrum::chart(&response_and_service(summary), gap, run.about.floor, size)
    }));
    body.push_str(&parts::latencies(summary));
    if summary.has_steps() {
        body.push_str("<h2>The rates that were tried</h2>");
        body.push_str(&paragraph(KNEE_WORDS));
        body.push_str(&both(|size| knee::chart(summary, &run.about, size)));
        body.push_str(&parts::steps(summary));
    }
    body.push_str("<h2>The run over time</h2>");
    body.push_str(&paragraph(TIME_WORDS));
    body.push_str(&timeline::chart(run));
    body.push_str("<h2>Which times were how frequent</h2>");
    body.push_str(&both(|size| {
        distribution::chart(summary.totals.foremost(), size)
    }));
    body.push_str("<h2>Messages</h2>");
    body.push_str(&parts::counts(summary));
    body.push_str(&parts::errors(run));
    body.push_str(&parts::verification(run));
    body.push_str(&parts::foot(run, summary));
    let title = format!("{}: load on {}", verdict.kind().name(), broker(run));
    document(&title, &body, &json::document(run, summary))
}

/// The page of several runs side by side.
#[must_use]
pub fn overlay(runs: &[(String, &Run, &Summary)]) -> String {
    let mut body = format!("<h1>{} runs compared</h1>", runs.len());
    body.push_str(&parts::compared(runs));
    body.push_str("<h2>How long messages took</h2>");
    body.push_str(&paragraph(
        "Response: from the intended send to the acknowledgement. Lower is better. Dashed where \
         fewer than ten samples lie beyond.",
    ));
    let lines: Vec<Line<'_>> = runs
        .iter()
        .zip(SERIES)
        .map(|((name, _, summary), class)| Line {
            name: name.clone(),
            class,
            spectrum: &summary.totals.response,
        })
        .collect();
    let floor = runs.iter().find_map(|(_, run, _)| run.about.floor);
    body.push_str(&both(|size| spectrum::chart(&lines, false, floor, size)));
    for (name, run, summary) in runs {
        body.push_str(&format!("<h2>{}</h2>", escape(name)));
        body.push_str(&parts::strip(run, summary));
        body.push_str(&parts::thresholds(summary));
        if summary.has_steps() {
            body.push_str(&both(|size| knee::chart(summary, &run.about, size)));
        }
        body.push_str(&timeline::chart(run));
        body.push_str(&parts::errors(run));
        body.push_str(&parts::verification(run));
        body.push_str(&parts::foot(run, summary));
    }
    document(
        &format!("{} runs compared", runs.len()),
        &body,
        &json::documents(runs),
    )
}

/// What a run is called when several are compared: its file's name.
#[must_use]
pub fn run_name(path: &Path) -> String {
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

const KNEE_WORDS: &str = "Each dot is a step; hollow: it broke the bound or had errors; crossed \
    out: the generator could not keep that rate, so it says nothing about the broker.";
const TIME_WORDS: &str = "Each column is a stretch of time, each row a time taken. A dashed \
    percentile has fewer than ten samples beyond it in that column.";

fn spectrum_words(run: &Run, summary: &Summary) -> &'static str {
    if summary.totals.is_consume_only() {
        return "End to end runs from when a message should have been sent to its receipt by a \
                consumer. Lower is better; dashed where fewer than ten samples lie beyond.";
    }
    if is_closed_loop(run) {
        return "A closed loop: each answer makes room for the next send, so response and service \
                are nearly the same and say nothing about a rate. Dashed where fewer than ten \
                samples lie beyond.";
    }
    "Response runs from the moment a message should have been sent, service from when it was sent. \
     The space between is time spent waiting to be sent. Lower is better; dashed where fewer than \
     ten samples lie beyond."
}

fn response_and_service(summary: &Summary) -> Vec<Line<'_>> {
    let totals = &summary.totals;
    let line = |name: &str, class, spectrum| Line {
        name: name.to_owned(),
        class,
        spectrum,
    };
    let mut lines = vec![
        line("response", "response", &totals.response),
        line("service", "service", &totals.service),
    ];
    if totals.end_to_end.count() > 0 {
        lines.push(line("end to end", "s4", &totals.end_to_end));
    }
    lines
}

fn broker(run: &Run) -> &str {
    stated(&run.about.broker)
}

fn stated(text: &str) -> &str {
    if text.is_empty() { "not stated" } else { text }
}

fn paragraph(text: &str) -> String {
    format!("<p class=\"note\">{text}</p>")
}

/// The whole file. The data may hold any text: `<` is written so that it ends no element.
fn document(title: &str, body: &str, data: &Value) -> String {
    let data = data.to_string().replace('<', "\\u003c");
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{}</title><style>{STYLE}</style></head><body>\n{body}\n\
         <script type=\"application/json\" id=\"data\">{data}</script></body></html>\n",
        escape(title)
    )
}
