//! Reads the repository's files and strips a Rust file to what the other rules look at: its code
//! without comments and literals, and its product code without test items. Line numbers survive
//! every stripping, so a rule can say where.

use std::path::{Path, PathBuf};

/// Folders that are made, never written by hand.
const SKIPPED: [&str; 7] = [
    "target",
    ".git",
    "node_modules",
    "penstock-data",
    "__pycache__",
    "venv",
    "proptest-regressions",
];

/// One Rust file, stripped.
pub struct Source {
    /// Path from the repository's root, with `/`.
    pub path: String,
    /// The file as it is.
    pub text: String,
    /// Comments and the contents of literals blanked.
    pub code: String,
    /// `code`, with items under `#[cfg(test)]` blanked too; empty for a test file.
    pub product: String,
}

impl Source {
    /// Strips `text`.
    pub fn new(path: &str, text: &str) -> Source {
        let code = strip_literals(text);
        let product = if is_test_file(path) {
            String::new()
        } else {
            strip_tests(&code)
        };
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
            product,
        }
    }

    /// The top-level module this file belongs to: `journal` for `src/journal/commit.rs`.
    pub fn room(&self) -> Option<&str> {
        let below = self.path.strip_prefix("src/")?;
        let first = below
            .split('/')
            .next()
            .expect("split gives at least one part");
        Some(first.strip_suffix(".rs").unwrap_or(first))
    }

    /// Depth of this file's module below the crate's root.
    pub fn module_depth(&self) -> usize {
        let below = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let parts = below.split('/').count();
        let is_root = matches!(below, "lib.rs" | "main.rs");
        let is_folder = below.ends_with("/mod.rs");
        parts - usize::from(is_folder || is_root)
    }
}

/// Whether the whole file is test code: `tests.rs`, or anything in a folder `tests`.
pub fn is_test_file(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// The repository's root.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every hand-written file below `folder`, as paths from the root with `/`, sorted.
pub fn files_below(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![root().join(folder)];
    while let Some(path) = pending.pop() {
        let Ok(entries) = std::fs::read_dir(&path) else {
            continue;
        };
        for entry in entries {
            let entry = entry.expect("the repository can be listed");
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().expect("a listed file has a type");
            if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                pending.push(entry.path());
            } else if kind.is_file() {
                found.push(relative(&entry.path()));
            }
        }
    }
    found.sort();
    found
}

fn relative(path: &Path) -> String {
    let below = path
        .strip_prefix(root())
        .expect("files come from below the root");
    below.to_string_lossy().into_owned()
}

/// The text of a file, `None` when it is not UTF-8.
pub fn read(path: &str) -> Option<String> {
    let bytes = std::fs::read(root().join(path)).expect("a listed file can be read");
    String::from_utf8(bytes).ok()
}

/// Every Rust file of the broker itself.
pub fn product_sources() -> Vec<Source> {
    let sources = rust_sources("src");
    assert!(
        sources.len() > 10,
        "the walk found too few files to mean anything"
    );
    sources
}

/// Every Rust file of the crate: sources, tests, benches, build script. The client programs under
/// `tests/clients` are crates of their own.
pub fn all_sources() -> Vec<Source> {
    let mut sources = product_sources();
    sources.extend(rust_sources("tests"));
    sources.extend(rust_sources("benches"));
    sources.push(Source::new(
        "build.rs",
        &read("build.rs").expect("build.rs is text"),
    ));
    sources
}

fn rust_sources(folder: &str) -> Vec<Source> {
    let files = files_below(folder)
        .into_iter()
        .filter(|path| path.ends_with(".rs"));
    let sources = files.map(|path| {
        let text = read(&path).expect("Rust source is UTF-8");
        Source::new(&path, &text)
    });
    sources.collect()
}

/// Line of a byte position, from 1.
pub fn line_of(text: &str, position: usize) -> usize {
    text.as_bytes()[..position]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
        + 1
}

/// Whether a byte can be part of an identifier.
pub fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Positions of `word` in `code` as a whole word.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word)
        .map(|(position, _)| position)
        .filter(move |&position| {
            let end = position + word.len();
            let opens = position == 0 || !is_ident(bytes[position - 1]);
            opens && bytes.get(end).is_none_or(|&byte| !is_ident(byte))
        })
}

/// The identifier that starts at `position`, empty when there is none.
pub fn ident_at(code: &str, position: usize) -> &str {
    let bytes = code.as_bytes();
    let end = (position..bytes.len())
        .find(|&at| !is_ident(bytes[at]))
        .unwrap_or(bytes.len());
    &code[position..end]
}

/// First names of a `{a::x, b, c::{d}}` group whose brace opens at `open`: `a`, `b`, `c`.
pub fn group_names(code: &str, open: usize) -> Vec<&str> {
    let close = matching_brace(code, open);
    let mut names = Vec::new();
    let mut depth = 0;
    let mut is_first = true;
    for (at, byte) in code.bytes().enumerate().take(close).skip(open + 1) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => is_first = true,
            _ if is_first && is_ident(byte) => {
                names.push(ident_at(code, at));
                is_first = false;
            }
            _ => {}
        }
    }
    names
}

/// Position of the brace that closes the one at `open`, or the end of the text.
pub fn matching_brace(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return at,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    code.len()
}

