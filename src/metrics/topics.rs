//! What is counted of a topic: kept by its partitions, summed on request. A store may have more
//! topics than a page can show, so a dump lists the busiest and says how many it leaves out.

use crate::limits::TOPICS_DUMPED_MAX;
use serde_json::{Value, json};

/// The figures of one topic.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TopicFigures {
    /// Its name.
    pub name: String,
    /// Its id, as 32 hexadecimal digits: a topic made again under its name is another one.
    pub id: String,
    /// Its partitions.
    pub partitions: u64,
    /// Records accepted since the process started.
    pub in_records: u64,
    /// Bytes of record batches accepted since then.
    pub in_bytes: u64,
    /// Records served since then.
    pub out_records: u64,
    /// Bytes of record batches served since then.
    pub out_bytes: u64,
    /// Records that can be read.
    pub log_records: u64,
    /// Bytes of the record batches that can be read.
    pub log_bytes: u64,
    /// Offsets given out since the topic was made: the sum of its partitions' high watermarks.
    pub offsets: u64,
}

impl TopicFigures {
    /// Adds the figures of other partitions of the same topic.
    pub fn add(&mut self, other: &TopicFigures) {
        self.in_records += other.in_records;
        self.in_bytes += other.in_bytes;
        self.out_records += other.out_records;
        self.out_bytes += other.out_bytes;
        self.log_records += other.log_records;
        self.log_bytes += other.log_bytes;
        self.offsets += other.offsets;
    }

    /// What happened since `earlier`; what is there is as it is now. After a restart counters begin
    /// again, and are taken as they are.
    pub(super) fn since(&self, earlier: &TopicFigures) -> TopicFigures {
        let since = |now: u64, then: u64| now.checked_sub(then).unwrap_or(now);
        TopicFigures {
            in_records: since(self.in_records, earlier.in_records),
            in_bytes: since(self.in_bytes, earlier.in_bytes),
            out_records: since(self.out_records, earlier.out_records),
            out_bytes: since(self.out_bytes, earlier.out_bytes),
            ..self.clone()
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "id": self.id,
            "partitions": self.partitions,
            "in_records": self.in_records,
            "in_bytes": self.in_bytes,
            "out_records": self.out_records,
            "out_bytes": self.out_bytes,
            "log_records": self.log_records,
            "log_bytes": self.log_bytes,
            "offsets": self.offsets,
        })
    }

    pub(super) fn from_json(value: &Value) -> Option<TopicFigures> {
        let number = |key: &str| value[key].as_u64();
        Some(TopicFigures {
            name: value["name"].as_str()?.to_owned(),
            id: value["id"].as_str()?.to_owned(),
            partitions: number("partitions")?,
            in_records: number("in_records")?,
            in_bytes: number("in_bytes")?,
            out_records: number("out_records")?,
            out_bytes: number("out_bytes")?,
            log_records: number("log_records")?,
            log_bytes: number("log_bytes")?,
            offsets: number("offsets")?,
        })
    }
}

/// The topics of a dump.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Topics {
    /// Those that are listed, by name.
    pub listed: Vec<TopicFigures>,
    /// How many are not.
    pub omitted: u64,
}

impl Topics {
    /// Keeps the busiest, in bytes in and out since the start, then the largest.
    #[must_use]
    pub fn busiest(mut all: Vec<TopicFigures>) -> Topics {
        let omitted = all.len().saturating_sub(TOPICS_DUMPED_MAX);
        if omitted > 0 {
            all.sort_by_key(|topic| {
                std::cmp::Reverse((topic.in_bytes + topic.out_bytes, topic.log_bytes))
            });
            all.truncate(TOPICS_DUMPED_MAX);
        }
        all.sort_by(|left, right| left.name.cmp(&right.name));
        Topics {
            listed: all,
            omitted: omitted as u64,
        }
    }

    pub(super) fn since(&self, earlier: &Topics) -> Topics {
        let one = |now: &TopicFigures| {
            let then = earlier.listed.iter().find(|then| then.id == now.id);
            then.map_or_else(|| now.clone(), |then| now.since(then))
        };
        Topics {
            listed: self.listed.iter().map(one).collect(),
            omitted: self.omitted,
        }
    }
}
