//! Histories that break a promise: each names the rule that must notice. Some faults rightly break
//! several rules (a lost acknowledged value that was also read); the named one must be among them.

use super::judge;
use super::script::{Script, TICK, altered, at, bounds, foreign, place, record, run};
use crate::base::ids::Offset;
use crate::check::event::{Action, Outcome, Sent};
use crate::check::{Report, Rule};

/// The history breaks `rule`, the violation shows evidence, and the rules in `silent` say nothing.
fn broken(script: &Script, rule: Rule, silent: &[Rule]) -> Report {
    let report = judge(&script.events);
    assert!(!report.is_clean());
    assert!(
        report.violated(rule) > 0,
        "{rule:?} noticed nothing:\n{report}"
    );
    for &other in silent {
        assert_eq!(
            report.violated(other),
            0,
            "{other:?} is beside the point:\n{report}"
        );
    }
    for violation in report
        .violations
        .iter()
        .filter(|violation| violation.rule != Rule::History)
    {
        assert!(
            !violation.lines.is_empty(),
            "a violation without evidence: {violation}"
        );
    }
    report
}

/// Five acknowledged values and a heal.
fn five() -> Script {
    let mut script = Script::new();
    script.sent_run(5).heal();
    script
}

mod history {
    use super::*;

    #[test]
    fn nothing_at_all() {
        broken(&Script::default(), Rule::History, &[Rule::L1, Rule::L2]);
    }

    #[test]
    fn no_final_read_of_one_partition() {
        let mut script = five();
        let action = Action::Poll(Script::polled(0, Vec::new()));
        script
            .event(9, 1, Outcome::Ok, action)
            .last_of(1, 0, 0, Vec::new());
        broken(&script, Rule::History, &[Rule::L1, Rule::L2]);
    }

    #[test]
    fn a_final_read_that_stops_early() {
        let mut script = five();
        script.last(0, 5, run(0, 0, 3));
        let Some(Action::Final(part)) = script.events.last_mut().map(|event| &mut event.action)
        else {
            panic!("a final read")
        };
        part.next = Offset(3);
        broken(&script, Rule::History, &[Rule::L1]);
    }

    #[test]
    fn never_healed() {
        let mut script = Script::new();
        script
            .sent(0, 0)
            .poll(0, run(0, 0, 1))
            .last(0, 1, run(0, 0, 1));
        broken(&script, Rule::History, &[Rule::L2]);
    }

    #[test]
    fn nothing_was_acknowledged() {
        let mut script = Script::new();
        script
            .send_as((1, 0), (true, 1), Outcome::Info, -1)
            .heal()
            .last(0, 0, Vec::new());
        broken(&script, Rule::History, &[Rule::L2]);
    }
}

mod l1_one_value {
    use super::*;

    /// Two producers were told the same offset.
    #[test]
    fn an_offset_acknowledged_twice() {
        let mut script = Script::new();
        script
            .sent(0, 0)
            .send_as((2, 0), (true, 1), Outcome::Ok, 0)
            .heal();
        script.last(0, 1, run(0, 0, 1));
        broken(&script, Rule::L1, &[Rule::L3, Rule::L4]);
    }

    /// A reader saw another value than the acknowledgement, before a restart.
    #[test]
    fn a_read_that_differs_from_the_acknowledgement() {
        let mut script = Script::new();
        script.send_as((2, 0), (true, 1), Outcome::Info, -1);
        script
            .poll(0, vec![at(0, record(2, 0))])
            .restart("kill")
            .sent(0, 0)
            .heal();
        script.poll(1, Vec::new()).last(0, 1, run(0, 0, 1));
        broken(&script, Rule::L1, &[Rule::L2, Rule::L4]);
    }

    /// Two incarnations showed two values that were both of unknown outcome.
    #[test]
    fn two_incarnations_show_two_values() {
        let mut script = Script::new();
        script.sent(0, 0);
        script.send_as((2, 0), (true, 1), Outcome::Info, -1);
        script.send_as((3, 0), (true, 1), Outcome::Info, -1);
        script
            .poll(0, vec![at(0, record(1, 0)), at(1, record(2, 0))])
            .restart("kill")
            .heal();
        script.last(0, 2, vec![at(0, record(1, 0)), at(1, record(3, 0))]);
        broken(&script, Rule::L1, &[Rule::L2, Rule::L4, Rule::L3]);
    }

