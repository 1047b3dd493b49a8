//! The companion of the picture over time: how often each latency was, on a log scale, with the
//! percentiles marked. Two humps are seen here and nowhere else.

use super::svg::{Anchor, Frame, Scale, Size, Svg, axis_below, empty};
use crate::base::units::{Micro, latency, latency_tick, percent, share};
use crate::load::report::spectrum::Spectrum;

const MARKS: [(f64, &str); 3] = [(0.5, "p50"), (0.95, "p95"), (0.99, "p99")];

/// Draws it.
#[must_use]
pub fn chart((name, spectrum): (&str, &Spectrum), size: Size) -> String {
    let height = 200.0;
    let mut svg = Svg::new(size.width(), height, "Distribution of the times");
    let (Some(least), Some(most)) = (spectrum.min(), spectrum.max()) else {
        return empty("no samples", size);
    };
    let frame = Frame {
        left: size.pick(64.0, 50.0),
        right: size.width() - size.pick(200.0, 20.0),
        top: 52.0,
        bottom: height - 26.0,
    };
    let x = Scale::log(
        least.us.max(1) as f64,
        most.us.max(1) as f64,
        frame.left,
        frame.right,
    );
    axis_below(&mut svg, frame, &x, size.pick(60.0, 52.0), latency_tick);
    let bars = bars(spectrum, &x, frame, size.pick(180, 60));
    let tallest = bars
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(1)
        .max(1) as f64;
    for (part, count) in bars.into_iter().filter(|(_, count)| *count > 0) {
        let part_of_all = share(count as f64, spectrum.count() as f64);
        let tall = (count as f64 / tallest * (frame.bottom - frame.top)).max(1.0);
        let bar = Frame {
            top: frame.bottom - tall,
            ..part
        };
        svg.rect(
            bar,
            "bar",
            &format!("{} of the messages", percent(part_of_all)),
        );
    }
    svg.line(
        (frame.left, frame.bottom),
        (frame.right, frame.bottom),
        "axis",
    );
    svg.text(
        (2.0, 12.0),
        Anchor::Start,
        "caption",
        &format!("how often each {name} time was"),
    );
    marks(&mut svg, frame, &x, (spectrum, size));
    svg.finish()
}

/// The percentiles, each label a row below the one before.
fn marks(svg: &mut Svg, frame: Frame, x: &Scale, (spectrum, size): (&Spectrum, Size)) {
    for (row, (quantile, name)) in MARKS.into_iter().enumerate() {
        let Some(point) = spectrum.at(quantile) else {
            continue;
        };
        let at = x.at(point.us.max(1) as f64);
        let y = 26.0 + 12.0 * row as f64;
        svg.line((at, y), (at, frame.bottom), "mark");
        let sign = if point.at_least { "≥ " } else { "" };
        let text = format!("{name} {sign}{}", latency(point.us as f64, Micro::Sign));
        let fits = at + text.chars().count() as f64 * 7.2 < size.width();
        let (anchor, at) = if fits {
            (Anchor::Start, at + 4.0)
        } else {
            (Anchor::End, at - 4.0)
        };
        svg.text((at, y + 4.0), anchor, "mark-label halo", &text);
    }
}

/// Slices of the frame and the samples in each.
fn bars(spectrum: &Spectrum, x: &Scale, frame: Frame, slices: usize) -> Vec<(Frame, u64)> {
    let width = (frame.right - frame.left) / slices as f64;
    let mut counts = vec![0u64; slices];
    for value in spectrum.histogram().iter_recorded() {
        let at = x.at(value.value_iterated_to().max(1) as f64) - frame.left;
        let slice = ((at / width) as usize).min(slices - 1);
        counts[slice] += value.count_at_value();
    }
    let slice = |(index, count): (usize, u64)| {
        let left = frame.left + index as f64 * width;
        let part = Frame {
            left,
            right: left + width - 0.5,
            ..frame
        };
        (part, count)
    };
    counts.into_iter().enumerate().map(slice).collect()
}
