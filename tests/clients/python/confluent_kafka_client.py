"""confluent-kafka (librdkafka): every codec, idempotent and not, all records out and back.

Usage: confluent_kafka_client.py BOOTSTRAP RECORDS
"""

import sys
import time
import uuid

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from records import PARTITIONS, Reading, Records, Stopwatch, wanted_everything, wanted_span

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
STALL_S = 60
# A leader that has not heard of a new topic yet; anything else is a failure.
NOT_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART)


def create(admin, consumer, topic):
    """Creates the topic and waits until every leader answers for its partition: a produce that is
    refused and sent again may overtake a later one, as this client pipelines."""
    made = admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    made[topic].result(30)
    deadline = time.monotonic() + 30
    while True:
        found = admin.list_topics(topic, timeout=30).topics[topic]
        if found.error is None and len(found.partitions) == PARTITIONS:
            break
        assert time.monotonic() < deadline, f"{topic}: {found.error} {found.partitions}"
        time.sleep(0.05)
    for p in range(PARTITIONS):
        while True:
            try:
                assert consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30) == (0, 0)
                break
            except KafkaException as error:
                assert error.args[0].code() in NOT_YET and time.monotonic() < deadline, error
                time.sleep(0.05)


def produce(bootstrap, topic, records, codec, idempotent):
    failures = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "enable.idempotence": idempotent,
            "acks": "all",
            "linger.ms": 20,
            "batch.size": 900_000,
            "batch.num.messages": 20_000,
            "queue.buffering.max.messages": 300_000,
            "message.timeout.ms": 120_000,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, message: failures.append((error, message.partition())),
        }
    )
    for i in range(records.count):
        fields = {
            "key": records.key(i),
            "value": records.value(i),
            "headers": records.headers(i),
            "timestamp": records.timestamp(i),
            "partition": i % PARTITIONS,
        }
        while True:
            try:
                producer.produce(topic, **fields)
                break
            except BufferError:
                producer.poll(0.05)
    left = producer.flush(120)
    assert left == 0, f"{left} messages never left"
    assert not failures, f"{len(failures)} deliveries failed, first {failures[0]}"


def read(consumer, topic, records, starts, wanted):
    reading = Reading(records, starts)
    consumer.assign([TopicPartition(topic, p, offset) for p, offset in starts.items()])
    deadline = time.monotonic() + STALL_S
    while not reading.done(wanted):
        for message in consumer.consume(10_000, 0.5):
            if message.error():
                sys.exit(f"consumer error: {message.error()}")
            partition = message.partition()
            if reading.next[partition] < wanted[partition]:
                reading.record(
                    partition,
                    message.offset(),
                    message.key(),
                    message.value(),
                    message.headers() or [],
                    message.timestamp()[1],
                )
                deadline = time.monotonic() + STALL_S
        if time.monotonic() > deadline:
            sys.exit(f"no record for {STALL_S} s, stands at {reading.next}, wants {wanted}")
    consumer.unassign()


def look_up(consumer, topic, records, check_read):
    """Every place by time: the offset that the broker names, and what is read from there."""
    for i in records.places():
        asked = [TopicPartition(topic, p, records.timestamp(i)) for p in range(PARTITIONS)]
        starts = {}
        for answer in consumer.offsets_for_times(asked, timeout=30):
            p = answer.partition
            assert answer.error is None, answer
            expected = records.first_at_or_after(i, p)
            if expected >= records.in_partition(p):
                assert answer.offset == -1, f"{p}: {answer.offset} for a time past the end"
            else:
                assert answer.offset == expected, f"{p}: {answer.offset}, not {expected}"
                starts[p] = expected
        if check_read:
            read(consumer, topic, records, starts, wanted_span(records, starts))


def check_ends(consumer, topic, records):
    for p in range(PARTITIONS):
        ends = consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)
        assert ends == (0, records.in_partition(p)), f"partition {p}: watermarks {ends}"


def run(bootstrap, records, codec, idempotent):
    mode = "idempotent" if idempotent else "plain"
    watch = Stopwatch(f"confluent-kafka {codec} {mode}")
    topic = f"confluent-{codec}-{mode}-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": topic,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "fetch.wait.max.ms": 100,
            "queued.max.messages.kbytes": 65_536,
        }
    )
    create(admin, consumer, topic)
    produce(bootstrap, topic, records, codec, idempotent)
    watch.lap("produced")
    check_ends(consumer, topic, records)
    read(consumer, topic, records, dict.fromkeys(range(PARTITIONS), 0), wanted_everything(records))
    watch.lap("read")
    for i in records.places():
        starts = {p: records.first_at_or_after(i, p) for p in range(PARTITIONS)}
        starts = {p: at for p, at in starts.items() if at < records.in_partition(p)}
        read(consumer, topic, records, starts, wanted_span(records, starts))
    watch.lap("by offset")
    look_up(consumer, topic, records, check_read=not idempotent)
    watch.lap("by time")
    consumer.close()
    admin.delete_topics([topic])[topic].result(30)
    watch.report(records.count)


def main():
    bootstrap, count = sys.argv[1], int(sys.argv[2])
    modes = [(codec, idempotent) for codec in CODECS for idempotent in (False, True)]
    if len(sys.argv) > 3:
        modes = [(sys.argv[3], sys.argv[4] == "idempotent")]
    for codec, idempotent in modes:
        run(bootstrap, Records(count), codec, idempotent)


if __name__ == "__main__":
    main()
