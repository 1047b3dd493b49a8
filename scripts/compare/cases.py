"""What is asked of the systems, and what of them is asked it.

A case is a number of producers that each wait for one acknowledgement; `systems` are the names it
is put to. The goals are ours: how many times a peer's figure our own must be.
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
                 batch_messages=1, metric="acks_per_s", goals=()):
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


CASES = [small(1), small(8), small(64), small(512), spread(8), spread(64), large()]

# Not counted: what a system is loaded with before its first figure.
WARM = Case("warm", "warm-up", ALL, 16)
