"""The records every Python client sends, and the check that reads prove them.

Record i goes to partition i mod 16, so a broker that keeps order and loses nothing gives it
offset i div 16: whatever comes back is compared with what that place must hold, byte for byte.
Every thousand records carry the odd ones: no key, no value (a tombstone), an empty value, no
headers, one header twice, a header without a value.
"""

import sys
import time

PARTITIONS = 16
# Records read at each place that is asked for by offset or by time.
SPAN = 500

WORDS = [bytes((ord("a") + (n * 7 + m * m) % 26) for m in range(70)) for n in range(61)]


class Records:
    """`count` records with times one millisecond apart that end now."""

    def __init__(self, count, null_headers=True):
        self.count = count
        # One client refuses to send a header without a value.
        self.null_header = None if null_headers else b""
        self.first_ms = int(time.time() * 1000) - count

    def timestamp(self, i):
        return self.first_ms + i

    def key(self, i):
        return None if i % 1000 == 999 else b"key-%d" % (i % 5003)

    def value(self, i):
        odd = i % 1000
        if odd == 998:
            return None
        if odd == 997:
            return b""
        return b"%09d %s" % (i, WORDS[i % 61])

    def headers(self, i):
        odd = i % 1000
        if odd == 996:
            return []
        if odd == 995:
            return [("twice", b"first"), ("twice", b"second"), ("null", self.null_header)]
        return [("n", b"%d" % i)]

    def in_partition(self, partition):
        """How many records a partition holds."""
        return (self.count - partition + PARTITIONS - 1) // PARTITIONS

    def first_at_or_after(self, i, partition):
        """Offset of the partition's first record whose number is at least `i`."""
        return max(0, (i - partition + PARTITIONS - 1) // PARTITIONS)

    def places(self):
        """Record numbers to look up: both ends, the middle, odd spots."""
        return sorted({0, self.count // 3, self.count // 2 + 5, self.count - 200, self.count - 1})


class Reading:
    """What one reader has seen: in each partition offsets rise by one from a known start."""

    def __init__(self, records, starts):
        self.records = records
        self.next = dict(starts)
        self.seen = 0

    def record(self, partition, offset, key, value, headers, timestamp):
        records = self.records
        if offset != self.next[partition]:
            self.fail(partition, offset, "offset", self.next[partition], offset)
        self.next[partition] = offset + 1
        self.seen += 1
        i = offset * PARTITIONS + partition
        if value != records.value(i):
            self.fail(partition, offset, "value", records.value(i), value)
        if key != records.key(i):
            self.fail(partition, offset, "key", records.key(i), key)
        if timestamp != records.timestamp(i):
            self.fail(partition, offset, "timestamp", records.timestamp(i), timestamp)
        if headers != records.headers(i):
            self.fail(partition, offset, "headers", records.headers(i), headers)

    def fail(self, partition, offset, what, expected, found):
        sys.exit(f"partition {partition} offset {offset}: {what} is {found!r}, not {expected!r}")

    def done(self, wanted):
        """Whether every partition was read up to its wanted end."""
        return all(self.next[partition] >= end for partition, end in wanted.items())


def wanted_everything(records):
    """Ends of a reading from the beginning."""
    return {p: records.in_partition(p) for p in range(PARTITIONS)}


def wanted_span(records, starts):
    """Ends of a short reading from `starts`."""
    return {p: min(start + SPAN, records.in_partition(p)) for p, start in starts.items()}


class Stopwatch:
    """One line of report per client and mode: what it did and how long each part took."""

    def __init__(self, title):
        self.title = title
        self.parts = []
        self.last = time.monotonic()

    def lap(self, what):
        now = time.monotonic()
        self.parts.append(f"{what} {now - self.last:.1f} s")
        self.last = now

    def report(self, count):
        print(f"{self.title}: {count} records, {', '.join(self.parts)}: ok", flush=True)
