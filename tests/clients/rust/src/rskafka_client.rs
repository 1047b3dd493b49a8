//! The `rskafka` crate: a client of its own, which asks for Fetch in exactly version 4 and sends
//! one partition at a time. All records in one codec, then a short run of each.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use futures::future::join_all;
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::{Record as SentRecord, RecordAndOffset};

use crate::records::{PARTITIONS, Record, Records, SPAN, Stopwatch};

/// Records in one produce request.
const SEND: usize = 5000;

/// Every codec; the first with all records.
pub async fn run_all(bootstrap: &str, count: usize) {
    let codecs = [
        ("lz4", Compression::Lz4),
        ("none", Compression::NoCompression),
        ("gzip", Compression::Gzip),
        ("snappy", Compression::Snappy),
        ("zstd", Compression::Zstd),
    ];
    run(bootstrap, count, codecs[0]).await;
    for codec in codecs {
        run(bootstrap, count.min(50_000), codec).await;
    }
}

async fn run(bootstrap: &str, count: usize, (name, codec): (&str, Compression)) {
    let mut watch = Stopwatch::new(format!("rskafka {name}: {count} records"));
    let records = Arc::new(Records::new(count));
    let topic = format!("rskafka-{name}-{}", records.timestamp_ms(0));
    let client = ClientBuilder::new(vec![bootstrap.to_owned()])
        .build()
        .await
        .expect("a client");
    let controller = client.controller_client().expect("a controller client");
    controller
        .create_topic(&topic, PARTITIONS as i32, 1, 30_000)
        .await
        .expect("a new topic");
    let partitions = join_all((0..PARTITIONS).map(|p| partition_client(&client, &topic, p))).await;

    on_each(&partitions, &records, |client, records| {
        produce(client, records, codec)
    })
    .await;
    watch.lap("produced");
    on_each(&partitions, &records, |client, records| {
        read(client, records, 0, usize::MAX)
    })
    .await;
    watch.lap("read");
    on_each(&partitions, &records, |client, records| {
        check_places(client, records)
    })
    .await;
    watch.lap("by offset and time");
    controller
        .delete_topic(&topic, 30_000)
        .await
        .expect("the topic goes");
    watch.report();
}

async fn partition_client(client: &Client, topic: &str, partition: usize) -> Arc<PartitionClient> {
    let retry = UnknownTopicHandling::Retry;
    let made = client
        .partition_client(topic, partition as i32, retry)
        .await;
    Arc::new(made.expect("a partition client"))
}

/// Runs `work` for all partitions at once, each in a task of its own.
async fn on_each<F>(
    partitions: &[Arc<PartitionClient>],
    records: &Arc<Records>,
    work: impl Fn(Arc<PartitionClient>, Arc<Records>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let tasks = partitions
        .iter()
        .map(|client| tokio::spawn(work(Arc::clone(client), Arc::clone(records))));
    for outcome in join_all(tasks.collect::<Vec<_>>()).await {
        outcome.expect("no partition fails");
    }
}

async fn produce(client: Arc<PartitionClient>, records: Arc<Records>, codec: Compression) {
    let partition = client.partition() as usize;
    let end = records.in_partition(partition);
    for first in (0..end).step_by(SEND) {
        let last = (first + SEND).min(end);
        let batch = (first..last).map(|offset| sent(&records, offset * PARTITIONS + partition));
        let offsets = client
            .produce(batch.collect(), codec)
            .await
            .expect("an acknowledgement");
        assert!(
            offsets.iter().copied().eq(first as i64..last as i64),
            "partition {partition}"
        );
    }
}

fn sent(records: &Records, i: usize) -> SentRecord {
    let record = records.record(i);
    SentRecord {
        key: record.key,
        value: record.value,
        headers: record.headers.into_iter().collect(),
        timestamp: time(record.timestamp_ms),
    }
}

fn time(timestamp_ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(timestamp_ms).expect("a time of this century")
}

/// Reads up to `span` records from `start`, each checked; offsets rise by one.
async fn read(client: Arc<PartitionClient>, records: Arc<Records>, start: usize, span: usize) {
    let partition = client.partition() as usize;
    let end = start
        .saturating_add(span)
        .min(records.in_partition(partition));
    let mut next = start;
    while next < end {
        let answer = client.fetch_records(next as i64, 1..1_000_000, 500).await;
        let (found, high_watermark) = answer.expect("a fetch answer");
        assert_eq!(high_watermark as usize, records.in_partition(partition));
        assert!(
            !found.is_empty(),
            "partition {partition}: nothing at {next} below {end}"
        );
        for RecordAndOffset { record, offset } in found {
            assert_eq!(offset as usize, next, "partition {partition}");
            let found = Record {
                key: record.key,
                value: record.value,
                headers: record.headers.into_iter().collect(),
                timestamp_ms: record.timestamp.timestamp_millis(),
            };
            records.check(partition, next, &found);
            next += 1;
        }
    }
}

/// Both ends, and every place by offset and by time.
async fn check_places(client: Arc<PartitionClient>, records: Arc<Records>) {
    let partition = client.partition() as usize;
    let end = records.in_partition(partition);
    let earliest = client
        .get_offset(OffsetAt::Earliest)
        .await
        .expect("the earliest offset");
    let latest = client
        .get_offset(OffsetAt::Latest)
        .await
        .expect("the latest offset");
    assert_eq!((earliest, latest), (0, end as i64));
    for i in records.places() {
        let start = records.first_at_or_after(i, partition);
        let at = OffsetAt::Timestamp(time(records.timestamp_ms(i)));
        let found = client.get_offset(at).await.expect("an offset for a time");
        let expected = if start < end { start as i64 } else { -1 };
        assert_eq!(found, expected, "partition {partition}, time of record {i}");
        if start < end {
            read(Arc::clone(&client), Arc::clone(&records), start, SPAN).await;
        }
    }
}
