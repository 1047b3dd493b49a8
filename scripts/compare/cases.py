"""What is asked of the systems, and what of them is asked it.

A case is a number of producers that each wait for one acknowledgement (`benches/peers`), or a load
at a set rate (`penstock load`, for systems of the Kafka protocol): then `load` holds its flags, and
latency counts from the intended send. `systems` are the names it is put to. The goals are ours: how
many times a peer's figure our own must be.
"""

ALL = ("penstock-1", "penstock", "kafka", "kafka-flush", "nats", "rabbitmq", "redis")
KAFKA_PROTOCOL = ("penstock-1", "penstock", "kafka", "kafka-flush")

# Peer, producers: the multiple of its acknowledgements a second that one shard of ours must reach.
SMALL_GOALS = {
    ("kafka-flush", 8): 10.0,
    ("nats", 8): 4.0, ("nats", 64): 15.0,
    ("rabbitmq", 8): 3.0, ("rabbitmq", 64): 5.0,
    ("redis", 8): 1.5, ("redis", 64): 1.5, ("redis", 512): 1.5,
}


class Goal:
    """`metric` of `ours` against that of `peer`: at least `least` times, or at most `most` times."""

    def __init__(self, peer, metric, least=None, most=None, ours="penstock-1"):
        self.ours, self.peer, self.metric = ours, peer, metric
        self.least, self.most = least, most


class Case:
    def __init__(self, name, title, systems, producers, partitions=1, message_bytes=100,
                 batch_messages=1, metric="acks_per_s", goals=(), load=None, rounds_max=None):
        self.load, self.rounds_max = load, rounds_max
        # Whether it is short enough for a quick look.
        self.quick = True
        self.name, self.title, self.systems = name, title, systems
        self.producers, self.partitions = producers, partitions
        self.message_bytes, self.batch_messages = message_bytes, batch_messages
        self.metric, self.goals = metric, list(goals)

    def flags(self):
        """Arguments of the loader."""
        return ["--producers", self.producers, "--partitions", self.partitions,
                "--message-bytes", self.message_bytes, "--batch-messages", self.batch_messages]


def small(producers):
    """100 B, one message a request, durable before the answer where the system can."""
    goals = [Goal(peer, "acks_per_s", least)
             for (peer, count), least in SMALL_GOALS.items() if count == producers]
    title = f"100 B messages, {producers} producer{'s' if producers > 1 else ''}"
    return Case(f"small-{producers}", title, ALL, producers, goals=goals)


def spread(producers):
    """The same over 16 partitions, for those that have partitions."""
    return Case(f"spread-{producers}", f"100 B messages, {producers} producers, 16 partitions",
                KAFKA_PROTOCOL, producers, partitions=16)


def large():
    """1 KiB messages in batches of 256 KiB from 16 producers: what a copy costs."""
    goals = [Goal("kafka", "mb_per_s", least=1.0),
             Goal("kafka", "server_cpu_s_per_gb", most=1 / 3),
             Goal("kafka", "server_rss_bytes", most=1 / 10)]
    return Case("large", "1 KiB messages in batches of 256 KiB, 16 producers, 16 partitions",
                KAFKA_PROTOCOL, 16, partitions=16, message_bytes=1024, batch_messages=250,
                metric="mb_per_s", goals=goals)


# The hard cases: the same rate for all, so what differs is how long a message takes. A rate that a
# system cannot keep shows as latency, and as answers that are missing at the end.
RATE = 4_000


def at_rate(name, title, producers, partitions, systems=KAFKA_PROTOCOL, more=(), message_bytes=1024):
    load = ["--rate", RATE, "--producers", producers, "--partitions", partitions,
            "--size", message_bytes, "--topic", name, *more]
    return Case(name, title, systems, producers, partitions, message_bytes, metric="p99_us",
                load=load, rounds_max=2)


def keyed(producers):
    """Keyed messages from few and many producers at one total rate."""
    title = f"1 KiB keyed messages, {RATE:,}/s in all, {producers} producers, 16 partitions"
    return at_rate(f"keyed-{producers}", title, producers, 16, more=("--keys", "uniform:100000"))


def trickle(partitions):
    """One total rate over few and many partitions."""
    title = f"100 B messages, {RATE:,}/s in all, 16 producers, {partitions:,} partitions"
    # Kafka makes at most 10,000 records of its catalogue at once, so a topic is smaller than that.
    topics = 1 + partitions // 5_001
    case = at_rate(f"trickle-{partitions}", title, 16, partitions,
                   more=("--keys", "spread", "--topics", topics), message_bytes=100)
    case.load[case.load.index("--partitions") + 1] = partitions // topics
    case.quick = partitions < 10_000
    return case


def behind(consumers):
    """Producers at a rate, alone and while consumers read a backlog from its beginning."""
    beside = f"{consumers} consumers far behind" if consumers else "no consumers"
    title = f"1 KiB messages, {RATE:,}/s in all, 8 producers, 16 partitions, {beside}"
    more = ("--consumers", consumers, "--from", "beginning") if consumers else ()
    # Counted from the start: the backlog must not be read before that.
    more += ("--warm-up", "200ms")
    case = at_rate(f"behind-{consumers}", title, 8, 16, more=more)
    # Both read and write the topic that the backlog is in.
    case.load[case.load.index("--topic") + 1] = BACKLOG[BACKLOG.index("--topic") + 1]
    case.quick = False
    return case


# What is written before the first case that needs it: as fast as it goes, in large batches.
BACKLOG = ["--topic", "behind", "--partitions", 16, "--producers", 8, "--rate", "max",
           "--size", 1024, "--batch-bytes", "256KiB", "--count", 2_000_000]

CASES = [small(1), small(8), small(64), small(512), spread(8), spread(64), large(),
         keyed(4), keyed(50), keyed(500), behind(0), behind(4),
         trickle(1), trickle(1_000), trickle(10_000)]

# Not counted: what a system is loaded with before its first figure.
WARM = Case("warm", "warm-up", ALL, 16)
