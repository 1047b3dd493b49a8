//! One command for every row of `docs/PERFORMANCE.md`: `cargo bench --bench performance -- P1 P7`.
//!
//! Each row starts the real broker, drives it with the real `penstock load`, asks `penstock probe`
//! for the machine's own limit in the same rounds, and holds one against the other. Rounds are
//! interleaved (A B A B) and medians quoted, because a shared machine drifts by a factor of two
//! within minutes. What comes out: a table for people, and with `--out FILE` one JSON document with
//! everything that was seen, the machine and the exact commands, so that anybody can repeat it.
//! Figures, never assertions: a missed goal is printed, and an exit code only with `--check`.
//!
//! The broker runs on CPU 0 and the load generator on CPU 1, unless a row says otherwise. Without
//! cargo's `--bench` each row makes one very short round, as a test of itself.

mod bench;
mod crowd;
mod driven;
mod figures;
mod machine;
mod report;
mod rows;
mod sample;
#[path = "../shared/mod.rs"]
mod shared;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use bench::Bench;
use clap::Parser;
use figures::Figures;
use report::Measured;
use rows::{ROWS, Row};

/// Measure rows of docs/PERFORMANCE.md.
#[derive(Parser)]
#[command(name = "cargo bench --bench performance --")]
struct Arguments {
    /// Rows, such as P1 P7; all if none is named
    rows: Vec<String>,
    /// Say which rows there are, with their goals
    #[arg(long)]
    list: bool,
    /// Rounds of each row [default: as many as fit into about a minute]
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Seconds of each measurement [default: 4]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// A folder on the disk to measure
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write everything that was seen as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// End with code 1 if a goal is missed or a row fails
    #[arg(long)]
    check: bool,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let chosen = match choose(&arguments.rows) {
        Ok(chosen) => chosen,
        Err(unknown) => {
            eprintln!("{unknown} is no row that this bench measures; --list says which are");
            return ExitCode::from(2);
        }
    };
    if arguments.list {
        print!("{}", report::list());
        return ExitCode::SUCCESS;
    }
    shared::raise_descriptors();
    let folder = arguments.dir.clone();
    let folder = folder.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let mut bench = Bench::new(folder, arguments.bench);
    bench.seconds = arguments.seconds.unwrap_or(bench.seconds).max(0.1);
    print!("{}", report::head(&bench));
    let mut all = Vec::new();
    for row in chosen {
        let rounds = if arguments.bench { row.rounds } else { 1 };
        bench.rounds = arguments.rounds.unwrap_or(rounds).max(1);
        let measured = measure(row, &mut bench);
        print!("{}", report::row(&measured));
        all.push(measured);
        if let Some(path) = &arguments.out {
            // After every row: a run of an hour must not lose what it has.
            let document = report::document(&bench, &all);
            let text = serde_json::to_string_pretty(&document).expect("JSON has a text");
            std::fs::write(path, text + "\n").expect("the report can be written");
        }
    }
    let is_well = all.iter().all(Measured::is_met);
    ExitCode::from(u8::from(arguments.check && !is_well))
}

fn choose(names: &[String]) -> Result<Vec<&'static Row>, String> {
    if names.is_empty() {
        return Ok(ROWS.iter().collect());
    }
    let find = |name: &String| {
        let row = ROWS.iter().find(|row| row.name.eq_ignore_ascii_case(name));
        row.ok_or_else(|| name.clone())
    };
    names.iter().map(find).collect()
}

fn measure(row: &'static Row, bench: &mut Bench) -> Measured {
    let begin = Instant::now();
    let mut figures = Figures::default();
    let free = bench.free_bytes();
    let needs = if bench.full { row.needs_bytes } else { 1 << 30 };
    let outcome = if free < needs {
        Err(format!(
            "not measured: it may take {} MB of disk and {} MB are free",
            needs / 1_000_000,
            free / 1_000_000
        ))
    } else {
        (row.measure)(bench, &mut figures)
    };
    Measured {
        row,
        figures,
        failure: outcome.err(),
        rounds: bench.rounds,
        took: begin.elapsed(),
        raw: bench.take_raw(),
    }
}
