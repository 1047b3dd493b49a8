//! The history folded into what the rules need: values, slots, positions, ends.
//!
//! One pass, in the order in which lines were written; a read may stand before the line of the
//! send it saw, so nothing is judged here. What can only be seen in passing (a poll that fell
//! back, a position that jumped) is kept as a fact for its rule.

use std::collections::HashMap;

use super::event::{Action, Bounds, Event, FinalRead, Outcome, Place, Polled, Sent, Sighting};
use super::report::Totals;
use super::slots::{ACKED, FINAL, READ, Slots, TIMELY};
use super::values::{Sending, Values};

/// L10: how long after healing an acknowledged value may stay unread, ns.
pub const UNSEEN_NS_MAX: u64 = 60_000_000_000;

/// Offsets a reader passed over: the final read must hold nothing there.
pub struct Gap {
    /// First offset passed over.
    pub from: i64,
    /// First offset after the gap.
    pub to: i64,
    /// History line of the poll.
    pub line: u32,
}

/// A step that is wrong whatever the final read says.
pub struct Misstep {
    /// Where the reader should have been, at least.
    pub expected: i64,
    /// Where it was.
    pub found: i64,
    /// History line of the poll.
    pub line: u32,
    /// History line of the poll before, 0 if within one.
    pub line_before: u32,
}

/// Ends as one answer gave them.
pub struct EndClaim {
    /// Begin of the request, ns.
    pub t_invoke: u64,
    /// End of the request, ns.
    pub t_complete: u64,
    /// What it said.
    pub bounds: Bounds,
    /// History line.
    pub line: u32,
}

/// How far a partition was read by some time.
pub struct ReadClaim {
    /// When the reader knew, ns.
    pub t_complete: u64,
    /// The highest offset it was given.
    pub offset: i64,
    /// History line.
    pub line: u32,
}

/// One part of the final read.
pub struct FinalPart {
    /// First offset.
    pub from: i64,
    /// First offset after it.
    pub next: i64,
    /// The bounds it was made for.
    pub bounds: Bounds,
    /// History line.
    pub line: u32,
}

/// Everything known of one partition.
pub struct Partition {
    /// Its name.
    pub place: Place,
    /// What was seen at each offset.
    pub slots: Slots,
    /// Gaps inside polls (L6).
    pub gaps_inside: Vec<Gap>,
    /// Gaps at the edges of polls (L7).
    pub gaps_between: Vec<Gap>,
    /// Offsets that did not rise inside a poll (L6).
    pub falls: Vec<Misstep>,
    /// Positions that are not where the poll before ended (L7).
    pub jumps: Vec<Misstep>,
    /// Polls judged by L6 and L7.
    pub polls: u64,
    /// Ends as they were told (L9).
    pub ends: Vec<EndClaim>,
    /// New heights of reading (L9).
    pub reads: Vec<ReadClaim>,
    /// Reads after the first possible deadline of L10: offset and time.
    pub late_reads: Vec<(i64, u64)>,
    /// Parts of the final read.
    pub parts: Vec<FinalPart>,
    /// Whether anything was sent here.
    pub sent_to: bool,
}

impl Partition {
    /// Log start of the final read; `None` if there was none.
    pub fn final_start(&self) -> Option<i64> {
        self.parts.first().map(|part| part.bounds.log_start.0)
    }

    /// `topic/partition`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.place.topic, self.place.partition)
    }
}

struct Cursor {
    next: i64,
    generation: i32,
    line: u32,
}

/// The folded history.
#[derive(Default)]
pub struct Ledger {
    /// Every value.
    pub values: Values,
    /// Every partition.
    pub partitions: Vec<Partition>,
    /// When the last fault was over, ns, and the history line that says so.
    pub healed: Option<(u64, u32)>,
    /// Sums.
    pub totals: Totals,
    names: HashMap<String, HashMap<i32, u32>>,
    cursors: HashMap<(u32, u32), Cursor>,
}

