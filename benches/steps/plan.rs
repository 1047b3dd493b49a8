//! What does a fetch cost that is planned and answered from memory, over few and over many extents?

use crate::one_core::{fetch_frame, produce_frame, records_batch};
use crate::simulated;
use criterion::{BenchmarkId, Criterion, Throughput};
use std::time::Instant;

const EXTENTS: [usize; 4] = [1, 100, 1_000, 10_000];
const VALUE_BYTES: usize = 100;

pub fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plan");
    for extents in EXTENTS {
        group.throughput(Throughput::Elements(extents as u64));
        // The whole backlog in one answer, then only its newest message: how deep it lies must not
        // matter.
        for (name, offset) in [("all of", 0), ("newest of", extents as i64 - 1)] {
            group.bench_function(BenchmarkId::new(name, extents), |bencher| {
                bencher.iter_custom(|rounds| {
                    simulated(move |core| async move {
                        let stored = produce_frame(0, &records_batch(1, VALUE_BYTES, None));
                        for _ in 0..extents {
                            core.ask(&stored).await;
                        }
                        let asked = fetch_frame(1, offset);
                        let began = Instant::now();
                        for _ in 0..rounds {
                            core.ask(&asked).await;
                        }
                        began.elapsed()
                    })
                });
            });
        }
    }
    group.finish();
}
