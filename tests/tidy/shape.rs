//! Sizes, names and heads of files: what lets a stranger read one file at a time.

use std::collections::BTreeMap;

use crate::source::{self, Source};
use crate::{Violation, expect_none};

/// Lines of product code in a file.
const FILE_LINES_MAX: usize = 600;
/// Lines of a function, signature and braces included.
const FUNCTION_LINES_MAX: usize = 70;
/// Characters in a line of Rust.
const LINE_CHARS_MAX: usize = 100;
/// Files in a folder of `src`.
const FOLDER_FILES_MAX: usize = 12;
/// Folders below `src` that a file may lie in; one that holds only a file's `tests.rs` is no level.
const FOLDER_DEPTH_MAX: usize = 2;

/// Lines of a file that are not test code.
fn product_lines(source: &Source) -> usize {
    let product = source.product.lines();
    let code = source.code.lines();
    // A line that was code and is blank once tests are stripped belonged to a test.
    let tests = product
        .zip(code)
        .filter(|(left, was)| left.trim() != was.trim())
        .count();
    if source.product.is_empty() {
        0
    } else {
        source.text.lines().count() - tests
    }
}

fn long_file(source: &Source) -> Vec<Violation> {
    let lines = product_lines(source);
    if lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    vec![Violation::new(
        &source.path,
        0,
        format!("{lines} lines, at most {FILE_LINES_MAX}"),
    )]
}

fn long_lines(path: &str, text: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let chars = line.chars().count();
        if chars > LINE_CHARS_MAX {
            let what = format!("{chars} columns, at most {LINE_CHARS_MAX}");
            violations.push(Violation::new(path, index + 1, what));
        }
    }
    violations
}

fn long_functions(source: &Source) -> Vec<Violation> {
    let code = &source.code;
    let mut violations = Vec::new();
    for position in source::words(code, "fn") {
        let after = position + "fn".len();
        let name_at = after + code[after..].len() - code[after..].trim_start().len();
        let name = source::ident_at(code, name_at);
        let Some(open) = body_of(code, name_at).filter(|_| !name.is_empty()) else {
            continue;
        };
        let first = source::line_of(code, position);
        let last = source::line_of(code, source::matching_brace(code, open));
        let lines = last - first + 1;
        if lines > FUNCTION_LINES_MAX {
            let what = format!("`{name}` has {lines} lines, at most {FUNCTION_LINES_MAX}");
            violations.push(Violation::new(&source.path, first, what));
        }
    }
    violations
}

/// Position of the brace that opens a function's body, `None` for a declaration without one.
fn body_of(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b';' if depth == 0 => return None,
            b'{' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

fn missing_head(source: &Source) -> Vec<Violation> {
    let first = source
        .text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    if first.starts_with("//!") {
        return Vec::new();
    }
    vec![Violation::new(
        &source.path,
        1,
        "opens without a module comment (`//!`)",
    )]
}

/// Unfinished work without an issue number, such as `TO` + `DO(#12)`.
fn loose_ends(path: &str, text: &str) -> Vec<Violation> {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ];
    let mut violations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for mark in marks {
            for at in source::words(line, mark) {
                let rest = &line[at + mark.len()..];
                let number = rest.strip_prefix("(#").unwrap_or_default();
                if !number.starts_with(|digit: char| digit.is_ascii_digit()) {
                    let what = format!("`{mark}` without an issue");
                    violations.push(Violation::new(path, index + 1, what));
                }
            }
        }
    }
    violations
}

/// Names that say nothing.
fn empty_names(path: &str) -> Vec<Violation> {
    let banned = [
        "util", "utils", "common", "helper", "helpers", "manager", "misc",
    ];
    let mut violations = Vec::new();
    for part in path.split('/') {
        let stem = part
            .split('.')
            .find(|piece| !piece.is_empty())
            .unwrap_or_default();
        if stem.split(['_', '-']).any(|word| banned.contains(&word)) {
            violations.push(Violation::new(path, 0, format!("`{part}` names no idea")));
        }
    }
    violations
}

fn crowded_folders(paths: &[&str]) -> Vec<Violation> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for path in paths {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        *folders.entry(folder).or_default() += 1;
    }
    let crowded = folders
        .into_iter()
        .filter(|(_, files)| *files > FOLDER_FILES_MAX);
    let report = crowded.map(|(folder, files)| {
        Violation::new(
            folder,
            0,
            format!("{files} files, at most {FOLDER_FILES_MAX}"),
        )
    });
    report.collect()
}

fn deep_files(paths: &[&str]) -> Vec<Violation> {
    let folders = |path: &str| {
        let levels = path
            .strip_prefix("src/")
            .unwrap_or(path)
            .matches('/')
            .count();
        levels - usize::from(path.ends_with("/tests.rs"))
    };
    let deep = paths.iter().filter(|path| folders(path) > FOLDER_DEPTH_MAX);
    let what = format!("more than {FOLDER_DEPTH_MAX} folders deep");
    deep.map(|path| Violation::new(path, 0, what.clone()))
        .collect()
}

/// Rust files that no `mod` line names: the compiler never reads them, so nothing else is true of
/// them.
fn dead_files(sources: &[Source]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for source in sources {
        let Some((parents, name)) = parents_of(&source.path) else {
            continue;
        };
        let declared = parents.iter().any(|parent| {
            let parent = sources.iter().find(|other| other.path == *parent);
            parent.is_some_and(|other| declares(&other.code, name))
        });
        if !declared {
            let what = format!("no parent says `mod {name};`");
            violations.push(Violation::new(&source.path, 0, what));
        }
    }
    violations
}

fn declares(code: &str, name: &str) -> bool {
    let declaration = format!("mod {name};");
    code.lines()
        .any(|line| line.trim_end().ends_with(&declaration))
}

