//! Who may import whom: the rooms' one-way order, read from every `crate::` and `super::` path of
//! product code. THINK before adding a line to the table: an arrow that points up makes two rooms
//! one.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{self, Source};
use crate::{Violation, expect_none};

/// A room and the rooms it may name. `lib`, `main` and `server` may name everything.
const MAY_IMPORT: [(&str, &[&str]); 13] = [
    ("base", &[]),
    ("limits", &["base"]),
    ("config", &["base", "limits"]),
    ("env", &["base", "limits"]),
    ("metrics", &["base", "limits"]),
    ("check", &["base", "limits"]),
    ("wire", &["base", "limits"]),
    ("journal", &["base", "limits", "metrics", "env"]),
    ("shard", &["base", "limits", "metrics", "env", "journal"]),
    (
        "router",
        &["base", "limits", "metrics", "env", "journal", "shard"],
    ),
    (
        "session",
        &[
            "base", "limits", "config", "metrics", "env", "journal", "shard", "router", "wire",
        ],
    ),
    (
        "load",
        &["base", "limits", "env", "wire", "check", "metrics"],
    ),
    (
        "admin",
        &[
            "base", "limits", "config", "env", "wire", "journal", "check", "metrics", "load",
        ],
    ),
];

/// Files that wire the rooms together.
const EVERYTHING: [&str; 3] = ["lib", "main", "server"];

/// Every room that a file names, with the line it is named on.
fn imports(source: &Source) -> BTreeSet<(String, usize)> {
    let code = &source.product;
    let mut found = BTreeSet::new();
    let mut add = |after: usize| {
        let line = source::line_of(code, after);
        if code[after..].starts_with('{') {
            for name in source::group_names(code, after) {
                found.insert((name.to_owned(), line));
            }
        } else {
            found.insert((source::ident_at(code, after).to_owned(), line));
        }
    };
    for position in source::words(code, "crate") {
        if code[position..].starts_with("crate::") {
            add(position + "crate::".len());
        }
    }
    for position in source::words(code, "super") {
        let continues = code[..position].ends_with("super::");
        let steps = code[position..]
            .split("super::")
            .take_while(|part| part.is_empty())
            .count();
        if !continues && steps > 0 && steps == source.module_depth() {
            add(position + steps * "super::".len());
        }
    }
    found
}

/// Arrows the table does not allow.
fn wrong_arrows(source: &Source) -> Vec<Violation> {
    let room = source.room().expect("product sources lie below src");
    if EVERYTHING.contains(&room) {
        return Vec::new();
    }
    let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == room) else {
        return vec![Violation::new(
            &source.path,
            0,
            format!("room `{room}` is not in the table"),
        )];
    };
    let mut violations = Vec::new();
    for (target, line) in imports(source) {
        if target != room && !allowed.contains(&target.as_str()) {
            let what = format!("`{room}` may not import `{target}`");
            violations.push(Violation::new(&source.path, line, what));
        }
    }
    violations
}

/// A cycle in a graph of rooms, as the rooms along it.
fn cycle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    let mut finished = BTreeSet::new();
    for start in graph.keys() {
        let mut path: Vec<String> = Vec::new();
        if let Some(found) = walk(graph, start, &mut path, &mut finished) {
            return Some(found);
        }
    }
    None
}

fn walk(
    graph: &BTreeMap<String, BTreeSet<String>>,
    room: &str,
    path: &mut Vec<String>,
    finished: &mut BTreeSet<String>,
) -> Option<Vec<String>> {
    if let Some(first) = path.iter().position(|step| step == room) {
        return Some(path[first..].to_vec());
    }
    if finished.contains(room) {
        return None;
    }
    path.push(room.to_owned());
    for next in graph.get(room).into_iter().flatten() {
        if let Some(found) = walk(graph, next, path, finished) {
            return Some(found);
        }
    }
    path.pop();
    finished.insert(room.to_owned());
    None
}

fn graph_of(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources {
        let room = source
            .room()
            .expect("product sources lie below src")
            .to_owned();
        let targets = imports(source).into_iter().map(|(target, _)| target);
        let others = targets.filter(|target| *target != room);
        graph.entry(room.clone()).or_default().extend(others);
    }
    graph
}

#[test]
fn rooms_import_only_what_the_table_allows() {
    let sources = source::product_sources();
    expect_none("layering", sources.iter().flat_map(wrong_arrows).collect());
}

#[test]
fn rooms_have_no_cycles() {
    assert_eq!(cycle(&graph_of(&source::product_sources())), None);
}

#[test]
fn every_room_of_the_table_exists() {
    let sources = source::product_sources();
    let rooms: BTreeSet<_> = sources.iter().filter_map(Source::room).collect();
    for (room, _) in MAY_IMPORT {
        assert!(
            rooms.contains(room),
            "the table names `{room}`, which does not exist"
        );
    }
}

#[test]
fn the_table_itself_points_one_way() {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (room, targets) in MAY_IMPORT {
        graph.insert(
            room.to_owned(),
            targets.iter().map(|&name| name.to_owned()).collect(),
        );
    }
    assert_eq!(cycle(&graph), None);
}

/// Bad samples: each way of naming a room is seen.
#[test]
fn an_arrow_upwards_is_seen() {
    let samples = [
        ("src/base/ids.rs", "use crate::journal::Journal;\n"),
        (
            "src/wire/frame.rs",
            "use crate::{\n    base::ids,\n    session::Connection,\n};\n",
        ),
        (
            "src/journal/commit.rs",
            "fn f() { crate::shard::apply() }\n",
        ),
        ("src/env/mod.rs", "use super::wire::frame;\n"),
        (
            "src/env/real/file.rs",
            "use super::super::super::wire::frame;\n",
        ),
        (
            "src/shard/apply.rs",
            "macro_rules! m { () => { $crate::router::send() } }\n",
        ),
        ("src/surprise/mod.rs", "use crate::base::ids;\n"),
    ];
    for (path, text) in samples {
        assert_eq!(
            wrong_arrows(&Source::new(path, text)).len(),
            1,
            "{path}: {text}"
        );
    }
}

/// Good samples: what points down, or only looks like an import, is let be.
#[test]
fn an_arrow_downwards_is_allowed() {
    let samples = [
        (
            "src/journal/commit.rs",
            "use super::format;\nuse crate::env::File;\n",
        ),
        (
            "src/base/ids.rs",
            "// see crate::journal\nconst A: &str = \"crate::shard\";\n",
        ),
        (
            "src/base/ids.rs",
            "#[cfg(test)]\nmod tests { use crate::check::history; }\n",
        ),
        ("src/env/real/file.rs", "use super::super::Buffer;\n"),
        ("src/server.rs", "use crate::session::Listener;\n"),
    ];
    for (path, text) in samples {
        assert_eq!(
            wrong_arrows(&Source::new(path, text)),
            Vec::new(),
            "{path}: {text}"
        );
    }
}

#[test]
fn a_cycle_is_seen() {
    let sources = [
        Source::new("src/router/a.rs", "use crate::shard::b;\n"),
        Source::new("src/shard/b.rs", "use crate::journal::c;\n"),
        Source::new("src/journal/c.rs", "use crate::router::a;\n"),
    ];
    let found = cycle(&graph_of(&sources)).expect("three rooms in a ring");
    assert_eq!(found.len(), 3);
    assert_eq!(cycle(&graph_of(&sources[..2])), None);
}
