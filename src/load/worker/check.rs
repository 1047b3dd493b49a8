//! Checks what consumers receive: every payload proves its own bytes, and of each producer and
//! partition every message comes once and in order.
//!
//! Memory is a watermark and the gaps below it for each producer and partition, not a list of
//! messages. What is lost is known only at the end, when the gaps are held against what was
//! acknowledged ([`judge`]).

use crate::check::value::{self, Damage};
use crate::limits;
use crate::load::plan::message::Stamp;
use crate::load::run::Verification;
use std::collections::HashMap;

/// Which messages: of one set of consumers, one producer, one partition.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Key {
    /// Set of consumers.
    pub set: u32,
    /// Producer.
    pub producer: u32,
    /// Partition, counted over all topics.
    pub partition: u32,
}

/// What was received of them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Track {
    /// No message of this number or a higher one was received.
    pub next: u64,
    /// Ranges below `next` that were not received, in order.
    pub gaps: Vec<(u64, u64)>,
}

/// What one worker's consumers received.
#[derive(Debug, Default)]
pub struct Check {
    tracks: HashMap<Key, Track>,
    findings: Verification,
}

/// What one producer sent to one partition.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sent {
    /// The producer.
    pub producer: u32,
    /// The partition, counted over all topics.
    pub partition: u32,
    /// Messages: their numbers are below this.
    pub count: u64,
    /// Ranges of them that were not acknowledged, in order.
    pub unproven: Vec<(u64, u64)>,
}

enum Arrival {
    InOrder,
    Late,
    Again,
}

impl Track {
    fn note(&mut self, number: u64) -> Arrival {
        if number == self.next {
            self.next += 1;
            return Arrival::InOrder;
        }
        if number > self.next {
            self.gaps.push((self.next, number));
            self.next = number + 1;
            return Arrival::InOrder;
        }
        let place = self.gaps.partition_point(|(_, end)| *end <= number);
        match self.gaps.get(place).copied() {
            Some((first, end)) if first <= number => {
                let halves = [(first, number), (number + 1, end)];
                let halves = halves.into_iter().filter(|(first, end)| first < end);
                self.gaps.splice(place..=place, halves);
                Arrival::Late
            }
            _ => Arrival::Again,
        }
    }
}

impl Check {
    /// Takes a payload that came from `partition`; `stamp` is what it says of itself, if it says
    /// that it is of this run.
    pub fn take(&mut self, set: u32, partition: u32, stamp: Option<&Stamp>, payload: &[u8]) {
        let proof = value::parse(payload);
        let Some(stamp) = stamp.filter(|_| proof.is_ok()) else {
            let ours = stamp.is_some() || matches!(proof, Err(Damage::Length | Damage::Checksum));
            return if ours {
                self.findings.damaged += 1;
                self.example(|| {
                    format!("damaged: {} bytes in partition {partition}", payload.len())
                });
            } else {
                self.findings.foreign += 1;
                self.example(|| {
                    format!("foreign: {} bytes in partition {partition}", payload.len())
                });
            };
        };
        let place = || format!("producer {} message {}", stamp.producer, stamp.sequence);
        if stamp.partition != partition {
            self.findings.foreign += 1;
            let meant = stamp.partition;
            self.example(|| format!("foreign: {} in {partition}, meant for {meant}", place()));
            return;
        }
        let key = Key {
            set,
            producer: stamp.producer,
            partition,
        };
        match self.tracks.entry(key).or_default().note(stamp.sequence) {
            Arrival::InOrder => self.findings.proven += 1,
            Arrival::Late => {
                self.findings.proven += 1;
                self.findings.reordered += 1;
                self.example(|| format!("behind a later one: {} of {partition}", place()));
            }
            Arrival::Again => {
                self.findings.duplicated += 1;
                self.example(|| format!("twice: {} of {partition}", place()));
            }
        }
    }

    fn example(&mut self, text: impl Fn() -> String) {
        if self.findings.examples.len() < limits::LOAD_EXAMPLES_MAX {
            self.findings.examples.push(text());
        }
    }
}

