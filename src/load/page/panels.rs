//! Small multiples: one panel a system, the same axes in each, the machine's limit as the same grey
//! rule. A dot is a round, the line goes through the medians.

use super::compare::Outcome;
use super::svg::{Anchor, Frame, Scale, Svg, axis_left, cut};
use crate::base::units::{finite, latency_tick, short};

/// One system.
pub struct Panel<'a> {
    /// Its name.
    pub title: &'a str,
    /// What it did.
    pub results: Vec<&'a Outcome>,
}

/// What is drawn of a result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Value {
    /// Acknowledged messages a second.
    Rate,
    /// Median response.
    P50,
    /// Response of the 99th percentile.
    P99,
}

impl Value {
    fn of(self, result: &Outcome) -> Option<f64> {
        let value = match self {
            Value::Rate => result.acks_per_s,
            Value::P50 => result.p50_us,
            Value::P99 => result.p99_us,
        };
        value.map(finite).filter(|value| *value > 0.0)
    }

    fn label(self, value: f64) -> String {
        match self {
            Value::Rate => short(value),
            // A latency of three digits is enough above a dot.
            Value::P50 | Value::P99 if value >= 1000.0 => {
                format!("{} ms", short(value / 1000.0))
            }
            Value::P50 | Value::P99 => latency_tick(value.round()),
        }
    }
}

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 210.0;

/// Draws a row of panels.
#[must_use]
pub fn draw(
    panels: &[Panel<'_>],
    producers: &[u32],
    lines: &[(Value, &'static str)],
    limit: Option<f64>,
) -> String {
    let values = |(value, _): &(Value, &str)| {
        let value = *value;
        let results = panels.iter().flat_map(|panel| panel.results.iter());
        results
            .filter_map(move |result| value.of(result))
            .collect::<Vec<f64>>()
    };
    let mut all: Vec<f64> = lines.iter().flat_map(values).collect();
    all.extend(limit);
    let least = all.iter().copied().fold(f64::MAX, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    let mut html = "<div class=\"panels\">".to_owned();
    for panel in panels {
        let mut svg = Svg::new(WIDTH, HEIGHT, panel.title);
        let frame = Frame {
            left: 52.0,
            right: WIDTH - 34.0,
            top: 40.0,
            bottom: HEIGHT - 36.0,
        };
        // Room beyond the outermost dots for their labels.
        let y = Scale::log(least.min(most) * 0.4, most * 1.3, frame.bottom, frame.top);
        draw_panel(&mut svg, frame, &y, (panel, producers, lines, limit));
        html.push_str(&svg.finish());
    }
    html.push_str("</div>");
    html
}

type What<'a> = (
    &'a Panel<'a>,
    &'a [u32],
    &'a [(Value, &'static str)],
    Option<f64>,
);

fn draw_panel(svg: &mut Svg, frame: Frame, y: &Scale, what: What<'_>) {
    let (panel, producers, lines, limit) = what;
    let label = |value: f64| match lines.first() {
        Some((Value::Rate, _)) => short(value),
        _ => latency_tick(value),
    };
    svg.text(
        (4.0, 16.0),
        Anchor::Start,
        "panel-title",
        &cut(panel.title, 34),
    );
    axis_left(svg, frame, y, 22.0, label);
    let apart = (frame.right - frame.left) / producers.len().max(1) as f64;
    let x = |index: usize| frame.left + apart * (index as f64 + 0.5);
    for (index, number) in producers.iter().enumerate() {
        let place = (x(index), frame.bottom + 15.0);
        svg.text(place, Anchor::Middle, "tick", &number.to_string());
    }
    let middle = f64::midpoint(frame.left, frame.right);
    svg.text(
        (middle, HEIGHT - 5.0),
        Anchor::Middle,
        "caption",
        "producers",
    );
    svg.line(
        (frame.left, frame.bottom),
        (frame.right, frame.bottom),
        "axis",
    );
    if let Some(limit) = limit {
        let at = y.at(limit);
        svg.line((frame.left, at), (frame.right, at), "floor limit");
    }
    if panel.results.is_empty() {
        let middle = (middle, f64::midpoint(frame.top, frame.bottom));
        svg.text(middle, Anchor::Middle, "empty", "not measured");
    }
    for (value, class) in lines {
        draw_line(svg, y, (panel, producers), (*value, class), &x);
    }
}

fn draw_line(
    svg: &mut Svg,
    y: &Scale,
    (panel, producers): (&Panel<'_>, &[u32]),
    (value, class): (Value, &str),
    x: &dyn Fn(usize) -> f64,
) {
    let mut line = Vec::new();
    let mut labels = Vec::new();
    for (index, number) in producers.iter().enumerate() {
        let results = panel
            .results
            .iter()
            .filter(|result| result.producers == *number);
        let mut rounds: Vec<f64> = results.filter_map(|result| value.of(result)).collect();
        rounds.sort_by(f64::total_cmp);
        let (Some(lower), Some(upper)) = (
            rounds.get(rounds.len().saturating_sub(1) / 2),
            rounds.get(rounds.len() / 2),
        ) else {
            continue;
        };
        let median = f64::midpoint(*lower, *upper);
        line.push((x(index), y.at(median)));
        let highest = rounds.last().copied().unwrap_or(median);
        // Lines rise as a rule: above them there is room on the left, below them on the right.
        let place = match value {
            Value::P50 => ((x(index) + 2.0, y.at(rounds[0]) + 15.0), Anchor::Start),
            _ if index == 0 => ((x(index), y.at(highest) - 7.0), Anchor::Middle),
            Value::Rate | Value::P99 => ((x(index) + 8.0, y.at(highest) - 7.0), Anchor::End),
        };
        labels.push((place, value.label(median)));
        for round in &rounds {
            svg.circle((x(index), y.at(*round)), 3.0, "round");
        }
    }
    svg.polyline(&line, class);
    for ((place, anchor), text) in labels {
        svg.text(place, anchor, "panel-value halo", &text);
    }
}
