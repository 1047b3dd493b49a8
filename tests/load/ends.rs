//! How loads end: with a broker that dies or says no, by hand, and with which exit code.

use super::proxy::Proxy;
use super::{assert_consistent, binary, ended, load, measured, start, sums, wait};
use crate::support::client::Connection;
use penstock::load::run::{Ended, EventKind};
use std::time::Duration;

/// No test waits longer for anything: the machine may be very busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// Goal: sent = acknowledged + failed + unanswered, with a broker that is killed in the middle, and
/// failures stand apart from successes. Method: `kill -9` after a second of three.
#[test]
fn a_killed_broker_is_counted() {
    let (_home, broker, ready) = start("load-killed", &[]);
    let running = std::thread::spawn({
        let ready = ready.clone();
        move || {
            let flags = "--rate 1000 --duration 3s --warm-up 0s --producers 4 --drain-ms 500 \
                         --timeout-ms 2000 --topic killed";
            load(&ready, flags)
        }
    });
    std::thread::sleep(Duration::from_millis(1500));
    broker.kill();
    let run = running.join().expect("it ends by itself");
    assert_consistent(&run);
    let (counts, _) = sums(&run.intervals);
    assert_eq!(counts.offered, 3000, "by the schedule alone");
    assert!(
        counts.acknowledged > 0 && counts.sent < counts.offered,
        "{counts:?}"
    );
    let lost = |kind| run.events.iter().any(|event| event.kind == kind);
    assert!(lost(EventKind::BrokerLost), "{:?}", run.events);
    assert_eq!(run.ended, Ended::Completed, "it went on to its planned end");
}

/// Goal: what has no answer at the end counts as "at least so long". Method: the broker is stopped
/// half a second before the end and the load waits only a moment.
#[test]
fn the_unanswered_count() {
    let (_home, broker, ready) = start("load-unanswered", &[]);
    let running = std::thread::spawn({
        let ready = ready.clone();
        move || {
            let flags = "--rate 500 --duration 3s --warm-up 0s --drain-ms 200 --in-flight 3 \
                         --topic unanswered";
            load(&ready, flags)
        }
    });
    std::thread::sleep(Duration::from_millis(1500));
    broker.signal(19);
    let run = running.join().expect("it ends by itself");
    broker.signal(18);
    assert_consistent(&run);
    let (counts, latencies) = sums(&run.intervals);
    assert_eq!(counts.offered, 1500);
    assert!(counts.unanswered > 0, "{counts:?}");
    // Each was sent before the end, and waited at least for the drain.
    assert!(
        latencies.unanswered.min() >= 190_000,
        "{}",
        latencies.unanswered.min()
    );
}

/// Goal: a load that is limited by number does not wait for ever for a broker that is gone.
/// Method: `kill -9`, far more messages than were sent by then.
#[test]
fn a_lost_broker_is_no_eternal_hang() {
    let (_home, broker, ready) = start("load-hang", &[]);
    let flags = "-n 1000000 --rate 1000 --warm-up 0s --timeout-ms 1000 --drain-ms 500 --topic hang";
    let child = binary(&ready, flags).spawn().expect("it starts");
    std::thread::sleep(Duration::from_secs(2));
    broker.kill();
    let output = wait(child, PATIENCE);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains("lost"), "{errors}");
}

/// Goal: Ctrl-C keeps the results. Method: SIGINT in the middle of a long run; the summary is
/// there and the exit code is that of the load so far.
#[test]
fn an_interrupt_keeps_the_results() {
    let (_home, _broker, ready) = start("load-interrupt", &[]);
    let flags = "--rate 200 --duration 10m --topic interrupt";
    let child = binary(&ready, flags).spawn().expect("it starts");
    std::thread::sleep(Duration::from_secs(4));
    let pid = child.id().to_string();
    let told = std::process::Command::new("kill")
        .args(["-2", &pid])
        .status();
    assert!(told.is_ok_and(|status| status.success()));
    let output = wait(child, PATIENCE);
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(
        !text.is_empty() && errors.contains("Ctrl-C"),
        "{text}\n{errors}"
    );
}

/// Goal: nothing acknowledged is never success, and the error is named. Method: messages larger
/// than the topic takes.
#[test]
fn nothing_acknowledged_has_its_own_code() {
    let (_home, _broker, ready) = start("load-nothing", &[]);
    let mut connection = Connection::open(ready.kafka[0], PATIENCE).expect("connected");
    let settings = [("max.message.bytes", "1000")];
    let made = connection.create_topic("small", 1, &settings);
    assert_eq!(made.expect("answered"), 0);
    let flags = "--topic small --no-create --size 5000 -n 20 --warm-up 0s";
    let output = ended(&ready, flags);
    assert_eq!(output.status.code(), Some(13), "{output:?}");
    let run = load(&ready, flags);
    assert_consistent(&run);
    let (counts, _) = sums(measured(&run));
    assert_eq!((counts.acknowledged, counts.failed), (0, 20));
    assert_eq!(run.failures[0].error, "MESSAGE_TOO_LARGE");
    assert!(run.failures[0].first_ms <= run.failures[0].last_ms);
}

/// Goal: a planted fault is caught and has its own code. Method: something between broker and load
/// that flips one bit of one payload on its way to the consumer.
#[test]
fn a_flipped_bit_is_caught() {
    let (_home, _broker, ready) = start("load-flip", &["--advertised-host", "127.0.0.2"]);
    let proxy = Proxy::start(ready.kafka[0], 20);
    let mut through = ready.clone();
    through.kafka[0] = proxy.address;
    let flags = "--topic flip -n 300 --rate 300 --warm-up 0s --size 200 --consumers 1 --verify \
                 --workers 1";
    let output = ended(&through, flags);
    assert!(proxy.has_flipped(), "the fault was planted: {output:?}");
    assert_eq!(output.status.code(), Some(12), "{output:?}");
}
