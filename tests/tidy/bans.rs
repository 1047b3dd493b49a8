//! What only certain rooms or files may name: the kernel, time, chance and threads outside `env`,
//! the codec crate outside `wire`, `unsafe` and shared memory outside the files listed here.

use crate::source::{self, Source};
use crate::{Violation, expect_none};

/// Words and paths that only one room may use. A path that ends in `::` is matched as written; a
/// path of `std` is also found inside a `use std::{…}` group.
const ONE_ROOM: [(&str, &str); 19] = [
    ("glommio", "env"),
    ("polling", "env"),
    ("libc", "env"),
    ("socket2", "env"),
    ("core_affinity", "env"),
    ("signal_hook", "env"),
    ("std::fs", "env"),
    ("std::net", "env"),
    ("std::os", "env"),
    ("std::thread", "env"),
    ("Instant", "env"),
    ("SystemTime", "env"),
    ("rand::", "env"),
    ("fastrand", "env"),
    ("getrandom", "env"),
    ("RandomState", "env"),
    ("kafka_wire", "wire"),
    ("kafka_wire_core", "wire"),
    ("kafka_protocol", "nowhere"),
];

/// The files that may say `unsafe`, each with what it cannot do without it.
const UNSAFE_FILES: &[(&str, &str)] = &[
    (
        "src/env/blocking/output.rs",
        "an end without destructors when the reader went away",
    ),
    (
        "src/env/blocking/terminal.rs",
        "the terminal's settings, and a wait for a key",
    ),
    (
        "src/env/real/preflight/tests.rs",
        "limits and filters of the test's own process",
    ),
    (
        "src/env/net/conn.rs",
        "reading into memory nobody wrote yet, sending several buffers",
    ),
    (
        "src/env/net/http.rs",
        "reading into memory nobody wrote yet",
    ),
    (
        "src/env/net/listener.rs",
        "a socket that changes hands, and its shutdown",
    ),
    (
        "src/env/net/poll.rs",
        "a descriptor that the poller knows until it is closed",
    ),
    (
        "src/env/process/facts.rs",
        "system calls that no crate wraps",
    ),
    (
        "src/env/process/lock.rs",
        "the kernel's lock on the data directory",
    ),
    ("src/env/process/mod.rs", "system calls that no crate wraps"),
    ("src/env/process/signals.rs", "signal dispositions"),
    (
        "src/env/process/usage.rs",
        "system calls that no crate wraps",
    ),
    (
        "src/env/process/tests.rs",
        "what the above did, asked of the kernel",
    ),
    ("src/env/real/disk.rs", "flags of an open file"),
    (
        "src/env/real/disk/tests.rs",
        "resource limits of the test's own process",
    ),
    (
        "src/env/real/executor/tests.rs",
        "resource limits of the test's own process",
    ),
    (
        "src/env/real/preflight.rs",
        "asking the kernel what it can do",
    ),
    (
        "src/env/real/ring.rs",
        "functions that the linker puts in front of liburing's",
    ),
    (
        "src/env/real/watchdog.rs",
        "the signal that wakes a parked executor",
    ),
];

/// The files that may share memory between threads, each with why.
const SHARED_FILES: &[(&str, &str)] = &[
    (
        "src/env/blocking/terminal.rs",
        "how the terminal was, for whichever thread ends the process",
    ),
    ("src/env/process/mod.rs", "what a signal handler may touch"),
    (
        "src/env/real/executor.rs",
        "the heartbeat that the watchdog reads",
    ),
    (
        "src/env/real/ring.rs",
        "counts of what the linker's wrap did, for every executor",
    ),
    (
        "src/env/real/watchdog.rs",
        "the heartbeat that the watchdog reads",
    ),
    (
        "src/env/sim/executor.rs",
        "wakers must be Send, though none is ever sent",
    ),
    (
        "src/server/logging.rs",
        "the log's guard, taken once when the process ends",
    ),
];

/// Types, crates and operations through which threads share memory. `Arc` alone shares what nobody
/// changes, and is free but on the data path.
const SHARED_TYPES: [&str; 18] = [
    "Mutex",
    "RwLock",
    "Condvar",
    "OnceLock",
    "LazyLock",
    "Barrier",
    "Semaphore",
    "ArcSwap",
    "UnsafeCell",
    "static mut",
    "mpsc",
    "parking_lot",
    "crossbeam",
    "fetch_add",
    "fetch_sub",
    "compare_exchange",
    "compare_exchange_weak",
    "spin_loop",
];

/// The rooms that a record passes. Nothing in them locks or changes shared memory, whatever the
/// list above says.
const DATA_PATH: [&str; 5] = ["session", "router", "shard", "journal", "wire"];

