//! Whose fault a delay is, and that none of it is hidden.

use super::{assert_consistent, load, measured, start, sums};
use penstock::load::honesty::Total;
use penstock::load::run::EventKind;
use std::time::{Duration, Instant};

/// Goal: a stall of the broker shows as arithmetic demands, with any window. Method: 500 messages a
/// second, at most two requests of one message on their way; the broker is stopped for about a
/// second in the middle. Every message that was meant to be sent during the stop waited at least
/// until its end: of a stop of length D, those due in its first D - X waited longer than X. What
/// was measured must be at least that, and the service time alone must not show it.
#[test]
fn a_stall_shows_as_arithmetic_demands() {
    let (_home, broker, ready) = start("load-stall", &[]);
    let running = std::thread::spawn({
        let ready = ready.clone();
        move || {
            let flags = "--rate 500 --duration 4s --warm-up 0s --size 100 --workers 1 \
                         --in-flight 2 --batch-messages 1 --topic stall";
            load(&ready, flags)
        }
    });
    std::thread::sleep(Duration::from_millis(1500));
    broker.signal(19);
    let stopped = Instant::now();
    std::thread::sleep(Duration::from_secs(1));
    let stall_s = stopped.elapsed().as_secs_f64();
    broker.signal(18);
    let run = running.join().expect("the load ends");
    assert_consistent(&run);
    let (counts, latencies) = sums(measured(&run));
    assert_eq!(counts.offered, 2000, "by the schedule alone");
    let all = &latencies.response;
    for beyond_s in [0.9, 0.5, 0.1] {
        let least = (500.0 * (stall_s - beyond_s)).floor() as u64 - 1;
        let beyond_us = (beyond_s * 1e6) as u64;
        let waited = all.count_between(beyond_us, u64::MAX >> 1)
            + latencies.unanswered.count_between(beyond_us, u64::MAX >> 1);
        assert!(
            waited + (counts.offered - counts.sent) >= least,
            "{beyond_s} s: {waited} < {least}"
        );
    }
    assert!(all.value_at_quantile(0.999) as f64 >= (stall_s - 0.01) * 1e6);
    let beyond = latencies.service.count_between(900_000, u64::MAX >> 1);
    assert!(
        beyond <= 2 + counts.failed,
        "only the window was in service: {beyond}"
    );
    // Waiting for the broker is not the generator's lag: those that fell due while the way was
    // barred lag from when it was free again.
    let stalls: Vec<_> = run
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Stall)
        .collect();
    assert!(!stalls.is_empty(), "{:?}", run.events);
}

/// Goal: the generator's own limit is named. Method: one worker that must compress far more than
/// it can, for a broker that only has to store the outcome.
#[test]
fn the_generator_blames_itself() {
    let (_home, _broker, ready) = start("load-limit", &[]);
    let flags = "--rate 2M --duration 3s --warm-up 0s --size 1000 --workers 1 --producers 8 \
                 --in-flight 5 -z gzip --drain-ms 20000 --topic limit";
    let run = load(&ready, flags);
    assert_consistent(&run);
    let (counts, _) = sums(measured(&run));
    assert_eq!(counts.offered, 6_000_000, "by the schedule alone");
    assert!(counts.sent < counts.offered);
    let limit = Total::of(measured(&run)).generator_limit(run.about.worker_busy[0]);
    assert!(limit.is_some(), "busy {:?}", run.about.worker_busy);
}

/// Goal: the three latencies are what they say. Method: produce and consume; each response is at
/// least the service time of the same message, each receipt is timed once for each set of
/// consumers, none came before it was meant to be sent.
#[test]
fn three_latencies_stand_in_their_relations() {
    let (_home, _broker, ready) = start("load-latencies", &[]);
    let flags = "--rate 400 -n 1000 --warm-up 500ms --size 100..300 --producers 2 \
                 --partitions 3 --consumers 2 --consume-times 2 --verify --workers 2 --topic three";
    let run = load(&ready, flags);
    assert_consistent(&run);
    let (counts, latencies) = sums(&run.intervals);
    assert_eq!((counts.offered, counts.acknowledged), (1000, 1000));
    assert_eq!((counts.received, counts.negative), (2000, 0));
    for quantile in [0.0, 0.5, 0.9, 0.99, 1.0] {
        let response = latencies.response.value_at_quantile(quantile);
        assert!(
            response >= latencies.service.value_at_quantile(quantile),
            "{quantile}"
        );
    }
    let found = run.verification.expect("it was asked for");
    assert!(found.passed(), "{found:?}");
    assert_eq!(found.proven, 2000);
    assert!(run.setup.first_fetch_ms.is_some());
}
