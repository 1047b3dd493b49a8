//! A frame: what the screen shows, as lines of styled text. Building one is a pure function of two
//! dumps, what is remembered, and what was chosen; it fits any size, down to one line of one
//! column, and never wraps.

use super::figures::Figures;
use super::number::{age, three, time_of_day};
use super::story::Story;
use super::view::{Link, Tab, View};
use super::{cores, groups, topics};
use crate::metrics::Dump;

/// How a piece of text stands out. Colour only underlines what the words say already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Style {
    /// As it is.
    Plain,
    /// A heading, or the chosen tab.
    Strong,
    /// What matters less.
    Faint,
    /// Worth a look.
    Warn,
    /// Wrong.
    Bad,
}

/// A piece of a line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Span {
    /// Text, one column a character.
    pub text: String,
    /// How it stands out.
    pub style: Style,
}

/// One line.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Line(pub Vec<Span>);

impl Line {
    /// A line of one piece.
    #[must_use]
    pub fn of(text: impl Into<String>, style: Style) -> Line {
        let mut line = Line::default();
        line.add(text, style);
        line
    }

    /// Adds a piece.
    pub fn add(&mut self, text: impl Into<String>, style: Style) {
        self.0.push(Span {
            text: text.into(),
            style,
        });
    }

    /// Columns it takes.
    #[must_use]
    pub fn width(&self) -> usize {
        self.0.iter().map(|span| span.text.chars().count()).sum()
    }

    /// The text alone.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }

    /// Adds pieces as long as they fit; the first that does not, and all after it, are left out.
    fn add_fitting(&mut self, columns: usize, parts: &[(String, Style)]) {
        for (text, style) in parts {
            if self.width() + text.chars().count() > columns {
                return;
            }
            self.add(text.clone(), *style);
        }
    }

    fn cut(&mut self, columns: usize) {
        let mut left = columns;
        for span in &mut self.0 {
            let fits: String = span.text.chars().take(left).collect();
            left -= fits.chars().count();
            span.text = fits;
        }
        self.0.retain(|span| !span.text.is_empty());
    }
}

/// Columns and rows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Size {
    /// Columns.
    pub columns: usize,
    /// Rows.
    pub rows: usize,
}

/// The lines of one screen.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Frame {
    /// At most as many as there are rows, none wider than there are columns.
    pub lines: Vec<Line>,
}

/// What the tabs need to draw themselves.
pub struct Scene<'a> {
    /// The numbers.
    pub figures: &'a Figures,
    /// What is remembered.
    pub story: &'a Story,
    /// What was chosen.
    pub view: &'a View,
    /// Columns there are.
    pub columns: usize,
}

impl Frame {
    /// Builds the frame for `now`, with rates since `earlier`. Without `now` nothing is known yet.
    #[must_use]
    pub fn of(
        earlier: Option<&Dump>,
        now: Option<&Dump>,
        story: &Story,
        view: &View,
        size: Size,
    ) -> Frame {
        let figures = now.map_or_else(Figures::default, |now| Figures::of(earlier, now));
        let scene = Scene {
            figures: &figures,
            story,
            view,
            columns: size.columns,
        };
        let mut lines = vec![title(&scene, now), tabs(&scene)];
        if view.help {
            lines.extend(help());
        } else if now.is_some() {
            let room = size.rows.saturating_sub(lines.len());
            lines.extend(body(&scene, room));
        }
        lines.truncate(size.rows);
        for line in &mut lines {
            line.cut(size.columns);
        }
        Frame { lines }
    }

    /// The text alone, a line feed after each line, no blanks at its end.
    #[must_use]
    pub fn text(&self) -> String {
        let lines = self.lines.iter();
        lines
            .map(|line| format!("{}\n", line.text().trim_end()))
            .collect()
    }
}

/// Rows and, below them, what they add up to and what happened lately.
fn body(scene: &Scene<'_>, room: usize) -> Vec<Line> {
    let mut foot = Vec::new();
    if scene.view.tab == Tab::Cores {
        foot.push(summary(scene));
    }
    let events = match room {
        0..=4 => 0,
        5..=9 => 1,
        _ => 3,
    };
    foot.extend(scene.story.events(events).map(|event| {
        let mut line = Line::of(format!("{} ", time_of_day(event.unix_ms)), Style::Faint);
        line.add(event.text.clone(), Style::Plain);
        line
    }));
    let room = room.saturating_sub(foot.len());
    let mut lines = match scene.view.tab {
        Tab::Cores => cores::lines(scene, room),
        Tab::Topics => topics::lines(scene, room),
        Tab::Groups => groups(),
    };
    lines.truncate(room);
    lines.extend(foot);
    lines
}

fn rate(value: Option<f64>, scale: f64) -> String {
    value.map_or_else(|| "-".to_owned(), |value| three(value / scale))
}