    /// The same value, whose key changed between two reads.
    #[test]
    fn the_same_value_with_another_key() {
        let mut script = five();
        script
            .poll(0, vec![at(0, altered(1, 0))])
            .last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L1, &[Rule::L2, Rule::L3]);
    }
}

mod l2_no_lost_write {
    use super::*;

    #[test]
    fn the_tail_is_gone() {
        let mut script = five();
        script.last(0, 4, run(0, 0, 4));
        broken(&script, Rule::L2, &[Rule::L1, Rule::L3, Rule::L4]);
    }

    #[test]
    fn a_hole_in_the_middle() {
        let mut script = five();
        let mut all = run(0, 0, 5);
        all.remove(2);
        script.last(0, 5, all);
        broken(&script, Rule::L2, &[Rule::L1, Rule::L3, Rule::L4, Rule::L6]);
    }

    #[test]
    fn one_byte_of_the_record_changed() {
        let mut script = five();
        let mut all = run(0, 0, 5);
        all[3] = at(3, altered(1, 3));
        script.last(0, 5, all);
        broken(&script, Rule::L2, &[Rule::L3, Rule::L5]);
    }

    #[test]
    fn everything_is_gone() {
        let mut script = five();
        script.last(0, 0, Vec::new());
        assert_eq!(broken(&script, Rule::L2, &[Rule::L1]).violated(Rule::L2), 5);
    }

    #[test]
    fn acknowledged_without_an_offset_and_nowhere() {
        let mut script = five();
        script
            .send_as((2, 0), (true, 2), Outcome::Ok, -1)
            .last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L2, &[Rule::L1, Rule::L3]);
    }

    #[test]
    fn found_at_another_offset() {
        let mut script = Script::new();
        script.sent(0, 0).sent(1, 1).heal();
        script.last(0, 2, vec![at(0, record(1, 1)), at(1, record(1, 0))]);
        broken(&script, Rule::L2, &[Rule::L4]);
    }
}

mod l3_no_duplicate {
    use super::*;

    #[test]
    fn two_copies_with_idempotence() {
        let mut script = Script::new();
        script.send_as((1, 0), (true, 2), Outcome::Ok, 0).heal();
        script.last(0, 2, vec![at(0, record(1, 0)), at(1, record(1, 0))]);
        broken(&script, Rule::L3, &[Rule::L1, Rule::L2, Rule::L4, Rule::L5]);
    }

    #[test]
    fn two_copies_of_a_value_sent_once() {
        let mut script = Script::new();
        script.send_as((1, 0), (false, 1), Outcome::Ok, 0).heal();
        script.last(0, 2, vec![at(0, record(1, 0)), at(1, record(1, 0))]);
        broken(&script, Rule::L3, &[Rule::L1, Rule::L2, Rule::L4]);
    }

    #[test]
    fn three_copies_of_a_value_sent_twice() {
        let mut script = Script::new();
        script.send_as((1, 0), (false, 2), Outcome::Ok, 0).heal();
        script.last(
            0,
            3,
            (0..3).map(|offset| at(offset, record(1, 0))).collect(),
        );
        broken(&script, Rule::L3, &[Rule::L1, Rule::L2, Rule::L4]);
    }

    /// An unknown idempotent send, retried over a restart, landed twice.
    #[test]
    fn deduplication_forgotten_over_a_restart() {
        let mut script = Script::new();
        script
            .send_as((1, 0), (true, 1), Outcome::Info, -1)
            .restart("kill");
        script.send_as((1, 0), (true, 1), Outcome::Ok, 1).heal();
        script.last(0, 2, vec![at(0, record(1, 0)), at(1, record(1, 0))]);
        broken(&script, Rule::L3, &[Rule::L1, Rule::L2, Rule::L4]);
    }
}

mod l4_no_invented_read {
    use super::*;

