//! The first tab: a row a core, its history in the row. Columns stand still; where they do not fit
//! they go, the least telling first. Many cores fold into a strip of cells, the worst beneath it.

use super::figures::CoreFigures;
use super::frame::{Line, Scene, Style};
use super::number::{count, three};
use crate::limits::{TOP_HISTORY_KEPT, TOP_STRIP_CORES_MIN, TOP_WORST_CORES};

/// From this multiple of the mean on a core stands out.
pub const UNEVEN: f64 = 1.4;
/// Share of its time from which on a core is short of it.
const BUSY_WARN: f64 = 0.85;
const BUSY_BAD: f64 = 0.97;
/// Narrowest history worth its room.
const HISTORY_COLUMNS_MIN: usize = 8;

/// What a column shows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Column {
    Core,
    Busy,
    History,
    In,
    Megabytes,
    Flushes,
    Entries,
    FlushP99,
    Forwarded,
    Connections,
    Memory,
    Mark,
}

/// Every column in its place, with its title and its width, the blank before it included.
const COLUMNS: [(Column, &str, usize); 12] = [
    (Column::Core, "core", 4),
    (Column::Busy, "busy", 5),
    (Column::History, "", 1),
    (Column::In, "in/s", 6),
    (Column::Megabytes, "MB/s", 6),
    (Column::Flushes, "flush/s", 8),
    (Column::Entries, "e/blk", 6),
    (Column::FlushP99, "fl p99", 7),
    (Column::Forwarded, "fwd", 6),
    (Column::Connections, "conn", 6),
    (Column::Memory, "mem", 6),
    (Column::Mark, "", 6),
];

/// What goes first when there is no room.
const DROPPED: [Column; 10] = [
    Column::Memory,
    Column::Connections,
    Column::Forwarded,
    Column::Entries,
    Column::History,
    Column::Mark,
    Column::FlushP99,
    Column::Flushes,
    Column::Megabytes,
    Column::In,
];

/// What rows may be sorted by; the first is by number, the rest by the largest.
const SORTS: [Column; 9] = [
    Column::Core,
    Column::Busy,
    Column::In,
    Column::Megabytes,
    Column::Flushes,
    Column::FlushP99,
    Column::Forwarded,
    Column::Connections,
    Column::Memory,
];

/// The columns that fit, each with its width.
fn layout(columns: usize) -> Vec<(Column, &'static str, usize)> {
    let mut shown = COLUMNS.to_vec();
    for dropped in std::iter::once(None).chain(DROPPED.into_iter().map(Some)) {
        shown.retain(|(column, ..)| Some(*column) != dropped);
        let fixed: usize = shown.iter().map(|(_, _, width)| width).sum();
        let history = shown
            .iter_mut()
            .find(|(column, ..)| *column == Column::History);
        let Some(history) = history else {
            if fixed <= columns {
                break;
            }
            continue;
        };
        // The blank before it is counted in `fixed` already.
        let room = columns.saturating_sub(fixed);
        if room >= HISTORY_COLUMNS_MIN {
            history.2 += room.min(TOP_HISTORY_KEPT);
            break;
        }
    }
    shown
}

/// The rows that fit into `room` lines, with their header.
pub fn lines(scene: &Scene<'_>, room: usize) -> Vec<Line> {
    let layout = layout(scene.columns);
    let mut cores: Vec<&CoreFigures> = scene.figures.cores.iter().collect();
    let mut lines = Vec::new();
    let filter = &scene.view.filter;
    if cores.len() >= TOP_STRIP_CORES_MIN && filter.is_empty() {
        lines.extend(strip(scene));
        lines.push(header(scene, &layout));
        cores.sort_by(|left, right| {
            right
                .busy
                .unwrap_or(0.0)
                .total_cmp(&left.busy.unwrap_or(0.0))
        });
        let worst = cores.into_iter().take(TOP_WORST_CORES);
        lines.extend(worst.map(|core| row(scene, &layout, core)));
        return lines;
    }
    cores.retain(|core| filter.is_empty() || core.core.to_string().contains(filter));
    sort(&mut cores, SORTS[scene.view.sorted_by() % SORTS.len()]);
    lines.push(header(scene, &layout));
    let rows = cores.iter().map(|core| row(scene, &layout, core));
    lines.extend(window(
        rows.collect(),
        scene.view.scroll,
        room.saturating_sub(1),
    ));
    lines
}

/// The rows that fit, from a place on that is never past the last; the last line says how many are
/// hidden.
pub fn window(mut rows: Vec<Line>, scroll: usize, room: usize) -> Vec<Line> {
    if rows.len() <= room || room == 0 {
        rows.truncate(room);
        return rows;
    }
    let shown = room - 1;
    let first = scroll.min(rows.len() - shown);
    let hidden = rows.len() - shown;
    let mut rows: Vec<Line> = rows.drain(first..).take(shown).collect();
    rows.push(Line::of(format!("  {hidden} more: up, down"), Style::Faint));
    rows
}

