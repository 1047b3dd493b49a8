//! C2, a run over time on one shared axis: the heat map of response times with its percentiles, and
//! beneath it what explains them — rates, messages in flight, the generator's lag, the broker's
//! flushes — with the events drawn through all of it.

use super::columns::{self, Column};
use super::heat;
use super::svg::{
    Anchor, EndLabel, Frame, Scale, Size, Svg, axis_left, both, cut, empty, end_labels,
};
use crate::base::units::{escape, finite, latency_tick, seconds, short};
use crate::limits::LOAD_TIME_COLUMNS_MAX;
use crate::load::run::{Event, EventKind, Run};
use std::fmt::Write as _;

/// Columns of a narrow picture.
const NARROW_COLUMNS_MAX: usize = 150;
/// Events in the list below the picture.
const EVENTS_LISTED_MAX: usize = 40;
/// A number in a ring needs this much room.
const BADGE_APART: f64 = 26.0;
const TOP: f64 = 40.0;
const STRIP: f64 = 64.0;
const BETWEEN: f64 = 36.0;

/// One line of a strip.
struct Curve {
    name: &'static str,
    class: &'static str,
    values: Vec<Option<f64>>,
}

/// One strip below the heat map.
struct Strip {
    title: &'static str,
    curves: Vec<Curve>,
    /// Whether the space between the first two curves is filled.
    difference: bool,
    label: fn(f64) -> String,
}

/// The picture and the list of its events.
#[must_use]
pub fn chart(run: &Run) -> String {
    let picture = both(|size| draw(run, size));
    format!("{picture}{}", events(run))
}

fn draw(run: &Run, size: Size) -> String {
    let columns = columns::of(run, size.pick(LOAD_TIME_COLUMNS_MAX, NARROW_COLUMNS_MAX));
    let strips = strips(&columns);
    let heat_height = size.pick(260.0, 210.0);
    let height = TOP + heat_height + strips.len() as f64 * (STRIP + BETWEEN) + 44.0;
    let mut svg = Svg::new(size.width(), height, "The run over time");
    let (Some(first), Some(last)) = (columns.first(), columns.last()) else {
        return empty("nothing was offered", size);
    };
    let frame = Frame {
        left: size.pick(64.0, 50.0),
        right: size.width() - size.pick(200.0, 74.0),
        top: TOP,
        bottom: TOP + heat_height,
    };
    let (from_s, to_s) = (first.at_ms as f64 / 1e3, last.end_ms as f64 / 1e3);
    let x = Scale::linear(from_s, to_s, frame.left, frame.right);
    let name = if columns::is_end_to_end(run) {
        "end to end"
    } else {
        "response"
    };
    let darker = size.pick("stronger colour: more messages (log)", "stronger: more");
    let caption = format!("{name} time; {darker}");
    svg.text((2.0, 12.0), Anchor::Start, "caption", &caption);
    let whole = Frame {
        bottom: frame.bottom + strips.len() as f64 * (STRIP + BETWEEN),
        ..frame
    };
    for (value, _) in x.ticks(size.pick(80.0, 70.0)) {
        svg.line(
            (x.at(value), whole.top),
            (x.at(value), whole.bottom),
            "grid faint",
        );
    }
    heat::draw(&mut svg, frame, &x, &columns, size);
    let mut bottom = frame.bottom;
    for strip in &strips {
        let area = Frame {
            top: bottom + BETWEEN,
            bottom: bottom + BETWEEN + STRIP,
            ..frame
        };
        draw_strip(&mut svg, area, &x, (&columns, strip), size);
        bottom = area.bottom;
    }
    draw_warm_up(&mut svg, whole, &x, &columns);
    draw_events(&mut svg, whole, &x, run);
    time_axis(&mut svg, whole, &x, size);
    svg.finish()
}

/// Where a column lies.
pub fn edges(x: &Scale, column: &Column) -> (f64, f64) {
    (
        x.at(column.at_ms as f64 / 1e3),
        x.at(column.end_ms as f64 / 1e3),
    )
}

