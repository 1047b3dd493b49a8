//! C3, the knee: latency against the offered rate, and below it what was acknowledged of it. A step
//! that broke the bound is hollow, one with errors too, one that the generator could not keep is
//! crossed out; the chosen one wears a ring and its number.

use super::svg::{Anchor, EndLabel, Frame, Scale, Size, Svg, axis_below, axis_left, end_labels};
use crate::base::units::{latency_tick, rate, short};
use crate::load::report::Gate;
use crate::load::report::summary::{StepFigures, Summary};
use crate::load::run::{About, StepVerdict};

const LINES: [(f64, &str, &str); 3] = [
    (0.5, "p50", "k50"),
    (0.99, "p99", "k99"),
    (0.999, "p99.9", "k999"),
];

/// A step on the picture: its offered rate and figures.
struct Dot<'a> {
    rate: f64,
    figures: &'a StepFigures,
    chosen: bool,
}

/// Draws it.
#[must_use]
pub fn chart(summary: &Summary, about: &About, size: Size) -> String {
    let dots = dots(summary);
    let upper_height = size.pick(300.0, 250.0);
    let lower_height = size.pick(200.0, 170.0);
    let height = 24.0 + upper_height + 48.0 + lower_height + 44.0;
    let mut svg = Svg::new(size.width(), height, "Latency against the offered rate");
    let frame = Frame {
        left: size.pick(64.0, 50.0),
        right: size.width() - size.pick(200.0, 58.0),
        top: 24.0,
        bottom: 24.0 + upper_height,
    };
    let fastest = dots.iter().map(|dot| dot.rate).fold(0.0, f64::max);
    let x = Scale::linear(0.0, fastest * 1.05, frame.left, frame.right);
    svg.text((2.0, 12.0), Anchor::Start, "caption", "response time");
    latencies(&mut svg, frame, &x, (&dots, about));
    let below = Frame {
        top: frame.bottom + 48.0,
        bottom: frame.bottom + 48.0 + lower_height,
        ..frame
    };
    acknowledged(&mut svg, below, &x, &dots, size);
    svg.finish()
}

/// What the search was held against, as the plan has it: `p99<10ms`.
fn bound_us(about: &About) -> Option<f64> {
    let text = about.plan.get("search")?.as_str()?;
    Gate::parse(text).ok()?.response_us()
}

/// The steps by rate. Confirmation comes last among equals, so that its figures lie on top.
fn dots(summary: &Summary) -> Vec<Dot<'_>> {
    let chosen = summary.chosen();
    let steps = summary.steps.iter().enumerate();
    let mut dots: Vec<Dot<'_>> = steps
        .map(|(index, figures)| Dot {
            rate: figures.totals.per_s(figures.totals.counts.offered),
            figures,
            chosen: chosen == Some(index),
        })
        .collect();
    dots.sort_by(|left, right| left.rate.total_cmp(&right.rate));
    dots
}

