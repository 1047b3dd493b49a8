//! The same load, however it is split, and what belongs to the summary.

use super::{assert_consistent, load, measured, start, sums};
use penstock::load::run::{Phase, StepVerdict};

/// Goal: the same load has the same counts however it is split over processes and connections, and
/// the warm-up is in the data and out of the summary. Method: whole, as two parts, with 4 and with
/// 16 producers; what was offered must be equal interval by interval.
#[test]
fn a_split_load_is_the_same_load() {
    let (_home, _broker, ready) = start("load-split", &[]);
    let flags = "--rate 700 --duration 1500ms --warm-up 300ms --interval-ms 250 --seed 5";
    let offered = |more: &str| -> Vec<u64> {
        let run = load(&ready, &format!("{flags} {more}"));
        assert_consistent(&run);
        let (counts, _) = sums(&run.intervals);
        assert!(counts.acknowledged > 0, "{more}");
        let warm = run
            .intervals
            .iter()
            .filter(|one| one.phase == Phase::WarmUp);
        assert_eq!(
            sums(warm).0.offered + sums(measured(&run)).0.offered,
            counts.offered
        );
        run.intervals.iter().map(|one| one.counts.offered).collect()
    };
    let whole = offered("--topic whole --producers 4");
    assert_eq!(whole.iter().sum::<u64>(), 1260);
    assert_eq!(whole[..2].iter().sum::<u64>(), 210, "the warm-up");
    assert_eq!(offered("--topic sixteen --producers 16 --workers 1"), whole);
    let first = offered("--topic parts --producers 4 --part 1/2");
    let second = offered("--topic parts --producers 4 --part 2/2");
    let parts: Vec<u64> = first.iter().zip(&second).map(|(a, b)| a + b).collect();
    assert_eq!(parts, whole);
}

/// Goal: every step is there with its own messages. Method: three steps and a count.
#[test]
fn steps_follow_each_other() {
    let (_home, _broker, ready) = start("load-steps", &[]);
    let flags = "--steps 100,200,400 --duration 1s --warm-up 0s --topic steps --keys zipf:50 \
                 --partitions 3";
    let run = load(&ready, flags);
    assert_consistent(&run);
    for (step, expected) in [100, 200, 400].into_iter().enumerate() {
        let own = run
            .intervals
            .iter()
            .filter(|interval| interval.step == step);
        assert_eq!(sums(own).0.offered, expected);
        assert_eq!(run.steps[step].rate_per_s, Some(expected as f64));
    }
}

/// Goal: a search lists each step with its verdict and confirms its answer. Method: a bound that
/// any broker keeps at a rate of a few messages, and none at all; steps are short.
#[test]
fn a_search_lists_its_steps() {
    let (_home, _broker, ready) = start("load-search", &[]);
    let flags = "--search max<0ms --search-from 20 --search-step 300ms --duration 300ms \
                 --warm-up 0s --topic search";
    let run = load(&ready, flags);
    assert_consistent(&run);
    let verdicts: Vec<_> = run.steps.iter().map(|step| step.verdict).collect();
    assert!(verdicts.len() > 1, "{verdicts:?}");
    assert!(
        verdicts
            .iter()
            .all(|one| one.is_some_and(|verdict| verdict != StepVerdict::Held)),
        "{verdicts:?}"
    );
    assert!(run.steps.iter().all(|step| step.name != "confirm"));
}

/// Goal: a load limited by number sends exactly that number, in an open and in a closed loop, with
/// every codec, and its step lasts as long as it took. Method: small loads of each kind.
#[test]
fn a_number_ends_the_load() {
    let (_home, _broker, ready) = start("load-number", &[]);
    for more in [
        "--rate 2000 --arrivals poisson",
        "--rate max --batch-messages 7",
        "--rate max -z lz4 --keys uniform:20",
        "--rate max -z zstd --size zipf:40..400 --acks 1",
        "--rate max -z snappy --payload compress:0.5 --acks 0",
        "--rate 5000 -z gzip --linger-us 5000 --keys spread",
    ] {
        let flags = format!(
            "-n 600 --warm-up 0s --topic number --partitions 4 --producers 2 --size 200 \
             --consumers 1 --verify {more}"
        );
        let run = load(&ready, &flags);
        assert_consistent(&run);
        let (counts, _) = sums(&run.intervals);
        assert_eq!((counts.offered, counts.acknowledged), (600, 600), "{more}");
        let found = run.verification.expect("it was asked for");
        assert!(found.passed() && found.proven == 600, "{more}: {found:?}");
        assert!(run.steps[0].length_ms < 100_000_000, "{more}");
    }
}
