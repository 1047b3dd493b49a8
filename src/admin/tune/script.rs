//! The fixes as a script for any POSIX shell: safe to run again, with the way back beside each
//! line, and what must be done by hand as comments.

use super::finding::{Effect, Finding, State, one_line, quoted};
use super::report::wrapped;
use std::fmt::Write;

const HEAD: &str = "\
#!/bin/sh
# Host settings for a Penstock broker, written by `penstock tune --script`.
# Run it as root. Running it again changes nothing more. The settings last until the host is
# restarted; tuning/README.md says how to keep them. Each line's way back is beside it: # undo
set -u
failed=0
put() {
    { printf '%s\\n' \"$1\" > \"$2\"; } 2>/dev/null && return 0
    echo \"penstock: cannot write $1 to $2\" >&2
    failed=1
}
";

/// Columns of a comment.
const COLUMNS: usize = 96;

/// The script for these findings.
#[must_use]
pub fn script(findings: &[Finding], host: &str) -> String {
    let mut text = HEAD.to_owned();
    let _ = writeln!(text, "# Host: {}", one_line(host));
    for finding in findings {
        match finding.state {
            State::Change => change(&mut text, finding),
            State::ByHand => by_hand(&mut text, finding),
            State::Fine | State::Note | State::Absent => {}
        }
    }
    let _ = writeln!(text, "\nexit \"$failed\"");
    text
}

fn change(text: &mut String, finding: &Finding) {
    heading(text, finding);
    for change in &finding.changes {
        let path = quoted(&change.path);
        let _ = writeln!(text, "put {} {path}", quoted(&change.value));
        let _ = writeln!(
            text,
            "# undo: put {} {path}",
            quoted(&one_line(&change.before))
        );
    }
}

fn by_hand(text: &mut String, finding: &Finding) {
    heading(text, finding);
    for line in wrapped(finding.fix.as_deref().unwrap_or("by hand"), COLUMNS) {
        let _ = writeln!(text, "# by hand: {line}");
    }
}

fn heading(text: &mut String, finding: &Finding) {
    let title = format!(
        "{}: {}; should be {}",
        finding.name, finding.now, finding.wanted
    );
    let effect = match finding.effect {
        Effect::Unsaid => String::new(),
        Effect::Expected(effect) => format!("Expected, not measured: {effect}."),
        Effect::Measured(effect) => format!("Measured: {effect}."),
    };
    text.push('\n');
    for part in [title, finding.why.clone(), effect] {
        for line in wrapped(&part, COLUMNS) {
            let _ = writeln!(text, "# {line}");
        }
    }
}