    #[test]
    fn a_refused_value_was_read() {
        let mut script = Script::new();
        script
            .sent(0, 0)
            .send_as((1, 1), (true, 1), Outcome::Fail, -1)
            .heal();
        script.last(0, 2, run(0, 0, 2));
        broken(&script, Rule::L4, &[Rule::L1, Rule::L2, Rule::L3]);
    }

    #[test]
    fn a_value_that_nobody_sent() {
        let mut script = five();
        let mut all = run(0, 0, 5);
        all.push(at(5, record(77, 3)));
        script.last(0, 6, all);
        broken(&script, Rule::L4, &[Rule::L1, Rule::L2, Rule::L3]);
    }

    #[test]
    fn bytes_that_do_not_prove_themselves() {
        let mut script = five();
        script.poll(0, vec![at(0, record(1, 0))]);
        let mut all = run(0, 0, 5);
        all.push(at(5, foreign()));
        script.last(0, 6, all);
        broken(&script, Rule::L4, &[Rule::L1, Rule::L2, Rule::L3]);
    }

    #[test]
    fn a_value_of_another_partition() {
        let mut script = five();
        script
            .last(0, 5, run(0, 0, 5))
            .last_of(1, 0, 1, run(0, 2, 1));
        broken(&script, Rule::L4, &[Rule::L1, Rule::L2]);
    }

    /// Only a passing poll saw it: it was gone at the end.
    #[test]
    fn a_poll_saw_a_refused_value() {
        let mut script = five();
        script.send_as((2, 0), (true, 1), Outcome::Fail, -1);
        script
            .poll(5, vec![at(5, record(2, 0))])
            .last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L4, &[Rule::L1, Rule::L2, Rule::L3]);
    }
}

mod l5_order {
    use super::*;

    #[test]
    fn one_producer_out_of_order() {
        let mut script = Script::new();
        script.sent(0, 1).sent(1, 0).heal();
        script.last(0, 2, vec![at(0, record(1, 1)), at(1, record(1, 0))]);
        broken(&script, Rule::L5, &[Rule::L1, Rule::L2, Rule::L3, Rule::L4]);
    }

    /// Pipelined, without idempotence, each sent once: still in order.
    #[test]
    fn a_pipeline_that_overtook_itself() {
        let mut script = Script::new();
        let begin = script.now;
        script.send_as((1, 0), (false, 1), Outcome::Ok, 1);
        script.send_as((1, 1), (false, 1), Outcome::Ok, 0);
        script.events[2].t_invoke = begin;
        script
            .heal()
            .last(0, 2, vec![at(0, record(1, 1)), at(1, record(1, 0))]);
        broken(&script, Rule::L5, &[Rule::L1, Rule::L2, Rule::L3, Rule::L4]);
    }

    /// A completed before B began, and lies behind it.
    #[test]
    fn across_clients_against_real_time() {
        let mut script = Script::new();
        script.send_as((1, 0), (true, 1), Outcome::Ok, 1);
        script.send_as((2, 0), (true, 1), Outcome::Ok, 0).heal();
        script.last(0, 2, vec![at(0, record(2, 0)), at(1, record(1, 0))]);
        broken(&script, Rule::L5, &[Rule::L1, Rule::L2, Rule::L3, Rule::L4]);
    }

    /// The later one was never acknowledged and landed in front all the same.
    #[test]
    fn an_unknown_send_landed_before_an_older_acknowledged_one() {
        let mut script = Script::new();
        script.send_as((1, 0), (true, 1), Outcome::Ok, 1);
        script.send_as((2, 0), (true, 1), Outcome::Info, -1).heal();
        script.last(0, 2, vec![at(0, record(2, 0)), at(1, record(1, 0))]);
        broken(&script, Rule::L5, &[Rule::L1, Rule::L2, Rule::L3, Rule::L4]);
    }
}

mod l6_internal_contiguity {
    use super::*;

