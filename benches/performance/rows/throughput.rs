//! P1: as much as goes in, against the disk's own large durable writes in the same round.
//!
//! A log always writes places that were never written, for which a file system has more to do than
//! for places written before, and it has several writes on their way; the limit is quoted for each.
//! The goal's own words mean the plain one: one 1 MiB write and its flush at a time, on a file that
//! was written before. The strictest is the last: it is what the journal does.

use crate::bench::Bench;
use crate::figures::{Figures, Goal};

/// Most bytes of messages in one round: the disk is not to fill, however fast it is.
const ROUND_BYTES: u64 = 3 << 30;
const MESSAGE_BYTES: u64 = 1024;

pub fn measure(bench: &mut Bench, figures: &mut Figures) -> Result<(), String> {
    let count = bench.size(ROUND_BYTES, 8 << 20) / MESSAGE_BYTES;
    let flags = format!(
        "--rate max --partitions 16 --producers 16 --size 1KiB --batch-bytes 256KiB --in-flight 2 \
         --warm-up {} --count {count}",
        if bench.full { "500ms" } else { "0s" }
    );
    for _ in 0..bench.rounds {
        let names = [
            "write_1m_fdatasync",
            "write_1m_dsync_x4",
            "write_1m_dsync_x4_new",
        ];
        let limits = bench.probe(&names)?;
        let [plain, parallel, new_places] = names.map(|name| limits.mb_per_s(name));
        let home = bench.home();
        let served = bench.serve(&bench.options(&home));
        let before = served.sample();
        let load = bench.trusted_load(&served, "producers", &flags, figures)?;
        let cost = served.sample().since(&before);
        bench.record("broker", cost.to_json());
        served.stop();
        let mb_per_s = load.acked_per_s() * MESSAGE_BYTES as f64 / 1e6;
        figures.add("accepted, MB/s of values", mb_per_s);
        figures.add("limit: 1 MiB write, fdatasync, MB/s", plain);
        figures.add("limit: 1 MiB O_DSYNC, 4 at once, MB/s", parallel);
        figures.add("limit: the same to new places, MB/s", new_places);
        figures.goal(
            "accepted / 1 MiB write, fdatasync",
            Goal::AtLeast(0.9),
            mb_per_s / plain,
        );
        figures.add("accepted / 1 MiB O_DSYNC, 4 at once", mb_per_s / parallel);
        figures.add("accepted / the same to new places", mb_per_s / new_places);
        figures.add("generator's CPU, % of a core", load.generator_percent());
        let accepted = cost.count("produce", "accepted") as f64;
        figures.goal(
            "bytes to the device for each byte accepted (P14: saturated)",
            Goal::AtMost(1.1),
            cost.device_written as f64 / accepted,
        );
        let own = cost.count("journal", "written") + cost.count("journal", "zeroed");
        figures.add("the same by the broker's own count", own as f64 / accepted);
        figures.add("broker's CPU, s a GB", cost.cpu_s / (accepted / 1e9));
        figures.add("broker's memory, MiB", cost.rss_kib as f64 / 1024.0);
        figures.add(
            "durable writes a second",
            cost.flushes() as f64 / cost.seconds,
        );
    }
    Ok(())
}
