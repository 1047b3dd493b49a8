//! The second tab: a row a topic, the busiest first.

use super::cores::window;
use super::figures::TopicLine;
use super::frame::{Line, Scene, Style};
use super::number::{count, three};

/// A column: its title, its width with the blank before it, and its number; `None` for the name,
/// which has what the others leave.
type Column = (&'static str, usize, fn(&TopicLine) -> Option<f64>);

const NAME_COLUMNS_MIN: usize = 12;

/// From left to right; where there is no room the last ones go.
const COLUMNS: [Column; 7] = [
    ("in/s", 7, |topic| topic.in_per_s),
    ("out/s", 7, |topic| topic.out_per_s),
    ("in MB/s", 8, |topic| Some(topic.in_bytes_per_s? / 1e6)),
    ("size", 7, |topic| Some(topic.log_bytes as f64)),
    ("records", 8, |topic| Some(topic.log_records as f64)),
    ("parts", 6, |topic| Some(topic.partitions as f64)),
    ("out MB/s", 9, |topic| Some(topic.out_bytes_per_s? / 1e6)),
];

/// Titles of what rows may be sorted by; the first is by traffic, the last by name.
const SORTS: [&str; 9] = [
    "", "in/s", "out/s", "in MB/s", "size", "records", "parts", "out MB/s", "topic",
];

/// The rows that fit into `room` lines, with their header.
pub fn lines(scene: &Scene<'_>, room: usize) -> Vec<Line> {
    let view = scene.view;
    let filter = view.filter.to_lowercase();
    let mut topics: Vec<&TopicLine> = scene.figures.topics.iter().collect();
    topics.retain(|topic| topic.name.to_lowercase().contains(&filter));
    let by = SORTS[view.sorted_by() % SORTS.len()];
    sort(&mut topics, by);
    let (name_columns, columns) = layout(scene.columns);
    let mut lines = vec![header(scene, by, name_columns, columns)];
    if topics.is_empty() {
        let text = if filter.is_empty() {
            "no topics yet: `penstock topic create NAME`, or produce to one"
        } else {
            "no topic matches"
        };
        lines.push(Line::of(text, Style::Faint));
    }
    let mut rows: Vec<Line> = topics
        .iter()
        .map(|topic| row(topic, name_columns, columns))
        .collect();
    if scene.figures.topics_omitted > 0 {
        let text = format!("and {} quieter topics", count(scene.figures.topics_omitted));
        rows.push(Line::of(text, Style::Faint));
    }
    lines.extend(window(rows, view.scroll, room.saturating_sub(1)));
    lines
}

fn layout(columns: usize) -> (usize, &'static [Column]) {
    let mut shown = COLUMNS.len();
    loop {
        let fixed: usize = COLUMNS[..shown].iter().map(|(_, width, _)| width).sum();
        let room = columns.saturating_sub(fixed);
        if room >= NAME_COLUMNS_MIN || shown == 0 {
            return (room.clamp(1, 60), &COLUMNS[..shown]);
        }
        shown -= 1;
    }
}

fn sort(topics: &mut [&TopicLine], by: &str) {
    let traffic = |topic: &TopicLine| {
        topic.in_bytes_per_s.unwrap_or(0.0) + topic.out_bytes_per_s.unwrap_or(0.0)
    };
    let column = COLUMNS.iter().find(|(title, ..)| *title == by);
    let key = |topic: &TopicLine| match (column, by) {
        (Some((_, _, of)), _) => of(topic).unwrap_or(0.0),
        (None, "") => traffic(topic),
        (None, _) => 0.0,
    };
    topics.sort_by(|left, right| {
        let order = key(right).total_cmp(&key(left));
        let order = order.then(right.log_bytes.cmp(&left.log_bytes));
        match by {
            "topic" => left.name.cmp(&right.name),
            _ => order.then(left.name.cmp(&right.name)),
        }
    });
}

fn header(scene: &Scene<'_>, by: &str, name_columns: usize, columns: &[Column]) -> Line {
    let marked = |title: &str| {
        if title == by {
            format!("{}{title}", scene.view.glyphs.sorted())
        } else {
            title.to_owned()
        }
    };
    let mut line = Line::of(format!("{:<name_columns$}", marked("topic")), Style::Strong);
    for (title, width, _) in columns {
        line.add(format!("{:>width$}", marked(title)), Style::Strong);
    }
    line
}

fn row(topic: &TopicLine, name_columns: usize, columns: &[Column]) -> Line {
    let name: String = topic.name.chars().take(name_columns).collect();
    let mut line = Line::of(format!("{name:<name_columns$}"), Style::Plain);
    for (title, width, of) in columns {
        let text = match of(topic) {
            None => "-".to_owned(),
            Some(value) if matches!(*title, "parts" | "records" | "size") && value < 1000.0 => {
                format!("{value:.0}")
            }
            Some(value) => three(value),
        };
        line.add(format!("{text:>width$}"), Style::Plain);
    }
    line
}
