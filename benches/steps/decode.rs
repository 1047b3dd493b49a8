//! What does it cost to understand a produce, as a broker, and a fetch's answer, as a client, in
//! old and new versions?

use crate::one_core::{fetch_frame, in_version, produce_frame, records_batch};
use crate::simulated;
use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput};
use penstock::base::record_batch::BatchView;
use penstock::wire::{RequestHeader, request, response, versions};
use std::hint::black_box;

const RECORDS: [usize; 2] = [1, 1_000];
const VALUE_BYTES: usize = 100;
const PRODUCE_VERSIONS: [i16; 3] = [3, 7, 12];
const FETCH_VERSIONS: [i16; 3] = [4, 11, 12];

pub fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for records in RECORDS {
        let batch = records_batch(records, VALUE_BYTES, None);
        group.throughput(Throughput::Bytes(batch.len() as u64));
        for version in PRODUCE_VERSIONS {
            let frame = in_version(&produce_frame(0, &batch), version);
            let name = BenchmarkId::new(format!("produce v{version}"), records);
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    let (header, body) = RequestHeader::decode(black_box(&frame)).expect("valid");
                    request::decode(&header, &body).expect("valid")
                });
            });
        }
        group.bench_function(BenchmarkId::new("validate batch", records), |bencher| {
            bencher.iter(|| {
                let (view, _) = BatchView::split(black_box(&batch)).expect("valid");
                view.validate_produced().expect("valid");
            });
        });
        for version in FETCH_VERSIONS {
            let answer = fetch_answer(&batch, version);
            let name = BenchmarkId::new(format!("fetch answer v{version}"), records);
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    response::decode(versions::FETCH, version, black_box(&answer)).expect("valid")
                });
            });
        }
    }
    group.finish();
}

/// What the broker answers to a fetch of `batch`, without the frame's length.
fn fetch_answer(batch: &[u8], version: i16) -> Bytes {
    let stored = produce_frame(0, batch);
    let asked = in_version(&fetch_frame(1, 0), version);
    let answer = simulated(move |core| async move {
        core.ask(&stored).await;
        core.ask(&asked).await
    });
    answer.slice(4..)
}