/// Puts together what every worker's consumers received, and finds what was acknowledged and never
/// came to one of the `sets`.
#[must_use]
pub fn judge(checks: Vec<Check>, sent: &[Sent], sets: u32) -> Verification {
    let mut whole = Check::default();
    for check in checks {
        whole.tracks.extend(check.tracks);
        let (mine, theirs) = (&mut whole.findings, check.findings);
        mine.proven += theirs.proven;
        mine.duplicated += theirs.duplicated;
        mine.reordered += theirs.reordered;
        mine.damaged += theirs.damaged;
        mine.foreign += theirs.foreign;
        mine.examples.extend(theirs.examples);
    }
    let none = Track::default();
    for sent in sent {
        for set in 0..sets {
            let key = Key {
                set,
                producer: sent.producer,
                partition: sent.partition,
            };
            let track = whole.tracks.get(&key).unwrap_or(&none);
            let tail = (track.next, sent.count);
            let missing = track.gaps.iter().copied().chain([tail]);
            for (first, end) in missing.filter(|(first, end)| first < end) {
                let lost = without(first, end, &sent.unproven);
                whole.findings.lost += lost;
                if lost > 0 && whole.findings.examples.len() < limits::LOAD_EXAMPLES_MAX {
                    whole.findings.examples.push(format!(
                        "lost: {lost} of the messages {first} to {} of producer {} in partition {}",
                        end - 1,
                        sent.producer,
                        sent.partition
                    ));
                }
            }
        }
    }
    whole.findings.examples.truncate(limits::LOAD_EXAMPLES_MAX);
    whole.findings
}

/// How many numbers from `first` to before `end` lie in none of the ranges, which do not overlap.
fn without(first: u64, end: u64, ranges: &[(u64, u64)]) -> u64 {
    let covered: u64 = ranges
        .iter()
        .map(|(from, until)| (*until).min(end).saturating_sub((*from).max(first)))
        .sum();
    end - first - covered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::plan::message::STAMP_BYTES;

    fn payload(sequence: u64, partition: u32) -> Vec<u8> {
        let mut bytes = vec![7; STAMP_BYTES + 10];
        let stamp = Stamp {
            producer: 1,
            sequence,
            intended_unix_ns: 5,
            run: 9,
            partition,
        };
        stamp.put(&mut bytes, true);
        bytes
    }

    fn received(payloads: &[Vec<u8>]) -> Check {
        let mut check = Check::default();
        for bytes in payloads {
            let stamp = Stamp::read(bytes).filter(|stamp| stamp.run == 9);
            check.take(0, 3, stamp.as_ref(), bytes);
        }
        check
    }

    fn sent(count: u64, unproven: Vec<(u64, u64)>) -> Vec<Sent> {
        vec![Sent {
            producer: 1,
            partition: 3,
            count,
            unproven,
        }]
    }

    /// Goal: what is whole passes. Method: ten messages in order, and the same with a hole that
    /// was never acknowledged.
    #[test]
    fn the_whole_passes() {
        let all: Vec<Vec<u8>> = (0..10).map(|number| payload(number, 3)).collect();
        let verification = judge(vec![received(&all)], &sent(10, Vec::new()), 1);
        assert!(verification.passed(), "{verification:?}");
        assert_eq!(verification.proven, 10);
        let holed = [&all[..4], &all[6..]].concat();
        let verification = judge(vec![received(&holed)], &sent(12, vec![(4, 6), (10, 12)]), 1);
        assert!(verification.passed(), "{verification:?}");
    }

    /// Goal: each fault is found and named. Method: plant one at a time.
    #[test]
    fn each_fault_is_found() {
        let all: Vec<Vec<u8>> = (0..10).map(|number| payload(number, 3)).collect();
        let judged = |payloads: &[Vec<u8>]| {
            let verification = judge(vec![received(payloads)], &sent(10, Vec::new()), 1);
            assert!(!verification.passed(), "{verification:?}");
            assert_eq!(verification.examples.len(), 1, "{verification:?}");
            verification
        };
        assert_eq!(judged(&[&all[..4], &all[7..]].concat()).lost, 3);
        assert_eq!(judged(&all[..8]).lost, 2);
        assert_eq!(judged(&[&all[..], &all[2..3]].concat()).duplicated, 1);
        let mut swapped = all.clone();
        swapped.swap(4, 5);
        let verification = judged(&swapped);
        assert_eq!((verification.reordered, verification.proven), (1, 10));
        let mut flipped = all.clone();
        flipped.push(all[3].clone());
        *flipped[10].last_mut().expect("bytes") ^= 1;
        assert_eq!(judged(&flipped).damaged, 1);
        assert_eq!(
            judged(&[all.clone(), vec![b"hello".to_vec()]].concat()).foreign,
            1
        );
        assert_eq!(
            judged(&[all.clone(), vec![payload(10, 4)]].concat()).foreign,
            1
        );
    }

    /// Goal: a set of consumers that heard nothing lost everything. Method: two sets, one silent.
    #[test]
    fn each_set_counts() {
        let all: Vec<Vec<u8>> = (0..10).map(|number| payload(number, 3)).collect();
        let verification = judge(vec![received(&all)], &sent(10, Vec::new()), 2);
        assert_eq!(verification.lost, 10);
    }
}
