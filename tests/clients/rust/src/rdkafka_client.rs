//! The `rdkafka` crate (librdkafka 2.12, built from its own source): idempotent and not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::{Offset, TopicPartitionList};

use crate::records::{PARTITIONS, Record, Records, SPAN, Stopwatch};

const WAIT: Duration = Duration::from_secs(60);

/// Counts what was delivered and what was not.
#[derive(Default)]
struct Deliveries {
    done: AtomicUsize,
    failed: AtomicUsize,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let counter = if result.is_ok() {
            &self.done
        } else {
            &self.failed
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Both modes, each with all records.
pub async fn run_all(bootstrap: &str, count: usize) {
    run(bootstrap, &Records::new(count), "zstd", false).await;
    run(bootstrap, &Records::new(count), "none", true).await;
}

async fn run(bootstrap: &str, records: &Records, codec: &str, idempotent: bool) {
    let count = records.count;
    let mode = if idempotent { "idempotent" } else { "plain" };
    let mut watch = Stopwatch::new(format!("rdkafka {codec} {mode}: {count} records"));
    let topic = format!("rdkafka-{codec}-{mode}-{}", records.timestamp_ms(0));
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap);
    let admin: AdminClient<DefaultClientContext> = config.create().expect("an admin client");
    let options = AdminOptions::new().operation_timeout(Some(WAIT));
    let new = NewTopic::new(&topic, PARTITIONS as i32, TopicReplication::Fixed(1));
    let made = admin
        .create_topics([&new], &options)
        .await
        .expect("create answers");
    assert_eq!(made, vec![Ok(topic.clone())]);

    let consumer: BaseConsumer = config
        .clone()
        .set("group.id", &topic)
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "error")
        .set("check.crcs", "true")
        .set("fetch.wait.max.ms", "100")
        .create()
        .expect("a consumer");
    await_leaders(&consumer, &topic);
    produce(&config, &topic, records, codec, idempotent);
    watch.lap("produced");
    let all = |from: usize| (0..PARTITIONS).map(move |p| (p, records.first_at_or_after(from, p)));
    read(&consumer, &topic, records, &all(0).collect(), usize::MAX);
    watch.lap("read");
    for i in records.places() {
        let starts = all(i)
            .filter(|&(p, start)| start < records.in_partition(p))
            .collect();
        read(&consumer, &topic, records, &starts, SPAN);
    }
    watch.lap("by offset");
    for i in records.places() {
        let starts = look_up(&consumer, &topic, records, i);
        read(&consumer, &topic, records, &starts, SPAN);
    }
    watch.lap("by time");
    let gone = admin
        .delete_topics(&[&topic], &options)
        .await
        .expect("delete answers");
    assert_eq!(gone, vec![Ok(topic)]);
    watch.report();
}

