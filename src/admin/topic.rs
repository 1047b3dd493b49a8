//! `penstock topic`: create, list, describe, alter, delete. Each topic named is answered for on its
//! own; one that fails makes the exit status 1 and keeps none of the others from succeeding.

use super::cli::{TopicCommon, TopicVerb};
use super::client::{Client, ClientError, Landmark, Topic, describe_code};
use super::error::AdminError;
use super::output::{self, Output};
use crate::wire::messages::{
    ConfigEntry, CreatableTopic, CreatableTopicConfig, CreatePartitionsRequest,
    CreatePartitionsTopic, CreateTopicsRequest, DeleteTopicsRequest, DescribeConfigsRequest,
    DescribeConfigsResource,
};
use crate::wire::{ErrorCode, Response, Text};
use serde_json::{Value, json};
use std::io::{self, BufRead, IsTerminal, Write};

const TIMEOUT_MS: i32 = 30_000;
/// Kafka's number of the resource type "topic".
const RESOURCE_TOPIC: i8 = 2;

/// Runs one of the verbs.
///
/// # Errors
/// The broker cannot be asked, or did not do all that was asked.
pub fn run(verb: &TopicVerb, out: &mut Output) -> Result<(), AdminError> {
    match verb {
        TopicVerb::Create {
            names,
            partitions,
            configs,
            if_not_exists,
            common,
        } => {
            let configs = parse_configs(configs)?;
            create(
                common,
                names,
                partitions.unwrap_or(-1),
                &configs,
                *if_not_exists,
                out,
            )
        }
        TopicVerb::List { common } => list(common, out),
        TopicVerb::Describe { names, common } => describe(common, names, out),
        TopicVerb::Alter {
            name,
            partitions,
            common,
        } => alter(common, name, *partitions, out),
        TopicVerb::Delete { names, yes, common } => delete(common, names, *yes, out),
    }
}

fn parse_configs(configs: &[String]) -> Result<Vec<(&str, &str)>, AdminError> {
    let parsed = configs.iter().map(|text| {
        text.split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| AdminError::Usage(format!("--config {text}: write it as key=value")))
    });
    parsed.collect()
}

/// What became of one topic.
struct Outcome {
    topic: String,
    /// Kafka's error and the broker's words, or what was done.
    result: Result<Done, (i16, Option<String>)>,
}

struct Done {
    text: String,
    fields: Value,
}

/// Prints the outcomes; failures go to standard error unless JSON was asked for.
fn report(
    common: &TopicCommon,
    outcomes: Vec<Outcome>,
    out: &mut Output,
) -> Result<(), AdminError> {
    let failed = outcomes.iter().any(|outcome| outcome.result.is_err());
    if common.json {
        let items = outcomes.iter().map(|outcome| match &outcome.result {
            Ok(done) => {
                let mut item = json!({ "topic": outcome.topic, "ok": true });
                for (key, value) in done.fields.as_object().into_iter().flatten() {
                    item[key] = value.clone();
                }
                item
            }
            Err((code, message)) => json!({
                "topic": outcome.topic,
                "ok": false,
                "code": code,
                "error": ErrorCode::from_code(*code).map(ErrorCode::name),
                "message": message,
            }),
        });
        out.json(&Value::Array(items.collect()))?;
    } else {
        for outcome in &outcomes {
            match &outcome.result {
                Ok(done) => out.line(&format!("{}: {}", outcome.topic, done.text))?,
                Err((code, message)) => output::note(&format!(
                    "penstock: {}: {}",
                    outcome.topic,
                    describe_code(*code, message.as_deref())
                )),
            }
        }
    }
    out.flush()?;
    if failed {
        Err(AdminError::Reported)
    } else {
        Ok(())
    }
}

fn create(
    common: &TopicCommon,
    names: &[String],
    partitions: i32,
    configs: &[(&str, &str)],
    if_not_exists: bool,
    out: &mut Output,
) -> Result<(), AdminError> {
    let configs = configs.iter().map(|(name, value)| CreatableTopicConfig {
        name: Text::from(*name),
        value: Some(Text::from(*value)),
    });
    let configs: Vec<CreatableTopicConfig> = configs.collect();
    let topics = names.iter().map(|name| CreatableTopic {
        name: Text::from(name.as_str()),
        num_partitions: partitions,
        replication_factor: -1,
        configs: configs.clone().into(),
        ..CreatableTopic::default()
    });
    let request = CreateTopicsRequest {
        topics: topics.collect(),
        timeout_ms: TIMEOUT_MS,
        ..CreateTopicsRequest::default()
    };
    let mut client = Client::new(&common.broker);
    let Response::CreateTopics(response) = client.ask_controller(&request.into())? else {
        return Err(AdminError::Broker(
            "the broker answered something else".into(),
        ));
    };
    let outcomes = response.topics.iter().map(|topic| {
        let exists = topic.error_code == ErrorCode::TopicAlreadyExists.code();
        let result = if topic.error_code == 0 {
            let count = topic.num_partitions;
            let text = if count > 0 {
                format!(
                    "created, {count} partition{}",
                    if count == 1 { "" } else { "s" }
                )
            } else {
                "created".to_owned()
            };
            let id = topic.topic_id.to_string();
            Ok(Done {
                text,
                fields: json!({"created": true, "id": id, "partitions": count}),
            })
        } else if exists && if_not_exists {
            Ok(Done {
                text: "exists already".into(),
                fields: json!({ "created": false }),
            })
        } else {
            Err((
                topic.error_code,
                topic.error_message.map(|text| text.to_string()),
            ))
        };
        Outcome {
            topic: topic.name.to_string(),
            result,
        }
    });
    report(common, outcomes.collect(), out)
}

