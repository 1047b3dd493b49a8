"""kafka-python (pure Python, idempotent by default): all records out and back, then a short run
of every codec.

Usage: kafka_python_client.py BOOTSTRAP RECORDS
"""

import sys
import time
import uuid

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from records import PARTITIONS, Reading, Records, Stopwatch, wanted_everything, wanted_span

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
STALL_S = 60


def produce(bootstrap, topic, records, codec):
    failures = []
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=codec,
        linger_ms=20,
        batch_size=262_144,
        max_request_size=1_000_000,
        max_block_ms=60_000,
    )
    last = {}
    for i in range(records.count):
        last[i % PARTITIONS] = producer.send(
            topic,
            value=records.value(i),
            key=records.key(i),
            headers=records.headers(i),
            partition=i % PARTITIONS,
            timestamp_ms=records.timestamp(i),
        )
        if i % 20_000 < PARTITIONS:
            last[i % PARTITIONS].add_errback(failures.append)
    producer.flush(120)
    for partition, future in last.items():
        found = future.get(30)
        expected = records.in_partition(partition) - 1
        assert (found.partition, found.offset) == (partition, expected), f"{found}, not {expected}"
    assert not failures, failures[0]
    producer.close()


def read(consumer, topic, records, starts, wanted):
    reading = Reading(records, starts)
    places = {TopicPartition(topic, p): offset for p, offset in starts.items()}
    consumer.assign(list(places))
    for place, offset in places.items():
        consumer.seek(place, offset)
    deadline = time.monotonic() + STALL_S
    while not reading.done(wanted):
        for place, found in consumer.poll(timeout_ms=500, max_records=20_000).items():
            p = place.partition
            for record in found:
                if reading.next[p] >= wanted[p]:
                    break
                headers = list(record.headers)
                reading.record(
                    p, record.offset, record.key, record.value, headers, record.timestamp
                )
                deadline = time.monotonic() + STALL_S
        if time.monotonic() > deadline:
            sys.exit(f"no record for {STALL_S} s, stands at {reading.next}, wants {wanted}")


def check_offsets(consumer, topic, records):
    """Both ends, and the offset of every place by time."""
    places = [TopicPartition(topic, p) for p in range(PARTITIONS)]
    for place, offset in consumer.beginning_offsets(places).items():
        assert offset == 0, (place, offset)
    for place, offset in consumer.end_offsets(places).items():
        assert offset == records.in_partition(place.partition), (place, offset)
    starts = {}
    for i in records.places():
        answers = consumer.offsets_for_times(dict.fromkeys(places, records.timestamp(i)))
        for place, answer in answers.items():
            expected = records.first_at_or_after(i, place.partition)
            if expected >= records.in_partition(place.partition):
                assert answer is None, (place, answer)
            else:
                assert answer.offset == expected, (place, answer, expected)
                starts[place.partition] = expected
    return starts


def run(bootstrap, records, codec):
    watch = Stopwatch(f"kafka-python {codec or 'none'}")
    topic = f"kafka-python-{codec}-{uuid.uuid4().hex[:8]}"
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    produce(bootstrap, topic, records, codec)
    watch.lap("produced")
    settings = {
        "bootstrap_servers": bootstrap,
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "fetch_max_wait_ms": 100,
    }
    consumer = KafkaConsumer(**settings)
    read(consumer, topic, records, dict.fromkeys(range(PARTITIONS), 0), wanted_everything(records))
    watch.lap("read")
    consumer.close()
    # It decodes all that it fetched: little at a time is enough for a short look.
    consumer = KafkaConsumer(**settings, max_partition_fetch_bytes=65_536)
    for i in records.places()[1:3]:
        starts = {p: records.first_at_or_after(i, p) for p in range(PARTITIONS)}
        read(consumer, topic, records, starts, wanted_span(records, starts))
    watch.lap("by offset")
    starts = check_offsets(consumer, topic, records)
    read(consumer, topic, records, starts, wanted_span(records, starts))
    watch.lap("by time")
    consumer.close()
    admin.delete_topics([topic])
    admin.close()
    watch.report(records.count)


def main():
    bootstrap, count = sys.argv[1], int(sys.argv[2])
    run(bootstrap, Records(count, null_headers=False), "lz4")
    for codec in CODECS:
        run(bootstrap, Records(min(count, 20_000), null_headers=False), codec)


if __name__ == "__main__":
    main()
