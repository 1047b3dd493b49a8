//! What does one request cost end to end, on one connection to the real broker: one that does
//! nothing, a durable produce, a fetch of what was produced?

use crate::one_core::records_batch;
use crate::support::broker::{Broker, Options, home};
use crate::support::client::{Connection, code};
use criterion::Criterion;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);
const TOPIC: &str = "request";
const VALUE_BYTES: usize = 100;
const FETCH_BYTES: i32 = 1 << 20;

pub fn bench(criterion: &mut Criterion) {
    let home = home("steps");
    let (broker, ready) = Broker::start(&Options::new(home.path()));
    let mut connection = Connection::open(ready.kafka[0], TIMEOUT).expect("it listens");
    let made = connection.create_topic(TOPIC, 1, &[]);
    assert_eq!(made.expect("an answer"), code::NONE);
    let batch = records_batch(1, VALUE_BYTES, None);
    let first = connection.produce(TOPIC, 0, -1, &batch);
    let first = first.expect("an answer").base_offset;
    let mut group = criterion.benchmark_group("request");
    group.bench_function("api versions", |bencher| {
        bencher.iter(|| connection.api_versions().expect("an answer"));
    });
    group.bench_function("fetch of the first message", |bencher| {
        bencher.iter(|| {
            let found = connection.fetch(TOPIC, &[(0, first)], 0, FETCH_BYTES);
            assert_eq!(found.expect("an answer")[0].error, code::NONE);
        });
    });
    group.bench_function("durable produce", |bencher| {
        bencher.iter(|| {
            let produced = connection.produce(TOPIC, 0, -1, &batch);
            assert_eq!(produced.expect("an answer").error, code::NONE);
        });
    });
    group.finish();
    broker.stop(Duration::from_secs(60));
}
