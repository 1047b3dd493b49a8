//! `penstock top`: what every core is doing, as a live screen, a playback, or one frame of text.
//!
//! Figures are worked out (`figures`) from two dumps; a frame (`frame`, with a file for each tab)
//! is a pure function of them, of what is remembered (`story`) and of what was chosen (`view`);
//! only this file and `source` touch the world.

mod cores;
mod figures;
mod frame;
mod number;
mod paint;
mod source;
mod story;
#[cfg(test)]
mod tests;
mod topics;
mod view;

use self::figures::{Figures, Step};
use self::frame::{Frame, Line, Size, Style, wrapped};
use self::number::Glyphs;
use self::source::{Report, Tape};
use self::story::Story;
use self::view::{Deed, Link, View};
use super::cli::TopArgs;
use super::client::http;
use super::dump;
use super::error::AdminError;
use super::output::Output;
use crate::env::blocking::{Terminal, terminal_size, write_file};
use crate::env::process;
use crate::limits;
use crate::metrics::Dump;
use std::path::Path;
use std::time::Duration;

/// How long a key is waited for before the screen looks for news.
const KEY_PATIENCE: Duration = Duration::from_millis(100);

/// Runs the verb.
///
/// # Errors
/// For one frame: the broker does not answer, or the file is no dump. A live screen waits for its
/// broker instead.
pub fn run(args: &TopArgs, out: &mut Output) -> Result<(), AdminError> {
    let interval = dump::interval(args.interval)?;
    let size = args.size.as_deref().map(parse_size).transpose()?;
    let variable = |name: &str| std::env::var(name).ok();
    let mut glyphs = Glyphs::of_locale(variable);
    glyphs.unicode &= !args.ascii;
    let link = match &args.from {
        Some(path) => Link::Replay {
            file: path.display().to_string(),
            ended: false,
        },
        None => Link::Live(args.http.clone()),
    };
    let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
    let mut screen = Screen {
        view: View::new(args.tab, link, glyphs, interval_ms),
        story: Story::default(),
        figures: Figures::default(),
        now: None,
        lost_at_ns: None,
    };
    if args.once || !Terminal::is_there() {
        screen.once(args, interval)?;
        let columns = terminal_size().map_or(80, |(columns, _)| usize::from(columns));
        let size = size.unwrap_or(Size {
            columns,
            rows: usize::MAX,
        });
        out.bytes(screen.frame(size).text().as_bytes())?;
        return out.flush();
    }
    let reports = match &args.from {
        Some(path) => source::replay(path)?,
        None => source::live(args.http.clone(), interval)?,
    };
    let colour = variable("NO_COLOR").is_none_or(|value| value.is_empty());
    screen.live(&reports, size, colour)
}

/// "120x40".
fn parse_size(text: &str) -> Result<Size, AdminError> {
    let parts = text.split_once('x');
    let size = parts.and_then(|(columns, rows)| {
        Some(Size {
            columns: columns.parse().ok()?,
            rows: rows.parse().ok()?,
        })
    });
    size.filter(|size| size.columns > 0 && size.rows > 0)
        .ok_or_else(|| AdminError::Usage(format!("a size is like 120x40, not {text}")))
}

/// What the screen knows.
struct Screen {
    view: View,
    story: Story,
    figures: Figures,
    now: Option<Dump>,
    lost_at_ns: Option<u64>,
}

impl Screen {
    fn frame(&self, size: Size) -> Frame {
        let now = self.now.as_ref();
        Frame::of(&self.figures, now, &self.story, &self.view, size)
    }

    fn take(&mut self, dump: Dump) {
        let before = self.now.take();
        let restarted = before.as_ref().is_some_and(|before| {
            before.uptime_ms > dump.uptime_ms || before.process["pid"] != dump.process["pid"]
        });
        let earlier = before.filter(|_| !restarted);
        if let (Some(earlier), Link::Replay { .. }) = (&earlier, &self.view.link) {
            let passed_ms = u64::try_from(dump.unix_ms - earlier.unix_ms).unwrap_or(0);
            self.view.interval_ms = (passed_ms + 50) / 100 * 100;
        }
        let step = Step::new(earlier.as_ref(), &dump);
        self.figures = Figures::of(&step);
        self.story.take(&step, &self.figures, self.view.glyphs);
        self.story.found(dump.unix_ms, restarted);
        self.now = Some(dump);
    }

