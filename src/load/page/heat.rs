//! The heat map itself: a column of time, a row of latency, darker for more messages, on a log
//! scale so that a single slow message is still seen. Percentiles lie over it as lines, dashed
//! where a column has fewer than ten samples beyond; the largest of each column is never averaged
//! away.

use super::columns::{Column, PERCENTILES};
use super::svg::{Anchor, EndLabel, Frame, Scale, Size, Svg, axis_left, end_labels};
use super::timeline::edges;
use crate::base::units::{Micro, latency, latency_tick, seconds};
use crate::load::report::spectrum::Point;
use std::fmt::Write as _;

/// Shades, each its own class.
const SHADES: usize = 8;
/// Height of a row, about.
const ROW: f64 = 6.0;
/// Cells reach into the next column and row by this much, or rounding would leave white seams.
const SEAM: f64 = 0.3;
/// Columns narrower than this are joined at their middles: steps would be all one saw.
const STEP_MIN: f64 = 4.0;
const LINES: [(&str, &str); 3] = [("p50", "h50"), ("p99", "h99"), ("p99.9", "h999")];

/// Draws it into a frame.
pub fn draw(svg: &mut Svg, frame: Frame, x: &Scale, columns: &[Column], size: Size) {
    let smallest = |column: &Column| column.samples.first().map(|(us, _)| *us);
    let least = columns.iter().filter_map(smallest).min();
    let most = columns
        .iter()
        .filter_map(|column| column.max)
        .map(|point| point.us)
        .max();
    let (Some(least), Some(most)) = (least, most) else {
        let middle = f64::midpoint(frame.left, frame.right);
        svg.text(
            (middle, frame.top + 40.0),
            Anchor::Middle,
            "empty",
            "no answers",
        );
        return;
    };
    let y = Scale::log(
        least.max(1) as f64,
        most.max(1) as f64,
        frame.bottom,
        frame.top,
    );
    axis_left(svg, frame, &y, 24.0, latency_tick);
    cells(svg, frame, x, &y, columns);
    let mut labels: Vec<EndLabel> = Vec::new();
    let last = columns.iter().rposition(|column| column.count > 0);
    for (index, (name, class)) in LINES.into_iter().enumerate() {
        if is_mostly_chance(columns, PERCENTILES[index]) {
            continue;
        }
        let places = |column: &Column| {
            let point = column.percentiles[index]?;
            Some((y.at(point.us.max(1) as f64), point.few))
        };
        percentile(svg, x, columns, &places, class);
        labels.extend(
            last.and_then(|index| places(&columns[index]))
                .map(|(end, _)| (end, class.to_owned(), name.to_owned())),
        );
    }
    let largest = |column: &Column| {
        let point = column.max?;
        Some((y.at(point.us.max(1) as f64), false))
    };
    percentile(svg, x, columns, &largest, "hmax");
    labels.extend(
        last.and_then(|index| largest(&columns[index]))
            .map(|(end, _)| {
                let name = size.pick("largest of the column", "max");
                (end, "hmax".to_owned(), name.to_owned())
            }),
    );
    end_labels(svg, frame, labels);
    hints(svg, frame, x, columns);
}

/// The cells, one path a shade.
fn cells(svg: &mut Svg, frame: Frame, x: &Scale, y: &Scale, columns: &[Column]) {
    let rows = ((frame.bottom - frame.top) / ROW).round().max(1.0);
    let tall = (frame.bottom - frame.top) / rows;
    let counted: Vec<Vec<u64>> = columns
        .iter()
        .map(|column| count(column, y, frame, (tall, rows as usize)))
        .collect();
    let most = counted.iter().flatten().copied().max().unwrap_or(1).max(2) as f64;
    let mut paths = vec![String::new(); SHADES];
    for (column, counts) in columns.iter().zip(counted) {
        let (left, right) = edges(x, column);
        for (row, count) in counts
            .into_iter()
            .enumerate()
            .filter(|(_, count)| *count > 0)
        {
            let depth = (count as f64).ln() / most.ln();
            let shade = ((depth * SHADES as f64) as usize).min(SHADES - 1);
            let bottom = frame.bottom - row as f64 * tall;
            let (width, up) = (right - left + SEAM, -tall - SEAM);
            let _ = write!(
                paths[shade],
                "M{left:.1} {bottom:.1}h{width:.1}v{up:.1}h{:.1}z",
                -width
            );
        }
    }
    for (shade, path) in paths.iter().enumerate() {
        svg.path(path, &format!("heat heat{shade}"));
    }
}

/// Samples of each row, from the bottom.
fn count(column: &Column, y: &Scale, frame: Frame, (tall, rows): (f64, usize)) -> Vec<u64> {
    let mut counts = vec![0; rows];
    for (us, count) in &column.samples {
        let place = frame.bottom - y.at((*us).max(1) as f64);
        let row = ((place / tall) as usize).min(rows - 1);
        counts[row] += count;
    }
    counts
}

/// Whether half of the columns have not even one sample beyond a percentile, which then is their
/// largest and nothing else.
fn is_mostly_chance(columns: &[Column], quantile: f64) -> bool {
    let beyond = |column: &&Column| column.count as f64 * (1.0 - quantile) < 1.0;
    columns.iter().filter(beyond).count() * 2 > columns.len()
}

/// A line of one percentile, drawn twice: a light edge makes it stand out from the dark cells.
fn percentile(
    svg: &mut Svg,
    x: &Scale,
    columns: &[Column],
    place: &dyn Fn(&Column) -> Option<(f64, bool)>,
    class: &str,
) {
    let mut parts: Vec<(bool, Vec<(f64, f64)>)> = Vec::new();
    let mut open = false;
    for column in columns {
        let Some((y, few)) = place(column) else {
            open = false;
            continue;
        };
        let (left, right) = edges(x, column);
        let joins = parts
            .last()
            .filter(|_| open)
            .and_then(|(_, part)| part.last().copied());
        if joins.is_none() || parts.last().is_some_and(|(was, _)| *was != few) {
            parts.push((few, joins.into_iter().collect()));
        }
        if let Some((_, part)) = parts.last_mut() {
            if right - left < STEP_MIN {
                part.push((f64::midpoint(left, right), y));
            } else {
                part.extend([(left, y), (right, y)]);
            }
        }
        open = true;
    }
    let dense = columns.first().is_some_and(|column| {
        let (left, right) = edges(x, column);
        right - left < STEP_MIN
    });
    let dense = if dense { "dense " } else { "" };
    for (_, part) in &parts {
        svg.polyline(part, &format!("{dense}edge"));
    }
    for (few, part) in &parts {
        let dashed = if *few { "few " } else { "" };
        svg.polyline(part, &format!("line {dense}{dashed}{class}"));
    }
}

/// What a column says when pointed at.
fn hints(svg: &mut Svg, frame: Frame, x: &Scale, columns: &[Column]) {
    for column in columns {
        let (left, right) = edges(x, column);
        let written = |point: Option<Point>| {
            point.map_or_else(|| "–".to_owned(), |p| latency(p.us as f64, Micro::Sign))
        };
        let [p50, p99, p999] = column.percentiles.map(written);
        let max = written(column.max);
        let at = seconds(column.at_ms);
        let hint = format!("+{at}: p50 {p50}, p99 {p99}, p99.9 {p999}, max {max}");
        svg.rect(
            Frame {
                left,
                right,
                ..frame
            },
            "hint",
            &hint,
        );
    }
}
