//! A frame: what the screen shows, as lines of styled text. Building one is a pure function of the
//! figures, what is remembered, and what was chosen; it fits any size, down to one line of one
//! column, and never wraps.

use super::figures::Figures;
use super::number::{age, count, three, time_of_day};
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
    /// Builds the frame for `now` and the figures worked out from it and the dump before. Without
    /// `now` nothing is known yet.
    #[must_use]
    pub fn of(
        figures: &Figures,
        now: Option<&Dump>,
        story: &Story,
        view: &View,
        size: Size,
    ) -> Frame {
        let scene = Scene {
            figures,
            story,
            view,
            columns: size.columns,
        };
        let mut lines = vec![title(&scene, now), tabs(&scene)];
        if view.help {
            lines.extend(help(size.columns));
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
        foot.extend(summary(scene));
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
        Tab::Groups => groups(scene.columns),
    };
    lines.truncate(room);
    // Where there is room, what is beneath stands apart.
    if lines.len() < room && !foot.is_empty() {
        lines.push(Line::default());
    }
    lines.extend(foot);
    lines
}

fn rate(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), three)
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
        (6, format!(" {}", now.version), Style::Plain),
        (5, format!("  up {}", age(now.uptime_ms)), Style::Plain),
        (4, format!("  {cores} core{plural}"), Style::Plain),
        (
            1,
            format!(
                "  in {}/s {}B/s",
                rate(total.in_per_s),
                rate(total.in_bytes_per_s)
            ),
            Style::Strong,
        ),
        (
            2,
            format!("  out {}/s", rate(total.out_per_s)),
            Style::Strong,
        ),
        (
            7,
            format!(" {}B/s", rate(total.out_bytes_per_s)),
            Style::Strong,
        ),
        (3, format!("  flush p99 {flush}"), Style::Strong),
        (
            8,
            format!("  {} connections", count(total.connections)),
            Style::Plain,
        ),
        (
            9,
            format!("  at {}", time_of_day(now.unix_ms)),
            Style::Faint,
        ),
    ];
    // Each in its place, but what matters less goes first.
    let mut shown = 9;
    let width = |shown| -> usize {
        let fits = parts.iter().filter(|(rank, ..)| *rank <= shown);
        fits.map(|(_, text, _)| text.chars().count()).sum()
    };
    while shown > 1 && line.width() + width(shown) > scene.columns {
        shown -= 1;
    }
    for (_, text, style) in parts.into_iter().filter(|(rank, ..)| *rank <= shown) {
        line.add(text, style);
    }
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
            format!("NO ANSWER for {}: {why} ({address})", age(*for_ms)),
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

/// Below the cores: how even the load is, and what the time goes into; in one line if it fits.
fn summary(scene: &Scene<'_>) -> Vec<Line> {
    let figures = scene.figures;
    let mut first = Line::default();
    if let Some(ratio) = figures.imbalance {
        let style = match ratio >= cores::UNEVEN {
            true => Style::Warn,
            false => Style::Plain,
        };
        first.add(format!("imbalance {ratio:.1}x"), style);
    }
    let mut second = Line::of("waiting on:", Style::Plain);
    if figures.waiting.is_empty() {
        second.add(" producers (none sends)", Style::Plain);
    }
    for (what, share) in &figures.waiting {
        second.add(format!(" {what} {:.0}%", share * 100.0), Style::Plain);
    }
    if let Some(steal) = figures.steal.filter(|steal| *steal >= 0.005) {
        let style = match steal >= 0.1 {
            true => Style::Bad,
            false => Style::Warn,
        };
        let text = format!("   steal {:.0}%", steal * 100.0);
        second.add_fitting(scene.columns, &[(text, style)]);
    }
    if first.0.is_empty() {
        return vec![second];
    }
    if first.width() + 3 + second.width() > scene.columns {
        return vec![first, second];
    }
    first.add("   ", Style::Plain);
    first.0.extend(second.0);
    vec![first]
}

/// What the keys do.
const KEYS: [(&str, &str); 8] = [
    ("1 2 3", "cores, topics, groups; Tab goes around"),
    ("s", "sort by the next column"),
    ("/", "show only rows that match; Esc shows all again"),
    ("f", "freeze, and go on; n is one step while frozen"),
    ("d", "write the dump behind this frame into a file here"),
    ("up down", "scroll"),
    ("?", "this page; any key leaves it"),
    ("q", "quit"),
];

/// What the columns and lines mean.
const MEANINGS: [(&str, &str); 9] = [
    (
        "busy",
        "share of time that the core's thread was on its CPU; its history",
    ),
    (
        "in/s",
        "records accepted a second; MB/s their bytes, 1 MB = 1,000,000",
    ),
    ("flush/s", "blocks made durable a second"),
    (
        "e/blk",
        "entries in a block: producers that share one flush",
    ),
    ("fl p99", "99 of 100 blocks were durable within this time"),
    (
        "fwd",
        "parts of requests a second that belonged to another core",
    ),
    (
        "mem",
        "memory for requests, answers, recent blocks; conn: connections",
    ),
    ("2.1x", "so many times as busy as the cores are on average"),
    (
        "waiting",
        "what the time of produce requests goes into: flush the disk, with gathering before it; \
         cpu checking and answering; net bytes still coming in; memory a full budget. steal: time \
         that the hypervisor gave to others",
    ),
];

fn help(columns: usize) -> Vec<Line> {
    const TERM: usize = 9;
    let mut lines = Vec::new();
    let apart = [("", "")];
    for (term, meaning) in KEYS.into_iter().chain(apart).chain(MEANINGS) {
        for (index, text) in wrapped(meaning, columns.saturating_sub(TERM))
            .into_iter()
            .enumerate()
        {
            let term = if index == 0 { term } else { "" };
            let mut line = Line::of(format!("{term:<TERM$}"), Style::Strong);
            line.add(text, Style::Plain);
            lines.push(line);
        }
    }
    lines
}

/// Text in lines of at most `columns`, broken at blanks; at least one line.
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one at least");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
