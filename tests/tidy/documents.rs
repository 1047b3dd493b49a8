//! What the documents promise is there, and what is there is in the documents.

use std::collections::BTreeSet;

use crate::source;
use crate::{Violation, expect_none};

/// Lines of `docs/ARCHITECTURE.md`: a newcomer reads it in one sitting.
const ARCHITECTURE_LINES_MAX: usize = 300;
const ARCHITECTURE: &str = "docs/ARCHITECTURE.md";
/// The two commands a newcomer needs, word for word.
const COMMANDS: [&str; 2] = ["cargo run --release -- serve", "cargo test"];

/// Rooms and files that a document names as `src/name`.
fn rooms_named(text: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for (at, mark) in text.match_indices("src/") {
        let rest = &text[at + mark.len()..];
        let is_end = |letter: char| !(letter.is_ascii_alphanumeric() || "_./".contains(letter));
        let path = rest.split(is_end).next().unwrap_or_default();
        let room = path
            .split('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches('.');
        if !room.is_empty() {
            rooms.insert(room.to_owned());
        }
    }
    rooms
}

/// Rooms and files directly below `src`, as a document would name them.
fn rooms_of(paths: &[String]) -> BTreeSet<String> {
    let below = paths.iter().filter_map(|path| path.strip_prefix("src/"));
    below
        .map(|path| path.split('/').next().unwrap_or_default().to_owned())
        .collect()
}

fn differing_rooms(named: &BTreeSet<String>, real: &BTreeSet<String>) -> Vec<Violation> {
    let invented = named
        .difference(real)
        .map(|room| format!("names src/{room}, which is not there"));
    let forgotten = real
        .difference(named)
        .map(|room| format!("does not name src/{room}"));
    invented
        .chain(forgotten)
        .map(|what| Violation::new(ARCHITECTURE, 0, what))
        .collect()
}

/// Names of direct dependencies in a `Cargo.toml`, development ones included.
fn dependencies_of(manifest: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = matches!(line, "[dependencies]" | "[dev-dependencies]");
        } else if let Some((name, _)) = line.split_once('=').filter(|_| inside) {
            let name = name.split('.').next().unwrap_or_default().trim();
            if !name.is_empty() && !name.starts_with('#') && !line.starts_with(' ') {
                names.insert(name.trim_matches('"').to_owned());
            }
        }
    }
    names
}

/// Names in the first column of table rows: "| `name` | … |", several with a comma between.
fn table_names(text: &str, title: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with('#') {
            inside = line.trim_start_matches('#').trim() == title;
        }
        let Some(row) = line.strip_prefix('|').filter(|_| inside) else {
            continue;
        };
        let first = row.split('|').next().unwrap_or_default();
        for name in first.split('`').skip(1).step_by(2) {
            names.insert(name.to_owned());
        }
    }
    names
}

fn differing_dependencies(listed: &BTreeSet<String>, real: &BTreeSet<String>) -> Vec<Violation> {
    let gone = listed
        .difference(real)
        .map(|name| format!("lists `{name}`, not a dependency"));
    let unlisted = real
        .difference(listed)
        .map(|name| format!("has no line for `{name}`"));
    gone.chain(unlisted)
        .map(|what| Violation::new(ARCHITECTURE, 0, what))
        .collect()
}

/// Titles of a document: lines that start with one `#`, outside fenced code.
fn titles(text: &str) -> usize {
    let mut fenced = false;
    let mut count = 0;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        count += usize::from(!fenced && line.starts_with("# "));
    }
    count
}

/// Relative links of a document whose target is not there, or a heading it lacks.
fn broken_links(path: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Violation> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut violations = Vec::new();
    for (at, mark) in text.match_indices("](") {
        let rest = &text[at + mark.len()..];
        let target = rest.split([')', '#']).next().unwrap_or_default();
        if target.is_empty() || target.contains("://") {
            continue;
        }
        if !exists(&joined(folder, target)) {
            let what = format!("link to `{target}`, which is not there");
            violations.push(Violation::new(path, source::line_of(text, at), what));
        }
    }
    violations
}

/// `target` as seen from `folder`, with `..` resolved.
fn joined(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Paths of one machine and hosts of registries: true for nobody else.
fn foreign_places(path: &str, text: &str) -> Vec<Violation> {
    let places = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/tm", "p/"),
        concat!("/Us", "ers/"),
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("npmjs", ".org"),
        concat!("proxy.golang", ".org"),
        concat!("deb.debian", ".org"),
    ];
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for place in places.iter().filter(|place| line.contains(**place)) {
            violations.push(Violation::new(path, index + 1, format!("names `{place}`")));
        }
    }
    violations
}

/// Lines of fenced code in a document that are commands of the newcomer's.
fn fenced_lines(text: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            lines.push(line.trim());
        }
    }
    lines
}

fn document(path: &str) -> String {
    source::read(path).unwrap_or_else(|| panic!("{path} is not text"))
}

