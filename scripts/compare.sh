#!/usr/bin/env bash
# The same load, interleaved round by round, against Penstock and its peers: Apache Kafka (default,
# and flushing each message), NATS JetStream, RabbitMQ quorum queues and Redis Streams. Each peer is
# installed by its package manager if need be (Maven, Go, Debian), runs alone, on loopback, on the
# same disk, in a folder that is removed.
#
#   scripts/compare.sh                         all of it, 5 rounds: about 30 minutes
#   scripts/compare.sh --quick                 one short round: about 5 minutes
#   scripts/compare.sh --systems penstock-1,redis --cases small-8,small-64
#   scripts/compare.sh --out benches/results/compare-2026-12-01
#
# Writes PREFIX.json (every round, medians, ratios with their spread), PREFIX.txt, and PREFIX.html,
# which `penstock load compare` draws from PREFIX.page.json. Exit code 3: a system was skipped or a
# figure failed, and the report says which. What is measured and how: scripts/compare/cases.py and
# benches/closed_loop/mod.rs.
set -euo pipefail
cd "$(dirname "$0")/.."
ulimit -n 65536 2> /dev/null || true

cargo build --locked --release -q
loader="$(cargo bench --locked --bench peers --no-run --message-format=json 2> /dev/null |
    python3 -c '
import json, sys
for line in sys.stdin:
    made = json.loads(line)
    if made.get("target", {}).get("name") == "peers" and made.get("executable"):
        print(made["executable"])
')"
[ -n "$loader" ] || { echo "compare.sh: benches/peers does not build" >&2; exit 1; }
exec python3 -B scripts/compare/compare.py "$@" --loader "$loader"