fn list(common: &TopicCommon, out: &mut Output) -> Result<(), AdminError> {
    let topics = Client::new(&common.broker).topics()?;
    if common.json {
        let items = topics.iter().map(|topic| {
            json!({
                "topic": topic.name,
                "id": topic.id.to_string(),
                "partitions": topic.partitions.len(),
                "internal": topic.internal,
            })
        });
        out.json(&Value::Array(items.collect()))?;
    } else if topics.is_empty() {
        output::note("no topics; `penstock topic create NAME` makes one");
    } else {
        let mut table = output::table(&["topic", "partitions", "id"]);
        for topic in &topics {
            table.add_row([
                comfy_table::Cell::new(&topic.name),
                output::number(topic.partitions.len()),
                comfy_table::Cell::new(topic.id),
            ]);
        }
        out.table(&table)?;
    }
    out.flush()
}

/// All that is known of one topic.
struct Description {
    topic: Topic,
    /// First and last offset of each partition.
    offsets: Vec<(i64, i64)>,
    configs: Vec<ConfigEntry>,
}

fn describe(common: &TopicCommon, names: &[String], out: &mut Output) -> Result<(), AdminError> {
    let mut client = Client::new(&common.broker);
    let mut items = Vec::new();
    let mut failed = false;
    for (number, name) in names.iter().enumerate() {
        match describe_one(&mut client, name) {
            Ok(description) if common.json => items.push(to_json(&client, &description)),
            Ok(description) => {
                if number > 0 {
                    out.line("")?;
                }
                print(&client, &description, out)?;
            }
            Err(error) if error.code().is_some() => {
                failed = true;
                if common.json {
                    let code = error.code();
                    items.push(json!({
                        "topic": name,
                        "ok": false,
                        "code": code.map(ErrorCode::code),
                        "error": code.map(ErrorCode::name),
                        "message": error.to_string(),
                    }));
                } else {
                    output::note(&format!("penstock: {error}"));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    if common.json {
        out.json(&Value::Array(items))?;
    }
    out.flush()?;
    if failed {
        Err(AdminError::Reported)
    } else {
        Ok(())
    }
}

fn describe_one(client: &mut Client, name: &str) -> Result<Description, ClientError> {
    let topic = client.topic(name, false)?;
    let indexes: Vec<i32> = topic
        .partitions
        .iter()
        .map(|partition| partition.index)
        .collect();
    let starts = client.offsets(name, &indexes, Landmark::Beginning)?;
    let ends = client.offsets(name, &indexes, Landmark::End)?;
    let offset =
        |map: &std::collections::BTreeMap<i32, i64>, index| map.get(index).copied().unwrap_or(-1);
    let offsets = indexes
        .iter()
        .map(|index| (offset(&starts, index), offset(&ends, index)));
    let offsets = offsets.collect();
    let resource = DescribeConfigsResource {
        resource_type: RESOURCE_TOPIC,
        resource_name: Text::from(name),
        configuration_keys: None,
    };
    let request = DescribeConfigsRequest {
        resources: vec![resource].into(),
        ..DescribeConfigsRequest::default()
    };
    let mut configs = Vec::new();
    if let Response::DescribeConfigs(response) = client.ask_any(&request.into())? {
        for result in response.results.iter() {
            let message = result.error_message.as_ref();
            super::client::check(&format!("settings of {name}"), result.error_code, message)?;
            configs.extend(result.configs.iter());
        }
    }
    configs.sort_by_key(|entry| entry.name.to_string());
    Ok(Description {
        topic,
        offsets,
        configs,
    })
}

/// Where a setting's value comes from, by Kafka's number.
fn source(entry: &ConfigEntry) -> &'static str {
    match entry.config_source {
        1 => "topic",
        2 | 3 => "broker, dynamic",
        4 => "broker",
        5 => "default",
        _ => "unknown",
    }
}

fn to_json(client: &Client, description: &Description) -> Value {
    let Description {
        topic,
        offsets,
        configs,
    } = description;
    let partitions = topic
        .partitions
        .iter()
        .zip(offsets)
        .map(|(partition, (start, end))| {
            json!({
                "partition": partition.index,
                "leader": partition.leader,
                "address": client.address(partition.leader),
                "leader_epoch": partition.leader_epoch,
                "start_offset": start,
                "end_offset": end,
            })
        });
    let configs = configs.iter().map(|entry| {
        json!({
            "name": entry.name.to_string(),
            "value": entry.value.as_ref().map(ToString::to_string),
            "source": source(entry),
            "read_only": entry.read_only,
        })
    });
    json!({
        "topic": topic.name,
        "ok": true,
        "id": topic.id.to_string(),
        "internal": topic.internal,
        "partitions": partitions.collect::<Vec<_>>(),
        "configs": configs.collect::<Vec<_>>(),
    })
}

fn print(client: &Client, description: &Description, out: &mut Output) -> Result<(), AdminError> {
    let Description {
        topic,
        offsets,
        configs,
    } = description;
    let count = topic.partitions.len();
    let records: i64 = offsets.iter().map(|(start, end)| end - start).sum();
    out.line(&format!(
        "{}  id {}  {count} partitions  {records} offsets in use\n",
        topic.name, topic.id
    ))?;
    let mut table = output::table(&["partition", "leader", "address", "epoch", "start", "end"]);
    for (partition, (start, end)) in topic.partitions.iter().zip(offsets) {
        table.add_row([
            output::number(partition.index),
            output::number(partition.leader),
            comfy_table::Cell::new(client.address(partition.leader).unwrap_or("-")),
            output::number(partition.leader_epoch),
            output::number(start),
            output::number(end),
        ]);
    }
    out.table(&table)?;
    if !configs.is_empty() {
        out.line("")?;
        let mut table = output::table(&["setting", "value", "source"]);
        for entry in configs {
            let value = entry.value.as_ref().map(ToString::to_string);
            let value = value
                .filter(|text| !text.is_empty())
                .unwrap_or_else(|| "-".into());
            table.add_row([entry.name.to_string(), value, source(entry).to_owned()]);
        }
        out.table(&table)?;
    }
    Ok(())
}

fn alter(
    common: &TopicCommon,
    name: &str,
    partitions: i32,
    out: &mut Output,
) -> Result<(), AdminError> {
    let topic = CreatePartitionsTopic {
        name: Text::from(name),
        count: partitions,
        assignments: None,
    };
    let request = CreatePartitionsRequest {
        topics: vec![topic].into(),
        timeout_ms: TIMEOUT_MS,
        validate_only: false,
    };
    let mut client = Client::new(&common.broker);
    let Response::CreatePartitions(response) = client.ask_controller(&request.into())? else {
        return Err(AdminError::Broker(
            "the broker answered something else".into(),
        ));
    };
    let outcomes = response.results.iter().map(|result| Outcome {
        topic: result.name.to_string(),
        result: match result.error_code {
            0 => Ok(Done {
                text: format!("has {partitions} partitions"),
                fields: json!({ "partitions": partitions }),
            }),
            code => Err((code, result.error_message.map(|text| text.to_string()))),
        },
    });
    report(common, outcomes.collect(), out)
}

fn delete(
    common: &TopicCommon,
    names: &[String],
    yes: bool,
    out: &mut Output,
) -> Result<(), AdminError> {
    if !yes && !confirmed(names)? {
        return Err(AdminError::Failed("nothing was deleted".into()));
    }
    let request = DeleteTopicsRequest {
        topic_names: names.iter().map(|name| Text::from(name.as_str())).collect(),
        timeout_ms: TIMEOUT_MS,
        ..DeleteTopicsRequest::default()
    };
    let mut client = Client::new(&common.broker);
    let Response::DeleteTopics(response) = client.ask_controller(&request.into())? else {
        return Err(AdminError::Broker(
            "the broker answered something else".into(),
        ));
    };
    let outcomes = response.responses.iter().map(|result| Outcome {
        topic: result.name.map(|name| name.to_string()).unwrap_or_default(),
        result: match result.error_code {
            0 => Ok(Done {
                text: "deleted".into(),
                fields: json!({ "deleted": true }),
            }),
            code => Err((code, result.error_message.map(|text| text.to_string()))),
        },
    });
    report(common, outcomes.collect(), out)
}

/// Asks the person at the terminal. Without one, only `--yes` will do.
fn confirmed(names: &[String]) -> Result<bool, AdminError> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        let text = "deleting topics deletes their records; add --yes to say that it is meant";
        return Err(AdminError::Usage(text.into()));
    }
    let _ = write!(
        io::stderr(),
        "Delete {} and all their records? [y/N] ",
        names.join(", ")
    );
    let mut answer = String::new();
    let read = stdin.lock().read_line(&mut answer);
    read.map_err(|error| AdminError::Input("the answer".into(), error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