fn latencies(svg: &mut Svg, frame: Frame, x: &Scale, what: (&[Dot<'_>], &About)) {
    let (dots, about) = what;
    let floor = about.floor;
    let bound = bound_us(about);
    let value = |dot: &Dot<'_>, quantile| {
        dot.figures
            .totals
            .response
            .at(quantile)
            .map(|point| point.us.max(1) as f64)
    };
    let all = || {
        dots.iter()
            .flat_map(|dot| LINES.iter().filter_map(move |line| value(dot, line.0)))
    };
    let mut least = all().fold(f64::MAX, f64::min);
    let most = all().chain(bound).fold(1.0, f64::max);
    if let Some(floor) = floor {
        least = least.min(floor.p50_us as f64);
    }
    let y = Scale::log(least.min(most), most, frame.bottom, frame.top);
    axis_left(svg, frame, &y, 24.0, latency_tick);
    axis_below(svg, frame, x, 80.0, short);
    rules(svg, frame, &y, about);
    let mut labels: Vec<EndLabel> = Vec::new();
    for (quantile, name, class) in LINES {
        let places: Vec<(f64, f64, &Dot<'_>)> = dots
            .iter()
            .filter_map(|dot| Some((x.at(dot.rate), y.at(value(dot, quantile)?), dot)))
            .collect();
        let line: Vec<(f64, f64)> = places.iter().map(|(x, y, _)| (*x, *y)).collect();
        svg.polyline(&line, &format!("line {class}"));
        for (at, place, dot) in &places {
            mark(svg, (*at, *place), dot, class);
        }
        labels.extend(
            line.last()
                .map(|(_, end)| (*end, class.to_owned(), name.to_owned())),
        );
    }
    answer(svg, frame, x, dots);
    end_labels(svg, frame, labels);
}

/// The machine's own limit, and what the search was held against.
fn rules(svg: &mut Svg, frame: Frame, y: &Scale, about: &About) {
    if let Some(floor) = about.floor {
        let at = y.at(floor.p50_us as f64);
        svg.line((frame.left, at), (frame.right, at), "floor");
        let text = "bare write + flush, p50";
        svg.text(
            (frame.right - 6.0, at - 5.0),
            Anchor::End,
            "floor-label halo",
            text,
        );
    }
    if let Some(bound) = bound_us(about) {
        let at = y.at(bound);
        svg.line((frame.left, at), (frame.right, at), "bound");
        let text = format!("bound: {}", latency_tick(bound));
        svg.text(
            (frame.left + 6.0, at - 5.0),
            Anchor::Start,
            "bound-label halo",
            &text,
        );
    }
}

/// The chosen rate.
fn answer(svg: &mut Svg, frame: Frame, x: &Scale, dots: &[Dot<'_>]) {
    if let Some(dot) = dots.iter().find(|dot| dot.chosen) {
        let at = x.at(dot.rate);
        svg.line((at, frame.top), (at, frame.bottom), "chosen-line");
        let middle = f64::midpoint(frame.left, frame.right);
        let (anchor, beside) = if at < middle {
            (Anchor::Start, 8.0)
        } else {
            (Anchor::End, -8.0)
        };
        let text = format!("answer: {}", rate(dot.rate));
        svg.text(
            (at + beside, frame.top + 12.0),
            anchor,
            "chosen-label halo",
            &text,
        );
    }
}

fn mark(svg: &mut Svg, place: (f64, f64), dot: &Dot<'_>, class: &str) {
    let hollow = matches!(
        dot.figures.step.verdict,
        Some(StepVerdict::Broken | StepVerdict::Errors)
    );
    let filling = if hollow { "hollow" } else { "filled" };
    svg.circle(place, 4.0, &format!("dot {filling} {class}"));
    if dot.figures.step.verdict == Some(StepVerdict::GeneratorLimited) {
        let (x, y) = place;
        svg.line((x - 7.0, y - 7.0), (x + 7.0, y + 7.0), "cross");
        svg.line((x - 7.0, y + 7.0), (x + 7.0, y - 7.0), "cross");
    }
    if dot.chosen {
        svg.circle(place, 8.0, "ring");
    }
}

/// Acknowledged against offered, with the diagonal of a broker that keeps up.
fn acknowledged(svg: &mut Svg, frame: Frame, x: &Scale, dots: &[Dot<'_>], size: Size) {
    let (_, fastest) = x.ends();
    let y = Scale::linear(0.0, fastest, frame.bottom, frame.top);
    svg.text(
        (2.0, frame.top - 13.0),
        Anchor::Start,
        "caption",
        "acknowledged a second",
    );
    axis_left(svg, frame, &y, 36.0, short);
    axis_below(svg, frame, x, size.pick(80.0, 60.0), short);
    svg.line(
        (x.at(0.0), y.at(0.0)),
        (x.at(fastest), y.at(fastest)),
        "diagonal",
    );
    let places: Vec<(f64, f64, &Dot<'_>)> = dots
        .iter()
        .map(|dot| {
            let totals = &dot.figures.totals;
            let kept = totals
                .acknowledged_per_s()
                .min(totals.acknowledged_meanwhile_per_s());
            (x.at(dot.rate), y.at(kept), dot)
        })
        .collect();
    let line: Vec<(f64, f64)> = places.iter().map(|(x, y, _)| (*x, *y)).collect();
    svg.polyline(&line, "line acked");
    for (at, place, dot) in &places {
        mark(svg, (*at, *place), dot, "acked");
    }
    let mut labels = vec![(
        y.at(fastest),
        "dim".to_owned(),
        size.pick("all of it", "all").to_owned(),
    )];
    labels.extend(
        line.last()
            .map(|(_, end)| (*end, "acked".to_owned(), "acked".to_owned())),
    );
    end_labels(svg, frame, labels);
    let middle = f64::midpoint(frame.left, frame.right);
    let caption = "offered messages a second";
    svg.text(
        (middle, frame.bottom + 36.0),
        Anchor::Middle,
        "caption",
        caption,
    );
}
