//! The grid of intervals that counts and latencies are kept in.
//!
//! A stage (the whole run, or one step of a search) is a row of sections, each of one step and one
//! phase; each section is cut into intervals from its own start, so no interval lies in two. The
//! last section has no end of its own: where a load is limited by number, it takes as long as it
//! takes.

use crate::load::run::Phase;

/// A stretch of one step and one phase.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Section {
    /// Length, in nanoseconds.
    pub length_ns: u64,
    /// Which step.
    pub step: usize,
    /// Which phase.
    pub phase: Phase,
}

/// The intervals of one stage, in time from the stage's start.
#[derive(Clone, Debug)]
pub struct Timeline {
    interval_ns: u64,
    sections: Vec<Placed>,
}

impl Default for Timeline {
    /// One interval that lasts for ever.
    fn default() -> Self {
        let section = Section {
            length_ns: u64::MAX,
            step: 0,
            phase: Phase::Measured,
        };
        Timeline::new(u64::MAX, &[section])
    }
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    at_ns: u64,
    first: usize,
    section: Section,
}

impl Timeline {
    /// Cuts sections, empty ones left out, into intervals.
    ///
    /// # Panics
    /// There is nothing to cut, or the interval is 0.
    #[must_use]
    pub fn new(interval_ns: u64, sections: &[Section]) -> Timeline {
        assert!(interval_ns > 0, "an interval takes time");
        let mut placed = Vec::with_capacity(sections.len());
        let (mut at_ns, mut first) = (0u64, 0usize);
        for section in sections.iter().filter(|section| section.length_ns > 0) {
            placed.push(Placed {
                at_ns,
                first,
                section: *section,
            });
            at_ns = at_ns.saturating_add(section.length_ns);
            let count = section.length_ns.div_ceil(interval_ns);
            first = first.saturating_add(usize::try_from(count).unwrap_or(usize::MAX));
        }
        assert!(!placed.is_empty(), "a stage takes time");
        Timeline {
            interval_ns,
            sections: placed,
        }
    }

    /// The interval of a moment.
    #[must_use]
    pub fn index(&self, time_ns: u64) -> usize {
        let placed = self.placed(|placed| placed.at_ns <= time_ns);
        let inside = (time_ns - placed.at_ns) / self.interval_ns;
        placed.first + usize::try_from(inside).expect("an interval's number fits a word")
    }

    /// When an interval begins, and its section.
    #[must_use]
    pub fn interval(&self, index: usize) -> (u64, Section) {
        let placed = self.placed(|placed| placed.first <= index);
        let inside = (index - placed.first) as u64;
        (
            placed.at_ns.saturating_add(inside * self.interval_ns),
            placed.section,
        )
    }

    /// When an interval ends: with its section at the latest, but for the last section.
    #[must_use]
    pub fn end_of(&self, index: usize) -> u64 {
        let (at_ns, _) = self.interval(index);
        let position = self
            .sections
            .partition_point(|placed| placed.first <= index);
        let next = self.sections.get(position).map(|placed| placed.at_ns);
        at_ns
            .saturating_add(self.interval_ns)
            .min(next.unwrap_or(u64::MAX))
    }

    /// The last section of which something holds that holds of the first.
    fn placed(&self, holds: impl Fn(&Placed) -> bool) -> Placed {
        let after = self.sections.partition_point(holds);
        self.sections[after.saturating_sub(1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no interval lies in two sections, and moments are found. Method: a warm-up that is no
    /// multiple of the interval, then two steps.
    #[test]
    fn intervals_end_with_their_section() {
        let section = |length_ns, step, phase| Section {
            length_ns,
            step,
            phase,
        };
        let sections = [
            section(250, 0, Phase::WarmUp),
            section(200, 0, Phase::Measured),
            section(0, 1, Phase::Measured),
            section(100, 2, Phase::Measured),
        ];
        let timeline = Timeline::new(100, &sections);
        let found: Vec<(u64, usize, u64)> = (0..6)
            .map(|index| {
                let (at, section) = timeline.interval(index);
                (at, section.step, timeline.end_of(index))
            })
            .collect();
        assert_eq!(
            found,
            [
                (0, 0, 100),
                (100, 0, 200),
                (200, 0, 250),
                (250, 0, 350),
                (350, 0, 450),
                (450, 2, 550)
            ]
        );
        for (time, index) in [
            (0, 0),
            (99, 0),
            (100, 1),
            (249, 2),
            (250, 3),
            (449, 4),
            (450, 5),
        ] {
            assert_eq!(timeline.index(time), index, "{time}");
        }
        assert_eq!(timeline.index(1000), 10, "the last section goes on");
    }
}
