//! A terminal that a verb takes over: keys come one by one, the whole screen is drawn, and whatever
//! happens (return, error, panic, SIGTERM) it is given back as it was.
//!
//! Plain termios and a dozen escape sequences that every terminal since the VT220 knows. Ctrl-C
//! stays a signal; Ctrl-Z and Ctrl-\ do nothing, because they would leave the screen taken.

use crate::env::error::at;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::time::Duration;

/// How the terminal was, while it is taken.
static TAKEN: Mutex<Option<libc::termios>> = Mutex::new(None);

/// The other screen, no cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
/// No colour, the cursor, the first screen.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// A key that was pressed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "the names say all")]
pub enum Key {
    Char(char),
    Enter,
    Escape,
    Backspace,
    Tab,
    Up,
    Down,
    Right,
    PageUp,
    PageDown,
    /// The terminal is gone.
    Hangup,
}

/// The taken terminal; given back when dropped.
pub struct Terminal {
    output: File,
    pending: VecDeque<u8>,
}

impl Terminal {
    /// Whether standard input and output are a terminal that can be drawn on.
    #[must_use]
    pub fn is_there() -> bool {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        !dumb && io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Takes the terminal.
    ///
    /// # Errors
    /// Standard input is no terminal, or standard output is not there.
    pub fn take() -> io::Result<Terminal> {
        let fail = |error| at("use", "the terminal".to_owned(), error);
        let output = io::stdout().as_fd().try_clone_to_owned().map_err(fail)?;
        // SAFETY: all zeros is a termios that the kernel then fills; it only reads `raw`.
        unsafe {
            let mut before: libc::termios = std::mem::zeroed();
            if libc::tcgetattr(libc::STDIN_FILENO, &raw mut before) != 0 {
                return Err(fail(io::Error::last_os_error()));
            }
            let mut raw = before;
            raw.c_lflag &= !(libc::ICANON | libc::ECHO);
            raw.c_cc[libc::VMIN] = 0;
            raw.c_cc[libc::VTIME] = 0;
            raw.c_cc[libc::VSUSP] = 0;
            raw.c_cc[libc::VQUIT] = 0;
            if libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &raw const raw) != 0 {
                return Err(fail(io::Error::last_os_error()));
            }
            if let Ok(mut taken) = TAKEN.lock() {
                *taken = Some(before);
            }
        }
        let mut terminal = Terminal {
            output: File::from(output),
            pending: VecDeque::new(),
        };
        terminal.draw(ENTER)?;
        Ok(terminal)
    }

    /// Writes to the screen.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, bytes: &[u8]) -> io::Result<()> {
        let outcome = self.output.write_all(bytes);
        outcome.map_err(|error| at("write to", "the terminal".to_owned(), error))
    }

    /// The next key, waiting for it at most `patience`.
    pub fn key(&mut self, patience: Duration) -> Option<Key> {
        if self.pending.is_empty() && !self.fill(patience) {
            return Some(Key::Hangup);
        }
        parse(&mut self.pending)
    }

    /// Reads what was typed; false if the terminal is gone.
    fn fill(&mut self, patience: Duration) -> bool {
        let mut poll = libc::pollfd {
            fd: libc::STDIN_FILENO,
            events: libc::POLLIN,
            revents: 0,
        };
        let wait_ms = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
        let mut bytes = [0_u8; 64];
        // SAFETY: one pollfd; the kernel writes at most the length of the array.
        let count = unsafe {
            if libc::poll(&raw mut poll, 1, wait_ms) <= 0 {
                return true; // Nothing typed, or a signal.
            }
            libc::read(libc::STDIN_FILENO, bytes.as_mut_ptr().cast(), bytes.len())
        };
        match usize::try_from(count) {
            Ok(0) | Err(_) => poll.revents & (libc::POLLHUP | libc::POLLERR) == 0 && count < 0,
            Ok(count) => {
                self.pending.extend(&bytes[..count]);
                true
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back if it is taken; from any thread, and when the process ends.
pub(in crate::env) fn give_back() {
    let before = TAKEN.try_lock().ok().and_then(|mut taken| taken.take());
    if let Some(before) = before {
        let _ = io::stdout().write_all(LEAVE);
        let _ = io::stdout().flush();
        // SAFETY: the kernel only reads the termios it once wrote.
        unsafe { libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &raw const before) };
    }
}

/// Takes one key off what was typed; `None` for what means nothing here.
fn parse(bytes: &mut VecDeque<u8>) -> Option<Key> {
    match bytes.pop_front()? {
        b'\r' | b'\n' => Some(Key::Enter),
        b'\t' => Some(Key::Tab),
        0x7f | 0x08 => Some(Key::Backspace),
        0x1b => parse_sequence(bytes),
        byte if byte.is_ascii_graphic() || byte == b' ' => Some(Key::Char(char::from(byte))),
        _ => None,
    }
}

/// What follows an escape; alone it is the key of that name.
fn parse_sequence(bytes: &mut VecDeque<u8>) -> Option<Key> {
    if !matches!(bytes.front(), Some(b'[' | b'O')) {
        return Some(Key::Escape);
    }
    bytes.pop_front();
    let mut parameter = 0_u32;
    while let Some(byte) = bytes.pop_front() {
        match byte {
            b'A' => return Some(Key::Up),
            b'B' => return Some(Key::Down),
            b'C' => return Some(Key::Right),
            b'~' if parameter == 5 => return Some(Key::PageUp),
            b'~' if parameter == 6 => return Some(Key::PageDown),
            b'0'..=b'9' => parameter = parameter % 1000 * 10 + u32::from(byte - b'0'),
            b';' => parameter = 0,
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: keys and sequences are told apart, and what is unknown is passed over. Method: one
    /// burst of all of them.
    #[test]
    fn keys_are_told_apart() {
        let typed = b"q\x1b[A\x1b[6~\x1b[15~\x1bOB\r\x7f\x01\t\x1b";
        let mut bytes: VecDeque<u8> = typed.iter().copied().collect();
        let mut keys = Vec::new();
        while !bytes.is_empty() {
            keys.push(parse(&mut bytes));
        }
        let expected = [
            Some(Key::Char('q')),
            Some(Key::Up),
            Some(Key::PageDown),
            None,
            Some(Key::Down),
            Some(Key::Enter),
            Some(Key::Backspace),
            None,
            Some(Key::Tab),
            Some(Key::Escape),
        ];
        assert_eq!(keys, expected);
    }
}
