//! Goal: the report of the load generator tells one story, and no absurd one: each rule of a
//! believable report is a test of its name. Method: simulated and random runs, told in every format,
//! read back and compared.

#[path = "load_report/runs.rs"]
mod runs;

use penstock::base::units::Micro;
use penstock::load::page;
use penstock::load::page::compare::Comparison;
use penstock::load::report::Summary;
use std::path::{Path, PathBuf};

/// Goal: pages to look at. Method: with `PENSTOCK_PAGES=DIR`, one page of each kind of run is
/// written there; without it, each is only made.
#[test]
fn pages_to_look_at() {
    let folder = std::env::var_os("PENSTOCK_PAGES").map(PathBuf::from);
    let write = |name: &str, text: String| {
        assert!(text.ends_with("</html>\n"));
        if let Some(folder) = &folder {
            std::fs::write(folder.join(name), text).expect("written");
        }
    };
    for (name, run) in [
        ("stalled", runs::stalled()),
        ("bimodal", runs::bimodal()),
        ("search", runs::search()),
        ("generator-limited", runs::generator_limited()),
        ("overloaded", runs::overloaded()),
        ("empty", runs::empty_run()),
        ("short", runs::calm(50.0, 3, 1)),
        ("long", runs::calm(300.0, 900, 1)),
    ] {
        let summary = Summary::of(&run);
        write(&format!("{name}.html"), page::single(&run, &summary));
        let table = penstock::load::report::table(&run);
        println!("== {name}\n{table}");
    }
    let overlaid = [
        ("depth 1", runs::calm(4000.0, 12, 1)),
        ("depth 4, the default", runs::bimodal()),
        ("stalled", runs::stalled()),
    ];
    let summaries = overlaid.each_ref().map(|(_, run)| Summary::of(run));
    let told: Vec<_> = overlaid
        .iter()
        .zip(&summaries)
        .map(|((name, run), summary)| ((*name).to_owned(), run, summary))
        .collect();
    write("overlay.html", page::overlay(&told));
    let mut comparison = comparison();
    comparison.complete(Path::new("")).expect("complete");
    println!("{}", comparison.text(Micro::Sign));
    write("compare.html", comparison.page());
}

/// Five systems with rates and latencies of the order that such systems have, three rounds.
fn comparison() -> Comparison {
    let systems = [
        ("penstock", "each commit flushed", 1.0, true),
        (
            "Apache Kafka (flush.messages=1)",
            "each batch flushed",
            0.31,
            true,
        ),
        ("Apache Kafka (default)", "page cache only", 1.4, true),
        ("NATS JetStream", "sync_interval: always", 0.22, true),
        ("RabbitMQ quorum queue", "flushed", 0.12, false),
    ];
    let mut dice = runs::Dice::new(5);
    let mut results = Vec::new();
    for (name, _, speed, many) in systems {
        for (producers, base) in [
            (1u32, 6200.0),
            (8, 28_900.0),
            (64, 89_000.0),
            (512, 93_000.0),
        ] {
            for round in 1..=3 {
                if producers == 512 && !many {
                    continue;
                }
                let mood = 0.93 + 0.14 * dice.share();
                let rate = base * speed * mood;
                let p50 = f64::from(producers) * 1e6 / rate;
                results.push(serde_json::json!({
                    "system": name, "case": "produce, 100-byte messages, one partition",
                    "producers": producers, "round": round, "acks_per_s": rate,
                    "p50_us": p50, "p99_us": p50 * (2.0 + dice.share()), "verdict": "valid",
                }));
            }
        }
    }
    let systems = systems.map(|(name, durability, ..)| {
        serde_json::json!({"name": name, "durability": durability, "version": "1.0"})
    });
    let json = serde_json::json!({
        "schema_version": 1,
        "title": "Durable produce beside the peers",
        "about": {"kernel": "Linux 6.18.5", "disk": "ext4 on virtio", "cores": 2},
        "limit": {"flushes_per_s": 6900.0, "p50_us": 130.0, "p99_us": 240.0},
        "baseline": "penstock",
        "systems": systems,
        "results": results,
    });
    serde_json::from_value(json).expect("as the module describes")
}
