//! `penstock consume`: the records of a topic, from here to there.

use super::cli::ConsumeArgs;
use super::client::{Client, Fetched, Fetcher, Landmark};
use super::error::AdminError;
use super::output::{self, Output};
use super::record::format::Format;
use super::record::{json, time};
use crate::base::record_batch::{Batches, RecordView};
use crate::env::process;
use crate::wire::codec;
use std::collections::BTreeMap;

/// A place in each partition.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    At(Landmark),
    Offset(i64),
    /// So many records before the end.
    BeforeEnd(i64),
}

impl Place {
    fn parse(flag: &str, text: &str) -> Result<Place, AdminError> {
        let usage = |problem: String| AdminError::Usage(format!("--{flag} {text}: {problem}"));
        match text {
            "beginning" | "start" | "earliest" => return Ok(Place::At(Landmark::Beginning)),
            "end" | "latest" => return Ok(Place::At(Landmark::End)),
            _ => {}
        }
        if let Some(moment) = text.strip_prefix('@') {
            let unix_ms = time::parse(moment, process::unix_ms()).map_err(usage)?;
            return Ok(Place::At(Landmark::Time(unix_ms)));
        }
        match text.parse::<i64>() {
            Ok(offset) if text.starts_with('-') => Ok(Place::BeforeEnd(offset.saturating_abs())),
            Ok(offset) => Ok(Place::Offset(offset)),
            Err(_) => Err(usage("write beginning, end, an offset, -N or @TIME".into())),
        }
    }

    /// The offset in each partition.
    fn find(
        self,
        client: &mut Client,
        topic: &str,
        partitions: &[i32],
    ) -> Result<BTreeMap<i32, i64>, AdminError> {
        Ok(match self {
            Place::At(instant) => client.offsets(topic, partitions, instant)?,
            Place::Offset(offset) => partitions.iter().map(|index| (*index, offset)).collect(),
            Place::BeforeEnd(count) => {
                let ends = client.offsets(topic, partitions, Landmark::End)?;
                ends.into_iter()
                    .map(|(index, end)| (index, end.saturating_sub(count)))
                    .collect()
            }
        })
    }
}

/// How a record is written.
enum Form {
    Text(Format),
    Json,
    Raw,
}

/// Runs the verb.
///
/// # Errors
/// The topic does not exist, the broker is lost for good, a batch is damaged, or the output fails.
pub fn run(args: &ConsumeArgs, out: &mut Output) -> Result<(), AdminError> {
    let from = Place::parse("from", &args.from)?;
    let until = args
        .until
        .as_deref()
        .map(|text| Place::parse("until", text))
        .transpose()?;
    let form = if args.json {
        Form::Json
    } else if args.raw {
        Form::Raw
    } else {
        let text = args.format.as_deref().unwrap_or("%v\\n");
        let format = Format::parse(text);
        Form::Text(format.map_err(|problem| AdminError::Usage(format!("--format: {problem}")))?)
    };
    let mut client = Client::new(&args.broker);
    let partitions = partitions(args, &mut client)?;
    let starts = from.find(&mut client, &args.topic, &partitions)?;
    // The ends are asked for once: what comes later is not part of the answer.
    let ends = until
        .map(|place| place.find(&mut client, &args.topic, &partitions))
        .transpose()?;
    let starts = clamp(&mut client, &args.topic, from, starts)?;
    let ends = ends
        .map(|ends| stop_in_range(&mut client, &args.topic, ends))
        .transpose()?;
    let mut reader = Reader {
        topic: &args.topic,
        form,
        ends,
        left: args.count.unwrap_or(u64::MAX),
        fetcher: Fetcher::new(&args.topic, starts),
        scratch: Vec::new(),
    };
    reader.run(&mut client, out)
}

