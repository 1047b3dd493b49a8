//! Histories that look suspicious and are right: the checker must stay silent.

use super::judge;
use super::script::{Script, TICK, at, bounds, record, run};
use crate::base::ids::Offset;
use crate::check::Rule;
use crate::check::event::{Action, Outcome};

fn clean(script: &Script) -> crate::check::Report {
    let report = judge(&script.events);
    assert!(report.is_clean(), "{report}");
    report
}

/// Goal: the plain case applies every rule to something. Method: five values, one consumer, a
/// kill, ends asked twice.
#[test]
fn a_plain_run_is_clean_and_applies_every_rule() {
    let mut script = Script::new();
    script
        .sent_run(5)
        .poll(0, run(0, 0, 3))
        .ends(0, 5)
        .restart("kill")
        .ends(0, 5)
        .heal();
    script.poll(3, run(3, 3, 2)).last(0, 5, run(0, 0, 5));
    let report = clean(&script);
    for rule in Rule::ALL {
        assert!(
            report.checked(rule) > 0,
            "{rule:?} was applied to nothing:\n{report}"
        );
    }
    assert_eq!((report.totals.restarts, report.totals.acked), (2, 5));
}

/// Goal: an unknown outcome may land. Method: it is read and in the final read.
#[test]
fn an_unknown_send_that_landed() {
    let mut script = Script::new();
    script
        .sent(0, 0)
        .send_as((1, 1), (true, 3), Outcome::Info, -1)
        .heal();
    script.poll(0, run(0, 0, 2)).last(0, 2, run(0, 0, 2));
    assert_eq!(clean(&script).totals.unknown_landed, 1);
}

/// Goal: an unknown outcome may vanish, and its offset go to somebody else.
#[test]
fn an_unknown_send_that_did_not_land() {
    let mut script = Script::new();
    script
        .sent(0, 0)
        .send_as((1, 1), (true, 3), Outcome::Info, -1)
        .restart("kill");
    script.send_as((2, 0), (true, 1), Outcome::Ok, 1).heal();
    let all = vec![at(0, record(1, 0)), at(1, record(2, 0))];
    script.poll(0, all.clone()).last(0, 2, all);
    assert_eq!(clean(&script).totals.unknown_landed, 0);
}

/// Goal: without idempotence a re-send may leave two copies, also out of order.
#[test]
fn two_copies_of_a_value_sent_twice_without_idempotence() {
    let mut script = Script::new();
    script.send_as((3, 0), (true, 1), Outcome::Info, -1);
    script.send_as((1, 0), (false, 2), Outcome::Ok, 2);
    script.send_as((1, 1), (false, 1), Outcome::Ok, 3).heal();
    let mut all = vec![
        at(0, record(1, 0)),
        at(1, record(3, 0)),
        at(2, record(1, 0)),
    ];
    all.push(at(3, record(1, 1)));
    script.poll(0, all.clone()).last(0, 4, all);
    assert_eq!(clean(&script).totals.copies, 1);
}

/// Goal: an early copy of an unacknowledged attempt does not break the order across clients.
/// Method: producer 1's second attempt is acknowledged at 1, behind producer 2, whose send began
/// after producer 1's first attempt and ended before the second.
#[test]
fn concurrent_sends_may_land_in_any_order() {
    let mut script = Script::new();
    let begin = script.now;
    script.send_as((2, 0), (true, 1), Outcome::Ok, 0);
    script.send_as((1, 0), (true, 2), Outcome::Ok, 1);
    script.events[2].t_invoke = begin;
    let all = vec![at(0, record(2, 0)), at(1, record(1, 0))];
    script.heal().poll(0, all.clone()).last(0, 2, all);
    clean(&script);
}

/// Goal: with acks=0 nothing was promised. Method: `ok`, and the value is nowhere.
#[test]
fn acks_zero_may_be_lost() {
    let mut script = Script::new();
    script
        .sent(0, 0)
        .send_as((2, 0), (false, 1), Outcome::Ok, -1);
    let Action::Send(sent) = &mut script.events[2].action else {
        panic!("a send")
    };
    sent.acks = 0;
    script.heal().poll(0, run(0, 0, 1)).last(0, 1, run(0, 0, 1));
    let report = clean(&script);
    assert_eq!((report.totals.acked, report.totals.unknown), (1, 1));
}

/// Goal: a refused value that is nowhere is fine, and proves nothing else.
#[test]
fn a_refused_send_that_is_nowhere() {
    let mut script = Script::new();
    script
        .sent(0, 0)
        .send_as((1, 1), (true, 1), Outcome::Fail, -1)
        .sent(2, 1)
        .heal();
    let all = vec![at(0, record(1, 0)), at(1, record(1, 2))];
    script.poll(0, all.clone()).last(0, 2, all);
    assert_eq!(clean(&script).totals.failed, 1);
}

