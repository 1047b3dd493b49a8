//! P2: one producer, one message at a time, against what the same message costs without a broker:
//! a bare 4 KiB write + flush, and a bare 1 KiB echo over loopback.

use crate::bench::Bench;
use crate::figures::{Figures, Goal};

pub fn measure(bench: &mut Bench, figures: &mut Figures) -> Result<(), String> {
    let home = bench.home();
    let served = bench.serve(&bench.options(&home));
    let flags = format!(
        "--rate max --producers 1 --in-flight 1 --batch-messages 1 --size 1KiB --warm-up 200ms \
         --duration {}",
        bench.duration()
    );
    for _ in 0..bench.rounds {
        let names = ["write_4k_fdatasync", "write_4k_dsync", "loopback_echo_1k"];
        let limits = bench.probe(&names)?;
        let before = served.sample();
        let load = bench.trusted_load(&served, "producer", &flags, figures)?;
        let cost = served.sample().since(&before);
        bench.record("broker", cost.to_json());
        let (flush_p50, flush_p99) = limits.flush_us();
        let echo = |quantile| limits.us("loopback_echo_1k", quantile);
        let [p50, p99] = ["p50", "p99"].map(|quantile| load.us("service", quantile));
        figures.add("p50, us", p50);
        figures.add("p99, us", p99);
        figures.add("bare 4 KiB write + flush p50, us", flush_p50);
        figures.add("bare 4 KiB write + flush p99, us", flush_p99);
        figures.add("bare 1 KiB echo p50, us", echo("p50"));
        figures.add("bare 1 KiB echo p99, us", echo("p99"));
        let ratio = p50 / (flush_p50 + echo("p50"));
        figures.goal("p50 / (write + flush, echo)", Goal::AtMost(1.3), ratio);
        let ratio = p99 / (flush_p99 + echo("p99"));
        figures.goal("p99 / (write + flush, echo)", Goal::AtMost(1.5), ratio);
        let accepted = cost.count("produce", "records") as f64;
        figures.add("durable writes a message", cost.flushes() as f64 / accepted);
        figures.add("broker's CPU, us a message", cost.cpu_s * 1e6 / accepted);
    }
    served.stop();
    Ok(())
}
