#!/bin/sh
# Durable messages a second against bare pwrite + fdatasync, on the file system of COMMIT_RATE_DIR
# (default: the build folder). See benches/commit_rate/main.rs for what is measured and the goals.
set -eu
cd "$(dirname "$0")/.."
echo "commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown), kernel $(uname -r), $(nproc) CPUs"
exec cargo bench --bench commit_rate
