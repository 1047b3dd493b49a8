//! What a check has to say, and what would change it: data without any access to the host.

use serde_json::{Value, json};

/// How a setting stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// As it should be.
    Fine,
    /// Should be changed, and can be by writing a setting of the kernel.
    Change,
    /// Should be changed, where no file of the kernel can: firmware, mount, limits, hypervisor.
    ByHand,
    /// Worth knowing; nothing has to be done.
    Note,
    /// There is no such thing on this host.
    Absent,
}

impl State {
    /// Every state, in the order of the report.
    pub const ALL: [State; 5] = [
        State::Fine,
        State::Change,
        State::ByHand,
        State::Note,
        State::Absent,
    ];

    /// As the table says it.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            State::Fine => "ok",
            State::Change => "CHANGE",
            State::ByHand => "BY HAND",
            State::Note => "note",
            State::Absent => "-",
        }
    }

    /// As JSON says it.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            State::Fine => "ok",
            State::Change => "change",
            State::ByHand => "by_hand",
            State::Note => "note",
            State::Absent => "absent",
        }
    }

    /// Whether something should be done.
    #[must_use]
    pub const fn is_wanting(self) -> bool {
        matches!(self, State::Change | State::ByHand)
    }
}

/// What is known about the gain. Only this project's own measurements are called measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Nothing is said.
    Unsaid,
    /// Reasoned, without a figure.
    Expected(&'static str),
    /// Measured by this project: the figure and where it is from.
    Measured(&'static str),
}

/// One write of one setting.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Change {
    /// The file, as a path of the host.
    pub path: String,
    /// What is written.
    pub value: String,
    /// What is in force now.
    pub before: String,
}

/// What one check found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// Name of the check, for `--only` and `--skip`.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What is.
    pub now: String,
    /// What should be.
    pub wanted: String,
    /// Why it matters to this broker.
    pub why: String,
    /// What is known about the gain.
    pub effect: Effect,
    /// The fix as a command for a root shell, or in words what to do by hand.
    pub fix: Option<String>,
    /// The same as writes; empty where that cannot be.
    pub changes: Vec<Change>,
}

impl Finding {
    /// A finding in this state; `now` is what was found.
    #[must_use]
    pub fn new(state: State, now: impl Into<String>) -> Finding {
        Finding {
            name: "",
            state,
            now: one_line(&now.into()),
            wanted: String::new(),
            why: String::new(),
            effect: Effect::Unsaid,
            fix: None,
            changes: Vec::new(),
        }
    }

    /// All is well.
    #[must_use]
    pub fn fine(now: impl Into<String>) -> Finding {
        Finding::new(State::Fine, now)
    }

    /// There is nothing to check.
    #[must_use]
    pub fn absent(why: &str) -> Finding {
        Finding::new(State::Absent, why)
    }

    /// What should be.
    #[must_use]
    pub fn wanted(mut self, wanted: impl Into<String>) -> Finding {
        self.wanted = wanted.into();
        self
    }

    /// Why it matters.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Finding {
        self.why = why.into();
        self
    }

    /// The gain, reasoned.
    #[must_use]
    pub fn expected(mut self, effect: &'static str) -> Finding {
        self.effect = Effect::Expected(effect);
        self
    }

    /// The gain, measured.
    #[must_use]
    pub fn measured(mut self, effect: &'static str) -> Finding {
        self.effect = Effect::Measured(effect);
        self
    }

    /// The fix, as a command or in words.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Finding {
        self.fix = Some(one_line(&fix.into()));
        self
    }

    /// The fix as writes; makes the command too, unless one is given later.
    #[must_use]
    pub fn changes(mut self, changes: Vec<Change>) -> Finding {
        if let Some(first) = changes.first() {
            let command = command(first);
            self.fix = Some(match changes.len() {
                1 => command,
                count => format!("{command}   # and {} more: --script", count - 1),
            });
        }
        self.changes = changes;
        self
    }

    /// The stable form.
    #[must_use]
    pub fn json(&self) -> Value {
        let (measured, expected) = match self.effect {
            Effect::Unsaid => (None, None),
            Effect::Expected(text) => (None, Some(text)),
            Effect::Measured(text) => (Some(text), None),
        };
        let changes = self.changes.iter().map(
            |change| json!({ "path": change.path, "before": change.before, "value": change.value }),
        );
        json!({
            "name": self.name,
            "state": self.state.key(),
            "supported": self.state != State::Absent,
            "enabled": self.state == State::Fine,
            "now": self.now,
            "should_be": self.wanted,
            "reason": self.why,
            "effect_measured": measured,
            "effect_expected": expected,
            "fix": self.fix,
            "changes": changes.collect::<Vec<_>>(),
        })
    }
}

/// A write as a line for a root shell.
#[must_use]
pub fn command(change: &Change) -> String {
    match change.path.strip_prefix("/proc/sys/") {
        Some(name) => format!("sysctl -w {}={}", name.replace('/', "."), change.value),
        None => format!("echo {} > {}", quoted(&change.value), quoted(&change.path)),
    }
}

/// As a word of a shell: bare where nothing in it means something to one.
#[must_use]
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:,+@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What the kernel holds may be anything; what is printed is one line without control characters.
#[must_use]
pub fn one_line(text: &str) -> String {
    let shown = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(TEXT_CHARS_MAX);
    shown.collect::<String>().trim().to_owned()
}

/// More would be no text for a person.
const TEXT_CHARS_MAX: usize = 400;

/// The value in force: the one in brackets where a file lists what it could be ("none
/// [mq-deadline]"), else the text without blanks around it.
#[must_use]
pub fn in_force(text: &str) -> &str {
    let bracketed = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(text, |(inside, _)| inside).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a shell reads back what was quoted, and a listed value is found. Method: samples.
    #[test]
    fn words_are_quoted_and_values_found() {
        assert_eq!(quoted("none"), "none");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(in_force("none [mq-deadline] kyber\n"), "mq-deadline");
        assert_eq!(in_force(" 60\n"), "60");
        assert_eq!(in_force("[unclosed"), "[unclosed");
        assert_eq!(one_line("a\nb\0 "), "a b");
    }
}
