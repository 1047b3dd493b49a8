//! What does a small message cost from its frame to a packed block and its answer, when so many
//! arrive together that they share the block?

use crate::one_core::{produce_frame, records_batch};
use crate::simulated;
use criterion::{BenchmarkId, Criterion, Throughput};
use futures_util::future::join_all;
use std::time::Instant;

const TOGETHER: [usize; 3] = [1, 64, 512];
const VALUE_BYTES: usize = 100;

pub fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pack");
    for together in TOGETHER {
        group.throughput(Throughput::Elements(together as u64));
        group.bench_function(BenchmarkId::from_parameter(together), |bencher| {
            bencher.iter_custom(|rounds| {
                simulated(move |core| async move {
                    let frame = produce_frame(0, &records_batch(1, VALUE_BYTES, None));
                    let began = Instant::now();
                    for _ in 0..rounds {
                        join_all((0..together).map(|_| core.ask(&frame))).await;
                    }
                    began.elapsed()
                })
            });
        });
    }
    group.finish();
}
