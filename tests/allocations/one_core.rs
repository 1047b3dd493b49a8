//! One core without sockets: a shard, a router and a session in any surroundings, asked by frames
//! as a connection asks them. Shared by the allocation tests and the benches of the pure paths.

#![allow(dead_code, reason = "every binary uses its own part of this")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use penstock::base::ids::{CoreId, ShardId};
use penstock::config::MemoryBudget;
use penstock::env::Env;
use penstock::journal::JournalConfig;
use penstock::metrics::CoreMetrics;
use penstock::router::layout::Endpoint;
use penstock::router::{Layout, Router, RouterParts};
use penstock::session::connection::start;
use penstock::session::replies::Reply;
use penstock::session::{Session, Settings};
use penstock::shard::Shard;
use penstock::shard::control::NewTopic;
use penstock::wire::{RequestHeader, request};

use crate::support::batch::{self, NOBODY, Record};
use crate::support::client::{fetch_body, frame, produce_body};

/// The topic that is there.
pub const TOPIC: &str = "measured";
/// And its partitions.
pub const PARTITIONS: i32 = 64;
/// Largest answer of a fetch.
const FETCH_BYTES: i32 = 8 << 20;
const PREFIX_BYTES: usize = 4;
const MIB: u64 = 1 << 20;

/// A core that can be asked.
pub struct OneCore {
    session: Session,
}

impl OneCore {
    /// Opens a new shard in `folder` and makes the topic.
    pub async fn open(env: Env, folder: &Path) -> OneCore {
        let config = JournalConfig {
            create: true,
            cache_bytes_max: 128 << 20,
            ..JournalConfig::new(folder.to_owned(), ShardId(0))
        };
        let opened = Shard::open(env.clone(), config).await;
        let (shard, _) = opened.expect("a new shard opens");
        let new = NewTopic {
            name: TOPIC.to_owned(),
            partitions: PARTITIONS,
            config: Default::default(),
        };
        shard.create_topic(new).await.expect("the topic is new");
        let (lane, _) = flume::bounded(1);
        let (control, _) = flume::bounded(1);
        let endpoint = Endpoint {
            host: "localhost".to_owned(),
            port: 1,
        };
        let router = Router::new(RouterParts {
            env,
            core: CoreId(0),
            layout: Layout {
                host_id: 0,
                cores: 1,
                shards: 1,
                endpoints: vec![endpoint],
                cluster_id: "one-core".to_owned(),
                rack: None,
            },
            metrics: CoreMetrics::new(CoreId(0), 0),
            shards: vec![shard.clone()],
            lanes: vec![lane],
            control,
        });
        router.install(Arc::new(shard.catalog()));
        let session = Session::new(router, settings(), &budget());
        OneCore { session }
    }

    /// The answer to a frame (without its length), as it leaves on the socket.
    pub async fn ask(&self, frame: &Bytes) -> Bytes {
        let reply = start(&self.session, frame.clone()).await;
        let answer = match reply.expect("a well-formed request") {
            Reply::Now(answer) => answer,
            Reply::Later(later) => later.await.expect("acks is not 0"),
        };
        answer.frame
    }
}

fn settings() -> Settings {
    Settings {
        endpoint: 0,
        requests_in_flight_max: 64,
        idle_deadline: Duration::from_secs(600),
        body_deadline: Duration::from_secs(30),
        auto_create_topics: false,
        partitions_default: 1,
        message_bytes_max: 4 << 20,
    }
}

fn budget() -> MemoryBudget {
    MemoryBudget {
        cores: 1,
        total_bytes: 1024 * MIB,
        fixed_bytes: 256 * MIB,
        request_bytes: 256 * MIB,
        fetch_bytes: 256 * MIB,
        cache_bytes: 256 * MIB,
    }
}

/// One batch of `records` records of `value_bytes` each, the last one longer, so that the batch is
/// `batch_bytes` long whatever the number of records. Without `batch_bytes` they are equal.
pub fn records_batch(records: usize, value_bytes: usize, batch_bytes: Option<usize>) -> Vec<u8> {
    let record = |bytes: usize| Record {
        timestamp_ms: 1_700_000_000_000,
        value: Some(vec![b'm'; bytes]),
        ..Record::default()
    };
    let mut all = vec![record(value_bytes); records];
    let built = batch::build(NOBODY, &all);
    let Some(wanted) = batch_bytes else {
        return built;
    };
    // The lengths in front of the value grow with it: a few tries meet the length exactly.
    let mut last_bytes = value_bytes + wanted.checked_sub(built.len()).expect("too many records");
    loop {
        *all.last_mut().expect("at least one record") = record(last_bytes);
        let built = batch::build(NOBODY, &all);
        if built.len() == wanted {
            return built;
        }
        last_bytes = last_bytes + wanted - built.len();
    }
}

/// Produce (version 7) of one batch to one partition, as the session gets it.
pub fn produce_frame(partition: i32, batch: &[u8]) -> Bytes {
    let body = produce_body(TOPIC, partition, -1, batch);
    Bytes::from(frame(0, 7, 1, &body)).slice(PREFIX_BYTES..)
}

/// Fetch (version 11) of `partitions` partitions, each from `offset`, that does not wait.
pub fn fetch_frame(partitions: i32, offset: i64) -> Bytes {
    let from: Vec<(i32, i64)> = (0..partitions).map(|index| (index, offset)).collect();
    let body = fetch_body(TOPIC, &from, 0, FETCH_BYTES);
    Bytes::from(frame(1, 11, 1, &body)).slice(PREFIX_BYTES..)
}

/// The same request in another version of its API.
pub fn in_version(frame: &Bytes, version: i16) -> Bytes {
    let (header, body) = RequestHeader::decode(frame).expect("our own header");
    let decoded = request::decode(&header, &body).expect("our own request");
    let header = RequestHeader {
        api_version: version,
        ..header
    };
    let encoded = request::encode(&header, &decoded).expect("the version is served");
    encoded.slice(PREFIX_BYTES..)
}