/// Waits until every leader answers for its partition: a produce that is refused and sent again may
/// overtake a later one, as this client pipelines.
fn await_leaders(consumer: &BaseConsumer, topic: &str) {
    let deadline = Instant::now() + WAIT;
    for partition in 0..PARTITIONS {
        loop {
            match consumer.fetch_watermarks(topic, partition as i32, WAIT) {
                Ok(ends) => break assert_eq!(ends, (0, 0)),
                Err(error) => {
                    assert!(Instant::now() < deadline, "partition {partition}: {error}");
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }
}

fn produce(config: &ClientConfig, topic: &str, records: &Records, codec: &str, idempotent: bool) {
    let producer: BaseProducer<Deliveries> = config
        .clone()
        .set("compression.type", codec)
        .set("enable.idempotence", idempotent.to_string())
        .set("acks", "all")
        .set("linger.ms", "20")
        .set("batch.size", "900000")
        .set("batch.num.messages", "20000")
        .set("queue.buffering.max.messages", "300000")
        .create_with_context(Deliveries::default())
        .expect("a producer");
    for i in 0..records.count {
        let record = records.record(i);
        let headers = record
            .headers
            .iter()
            .fold(OwnedHeaders::new(), |headers, (key, value)| {
                headers.insert(Header {
                    key,
                    value: Some(value),
                })
            });
        let mut message = BaseRecord::to(topic)
            .partition((i % PARTITIONS) as i32)
            .timestamp(record.timestamp_ms)
            .headers(headers);
        if let Some(key) = &record.key {
            message = message.key(key);
        }
        if let Some(value) = &record.value {
            message = message.payload(value);
        }
        while let Err((error, again)) = producer.send(message) {
            let full = KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull);
            assert_eq!(error, full);
            producer.poll(Duration::from_millis(50));
            message = again;
        }
        if i % 1000 == 0 {
            producer.poll(Duration::ZERO);
        }
    }
    producer.flush(2 * WAIT).expect("everything leaves");
    let deliveries = producer.context();
    assert_eq!(deliveries.failed.load(Ordering::Relaxed), 0);
    assert_eq!(deliveries.done.load(Ordering::Relaxed), records.count);
}

/// Reads from `starts`, at most `span` records a partition, each checked; offsets rise by one.
fn read(
    consumer: &BaseConsumer,
    topic: &str,
    records: &Records,
    starts: &HashMap<usize, usize>,
    span: usize,
) {
    let mut places = TopicPartitionList::new();
    for (&partition, &start) in starts {
        let offset = Offset::Offset(start as i64);
        places
            .add_partition_offset(topic, partition as i32, offset)
            .expect("a fair offset");
    }
    consumer.assign(&places).expect("an assignment");
    let mut next = starts.clone();
    let end = |p: usize| starts[&p].saturating_add(span).min(records.in_partition(p));
    let mut open = starts.keys().filter(|&&p| starts[&p] < end(p)).count();
    while open > 0 {
        let message = consumer
            .poll(WAIT)
            .expect("records keep coming")
            .expect("a good record");
        let partition = message.partition() as usize;
        let place = next.get_mut(&partition).expect("an assigned partition");
        if *place == end(partition) {
            continue;
        }
        assert_eq!(message.offset(), *place as i64, "partition {partition}");
        records.check(partition, *place, &record_of(&message));
        *place += 1;
        open -= usize::from(*place == end(partition));
    }
    consumer.unassign().expect("no assignment");
}

fn record_of(message: &BorrowedMessage<'_>) -> Record {
    let headers = message
        .headers()
        .into_iter()
        .flat_map(|headers| headers.iter());
    let owned = headers.map(|header| {
        (
            header.key.to_owned(),
            header
                .value
                .expect("no header was sent without a value")
                .to_vec(),
        )
    });
    Record {
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers: owned.collect(),
        timestamp_ms: message
            .timestamp()
            .to_millis()
            .expect("every record has a time"),
    }
}

/// Asks for the offsets at the time of record `i` and checks them; gives those that exist.
fn look_up(
    consumer: &BaseConsumer,
    topic: &str,
    records: &Records,
    i: usize,
) -> HashMap<usize, usize> {
    let mut asked = TopicPartitionList::new();
    for partition in 0..PARTITIONS as i32 {
        let time = Offset::Offset(records.timestamp_ms(i));
        asked
            .add_partition_offset(topic, partition, time)
            .expect("a fair time");
    }
    let answers = consumer
        .offsets_for_times(asked, WAIT)
        .expect("offsets are answered");
    let mut starts = HashMap::new();
    for answer in answers.elements() {
        answer.error().expect("no partition refuses");
        let partition = answer.partition() as usize;
        let expected = records.first_at_or_after(i, partition);
        if expected >= records.in_partition(partition) {
            assert_eq!(answer.offset(), Offset::End, "partition {partition}");
        } else {
            assert_eq!(
                answer.offset(),
                Offset::Offset(expected as i64),
                "partition {partition}"
            );
            starts.insert(partition, expected);
        }
    }
    starts
}
