//! A frame as the bytes that draw it on a terminal: every line from its start, the rest of it
//! cleared, so that nothing flickers and nothing old is left.

use super::frame::{Frame, Style};
use std::fmt::Write;

/// Draws a frame over the whole screen.
#[must_use]
pub fn paint(frame: &Frame, rows: usize, colour: bool) -> Vec<u8> {
    let mut text = String::from("\x1b[H");
    for (index, line) in frame.lines.iter().enumerate() {
        if index > 0 {
            text.push_str("\r\n");
        }
        for span in &line.0 {
            let code = code(span.style, colour);
            if code.is_empty() {
                text.push_str(&span.text);
            } else {
                write!(text, "\x1b[{code}m{}\x1b[0m", span.text).expect("a String takes all");
            }
        }
        text.push_str("\x1b[K");
    }
    if frame.lines.len() < rows {
        text.push_str("\r\n\x1b[J");
    }
    text.into_bytes()
}

/// Colours of the terminal's own sixteen, so that they suit its background; strength alone where
/// colour is not wanted.
fn code(style: Style, colour: bool) -> &'static str {
    match (style, colour) {
        (Style::Plain, _) => "",
        (Style::Strong, _) => "1",
        (Style::Faint, _) => "2",
        (Style::Warn, true) => "33",
        (Style::Bad, true) => "1;31",
        (Style::Warn, false) => "",
        (Style::Bad, false) => "1",
    }
}
