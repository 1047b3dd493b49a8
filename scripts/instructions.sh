#!/usr/bin/env bash
# Instructions a request costs on the pure paths (benches/instructions/main.rs), counted by
# callgrind and compared with the recorded counts: a change of more than TOLERANCE percent (default
# 3) either way fails, so that a gain is recorded and a loss is explained. Counts repeat exactly on
# one toolchain, C library and kind of processor; on others this only prints them.
#
#   scripts/instructions.sh             count and compare
#   scripts/instructions.sh --record    count and write benches/results/instructions.txt
#
# Each path is run with two numbers of rounds; the difference is the cost of a round, without start
# and warm-up. The first path is counted once more, to show that counts repeat.
set -euo pipefail
cd "$(dirname "$0")/.."

FEW=20 MANY=60
TOLERANCE="${TOLERANCE:-3}"
RECORDED=benches/results/instructions.txt

scripts/install.sh instructions
program="$(cargo bench --locked --bench instructions --no-run --message-format=json 2> /dev/null |
    python3 -c '
import json, sys
for line in sys.stdin:
    made = json.loads(line)
    if made.get("target", {}).get("name") == "instructions" and made.get("executable"):
        print(made["executable"])
')"
[ -n "$program" ] || { echo "instructions.sh: benches/instructions does not build" >&2; exit 1; }
work="$(mktemp -d "$PWD/target/instructions.XXXXXX")"
trap 'rm -rf "$work"' EXIT

# Instructions of the whole program. An empty environment and no address randomisation: neither may
# be counted.
whole() { # whole PATH ROUNDS
    env -i setarch -R valgrind --tool=callgrind --callgrind-out-file="$work/out" \
        "$program" "$1" "$2" 2>&1 | sed -n 's/.*Collected *: *//p'
}

round() { # round PATH
    local few many
    few="$(whole "$1" "$FEW")"
    many="$(whole "$1" "$MANY")"
    echo $(((many - few) / (MANY - FEW)))
}

surroundings="$(rustc --version | cut -d' ' -f1-2), $(ldd --version | head -n 1 | sed 's/.* //') libc, \
$(valgrind --version), $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
paths="$("$program" | cut -d: -f1)"
counted="$work/counted"
for path in $paths; do printf '%-28s %12d\n' "$path" "$(round "$path")"; done > "$counted"
cat "$counted"
first="$(echo "$paths" | head -n 1)"
again="$(round "$first")"
grep -qE "^$first +$again\$" "$counted" ||
    { echo "instructions.sh: $first does not repeat: now $again" >&2; exit 1; }
echo "$first again: $again, the same"

if [ "${1:-}" = --record ]; then
    {
        echo "# Instructions a round: scripts/instructions.sh --record"
        echo "# $surroundings"
        cat "$counted"
    } > "$RECORDED"
    echo "recorded: $surroundings"
    exit 0
fi
if ! grep -qxF "# $surroundings" "$RECORDED"; then
    echo "instructions.sh: not compared; recorded on $(sed -n '2s/^# //p' "$RECORDED"), this is" \
        "$surroundings"
    exit 0
fi
awk -v tolerance="$TOLERANCE" '
    /^#/ { next }
    FNR == NR { recorded[$1] = $2; next }
    {
        if (!($1 in recorded)) { print $1 ": not recorded"; bad = 1; next }
        change = ($2 / recorded[$1] - 1) * 100
        if (change > tolerance || change < -tolerance) {
            printf "%s: %+.1f %% against the recorded %d\n", $1, change, recorded[$1]
            bad = 1
        }
    }
    END { exit bad }
' "$RECORDED" "$counted" ||
    { echo "instructions.sh: more than $TOLERANCE % apart; explain it, then --record" >&2; exit 1; }
echo "instructions.sh: all within $TOLERANCE % of what was recorded"
