//! What a load has to know of its cluster before it begins: topics, leaders, where reading begins.

use crate::admin::client::{Client, ClientError, Landmark, Topic, check};
use crate::env::blocking;
use crate::load::plan::{Leaders, Partition, Target};
use crate::wire::messages::{CreatableTopic, CreateTopicsRequest};
use crate::wire::{ErrorCode, Response, Text};
use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::sync::Arc;

const TIMEOUT_MS: i32 = 30_000;

/// Makes topics that are missing.
///
/// # Errors
/// The broker cannot be asked, or refuses.
pub fn make_topics(
    client: &mut Client,
    names: &[String],
    partitions: i32,
) -> Result<(), ClientError> {
    let topics = names.iter().map(|name| CreatableTopic {
        name: Text::from(name.as_str()),
        num_partitions: partitions,
        replication_factor: -1,
        ..CreatableTopic::default()
    });
    let request = CreateTopicsRequest {
        topics: topics.collect(),
        timeout_ms: TIMEOUT_MS,
        ..CreateTopicsRequest::default()
    };
    let Response::CreateTopics(response) = client.ask_controller(&request.into())? else {
        return Err(ClientError::Protocol {
            address: "the controller".to_owned(),
            problem: "the answer is of another kind than the request".to_owned(),
        });
    };
    for topic in response.topics.iter() {
        if topic.error_code != ErrorCode::TopicAlreadyExists.code() {
            let subject = format!("topic {}", topic.name);
            check(&subject, topic.error_code, topic.error_message.as_ref())?;
        }
    }
    Ok(())
}

/// Learns all about the topics; reading begins at `from` if anybody reads.
///
/// # Errors
/// A topic does not exist, or the broker cannot be asked.
pub fn learn(
    client: &mut Client,
    names: &[String],
    from: Option<Landmark>,
) -> Result<Target, ClientError> {
    let mut target = Target {
        topics: names.iter().map(|name| Text::from(name.as_str())).collect(),
        ..Target::default()
    };
    for (number, name) in names.iter().enumerate() {
        let topic = client.topic(name, false)?;
        let of = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        let indices: Vec<i32> = (0..of).collect();
        let mut landmark = |wanted: Landmark| -> Result<BTreeMap<i32, i64>, ClientError> {
            match from {
                Some(_) => client.offsets(name, &indices, wanted),
                None => Ok(BTreeMap::new()),
            }
        };
        let begin = landmark(from.unwrap_or(Landmark::End))?;
        let end = landmark(Landmark::End)?;
        target
            .partitions
            .extend(indices.iter().map(|index| Partition {
                topic: number,
                index: *index,
                of,
                begin: begin.get(index).copied().unwrap_or(0),
                end: end.get(index).copied().unwrap_or(0),
            }));
    }
    target.leaders = Arc::new(leaders(client, names)?);
    Ok(target)
}

/// Who leads the partitions of the topics now.
///
/// # Errors
/// The broker cannot be asked, or a leader's address means nothing here.
pub fn leaders(client: &mut Client, names: &[String]) -> Result<Leaders, ClientError> {
    let mut found = Leaders::default();
    let mut known: BTreeMap<String, SocketAddr> = BTreeMap::new();
    for name in names {
        let Topic { partitions, .. } = client.topic(name, false)?;
        for partition in partitions {
            let address = client.leader(name, partition.index)?;
            let resolved = match known.get(&address) {
                Some(resolved) => *resolved,
                None => {
                    let resolved = resolve(&address)?;
                    known.insert(address, resolved);
                    resolved
                }
            };
            found.addresses.push(resolved);
        }
    }
    Ok(found)
}

/// The first address of a name, IPv4 before IPv6: that is where brokers mostly listen.
fn resolve(address: &str) -> Result<SocketAddr, ClientError> {
    let resolved = blocking::resolve(address).map_err(|error| ClientError::Unreachable {
        address: address.to_owned(),
        first: false,
        error,
    })?;
    let first = resolved.iter().find(|one| one.is_ipv4());
    let first = first.or(resolved.first()).copied();
    Ok(first.expect("a name without an address is an error"))
}
