//! What an answer means, as lines that can be compared: which topics and partitions are spoken of,
//! with which error each, and whether there are records. Ids, times, offsets, the list of brokers
//! and defaults are ours to choose and stay out.

use std::collections::BTreeSet;

use penstock::wire::fetch::FetchResponse;
use penstock::wire::messages::{
    ApiVersionsResponse, CreatableTopicResult, CreatePartitionsResponse, CreateTopicsResponse,
    DeleteTopicsResponse, DescribeClusterResponse, DescribeConfigsResponse, DescribeConfigsResult,
    FindCoordinatorResponse, ListOffsetsResponse, MetadataResponse,
};
use penstock::wire::produce::ProduceResponse;
use penstock::wire::{Request, Response, Text};

/// Error codes that only a cluster which has just started gives: we have no such moment.
const TRANSIENT: [i16; 2] = [14, 15];
/// COORDINATOR_NOT_AVAILABLE.
const NO_COORDINATOR: i16 = 15;
/// FETCH_SESSION_ID_NOT_FOUND: what a broker that keeps no sessions says about one.
const NO_SESSION: i16 = 70;
/// UNKNOWN_TOPIC_OR_PARTITION.
const UNKNOWN_TOPIC: i16 = 3;
/// LEADER_NOT_AVAILABLE: the topic is being made.
const NO_LEADER: i16 = 5;

/// Where `ours` means something else than `theirs`.
pub fn differences(request: &Request, theirs: &Response, ours: &Response) -> Vec<String> {
    match (request, theirs, ours) {
        (_, Response::Produce(theirs), Response::Produce(ours)) => {
            sets(&produce(theirs), &produce(ours))
        }
        (Request::Fetch(asked), Response::Fetch(theirs), Response::Fetch(ours)) => {
            // In a session Kafka leaves out what did not change: that cannot be asked of a broker
            // that declines sessions. It must say so, or answer in full.
            if asked.session_id != 0 {
                return match ours.error_code {
                    0 | NO_SESSION => Vec::new(),
                    error => vec![format!("error {error} for a session that is gone")],
                };
            }
            let mut all = sets(&fetch(theirs), &fetch(ours));
            all.extend(missing_records(theirs, ours));
            all
        }
        (_, Response::ListOffsets(theirs), Response::ListOffsets(ours)) => {
            sets(&list_offsets(theirs), &list_offsets(ours))
        }
        (Request::Metadata(asked), Response::Metadata(theirs), Response::Metadata(ours)) => {
            metadata(
                asked.topics.is_none(),
                asked.allow_auto_topic_creation,
                theirs,
                ours,
            )
        }
        (_, Response::FindCoordinator(theirs), Response::FindCoordinator(ours)) => {
            coordinators(theirs, ours)
        }
        (_, Response::InitProducerId(theirs), Response::InitProducerId(ours)) => {
            let mut all = error("", settled(theirs.error_code), settled(ours.error_code));
            if ours.error_code == 0 && (ours.producer_id < 0 || ours.producer_epoch < 0) {
                all.push("success without a producer id".to_owned());
            }
            all
        }
        (_, theirs, ours) => administration(theirs, ours),
    }
}

/// There are no groups yet, so nobody coordinates them: a broker may say so, in as many answers.
fn coordinators(theirs: &FindCoordinatorResponse, ours: &FindCoordinatorResponse) -> Vec<String> {
    let mut all = Vec::new();
    if theirs.coordinators.len() != ours.coordinators.len() {
        let (right, left) = (ours.coordinators.len(), theirs.coordinators.len());
        all.push(format!("{right} coordinators, not {left}"));
    }
    let each = ours.coordinators.iter().map(|one| one.error_code);
    for error in each
        .chain([ours.error_code])
        .filter(|error| !matches!(*error, 0 | NO_COORDINATOR))
    {
        all.push(format!("coordinator error {error}"));
    }
    all
}

