//! P11: a client that asks the wrong endpoint costs one hop between two cores. The same requests
//! once to the core that owns the partition and once to the other one, in turn.
//!
//! Two cores of the broker and, where there are no more, the client beside one of them. What is
//! compared is processor time of the broker's threads, not elapsed time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::bench::{Bench, Served, beside};
use crate::crowd::{Crowd, produce_frame, was_refused};
use crate::figures::{Figures, Goal};
use crate::support::broker::Options;
use crate::support::client::Connection;
use crate::support::cluster::Cluster;

const TOPIC: &str = "hop";
const PARTITIONS: i32 = 16;
const CONNECTIONS: i32 = 32;
const MESSAGE_BYTES: usize = 100;
const PATIENCE: Duration = Duration::from_secs(30);
/// Time without any answer after which the broker counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(10);

pub fn measure(bench: &mut Bench, figures: &mut Figures) -> Result<(), String> {
    let home = bench.home();
    let options = Options::new(home.path())
        .cores(2)
        .with(&["--shards", "2", "--log", "warn"]);
    let served = bench.serve(&options);
    let made = Connection::open(served.ready.kafka[0], PATIENCE)
        .map_err(|error| error.to_string())?
        .create_topic(TOPIC, PARTITIONS, &[]);
    if !matches!(made, Ok(0)) {
        return Err(format!("the topic was not made: {made:?}"));
    }
    let span = Duration::from_secs_f64(bench.seconds);
    for _ in 0..bench.rounds {
        let direct = run(bench, figures, &served, false, span);
        let misrouted = run(bench, figures, &served, true, span);
        let name = "CPU of a misrouted request / a direct one";
        figures.goal(name, Goal::AtMost(1.15), misrouted.cpu_us / direct.cpu_us);
        let name = "durable writes of a misrouted request / a direct one";
        // The size of a group varies from round to round; a further flush would double it.
        figures.goal(name, Goal::AtMost(1.1), misrouted.flushes / direct.flushes);
    }
    served.stop();
    Ok(())
}

struct Each {
    cpu_us: f64,
    flushes: f64,
}

fn run(
    bench: &mut Bench,
    figures: &mut Figures,
    served: &Served,
    is_misrouted: bool,
    span: Duration,
) -> Each {
    let name = if is_misrouted { "misrouted" } else { "direct" };
    let (cost, answers) = beside(|| {
        let mut crowd = Crowd::connect(plan(served, is_misrouted));
        let before = served.sample();
        let answers = closed_loop(&mut crowd, span);
        (served.sample().since(&before), answers as f64)
    });
    bench.record(name, cost.to_json());
    let each = Each {
        cpu_us: cost.cpu_s * 1e6 / answers,
        flushes: cost.flushes() as f64 / answers,
    };
    figures.add(
        &format!("{name}: requests a second"),
        answers / cost.seconds,
    );
    figures.add(&format!("{name}: broker's CPU, us a request"), each.cpu_us);
    figures.add(&format!("{name}: durable writes a request"), each.flushes);
    let forwarded = cost.count("forward", "sent") as f64 / answers;
    figures.add(
        &format!("{name}: share that went to another core"),
        forwarded,
    );
    each
}

/// Each connection's endpoint and request.
fn plan(served: &Served, is_misrouted: bool) -> Vec<(SocketAddr, Vec<u8>)> {
    let endpoints = &served.ready.kafka;
    let cluster = Cluster::open(endpoints[0], &[TOPIC], PATIENCE).expect("Metadata answers");
    let member = |index: i32| {
        let partition = index % PARTITIONS;
        let leader = cluster.leader(TOPIC, partition);
        let other = endpoints.iter().find(|endpoint| **endpoint != leader);
        let other = *other.expect("two cores have two endpoints");
        let endpoint = if is_misrouted { other } else { leader };
        let request = produce_frame(TOPIC, partition, index, MESSAGE_BYTES);
        (endpoint, request)
    };
    (0..CONNECTIONS).map(member).collect()
}

/// Everybody asks again once answered, for `span`; returns when all are answered: how many were.
fn closed_loop(crowd: &mut Crowd, span: Duration) -> u64 {
    let until = Instant::now() + span;
    crowd.send_all();
    let (mut answers, mut open) = (0, crowd.len());
    let mut heard = Instant::now();
    while open > 0 {
        let answered = crowd.wait(1000);
        let now = Instant::now();
        if !answered.is_empty() {
            heard = now;
        }
        assert!(now - heard < SILENCE_MAX, "no answer for ten seconds");
        for index in answered {
            assert!(
                !was_refused(TOPIC, crowd.answer(index)),
                "a produce was refused"
            );
            answers += 1;
            if now < until {
                crowd.send(index);
            } else {
                open -= 1;
            }
        }
    }
    answers
}
