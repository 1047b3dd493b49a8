//! The reading of everything after the last fault, and of the catalogue.

use std::time::Duration;

use penstock::base::ids::Offset;
use penstock::check::event::FinalRead;
use penstock::check::{Action, Outcome};

use crate::field::{Field, PARTITIONS, TOPIC};
use crate::support::batch;
use crate::support::client::{Connection, code};
use crate::support::cluster::Cluster;
use crate::support::history;

const CLIENT: u32 = 1;
const BYTES_MAX: i32 = 1 << 20;

fn cluster(field: &Field) -> Cluster {
    let endpoint = field.endpoint().expect("the broker runs");
    let timeout = Duration::from_secs(30);
    Cluster::open(endpoint, &[TOPIC], timeout).expect("a healed broker answers Metadata")
}

/// First and next offset of every partition: `(partition, first, end)`.
pub fn ends(field: &Field) -> Vec<(i32, i64, i64)> {
    let mut cluster = cluster(field);
    let mut ends = Vec::new();
    for partition in 0..PARTITIONS {
        let connection = cluster
            .to(TOPIC, partition)
            .expect("a healed broker is reached");
        let mut ask = |time| {
            let answer = connection.list_offset(TOPIC, partition, time);
            let (error, offset) = answer.expect("a healed broker answers ListOffsets");
            assert_eq!(error, code::NONE, "ListOffsets of partition {partition}");
            offset
        };
        ends.push((partition, ask(-2), ask(-1)));
    }
    ends
}

/// Reads every partition from its first offset to its end, as `ends` knew it before the last
/// restart, and checks that the ends are still the same.
pub fn everything(field: &Field, known: &[(i32, i64, i64)]) {
    assert_eq!(
        ends(field),
        known,
        "nobody sends, so a clean restart changes no end"
    );
    let mut cluster = cluster(field);
    for &(partition, first, end) in known {
        let connection = cluster
            .to(TOPIC, partition)
            .expect("a healed broker is reached");
        one(field, connection, partition, first, end);
    }
}

fn one(field: &Field, connection: &mut Connection, partition: i32, first: i64, end: i64) {
    let mut position = first;
    loop {
        let t_invoke = field.recorder.now();
        let mut records = Vec::new();
        if position < end {
            let answer = connection.fetch(TOPIC, &[(partition, position)], 0, BYTES_MAX);
            let mut fetched = answer.expect("a healed broker answers Fetch");
            let fetched = fetched.pop().expect("one partition was asked for");
            assert_eq!(
                fetched.error,
                code::NONE,
                "fetch of {partition} at {position}"
            );
            records = batch::parse(&fetched.batches).expect("whole batches");
            assert!(
                !records.is_empty(),
                "nothing at {partition}@{position}, its end is {end}"
            );
        }
        let place = history::place(TOPIC, partition);
        let polled = history::polled(place.clone(), position, &records, None);
        let bounds = history::bounds(first, end);
        let (from, next) = (Offset(position), polled.next);
        let part = FinalRead {
            place,
            bounds,
            from,
            next,
            records: polled.records,
        };
        let op = position as u64;
        field
            .recorder
            .note(CLIENT, op, t_invoke, Outcome::Ok, Action::Final(part));
        position = next.0;
        if position >= end {
            return;
        }
    }
}

/// Every topic whose making was acknowledged is still there, with its partitions.
pub fn topics_are_there(field: &Field, created: &[(String, i32)]) {
    let endpoint = field.endpoint().expect("the broker runs");
    let connection = Connection::open(endpoint, Duration::from_secs(30));
    let metadata = connection
        .expect("a healed broker is reached")
        .metadata(None);
    let metadata = metadata.expect("a healed broker answers Metadata");
    for (topic, partitions) in created {
        let found = metadata.topics.iter().find(|(_, name, _)| name == topic);
        let count = found.map(|(error, _, leaders)| (*error, leaders.len()));
        if count != Some((code::NONE, *partitions as usize)) {
            field.fault(format!(
                "topic {topic} was made with {partitions} partitions: {count:?}"
            ));
        }
    }
}
