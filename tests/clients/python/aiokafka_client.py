"""aiokafka (asyncio): all records out in batches it builds itself and back, then a short run of
every codec through its ordinary send.

Usage: aiokafka_client.py BOOTSTRAP RECORDS
"""

import asyncio
import sys
import time
import uuid

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from records import PARTITIONS, Reading, Records, Stopwatch, wanted_everything, wanted_span

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
STALL_S = 60


async def produce_batches(producer, topic, records):
    """Fills one batch per partition at a time, the quick way in this client."""
    answers = []

    async def fill(partition):
        batch = producer.create_batch()
        i = partition
        while i < records.count:
            fields = {
                "key": records.key(i),
                "value": records.value(i),
                "timestamp": records.timestamp(i),
                "headers": records.headers(i),
            }
            if batch.append(**fields) is not None:
                i += PARTITIONS
                continue
            batch.close()
            answers.append(await producer.send_batch(batch, topic, partition=partition))
            batch = producer.create_batch()
        batch.close()
        answers.append(await producer.send_batch(batch, topic, partition=partition))

    await asyncio.gather(*(fill(partition) for partition in range(PARTITIONS)))
    await producer.flush()
    for answer in answers:
        await answer


async def produce_singly(producer, topic, records):
    answers = []
    for i in range(records.count):
        answer = await producer.send(
            topic,
            value=records.value(i),
            key=records.key(i),
            headers=records.headers(i),
            partition=i % PARTITIONS,
            timestamp_ms=records.timestamp(i),
        )
        answers.append(answer)
    await producer.flush()
    for i, answer in enumerate(answers):
        found = await answer
        assert found.offset == i // PARTITIONS, (i, found)


async def read(consumer, topic, records, starts, wanted):
    reading = Reading(records, starts)
    places = {TopicPartition(topic, p): offset for p, offset in starts.items()}
    consumer.assign(list(places))
    for place, offset in places.items():
        consumer.seek(place, offset)
    deadline = time.monotonic() + STALL_S
    while not reading.done(wanted):
        for place, found in (await consumer.getmany(timeout_ms=500)).items():
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


async def check_offsets(consumer, topic, records):
    """Both ends, and the offset of every place by time."""
    places = [TopicPartition(topic, p) for p in range(PARTITIONS)]
    for place, offset in (await consumer.beginning_offsets(places)).items():
        assert offset == 0, (place, offset)
    for place, offset in (await consumer.end_offsets(places)).items():
        assert offset == records.in_partition(place.partition), (place, offset)
    starts = {}
    for i in records.places():
        answers = await consumer.offsets_for_times(dict.fromkeys(places, records.timestamp(i)))
        for place, answer in answers.items():
            expected = records.first_at_or_after(i, place.partition)
            if expected >= records.in_partition(place.partition):
                assert answer is None, (place, answer)
            else:
                assert answer.offset == expected, (place, answer, expected)
                starts[place.partition] = expected
    return starts


async def run(bootstrap, records, codec, produce, idempotent):
    watch = Stopwatch(f"aiokafka {codec or 'none'}{' idempotent' if idempotent else ''}")
    topic = f"aiokafka-{codec}-{uuid.uuid4().hex[:8]}"
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=codec,
        enable_idempotence=idempotent,
        acks="all",
        linger_ms=5,
        max_batch_size=262_144,
        request_timeout_ms=60_000,
    )
    await producer.start()
    await produce(producer, topic, records)
    await producer.stop()
    watch.lap("produced")
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        auto_offset_reset="none",
        fetch_max_wait_ms=100,
        max_poll_records=20_000,
    )
    await consumer.start()
    starts = dict.fromkeys(range(PARTITIONS), 0)
    await read(consumer, topic, records, starts, wanted_everything(records))
    watch.lap("read")
    for i in records.places()[1:3]:
        starts = {p: records.first_at_or_after(i, p) for p in range(PARTITIONS)}
        await read(consumer, topic, records, starts, wanted_span(records, starts))
    watch.lap("by offset")
    starts = await check_offsets(consumer, topic, records)
    await read(consumer, topic, records, starts, wanted_span(records, starts))
    watch.lap("by time")
    await consumer.stop()
    await admin.delete_topics([topic])
    await admin.close()
    watch.report(records.count)


async def main():
    bootstrap, count = sys.argv[1], int(sys.argv[2])
    await run(bootstrap, Records(count), "snappy", produce_batches, False)
    for codec in CODECS:
        records = Records(min(count, 20_000))
        await run(bootstrap, records, codec, produce_singly, codec != "gzip")


if __name__ == "__main__":
    asyncio.run(main())
