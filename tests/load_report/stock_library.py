"""Reads a log of `penstock load --hlog` with the stock HdrHistogram library and holds it against the
JSON of the same run: counts and percentiles of the measured phase must agree.

Usage: stock_library.py RUN.hlog RUN.json
"""

import json
import sys

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

TAGS = ["response", "service", "unanswered", "end_to_end", "schedule_lag"]
POINTS = {"p50_us": 50, "p90_us": 90, "p99_us": 99, "p99_9_us": 99.9, "p99_99_us": 99.99, "max_us": 100}


def new():
    return HdrHistogram(1, 3_600_000_000, 3)


def sums(path, measured):
    """The histograms of the measured intervals by tag, and how many lines were read."""
    total = {tag: new() for tag in TAGS}
    reader = HistogramLogReader(path, new())
    lines = 0
    while (one := reader.get_next_interval_histogram()) is not None:
        lines += 1
        at_ms = round(one.get_start_time_stamp() - reader.base_time_sec * 1000)
        if at_ms in measured:
            total[one.get_tag()].add(one)
    return total, lines


def main(log, document):
    with open(document, encoding="utf-8") as file:
        run = json.load(file)
    measured = {one["at_ms"] for one in run["intervals"] if one["phase"] == "measured"}
    total, lines = sums(log, measured)
    total["response"].add(total.pop("unanswered"))
    for name, histogram in total.items():
        ours = run["summary"][name]
        count = histogram.get_total_count()
        assert count == ours["count"], f"{name}: {count} samples, {ours['count']} in the JSON"
        for key, percentile in POINTS.items():
            if count == 0:
                assert ours[key] is None
                continue
            theirs = histogram.get_value_at_percentile(percentile)
            near = abs(theirs - ours[key]) <= max(1, 0.001 * theirs)
            assert near, f"{name} {key}: {theirs} read, {ours[key]} in the JSON"
        print(f"{name}: {count} samples, every percentile agrees")
    print(f"{lines} histograms read from {log}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