/// The answers that are asked for by administrators.
fn administration(theirs: &Response, ours: &Response) -> Vec<String> {
    match (theirs, ours) {
        (Response::ApiVersions(theirs), Response::ApiVersions(ours)) => api_versions(theirs, ours),
        (Response::CreateTopics(theirs), Response::CreateTopics(ours)) => {
            create_topics(theirs, ours)
        }
        (Response::DeleteTopics(theirs), Response::DeleteTopics(ours)) => {
            let lines = |answer: &DeleteTopicsResponse| {
                let topics = answer.responses.iter();
                topics
                    .map(|topic| format!("{:?} error {}", topic.name, topic.error_code))
                    .collect()
            };
            sets(&lines(theirs), &lines(ours))
        }
        (Response::CreatePartitions(theirs), Response::CreatePartitions(ours)) => {
            let lines = |answer: &CreatePartitionsResponse| {
                let topics = answer.results.iter();
                topics
                    .map(|topic| format!("{} error {}", topic.name, topic.error_code))
                    .collect()
            };
            sets(&lines(theirs), &lines(ours))
        }
        (Response::DescribeConfigs(theirs), Response::DescribeConfigs(ours)) => {
            sets(&describe_configs(theirs), &describe_configs(ours))
        }
        (Response::DescribeCluster(theirs), Response::DescribeCluster(ours)) => {
            describe_cluster(theirs, ours)
        }
        _ => vec!["an answer to another request".to_owned()],
    }
}

/// Kafka serves more than we do; nothing of ours may be more than Kafka has.
fn api_versions(theirs: &ApiVersionsResponse, ours: &ApiVersionsResponse) -> Vec<String> {
    let mut all = error("", theirs.error_code, ours.error_code);
    for api in ours.api_keys.iter() {
        let known = theirs
            .api_keys
            .iter()
            .find(|known| known.api_key == api.api_key);
        let within = known.is_some_and(|known| {
            known.min_version <= api.min_version && api.max_version <= known.max_version
        });
        if !within {
            all.push(format!("{api:?} is more than Kafka has"));
        }
    }
    all
}

fn create_topics(theirs: &CreateTopicsResponse, ours: &CreateTopicsResponse) -> Vec<String> {
    let lines = |answer: &CreateTopicsResponse| {
        let topics = answer.topics.iter();
        let line = |topic: CreatableTopicResult| {
            let (partitions, copies) = (topic.num_partitions, topic.replication_factor);
            format!(
                "{} error {}, {partitions} × {copies}",
                topic.name, topic.error_code
            )
        };
        topics.map(line).collect()
    };
    sets(&lines(theirs), &lines(ours))
}

fn describe_configs(answer: &DescribeConfigsResponse) -> BTreeSet<String> {
    let results = answer.results.iter();
    let line = |result: DescribeConfigsResult| {
        // A broker's name is its id, which is ours.
        let name = if result.resource_type == 4 {
            Text::default()
        } else {
            result.resource_name
        };
        let has_settings = !result.configs.is_empty();
        let (kind, code) = (result.resource_type, result.error_code);
        format!("kind {kind} {name} error {code}, settings {has_settings}")
    };
    results.map(line).collect()
}

fn describe_cluster(
    theirs: &DescribeClusterResponse,
    ours: &DescribeClusterResponse,
) -> Vec<String> {
    let mut all = error("", theirs.error_code, ours.error_code);
    let kinds = (theirs.endpoint_type.into(), ours.endpoint_type.into());
    all.extend(error("endpoint type", kinds.0, kinds.1));
    if ours.brokers.is_empty() || ours.cluster_id.is_empty() {
        all.push("no brokers, or no cluster id".to_owned());
    }
    if !ours
        .brokers
        .iter()
        .any(|broker| broker.broker_id == ours.controller_id)
    {
        all.push("the controller is no broker".to_owned());
    }
    all
}

fn error(what: &str, theirs: i16, ours: i16) -> Vec<String> {
    if theirs == ours {
        Vec::new()
    } else {
        vec![format!("{what} error {ours}, not {theirs}")]
    }
}

/// Kafka's error once its cluster has settled.
fn settled(error: i16) -> i16 {
    if TRANSIENT.contains(&error) { 0 } else { error }
}

fn sets(theirs: &BTreeSet<String>, ours: &BTreeSet<String>) -> Vec<String> {
    let missing = theirs
        .difference(ours)
        .map(|line| format!("missing: {line}"));
    let extra = ours
        .difference(theirs)
        .map(|line| format!("instead: {line}"));
    missing.chain(extra).collect()
}