fn sort(cores: &mut [&CoreFigures], by: Column) {
    let key = |core: &CoreFigures| match by {
        Column::Busy => core.busy.unwrap_or(0.0),
        Column::In => core.in_per_s.unwrap_or(0.0),
        Column::Megabytes => core.in_bytes_per_s.unwrap_or(0.0),
        Column::Flushes => core.flushes_per_s.unwrap_or(0.0),
        Column::FlushP99 => core.flush_p99_ns.unwrap_or(0) as f64,
        Column::Forwarded => core.forwarded_per_s.unwrap_or(0.0),
        Column::Connections => core.connections as f64,
        Column::Memory => core.memory_bytes as f64,
        _ => 0.0,
    };
    cores.sort_by(|left, right| {
        key(right)
            .total_cmp(&key(left))
            .then(left.core.cmp(&right.core))
    });
}

fn header(scene: &Scene<'_>, layout: &[(Column, &str, usize)]) -> Line {
    let view = scene.view;
    let by = SORTS[view.sorted_by() % SORTS.len()];
    let mut line = Line::default();
    for (column, title, width) in layout {
        let title = match column {
            Column::History => history_title(view.interval_ms, width - 1),
            _ if *column == by && by != Column::Core => {
                format!("{}{title}", view.glyphs.sorted())
            }
            _ => (*title).to_owned(),
        };
        let text = match column {
            Column::History => format!(" {title:<0$}", width - 1),
            _ => format!("{title:>width$}"),
        };
        line.add(text, Style::Strong);
    }
    line
}

fn history_title(interval_ms: u64, cells: usize) -> String {
    let seconds = interval_ms * cells as u64 / 1000;
    format!("last {}", super::number::age(seconds * 1000))
}

fn row(scene: &Scene<'_>, layout: &[(Column, &str, usize)], core: &CoreFigures) -> Line {
    let dash = || "-".to_owned();
    let glyphs = scene.view.glyphs;
    let mut line = Line::default();
    for (column, _, width) in layout {
        let mut style = Style::Plain;
        let text = match column {
            Column::Core => core.core.to_string(),
            Column::Busy => {
                style = busy_style(core.busy);
                core.busy
                    .map_or_else(dash, |busy| format!("{:.0}%", (busy * 100.0).min(999.0)))
            }
            Column::History => {
                let cells = scene.story.busy(core.core, width - 1);
                let text: String = cells.map(|busy| glyphs.cell(busy)).collect();
                line.add(" ", Style::Plain);
                line.add(format!("{text:>0$}", width - 1), busy_style(core.busy));
                continue;
            }
            Column::In => core.in_per_s.map_or_else(dash, three),
            Column::Megabytes => core
                .in_bytes_per_s
                .map_or_else(dash, |rate| three(rate / 1e6)),
            Column::Flushes => core.flushes_per_s.map_or_else(dash, three),
            Column::Entries => core.entries_per_block.map_or_else(dash, three),
            Column::FlushP99 => core.flush_p99_ns.map_or_else(dash, |ns| glyphs.span(ns)),
            Column::Forwarded => core.forwarded_per_s.map_or_else(dash, three),
            Column::Connections => count(core.connections),
            Column::Memory => three(core.memory_bytes as f64),
            Column::Mark => {
                if let Some(ratio) = uneven(scene, core) {
                    let ratio = match ratio < 9.95 {
                        true => format!("{ratio:.1}"),
                        false => format!("{ratio:.0}"),
                    };
                    line.add(format!(" {}{ratio}x", glyphs.arrow()), Style::Warn);
                }
                continue;
            }
        };
        line.add(format!("{text:>width$}"), style);
    }
    line
}

/// How a share of the time stands out.
fn busy_style(busy: Option<f64>) -> Style {
    match busy {
        Some(busy) if busy >= BUSY_BAD => Style::Bad,
        Some(busy) if busy >= BUSY_WARN => Style::Warn,
        _ => Style::Plain,
    }
}

/// How many times as busy as the mean a core is, if that is worth a mark.
fn uneven(scene: &Scene<'_>, core: &CoreFigures) -> Option<f64> {
    let imbalance = scene.figures.imbalance?;
    let most = scene.figures.cores.iter().filter_map(|core| core.busy);
    let most = most.fold(0.0, f64::max);
    let ratio = core.busy? / most * imbalance;
    (ratio >= UNEVEN).then_some(ratio)
}

/// A cell a core, sixteen to a group, as many as fit in a line.
fn strip(scene: &Scene<'_>) -> Vec<Line> {
    let glyphs = scene.view.glyphs;
    let groups = (scene.columns.saturating_sub(5) / 17).max(1);
    let cores: Vec<&CoreFigures> = scene.figures.cores.iter().collect();
    let legend = match glyphs.unicode {
        true => "busy, a cell a core: ▁ idle, █ all",
        false => "busy in tenths, a cell a core",
    };
    let mut lines = vec![Line::of(legend, Style::Faint)];
    for chunk in cores.chunks(groups * 16) {
        let first = chunk.first().map_or(0, |core| core.core);
        let mut line = Line::of(format!("{first:>4}"), Style::Faint);
        for (index, core) in chunk.iter().enumerate() {
            let gap = if index % 16 == 0 { " " } else { "" };
            let cell = core.busy.map_or('-', |busy| glyphs.cell(busy));
            line.add(format!("{gap}{cell}"), busy_style(core.busy));
        }
        lines.push(line);
    }
    lines
}