fn documents() -> Vec<String> {
    let mut paths = source::files_below("docs");
    paths.extend(source::files_below("tests"));
    paths.retain(|path| path.ends_with(".md"));
    paths.extend(["README.md".to_owned(), "SECURITY.md".to_owned()]);
    paths
}

#[test]
fn the_architecture_names_every_room_and_no_other() {
    let text = document(ARCHITECTURE);
    assert!(
        text.lines().count() <= ARCHITECTURE_LINES_MAX,
        "{ARCHITECTURE} is too long"
    );
    let real = rooms_of(&source::files_below("src"));
    expect_none("rooms", differing_rooms(&rooms_named(&text), &real));
}

#[test]
fn every_dependency_has_its_line() {
    let listed = table_names(&document(ARCHITECTURE), "Dependencies");
    let real = dependencies_of(&document("Cargo.toml"));
    assert!(real.len() > 10, "the manifest was not understood");
    expect_none("dependencies", differing_dependencies(&listed, &real));
}

#[test]
fn documents_have_one_title_and_links_that_lead_somewhere() {
    let mut violations = Vec::new();
    for path in documents() {
        let text = document(&path);
        if titles(&text) != 1 {
            violations.push(Violation::new(&path, 0, "has not exactly one title"));
        }
        let exists = |target: &str| source::root().join(target).exists();
        violations.extend(broken_links(&path, &text, exists));
    }
    expect_none("documents", violations);
}

#[test]
fn the_readme_has_two_commands_and_ci_runs_its_test_command() {
    let readme = document("README.md");
    let lines = fenced_lines(&readme);
    for command in COMMANDS {
        assert_eq!(
            lines.iter().filter(|line| **line == command).count(),
            1,
            "{command}"
        );
    }
    let script = document(".ci/run");
    assert!(
        script
            .lines()
            .any(|line| line.trim_end().ends_with(COMMANDS[1])),
        "not run by CI"
    );
}

#[test]
fn nothing_names_one_machine_or_a_registry() {
    let mut violations = Vec::new();
    let mut paths = Vec::new();
    for folder in [
        "src", "tests", "benches", "scripts", "docs", ".ci", ".cargo", "tuning",
    ] {
        paths.extend(source::files_below(folder));
    }
    let top = [
        "README.md",
        "SECURITY.md",
        "Cargo.toml",
        "build.rs",
        "deny.toml",
        ".gitignore",
    ];
    paths.extend(top.map(str::to_owned));
    paths.retain(|path| source::root().join(path).exists());
    // Lock files name their registry by design; captures are bytes of real clients.
    paths.retain(|path| !path.ends_with(".lock") && !path.ends_with("-lock.json"));
    paths.retain(|path| !path.ends_with(".jsonl"));
    for path in paths {
        let text = source::read(&path).unwrap_or_default();
        violations.extend(foreign_places(&path, &text));
    }
    expect_none("places", violations);
}

#[test]
fn a_room_missing_on_either_side_is_seen() {
    let named = rooms_named("`src/wire/` bytes, src/lib.rs. And src/queue/lease.rs!");
    let real = rooms_of(&[
        "src/wire/mod.rs".into(),
        "src/lib.rs".into(),
        "src/env/mod.rs".into(),
    ]);
    let found = differing_rooms(&named, &real);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].what.contains("queue") && found[1].what.contains("env"));
}

#[test]
fn a_dependency_missing_on_either_side_is_seen() {
    let manifest = concat!(
        "[package]\nname = \"x\"\n[dependencies]\nbytes = \"1\"\nserde.workspace = true\n",
        "[dev-dependencies]\nproptest = { version = \"1\" }\n[lints.rust]\na = \"b\"\n",
    );
    let real = dependencies_of(manifest);
    assert_eq!(
        real.iter().map(String::as_str).collect::<Vec<_>>(),
        ["bytes", "proptest", "serde"]
    );
    let text = concat!(
        "## Other\n| `no` | x |\n## Dependencies\n| crate | why |\n|---|---|\n",
        "| `bytes`, `serde` | x `y` |\n| `gone` | x |\n",
    );
    let found = differing_dependencies(&table_names(text, "Dependencies"), &real);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn a_broken_document_is_seen() {
    assert_eq!(titles("# A\n```\n# not\n```\n## B\n# C\n"), 2);
    let text = "[a](GONE.md) [b](../src/lib.rs#x) [c](https://example.org) [d](#here)";
    let found = broken_links("docs/A.md", text, |target| target == "src/lib.rs");
    assert_eq!(found.len(), 1);
    let place = concat!("cd /wo", "rk/main");
    assert_eq!(foreign_places("a", place).len(), 1);
    assert_eq!(foreign_places("a", "work/main and homework/").len(), 0);
    assert_eq!(
        fenced_lines("cargo test\n```\ncargo test\n```\n"),
        ["cargo test"]
    );
}
