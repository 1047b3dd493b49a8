#!/usr/bin/env bash
# Runs tuning/penstock.service, as it is, under a real systemd in namespaces of its own: readiness,
# sandbox, watchdog, restarts, stop. Needs root, systemd, unshare and overlayfs; the host's own
# settings, users and folders are not touched. usage: scripts/systemd-trial.sh [BINARY]
# shellcheck disable=SC2317 # What a trap or `expect` calls is reached.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = inside ]; then # Process 1 of the namespaces.
    folder="$2"
    mount -t proc proc /proc
    mount --bind /proc/sys /proc/sys
    mount -o remount,ro,bind /proc/sys
    mount -t tmpfs tmpfs /run
    umount -R /sys/fs/cgroup
    mount --bind /sys /sys
    mount -o remount,ro,bind /sys
    mount -t cgroup2 none /sys/fs/cgroup
    mkdir -p /run/upper /run/work /run/units/penstock.service.d
    mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work /etc
    echo 'penstock:x:990:990::/var/lib/penstock:/usr/sbin/nologin' >> /etc/passwd
    echo 'penstock:x:990:' >> /etc/group
    mkdir -p /etc/penstock
    cat > /etc/penstock/penstock.toml << 'CONFIG'
data = "/var/lib/penstock/data"
kafka = "127.0.0.1:0"
http = "127.0.0.1:0"
ready_file = "/var/lib/penstock/ready.json"
CONFIG
    cp "$folder/penstock" /run/penstock
    mount --bind "$folder/lib" /var/lib
    mount -t tmpfs tmpfs /usr/local/bin
    cp /run/penstock /usr/local/bin/penstock
    cp tuning/penstock.service /run/units/
    # The same watchdog, so that the trial takes seconds.
    printf '[Service]\nWatchdogSec=3s\n' > /run/units/penstock.service.d/quick.conf
    for target in sysinit basic shutdown network-online multi-user local-fs umount; do
        printf '[Unit]\nDefaultDependencies=no\n' > "/run/units/$target.target"
    done
    printf '[Unit]\nDefaultDependencies=no\nWants=penstock.service\n' > /run/units/default.target
    export container=trial SYSTEMD_UNIT_PATH=/run/units
    exec /lib/systemd/systemd --system --log-target=null --show-status=0
fi

if [ "${1:-}" = enter ]; then # Into a control group that the new systemd may call its own.
    echo $$ > "$2/cgroup.procs"
    exec unshare --mount --propagation private --pid --fork --uts --ipc --cgroup \
        "$0" inside "$3"
fi

binary="${1:-target/release/penstock}"
[ "$(id -u)" -eq 0 ] || { echo "systemd-trial: run it as root" >&2; exit 2; }
groups=/sys/fs/cgroup
[ -d "$groups/unified" ] && groups="$groups/unified"
group="$groups/penstock-trial-$$"
# On the disk of the build: a temporary folder may have no direct I/O.
folder="$PWD/target/systemd-trial-$$"
mkdir -p "$folder/lib" "$group"
cp "$binary" "$folder/penstock"

clean() {
    [ -z "${init:-}" ] || kill -KILL "$init" 2> /dev/null || true
    sleep 0.5
    find "$group" -depth -type d -exec rmdir {} \; 2> /dev/null || true
    rm -rf "$folder"
}
trap clean EXIT
"$0" enter "$group" "$folder" > "$folder/log" 2>&1 < /dev/null &
for _ in $(seq 100); do
    init="$(pgrep -f -P "$(pgrep -d, -P $! || echo 0),$!" '^/lib/systemd/systemd' || true)"
    [ -n "$init" ] && break
    sleep 0.1
done
[ -n "$init" ] || { cat "$folder/log"; echo "systemd did not start here" >&2; exit 3; }

inside() { timeout 60 nsenter -t "$init" -a "$@"; }
state() { inside systemctl show penstock --value -p "$1" 2> /dev/null || true; }
failed=0
expect() { # expect WHAT VALUE COMMAND…: waits until the command prints the value
    local what="$1" value="$2" got=''
    shift 2
    for _ in $(seq 150); do
        got="$("$@" || true)"
        [ "$got" = "$value" ] && { echo "ok      $what: $value"; return; }
        sleep 0.2
    done
    echo "FAILED  $what: $got, not $value"
    failed=1
}
status_word() { state StatusText | cut -d ' ' -f 1; }
records() { "$binary" consume trial --until end --broker "$(address)" | wc -l; }
stopped() { echo "$(state ActiveState) $(state Result)"; }
failure() { echo "$(state ActiveState) $(state ExecMainStatus) $(state NRestarts)"; }
address() { grep -o '127.0.0.1:[0-9]*' "$folder/lib/penstock/ready.json" | head -n 1; }
of_main() { awk -v row="$1:" '$1 == row { print $2 }' "/proc/$(main)/status"; }
main() { pgrep -f -P "$init" 'penstock serve' || true; }

expect "started and ready" active state ActiveState
expect "status line" serving status_word
expect "no capabilities" 0000000000000000 of_main CapEff
expect "seccomp filter" 2 of_main Seccomp
expect "no new privileges" 1 of_main NoNewPrivs
seq 1000 | "$binary" produce trial --broker "$(address)" 2> /dev/null
kill -STOP "$(main)"
expect "restarts after it stood still" 1 state NRestarts
inside systemctl kill -s KILL penstock
expect "restarts after kill -9" 2 state NRestarts
expect "ready again" running state SubState
expect "records kept" 1000 records
inside systemctl stop penstock
expect "stopped" "inactive success" stopped
inside sh -c 'echo "nonsense = 1" >> /etc/penstock/penstock.toml'
inside systemctl start penstock 2> /dev/null || true
expect "a wrong configuration is not tried again" "failed 2 0" failure
exit "$failed"
