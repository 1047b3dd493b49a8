"""What the figures were taken on, and what the machine itself can do."""

import json
import os
import platform
import subprocess
from pathlib import Path

from server import run


def first(path, default="unknown"):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return default


def cpu_model():
    for line in first("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def mount_of(folder):
    """File system and mount options below a folder."""
    asked = subprocess.run(
        ["findmnt", "-n", "-o", "FSTYPE,OPTIONS", "-T", str(folder)],
        stdout=subprocess.PIPE, text=True, check=False)
    kind, _, options = asked.stdout.strip().partition(" ")
    return {"file_system": kind or "unknown", "mount_options": options.strip()}


def commit(home):
    try:
        named = run(["git", "rev-parse", "--short", "HEAD"], 10, cwd=home).strip()
        changed = run(["git", "status", "--porcelain", "--untracked-files=no"], 10, cwd=home)
        return named + ("+changes" if changed.strip() else "")
    except Exception:  # Without a repository there is no commit to name.
        return "unknown"


def facts(home, folder):
    clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    return {
        "commit": commit(home),
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "clock_source": first(clock),
        "load_average_at_start": os.getloadavg()[0],
        **mount_of(folder),
    }


def limit(penstock, folder, seconds):
    """The disk's own limit, one round: `penstock probe`."""
    told = json.loads(run([penstock, "probe", "--json", "--seconds", seconds, folder], 120))
    return {row["name"]: {key: row[key] for key in
                          ("per_second", "bytes_per_second", "p50_us", "p99_us")}
            for row in told["measurements"]}