impl Ledger {
    /// Folds in the next event.
    pub fn take(&mut self, event: &Event) {
        self.totals.events += 1;
        let line = u32::try_from(self.totals.events).unwrap_or(u32::MAX);
        match &event.action {
            Action::Send(sent) => self.take_sent(event, sent, line),
            Action::Poll(polled) => self.take_polled(event, polled, line, true),
            Action::Read(polled) => self.take_polled(event, polled, line, false),
            Action::Final(part) => self.take_final(event, part, line),
            Action::EndOffsets(ends) => {
                if let (Outcome::Ok, Some(t_complete)) = (event.outcome, event.t_complete) {
                    let at = self.partition(&ends.place);
                    let claim = EndClaim {
                        t_invoke: event.t_invoke,
                        t_complete,
                        bounds: ends.bounds,
                        line,
                    };
                    self.partitions[at as usize].ends.push(claim);
                }
            }
            Action::Restart(_) => self.totals.restarts += 1,
            Action::Heal => {
                let healed = event.t_complete.unwrap_or(event.t_invoke);
                self.healed = Some((healed, line));
            }
            Action::Commit(_) => {}
        }
    }

    fn partition(&mut self, place: &Place) -> u32 {
        if !self.names.contains_key(&place.topic) {
            self.names.insert(place.topic.clone(), HashMap::new());
        }
        let rows = self
            .names
            .get_mut(&place.topic)
            .expect("inserted above if it was not there");
        let partitions = &mut self.partitions;
        *rows.entry(place.partition).or_insert_with(|| {
            partitions.push(Partition {
                place: place.clone(),
                slots: Slots::default(),
                gaps_inside: Vec::new(),
                gaps_between: Vec::new(),
                falls: Vec::new(),
                jumps: Vec::new(),
                polls: 0,
                ends: Vec::new(),
                reads: Vec::new(),
                late_reads: Vec::new(),
                parts: Vec::new(),
                sent_to: false,
            });
            (partitions.len() - 1) as u32
        })
    }

    fn take_sent(&mut self, event: &Event, sent: &Sent, line: u32) {
        let partition = self.partition(&sent.place);
        let promised = sent.acks != 0 && event.outcome == Outcome::Ok;
        let outcome = match event.outcome {
            Outcome::Ok if !promised => Outcome::Info,
            outcome => outcome,
        };
        self.partitions[partition as usize].sent_to = true;
        for (index, &record) in (0i64..).zip(&sent.records) {
            let number = self.values.number(record);
            let base = sent.base_offset.filter(|_| promised);
            let offset = base.map_or(-1, |base| base.0.saturating_add(index));
            let sending = Sending {
                partition,
                line,
                t_invoke: event.t_invoke,
                t_complete: event.t_complete.unwrap_or(u64::MAX - 1),
                outcome,
                offset,
                attempts: sent.attempts,
                idempotent: sent.idempotent,
            };
            self.values.note_sending(number, sending);
            if base.is_some() {
                self.partitions[partition as usize]
                    .slots
                    .note(offset, number, line, ACKED);
            }
        }
    }

    fn take_polled(&mut self, event: &Event, polled: &Polled, line: u32, positioned: bool) {
        let (Outcome::Ok, Some(t_complete)) = (event.outcome, event.t_complete) else {
            return;
        };
        let at = self.partition(&polled.place);
        if positioned {
            self.note_position(event.client, at, polled, line);
        }
        let deadline = self
            .healed
            .map_or(u64::MAX, |(healed, _)| healed + UNSEEN_NS_MAX);
        let timely = t_complete <= deadline;
        let marks = if timely { READ | TIMELY } else { READ };
        self.note_sightings(at, &polled.records, line, marks);
        self.totals.read += polled.records.len() as u64;
        let partition = &mut self.partitions[at as usize];
        let pairs = polled.records.windows(2);
        let gap = |pair: &[Sighting]| {
            let (from, to) = (pair[0].offset.0.saturating_add(1), pair[1].offset.0);
            (from < to).then_some(Gap { from, to, line })
        };
        partition.gaps_inside.extend(pairs.filter_map(gap));
        if !timely {
            let reads = polled
                .records
                .iter()
                .map(|sighting| (sighting.offset.0, t_complete));
            partition.late_reads.extend(reads);
        }
        let known = partition
            .reads
            .last()
            .map_or(i64::MIN, |claim| claim.offset);
        let highest = polled
            .records
            .iter()
            .map(|sighting| sighting.offset.0)
            .max();
        if let Some(offset) = highest.filter(|&offset| offset > known) {
            partition.reads.push(ReadClaim {
                t_complete,
                offset,
                line,
            });
        }
        if let Some(bounds) = polled.ends {
            let t_invoke = event.t_invoke;
            partition.ends.push(EndClaim {
                t_invoke,
                t_complete,
                bounds,
                line,
            });
        }
    }

