//! R18, without the clients: what eleven stock clients said to Apache Kafka 4.4, said to the real
//! binary over a socket.
//!
//! Goal: an answer decodes at the version that was asked and means what Kafka's answer meant; what
//! is not served is refused in the protocol, never met with silence. Method: replay each recorded
//! client in order on one connection, on a broker in which the topics and records exist that Kafka
//! had at that moment; ids are exchanged for ours; then compare the two answers' meanings, line by
//! line (`meaning`). The recording: `tests/data/README.md`.

#[path = "captures/meaning.rs"]
mod meaning;
#[path = "captures/recording.rs"]
mod recording;
mod support;
#[path = "captures/world.rs"]
mod world;

use std::time::Duration;

use penstock::wire::{RequestHeader, Response, request, versions};
use recording::Pair;
use support::broker::{self, Broker, Options};
use world::World;

/// Two cores behind one address: half of the partitions are forwarded.
fn start(name: &str) -> (tempfile::TempDir, Broker, World) {
    let home = broker::home(name);
    let options = Options::new(home.path()).cores(2);
    let (broker, ready) = Broker::start(&options);
    let world = World::new(ready.kafka[0]);
    (home, broker, world)
}

/// What the two answers disagree about, empty if they mean the same.
fn compare(world: &mut World, pair: &Pair) -> Vec<String> {
    let (header, body) = RequestHeader::decode(&pair.request).expect("a recorded header");
    let recorded = request::decode(&header, &body).expect("a recorded request");
    let theirs = pair.answer();
    world.arrange(&recorded, theirs.as_ref());
    let request = world.translate(&recorded);
    let unchanged = request == recorded;
    let frame = request::encode(&header, &request).expect("a request of ours");
    if unchanged {
        assert_eq!(
            frame[4..],
            pair.request,
            "what nobody changed is sent as it was recorded"
        );
    }
    let Some(theirs) = theirs else {
        world.send(&frame);
        return Vec::new();
    };
    let ours = match world.exchange(&frame) {
        Ok(answer) => answer,
        Err(error) => return vec![format!("no answer: {error}")],
    };
    let (id, ours) = match pair.decode(&ours) {
        Ok(decoded) => decoded,
        Err(error) => return vec![format!("the answer does not decode: {error}")],
    };
    assert_eq!(id, header.correlation_id);
    meaning::differences(&recorded, &theirs, &ours)
}

#[test]
fn served_requests_are_answered_as_kafka_answered_them() {
    let (_home, broker, mut world) = start("captures");
    let mut checked = 0;
    let mut wrong = Vec::new();
    for (client, pairs) in recording::by_client() {
        world.reconnect();
        for (number, pair) in pairs.iter().enumerate() {
            if !versions::support(pair.api_key, pair.version).is_served() {
                continue;
            }
            let place = format!("{client} #{number} {} v{}", pair.api, pair.version);
            for difference in compare(&mut world, pair) {
                wrong.push(format!("{place}: {difference}"));
            }
            checked += 1;
        }
    }
    assert!(checked > 250, "only {checked} requests were compared");
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    println!("{checked} recorded requests mean the same");
    broker.stop(Duration::from_secs(5));
}

#[test]
fn requests_that_are_not_served_are_refused_and_the_connection_stays_in_order() {
    let (_home, _broker, mut world) = start("captures-refused");
    let advertised = world.api_versions();
    let mut checked = 0;
    for (client, pairs) in recording::by_client() {
        for pair in pairs {
            if versions::support(pair.api_key, pair.version).is_served() {
                continue;
            }
            let place = format!("{client} {} v{}", pair.api, pair.version);
            let offered = advertised.iter().find(|api| api.api_key == pair.api_key);
            let covers = offered
                .is_some_and(|api| (api.min_version..=api.max_version).contains(&pair.version));
            assert!(!covers, "{place} is advertised, but not served");
            world.reconnect();
            let refused = world.is_refused(&pair.request);
            assert!(refused.is_ok(), "{place}: {}", refused.unwrap_err());
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} requests were refused");
}

/// What is advertised is served at both ends of its range: an ApiVersions answer that promises more
/// than the dispatcher keeps would only show in some client one day.
#[test]
fn the_advertised_ranges_are_those_of_the_table() {
    let (_home, _broker, mut world) = start("captures-table");
    let mut advertised: Vec<_> = world.api_versions();
    advertised.sort_by_key(|api| api.api_key);
    let table = versions::SERVED
        .iter()
        .map(|api| (api.key, api.min, api.max));
    let found = advertised
        .iter()
        .map(|api| (api.api_key, api.min_version, api.max_version));
    assert!(found.eq(table), "{advertised:?}");
}

/// KIP-1242: a client that means another cluster or node is told so, by every version-5 endpoint.
#[test]
fn a_client_that_means_another_node_is_told() {
    let (_home, _broker, mut world) = start("captures-node");
    let (cluster, node) = world.identity();
    assert_eq!(world.api_versions_of(Some(&cluster), node), 0);
    assert_eq!(world.api_versions_of(None, -1), 0);
    assert_eq!(world.api_versions_of(Some(&cluster), node + 77), 129);
    assert_eq!(
        world.api_versions_of(Some("another-cluster-altogether"), node),
        129
    );
}

/// The comparison itself: it objects to another error code, a missing partition and lost records.
#[test]
fn the_comparison_objects() {
    let mut objections = 0;
    for (_, pairs) in recording::by_client() {
        for pair in pairs {
            if !versions::support(pair.api_key, pair.version).is_served() {
                continue;
            }
            let (header, body) = RequestHeader::decode(&pair.request).expect("recorded");
            let request = request::decode(&header, &body).expect("recorded");
            let Some(answer) = pair.answer() else {
                continue;
            };
            let same = meaning::differences(&request, &answer, &answer);
            assert!(same.is_empty(), "an answer differs from itself: {same:?}");
            if let Some(spoiled) = spoil(&answer) {
                assert!(!meaning::differences(&request, &answer, &spoiled).is_empty());
                objections += 1;
            }
        }
    }
    assert!(
        objections > 80,
        "only {objections} spoiled answers were tried"
    );
}

/// The answer with something gone, where it has something that may not go.
fn spoil(answer: &Response) -> Option<Response> {
    let mut spoiled = answer.clone();
    match &mut spoiled {
        Response::Produce(produce) => produce.topics = Vec::new().into(),
        Response::ListOffsets(offsets) => offsets.topics = Vec::new().into(),
        Response::Fetch(fetch) if !fetch.topics.is_empty() => {
            let topics = fetch.topics.iter().map(|mut topic| {
                let partitions = topic.partitions.iter().map(|mut partition| {
                    partition.error_code = 6;
                    partition
                });
                topic.partitions = partitions.collect();
                topic
            });
            fetch.topics = topics.collect();
        }
        Response::CreateTopics(create) => create.topics = Vec::new().into(),
        Response::DeleteTopics(delete) => delete.responses = Vec::new().into(),
        _ => return None,
    }
    Some(spoiled)
}