    #[test]
    fn a_poll_that_left_one_out() {
        let mut script = five();
        let mut some = run(0, 0, 5);
        some.remove(2);
        script.poll(0, some).last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L6, &[Rule::L1, Rule::L2, Rule::L7]);
    }

    #[test]
    fn a_poll_that_fell_back() {
        let mut script = five();
        let mut some = run(0, 0, 5);
        some.swap(1, 2);
        script.poll(0, some).last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L6, &[Rule::L1, Rule::L2, Rule::L7]);
    }

    #[test]
    fn a_poll_that_gave_one_twice() {
        let mut script = five();
        let mut some = run(0, 0, 5);
        some.insert(1, some[1]);
        script.poll(0, some).last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L6, &[Rule::L1, Rule::L2, Rule::L3, Rule::L7]);
    }

    #[test]
    fn a_final_read_that_gave_one_twice() {
        let mut script = five();
        let mut all = run(0, 0, 5);
        all.insert(1, all[1]);
        script.last(0, 5, all);
        broken(&script, Rule::L6, &[Rule::L1, Rule::L2, Rule::L3]);
    }
}

mod l7_external_contiguity {
    use super::*;

    #[test]
    fn a_poll_that_starts_too_late() {
        let mut script = five();
        script
            .poll(0, run(0, 0, 2))
            .poll(3, run(3, 3, 2))
            .last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L7, &[Rule::L1, Rule::L2, Rule::L6]);
    }

    #[test]
    fn a_poll_that_goes_back() {
        let mut script = five();
        script
            .poll(0, run(0, 0, 3))
            .poll(1, run(1, 1, 4))
            .last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L7, &[Rule::L1, Rule::L2, Rule::L6]);
    }

    /// The broker answered a fetch at 0 with records from 2 on.
    #[test]
    fn the_first_records_left_out() {
        let mut script = five();
        script.poll(0, run(2, 2, 3)).last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L7, &[Rule::L1, Rule::L2, Rule::L6]);
    }

    /// The position moved past records that were not given.
    #[test]
    fn a_position_that_ran_ahead() {
        let mut script = five();
        let mut poll = Script::polled(0, run(0, 0, 2));
        poll.next = Offset(4);
        script
            .event(9, 1, Outcome::Ok, Action::Poll(poll))
            .poll(4, run(4, 4, 1));
        script.last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L7, &[Rule::L1, Rule::L2, Rule::L6]);
    }

    /// Same generation: no excuse.
    #[test]
    fn a_jump_inside_one_generation() {
        let mut script = five();
        for from in [0, 3] {
            let mut poll = Script::polled(from, run(from, from as u64, 2));
            poll.generation = 4;
            script.event(9, 1, Outcome::Ok, Action::Poll(poll));
        }
        script.last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L7, &[Rule::L1, Rule::L2, Rule::L6]);
    }
}

mod l8_durable_reads {
    use super::*;

    /// Read, never acknowledged, and gone: a consumer was shown what a crash took back.
    #[test]
    fn an_unknown_value_was_read_and_lost() {
        let mut script = Script::new();
        script
            .sent(0, 0)
            .send_as((1, 1), (true, 1), Outcome::Info, -1);
        script
            .poll(0, run(0, 0, 2))
            .restart("kill")
            .heal()
            .last(0, 1, run(0, 0, 1));
        broken(&script, Rule::L8, &[Rule::L1, Rule::L2, Rule::L3, Rule::L4]);
    }

    #[test]
    fn an_acknowledged_value_was_read_and_lost() {
        let mut script = five();
        script.poll(0, run(0, 0, 5)).last(0, 3, run(0, 0, 3));
        broken(&script, Rule::L8, &[Rule::L1, Rule::L3, Rule::L4]);
    }

    /// Another value stands there now.
    #[test]
    fn a_read_value_was_replaced() {
        let mut script = Script::new();
        script
            .sent(0, 0)
            .send_as((1, 1), (true, 1), Outcome::Info, -1);
        script.poll(0, run(0, 0, 2)).restart("kill");
        script.send_as((2, 0), (true, 1), Outcome::Ok, 1).heal();
        script.last(0, 2, vec![at(0, record(1, 0)), at(1, record(2, 0))]);
        broken(&script, Rule::L8, &[Rule::L2, Rule::L3, Rule::L4]);
    }