/// Topics are told apart by name, or where there is only an id by their place in the answer: ids
/// are ours. Kafka answers partitions in any order, so they are compared as a set.
fn produce(answer: &ProduceResponse) -> BTreeSet<String> {
    let topics = answer.topics.iter();
    let lines = topics.flat_map(|topic| {
        let partitions = topic.partitions.to_vec().into_iter();
        partitions.map(move |found| {
            format!(
                "{:?}/{} error {}",
                topic.name, found.index, found.error_code
            )
        })
    });
    lines.collect()
}

fn fetch(answer: &FetchResponse) -> BTreeSet<String> {
    let mut lines = BTreeSet::from([format!("error {}", answer.error_code)]);
    for topic in answer.topics.iter() {
        for found in topic.partitions.iter() {
            let (name, partition) = (&topic.name, found.partition_index);
            lines.insert(format!("{name:?}/{partition} error {}", found.error_code));
        }
    }
    lines
}

/// A fetch that moved a consumer on in Kafka must move it on here: some partition has records.
fn missing_records(theirs: &FetchResponse, ours: &FetchResponse) -> Vec<String> {
    let has_records = |answer: &FetchResponse| {
        let topics = answer.topics.to_vec().into_iter();
        let mut partitions = topics.flat_map(|topic| topic.partitions.to_vec());
        partitions.any(|found| found.records.is_some_and(|records| !records.is_empty()))
    };
    let mut all = Vec::new();
    if has_records(theirs) && !has_records(ours) {
        all.push("no records where Kafka had some".to_owned());
    }
    let topics = ours.topics.to_vec().into_iter();
    for found in topics.flat_map(|topic| topic.partitions.to_vec()) {
        // librdkafka takes a length of -1 for an error.
        if found.records.is_none() {
            all.push(format!("partition {}: null records", found.partition_index));
        }
    }
    all
}

fn list_offsets(answer: &ListOffsetsResponse) -> BTreeSet<String> {
    let topics = answer.topics.iter();
    let lines = topics.flat_map(|topic| {
        let partitions = topic.partitions.to_vec().into_iter();
        partitions.map(move |found| {
            let is_found = found.offset >= 0;
            let (name, partition) = (&topic.name, found.partition_index);
            format!(
                "{name}/{partition} error {}, found {is_found}",
                found.error_code
            )
        })
    });
    lines.collect()
}

/// Our topics must be those of Kafka's answer with as many partitions, each led by a broker of the
/// list. When all are asked for, others may stand beside them; Kafka's internal ones are not ours.
fn metadata(
    wants_all: bool,
    may_create: bool,
    theirs: &MetadataResponse,
    ours: &MetadataResponse,
) -> Vec<String> {
    let mut all = error("", theirs.error_code, ours.error_code);
    for topic in theirs.topics.iter().filter(|topic| !topic.is_internal) {
        let Some(found) = ours.topics.iter().find(|found| found.name == topic.name) else {
            all.push(format!("topic {:?} is missing", topic.name));
            continue;
        };
        // Kafka makes a topic in the background and answers at once; we may have made it.
        let being_made = may_create && matches!(topic.error_code, UNKNOWN_TOPIC | NO_LEADER);
        if !(being_made && matches!(found.error_code, 0 | UNKNOWN_TOPIC | NO_LEADER)) {
            let name = format!("{:?}", topic.name);
            all.extend(error(&name, topic.error_code, found.error_code));
            if topic.partitions.len() != found.partitions.len() {
                all.push(format!("{name} has {} partitions", found.partitions.len()));
            }
        }
        for partition in found.partitions.iter() {
            let leader = partition.leader_id;
            if partition.error_code != 0 || ours.brokers.iter().all(|one| one.node_id != leader) {
                all.push(format!("{:?}: {partition:?} is not led", topic.name));
            }
        }
    }
    if !wants_all && theirs.topics.len() != ours.topics.len() {
        all.push(format!(
            "{} topics, not {}",
            ours.topics.len(),
            theirs.topics.len()
        ));
    }
    if ours.brokers.is_empty() {
        all.push("no brokers".to_owned());
    }
    all
}
