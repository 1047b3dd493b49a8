#!/usr/bin/env bash
# The short way into `penstock load`: starts a release broker of its own in a scratch folder, unless
# BROKER says where one is, loads it, and leaves every result file in one folder.
#
#   scripts/load.sh [FOLDER] [FLAG of `penstock load`…]     [default folder: target/load/TIME]
#   BROKER=host:9092 scripts/load.sh results --rate 20k     against a broker that runs
#   SERVE='--cores 1' scripts/load.sh                       with these flags of `serve`
#
# The exit code is that of `penstock load`.
set -euo pipefail
cd "$(dirname "$0")/.."

FOLDER="target/load/$(date +%Y%m%d-%H%M%S)"
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
    FOLDER="$1"
    shift
fi
mkdir -p "$FOLDER"

PENSTOCK="${PENSTOCK:-target/release/penstock}"
[ -x "$PENSTOCK" ] || cargo build --release
export PENSTOCK
source scripts/clients/broker.sh

SCRATCH=""
finish() {
    local code=$?
    if [ -n "$SCRATCH" ]; then
        broker_stop || true
        rm -rf "$SCRATCH"
    fi
    exit "$code"
}
trap finish EXIT

HTTP=()
if [ -z "${BROKER:-}" ]; then
    SCRATCH="$(broker_folder)"
    # shellcheck disable=SC2086  # several flags in one variable
    broker_start "$SCRATCH/data" ${SERVE:-}
    HTTP=(--broker-http "$BROKER_HTTP" --probe "$SCRATCH" --durability "flushed before the answer")
fi

FILES=(--html "$FOLDER/report.html" --json "$FOLDER/report.json" --csv "$FOLDER/intervals.csv"
    --hgrm "$FOLDER/response.hgrm" --hlog "$FOLDER/run.hlog")
"$PENSTOCK" load --broker "$BROKER" "${HTTP[@]}" --partitions 4 --producers 4 --duration 10s \
    "${FILES[@]}" "$@" | tee "$FOLDER/summary.txt"
echo "results in $FOLDER" >&2
