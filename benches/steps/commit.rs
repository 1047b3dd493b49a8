//! What does it cost until one small message is durable: on the simulated disk (our own code), and
//! on the disk of the build folder (its write and flush)?

use crate::one_core::{OneCore, produce_frame, records_batch};
use crate::simulated;
use crate::support::broker::home;
use criterion::Criterion;
use penstock::env::real::executor::run_one;
use std::time::{Duration, Instant};

const VALUE_BYTES: usize = 100;

pub fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("commit");
    group.bench_function("simulated disk", |bencher| {
        bencher.iter_custom(|rounds| {
            simulated(move |core| async move { one_by_one(&core, rounds).await })
        });
    });
    group.bench_function("real disk", |bencher| {
        bencher.iter_custom(|rounds| {
            let home = home("steps");
            let folder = home.path().join("shard-000");
            let timed = run_one("bench", move |here| async move {
                let core = OneCore::open(here.env, &folder).await;
                one_by_one(&core, rounds).await
            });
            timed.expect("an executor can be made")
        });
    });
    group.finish();
}

async fn one_by_one(core: &OneCore, rounds: u64) -> Duration {
    let frame = produce_frame(0, &records_batch(1, VALUE_BYTES, None));
    let began = Instant::now();
    for _ in 0..rounds {
        core.ask(&frame).await;
    }
    began.elapsed()
}
