//! C1, the percentile spectrum: latency against the share of messages that were faster, with the
//! nines spread out. Two lines of one run shade the time that messages waited to be sent; lines of
//! several runs lie over each other. A grey rule is the machine's own limit.

use super::svg::{Anchor, EndLabel, Frame, Scale, Size, Svg, axis_left, cut, empty, end_labels};
use crate::base::units::{Micro, latency, latency_tick};
use crate::load::report::spectrum::{SAMPLES_BEYOND_MIN, Spectrum};
use crate::load::run::Floor;

/// A line.
pub struct Line<'a> {
    /// Written at its end.
    pub name: String,
    /// Its colour.
    pub class: &'static str,
    /// Its values.
    pub spectrum: &'a Spectrum,
}

/// Nines that the picture reaches at most.
const NINES_MAX: f64 = 7.0;
/// Points along a line.
const POINTS: u32 = 260;
/// What the horizontal axis names.
const TICKS: [(f64, &str); 9] = [
    (0.0, "0 %"),
    (0.5, "50"),
    (0.9, "90"),
    (0.99, "99"),
    (0.999, "99.9"),
    (0.9999, "99.99"),
    (0.99999, "99.999"),
    (0.999999, "99.9999"),
    (0.9999999, "99.99999"),
];

/// Draws it. `gap` shades between the first two lines.
#[must_use]
pub fn chart(lines: &[Line<'_>], gap: bool, floor: Option<Floor>, size: Size) -> String {
    let lines: Vec<&Line<'_>> = lines
        .iter()
        .filter(|line| line.spectrum.count() > 0)
        .collect();
    let height = size.pick(420.0, 340.0);
    let mut svg = Svg::new(size.width(), height, "Latency by percentile");
    if lines.is_empty() {
        return empty("no samples", size);
    }
    let frame = Frame {
        left: size.pick(64.0, 50.0),
        right: size.width() - size.pick(220.0, 86.0),
        top: 30.0,
        bottom: height - 44.0,
    };
    let x = nines_scale(&lines, frame);
    let y = latency_scale(&lines, floor, frame);
    svg.text((2.0, 12.0), Anchor::Start, "caption", "latency");
    axis_left(&mut svg, frame, &y, 24.0, latency_tick);
    nines_axis(&mut svg, frame, &x, size);
    if let Some(floor) = floor {
        floor_rule(&mut svg, frame, &y, floor, size);
    }
    if let ([upper, lower, ..], true) = (lines.as_slice(), gap) {
        shade(&mut svg, &x, &y, (upper.spectrum, lower.spectrum), size);
    }
    let mut labels = Vec::new();
    for line in &lines {
        labels.push(draw(&mut svg, &x, &y, line, size));
    }
    end_labels(&mut svg, frame, labels);
    svg.finish()
}

fn nines_scale(lines: &[&Line<'_>], frame: Frame) -> Scale {
    let most = lines.iter().map(|line| line.spectrum.count()).max();
    let nines = (most.unwrap_or(1) as f64).log10().clamp(2.0, NINES_MAX);
    Scale::linear(0.0, nines, frame.left, frame.right)
}

/// Room for every line, and for the rule when it is not far off.
fn latency_scale(lines: &[&Line<'_>], floor: Option<Floor>, frame: Frame) -> Scale {
    let values = |pick: fn(&Spectrum) -> Option<u64>| {
        lines
            .iter()
            .filter_map(move |line| pick(line.spectrum))
            .map(|us| us.max(1) as f64)
    };
    let mut least = values(|spectrum| spectrum.min().map(|p| p.us)).fold(f64::MAX, f64::min);
    let most = values(|spectrum| spectrum.max().map(|p| p.us)).fold(1.0, f64::max);
    if let Some(floor) = floor {
        least = least.min(floor.p50_us.max(1) as f64);
    }
    Scale::log(least, most, frame.bottom, frame.top)
}

fn nines_axis(svg: &mut Svg, frame: Frame, x: &Scale, size: Size) {
    let mut free = f64::MIN;
    for (quantile, label) in TICKS {
        let nines = nines(quantile);
        if !x.holds(nines) {
            break;
        }
        let at = x.at(nines);
        svg.line((at, frame.top), (at, frame.bottom), "grid");
        let half = label.len() as f64 * 3.4;
        if at - half > free {
            svg.text((at, frame.bottom + 16.0), Anchor::Middle, "tick", label);
            free = at + half + 4.0;
        }
    }
    let middle = f64::midpoint(frame.left, frame.right);
    let caption = size.pick(
        "share of messages that were faster, % (each further nine takes the same width)",
        "share of messages that were faster, %",
    );
    svg.text(
        (middle, frame.bottom + 36.0),
        Anchor::Middle,
        "caption",
        caption,
    );
}

/// The machine's own limit.
fn floor_rule(svg: &mut Svg, frame: Frame, y: &Scale, floor: Floor, size: Size) {
    let band = Frame {
        top: y.at(floor.p99_us as f64),
        bottom: y.at(floor.p50_us as f64),
        ..frame
    };
    svg.rect(band, "floor-band", "");
    svg.line((frame.left, band.top), (frame.right, band.top), "floor");
    svg.line(
        (frame.left, band.bottom),
        (frame.right, band.bottom),
        "floor",
    );
    let (p50, p99) = (floor.p50_us as f64, floor.p99_us as f64);
    let (p50, p99) = (latency(p50, Micro::Sign), latency(p99, Micro::Sign));
    let text = match size {
        Size::Wide => format!("this disk's bare write + flush: p50 {p50}, p99 {p99}"),
        Size::Narrow => format!("bare flush {p50} – {p99}"),
    };
    let below = band.bottom + 14.0;
    let place = if below + 4.0 < frame.bottom {
        below
    } else {
        band.top - 5.0
    };
    svg.text(
        (frame.right - 6.0, place),
        Anchor::End,
        "floor-label halo",
        &text,
    );
}

fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// Places along a line up to its last sample.
fn points(x: &Scale, y: &Scale, spectrum: &Spectrum) -> Vec<(f64, (f64, f64))> {
    let (_, most) = x.ends();
    let last = (spectrum.count() as f64).log10().min(most);
    let place = |index: u32| {
        let nines = last * f64::from(index) / f64::from(POINTS);
        let quantile = 1.0 - 10f64.powf(-nines);
        let us = spectrum.at(quantile).map_or(1, |point| point.us);
        (nines, (x.at(nines), y.at(us.max(1) as f64)))
    };
    (0..=POINTS).map(place).collect()
}

fn draw(svg: &mut Svg, x: &Scale, y: &Scale, line: &Line<'_>, size: Size) -> EndLabel {
    let points = points(x, y, line.spectrum);
    let sure = (line.spectrum.count() as f64 / SAMPLES_BEYOND_MIN).log10();
    let split = points.partition_point(|(nines, _)| *nines <= sure);
    let places: Vec<(f64, f64)> = points.into_iter().map(|(_, place)| place).collect();
    let class = line.class;
    svg.polyline(&places[..split], &format!("line {class}"));
    svg.polyline(
        &places[split.saturating_sub(1)..],
        &format!("line few {class}"),
    );
    let max = line.spectrum.max();
    let end = y.at(max.map_or(1.0, |point| point.us.max(1) as f64));
    let sign = if max.is_some_and(|point| point.at_least) {
        "≥ "
    } else {
        ""
    };
    let max = max.map_or_else(String::new, |point| latency(point.us as f64, Micro::Sign));
    let name = &line.name;
    let text = match size {
        Size::Wide => format!("{}, max {sign}{max}", cut(name, 14)),
        Size::Narrow => cut(name, 11),
    };
    (end, class.to_owned(), text)
}

/// What lies between: messages that could not be sent when they should have been.
fn shade(svg: &mut Svg, x: &Scale, y: &Scale, pair: (&Spectrum, &Spectrum), size: Size) {
    let upper = points(x, y, pair.0);
    let lower = points(x, y, pair.1);
    let outline = upper
        .iter()
        .chain(lower.iter().rev())
        .map(|(_, place)| *place);
    let outline: Vec<(f64, f64)> = outline.collect();
    svg.polygon(&outline, "waiting");
    let (Some((_, first)), Some((_, last))) = (upper.first(), upper.last()) else {
        return;
    };
    let half = size.pick(62.0, 58.0);
    // Where the words do not hang over an end of the lines.
    let room = first.0 + half..=last.0 - half;
    let gaps = upper
        .iter()
        .zip(&lower)
        .map(|((_, high), (_, low))| (*high, *low));
    let widest = gaps
        .filter(|(high, _)| room.contains(&high.0))
        .max_by(|left, right| (left.1.1 - left.0.1).total_cmp(&(right.1.1 - right.0.1)));
    if let Some((high, low)) = widest
        && low.1 - high.1 > 22.0
    {
        let middle = f64::midpoint(high.1, low.1) + 4.0;
        svg.text(
            (high.0, middle),
            Anchor::Middle,
            "waiting-label halo",
            "waiting to be sent",
        );
    }
}
