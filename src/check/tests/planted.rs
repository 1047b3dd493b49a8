//! Long good histories with one planted fault, and the cost of a very long one.

use super::judge;
use super::script::{Script, at, record};
use crate::check::event::{Action, Event, Outcome, Sighting};
use crate::check::{Checker, Rule, line};

/// A good history of a toy broker: `count` sends by four producers, some of unknown outcome, two
/// consumers, restarts that drop the unacknowledged tail.
fn toy(seed: u64, count: u64) -> Vec<Event> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut script = Script::new();
    let mut log: Vec<Sighting> = Vec::new();
    let mut sequences = [0u64; 4];
    let mut positions = [0usize; 2];
    for _ in 0..count {
        let producer = random.u32(0..4);
        let sequence = sequences[producer as usize];
        sequences[producer as usize] += 1;
        let offset = log.len() as i64;
        match random.u32(0..10) {
            0 => {
                script.send_as((producer, sequence), (true, 1), Outcome::Fail, -1);
            }
            1 => {
                if random.bool() {
                    log.push(at(offset, record(producer, sequence)));
                }
                script.send_as((producer, sequence), (true, 2), Outcome::Info, -1);
                script.restart("kill");
            }
            _ => {
                log.push(at(offset, record(producer, sequence)));
                script.send_as((producer, sequence), (true, 1), Outcome::Ok, offset);
            }
        }
        if random.u32(0..3) == 0 {
            poll(
                &mut script,
                &log,
                &mut positions,
                random.usize(0..2),
                random.usize(0..9),
            );
        }
    }
    script.heal().ends(0, log.len() as i64);
    for consumer in 0..2 {
        poll(&mut script, &log, &mut positions, consumer, usize::MAX);
    }
    let end = log.len() as i64;
    script.last(0, end, log);
    script.events
}

fn poll(
    script: &mut Script,
    log: &[Sighting],
    positions: &mut [usize; 2],
    consumer: usize,
    most: usize,
) {
    let from = positions[consumer];
    let to = log.len().min(from.saturating_add(most));
    positions[consumer] = to;
    let polled = Script::polled(from as i64, log[from..to].to_vec());
    script.event(100 + consumer as u32, 1, Outcome::Ok, Action::Poll(polled));
}

/// Plants one fault that no broker is allowed, at random, and says what it was.
fn plant(events: &mut [Event], random: &mut fastrand::Rng) -> &'static str {
    loop {
        let index = random.usize(..events.len());
        let last = index + 1 == events.len();
        let event = &mut events[index];
        let kind = random.u32(0..5);
        match &mut event.action {
            Action::Send(sent) if event.outcome == Outcome::Ok => match kind {
                0 => {
                    event.outcome = Outcome::Fail;
                    return "an acknowledged value is called refused";
                }
                1 => {
                    let offset = sent
                        .base_offset
                        .as_mut()
                        .expect("acknowledged with an offset");
                    offset.0 += 1;
                    return "an acknowledgement names the next offset";
                }
                _ => {}
            },
            Action::Poll(polled) if polled.records.len() > 2 => match kind {
                0 => {
                    polled.records.remove(1);
                    return "a poll leaves one out";
                }
                1 => {
                    polled.records.swap(0, 1);
                    return "a poll swaps two";
                }
                2 => {
                    polled.records[0].record.digest ^= 1;
                    return "a poll shows other bytes";
                }
                3 => {
                    polled.from.0 += 1;
                    return "a poll starts one further";
                }
                _ => {}
            },
            Action::Final(part) if last && part.records.len() > 2 => {
                let victim = random.usize(..part.records.len());
                match kind {
                    0 => {
                        part.records.remove(victim);
                        return "the final read lost one";
                    }
                    1 => {
                        part.records[victim].record.value.crc ^= 1;
                        return "the final read shows other bytes";
                    }
                    2 => {
                        let copy = part.records[victim].record;
                        let end = part.bounds.high_watermark.0;
                        part.records.push(at(end, copy));
                        part.bounds.high_watermark.0 += 1;
                        part.next.0 += 1;
                        return "the final read has one twice";
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// Goal: no single fault hides in a long history, and a good one is clean. Method: 300 seeds of a
/// toy broker, each judged as it is and with one planted fault. `PENSTOCK_SEED` replays one.
#[test]
fn one_planted_fault_is_always_noticed() {
    let replay = std::env::var("PENSTOCK_SEED")
        .ok()
        .and_then(|seed| seed.parse::<u64>().ok());
    let seeds = replay.map_or(1..301, |seed| seed..seed + 1);
    for seed in seeds {
        let mut events = toy(seed, 60);
        let report = judge(&events);
        assert!(report.is_clean(), "seed {seed}: a good history\n{report}");
        let what = plant(&mut events, &mut fastrand::Rng::with_seed(seed));
        let report = judge(&events);
        assert!(
            !report.is_clean(),
            "seed {seed}: {what}, and nobody noticed\n{report}"
        );
    }
}

/// Goal: a history of 200,000 values is folded and judged exactly, fault included. Method: a long
/// toy run with one value of the middle gone from the final read.
#[test]
fn a_long_history_shows_the_one_lost_value() {
    let mut events = toy(7, 200_000);
    let Some(Action::Final(part)) = events.last_mut().map(|event| &mut event.action) else {
        panic!("the toy ends with a final read")
    };
    let middle = part.records.len() / 2;
    let lost = part.records.remove(middle);
    let mut checker = Checker::new();
    events.iter().for_each(|event| checker.feed(event));
    let report = checker.finish();
    assert_eq!(
        report.violated(Rule::L8),
        1,
        "both consumers read it:\n{report}"
    );
    assert_eq!(report.violations[0].offsets, [lost.offset.0]);
}

/// Goal: a line that is not an event is refused, never skipped. Method: cut and alter good lines.
#[test]
fn broken_lines_are_refused() {
    let mut text = String::new();
    line::append(&toy(1, 3)[1], &mut text);
    let good = text.trim_end();
    assert!(line::parse(good).is_ok());
    for cut in 0..good.len() {
        assert!(line::parse(&good[..cut]).is_err(), "cut at {cut}");
    }
    assert!(
        line::parse(&good.replace("\"acks\":-1,", "")).is_err(),
        "a field is missing"
    );
    assert!(
        line::parse(&good.replace("\"acks\"", "\"axes\"")).is_err(),
        "an unknown field"
    );
    assert!(
        line::parse(&good.replace("\"send\"", "\"sent\"")).is_err(),
        "an unknown kind"
    );
}
