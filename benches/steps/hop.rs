//! What does a hop between cores cost: a question that reads nothing, asked of the core that owns
//! the partition, and of the other one?

use crate::support::broker::{Broker, Options, home};
use crate::support::client::{Connection, code};
use crate::support::cluster::Cluster;
use criterion::Criterion;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);
const TOPIC: &str = "hop";
const NEXT_OFFSET: i64 = -1;

pub fn bench(criterion: &mut Criterion) {
    let home = home("steps");
    let options = Options::new(home.path()).cores(2).with(&["--shards", "2"]);
    let (broker, ready) = Broker::start(&options);
    let mut connection = Connection::open(ready.kafka[0], TIMEOUT).expect("it listens");
    let made = connection.create_topic(TOPIC, 1, &[]);
    assert_eq!(made.expect("an answer"), code::NONE);
    let cluster = Cluster::open(ready.kafka[0], &[TOPIC], TIMEOUT).expect("an answer");
    let owner = cluster.leader(TOPIC, 0);
    let other = ready.kafka.iter().find(|address| **address != owner);
    let other = *other.expect("two cores, two endpoints");
    let mut group = criterion.benchmark_group("hop");
    for (name, address) in [("none", owner), ("one", other)] {
        let mut connection = Connection::open(address, TIMEOUT).expect("it listens");
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let answer = connection.list_offset(TOPIC, 0, NEXT_OFFSET);
                assert_eq!(answer.expect("an answer").0, code::NONE);
            });
        });
    }
    group.finish();
    broker.stop(Duration::from_secs(60));
}