/// Their files that may hold what counts its holders across threads (`Arc`), or a channel between
/// cores (`flume`): each says when, and it is never for each record.
const CROSSING_FILES: &[(&str, &str)] = &[
    (
        "src/journal/error.rs",
        "why a journal is poisoned, told once",
    ),
    (
        "src/router/control.rs",
        "changes of the catalogue, on core 0",
    ),
    (
        "src/router/fetch.rs",
        "parts that another core owns: the hop",
    ),
    ("src/router/mesh.rs", "the hop between cores itself"),
    (
        "src/router/mod.rs",
        "the ends of the lanes; the catalogue, when it changes",
    ),
    (
        "src/router/produce.rs",
        "parts that another core owns: the hop",
    ),
    ("src/session/connection.rs", "once, when a connection ends"),
    (
        "src/session/handlers/metadata.rs",
        "topics as Metadata tells them",
    ),
    ("src/session/handlers/topics.rs", "changes of topics"),
    ("src/shard/catalog.rs", "topics, changed on shard 0 only"),
    (
        "src/shard/control.rs",
        "changes of the catalogue, on core 0",
    ),
];

/// Uses of a word or path that belongs to another room.
fn strangers(source: &Source) -> Vec<Violation> {
    let room = source.room().unwrap_or_default();
    let code = &source.product;
    let mut violations = Vec::new();
    for (name, home) in ONE_ROOM.iter().filter(|(_, home)| *home != room) {
        for position in uses(code, name) {
            let line = source::line_of(code, position);
            let what = format!("`{name}` belongs to room `{home}` only");
            violations.push(Violation::new(&source.path, line, what));
        }
    }
    violations
}

/// Positions where `name` is used.
fn uses(code: &str, name: &str) -> Vec<usize> {
    if let Some(bare) = name.strip_suffix("::") {
        return source::words(code, bare)
            .filter(|&at| code[at..].starts_with(name))
            .collect();
    }
    let mut found: Vec<usize> = source::words(code, name).collect();
    if let Some(module) = name.strip_prefix("std::") {
        for at in source::words(code, "std").filter(|&at| code[at..].starts_with("std::{")) {
            if source::group_names(code, at + "std::".len()).contains(&module) {
                found.push(at);
            }
        }
    }
    found
}

/// `unsafe` outside the listed files.
fn unlisted_unsafe(source: &Source, listed: &[(&str, &str)]) -> Vec<Violation> {
    if listed.iter().any(|(path, _)| *path == source.path) {
        return Vec::new();
    }
    let what = "`unsafe` outside the listed files";
    let positions = source::words(&source.code, "unsafe");
    let lines = positions.map(|at| source::line_of(&source.code, at));
    lines
        .map(|line| Violation::new(&source.path, line, what))
        .collect()
}

/// Shared, changeable memory outside the listed files.
fn unlisted_sharing(source: &Source, listed: &[(&str, &str)]) -> Vec<Violation> {
    if listed.iter().any(|(path, _)| *path == source.path) {
        return Vec::new();
    }
    let code = &source.product;
    let mut positions: Vec<usize> = Vec::new();
    for name in SHARED_TYPES {
        positions.extend(source::words(code, name));
    }
    let atomics = code.match_indices("Atomic").map(|(at, _)| at);
    positions.extend(atomics.filter(|&at| {
        let kind = source::ident_at(code, at);
        kind.len() > "Atomic".len() && (at == 0 || !source::is_ident(code.as_bytes()[at - 1]))
    }));
    let lines = positions.into_iter().map(|at| source::line_of(code, at));
    let what = "shared memory outside the listed files (a core owns its state)";
    lines
        .map(|line| Violation::new(&source.path, line, what))
        .collect()
}

#[test]
fn the_kernel_time_chance_and_codec_stay_in_their_rooms() {
    let sources = source::product_sources();
    let inside = sources.iter().filter(|source| source.path != "src/main.rs");
    expect_none("one door", inside.flat_map(strangers).collect());
}

#[test]
fn unsafe_stays_in_the_listed_files() {
    let sources = source::product_sources();
    let found = sources
        .iter()
        .flat_map(|source| unlisted_unsafe(source, UNSAFE_FILES));
    expect_none("unsafe", found.collect());
}

#[test]
fn shared_memory_stays_in_the_listed_files() {
    let sources = source::product_sources();
    let found = sources
        .iter()
        .flat_map(|source| unlisted_sharing(source, SHARED_FILES));
    expect_none("sharing", found.collect());
}

/// What crosses threads in a room of the data path, outside the listed files.
fn unlisted_crossing(source: &Source, listed: &[(&str, &str)]) -> Vec<Violation> {
    let room = source.room().unwrap_or_default();
    if !DATA_PATH.contains(&room) || listed.iter().any(|(path, _)| *path == source.path) {
        return Vec::new();
    }
    let code = &source.product;
    let positions = ["Arc", "flume"].into_iter();
    let positions = positions.flat_map(|name| source::words(code, name));
    let what = "crosses threads on the data path, outside the listed files";
    positions
        .map(|at| Violation::new(&source.path, source::line_of(code, at), what))
        .collect()
}