/// Where a file of `src` must be declared, and under which name; `None` for the crate's roots.
fn parents_of(path: &str) -> Option<(Vec<String>, &str)> {
    let module = path.strip_suffix(".rs")?.strip_prefix("src/")?;
    let module = module.strip_suffix("/mod").unwrap_or(module);
    if matches!(module, "lib" | "main") {
        return None;
    }
    match module.rsplit_once('/') {
        None => Some((
            vec!["src/lib.rs".to_owned(), "src/main.rs".to_owned()],
            module,
        )),
        Some((folder, name)) => Some((
            vec![format!("src/{folder}/mod.rs"), format!("src/{folder}.rs")],
            name,
        )),
    }
}

fn paths(sources: &[Source]) -> Vec<&str> {
    sources.iter().map(|source| source.path.as_str()).collect()
}

#[test]
fn files_functions_and_lines_are_short() {
    let sources = source::all_sources();
    let mut violations: Vec<Violation> = sources.iter().flat_map(long_functions).collect();
    violations.extend(sources.iter().flat_map(long_file));
    violations.extend(
        sources
            .iter()
            .flat_map(|file| long_lines(&file.path, &file.text)),
    );
    expect_none("size", violations);
}

#[test]
fn files_open_with_what_they_are() {
    let sources = source::all_sources();
    expect_none(
        "module comment",
        sources.iter().flat_map(missing_head).collect(),
    );
}

#[test]
fn folders_are_small_and_shallow() {
    let sources = source::product_sources();
    let mut violations = crowded_folders(&paths(&sources));
    violations.extend(deep_files(&paths(&sources)));
    expect_none("folders", violations);
}

#[test]
fn every_file_is_compiled() {
    expect_none("dead files", dead_files(&source::product_sources()));
}

#[test]
fn names_say_something_and_nothing_is_left_loose() {
    let mut violations = Vec::new();
    for folder in ["src", "tests", "benches", "scripts", "docs", ".ci"] {
        for path in source::files_below(folder) {
            violations.extend(empty_names(&path));
            if let Some(text) = source::read(&path).filter(|_| !path.ends_with(".jsonl")) {
                violations.extend(loose_ends(&path, &text));
            }
        }
    }
    expect_none("names and loose ends", violations);
}

/// Bad samples for sizes: one line or character over each limit is seen, the limit itself is not.
#[test]
fn one_over_each_size_is_seen() {
    for (extra, expected) in [(0, 0), (1, 1)] {
        let filler = "let a = 1;\n".repeat(FUNCTION_LINES_MAX - 2 + extra);
        let function = format!("fn f(a: [u8; 3]) {{\n{filler}}}\n");
        let found = long_functions(&Source::new("src/base/a.rs", &function));
        assert_eq!(found.len(), expected);

        let tests = "#[cfg(test)]\nmod tests {\n    fn t() {}\n    fn u() {}\n}\n";
        let file = "const A: u8 = 1;\n".repeat(FILE_LINES_MAX + extra);
        let found = long_file(&Source::new("src/base/a.rs", &format!("{file}{tests}")));
        assert_eq!(found.len(), expected);

        let line = "é".repeat(LINE_CHARS_MAX + extra);
        assert_eq!(long_lines("a.rs", &line).len(), expected);

        let names: Vec<_> = (0..FOLDER_FILES_MAX + extra)
            .map(|n| format!("src/a/{n}.rs"))
            .collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        assert_eq!(crowded_folders(&names).len(), expected);

        let deep = format!("src/{}a.rs", "b/".repeat(FOLDER_DEPTH_MAX + extra));
        assert_eq!(deep_files(&[&deep]).len(), expected);
    }
    let declared = Source::new(
        "src/base/a.rs",
        "trait T { fn f(&self); }\ntype F = fn(u8) -> u8;\n",
    );
    assert_eq!(long_functions(&declared), Vec::new());
}

#[test]
fn a_missing_head_and_an_empty_name_are_seen() {
    assert_eq!(
        missing_head(&Source::new("src/a.rs", "use std::fmt;\n")).len(),
        1
    );
    assert_eq!(
        missing_head(&Source::new("src/a.rs", "// not a doc\n")).len(),
        1
    );
    assert_eq!(
        missing_head(&Source::new("src/a.rs", "//! What it is.\n")).len(),
        0
    );
    for bad in [
        "src/wire/utils.rs",
        "src/common/mod.rs",
        "scripts/ci_helpers.sh",
    ] {
        assert_eq!(empty_names(bad).len(), 1, "{bad}");
    }
    assert_eq!(empty_names("src/journal/commit.rs"), Vec::new());
}

#[test]
fn a_loose_end_is_seen() {
    let mark = concat!("TO", "DO");
    assert_eq!(loose_ends("a.rs", &format!("// {mark}: later\n")).len(), 1);
    assert_eq!(loose_ends("a.rs", &format!("// {mark}(#x)\n")).len(), 1);
    assert_eq!(
        loose_ends("a.rs", &format!("// {mark}(#12): later\n")).len(),
        0
    );
}

#[test]
fn a_dead_file_is_seen() {
    let sources = [
        Source::new("src/lib.rs", "pub mod base;\n"),
        Source::new("src/base/mod.rs", "//! b\npub mod ids;\n// mod gone;\n"),
        Source::new("src/base/ids.rs", "//! i\n#[cfg(test)]\nmod tests;\n"),
        Source::new("src/base/ids/tests.rs", "//! t\n"),
        Source::new("src/base/gone.rs", "//! g\n"),
    ];
    let found = dead_files(&sources);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].path, "src/base/gone.rs");
}
