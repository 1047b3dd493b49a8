//! R1: `kill -9` under load. Goal: whatever instant the process dies at — under load, while it
//! starts, while it recovers — nothing acknowledged is lost, nothing invented, nothing read is
//! taken back, no idempotent value doubled, and order holds. Method: producers, consumers and a
//! watcher drive the real binary and record every answer before they act on it; a nemesis kills
//! and starts it; at the end everything is read back and the checker of `penstock::check` judges
//! the history.
//!
//! `PENSTOCK_KILLS` sets the number of kill cycles (5), `PENSTOCK_SEED` replays a plan: what is
//! sent, how, and when the nemesis strikes (the scheduler adds its own chance). The history is
//! kept when the verdict is bad; its path is printed.

#[path = "kill/consumer.rs"]
mod consumer;
#[path = "kill/field.rs"]
mod field;
#[path = "kill/final_read.rs"]
mod final_read;
#[path = "kill/nemesis.rs"]
mod nemesis;
#[path = "kill/producer.rs"]
mod producer;
mod support;

use std::thread;
use std::time::Duration;

use consumer::{Reader, Watcher};
use field::Field;
use penstock::check::Rule;
use producer::{Habit, Producer};
use support::broker::{self, Options};

/// Kill cycles without a setting.
const KILLS_DEFAULT: u32 = 5;
/// Time the clients get, once the nemesis is gone, to finish what they began.
const DRAIN_MAX: Duration = Duration::from_secs(50);

/// The producers of a campaign: with and without idempotence, alone and pipelined, all acks.
const HABITS: [Habit; 6] = [
    Habit {
        idempotent: true,
        acks: -1,
        window: 5,
    },
    Habit {
        idempotent: true,
        acks: -1,
        window: 1,
    },
    Habit {
        idempotent: true,
        acks: 1,
        window: 3,
    },
    Habit {
        idempotent: false,
        acks: 1,
        window: 1,
    },
    Habit {
        idempotent: false,
        acks: -1,
        window: 4,
    },
    Habit {
        idempotent: false,
        acks: 0,
        window: 1,
    },
];

fn setting(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().expect("the setting is a number"))
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let seed = setting("PENSTOCK_SEED").unwrap_or_else(|| fastrand::u64(..));
    let kills = setting("PENSTOCK_KILLS").map_or(KILLS_DEFAULT, |kills| kills as u32);
    println!("PENSTOCK_SEED={seed} PENSTOCK_KILLS={kills}");
    let home = broker::home("kill");
    // Small segments roll often; two shards whatever the number of cores.
    let options = Options::new(home.path()).with(&["--segment-bytes", "20MiB", "--shards", "2"]);
    let field = Field::new(home.path(), seed);
    let mut nemesis = nemesis::Nemesis::new(options, seed);
    nemesis.start_first(&field);

    let verdict = thread::scope(|scope| {
        let mut producers = Vec::new();
        for (number, habit) in (1u32..).zip(HABITS) {
            let field = &field;
            producers.push(scope.spawn(move || Producer::new(number, habit, field).run(field)));
        }
        for number in [101, 102] {
            let field = &field;
            scope.spawn(move || Reader::tailing(number, field).run(field));
        }
        scope.spawn(|| Reader::again_and_again(1000, &field).run(&field));
        scope.spawn(|| Watcher::new(200).run(&field));

        // A panic here must still let the clients go, or the scope would wait for ever.
        let guard = field.stop_when_dropped();
        nemesis.rage(&field, kills);
        field.heal(DRAIN_MAX);
        for producer in producers {
            let _ = producer.join();
        }
        let ends = final_read::ends(&field);
        field.set_targets(&ends);
        drop(guard);
        ends
    });

    // A clean stop and a start in between: what was read before must be read after.
    nemesis.restart_gently(&field);
    final_read::everything(&field, &verdict);
    final_read::topics_are_there(&field, &nemesis.created);
    nemesis.restart_gently(&field);
    drop(nemesis.finish());

    let report = field.recorder.judge();
    println!("{report}");
    println!("{}", nemesis.summary());
    let faults = field.faults();
    let proven = Rule::ALL.iter().all(|&rule| report.checked(rule) > 0);
    if !report.is_clean() || !faults.is_empty() || !proven {
        let kept = home.keep();
        panic!(
            "seed {seed}: broken {:?}, faults {faults:#?}, every rule applied: {proven}; \
             history and data kept in {}",
            report.broken(),
            kept.display()
        );
    }
}
