//! What a row measures: named figures, one value a round, some with a goal.

use std::collections::BTreeMap;

use crate::shared::median;
use serde_json::{Value, json};

/// What a figure's median must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Nothing: it explains others.
    None,
    AtMost(f64),
    AtLeast(f64),
}

/// One figure over the rounds.
pub struct Figure {
    /// With its unit.
    pub name: String,
    pub goal: Goal,
    pub rounds: Vec<f64>,
}

impl Figure {
    pub fn median(&self) -> f64 {
        median(self.rounds.clone())
    }

    pub fn min(&self) -> f64 {
        self.rounds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub fn max(&self) -> f64 {
        let values = self.rounds.iter().copied();
        values.fold(f64::NEG_INFINITY, f64::max)
    }

    /// `None` for a figure without a goal.
    pub fn is_met(&self) -> Option<bool> {
        match self.goal {
            Goal::None => None,
            Goal::AtMost(most) => Some(self.median() <= most),
            Goal::AtLeast(least) => Some(self.median() >= least),
        }
    }

    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "goal": match self.goal {
                Goal::None => Value::Null,
                Goal::AtMost(most) => json!({ "at_most": most }),
                Goal::AtLeast(least) => json!({ "at_least": least }),
            },
            "met": self.is_met(),
            "median": self.median(),
            "min": self.min(),
            "max": self.max(),
            "rounds": self.rounds,
        })
    }
}

/// The figures of a row, in the order in which they first came, and what a reader must know.
#[derive(Default)]
pub struct Figures {
    pub all: Vec<Figure>,
    pub notes: Vec<String>,
    /// Loads that the generator itself does not trust, with how often.
    doubts: BTreeMap<String, usize>,
}

impl Figures {
    /// Adds a round's value of a figure that has a goal. What is not a number was not measured.
    pub fn goal(&mut self, name: &str, goal: Goal, value: f64) {
        if !value.is_finite() {
            self.note(format!("{name}: a round without a value"));
            return;
        }
        match self.all.iter_mut().find(|figure| figure.name == name) {
            Some(figure) => figure.rounds.push(value),
            None => self.all.push(Figure {
                name: name.to_owned(),
                goal,
                rounds: vec![value],
            }),
        }
    }

    /// The same of a figure without a goal.
    pub fn add(&mut self, name: &str, value: f64) {
        self.goal(name, Goal::None, value);
    }

    /// A load that the generator does not trust, and its word for it.
    pub fn doubt(&mut self, label: &str, kind: &str) {
        *self.doubts.entry(format!("{label}: {kind}")).or_default() += 1;
    }

    /// Every such load with the number of rounds in which it was so.
    pub fn doubts(&self) -> Vec<String> {
        let doubts = self.doubts.iter();
        doubts
            .map(|(text, rounds)| format!("{text} in {rounds} rounds"))
            .collect()
    }

    /// Adds a note, once.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}