/// What the whole broker does.
fn title(scene: &Scene<'_>, now: Option<&Dump>) -> Line {
    let mut line = Line::of("penstock", Style::Strong);
    let Some(now) = now else {
        line.add("  nothing known yet", Style::Faint);
        return line;
    };
    let total = &scene.figures.total;
    let flush = total
        .flush_p99_ns
        .map_or_else(|| "-".to_owned(), |ns| scene.view.glyphs.span(ns));
    let cores = scene.figures.cores.len();
    let plural = if cores == 1 { "" } else { "s" };
    let parts = [
        (format!(" {}", now.version), Style::Plain),
        (format!("  up {}", age(now.uptime_ms)), Style::Plain),
        (format!("  {cores} core{plural}"), Style::Plain),
        (
            format!(
                "  in {}/s {}MB/s",
                rate(total.in_per_s, 1.0),
                rate(total.in_bytes_per_s, 1e6)
            ),
            Style::Strong,
        ),
        (
            format!("  out {}/s", rate(total.out_per_s, 1.0)),
            Style::Strong,
        ),
        (format!("  flush p99 {flush}"), Style::Strong),
        (
            format!("  out {}MB/s", rate(total.out_bytes_per_s, 1e6)),
            Style::Plain,
        ),
        (
            format!("  {} connections", super::number::count(total.connections)),
            Style::Plain,
        ),
        (format!("  at {}", time_of_day(now.unix_ms)), Style::Faint),
    ];
    line.add_fitting(scene.columns, &parts);
    line
}

const HINTS: [&str; 6] = [
    "s sort",
    "  / filter",
    "  f freeze",
    "  d write dump",
    "  ? help",
    "  q quit",
];

/// The tabs, and beside them the one thing a person most needs to know.
fn tabs(scene: &Scene<'_>) -> Line {
    let view = scene.view;
    let mut line = Line::default();
    for (index, (tab, name)) in [
        (Tab::Cores, "1 Cores"),
        (Tab::Topics, "2 Topics"),
        (Tab::Groups, "3 Groups"),
    ]
    .into_iter()
    .enumerate()
    {
        let gap = if index == 0 { "" } else { " " };
        if view.tab == tab {
            line.add(format!("{gap}[{name}]"), Style::Strong);
        } else {
            line.add(format!("{gap}{name}"), Style::Plain);
        }
    }
    let (text, style) = match (&view.notice, &view.link) {
        _ if view.typing => (format!("filter: {}_", view.filter), Style::Strong),
        (Some(notice), _) => (notice.clone(), Style::Strong),
        (
            None,
            Link::Lost {
                address,
                for_ms,
                why,
            },
        ) => (
            format!("NO ANSWER from {address} for {}: {why}", age(*for_ms)),
            Style::Bad,
        ),
        _ if view.frozen => ("FROZEN: f goes on, n one step".to_owned(), Style::Warn),
        (None, Link::Replay { file, ended: true }) => (format!("END of {file}"), Style::Warn),
        (None, Link::Replay { file, ended: false }) => (format!("replay of {file}"), Style::Warn),
        _ if !view.filter.is_empty() => (
            format!("filter {}: / changes, Esc clears it", view.filter),
            Style::Warn,
        ),
        (None, Link::Live(_)) => {
            let hints = HINTS.map(|hint| (hint.to_owned(), Style::Faint));
            let room = scene.columns.saturating_sub(line.width());
            line.add(if room >= 53 { "     " } else { "  " }, Style::Plain);
            // Where not all fit, the one that leads to the others.
            let all: usize = HINTS[..5].iter().map(|hint| hint.len()).sum();
            let from = if line.width() + all <= scene.columns {
                0
            } else {
                4
            };
            let shown: Vec<_> = hints[from..].to_vec();
            line.add_fitting(scene.columns, &shown);
            return line;
        }
    };
    line.add("  ", Style::Plain);
    line.add(text, style);
    line
}

/// The line below the cores: how even the load is, and what the time goes into.
fn summary(scene: &Scene<'_>) -> Line {
    let figures = scene.figures;
    let mut line = Line::default();
    let imbalance = match figures.imbalance {
        Some(ratio) => format!("imbalance {ratio:.1}x   "),
        None => String::new(),
    };
    let uneven = figures
        .imbalance
        .is_some_and(|ratio| ratio >= cores::UNEVEN);
    let style = if uneven { Style::Warn } else { Style::Plain };
    line.add(imbalance, style);
    let waiting = if figures.waiting.is_empty() {
        "waiting on: producers (none sends)".to_owned()
    } else {
        let shares = figures.waiting.iter();
        let shares = shares.map(|(what, share)| format!(" {what} {:.0}%", share * 100.0));
        format!("waiting on:{}", shares.collect::<String>())
    };
    let mut parts = vec![(waiting, Style::Plain)];
    if let Some(steal) = figures.steal.filter(|steal| *steal >= 0.005) {
        let style = if steal >= 0.1 {
            Style::Bad
        } else {
            Style::Warn
        };
        parts.push((format!("   steal {:.0}%", steal * 100.0), style));
    }
    line.add_fitting(scene.columns, &parts);
    line
}

const HELP: &str = "
busy    share of the time that the core's thread was on its CPU; its history beside it
in/s    records accepted a second; MB/s their bytes (1 MB = 1,000,000 bytes)
flush/s blocks made durable a second; e/blk entries in one: producers sharing a flush
fl p99  99 of 100 blocks were durable within this time
fwd     parts of requests a second that belonged to another core
conn    open connections; mem memory held for requests, answers and recent blocks
<- 2.1x so many times as busy as the cores are on average
waiting on   what the time of produce requests goes into: flush the disk (gathering,
             writing, flushing), cpu checking and staging, net clients and sockets,
             memory a full budget (`penstock config`); steal: other guests of this host

1 2 3 or Tab  tabs         s  sort by the next column     / filter rows, Esc clears it
up down       scroll       f  freeze, n one step on       d write the dump into a file
? this page                q  quit                        any key leaves this page";

fn help() -> Vec<Line> {
    HELP.lines()
        .map(|line| Line::of(line, Style::Plain))
        .collect()
}
