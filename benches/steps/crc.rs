//! What does the check of a batch cost, from a small one to the largest?

use criterion::{BenchmarkId, Criterion, Throughput};
use std::hint::black_box;

const SIZES: [usize; 5] = [100, 1 << 10, 16 << 10, 256 << 10, 1 << 20];

pub fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("crc");
    for bytes in SIZES {
        let data: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
            bencher.iter(|| crc32c::crc32c(black_box(&data)));
        });
    }
    group.finish();
}
