"""A case at a set rate: `penstock load`, which counts latency from the intended send."""

import json
import time

from cases import BACKLOG, RATE
from server import Unavailable, run, used

# How a load may end and still have something to tell: done; its own limit; nothing acknowledged;
# sends failed.
TOLD_CODES = (0, 11, 13, 14)
# What a load may take beyond its time: topics of 10,000 partitions, a backlog, the last answers.
BEYOND_S = 120
# How long the partitions of a new topic may take until they take messages.
READY_S_MAX = 60
# Rest after gigabytes were written, so that a device that still works on them is not measured.
SETTLE_S = 3


def load(penstock, server, folder, flags, seconds):
    """One run of the load generator, as it tells it."""
    story = folder / "load.json"
    story.unlink(missing_ok=True)
    run([penstock, "load", "--broker", server.address, "--quiet", "--json", story, *flags],
        seconds + BEYOND_S, codes=TOLD_CODES)
    try:
        return json.loads(story.read_text())
    except (OSError, ValueError) as why:
        raise Unavailable(f"penstock load told nothing: {why}") from why


def prepare(penstock, server, folder, case):
    """Makes the topics, and sends a little until every partition takes it: a broker may name a
    leader before the leader knows."""
    settings = dict(zip(case.load[::2], case.load[1::2]))
    for reading in ("--consumers", "--from"):
        settings.pop(reading, None)
    for number in range(settings.get("--topics", 1) if settings.get("--topics", 1) > 1 else 0):
        # One by one: a catalogue may take only so much at once.
        run([penstock, "topic", "create", f"{settings['--topic']}-{number}", "--partitions",
             settings["--partitions"], "--broker", server.address], READY_S_MAX)
    settings |= {"--rate": 10 * RATE, "--count": 2 * case.partitions, "--warm-up": "0s",
                 "--retries": 20}
    flags = [word for pair in settings.items() for word in pair]
    deadline = time.monotonic() + READY_S_MAX
    while True:
        try:
            told = load(penstock, server, folder, flags, 0)
            if told["summary"]["failed"] == 0:
                return
            why = "sends fail"
        except Unavailable as unavailable:
            why = str(unavailable)
        if time.monotonic() > deadline:
            raise Unavailable(f"its partitions take nothing: {why}")
        time.sleep(1)


def latency(summary, name):
    """Percentiles of one latency, under the names that the other cases have."""
    told = summary.get(name) or {}
    keys = {"p50_us": "p50_us", "p99_us": "p99_us", "p99_9_us": "p999_us", "max_us": "max_us"}
    return {ours: told[theirs] for theirs, ours in keys.items() if told.get(theirs) is not None}


def figure(penstock, server, case, folder, seconds):
    """The figures of one case; the backlog it needs is written first."""
    prepare(penstock, server, folder, case)
    if case.name.startswith("behind") and not getattr(server, "has_backlog", False):
        load(penstock, server, folder, BACKLOG, seconds)
        server.has_backlog = True
        time.sleep(SETTLE_S)
    before = used(server.pid())
    flags = ["--duration", f"{int(seconds * 1000)}ms", *case.load]
    told = load(penstock, server, folder, flags, seconds)
    after = used(server.pid())
    summary = told["summary"]
    cpu_s = after["server_cpu_s"] - before["server_cpu_s"]
    row = {
        "producers": case.producers, "partitions": case.partitions,
        "message_bytes": case.message_bytes,
        "verdict": told["verdict"]["kind"],
        "offered_per_s": summary["offered_per_s"],
        "acks_per_s": summary["acknowledged_per_s"],
        "unanswered": summary["unanswered"], "failed_sends": summary["failed"],
        **latency(summary, "response"),
        # Of the whole run, its warm-up and the making of its topics with it.
        "server_cpu_s": cpu_s,
        "server_rss_bytes": after["server_rss_bytes"],
        "server_written_bytes": after["server_written_bytes"] - before["server_written_bytes"],
        "client_cpu_percent": 100 * summary["generator_busy_max_share"],
    }
    if "--consumers" in case.load:
        row["read_mb_per_s"] = summary["received_meanwhile_bytes_per_s"] / 1e6
    if "p99_us" not in row:
        row["failed"] = f"nothing was acknowledged ({row['verdict']})"
    return row
