"""From raw rounds to medians, ratios and their spread; one JSON and one text table.

```text
{ "penstock_compare": 1,
  "about":   {command, commit, kernel, cpu, cpus, …, began_unix_s, rounds, span_s},
  "limit":   {"rounds": [{measurement: {per_second, p50_us, …}}], "median": {…}},
  "systems": [{name, label, version, protocol, durability, durable, command, settings, skipped}],
  "cases":   [{name, title, metric, producers, partitions, message_bytes, batch_messages,
               "results": [{system, "rounds": [{acks_per_s, p50_us, …, round} or {failed, round}],
                            "median": {acks_per_s, p50_us, …}, "spread": {acks_per_s: [min, max]}}],
               "ratios":  [{ours, peer, metric, median, min, max, least, most, met}]}],
  "skipped": [names], "failures": count }
```

[`page`] tells the same as `penstock load compare` reads it, which draws it.

A ratio is taken round by round, between the two systems' visits of one round, and its median, its
smallest and its largest are told: a disk that drifts drifts for both.
"""

from statistics import median

# Head and form of each figure that is told in the table.
TOLD = {
    "acks_per_s": ("acks/s", "{:,.0f}"),
    "mb_per_s": ("MB/s", "{:,.0f}"),
    "p50_us": ("p50 us", "{:,.0f}"),
    "p99_us": ("p99 us", "{:,.0f}"),
    "p999_us": ("p99.9 us", "{:,.0f}"),
    "server_cpu_us_per_message": ("CPU us/message", "{:,.1f}"),
    "server_cpu_s_per_gb": ("CPU s/GB", "{:,.2f}"),
    "server_rss_bytes": ("RSS MiB", "{:,.0f}"),
    "unanswered": ("unanswered", "{:,.0f}"),
    "read_mb_per_s": ("read MB/s", "{:,.0f}"),
    "client_cpu_percent": ("client CPU %", "{:,.0f}"),
}
# Left out where they say nothing: by the case's own metric.
HIDDEN = {"acks_per_s": {"mb_per_s", "server_cpu_s_per_gb", "unanswered", "read_mb_per_s"},
          "mb_per_s": {"server_cpu_us_per_message", "unanswered", "read_mb_per_s"},
          "p99_us": {"mb_per_s", "server_cpu_us_per_message", "server_cpu_s_per_gb"}}


def numbers(rounds):
    """Keys of every number that all good rounds have."""
    good = [row for row in rounds if "failed" not in row]
    if not good:
        return [], []
    keys = [key for key, value in good[0].items()
            if isinstance(value, (int, float)) and key != "round"]
    return good, [key for key in keys if all(key in row for row in good)]


def result(system, rounds):
    good, keys = numbers(rounds)
    return {
        "system": system, "rounds": rounds,
        "median": {key: median(row[key] for row in good) for key in keys},
        "spread": {key: [min(row[key] for row in good), max(row[key] for row in good)]
                   for key in keys},
    }


def paired(ours, peer, metric):
    """Our figure over the peer's, in every round that has both."""
    theirs = {row["round"]: row for row in peer if metric in row}
    return [row[metric] / theirs[row["round"]][metric] for row in ours
            if metric in row and row["round"] in theirs and theirs[row["round"]][metric] > 0]


def ratios(case, by_system):
    """Each goal, and where there is none, ours against every peer in the case's own metric."""
    rows = []
    asked = {(goal.ours, goal.peer, goal.metric): goal for goal in case.goals}
    for ours in ("penstock-1", "penstock"):
        for peer in case.systems:
            if not peer.startswith("penstock"):
                asked.setdefault((ours, peer, case.metric), None)
    for (ours, peer, metric), goal in asked.items():
        values = paired(by_system.get(ours, []), by_system.get(peer, []), metric)
        if not values:
            continue
        middle = median(values)
        least, most = (goal.least, goal.most) if goal else (None, None)
        met = None
        if goal:
            met = (least is None or middle >= least) and (most is None or middle <= most)
        rows.append({"ours": ours, "peer": peer, "metric": metric, "median": middle,
                     "min": min(values), "max": max(values), "least": least, "most": most,
                     "met": met})
    return rows


def case_of(case, by_system):
    return {
        "name": case.name, "title": case.title, "metric": case.metric,
        "producers": case.producers, "partitions": case.partitions,
        "message_bytes": case.message_bytes, "batch_messages": case.batch_messages,
        "results": [result(name, rounds) for name, rounds in by_system.items()],
        "ratios": ratios(case, by_system),
    }