/// Goal: a value refused once and accepted on a second sending may be read.
#[test]
fn a_value_refused_and_then_sent_again() {
    let mut script = Script::new();
    script
        .send_as((1, 0), (true, 1), Outcome::Fail, -1)
        .sent(0, 0)
        .heal();
    script.poll(0, run(0, 0, 1)).last(0, 1, run(0, 0, 1));
    clean(&script);
}

/// Goal: what retention deleted was not lost. Method: three of five acknowledged and read values
/// lie below log start, and the consumer sought forward.
#[test]
fn values_below_log_start_are_not_lost() {
    let mut script = Script::new();
    script
        .sent_run(5)
        .poll(0, run(0, 0, 2))
        .ends(0, 5)
        .ends(3, 5)
        .heal();
    let mut poll = Script::polled(3, run(3, 3, 2));
    poll.seek = true;
    script
        .event(9, 1, Outcome::Ok, Action::Poll(poll))
        .last(3, 5, run(3, 3, 2));
    clean(&script);
}

/// Goal: gaps of compaction are no gaps. Method: offset 1 is in no final read (its value had an
/// unknown outcome), a poll skips it inside, another at its start.
#[test]
fn a_gap_that_the_final_read_has_too() {
    let mut script = Script::new();
    script.sent(0, 0).sent(2, 2).heal();
    let all = vec![at(0, record(1, 0)), at(2, record(1, 2))];
    script.poll(0, all.clone());
    script.event(
        8,
        1,
        Outcome::Ok,
        Action::Poll(Script::polled(1, run(2, 2, 1))),
    );
    script.last(0, 3, all);
    clean(&script);
}

/// Goal: a rebalance may move a position. Method: generation 2 starts over at the committed
/// offset.
#[test]
fn a_new_generation_may_start_elsewhere() {
    let mut script = Script::new();
    script.sent_run(4).heal();
    for (generation, from) in [(1, 0), (2, 1), (2, 4)] {
        let mut poll = Script::polled(from, run(from, from as u64, (4 - from) as u64));
        poll.generation = generation;
        script.event(9, 1, Outcome::Ok, Action::Poll(poll));
    }
    script.last(0, 4, run(0, 0, 4));
    clean(&script);
}

/// Goal: an answer that was under way while a value was acknowledged may not know it yet.
#[test]
fn concurrent_end_offsets_may_be_low() {
    let mut script = Script::new();
    script.sent(0, 0);
    let begin = script.now;
    script.sent(1, 1).ends(0, 1);
    script.events[3].t_invoke = begin;
    script.heal().poll(0, run(0, 0, 2)).last(0, 2, run(0, 0, 2));
    clean(&script);
}

/// Goal: a read may be written before the line of its send.
#[test]
fn a_read_before_the_line_of_its_send() {
    let mut script = Script::new();
    script
        .sent_run(2)
        .heal()
        .poll(0, run(0, 0, 2))
        .last(0, 2, run(0, 0, 2));
    script.events.swap(2, 4);
    clean(&script);
}

/// Goal: a duplicate's acknowledgement may name no offset.
#[test]
fn an_acknowledgement_without_an_offset() {
    let mut script = Script::new();
    script
        .sent(0, 0)
        .send_as((1, 1), (true, 4), Outcome::Ok, -1)
        .heal();
    script.poll(0, run(0, 0, 2)).last(0, 2, run(0, 0, 2));
    clean(&script);
}

/// Goal: a poll that failed or timed out proves nothing.
#[test]
fn a_poll_of_unknown_outcome_is_ignored() {
    let mut script = Script::new();
    script.sent(0, 0);
    script.event(
        9,
        1,
        Outcome::Info,
        Action::Poll(Script::polled(7, run(7, 7, 1))),
    );
    script.heal().poll(0, run(0, 0, 1)).last(0, 1, run(0, 0, 1));
    clean(&script);
}

/// Goal: a value acknowledged long after healing has its own minute.
#[test]
fn a_late_acknowledgement_has_its_own_minute() {
    let mut script = Script::new();
    script.sent(0, 0).heal().poll(0, run(0, 0, 1));
    script.now += 100_000 * TICK;
    script.sent(1, 1);
    script.now += 50_000 * TICK;
    script.poll(1, run(1, 1, 1)).last(0, 2, run(0, 0, 2));
    clean(&script);
}

/// Goal: a final read in parts is whole, in whatever order the parts came.
#[test]
fn a_final_read_in_parts() {
    let mut script = Script::new();
    script
        .sent_run(4)
        .heal()
        .poll(0, run(0, 0, 4))
        .last(0, 4, run(0, 0, 2))
        .last(0, 4, run(2, 2, 2));
    let count = script.events.len();
    for (index, (from, next)) in [(0, 2), (2, 4)].into_iter().enumerate() {
        let Action::Final(part) = &mut script.events[count - 2 + index].action else {
            panic!("a final read")
        };
        (part.from, part.next) = (Offset(from), Offset(next));
        assert_eq!(part.bounds, bounds(0, 4));
    }
    script.events.swap(count - 1, count - 2);
    clean(&script);
}
