//! Runs the fuzz bodies of `src/wire/fuzz` seeded, on stable Rust, with an allocator that counts.
//!
//! `PENSTOCK_FUZZ` is the number of executions of each target (default 20,000; CI sets 1,000,000),
//! `PENSTOCK_FUZZ_SEED` the first seed. Execution number n of a target depends only on seed + n, so
//! a failure prints all that is needed to see it again.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use penstock::base::ids::TopicId;
use penstock::base::record_batch::{BatchBuilder, BatchView, RecordData};
use penstock::wire::fetch::{FetchReply, PartitionReply, TopicReply};
use penstock::wire::fuzz::{self, Meter, Target};
use penstock::wire::produce::{ProducePartition, ProduceRequest, ProduceTopic};
use penstock::wire::schema::Entropy;
use penstock::wire::versions::{self, SERVED};
use penstock::wire::{Request, RequestHeader, Text, request};

/// The system allocator, counting the bytes each thread holds.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
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
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
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
        let frame = Bytes::from(frame);
        let (_, body) = RequestHeader::decode(&frame).expect("recorded");
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

/// Goal: a count that is honest costs no heap either. Method: Metadata for 30,000 empty names in
/// every version before ids; as a list they would take twenty times the bytes.
#[test]
fn honest_bombs_cost_nothing() {
    for version in 0..=9 {
        let flexible = version == 9;
        let mut body = match flexible {
            true => vec![0xb1, 0xea, 0x01], // 30,001
            false => 30_000u32.to_be_bytes().to_vec(),
        };
        // An empty name is two zeros; in version 9 a length of 1 and no tagged fields.
        for _ in 0..30_000 {
            body.extend_from_slice(&[u8::from(flexible), 0]);
        }
        let booleans = usize::from(version >= 4) + 2 * usize::from(version >= 8);
        body.resize(body.len() + booleans + usize::from(flexible), 0);
        let body = Bytes::from(body);
        let header = RequestHeader {
            api_key: versions::METADATA,
            api_version: version,
            ..RequestHeader::default()
        };
        let peak = ThreadHeap.peak(&mut || {
            let decoded = request::decode(&header, &body);
            let Ok(Request::Metadata(metadata)) = decoded else {
                panic!("version {version}: {decoded:?}")
            };
            let topics = metadata.topics.expect("not null");
            assert_eq!(topics.iter().count(), 30_000);
        });
        assert!(peak < 1024, "{peak} bytes");
    }
}

/// Goal: the heap bound is really measured. Method: work that breaks it must be seen to.
#[test]
fn the_meter_counts() {
    let peak = ThreadHeap.peak(&mut || drop(std::hint::black_box(vec![0u8; 1 << 20])));
    assert!((1 << 20..2 << 20).contains(&peak));
}

/// A batch of one record.
fn small_batch() -> Bytes {
    let mut batch = BatchBuilder::new();
    let value = Some(&b"value"[..]);
    batch.append(&RecordData {
        value,
        ..RecordData::default()
    });
    Bytes::from(batch.finish())
}

/// A Produce of 200 partitions, as a session gets it: without its length.
fn produce_frame() -> Bytes {
    let batch = small_batch();
    let partition = |index| ProducePartition {
        index,
        records: Some(batch.clone()),
    };
    let topic = ProduceTopic {
        name: Text::from("topic"),
        partitions: (0..200).map(partition).collect(),
        ..ProduceTopic::default()
    };
    let produce = ProduceRequest {
        topics: vec![topic].into(),
        ..ProduceRequest::default()
    };
    let header = RequestHeader {
        api_key: versions::PRODUCE,
        api_version: 9,
        ..RequestHeader::default()
    };
    let frame = request::encode(&header, &produce.into()).expect("short names");
    Bytes::from(frame[4..].to_vec())
}

/// Goal: producing allocates per request, not per partition. Method: count: decoding 200 partitions
/// and checking their batches makes the frame shareable, once.
#[test]
fn decoding_a_produce_allocates_once() {
    let frame = produce_frame();
    let before = ALLOCATIONS.get();
    let (header, body) = RequestHeader::decode(&frame).expect("our own");
    let Ok(Request::Produce(produce)) = request::decode(&header, &body) else {
        panic!("our own request is refused")
    };
    let mut batches = 0;
    for topic in &produce.topics {
        for partition in &topic.partitions {
            let records = partition.records.expect("not null");
            let batch = BatchView::only(&records).expect("a batch");
            batch.validate_produced().expect("good");
            batches += 1;
        }
    }
    assert_eq!(batches, 200);
    let allocations = ALLOCATIONS.get() - before;
    assert!(allocations <= 1, "{allocations}");
}

/// Goal: fetching allocates per answer, not per partition. Method: count: an answer of 200
/// partitions takes its buffer and the handle of it.
#[test]
fn encoding_a_fetch_allocates_twice() {
    let batch = small_batch();
    let partition = |index| PartitionReply {
        records: vec![batch.clone(), batch.clone()],
        ..PartitionReply::error(index, 0)
    };
    let topic = TopicReply {
        name: Text::from("topic"),
        topic_id: TopicId::default(),
        partitions: (0..200).map(partition).collect(),
    };
    let reply = FetchReply {
        topics: vec![topic],
        ..FetchReply::default()
    };
    for version in [4, 12, 18] {
        let before = ALLOCATIONS.get();
        let frame = reply.encode(version, 1).expect("short names");
        let allocations = ALLOCATIONS.get() - before;
        assert!(frame.len() > 400 * batch.len());
        assert!(allocations <= 2, "{allocations}");
    }
}
