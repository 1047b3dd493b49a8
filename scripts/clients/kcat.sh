#!/usr/bin/env bash
# kcat and a kill: the machine's own package database goes in line by line in each codec, the broker
# is killed with -9, started again, and gives the same lines back in the same order. Runs a broker
# of its own. kcat sends no empty lines, so the text has none.
set -euo pipefail
cd "$(dirname "$0")/../.."
source scripts/clients/broker.sh

work="$(broker_folder)"
trap 'broker_abandon; rm -rf "$work"' EXIT
LINES_MAX=60000

# Tens of thousands of real lines; a machine without dpkg lends its own file names instead.
if [ -s /var/lib/dpkg/status ]; then
    cat /var/lib/dpkg/status /var/lib/dpkg/info/*.list /var/lib/dpkg/info/*.md5sums
else
    find /usr -type f
fi 2> /dev/null | grep -av '^$' | head -n "$LINES_MAX" > "$work/text" || true
lines="$(wc -l < "$work/text")"
[ "$lines" -ge 10000 ] || { echo "only $lines lines of text on this machine" >&2; exit 1; }

read_back() { # read_back TOPIC: what partition 0 holds, in order, compared with the text
    kcat -C -b "$BROKER" -t "$1" -p 0 -o beginning -e -q -X check.crcs=true > "$work/back"
    if ! cmp "$work/text" "$work/back"; then
        echo "kcat: $1 holds $(wc -l < "$work/back") lines, not the $lines that were sent" >&2
        return 1
    fi
}

broker_start "$work/data"
for codec in none gzip snappy lz4 zstd; do
    topic="text-$codec"
    began=$SECONDS
    kcat -P -b "$BROKER" -t "$topic" -p 0 -z "$codec" -l "$work/text"
    broker_kill
    broker_start "$work/data"
    read_back "$topic"
    echo "kcat $codec: $lines lines, killed, restarted, read back in $((SECONDS - began)) s: ok"
done

# All of them once more after one more kill, by metadata and by offset too.
broker_kill
broker_start "$work/data"
for codec in none gzip snappy lz4 zstd; do
    read_back "text-$codec"
    middle="$(kcat -C -b "$BROKER" -t "text-$codec" -p 0 -o $((lines / 2)) -c 1 -q)"
    [ "$middle" = "$(sed -n "$((lines / 2 + 1))p" "$work/text")" ]
    end="$(kcat -Q -b "$BROKER" -t "text-$codec:0:-1")"
    [ "$end" = "text-$codec [0] offset $lines" ]
done
kcat -L -b "$BROKER" | grep -q 'topic "text-zstd"'
broker_stop
echo "kcat: 5 codecs, 6 kills, $lines lines each: ok"
