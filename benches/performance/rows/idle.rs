//! P10: many consumers with nothing to read, each with a fetch parked at the end of a topic. One
//! thread on CPU 1 holds all their sockets.
//!
//! Three cases: connections that ask nothing; fetches that may wait for 30 s, as a consumer that
//! wants to be idle would ask; fetches that wait for 500 ms, the default of clients: 10,000 of
//! them ask 20,000 times a second, which is no idle broker, and is told without a goal.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::bench::{Bench, Served, beside};
use crate::crowd::Crowd;
use crate::figures::{Figures, Goal};
use crate::sample::Cost;
use crate::support::client::{Connection, fetch_body, frame};

const CONSUMERS: u64 = 10_000;
const PARTITIONS: i32 = 16;
const TOPIC: &str = "idle";
const FETCH: i16 = 1;
const FETCH_VERSION: i16 = 11;
const PATIENCE: Duration = Duration::from_secs(30);

struct Case {
    name: &'static str,
    /// `None`: asks nothing.
    wait_ms: Option<i32>,
    has_goal: bool,
}

const CASES: [Case; 3] = [
    Case {
        name: "connected",
        wait_ms: None,
        has_goal: true,
    },
    Case {
        name: "waiting 30 s",
        wait_ms: Some(30_000),
        has_goal: true,
    },
    Case {
        name: "waiting 500 ms",
        wait_ms: Some(500),
        has_goal: false,
    },
];

pub fn measure(bench: &mut Bench, figures: &mut Figures) -> Result<(), String> {
    let consumers = bench.size(CONSUMERS, 50);
    for _ in 0..bench.rounds {
        for case in &CASES {
            // A broker each: memory that one case took is there for the next.
            let home = bench.home();
            let limits = ["--max-connections", "20000", "--accept-rate-max", "100000"];
            let served = bench.serve(&bench.options(&home).with(&limits));
            let made = Connection::open(served.ready.kafka[0], PATIENCE)
                .map_err(|error| error.to_string())?
                .create_topic(TOPIC, PARTITIONS, &[]);
            if !matches!(made, Ok(0)) {
                return Err(format!("the topic was not made: {made:?}"));
            }
            // Longer than elsewhere: one tick of the kernel's count is 1 % of a second.
            let span = Duration::from_secs_f64(2.0 * bench.seconds);
            let seen = beside(|| crowded(&served, consumers, case, span));
            bench.record(case.name, seen.cost.to_json());
            tell(figures, consumers, case, &seen);
            served.stop();
        }
    }
    Ok(())
}

struct Seen {
    cost: Cost,
    rss_kib_before: u64,
    parked: i64,
    answers: u64,
}

fn crowded(served: &Served, consumers: u64, case: &Case, span: Duration) -> Seen {
    let endpoint = served.ready.kafka[0];
    let rss_kib_before = served.sample().rss_kib;
    let plan = (0..consumers).map(|index| (endpoint, request(index, case)));
    let mut crowd = Crowd::connect(plan.collect::<Vec<(SocketAddr, Vec<u8>)>>());
    if case.wait_ms.is_some() {
        crowd.send_all();
    }
    // What connecting cost is not what being idle costs: the kernel completes a connection long
    // before the broker accepts it.
    let begin = Instant::now();
    while served.sample().gauge("connections", "open") < consumers as i64 {
        assert!(begin.elapsed() < PATIENCE, "not everybody was accepted");
        answer_for(&mut crowd, Duration::from_millis(100));
    }
    answer_for(&mut crowd, Duration::from_secs(1));
    let before = served.sample();
    let answers = answer_for(&mut crowd, span);
    let after = served.sample();
    let cost = after.since(&before);
    Seen {
        parked: after.gauge("fetch", "parked"),
        cost,
        rss_kib_before,
        answers,
    }
}

/// Whoever is answered asks again, for `span`: how many were.
fn answer_for(crowd: &mut Crowd, span: Duration) -> u64 {
    let until = Instant::now() + span;
    let mut answers = 0;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        for index in crowd.wait(left.as_millis() as i32 + 1) {
            answers += 1;
            crowd.send(index);
        }
    }
    answers
}

fn request(index: u64, case: &Case) -> Vec<u8> {
    let partition = (index % PARTITIONS as u64) as i32;
    let wait_ms = case.wait_ms.unwrap_or(0);
    let body = fetch_body(TOPIC, &[(partition, 0)], wait_ms, 1 << 20);
    frame(FETCH, FETCH_VERSION, index as i32, &body)
}

fn tell(figures: &mut Figures, consumers: u64, case: &Case, seen: &Seen) {
    let goal = |most| {
        if case.has_goal {
            Goal::AtMost(most)
        } else {
            Goal::None
        }
    };
    let who = format!("{consumers} {}", case.name);
    let busy = 100.0 * seen.cost.cpu_s / seen.cost.seconds;
    figures.goal(
        &format!("{who}: broker's CPU, % of a core"),
        goal(1.0),
        busy,
    );
    let grown = seen.cost.rss_kib.saturating_sub(seen.rss_kib_before) as f64;
    let each = grown / consumers as f64;
    figures.goal(&format!("{who}: memory, KiB each"), goal(20.0), each);
    if case.wait_ms.is_some() {
        figures.add(
            &format!("{who}: fetches parked at the end"),
            seen.parked as f64,
        );
        let rate = seen.answers as f64 / seen.cost.seconds;
        figures.add(&format!("{who}: answers a second"), rate);
    }
}