/// Goal: no lock and no atomic read-modify-write on the produce and fetch paths. Method: the rooms
/// of the path have no file among those that may share memory, and what crosses threads in them is
/// in the few files that say when.
#[test]
fn the_data_path_neither_locks_nor_shares() {
    for (path, why) in SHARED_FILES {
        let room = path.split('/').nth(1).unwrap_or_default();
        assert!(!DATA_PATH.contains(&room), "{path} shares memory: {why}");
    }
    let sources = source::product_sources();
    let found = sources
        .iter()
        .flat_map(|source| unlisted_crossing(source, CROSSING_FILES));
    expect_none("crossing", found.collect());
}

/// A list that names a file which no longer needs it would let the next one in unseen.
#[test]
fn the_lists_name_only_files_that_need_them() {
    let sources = source::product_sources();
    for (path, why) in UNSAFE_FILES {
        assert!(
            path.starts_with("src/env/"),
            "{path}: unsafe belongs to env"
        );
        let source = sources
            .iter()
            .find(|source| source.path == *path)
            .expect(path);
        assert!(
            !unlisted_unsafe(source, &[]).is_empty(),
            "{path} no longer needs: {why}"
        );
    }
    for (path, why) in SHARED_FILES {
        let source = sources
            .iter()
            .find(|source| source.path == *path)
            .expect(path);
        assert!(
            !unlisted_sharing(source, &[]).is_empty(),
            "{path} no longer needs: {why}"
        );
    }
    for (path, why) in CROSSING_FILES {
        let source = sources.iter().find(|source| source.path == *path);
        assert!(
            !unlisted_crossing(source.expect(path), &[]).is_empty(),
            "{path} no longer needs: {why}"
        );
    }
}

/// Bad samples: each banned word, in each way it can be written.
#[test]
fn a_stranger_is_seen() {
    let samples = [
        "use glommio::Task;\n",
        "use std::fs::File;\n",
        "use std::{fmt, fs};\n",
        "use std::{net::TcpStream, rc::Rc};\n",
        "let now = std::time::Instant::now();\n",
        "use std::time::{Duration, SystemTime};\n",
        "let chance = rand::random();\n",
        "let chance = fastrand::u64(..);\n",
        "std::thread::sleep(x);\n",
        "libc::getpid();\n",
        "use kafka_wire::messages;\n",
    ];
    for text in samples {
        let found = strangers(&Source::new("src/journal/commit.rs", text));
        assert_eq!(found.len(), 1, "{text}: {found:?}");
    }
}

/// Good samples: the same words where they belong, or where they are no code.
#[test]
fn a_resident_is_let_be() {
    let samples = [
        ("src/env/real/disk.rs", "use glommio::io::DmaFile;\n"),
        ("src/wire/messages.rs", "pub use kafka_wire::messages;\n"),
        (
            "src/journal/commit.rs",
            "// glommio has std::fs\nlet operand::x = \"libc\";\n",
        ),
        (
            "src/journal/commit.rs",
            "use std::{fmt, time::Duration};\nlet instant = 3;\n",
        ),
        (
            "src/journal/commit.rs",
            "#[cfg(test)]\nmod tests { use std::fs; }\n",
        ),
    ];
    for (path, text) in samples {
        assert_eq!(
            strangers(&Source::new(path, text)),
            Vec::new(),
            "{path}: {text}"
        );
    }
}

#[test]
fn unsafe_and_sharing_are_seen() {
    let text = "// unsafe\nfn f() { unsafe { g() } }\n#[cfg(test)]\nmod t { unsafe fn h() {} }\n";
    let source = Source::new("src/env/clock.rs", text);
    assert_eq!(
        unlisted_unsafe(&source, &[]).len(),
        2,
        "test code may not be unsafe either"
    );
    assert_eq!(
        unlisted_unsafe(&source, &[("src/env/clock.rs", "sample")]).len(),
        0
    );
    for text in [
        "use std::sync::Mutex;\n",
        "static COUNT: AtomicU64 = AtomicU64::new(0);\n",
        "static mut X: u8 = 0;\n",
        "use std::sync::{Arc, RwLock};\n",
        "use std::sync::mpsc;\n",
        "count.fetch_add(1, order);\n",
        "static LOCK: parking_lot::RawMutex = x;\n",
    ] {
        let source = Source::new("src/shard/apply.rs", text);
        assert!(!unlisted_sharing(&source, &[]).is_empty(), "{text}");
    }
    let free = Source::new(
        "src/shard/apply.rs",
        "use std::sync::Arc; let x = Atomic; MutexLike\n",
    );
    assert_eq!(unlisted_sharing(&free, &[]), Vec::new());
}

#[test]
fn what_crosses_threads_on_the_data_path_is_seen() {
    let text = "use std::sync::Arc;\nlet (sender, receiver) = flume::bounded(1);\n";
    let seen = |path: &str| unlisted_crossing(&Source::new(path, text), CROSSING_FILES).len();
    assert_eq!(seen("src/shard/append.rs"), 2);
    assert_eq!(seen("src/router/mesh.rs"), 0, "a listed file");
    assert_eq!(seen("src/server/core.rs"), 0, "not on the path of a record");
}
