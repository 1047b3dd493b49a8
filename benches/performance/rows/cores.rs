//! P12: what one core does, two must do twice, with data in memory so that no device is in the way.
//!
//! With two CPUs the load generator takes its share of one of them, so elapsed time cannot show it.
//! What is measured is requests for each second of the broker's own processor time at saturation,
//! with one core and with two: the cost of sharing work between cores. It does not show what two
//! cores lose by waiting for each other; that takes a machine with more CPUs.

use std::path::Path;

use crate::bench::{Bench, cpus};
use crate::figures::{Figures, Goal};
use crate::machine;
use crate::support::broker::Options;

/// Share of a core that the broker must have been busy for its cost to be that of saturation.
const SATURATED_PERCENT: f64 = 80.0;

pub fn measure(bench: &mut Bench, figures: &mut Figures) -> Result<(), String> {
    if cpus() < 2 {
        return Err("not measured: it takes two CPUs".to_owned());
    }
    let Some(probe) = bench.home_in_memory() else {
        return Err("not measured: no folder in memory can be made".to_owned());
    };
    let mount = machine::mount_of(Path::new(probe.path()));
    if mount["type"] != "tmpfs" {
        return Err(format!("not measured: it takes a tmpfs, this is {mount}"));
    }
    figures.note("measured: requests for each second of the broker's CPU, at saturation");
    let flags = format!(
        "--rate max --partitions 32 --producers 64 --batch-messages 1 --size 100 --warm-up 500ms \
         --duration {}",
        bench.duration()
    );
    for _ in 0..bench.rounds {
        let mut first = None;
        for cores in [1u32, 2] {
            let home = bench
                .home_in_memory()
                .ok_or("the folder in memory is gone")?;
            let shards = cores.to_string();
            let options = Options::new(home.path())
                .cores(cores)
                .with(&["--shards", &shards, "--log", "warn"]);
            let served = bench.serve(&options);
            let before = served.sample();
            let label = format!("{cores} cores");
            let load = bench.trusted_load(&served, &label, &flags, figures)?;
            let cost = served.sample().since(&before);
            bench.record("broker", cost.to_json());
            served.stop();
            let requests = cost.count("produce", "batches") as f64;
            let each = requests / cost.cpu_s;
            figures.add(&format!("{label}: requests a second of broker's CPU"), each);
            figures.add(&format!("{label}: requests a second"), load.acked_per_s());
            let busy = 100.0 * cost.cpu_s / cost.seconds;
            figures.add(&format!("{label}: broker's CPU, % of a core"), busy);
            let name = format!("{label}: generator's CPU, % of a core");
            figures.add(&name, load.generator_percent());
            // The second core is the generator's as well.
            if busy < SATURATED_PERCENT {
                figures.note(format!(
                    "{label}: the broker was not saturated in every round"
                ));
            }
            match first {
                None => first = Some(each),
                Some(first) => {
                    let name = "2 cores / 1 core: requests a second of broker's CPU";
                    figures.goal(name, Goal::AtLeast(0.9), each / first);
                }
            }
        }
    }
    Ok(())
}