fn strips(columns: &[Column]) -> Vec<Strip> {
    let curve = |name, class, value: &dyn Fn(&Column) -> Option<f64>| Curve {
        name,
        class,
        values: columns.iter().map(value).collect(),
    };
    let has_offers = columns.iter().any(|c| c.counts.offered > 0);
    let mut rates = Vec::new();
    if has_offers {
        let offered = |c: &Column| Some(c.per_s(c.counts.offered));
        let acked = |c: &Column| Some(c.per_s(c.counts.acknowledged_meanwhile));
        rates.push(curve("offered", "offered", &offered));
        rates.push(curve("acked", "acked", &acked));
    }
    if columns.iter().any(|c| c.counts.received_meanwhile > 0) {
        let received = |c: &Column| Some(c.per_s(c.counts.received_meanwhile));
        rates.push(curve("received", "received", &received));
    }
    let us = |us: u64| us as f64;
    let lag = |c: &Column| c.lag_p999_us.map(us);
    let lag = curve("p99.9", "plain", &lag);
    let in_flight = |c: &Column| has_offers.then_some(us(c.counts.in_flight_max));
    let in_flight = curve("most", "plain", &in_flight);
    let flushes = |c: &Column| c.broker.map(|broker| finite(broker.flushes_per_s));
    let flushes = curve("flushes", "plain", &flushes);
    let flush_p99 = |c: &Column| c.broker.map(|broker| us(broker.flush_p99_us));
    let flush_p99 = curve("p99", "plain", &flush_p99);
    let strip = |title, curves, difference, label| Strip {
        title,
        curves,
        difference,
        label,
    };
    let all = [
        strip(
            "messages a second",
            rates,
            has_offers,
            short as fn(f64) -> String,
        ),
        strip("messages in flight", vec![in_flight], false, whole),
        strip(
            "schedule lag of the generator",
            vec![lag],
            false,
            latency_tick,
        ),
        strip(
            "flushes a second of the broker",
            vec![flushes],
            false,
            short,
        ),
        strip(
            "flush time of the broker",
            vec![flush_p99],
            false,
            latency_tick,
        ),
    ];
    let has_values = |strip: &Strip| {
        strip
            .curves
            .iter()
            .any(|curve| curve.values.iter().any(Option::is_some))
    };
    all.into_iter().filter(has_values).collect()
}

fn draw_strip(svg: &mut Svg, area: Frame, x: &Scale, what: (&[Column], &Strip), size: Size) {
    let (columns, strip) = what;
    let all = strip
        .curves
        .iter()
        .flat_map(|curve| curve.values.iter().flatten());
    let most = all.copied().fold(0.0, f64::max);
    let y = Scale::linear(0.0, most * 1.05, area.bottom, area.top);
    svg.text(
        (2.0, area.top - 13.0),
        Anchor::Start,
        "caption",
        strip.title,
    );
    axis_left(svg, area, &y, 30.0, strip.label);
    if let ([first, second, ..], true) = (strip.curves.as_slice(), strip.difference) {
        let upper = steps(x, &y, columns, first);
        let lower = steps(x, &y, columns, second);
        let outline: Vec<(f64, f64)> = upper
            .concat()
            .into_iter()
            .chain(lower.concat().into_iter().rev())
            .collect();
        svg.polygon(&outline, "difference");
    }
    let mut labels: Vec<EndLabel> = Vec::new();
    for curve in &strip.curves {
        let parts = steps(x, &y, columns, curve);
        for part in &parts {
            svg.polyline(part, &format!("line {}", curve.class));
        }
        if let Some((_, end)) = parts.last().and_then(|part| part.last()) {
            let name = cut(curve.name, size.pick(20, 9));
            labels.push((*end, curve.class.to_owned(), name));
        }
    }
    end_labels(svg, area, labels);
}

/// A tick of what comes in whole numbers only.
fn whole(value: f64) -> String {
    if value.fract() == 0.0 {
        short(value)
    } else {
        String::new()
    }
}

/// A curve as steps, one a column, in one part for each stretch without a hole.
fn steps(x: &Scale, y: &Scale, columns: &[Column], curve: &Curve) -> Vec<Vec<(f64, f64)>> {
    let mut parts: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut open = false;
    for (column, value) in columns.iter().zip(&curve.values) {
        if let Some(value) = value {
            if !open {
                parts.push(Vec::new());
            }
            let (left, right) = edges(x, column);
            let place = y.at(*value);
            if let Some(part) = parts.last_mut() {
                part.extend([(left, place), (right, place)]);
            }
        }
        open = value.is_some();
    }
    parts
}

