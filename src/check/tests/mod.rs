//! The checker is judged on hand-written histories: at least three bad ones for every rule, good
//! ones that look suspicious, and random single faults planted in long good ones.

mod bad;
mod good;
mod planted;
mod script;

use super::event::Event;
use super::{Checker, Report, line};

/// Runs a history through the file format and the checker, so that every test proves both.
pub fn judge(events: &[Event]) -> Report {
    let mut checker = Checker::new();
    let mut text = String::new();
    for event in events {
        text.clear();
        line::append(event, &mut text);
        let line = text
            .strip_suffix('\n')
            .expect("a line ends in a line break");
        assert_eq!(
            line::parse(line).as_ref(),
            Ok(event),
            "the line format keeps everything"
        );
        checker
            .feed_line(line)
            .expect("a line that was just written");
    }
    checker.finish()
}
