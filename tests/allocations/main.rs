//! No allocation per record on the way in or out.
//!
//! Goal: what a request costs the allocator does not depend on how many records it carries, and
//! is within a written budget. Method: a counting allocator around one core that is asked by
//! frames, in a simulation (one thread, equal seeds give equal runs), so that everything between
//! the socket's two ends is counted: decode, admission, validate, stage, pack, commit, answer; and
//! decode, plan, read from memory, answer. The simulated disk and executor are counted with them.
//! Batches have the same length in bytes whatever their number of records, so that equal counts
//! are to be expected exactly.

mod counting;
mod one_core;
#[path = "../support/mod.rs"]
mod support;

use bytes::Bytes;
use counting::Counting;
use one_core::{OneCore, fetch_frame, in_version, produce_frame, records_batch};
use penstock::env::sim::Sim;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Numbers of records in a batch that must make no difference.
const RECORDS: [usize; 3] = [1, 1_000, 10_000];
/// Length of each such batch.
const BATCH_BYTES: usize = 256 << 10;
/// Requests before counting, so that tables that grow have their size, and counted ones.
const WARM: usize = 200;
const COUNTED: usize = 100;

/// Most allocations of one produce of a small batch, its block's write in the simulation included.
/// What was measured when this was written, like the next two: it can only fall.
const PRODUCE_MAX: f64 = 17.1;
/// Most allocations of one fetch of one small batch.
const FETCH_MAX: f64 = 14.0;
/// Most further allocations of a fetch of a thousand batches instead of one: vectors that double.
const FETCH_MANY_MORE_MAX: u64 = 16;

/// Allocations of [`COUNTED`] rounds of asking `frame`, after [`WARM`] ones. Before them `first`
/// is asked once for each count.
fn allocations(first: (Bytes, usize), frame: Bytes) -> u64 {
    let sim = Sim::new(7).unrecorded();
    let run = sim.run(move |env| async move {
        let core = OneCore::open(env, "/shard-000".as_ref()).await;
        for _ in 0..first.1 {
            core.ask(&first.0).await;
        }
        for _ in 0..WARM {
            core.ask(&frame).await;
        }
        let before = counting::so_far();
        for _ in 0..COUNTED {
            core.ask(&frame).await;
        }
        counting::so_far() - before
    });
    run.value
}

fn nothing() -> (Bytes, usize) {
    (Bytes::new(), 0)
}

fn sized(records: usize) -> Vec<u8> {
    records_batch(records, 8, Some(BATCH_BYTES))
}

fn each(count: u64) -> f64 {
    count as f64 / COUNTED as f64
}

/// Goal: the counter counts, so that equal counts mean something. Method: a vector of boxes.
#[test]
fn an_allocation_is_seen() {
    let before = counting::so_far();
    let boxes: Vec<Box<u64>> = (0..10).map(Box::new).collect();
    let made = counting::so_far() - before;
    assert_eq!(made, 11, "{boxes:?}");
}

/// Goal: a produce of 10,000 records allocates what one of 1 record does, in the oldest version
/// served without compact encoding and in one with it. Method: see the head of this file.
#[test]
fn a_produce_allocates_nothing_for_a_record() {
    for version in [3, 7, 12] {
        let counts = RECORDS.map(|records| {
            let frame = produce_frame(0, &sized(records));
            allocations(nothing(), in_version(&frame, version))
        });
        println!("produce v{version}: {} allocations each", each(counts[0]));
        assert_eq!(counts, [counts[0]; 3], "version {version}");
    }
}

/// Goal: the same for a fetch that is served from memory. Method: one batch is stored and fetched.
#[test]
fn a_fetch_allocates_nothing_for_a_record() {
    for version in [4, 11, 12] {
        let counts = RECORDS.map(|records| {
            let stored = (produce_frame(0, &sized(records)), 1);
            allocations(stored, in_version(&fetch_frame(1, 0), version))
        });
        println!("fetch v{version}: {} allocations each", each(counts[0]));
        assert_eq!(counts, [counts[0]; 3], "version {version}");
    }
}

/// Goal: small messages stay within the budget of a request. Method: requests of one 100-byte
/// record.
#[test]
fn a_small_request_stays_within_its_budget() {
    let small = records_batch(1, 100, None);
    let produce = each(allocations(nothing(), produce_frame(0, &small)));
    let stored = (produce_frame(0, &small), 1);
    let fetch = each(allocations(stored, fetch_frame(1, 0)));
    println!("100 B: produce {produce}, fetch {fetch} allocations");
    assert!(
        produce <= PRODUCE_MAX,
        "a produce makes {produce} allocations"
    );
    assert!(fetch <= FETCH_MAX, "a fetch makes {fetch} allocations");
}

/// Goal: a fetch over many batches allocates for the answer and not for each of them. Method: a
/// thousand batches of one record, against one.
#[test]
fn a_fetch_over_many_batches_allocates_for_none_of_them() {
    let small = produce_frame(0, &records_batch(1, 100, None));
    let one = allocations((small.clone(), 1), fetch_frame(1, 0)) / COUNTED as u64;
    let many = allocations((small, 1_000), fetch_frame(1, 0)) / COUNTED as u64;
    println!("fetch of 1 batch {one}, of 1,000 {many} allocations");
    assert!(many <= one + FETCH_MANY_MORE_MAX, "{many} against {one}");
}
