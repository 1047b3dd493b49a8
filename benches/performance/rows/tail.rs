//! P8: consumers that keep up read from memory, and a message reaches them soon after it is
//! durable. Both medians come from one load, so they share its every moment.

use crate::bench::Bench;
use crate::figures::{Figures, Goal};

pub fn measure(bench: &mut Bench, figures: &mut Figures) -> Result<(), String> {
    let home = bench.home();
    let served = bench.serve(&bench.options(&home));
    let rate = bench.size(5000, 500);
    let flags = format!(
        "--partitions 4 --producers 8 --consumers 4 --size 1KiB --rate {rate} --warm-up 500ms \
         --duration {}",
        bench.duration()
    );
    for _ in 0..bench.rounds {
        let before = served.sample();
        let load = bench.trusted_load(&served, "producers, consumers", &flags, figures)?;
        let cost = served.sample().since(&before);
        bench.record("broker", cost.to_json());
        let durable = load.us("response", "p50");
        let received = load.us("end_to_end", "p50");
        figures.add("durable p50, us", durable);
        figures.add("end to end p50, us", received);
        figures.goal(
            "end to end - durable, us",
            Goal::AtMost(200.0),
            received - durable,
        );
        figures.add("end to end p99, us", load.us("end_to_end", "p99"));
        let [hits, misses] =
            ["cache_hits", "cache_misses"].map(|name| cost.count("journal", name) as f64);
        figures.add("extents from memory", hits);
        figures.goal("extents from the disk", Goal::AtMost(0.0), misses);
    }
    served.stop();
    Ok(())
}