    /// L7's facts: where this poll began, against where the client's last one ended, and what it
    /// left out at both of its edges.
    fn note_position(&mut self, client: u32, at: u32, polled: &Polled, line: u32) {
        let partition = &mut self.partitions[at as usize];
        partition.polls += 1;
        let Polled {
            from,
            next,
            generation,
            ..
        } = *polled;
        if let Some(cursor) = self.cursors.get(&(client, at)) {
            let free = polled.seek || cursor.generation != generation;
            if !free && cursor.next != from.0 {
                let (expected, line_before) = (cursor.next, cursor.line);
                partition.jumps.push(Misstep {
                    expected,
                    found: from.0,
                    line,
                    line_before,
                });
            }
        }
        self.cursors.insert(
            (client, at),
            Cursor {
                next: next.0,
                generation,
                line,
            },
        );
        let mut edge = |from: i64, to: i64| {
            if to < from {
                let step = Misstep {
                    expected: from,
                    found: to,
                    line,
                    line_before: 0,
                };
                partition.jumps.push(step);
            } else if from < to {
                partition.gaps_between.push(Gap { from, to, line });
            }
        };
        match (
            polled.records.first(),
            polled.records.iter().map(|record| record.offset.0).max(),
        ) {
            (Some(first), Some(last)) => {
                edge(from.0, first.offset.0);
                edge(last.saturating_add(1), next.0);
            }
            _ => edge(from.0, next.0),
        }
    }

    fn take_final(&mut self, event: &Event, part: &FinalRead, line: u32) {
        let (Outcome::Ok, Some(t_complete)) = (event.outcome, event.t_complete) else {
            return;
        };
        let at = self.partition(&part.place);
        self.note_sightings(at, &part.records, line, FINAL);
        self.totals.final_read += part.records.len() as u64;
        let partition = &mut self.partitions[at as usize];
        let (from, next, bounds) = (part.from.0, part.next.0, part.bounds);
        partition.parts.push(FinalPart {
            from,
            next,
            bounds,
            line,
        });
        let t_invoke = event.t_invoke;
        partition.ends.push(EndClaim {
            t_invoke,
            t_complete,
            bounds,
            line,
        });
        for sighting in &part.records {
            if !(from..next).contains(&sighting.offset.0) {
                let (expected, found) = (from, sighting.offset.0);
                partition.falls.push(Misstep {
                    expected,
                    found,
                    line,
                    line_before: 0,
                });
            }
        }
    }

    /// Enters records into the slots, and the places where offsets did not rise (L6).
    fn note_sightings(&mut self, at: u32, records: &[Sighting], line: u32, marks: u8) {
        let partition = &mut self.partitions[at as usize];
        let mut expected = i64::MIN;
        for sighting in records {
            let found = sighting.offset.0;
            if found < expected {
                partition.falls.push(Misstep {
                    expected,
                    found,
                    line,
                    line_before: 0,
                });
            }
            expected = expected.max(found.saturating_add(1));
            let number = self.values.number(sighting.record);
            partition.slots.note(found, number, line, marks);
            if marks & FINAL != 0 {
                self.values.mark_final(number);
            }
        }
    }
}
