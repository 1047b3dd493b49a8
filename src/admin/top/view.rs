//! What the person at the screen has chosen, and what keys do about it.

use super::number::Glyphs;
use crate::admin::cli::TabArg;
use crate::env::blocking::Key;

/// Which tab is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Tab {
    Cores,
    Topics,
    Groups,
}

/// Where the figures come from, and whether they still do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Link {
    /// A broker that answers, at this address.
    Live(String),
    /// A broker that does not: its address, since when, why.
    Lost {
        /// Address as it was given.
        address: String,
        /// For how long, in ms.
        for_ms: u64,
        /// What the last attempt said.
        why: String,
    },
    /// A file being played back; `ended` once its last line was shown.
    Replay {
        /// Its name.
        file: String,
        /// Whether it is over.
        ended: bool,
    },
}

/// The state of the screen beside the figures.
#[derive(Clone, Debug)]
pub struct View {
    /// The tab.
    pub tab: Tab,
    /// What the rows of each tab are sorted by, as an index into the tab's own list.
    pub sort: [usize; 3],
    /// Only rows that match are shown.
    pub filter: String,
    /// The filter is being typed.
    pub typing: bool,
    /// Nothing moves.
    pub frozen: bool,
    /// The page that explains is shown.
    pub help: bool,
    /// Rows skipped from the top.
    pub scroll: usize,
    /// Something to tell until the next key.
    pub notice: Option<String>,
    /// Where the figures come from.
    pub link: Link,
    /// What can be shown.
    pub glyphs: Glyphs,
    /// Time between two frames, in ms.
    pub interval_ms: u64,
}

/// What is to be done about a key, beyond what the view did itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Deed {
    /// Nothing.
    Nothing,
    /// Draw again.
    Draw,
    /// Write the dump into a file.
    WriteDump,
    /// Show the next dump although frozen.
    Step,
    /// End.
    Quit,
}

impl View {
    /// The beginning: everything as it comes.
    #[must_use]
    pub fn new(tab: TabArg, link: Link, glyphs: Glyphs, interval_ms: u64) -> View {
        View {
            tab: match tab {
                TabArg::Cores => Tab::Cores,
                TabArg::Topics => Tab::Topics,
                TabArg::Groups => Tab::Groups,
            },
            sort: [0; 3],
            filter: String::new(),
            typing: false,
            frozen: false,
            help: false,
            scroll: 0,
            notice: None,
            link,
            glyphs,
            interval_ms,
        }
    }

    /// What the rows of the shown tab are sorted by.
    #[must_use]
    pub fn sorted_by(&self) -> usize {
        self.sort[self.tab as usize]
    }

    /// Takes a key.
    pub fn key(&mut self, key: Key) -> Deed {
        self.notice = None;
        if self.typing {
            return self.type_filter(key);
        }
        if self.help && !matches!(key, Key::Char('q') | Key::Hangup) {
            self.help = false;
            return Deed::Draw;
        }
        match key {
            Key::Char('q') | Key::Hangup => return Deed::Quit,
            Key::Char('1') => self.show(Tab::Cores),
            Key::Char('2') => self.show(Tab::Topics),
            Key::Char('3') => self.show(Tab::Groups),
            Key::Tab => self.show(match self.tab {
                Tab::Cores => Tab::Topics,
                Tab::Topics => Tab::Groups,
                Tab::Groups => Tab::Cores,
            }),
            Key::Char('s') => {
                self.sort[self.tab as usize] += 1;
                self.scroll = 0;
            }
            Key::Char('/') => self.typing = true,
            Key::Char('f' | ' ') => self.frozen = !self.frozen,
            Key::Char('?' | 'h') => self.help = true,
            Key::Char('d') => return Deed::WriteDump,
            Key::Right | Key::Char('n') if self.frozen => return Deed::Step,
            Key::Escape => self.filter.clear(),
            Key::Down | Key::Char('j') => self.scroll += 1,
            Key::Up | Key::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            Key::PageDown => self.scroll += 10,
            Key::PageUp => self.scroll = self.scroll.saturating_sub(10),
            _ => return Deed::Nothing,
        }
        Deed::Draw
    }

    fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.scroll = 0;
        self.filter.clear();
    }

    fn type_filter(&mut self, key: Key) -> Deed {
        match key {
            Key::Hangup => return Deed::Quit,
            Key::Enter => self.typing = false,
            Key::Escape => {
                self.typing = false;
                self.filter.clear();
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Char(letter) => self.filter.push(letter),
            _ => return Deed::Nothing,
        }
        self.scroll = 0;
        Deed::Draw
    }
}
