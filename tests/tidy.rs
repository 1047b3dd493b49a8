//! Goal: the shape of the house stays as `docs/ARCHITECTURE.md` and `docs/STYLE.md` draw it.
//! Method: read the repository's own text and report every place that breaks a rule. Each rule is a
//! pure function over one text, so each is also run on a small bad sample and must object.
//!
//! What goes where: `source` reads and strips a Rust file, `layering` says who may import whom,
//! `bans` what only certain rooms may name, `shape` sizes and names, `documents` what the
//! documents promise. A rule that is wrong is changed here, with its reason; there is no list of
//! exceptions to hide behind, only the short lists of files that a rule itself names.

#[path = "tidy/bans.rs"]
mod bans;
#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/layering.rs"]
mod layering;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/source.rs"]
mod source;

use std::fmt::Write as _;

/// One broken rule: where, and what to do about it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Path from the repository's root.
    pub path: String,
    /// Line, from 1; 0 when the whole file is meant.
    pub line: usize,
    /// What is wrong, in words that name the rule.
    pub what: String,
}

impl Violation {
    /// A violation at a line of a file.
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Violation {
        Violation {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

/// Fails the calling test with every violation, one a line, as an editor can jump to them.
#[track_caller]
pub fn expect_none(rule: &str, mut violations: Vec<Violation>) {
    violations.sort();
    let mut report = String::new();
    for violation in &violations {
        let Violation { path, line, what } = violation;
        writeln!(report, "{path}:{line}: {what}").expect("writing to a string cannot fail");
    }
    assert!(
        violations.is_empty(),
        "{rule}: {} broken\n{report}",
        violations.len()
    );
}
