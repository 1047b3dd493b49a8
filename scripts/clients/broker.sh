# Starts and ends a release broker for the client suites; sourced, not run. Every broker has free
# ports and a data directory of its own, and ends with the script that started it.
#
#   broker_folder               a new folder beside the build: a temporary file system may lack O_DIRECT
#   broker_start DATA [FLAG…]   sets BROKER (an address) and BROKER_PID once everything is served
#   broker_forwarded            parts of requests that reached a core which did not own them
#   broker_kill                 kill -9, as a crash would
#   broker_stop                 SIGTERM; fails unless it ends with 0 within the promised 5 s

PENSTOCK="${PENSTOCK:-target/release/penstock}"
BROKER_PID=""

broker_folder() {
    mkdir -p target/clients
    mktemp -d "$PWD/target/clients/run.XXXXXX"
}

broker_start() {
    local data="$1" ready="$1.ready" log="$1.log" tries
    shift
    rm -f "$ready"
    (
        # Settings of a test run are no keys of the broker, which refuses what it does not know.
        for setting in "${!PENSTOCK_@}"; do unset "$setting"; done
        exec "$PENSTOCK" serve --data "$data" --kafka 127.0.0.1:0 --http 127.0.0.1:0 \
            --ready-file "$ready" "$@"
    ) >> "$log" 2>&1 < /dev/null &
    BROKER_PID=$!
    for ((tries = 0; tries < 300; tries++)); do
        [ -s "$ready" ] && break
        if ! kill -0 "$BROKER_PID" 2> /dev/null; then
            echo "the broker ended before it was ready:" >&2
            tail -n 20 "$log" >&2
            return 1
        fi
        sleep 0.1
    done
    if [ ! -s "$ready" ]; then
        echo "the broker was not ready within 30 s:" >&2
        tail -n 20 "$log" >&2
        return 1
    fi
    BROKER="$(broker_ready "$ready" '["kafka"][0]')"
    BROKER_HTTP="$(broker_ready "$ready" '["http"]')"
}

broker_ready() { python3 -c "import json, sys; print(json.load(open(sys.argv[1]))$2)" "$1"; }

broker_forwarded() {
    curl -sf "http://$BROKER_HTTP/dump" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["total"]["forward"]["sent"])'
}

broker_kill() {
    kill -9 "$BROKER_PID"
    wait "$BROKER_PID" 2> /dev/null || true
    BROKER_PID=""
}

broker_stop() {
    local pid="$BROKER_PID" code=0 began=$SECONDS
    BROKER_PID=""
    kill -TERM "$pid"
    # A broker that hangs is ended, and that is a failure.
    (sleep 15 && kill -9 "$pid" 2> /dev/null) &
    local watchdog=$!
    wait "$pid" || code=$?
    kill "$watchdog" 2> /dev/null || true
    if [ "$code" -ne 0 ] || [ $((SECONDS - began)) -gt 6 ]; then
        echo "the broker ended with $code after $((SECONDS - began)) s" >&2
        return 1
    fi
}

broker_abandon() { [ -z "$BROKER_PID" ] || kill -9 "$BROKER_PID" 2> /dev/null || true; }
