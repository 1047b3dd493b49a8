"""Runs the cases against the systems, interleaved, and writes the report: see scripts/compare.sh.

A round visits every system once: started in a fresh folder, asked every case that is put to it,
ended, its folder removed. Before its first figure it is loaded for some seconds that do not count.
So only one system runs at a time, and no system's figures are all
taken in one good or bad quarter of an hour.
"""

import argparse
import atexit
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import machine
import rated
import report
from cases import CASES, WARM
from kafka import Kafka
from nats import Nats
from penstock import Penstock
from rabbitmq import RabbitMq
from redis import Redis
from server import Unavailable, abandon, run

HOME = Path(__file__).resolve().parents[2]
# What a figure may take beyond its time: connecting, making topics, the last answers.
LOADER_S_MAX = 60
# Load before the first figure of a visit: virtual machines compile, caches fill, files grow.
WARM_S = 4
# A load at a rate takes so many times as long as a closed one: its latency has rarer samples.
RATED_TIMES = 2


def loud(words):
    print(f"compare: {words}", file=sys.stderr, flush=True)


def options():
    parser = argparse.ArgumentParser(prog="scripts/compare.sh", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one round of short figures")
    parser.add_argument("--rounds", type=int, help="default 5; 1 with --quick")
    parser.add_argument("--seconds", type=float, help="of each figure; default 2; 1 with --quick")
    parser.add_argument("--systems", help="only these, with commas: penstock-1,kafka,…")
    parser.add_argument("--cases", help="only these, with commas: small-8,large,…")
    parser.add_argument("--penstock", type=Path, default=HOME / "target/release/penstock",
                        help="another build of ours to judge")
    parser.add_argument("--loader", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, default=HOME / "target" / "compare",
                        help="folder for what is installed and run; on the disk to measure")
    parser.add_argument("--out", type=Path, help="prefix of the report's files")
    chosen = parser.parse_args()
    chosen.penstock, chosen.work = chosen.penstock.resolve(), chosen.work.resolve()
    chosen.rounds = chosen.rounds or (1 if chosen.quick else 5)
    chosen.seconds = chosen.seconds or (1 if chosen.quick else 2)
    chosen.out = chosen.out or chosen.work / "report"
    return chosen


def picked(all_of, wanted, what):
    if wanted is None:
        return all_of
    names = wanted.split(",")
    unknown = set(names) - {one.name for one in all_of}
    if unknown:
        sys.exit(f"compare: no {what} {', '.join(sorted(unknown))}; "
                 f"there are {', '.join(one.name for one in all_of)}")
    return [one for one in all_of if one.name in names]


def install(systems, shelf):
    """Installs each; what cannot be had is named and left out."""
    skipped = {}
    for system in systems:
        try:
            system.install(shelf)
        except Unavailable as why:
            skipped[system.name] = str(why)
            loud(f"SKIPPED {system.label}: {why}")
    return skipped


def figure(chosen, server, system, case, seconds):
    """One figure, or why there is none."""
    try:
        if case.load:
            return rated.figure(chosen.penstock, server, case, server.log.parent, seconds)
        flags = ["--protocol", system.protocol, "--address", server.address,
                 "--pid", server.pid(), "--span-ms", int(seconds * 1000), *case.flags()]
        quiet = {**os.environ, "RUST_BACKTRACE": "0"}
        told = run([chosen.loader, *flags], seconds + LOADER_S_MAX, cwd=HOME, env=quiet)
        return json.loads(told)
    except (Unavailable, OSError, KeyError) as why:
        loud(f"FAILED {system.name} {case.name}: {why}")
        return {"failed": str(why)}


def visit(chosen, system, cases, number, figures):
    folder = Path(tempfile.mkdtemp(prefix=f"{system.name}-", dir=chosen.work))
    server = None
    try:
        server = system.start(folder)
        system.command = server.command
        figure(chosen, server, system, WARM, 1 if chosen.quick else WARM_S)
        for case in cases:
            if system.name in case.systems and number < (case.rounds_max or chosen.rounds):
                span = chosen.seconds * (RATED_TIMES if case.load else 1)
                row = figure(chosen, server, system, case, span)
                figures[case.name][system.name].append({**row, "round": number})
    except Unavailable as why:
        loud(f"FAILED {system.label}: {why}")
        for case in cases:
            if system.name in case.systems:
                failed = {"failed": str(why), "round": number}
                figures[case.name][system.name].append(failed)
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def told(system, folder, skipped):
    """A system as the report names it, without this machine's paths."""
    command = " ".join(shlex.quote(word) for word in getattr(system, "command", []))
    for path, name in ((str(folder), "WORK"), (str(HOME), ".")):
        command = command.replace(path, name)
    return {"name": system.name, "label": system.label, "version": system.version,
            "protocol": system.protocol, "durability": system.durability,
            "durable": system.durable, "command": command,
            "settings": getattr(system, "settings", {}), "skipped": skipped.get(system.name)}


def draw(penstock, story, out):
    """The page with its pictures, which our own binary draws."""
    Path(f"{out}.page.json").write_text(json.dumps(report.page(story), indent=1) + "\n")
    try:
        run([penstock, "load", "compare", f"{out}.page.json", "--html", f"{out}.html"], 60)
    except Unavailable as why:
        loud(f"no page was drawn: {why}")


def main():
    chosen = options()
    atexit.register(abandon)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.time()
    ours = [Penstock(chosen.penstock, True), Penstock(chosen.penstock, False)]
    peers = [Kafka(False), Kafka(True), Nats(), RabbitMq(), Redis()]
    systems = picked(ours + peers, chosen.systems, "system")
    cases = picked(CASES, chosen.cases, "case")
    if chosen.quick and chosen.cases is None:
        cases = [case for case in cases if case.quick]
    shelf = chosen.work / "installed"
    shelf.mkdir(parents=True, exist_ok=True)
    about = {"command": shlex.join(["scripts/compare.sh", *given()]),
             "began_unix_s": int(began), "rounds": chosen.rounds, "span_s": chosen.seconds,
             **machine.facts(HOME, chosen.work)}
    skipped = install(systems, shelf)
    present = [system for system in systems if system.name not in skipped]
    figures = {case.name: {system.name: [] for system in present
                           if system.name in case.systems} for case in cases}
    limits = []
    for number in range(chosen.rounds):
        limits.append(machine.limit(chosen.penstock, chosen.work, 1))
        for system in present:
            loud(f"round {number + 1} of {chosen.rounds}: {system.label}")
            visit(chosen, system, cases, number, figures)
    failures = sum("failed" in row for case in figures.values()
                   for rows in case.values() for row in rows)
    story = {"penstock_compare": 1, "about": {**about, "took_s": round(time.time() - began)},
             "limit": report.limit_of(limits),
             "systems": [told(system, chosen.work, skipped) for system in systems],
             "cases": [report.case_of(case, figures[case.name]) for case in cases],
             "skipped": sorted(skipped), "failures": failures}
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    table = report.text(story)
    Path(f"{chosen.out}.json").write_text(json.dumps(story, indent=1) + "\n")
    Path(f"{chosen.out}.txt").write_text(table)
    print(table)
    draw(chosen.penstock, story, chosen.out)
    loud(f"{chosen.out}.json and .txt, after {time.time() - began:.0f} s; "
         f"{len(skipped)} systems skipped, {failures} figures failed")
    sys.exit(3 if skipped or failures else 0)


def given():
    """The arguments as the user gave them."""
    words = sys.argv[1:]
    at = words.index("--loader")
    return words[:at] + words[at + 2:]


if __name__ == "__main__":
    main()
