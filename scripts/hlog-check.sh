#!/usr/bin/env bash
# The log of a run, as a stock HdrHistogram library reads it: writes a sample log and its JSON, reads
# the log with the Python library (installed into target/), and holds every percentile against the
# JSON.
#
#   scripts/hlog-check.sh                      a sample
#   scripts/hlog-check.sh RUN.hlog RUN.json    a run of your own
set -euo pipefail
cd "$(dirname "$0")/.."
venv="$PWD/target/hlog-check"
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check hdrhistogram==0.10.3
fi
if [ $# -eq 0 ]; then
    mkdir -p target/pages
    PENSTOCK_PAGES="$PWD/target/pages" cargo test -q --test load_report pages_to_look_at
    set -- target/pages/stalled.hlog target/pages/stalled.json
fi
"$venv/bin/python" tests/load_report/stock_library.py "$1" "$2"
