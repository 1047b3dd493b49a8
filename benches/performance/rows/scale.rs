//! P3 and P4: the same total rate over more partitions, and from more producers, must cost about
//! the same. Every number has its turn in each round.

use crate::bench::Bench;
use crate::figures::{Figures, Goal};

/// Messages a second of both rows.
const RATE: u64 = 20_000;
const RATE_SHORT: u64 = 500;

/// P3. A broker of its own for each number of partitions: 10,000 idle ones would burden the others.
/// For the highest rate a request has 256 messages, so that it is as large for any number.
pub fn partitions(bench: &mut Bench, figures: &mut Figures) -> Result<(), String> {
    let numbers: &[u32] = if bench.full {
        &[1, 1000, 10_000]
    } else {
        &[1, 100]
    };
    let rate = bench.size(RATE, RATE_SHORT);
    for _ in 0..bench.rounds {
        // Rate and p99 at the equal rate, highest rate; of one partition.
        let mut first = None;
        for number in numbers {
            let home = bench.home();
            let served = bench.serve(&bench.options(&home));
            let shape = format!(
                "--topic parts-{number} --partitions {number} --producers 64 --keys spread --size \
                 100 --warm-up 500ms --duration {}",
                bench.duration()
            );
            let label = format!("{number} partitions, {rate}/s");
            let flags = format!("{shape} --rate {rate}");
            let equal = bench.trusted_load(&served, &label, &flags, figures)?;
            let label = format!("{number} partitions, max");
            let flags = format!("{shape} --rate max --batch-messages 256 --in-flight 2");
            let highest = bench.trusted_load(&served, &label, &flags, figures)?;
            bench.record("memory, KiB", served.sample().rss_kib.into());
            served.stop();
            let acked = equal.acked_per_s();
            let p99 = equal.us("response", "p99");
            let most = highest.acked_per_s();
            figures.add(
                &format!("{number} partitions: acknowledged a second"),
                acked,
            );
            figures.add(
                &format!("{number} partitions: p50, us"),
                equal.us("response", "p50"),
            );
            figures.add(&format!("{number} partitions: p99, us"), p99);
            figures.add(&format!("{number} partitions: highest rate a second"), most);
            let Some((first_acked, first_p99, first_most)) = first else {
                first = Some((acked, p99, most));
                continue;
            };
            let name = format!("{number} against 1: acknowledged");
            figures.goal(&name, Goal::AtLeast(0.9), acked / first_acked);
            figures.goal(
                &format!("{number} against 1: p99"),
                Goal::AtMost(2.0),
                p99 / first_p99,
            );
            figures.add(
                &format!("{number} against 1: highest rate"),
                most / first_most,
            );
        }
    }
    Ok(())
}

/// P4.
pub fn producers(bench: &mut Bench, figures: &mut Figures) -> Result<(), String> {
    let numbers: &[u32] = if bench.full { &[4, 50, 500] } else { &[4, 50] };
    let rate = bench.size(RATE, RATE_SHORT);
    let home = bench.home();
    let served = bench.serve(&bench.options(&home));
    for _ in 0..bench.rounds {
        let mut first = None;
        for number in numbers {
            let label = format!("{number} producers, {rate}/s");
            let flags = format!(
                "--producers {number} --partitions 16 --size 1KiB --rate {rate} --warm-up 500ms \
                 --duration {}",
                bench.duration()
            );
            let before = served.sample();
            let load = bench.trusted_load(&served, &label, &flags, figures)?;
            let cost = served.sample().since(&before);
            bench.record("broker", cost.to_json());
            let p99 = load.us("response", "p99");
            figures.add(
                &format!("{number} producers: acknowledged a second"),
                load.acked_per_s(),
            );
            figures.add(
                &format!("{number} producers: p50, us"),
                load.us("response", "p50"),
            );
            figures.add(&format!("{number} producers: p99, us"), p99);
            let busy = 100.0 * cost.cpu_s / cost.seconds;
            figures.add(
                &format!("{number} producers: broker's CPU, % of a core"),
                busy,
            );
            match first {
                None => first = Some(p99),
                Some(first) => {
                    let name = format!("{number} against {}: p99", numbers[0]);
                    figures.goal(&name, Goal::AtMost(1.2), p99 / first);
                }
            }
        }
    }
    served.stop();
    Ok(())
}
