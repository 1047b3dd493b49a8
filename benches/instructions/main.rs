//! How many instructions a request costs on the pure paths: decode → validate → stage → pack →
//! answer, and decode → plan → answer from memory. Meant to be counted by `scripts/instructions.sh`
//! (`valgrind --tool=callgrind`), which runs it with two numbers of rounds and takes the
//! difference, so that start and warm-up drop out. One thread and a simulated disk that answers at
//! once: the same instructions every time, with the simulation's own among them.
//!
//! `instructions PATH ROUNDS`, and the paths are in [`paths`]. Without arguments every path is
//! taken once, as a test of itself.

#[path = "../../tests/allocations/one_core.rs"]
mod one_core;
#[path = "../../tests/support/mod.rs"]
mod support;

use bytes::Bytes;
use futures_util::future::join_all;
use one_core::{OneCore, fetch_frame, produce_frame, records_batch};
use penstock::env::sim::Sim;

/// One way through the core.
struct PathThrough {
    name: &'static str,
    /// Asked before the rounds, so often.
    first: (Bytes, usize),
    /// Asked in each round, so often at once.
    each: (Bytes, usize),
}

/// Rounds before the counted ones, in which what grows gets its size.
const WARM: u64 = 50;
const VALUE_BYTES: usize = 100;

fn paths() -> Vec<PathThrough> {
    let produce = |records| produce_frame(0, &records_batch(records, VALUE_BYTES, None));
    let path = |name, first, each| PathThrough { name, first, each };
    let nothing = || (Bytes::new(), 0);
    vec![
        path("produce-1-record", nothing(), (produce(1), 1)),
        path("produce-1-record-64-together", nothing(), (produce(1), 64)),
        path("produce-1000-records", nothing(), (produce(1_000), 1)),
        path("fetch-1-batch", (produce(1), 1), (fetch_frame(1, 0), 1)),
        path(
            "fetch-1000-batches",
            (produce(1), 1_000),
            (fetch_frame(1, 0), 1),
        ),
        path(
            "fetch-1000-records",
            (produce(1_000), 1),
            (fetch_frame(1, 0), 1),
        ),
    ]
}

/// Takes the path; the length of the last answer proves that something was done.
fn take(path: PathThrough, rounds: u64) -> usize {
    let sim = Sim::new(7).unrecorded().instant().polls_max(u64::MAX);
    let run = sim.run(move |env| async move {
        let core = OneCore::open(env, "/shard-000".as_ref()).await;
        let (first, times) = path.first;
        for _ in 0..times {
            core.ask(&first).await;
        }
        let (frame, together) = path.each;
        let mut answered = 0;
        for _ in 0..WARM + rounds {
            let answers = join_all((0..together).map(|_| core.ask(&frame))).await;
            answered = answers.iter().map(Bytes::len).sum();
        }
        answered
    });
    run.value
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments
        .iter()
        .map(String::as_str)
        .filter(|argument| *argument != "--bench")
        .collect();
    match arguments[..] {
        [] => {
            for path in paths() {
                let name = path.name;
                println!("{name}: answers of {} bytes", take(path, 1));
            }
        }
        [name, rounds] => {
            let path = paths().into_iter().find(|path| path.name == name);
            let path = path.unwrap_or_else(|| panic!("no path {name}"));
            let rounds = rounds.parse().expect("a number of rounds");
            println!("{name} {rounds}: answers of {} bytes", take(path, rounds));
        }
        _ => panic!("instructions PATH ROUNDS"),
    }
}
