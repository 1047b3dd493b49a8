//! The checker: reads the history of a fault campaign and says whether the broker kept its word.
//!
//! A campaign (kill -9, simulation, power cuts) records what every client did and saw, one JSON
//! line an event ([`line`](mod@line)), each value proving its own bytes ([`value`]). The
//! [`Checker`] folds the events into a [`ledger`] whose memory is about 80 bytes a record, and at
//! the end applies the log rules L1–L10, one file each ([`rules`]). Its [`report::Report`] names
//! every violation with its offsets and the history lines that prove it.
//!
//! Invariants: pure — no I/O, no clock, no chance; callers read files and pass times. It knows
//! nothing of the broker's inside: everything is judged from what clients were told. A history
//! that proves nothing (no final read, no acknowledged send) is itself a violation: silence must
//! never look like success.

pub mod event;
pub mod ledger;
pub mod line;
pub mod report;
mod rules;
mod slots;
pub mod value;
mod values;

#[cfg(test)]
mod tests;

pub use event::{Action, Event, Outcome};
pub use line::LineError;
pub use report::{Report, Rule};
pub use value::Value;

/// Folds a history, event by event, and judges it at the end.
#[derive(Default)]
pub struct Checker {
    ledger: ledger::Ledger,
}

impl Checker {
    /// A checker that has seen nothing yet.
    #[must_use]
    pub fn new() -> Checker {
        Checker::default()
    }

    /// Takes the next event, in the order in which the history was written.
    pub fn feed(&mut self, event: &Event) {
        self.ledger.take(event);
    }

    /// Takes the next line of a history file (without its line break).
    ///
    /// # Errors
    /// The line is not an event; the checker is unchanged, and the history must not be trusted.
    pub fn feed_line(&mut self, text: &str) -> Result<(), LineError> {
        let event = line::parse(text)?;
        self.feed(&event);
        Ok(())
    }

    /// Applies every rule to all that was fed.
    #[must_use]
    pub fn finish(self) -> Report {
        rules::judge(&self.ledger)
    }
}
