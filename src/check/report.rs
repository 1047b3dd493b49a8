//! The verdict: which rules were applied to how much, and every violation with its evidence.

use std::fmt;

/// Violations kept per rule with their evidence; more are only counted.
pub const VIOLATIONS_KEPT_MAX: usize = 100;

/// The rules, by the names of the reliability page.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Rule {
    /// The history itself proves something: final reads, acknowledged sends, a healing.
    History,
    /// One value per offset, over all acknowledgements, reads and incarnations.
    L1,
    /// No lost write: acknowledged means in the final read, byte for byte.
    L2,
    /// No duplicate, but of values re-sent without idempotence.
    L3,
    /// No aborted or invented read.
    L4,
    /// Order per producer, and across clients where one send ended before the other began.
    L5,
    /// Inside a poll offsets rise, without a gap against the final read.
    L6,
    /// The next poll starts where the last ended.
    L7,
    /// A value once read is in the final read.
    L8,
    /// High watermark and log start never go back behind what was acknowledged or read.
    L9,
    /// Acknowledged but unread values reach zero within 60 s of healing.
    L10,
}

impl Rule {
    /// Every rule, in order.
    pub const ALL: [Rule; 11] = [
        Rule::History,
        Rule::L1,
        Rule::L2,
        Rule::L3,
        Rule::L4,
        Rule::L5,
        Rule::L6,
        Rule::L7,
        Rule::L8,
        Rule::L9,
        Rule::L10,
    ];

    /// Its name in words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Rule::History => "the history proves something",
            Rule::L1 => "one value per offset",
            Rule::L2 => "no lost write",
            Rule::L3 => "no duplicate",
            Rule::L4 => "no aborted or invented read",
            Rule::L5 => "order",
            Rule::L6 => "internal contiguity",
            Rule::L7 => "external contiguity",
            Rule::L8 => "durable reads",
            Rule::L9 => "monotone ends",
            Rule::L10 => "unseen reaches zero",
        }
    }
}

/// One broken promise.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// `topic/partition`, or empty if it concerns the whole history.
    pub place: String,
    /// What happened, in a sentence.
    pub what: String,
    /// The offsets concerned.
    pub offsets: Vec<i64>,
    /// The history lines, from 1, that prove it.
    pub lines: Vec<u32>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation {
            rule,
            place,
            what,
            offsets,
            lines,
        } = self;
        write!(
            f,
            "{rule:?} {place}: {what}; offsets {offsets:?}, history lines {lines:?}"
        )
    }
}

/// What the history consisted of.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// Events.
    pub events: u64,
    /// Starts of the broker.
    pub restarts: u64,
    /// Partitions that anything happened to.
    pub partitions: u64,
    /// Values acknowledged.
    pub acked: u64,
    /// Values of unknown outcome.
    pub unknown: u64,
    /// Of those, values that are in a final read.
    pub unknown_landed: u64,
    /// Values proven not written.
    pub failed: u64,
    /// Records returned by polls and reads.
    pub read: u64,
    /// Records returned by final reads.
    pub final_read: u64,
    /// Extra copies of values re-sent without idempotence (allowed).
    pub copies: u64,
}

/// The verdict on one history.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What it consisted of.
    pub totals: Totals,
    /// The violations kept, in the order of the rules.
    pub violations: Vec<Violation>,
    checked: [u64; Rule::ALL.len()],
    violated: [u64; Rule::ALL.len()],
}

impl Report {
    /// Whether no rule was violated.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violated.iter().all(|&count| count == 0)
    }

    /// How many facts `rule` was applied to. Zero means that it proved nothing.
    #[must_use]
    pub fn checked(&self, rule: Rule) -> u64 {
        self.checked[rule as usize]
    }

    /// How often `rule` was violated.
    #[must_use]
    pub fn violated(&self, rule: Rule) -> u64 {
        self.violated[rule as usize]
    }

    /// The rules that were violated.
    #[must_use]
    pub fn broken(&self) -> Vec<Rule> {
        Rule::ALL
            .into_iter()
            .filter(|&rule| self.violated(rule) > 0)
            .collect()
    }

    pub(super) fn note_checked(&mut self, rule: Rule, count: u64) {
        self.checked[rule as usize] += count;
    }

    pub(super) fn note_violation(&mut self, violation: Violation) {
        let count = &mut self.violated[violation.rule as usize];
        *count += 1;
        if *count <= VIOLATIONS_KEPT_MAX as u64 {
            self.violations.push(violation);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let totals = &self.totals;
        writeln!(
            f,
            "{} events, {} restarts, {} partitions; values: {} acked, {} unknown ({} landed), \
             {} failed; records: {} read, {} final, {} allowed copies",
            totals.events,
            totals.restarts,
            totals.partitions,
            totals.acked,
            totals.unknown,
            totals.unknown_landed,
            totals.failed,
            totals.read,
            totals.final_read,
            totals.copies,
        )?;
        for rule in Rule::ALL {
            let (checked, violated) = (self.checked(rule), self.violated(rule));
            let verdict = if violated > 0 { "VIOLATED" } else { "ok" };
            let title = rule.title();
            writeln!(
                f,
                "{rule:<8?} {title:<28} {checked:>12} checked {violated:>8} {verdict}"
            )?;
        }
        for violation in &self.violations {
            writeln!(f, "{violation}")?;
        }
        Ok(())
    }
}