fn draw_warm_up(svg: &mut Svg, whole: Frame, x: &Scale, columns: &[Column]) {
    let parts = columns.iter().filter(|column| column.warm_up);
    for column in parts {
        let (left, right) = edges(x, column);
        svg.rect(
            Frame {
                left,
                right,
                ..whole
            },
            "warm-up",
            "",
        );
    }
    let first = columns.iter().find(|column| column.warm_up);
    if let Some(column) = first {
        let left = edges(x, column).0;
        svg.text(
            (left + 3.0, whole.top - 5.0),
            Anchor::Start,
            "tick",
            "warm-up",
        );
    }
}

/// By time, whatever the order in which they were noticed.
fn in_order(run: &Run) -> Vec<&Event> {
    let mut events: Vec<&Event> = run.events.iter().collect();
    events.sort_by_key(|event| event.at_ms);
    events
}

/// Whether an event has a number and a line of the list; others are lines only.
fn is_numbered(event: &Event) -> bool {
    !matches!(event.kind, EventKind::StepChange | EventKind::WarmUpEnd)
}

/// A line for each event; above those with a number a ring, which neighbours share: `2–3`.
fn draw_events(svg: &mut Svg, whole: Frame, x: &Scale, run: &Run) {
    let mut rings: Vec<(f64, u32, u32)> = Vec::new();
    let mut number = 0;
    for event in in_order(run) {
        let at = x.at(event.at_ms as f64 / 1e3);
        if !is_numbered(event) {
            svg.line((at, whole.top), (at, whole.bottom), "event faint");
            continue;
        }
        svg.line((at, whole.top), (at, whole.bottom), "event");
        number += 1;
        match rings.last_mut() {
            Some((place, _, last)) if at < *place + BADGE_APART => *last = number,
            _ => rings.push((at, number, number)),
        }
    }
    for (at, first, last) in rings {
        let text = if first == last {
            first.to_string()
        } else {
            format!("{first}–{last}")
        };
        let half = (text.chars().count() as f64 * 4.0 + 4.0).max(8.0);
        let badge = Frame {
            left: at - half,
            right: at + half,
            top: whole.top - 19.0,
            bottom: whole.top - 3.0,
        };
        svg.rect(badge, "badge", "");
        svg.text((at, whole.top - 7.0), Anchor::Middle, "badge-text", &text);
    }
}

fn time_axis(svg: &mut Svg, whole: Frame, x: &Scale, size: Size) {
    for (value, _) in x.ticks(size.pick(80.0, 70.0)) {
        let at = x.at(value);
        svg.line((at, whole.bottom), (at, whole.bottom + 4.0), "axis");
        svg.text(
            (at, whole.bottom + 18.0),
            Anchor::Middle,
            "tick",
            &clock(value),
        );
    }
    let middle = f64::midpoint(whole.left, whole.right);
    let caption = "time since the start of the run";
    svg.text(
        (middle, whole.bottom + 36.0),
        Anchor::Middle,
        "caption",
        caption,
    );
}

/// `90 s` until five minutes are reached, then `1:30`-like minutes.
fn clock(s: f64) -> String {
    if s < 300.0 {
        return format!("{} s", (s * 1000.0).round() / 1000.0);
    }
    let whole = s.round() as u64;
    if whole.is_multiple_of(60) {
        format!("{} min", whole / 60)
    } else {
        format!("{}:{:02} min", whole / 60, whole % 60)
    }
}

fn events(run: &Run) -> String {
    let numbered: Vec<&Event> = in_order(run)
        .into_iter()
        .filter(|e| is_numbered(e))
        .collect();
    if numbered.is_empty() {
        return String::new();
    }
    let mut html = "<ol class=\"events\">".to_owned();
    for event in numbered.iter().take(EVENTS_LISTED_MAX) {
        let at = seconds(event.at_ms);
        let _ = write!(html, "<li><b>+{at}</b> {}</li>", escape(&event.text));
    }
    html.push_str("</ol>");
    if numbered.len() > EVENTS_LISTED_MAX {
        let more = numbered.len() - EVENTS_LISTED_MAX;
        let _ = write!(html, "<p class=\"dim\">and {more} more, in the data</p>");
    }
    html
}