def limit_of(rounds):
    names = rounds[0].keys() if rounds else ()
    middle = {name: {key: median(row[name][key] for row in rounds) for key in rounds[0][name]}
              for name in names}
    return {"rounds": rounds, "median": middle}


def columns(rows):
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) if at == 0 else cell.rjust(width)
                 for at, (cell, width) in enumerate(zip(row, widths))]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def shown(key, value):
    if value is None:
        return "-"
    scale = 1 / (1 << 20) if key == "server_rss_bytes" else 1
    return TOLD[key][1].format(value * scale)


def table_of(case, systems):
    """One case as text."""
    labels = {system["name"]: system["label"] for system in systems}
    keys = [key for key in TOLD if key not in HIDDEN[case["metric"]]]
    rows = [["", *[TOLD[key][0] for key in keys], "spread"]]
    for entry in case["results"]:
        middle, metric = entry["median"], case["metric"]
        if not middle:
            why = next((row["failed"] for row in entry["rounds"]), "not run")
            rows.append([labels[entry["system"]], "FAILED", *[""] * (len(keys) - 1), why[:60]])
            continue
        low, high = entry["spread"][metric]
        spread = f"{shown(metric, low)}..{shown(metric, high)}"
        rows.append([labels[entry["system"]],
                     *[shown(key, middle.get(key)) for key in keys], spread])
    lines = [case["title"], columns(rows)]
    for row in case["ratios"]:
        goal = ""
        if row["met"] is not None:
            bound = f">= {row['least']:g}" if row["least"] else f"<= {row['most']:.2f}"
            goal = f"  goal {bound}  {'met' if row['met'] else 'MISSED'}"
        lines.append(f"  {row['ours']} / {row['peer']}, {TOLD[row['metric']][0]}: "
                     f"{row['median']:.2f} x ({row['min']:.2f}..{row['max']:.2f}){goal}")
    return "\n".join(lines)


def text(story):
    about = story["about"]
    head = [
        f"commit {about['commit']}, kernel {about['kernel']}, {about['cpu']}, {about['cpus']} CPUs,"
        f" {about['file_system']} ({about['mount_options']})",
        f"command: {about['command']}",
        f"{about['rounds']} rounds, every system visited once a round, {about['span_s']:g} s a "
        "figure; medians; a spread is the smallest and the largest round",
    ]
    for system in story["systems"]:
        why = f"  SKIPPED: {system['skipped']}" if system["skipped"] else ""
        head.append(f"  {system['label']}: {system['version']}, {system['durability']}{why}")
    flush = story["limit"]["median"].get("write_4k_fdatasync")
    if flush:
        head.append(f"the machine's own 4 KiB write + flush: {flush['per_second']:,.0f}/s, "
                    f"p50 {flush['p50_us']:.0f} us, p99 {flush['p99_us']:.0f} us")
    tables = [table_of(case, story["systems"]) for case in story["cases"]]
    return "\n".join(head) + "\n\n" + "\n\n".join(tables) + "\n"


def page(story):
    """The story as `penstock load compare` reads it: every round, one case for all producers."""
    labels = {system["name"]: system["label"] for system in story["systems"]}
    flush = story["limit"]["median"].get("write_4k_fdatasync", {})
    outcomes = []
    for case in story["cases"]:
        shape = (f"{case['message_bytes']} B messages, {case['batch_messages']} a request, "
                 f"{case['partitions']} partition{'s' if case['partitions'] > 1 else ''}")
        # Cases at a rate differ in more than their producers.
        shape = shape if case["metric"] != "p99_us" else case["title"]
        for entry in case["results"]:
            for row in entry["rounds"]:
                outcomes.append({
                    "system": labels[entry["system"]], "case": shape,
                    "producers": case["producers"], "round": row["round"],
                    "acks_per_s": row.get("acks_per_s"), "p50_us": row.get("p50_us"),
                    "p99_us": row.get("p99_us"),
                    "verdict": "failed" if "failed" in row else row.get("verdict", "valid")})
    ran = {outcome["system"] for outcome in outcomes}
    ours = [name for name in ("penstock-1", "penstock") if labels.get(name) in ran]
    systems = [{"name": system["label"], "version": system["version"],
                "durability": system["durability"], "command": system["command"]}
               for system in story["systems"] if system["label"] in ran]
    return {
        "schema_version": 1,
        "title": "Acknowledgements a second from producers that wait for each",
        "about": story["about"],
        "limit": {"flushes_per_s": flush.get("per_second"), "p50_us": flush.get("p50_us"),
                  "p99_us": flush.get("p99_us")},
        "baseline": labels[ours[0]] if ours else next(iter(ran), ""),
        "systems": systems, "results": outcomes,
    }
