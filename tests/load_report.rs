//! Goal: the report of the load generator tells one story, and no absurd one: each rule of a
//! believable report is a test of its name. Method: simulated and random runs, told in every format,
//! read back and compared.

#[path = "load_report/runs.rs"]
mod runs;

use penstock::load::page;
use penstock::load::report::Summary;
use std::path::PathBuf;

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
}
