//! Runs the fuzz bodies of `src/wire/fuzz` seeded, on stable Rust, with an allocator that counts.
//!
//! `PENSTOCK_FUZZ` is the number of executions of each target (default 20,000; CI sets 1,000,000),
//! `PENSTOCK_FUZZ_SEED` the first seed. Execution number n of a target depends only on seed + n, so
//! a failure prints all that is needed to see it again.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use penstock::wire::fuzz::{self, Meter, Target};
use penstock::wire::schema::Entropy;
use penstock::wire::versions::{self, SERVED};

/// The system allocator, counting the bytes each thread holds.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let held = HELD.get() + bytes;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

// SAFETY: every call goes to the system allocator unchanged; counting touches only thread-local
// cells that are constant-initialised and have no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

struct ThreadHeap;

impl Meter for ThreadHeap {
    fn peak(&self, work: &mut dyn FnMut()) -> usize {
        let before = HELD.get();
        PEAK.set(before);
        work();
        (PEAK.get() - before).unsigned_abs()
    }
}

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(value) => value.parse().expect("a number"),
        Err(_) => default,
    }
}

/// Inputs longer than this are not kept in the corpus of a run.
const CORPUS_BYTES_MAX: usize = 4096;

/// Executes a target on samples, on damaged samples and on damaged recordings.
fn fuzz(name: &str, corpus: &[Vec<u8>], mut target: impl FnMut(&mut Entropy) -> Target) {
    let executions = setting("PENSTOCK_FUZZ", 20_000);
    let seed = setting("PENSTOCK_FUZZ_SEED", 1);
    for number in 0..executions {
        let mut entropy = Entropy::new(seed.wrapping_add(number));
        let target = target(&mut entropy);
        let mut input = match corpus {
            [] => fuzz::sample(target, &mut entropy),
            _ if entropy.one_in(2) => fuzz::sample(target, &mut entropy),
            _ => corpus[entropy.below(corpus.len())].clone(),
        };
        if !entropy.one_in(8) {
            fuzz::mutate(&mut input, &mut entropy);
        }
        let run = AssertUnwindSafe(|| fuzz::run(target, &input, &ThreadHeap));
        if catch_unwind(run).is_err() {
            let seed = seed.wrapping_add(number);
            panic!("{name}: PENSTOCK_FUZZ=1 PENSTOCK_FUZZ_SEED={seed}: {target:?} {input:02x?}");
        }
    }
}

/// Bodies of recorded requests (or whole answers) of one API and version.
fn recorded(wanted: impl Fn(i16, i16) -> bool, field: &str) -> Vec<(i16, i16, Vec<u8>)> {
    let lines = include_str!("data/kafka-4.4.jsonl");
    let mut found = Vec::new();
    for line in lines.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
        let key = value["api_key"].as_i64().expect("a number") as i16;
        let version = value["version"].as_i64().expect("a number") as i16;
        let Some(hex) = value[field].as_str() else {
            continue;
        };
        if wanted(key, version) && hex.len() <= 2 * CORPUS_BYTES_MAX {
            found.push((key, version, unhex(hex)));
        }
    }
    found
}

fn unhex(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("a hex digit") as u8;
    let pairs = hex.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

fn request_bodies(api_key: i16) -> Vec<Vec<u8>> {
    let frames = recorded(|key, _| key == api_key, "request");
    let body = |(_, _, frame): (i16, i16, Vec<u8>)| {
        let frame = bytes::Bytes::from(frame);
        let (_, body) = penstock::wire::RequestHeader::decode(&frame).expect("recorded");
        body.to_vec()
    };
    frames.into_iter().map(body).collect()
}

macro_rules! requests {
    ($($name:ident: $key:path;)*) => {
    $(
        /// Goal: no bytes harm this request's decoder in any served version. Method: see above.
        #[test]
        fn $name() {
            fuzz(stringify!($name), &request_bodies($key), |entropy| Target::Request {
                api_key: $key,
                version: fuzz::version_of($key, entropy),
            });
        }
    )*

        /// Goal: every served API is fuzzed. Method: the list of tests is the served table.
        #[test]
        fn every_served_api_has_a_target() {
            let mut fuzzed = vec![$( $key, )*];
            fuzzed.sort_unstable();
            assert_eq!(fuzzed, SERVED.map(|range| range.key));
        }
    };
}

requests! {
    request_produce: versions::PRODUCE;
    request_fetch: versions::FETCH;
    request_list_offsets: versions::LIST_OFFSETS;
    request_metadata: versions::METADATA;
    request_find_coordinator: versions::FIND_COORDINATOR;
    request_api_versions: versions::API_VERSIONS;
    request_create_topics: versions::CREATE_TOPICS;
    request_delete_topics: versions::DELETE_TOPICS;
    request_init_producer_id: versions::INIT_PRODUCER_ID;
    request_describe_configs: versions::DESCRIBE_CONFIGS;
    request_create_partitions: versions::CREATE_PARTITIONS;
    request_describe_cluster: versions::DESCRIBE_CLUSTER;
}

/// Goal: no bytes harm a client. Method: every API's answers in turn.
#[test]
fn responses() {
    let frames = recorded(|key, _| versions::served(key).is_some(), "response");
    let corpus: Vec<_> = frames.into_iter().map(|(_, _, frame)| frame).collect();
    fuzz("responses", &corpus, |entropy| {
        let api_key = SERVED[entropy.below(SERVED.len())].key;
        let version = fuzz::version_of(api_key, entropy);
        Target::Response { api_key, version }
    });
}

/// Goal: no stream harms the splitter, and it finds the same frames however the stream is cut.
#[test]
fn frames() {
    fuzz("frames", &[], |_| Target::Frames);
}

/// Goal: no frame harms the way from header to request or refusal. Method: samples of served
/// requests, also under other API keys and versions, and every recorded request.
#[test]
fn whole_requests() {
    let frames = recorded(|_, _| true, "request");
    let corpus: Vec<_> = frames.into_iter().map(|(_, _, frame)| frame).collect();
    fuzz("whole_requests", &corpus, |_| Target::Requests);
}

/// Goal: no batch harms its readers, whatever its codec. Method: samples of every codec, damaged
/// before and behind the checksum.
#[test]
fn batches() {
    fuzz("batches", &[], |_| Target::Batches);
}

/// Goal: the two bodies known to abort other brokers cost nothing here. Method: 4 bytes of
/// Metadata that ask for 2^31 topics, 12 bytes of Produce that ask for 2^31 of them.
#[test]
fn known_bombs() {
    let metadata = |version| Target::Request {
        api_key: versions::METADATA,
        version,
    };
    for version in 0..=8 {
        fuzz::run(metadata(version), &[0x7f, 0xff, 0xff, 0xff], &ThreadHeap);
    }
    let produce = [0, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f];
    for version in 9..=13 {
        let target = Target::Request {
            api_key: versions::PRODUCE,
            version,
        };
        fuzz::run(target, &produce, &ThreadHeap);
    }
}

/// Goal: the heap bound is really measured. Method: work that breaks it must be seen to.
#[test]
fn the_meter_counts() {
    let peak = ThreadHeap.peak(&mut || drop(std::hint::black_box(vec![0u8; 1 << 20])));
    assert!((1 << 20..2 << 20).contains(&peak));
}
