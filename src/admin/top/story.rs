//! What is remembered from frame to frame: how busy each core was, and what happened that a person
//! would ask about later.

use super::figures::{Figures, Step, flushes, histogram};
use super::number::Glyphs;
use crate::limits::{TOP_EVENTS_KEPT, TOP_HISTORY_KEPT};
use crate::metrics::{CoreSnapshot, METRICS, Reading};
use std::collections::{BTreeMap, VecDeque};

/// Something that happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// When it was seen, in ms since 1970.
    pub unix_ms: i64,
    /// What it was.
    pub text: String,
}

/// The memory of a screen.
#[derive(Default)]
pub struct Story {
    busy: BTreeMap<u16, VecDeque<f64>>,
    events: VecDeque<Event>,
    lost_ms: Option<i64>,
}

/// A flush is worth a line from this long on, if it also is out of the ordinary.
const FLUSH_LONG_NS: u64 = 10_000_000;
/// What out of the ordinary means: so many times the median.
const FLUSH_LONG_TIMES: u64 = 5;
/// An executor that is held up for so long is worth a line.
const HELD_UP_NS: u64 = 20_000_000;
/// Events that say the same within so long are one.
const SAME_WITHIN_MS: i64 = 5_000;

impl Story {
    /// Takes the next dump into account.
    pub fn take(&mut self, step: &Step<'_>, figures: &Figures, glyphs: Glyphs) {
        for core in &figures.cores {
            let Some(busy) = core.busy else { continue };
            let history = self.busy.entry(core.core).or_default();
            if history.len() == TOP_HISTORY_KEPT {
                history.pop_front();
            }
            history.push_back(busy);
        }
        for core in step.since.iter().flat_map(|since| &since.cores) {
            for text in happened(core, glyphs) {
                self.say(step.now.unix_ms, format!("core {}: {text}", core.core));
            }
        }
    }

    /// Notes something that happened. The same thing again soon replaces what was said.
    pub fn say(&mut self, unix_ms: i64, text: String) {
        let kind = |text: &str| -> String { text.chars().filter(|c| c.is_alphabetic()).collect() };
        let same = |event: &Event| {
            unix_ms - event.unix_ms < SAME_WITHIN_MS && kind(&event.text) == kind(&text)
        };
        self.events.retain(|event| !same(event));
        if self.events.len() == TOP_EVENTS_KEPT {
            self.events.pop_front();
        }
        self.events.push_back(Event { unix_ms, text });
    }

    /// The broker does not answer.
    pub fn lost(&mut self, unix_ms: i64, why: &str) {
        if self.lost_ms.is_none() {
            self.lost_ms = Some(unix_ms);
            self.say(unix_ms, format!("the broker does not answer: {why}"));
        }
    }

    /// The broker answers; `restarted` if it is another process now. Says so after a loss.
    pub fn found(&mut self, unix_ms: i64, restarted: bool) {
        if self.lost_ms.take().is_some() || restarted {
            let how = if restarted { ", restarted" } else { "" };
            self.say(unix_ms, format!("the broker answers again{how}"));
        }
        if restarted {
            self.busy.clear();
        }
    }

    /// How busy a core was, the newest last, at most `cells` of them.
    pub fn busy(&self, core: u16, cells: usize) -> impl Iterator<Item = f64> + '_ {
        let history = self.busy.get(&core);
        let skip = history.map_or(0, |history| history.len().saturating_sub(cells));
        history.into_iter().flatten().copied().skip(skip)
    }

    /// The last events, the newest last.
    pub fn events(&self, count: usize) -> impl Iterator<Item = &Event> {
        let skip = self.events.len().saturating_sub(count);
        self.events.iter().skip(skip)
    }
}

/// What is worth a line in an interval of one core.
fn happened(since: &CoreSnapshot, glyphs: Glyphs) -> Vec<String> {
    let mut found = Vec::new();
    let counts = &flushes(since).counts;
    let longest = counts.iter_recorded().last();
    let longest_ns = longest.map_or(0, |step| step.value_iterated_to());
    let median_ns = counts.value_at_quantile(0.5);
    if longest_ns >= FLUSH_LONG_NS && longest_ns >= FLUSH_LONG_TIMES * median_ns {
        found.push(format!("one flush took {}", glyphs.span(longest_ns)));
    }
    let delays = &histogram(since, "runtime", "tick_delay").counts;
    let held = delays.iter_recorded().last();
    let held_ns = held.map_or(0, |step| step.value_iterated_to());
    if held_ns >= HELD_UP_NS {
        found.push(format!("held up for {}", glyphs.span(held_ns)));
    }
    for (metric, reading) in METRICS.iter().zip(&since.readings) {
        match reading {
            Reading::Counter(count) if *count > 0 => {
                let told = TOLD
                    .iter()
                    .find(|told| told.0 == (metric.group, metric.name));
                found.extend(told.map(|(_, text)| format!("{count} {text}")));
            }
            Reading::Family(members) if metric.name == "errors" => {
                let worst = members.iter().max_by_key(|(_, count)| **count);
                found.extend(worst.map(|(index, count)| {
                    format!("{count} times {} answered", metric.member_name(*index))
                }));
            }
            _ => {}
        }
    }
    found
}

/// Counters that say something when they move: group and name, and what to say after the number.
const TOLD: [((&str, &str), &str); 12] = [
    (
        ("connections", "refused_process_limit"),
        "connections refused: the process has too many",
    ),
    (
        ("connections", "refused_address_limit"),
        "connections refused: one address has too many",
    ),
    (
        ("connections", "closed_slow_body"),
        "connections closed: a request came too slowly",
    ),
    (
        ("connections", "closed_slow_reader"),
        "connections closed: answers were not read",
    ),
    (
        ("connections", "closed_protocol"),
        "connections closed: not a Kafka request",
    ),
    (("admission", "waits"), "requests waited for memory"),
    (("forward", "refused"), "parts found a lane full"),
    (
        ("journal", "damaged_reads"),
        "reads failed their checksum: DAMAGE",
    ),
    (
        ("journal", "damaged_blocks"),
        "damaged places found: DAMAGE",
    ),
    (("journal", "space_waits"), "times THE DISK IS FULL"),
    (
        ("journal", "room_waits"),
        "producers waited: too much staged",
    ),
    (("runtime", "watchdog_kicks"), "times woken by the watchdog"),
];