    /// A look-up without a position counts as well.
    #[test]
    fn a_single_read_was_lost() {
        let mut script = five();
        script.send_as((2, 0), (true, 1), Outcome::Info, -1);
        let read = Script::polled(5, vec![at(5, record(2, 0))]);
        script
            .event(7, 1, Outcome::Ok, Action::Read(read))
            .last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L8, &[Rule::L1, Rule::L2, Rule::L3, Rule::L4]);
    }
}

mod l9_monotone_ends {
    use super::*;

    #[test]
    fn below_an_acknowledged_value_after_a_restart() {
        let mut script = five();
        script.restart("kill").ends(0, 4).last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L9, &[Rule::L1, Rule::L2]);
    }

    #[test]
    fn below_a_value_that_was_read() {
        let mut script = Script::new();
        script
            .sent(0, 0)
            .send_as((1, 1), (true, 1), Outcome::Info, -1)
            .poll(0, run(0, 0, 2));
        script
            .restart("kill")
            .ends(0, 1)
            .heal()
            .last(0, 2, run(0, 0, 2));
        broken(&script, Rule::L9, &[Rule::L1, Rule::L2, Rule::L8]);
    }

    #[test]
    fn log_start_goes_back() {
        let mut script = five();
        script
            .ends(2, 5)
            .restart("kill")
            .ends(0, 5)
            .last(2, 5, run(2, 2, 3));
        broken(&script, Rule::L9, &[Rule::L1, Rule::L2]);
    }

    #[test]
    fn the_high_watermark_goes_back() {
        let mut script = Script::new();
        script
            .sent(0, 0)
            .ends(0, 3)
            .restart("kill")
            .ends(0, 1)
            .heal();
        script.last(0, 1, run(0, 0, 1));
        broken(&script, Rule::L9, &[Rule::L1, Rule::L2]);
    }

    /// The ends inside a fetch answer count too.
    #[test]
    fn a_fetch_answer_with_a_low_watermark() {
        let mut script = five();
        let mut poll = Script::polled(0, run(0, 0, 5));
        poll.ends = Some(bounds(0, 0));
        script
            .event(9, 1, Outcome::Ok, Action::Poll(poll))
            .last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L9, &[Rule::L1, Rule::L2, Rule::L7]);
    }
}

mod l10_unseen {
    use super::*;

    #[test]
    fn a_consumer_that_is_stuck() {
        let mut script = five();
        script
            .poll(0, run(0, 0, 2))
            .poll(2, Vec::new())
            .last(0, 5, run(0, 0, 5));
        let report = broken(&script, Rule::L10, &[Rule::L1, Rule::L2, Rule::L7]);
        assert_eq!(report.violated(Rule::L10), 3);
    }

    #[test]
    fn read_after_sixty_one_seconds() {
        let mut script = five();
        script.poll(0, run(0, 0, 4));
        script.now += 61_000 * TICK;
        script.poll(4, run(4, 4, 1)).last(0, 5, run(0, 0, 5));
        broken(&script, Rule::L10, &[Rule::L1, Rule::L2, Rule::L7]);
    }

    /// A value acknowledged after healing is never read at all.
    #[test]
    fn a_late_acknowledged_value_is_never_read() {
        let mut script = five();
        script
            .poll(0, run(0, 0, 5))
            .sent(5, 5)
            .last(0, 6, run(0, 0, 6));
        broken(&script, Rule::L10, &[Rule::L1, Rule::L2, Rule::L7]);
    }

    /// A second partition's consumer keeps polling and gets nothing.
    #[test]
    fn an_empty_partition_that_is_not() {
        let mut script = five();
        script.poll(0, run(0, 0, 5));
        let sent = Sent {
            place: place(1),
            idempotent: true,
            acks: 1,
            attempts: 1,
            base_offset: Some(Offset(0)),
            records: vec![record(2, 0)],
        };
        script.event(2, 1, Outcome::Ok, Action::Send(sent));
        let mut poll = Script::polled(0, Vec::new());
        poll.place = place(1);
        script
            .event(9, 1, Outcome::Ok, Action::Poll(poll))
            .last(0, 5, run(0, 0, 5));
        script.last_of(1, 0, 1, vec![at(0, record(2, 0))]);
        broken(&script, Rule::L10, &[Rule::L1, Rule::L2, Rule::L7]);
    }
}
