#!/usr/bin/env bash
# Stock clients against the release broker: each creates a topic of 16 partitions, sends RECORDS
# records (default 1,000,000) with keys and headers, and reads all of them back equal and in order:
# from the beginning, by offset and by timestamp. Installs what it needs.
#
#   scripts/clients.sh                      all of them
#   scripts/clients.sh confluent rskafka    some
#   RECORDS=50000 scripts/clients.sh kcat   quicker
#
# Two run at a time: a client and a broker keep two cores busy only in turns.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/clients/broker.sh

RECORDS="${RECORDS:-1000000}"
LANES="${LANES:-2}"
LONGEST_FIRST=(confluent kafka-python kafkajs aiokafka rdkafka rskafka kcat)
made="$PWD/target/clients"
clients=("${@:-${LONGEST_FIRST[@]}}")

trap 'echo "clients.sh: line $LINENO failed" >&2' ERR

# A registry may be out of breath for a moment.
patiently() {
    local tries
    for tries in 1 2 3; do
        "$@" && return 0
        echo "clients.sh: '$1' failed, try $tries of 3" >&2
        sleep 5
    done
    return 1
}

wants() { printf '%s\n' "${clients[@]}" | grep -qxE "$1"; }

install_python() {
    local wanted="tests/clients/python/requirements.txt" venv="$made/venv"
    if ! cmp -s "$wanted" "$venv/installed.txt"; then
        python3 -m venv --clear "$venv"
        patiently "$venv/bin/pip" install -q --disable-pip-version-check -r "$wanted"
        cp "$wanted" "$venv/installed.txt"
    fi
}

install_node() {
    local wanted="tests/clients/node/package-lock.json" installed="$made/node/installed.json"
    mkdir -p "$made/node"
    cp tests/clients/node/* "$made/node/"
    if ! cmp -s "$wanted" "$installed"; then
        (cd "$made/node" && patiently npm ci --no-audit --no-fund)
        cp "$wanted" "$installed"
    fi
}

# Its own workspace and lock file; its own target folder, so the broker's is not rebuilt.
build_rust() {
    CARGO_TARGET_DIR="$made" patiently cargo build --locked --release -q \
        --manifest-path tests/clients/rust/Cargo.toml
}

# Runs one client by name against $BROKER.
run_client() {
    local python="$made/venv/bin/python"
    case "$1" in
        confluent) "$python" tests/clients/python/confluent_kafka_client.py "$BROKER" "$RECORDS" ;;
        kafka-python) "$python" tests/clients/python/kafka_python_client.py "$BROKER" "$RECORDS" ;;
        aiokafka) "$python" tests/clients/python/aiokafka_client.py "$BROKER" "$RECORDS" ;;
        kafkajs) (cd "$made/node" && node kafkajs_client.js "$BROKER" "$RECORDS") ;;
        rdkafka | rskafka) "$made/release/penstock-clients" "$1" "$BROKER" "$RECORDS" ;;
        kcat) scripts/clients/kcat.sh ;;
        *) echo "clients.sh: no client '$1'; clients: ${LONGEST_FIRST[*]}" >&2; return 2 ;;
    esac
}

# One lane's work: the client's output goes to its log, its verdict to the verdict file.
run_logged() {
    local began=$SECONDS verdict=passed
    run_client "$1" > "$work/$1.log" 2>&1 < /dev/null || verdict=FAILED
    echo "$1 $verdict $((SECONDS - began))" >> "$work/verdicts"
    sed "s/^/  /" "$work/$1.log" | tail -n 40
    echo "clients: $1 $verdict after $((SECONDS - began)) s"
}

scripts/install.sh clients
if wants 'confluent|kafka-python|aiokafka'; then install_python; fi
if wants kafkajs; then install_node; fi
if wants 'rdkafka|rskafka'; then build_rust; fi
# PENSTOCK may name another build to judge.
if [ "$PENSTOCK" = target/release/penstock ]; then cargo build --locked --release -q; fi

work="$(broker_folder)"
trap 'broker_abandon; rm -rf "$work"' EXIT
touch "$work/verdicts"
broker_start "$work/data"
for client in "${clients[@]}"; do
    while [ "$(jobs -rp | grep -cvx "$BROKER_PID")" -ge "$LANES" ]; do sleep 0.2; done
    run_logged "$client" &
done
while [ "$(jobs -rp | grep -cvx "$BROKER_PID")" -gt 0 ]; do sleep 0.2; done

# Clients that follow metadata reach the owning core: nothing may have been passed on.
check_forwarded() {
    local forwarded
    forwarded="$(broker_forwarded)" || forwarded="unknown"
    echo "clients: $forwarded parts were forwarded between cores"
    [ "$forwarded" = 0 ]
}

if ! kill -0 "$BROKER_PID" 2> /dev/null; then
    echo "clients: the broker ended under the clients:" >&2
    tail -n 40 "$work/data.log" >&2
    echo "broker FAILED 0" >> "$work/verdicts"
    BROKER_PID=""
else
    check_forwarded || echo "routing FAILED 0" >> "$work/verdicts"
    broker_stop || echo "broker FAILED 0" >> "$work/verdicts"
fi
if grep -q FAILED "$work/verdicts"; then
    echo "the broker's last lines:" >&2
    tail -n 40 "$work/data.log" >&2
fi
passed="$(grep -c ' passed ' "$work/verdicts" || true)"
failed="$(grep -c ' FAILED ' "$work/verdicts" || true)"
sort -k3 -n -r "$work/verdicts" | sed 's/^/clients: /'
echo "clients: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -eq "${#clients[@]}" ]