fn partitions(args: &ConsumeArgs, client: &mut Client) -> Result<Vec<i32>, AdminError> {
    let topic = client.topic(&args.topic, false)?;
    let all = || topic.partitions.iter().map(|partition| partition.index);
    if args.partition.is_empty() {
        return Ok(all().collect());
    }
    for wanted in &args.partition {
        if !all().any(|index| index == *wanted) {
            return Err(AdminError::Usage(format!(
                "there is no partition {wanted} of {}: it has {}, from 0",
                args.topic,
                topic.partitions.len()
            )));
        }
    }
    let mut chosen = args.partition.clone();
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

/// Moves starting points that a partition does not have to the nearest it has. Only an offset given
/// as a number is worth a word about that.
fn clamp(
    client: &mut Client,
    topic: &str,
    from: Place,
    mut starts: BTreeMap<i32, i64>,
) -> Result<BTreeMap<i32, i64>, AdminError> {
    if matches!(from, Place::At(_)) {
        return Ok(starts);
    }
    let partitions: Vec<i32> = starts.keys().copied().collect();
    let firsts = client.offsets(topic, &partitions, Landmark::Beginning)?;
    let ends = client.offsets(topic, &partitions, Landmark::End)?;
    for (partition, start) in &mut starts {
        let first = firsts.get(partition).copied().unwrap_or(0);
        let end = ends.get(partition).copied().unwrap_or(first).max(first);
        let moved = (*start).clamp(first, end);
        if moved != *start && matches!(from, Place::Offset(_)) {
            output::note(&format!(
                "penstock: partition {partition} has offsets {first} to {end}, not {start}: \
                 starting at {moved}"
            ));
        }
        *start = moved;
    }
    Ok(starts)
}

/// An end beyond what there is would be waited for; the end as it is now is meant.
fn stop_in_range(
    client: &mut Client,
    topic: &str,
    mut ends: BTreeMap<i32, i64>,
) -> Result<BTreeMap<i32, i64>, AdminError> {
    let partitions: Vec<i32> = ends.keys().copied().collect();
    let lasts = client.offsets(topic, &partitions, Landmark::End)?;
    for (partition, end) in &mut ends {
        *end = (*end).min(lasts.get(partition).copied().unwrap_or(*end));
    }
    Ok(ends)
}

struct Reader<'a> {
    topic: &'a str,
    form: Form,
    /// Where to stop, not included.
    ends: Option<BTreeMap<i32, i64>>,
    /// Records left to write.
    left: u64,
    fetcher: Fetcher,
    scratch: Vec<u8>,
}

impl Reader<'_> {
    fn run(&mut self, client: &mut Client, out: &mut Output) -> Result<(), AdminError> {
        self.finish_partitions();
        while self.left > 0 && !self.fetcher.is_done() {
            for fetched in self.fetcher.round(client)? {
                self.batches(&fetched, out)?;
                if self.left == 0 {
                    break;
                }
            }
            self.finish_partitions();
            // Whoever reads the pipe sees a record as soon as it is here.
            out.flush()?;
        }
        out.flush()
    }

    /// Drops partitions that were read to where they are to end.
    fn finish_partitions(&mut self) {
        for (partition, end) in self.ends.iter().flatten() {
            if self
                .fetcher
                .position(*partition)
                .is_some_and(|position| position >= *end)
            {
                self.fetcher.finish(*partition);
            }
        }
    }

    fn batches(&mut self, fetched: &Fetched, out: &mut Output) -> Result<(), AdminError> {
        let partition = fetched.partition;
        let damaged = |offset: i64, problem: String| {
            AdminError::Failed(format!(
                "partition {partition} of {}: the batch at offset {offset} is damaged: {problem}",
                self.topic
            ))
        };
        let topic = self.topic;
        let Some(mut position) = self.fetcher.position(partition) else {
            return Ok(());
        };
        let end = self
            .ends
            .as_ref()
            .and_then(|ends| ends.get(&partition).copied());
        for batch in Batches::with_partial_tail(&fetched.batches) {
            let batch = batch.map_err(|error| damaged(position, error.to_string()))?;
            let offset = batch.base_offset();
            if !batch.crc_ok() {
                return Err(damaged(offset, "its checksum is wrong".into()));
            }
            if batch.is_control() {
                position = batch.last_offset() + 1;
                continue;
            }
            let records = codec::uncompressed_records(&batch);
            let records = records.map_err(|error| damaged(offset, error.to_string()))?;
            for record in batch.records(&records) {
                let record = record.map_err(|error| damaged(offset, error.to_string()))?;
                if record.offset < position {
                    continue;
                }
                if end.is_some_and(|end| record.offset >= end) || self.left == 0 {
                    break;
                }
                self.scratch.clear();
                write(&self.form, &mut self.scratch, topic, partition, &record);
                out.bytes(&self.scratch)?;
                self.left -= 1;
                position = record.offset + 1;
            }
            if self.left == 0 {
                break;
            }
            // A batch whose last records were removed still ends where it ended.
            position = position.max(batch.last_offset() + 1);
        }
        self.fetcher.advance(partition, position);
        Ok(())
    }
}

fn write(form: &Form, out: &mut Vec<u8>, topic: &str, partition: i32, record: &RecordView<'_>) {
    match form {
        Form::Json => json::write(out, topic, partition, record),
        Form::Text(format) => format.write(out, topic, partition, record),
        Form::Raw => out.extend_from_slice(record.value.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: places mean what they say. Method: each form, and one that is none.
    #[test]
    fn places_mean_what_they_say() {
        let parse = |text: &str| Place::parse("from", text);
        assert_eq!(
            parse("beginning").expect("valid"),
            Place::At(Landmark::Beginning)
        );
        assert_eq!(parse("end").expect("valid"), Place::At(Landmark::End));
        assert_eq!(parse("17").expect("valid"), Place::Offset(17));
        assert_eq!(parse("-5").expect("valid"), Place::BeforeEnd(5));
        assert_eq!(
            parse("@1500").expect("valid"),
            Place::At(Landmark::Time(1500))
        );
        let error = parse("sometime").expect_err("no place").to_string();
        assert!(
            error.starts_with("--from sometime: write beginning"),
            "{error}"
        );
    }
}
