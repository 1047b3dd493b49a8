//! What one step of a record's way costs in time, one question a file.
//!
//! `cargo bench --bench steps` answers all, `cargo bench --bench steps -- decode` some; without
//! cargo's `--bench` each step is taken once, as a test of itself. Steps without a disk or a socket
//! run in a simulation whose disk answers at once: what is timed there is our own code, and the
//! simulation's bookkeeping with it. Counts of instructions, which repeat, are `instructions`'.

mod commit;
mod crc;
mod decode;
mod hop;
#[path = "../../tests/allocations/one_core.rs"]
mod one_core;
mod pack;
mod plan;
mod request;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::future::Future;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use one_core::OneCore;
use penstock::env::sim::Sim;

criterion_group! {
    name = steps;
    // Short: a simulated disk is kept in memory and only grows while a sample is taken.
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .without_plots();
    targets = crc::bench, decode::bench, pack::bench, plan::bench, commit::bench, hop::bench,
        request::bench
}
criterion_main!(steps);

/// Runs `body` on a core in a simulation without latencies.
fn simulated<T: 'static, F: Future<Output = T> + 'static>(
    body: impl FnOnce(OneCore) -> F + 'static,
) -> T {
    let sim = Sim::new(7).unrecorded().instant().polls_max(u64::MAX);
    let run = sim.run(move |env| async move {
        let core = OneCore::open(env, "/shard-000".as_ref()).await;
        body(core).await
    });
    run.value
}
