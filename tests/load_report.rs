//! Goal: the report of the load generator tells one story, and no absurd one: each rule of a
//! believable report is a test of its name. Method: simulated and random runs, told in every
//! format, read back and compared.

#[path = "load_report/random.rs"]
mod random;
#[path = "load_report/read.rs"]
mod read;
#[path = "load_report/rules.rs"]
mod rules;
#[path = "load_report/runs.rs"]
mod runs;

use penstock::base::units::Micro;
use penstock::load::page;
use penstock::load::page::compare::{self, Comparison};
use penstock::load::report::{Gate, Outputs, Summary, Together, again, hlog, write_all};
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
        ("consumers", runs::consumers_only()),
        ("short", runs::calm(50.0, 3, 1)),
        ("long", runs::calm(300.0, 900, 1)),
    ] {
        let summary = Summary::of(&run);
        write(&format!("{name}.html"), page::single(&run, &summary));
        if let Some(folder) = &folder {
            let outputs = Outputs {
                hlog: Some(folder.join(format!("{name}.hlog"))),
                json: Some(folder.join(format!("{name}.json"))),
                hgrm: Some(folder.join(format!("{name}.hgrm"))),
                ..Outputs::default()
            };
            write_all(&run, &outputs).expect("written");
        }
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

/// Goal: logs are told again from files, merged and overlaid, with thresholds of their own.
/// Method: two logs in a folder, every output written and looked into.
#[test]
fn logs_are_told_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let logs = two_logs(folder.path());
    let outputs = Outputs {
        hlog: Some(at("all.hlog")),
        hgrm: Some(at("all.hgrm")),
        json: Some(at("all.json")),
        csv: Some(at("all.csv")),
        html: Some(at("all.html")),
    };
    let told = again(&logs, Together::Merge, &[], &outputs).expect("merged");
    assert!(
        told.text.starts_with("valid: ") && !told.crossed,
        "{}",
        told.text
    );
    assert!(told.text.contains("2,000  1,000/s"), "{}", told.text);
    for name in [
        "all.hlog",
        "all.hgrm",
        "all.service.hgrm",
        "all.json",
        "all.csv",
        "all.html",
    ] {
        assert!(at(name).exists(), "{name}");
    }
    let gate = [Gate::parse("p50>1us").expect("a threshold")];
    let outputs = Outputs {
        json: Some(at("both.json")),
        html: Some(at("both.html")),
        ..Outputs::default()
    };
    let told = again(&logs, Together::Overlay, &gate, &outputs).expect("overlaid");
    assert!(told.crossed && told.text.contains("first\nvalid") && told.text.contains("second\n"));
    let page = std::fs::read_to_string(at("both.html")).expect("a page");
    assert!(page.contains("2 runs compared") && page.contains("fails if <code>p50&gt;1us"));
    let error = again(
        &logs,
        Together::Overlay,
        &[],
        &Outputs {
            csv: Some(at("both.csv")),
            ..Outputs::default()
        },
    );
    assert!(
        error
            .expect_err("one run only")
            .to_string()
            .contains("--csv holds one run")
    );
}

/// Two logs of a few seconds in a folder.
fn two_logs(folder: &Path) -> [PathBuf; 2] {
    let logs = [folder.join("first.hlog"), folder.join("second.hlog")];
    for (seed, log) in logs.iter().enumerate() {
        let outputs = Outputs {
            hlog: Some(log.clone()),
            ..Outputs::default()
        };
        write_all(&runs::calm(500.0, 4, seed as u64 + 1), &outputs).expect("written");
    }
    logs
}

/// Goal: runs that are not parts of one load are not added up. Method: one is a second shorter.
#[test]
fn unequal_logs_are_not_merged() {
    let folder = tempfile::tempdir().expect("a folder");
    let logs = two_logs(folder.path());
    let at = |name: &str| folder.path().join(name);
    let mut short = runs::calm(500.0, 3, 1);
    short.steps[0].length_ms = 3000;
    std::fs::write(at("short.hlog"), hlog::text(&short)).expect("written");
    let unequal = [logs[0].clone(), at("short.hlog")];
    let error = again(&unequal, Together::Merge, &[], &Outputs::default()).expect_err("unequal");
    assert!(error.to_string().contains("--overlay"), "{error}");
}

/// Goal: a comparison reads logs, merging those of one run. Method: two logs against one.
#[test]
fn a_comparison_reads_logs() {
    let folder = tempfile::tempdir().expect("a folder");
    two_logs(folder.path());
    let at = |name: &str| folder.path().join(name);
    let json = serde_json::json!({
        "schema_version": 1, "title": "t", "baseline": "a",
        "systems": [{"name": "a"}, {"name": "b"}],
        "results": [
            {"system": "a", "case": "c", "producers": 1, "round": 1,
             "hlog": ["first.hlog", "second.hlog"]},
            {"system": "b", "case": "c", "producers": 1, "round": 1, "hlog": ["first.hlog"]},
        ],
    });
    std::fs::write(at("compare.json"), json.to_string()).expect("written");
    let (html, json) = (at("compare.html"), at("compared.json"));
    let text = compare::run(&at("compare.json"), Some(&html), Some(&json)).expect("compared");
    assert!(text.contains("2.00"), "{text}");
    assert!(
        std::fs::read_to_string(html)
            .expect("a page")
            .contains("▲ 2.00×")
    );
}