/// Blanks comments and the contents of string and character literals, byte for byte.
fn strip_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(bytes, at);
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(out).expect("whole literals are blanked, so what stays is UTF-8")
}

/// End of the comment or literal that starts at `at`; `at` itself when none does.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return rest
            .iter()
            .position(|&byte| byte == b'\n')
            .map_or(bytes.len(), |n| at + n);
    }
    if rest.starts_with(b"/*") {
        return block_comment_end(bytes, at);
    }
    let follows_ident = at > 0 && is_ident(bytes[at - 1]);
    match rest[0] {
        b'"' => quoted_end(bytes, at + 1, b'"'),
        b'r' if !follows_ident || matches!(bytes[at - 1], b'b' | b'c') => raw_string_end(bytes, at),
        b'\'' if rest.get(1) == Some(&b'\\') => quoted_end(bytes, at + 1, b'\''),
        b'\'' => {
            // A character is at most four bytes; a quote further off belongs to a lifetime's end.
            let close = (2..=5).find(|&n| rest.get(n) == Some(&b'\''));
            let is_char = close.is_some_and(|n| {
                std::str::from_utf8(&rest[1..n]).is_ok_and(|inner| inner.chars().count() == 1)
            });
            if is_char {
                at + close.expect("checked just above") + 1
            } else {
                at
            }
        }
        _ => at,
    }
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn quoted_end(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_string_end(bytes: &[u8], at: usize) -> usize {
    let hashes = bytes[at + 1..]
        .iter()
        .take_while(|&&byte| byte == b'#')
        .count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return at;
    }
    let mut close = vec![b'"'];
    close.extend(std::iter::repeat_n(b'#', hashes));
    let body = &bytes[open + 1..];
    let length = body
        .windows(close.len())
        .position(|window| window == close.as_slice());
    length.map_or(bytes.len(), |n| open + 1 + n + close.len())
}

/// Blanks every item under a `#[cfg(test)]`.
fn strip_tests(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    let mut from = 0;
    while let Some(found) = next_test_attribute(code, from) {
        let end = item_end(code, found);
        for byte in &mut out[found..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        from = end;
    }
    String::from_utf8(out).expect("whole items are blanked, so what stays is UTF-8")
}

fn next_test_attribute(code: &str, from: usize) -> Option<usize> {
    let forms = ["#[cfg(test)]", "#[cfg(all(test", "#[cfg(any(test"];
    forms
        .iter()
        .filter_map(|form| code[from..].find(form))
        .min()
        .map(|n| from + n)
}

/// End of the item whose attributes start at `start`: its closing brace, `;`, or for a field `,`.
fn item_end(code: &str, start: usize) -> usize {
    let bytes = code.as_bytes();
    let mut at = start;
    while bytes[at..].starts_with(b"#[") {
        at += code[at..].find(']').map_or(code.len() - at, |n| n + 1);
        at += code[at..].len() - code[at..].trim_start().len();
    }
    let opening = ident_at(code, at);
    let items = [
        "mod",
        "fn",
        "use",
        "impl",
        "struct",
        "enum",
        "const",
        "static",
        "pub",
        "async",
        "unsafe",
        "trait",
        "type",
        "extern",
        "let",
        "macro_rules",
    ];
    let is_item = items.contains(&opening);
    let mut depth = 0_i32;
    for (position, &byte) in bytes.iter().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return (matching_brace(code, position) + 1).min(code.len()),
            b';' if depth == 0 => return position + 1,
            b',' if depth == 0 && !is_item => return position + 1,
            b'}' if depth == 0 && !is_item => return position,
            _ => {}
        }
    }
    code.len()
}

/// Comments and literals of every kind vanish, code of every kind stays.
#[test]
fn stripping_keeps_code_and_lines() {
    let text = concat!(
        "let a = \"unsafe // no\"; // unsafe\n",
        "let b = r#\"unsafe \"x\" \"#; /* a /* b */ unsafe */\n",
        "let c = '\"'; let d: &'static str = \"\\\"unsafe\";\n",
        "let e = '\\''; unsafe { f() }\n",
    );
    let source = Source::new("src/base/sample.rs", text);
    assert_eq!(words(&source.code, "unsafe").count(), 1);
    assert_eq!(source.code.lines().count(), text.lines().count());
    assert!(source.code.contains("&'static str"));
    assert!(source.code.contains("let e ="));
}

/// A test module, a test function and a test field vanish; what stands beside them stays.
#[test]
fn stripping_removes_only_test_items() {
    let text = concat!(
        "use a::b;\n#[cfg(test)]\nuse c::{d, e};\n",
        "struct S {\n    #[cfg(test)]\n    probe: u8,\n    kept: u8,\n}\n",
        "#[cfg(test)]\n#[allow(dead_code)]\nmod tests {\n    fn t() { x() }\n}\n",
        "fn kept_too() {}\n",
    );
    let product = Source::new("src/base/sample.rs", text).product;
    for gone in ["probe", "mod tests", "x()", "c::"] {
        assert!(!product.contains(gone), "{gone} stayed");
    }
    for stays in ["use a::b", "kept: u8", "fn kept_too"] {
        assert!(product.contains(stays), "{stays} vanished");
    }
    assert!(
        Source::new("src/base/ids/tests.rs", text)
            .product
            .is_empty()
    );
}
