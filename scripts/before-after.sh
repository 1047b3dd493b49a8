#!/usr/bin/env bash
# Two brokers under the same large-batch load in turn, A B A B: what a change made of throughput.
# The generator is the newer one both times.
#
#   scripts/before-after.sh OLD-PENSTOCK NEW-PENSTOCK [ROUNDS] [FLAG of `penstock load`…]
set -euo pipefail
cd "$(dirname "$0")/.."
OLD="$1" NEW="$2" ROUNDS="${3:-3}"
shift $(($# < 3 ? $# : 3))
source scripts/clients/broker.sh

once() { # once NAME BINARY
    local folder
    folder="$(broker_folder)"
    PENSTOCK="$2" broker_start "$folder/data" --cores 1 --shards 1
    "$NEW" load --broker "$BROKER" --workers 1, --rate max --producers 32 --partitions 1 \
        --in-flight 1 --batch-bytes 240KiB --duration 2s --quiet --json "$folder/figures.json" \
        "${FLAGS[@]}" > "$folder/figures.txt" || true
    printf '%s %s\n' "$1" "$(grep '^acknowledged' "$folder/figures.txt")"
    broker_stop
    rm -rf "$folder"
}

FLAGS=("$@")
"$OLD" --version
"$NEW" --version
for ((round = 1; round <= ROUNDS; round++)); do
    once before "$OLD"
    once after "$NEW"
done