    /// Everything that one frame of text needs: two dumps of a broker, or all of a file.
    fn once(&mut self, args: &TopArgs, interval: Duration) -> Result<(), AdminError> {
        if let Some(path) = &args.from {
            let mut tape = Tape::open(path)?;
            while let Some(dump) = tape.next()? {
                self.take(dump);
            }
            return Ok(());
        }
        let patience = Duration::from_millis(limits::CLIENT_TIMEOUT_MS);
        self.take(http::dump(&args.http, patience)?);
        process::sleep_blocking(interval);
        self.take(http::dump(&args.http, patience)?);
        Ok(())
    }

    /// The live screen, until it is left.
    fn live(
        &mut self,
        reports: &flume::Receiver<Report>,
        fixed: Option<Size>,
        colour: bool,
    ) -> Result<(), AdminError> {
        let (stop, stopped) = flume::bounded(1);
        process::watch_stop_signals(move |_| {
            let _ = stop.try_send(());
        })
        .map_err(|error| AdminError::Host(error.to_string()))?;
        let host = |error: std::io::Error| AdminError::Host(error.to_string());
        let mut terminal = Terminal::take().map_err(host)?;
        let mut drawn: Option<Size> = None;
        let mut fresh = true;
        while stopped.is_empty() {
            let size = fixed.unwrap_or_else(terminal_or_usual);
            if fresh || drawn != Some(size) {
                let bytes = paint::paint(&self.frame(size), size.rows, colour);
                terminal.draw(&bytes).map_err(host)?;
                drawn = Some(size);
            }
            // Everything typed meanwhile is taken before the next frame is drawn.
            let mut patience = KEY_PATIENCE;
            let mut step = false;
            fresh = false;
            while let Some(key) = terminal.key(patience) {
                patience = Duration::ZERO;
                let deed = self.view.key(key);
                fresh |= deed != Deed::Nothing;
                step |= deed == Deed::Step;
                match deed {
                    Deed::Quit => return Ok(()),
                    Deed::WriteDump => self.write_dump(),
                    Deed::Nothing | Deed::Draw | Deed::Step => {}
                }
            }
            fresh |= self.news(reports, step);
        }
        Ok(())
    }

    /// Takes what has come; whether there is something new to draw.
    fn news(&mut self, reports: &flume::Receiver<Report>, step: bool) -> bool {
        let frozen = self.view.frozen && !step;
        if frozen && matches!(self.view.link, Link::Replay { .. }) {
            return false; // The tape stands still.
        }
        match reports.try_recv() {
            Err(_) => false,
            Ok(_) if frozen => false,
            Ok(Report::Dump(dump)) => {
                self.take(*dump);
                self.lost_at_ns = None;
                if let Link::Lost { address, .. } = &self.view.link {
                    self.view.link = Link::Live(address.clone());
                }
                true
            }
            Ok(Report::Lost(why)) => {
                self.lost(why);
                true
            }
            Ok(Report::Ended) => {
                if let Link::Replay { ended, .. } = &mut self.view.link {
                    *ended = true;
                }
                true
            }
        }
    }

    fn lost(&mut self, why: String) {
        let now_ns = process::monotonic_ns();
        let since_ns = *self.lost_at_ns.get_or_insert(now_ns);
        self.story.lost(process::unix_ms(), &why);
        let address = match &self.view.link {
            Link::Live(address) | Link::Lost { address, .. } => address.clone(),
            Link::Replay { file, .. } => file.clone(),
        };
        self.view.link = Link::Lost {
            address,
            for_ms: (now_ns - since_ns) / 1_000_000,
            why,
        };
    }

    fn write_dump(&mut self) {
        let Some(dump) = &self.now else { return };
        let name = format!("penstock-dump-{}.json", dump.unix_ms);
        let text = format!("{}\n", dump.to_json());
        self.view.notice = Some(match write_file(Path::new(&name), text.as_bytes()) {
            Ok(()) => format!("written: {name}"),
            Err(error) => error.to_string(),
        });
    }
}

fn terminal_or_usual() -> Size {
    let (columns, rows) = terminal_size().unwrap_or((80, 24));
    Size {
        columns: usize::from(columns),
        rows: usize::from(rows),
    }
}

/// The third tab. It has a place already so that nobody looks for it elsewhere.
fn groups(columns: usize) -> Vec<Line> {
    let text = "This broker has no consumer groups yet: consumers choose their partitions and \
                keep their offsets themselves. Members and lag will be shown here.";
    let lines = wrapped(text, columns).into_iter();
    lines.map(|text| Line::of(text, Style::Faint)).collect()
}
