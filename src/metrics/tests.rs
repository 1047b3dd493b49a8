//! Recording, merging, and the two renderings.

use super::*;
use serde_json::json;

fn sample() -> Dump {
    let first = CoreMetrics::new(CoreId(0), 2);
    first.connections.open.add(3);
    first.connections.open.sub(1);
    first.requests.received.inc(0);
    first.requests.received.inc(0);
    first.requests.received.inc(18);
    first.requests.errors.inc(3);
    first.requests.errors.inc(-1);
    first.requests.inbound.add(1000);
    first.runtime.cpu.set(1_500_000_500);
    for ns in [90_000, 110_000, 20_000_000] {
        first.stages.staged.record(ns);
    }
    first.journal.block_entries.record(5);
    let second = CoreMetrics::new(CoreId(1), 3);
    second.requests.received.inc(1);
    second.stages.staged.record(400_000);
    let cores = vec![first.snapshot(), second.snapshot()];
    let process = json!({"store": "x"});
    Dump {
        version: "1.2.\"3\"".into(),
        unix_ms: 5000,
        uptime_ms: 2500,
        process,
        cores,
        topics: Topics::busiest(vec![topic("orders", 3), topic("a", 7)]),
    }
}

fn topic(name: &str, in_records: u64) -> TopicFigures {
    TopicFigures {
        name: name.to_owned(),
        id: format!("id of {name}"),
        partitions: 4,
        in_records,
        in_bytes: in_records * 100,
        log_records: 50,
        log_bytes: 5000,
        offsets: 60,
        ..TopicFigures::default()
    }
}

/// Goal: names are unique in both renderings and legal in Prometheus.
#[test]
fn names_are_unique_and_legal() {
    let mut names: Vec<String> = METRICS.iter().map(Metric::prometheus_name).collect();
    names.extend(
        METRICS
            .iter()
            .map(|m| format!("{}.{}", m.group, m.json_key())),
    );
    let count = names.len();
    for name in &names {
        assert!(
            name.chars()
                .all(|c| c.is_ascii_lowercase() || c == '_' || c == '.'),
            "{name}"
        );
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Goal: the JSON document loses nothing. Method: there and back, then compare whole dumps.
#[test]
fn json_loses_nothing() {
    let dump = sample();
    let text = dump.to_json().to_string();
    let back = Dump::from_json(&serde_json::from_str(&text).expect("JSON")).expect("a dump");
    assert_eq!(back, dump);
}

/// Goal: the document reads as intended. Method: look at one of each kind.
#[test]
fn json_carries_units_and_totals() {
    let document = sample().to_json();
    assert_eq!(document["schema"], SCHEMA);
    let total = &document["total"];
    assert_eq!(
        total["requests"]["received"],
        json!({"Produce": 2, "Fetch": 1, "ApiVersions": 1})
    );
    assert_eq!(
        total["requests"]["errors"],
        json!({"UNKNOWN_TOPIC_OR_PARTITION": 1, "UNKNOWN_SERVER_ERROR": 1})
    );
    assert_eq!(total["requests"]["inbound_bytes"], 1000);
    assert_eq!(total["runtime"]["cpu_us"], 1_500_000.5);
    assert_eq!(total["connections"]["open"], 2);
    let staged = &total["stages"]["staged"];
    assert_eq!(staged["count"], 4);
    assert_eq!(staged["sum_us"], 20_600);
    assert!(staged["p50_us"].as_f64() <= staged["max_us"].as_f64());
    assert_eq!(document["cores"][1]["stages"]["read"], json!({"count": 0}));
    assert_eq!(document["cores"][1]["cpu"], 3);
}

/// Goal: a difference is what happened between. Method: record more after a first dump.
#[test]
fn differences_are_what_happened_between() {
    let core = CoreMetrics::new(CoreId(0), 0);
    core.produce.records.add(10);
    core.journal.write.record(1_000_000);
    let at = |unix_ms, core: &CoreMetrics| Dump {
        version: String::new(),
        unix_ms,
        uptime_ms: 0,
        process: json!({}),
        cores: vec![core.snapshot()],
        topics: Topics::busiest(vec![topic("t", core.produce.records.get())]),
    };
    let earlier = at(1000, &core);
    core.produce.records.add(7);
    core.journal.write.record(2_000_000);
    core.requests.received.inc(0);
    core.connections.open.set(4);
    let since = at(3500, &core).since(&earlier);
    assert_eq!(since.uptime_ms, 2500);
    let document = since.to_json();
    let only = &document["cores"][0];
    assert_eq!(only["produce"]["records"], 7);
    assert_eq!(only["journal"]["write"]["count"], 1);
    assert_eq!(only["journal"]["write"]["sum_us"], 2000);
    assert_eq!(only["requests"]["received"], json!({"Produce": 1}));
    assert_eq!(only["connections"]["open"], 4);
    assert_eq!(document["topics"][0]["in_records"], 7);
    assert_eq!(document["topics"][0]["log_records"], 50);
    let rates = since.rates_to_json();
    assert_eq!(rates["total"]["produce"]["records_per_s"], 2.8);
    assert_eq!(rates["cores"][0]["produce"]["records_per_s"], 2.8);
    assert_eq!(rates["interval_ms"], 2500);
}

/// Goal: a journal that keeps its own metrics is counted in, once.
#[test]
fn attached_journals_are_summed() {
    let core = CoreMetrics::new(CoreId(0), 0);
    core.journal.blocks.inc();
    let other = JournalMetrics::new();
    other.blocks.add(2);
    core.attach_journal(other);
    core.attach_journal(core.journal.clone());
    let snapshot = core.snapshot();
    assert_eq!(
        snapshot.reading("journal", "blocks"),
        Some(&Reading::Counter(3))
    );
    assert_eq!(snapshot.reading("journal", "nonsense"), None);
}

/// Goal: the exposition follows the format. Method: parse it: every sample has HELP and TYPE before
/// it, buckets are cumulative and end in the count, labels are escaped.
#[test]
fn the_exposition_follows_the_format() {
    let text = sample().to_prometheus(true);
    let mut typed = std::collections::BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("name and kind");
            assert!(typed.insert(name, kind).is_none(), "{name} typed twice");
        } else if !line.starts_with("# HELP ") {
            let name = line.split(['{', ' ']).next().expect("a name");
            let mut ends = ["_bucket", "_sum", "_count"].iter();
            let base = ends.find_map(|end| {
                name.strip_suffix(end)
                    .filter(|base| typed.get(base) == Some(&"histogram"))
            });
            assert!(typed.contains_key(base.unwrap_or(name)), "{line}");
            let value = line.rsplit(' ').next().expect("a value");
            assert!(value.parse::<f64>().expect("a number").is_finite());
        }
    }
    assert!(text.contains("penstock_build_info{version=\"1.2.\\\"3\\\"\"} 1\n"));
    assert!(text.contains("penstock_requests_received_total{core=\"0\",api=\"Produce\"} 2\n"));
    assert!(text.contains("penstock_runtime_cpu_seconds_total{core=\"0\"} 1.5000005\n"));
    let buckets: Vec<u64> = text
        .lines()
        .filter(|line| line.starts_with("penstock_stages_staged_seconds_bucket{core=\"0\""))
        .map(|line| {
            line.rsplit(' ')
                .next()
                .expect("value")
                .parse()
                .expect("whole")
        })
        .collect();
    assert_eq!(buckets.len(), 20);
    assert!(buckets.is_sorted());
    assert_eq!(
        (buckets[2], buckets[3], buckets[4], buckets[19]),
        (0, 1, 2, 3)
    );
    assert!(text.contains("penstock_stages_staged_seconds_sum{core=\"0\"} 0.0202\n"));
    assert!(text.contains("penstock_stages_staged_seconds_count{core=\"0\"} 3\n"));
    assert!(text.contains("penstock_journal_block_entries_bucket{core=\"0\",le=\"4\"} 0\n"));
    assert!(text.contains("penstock_journal_block_entries_bucket{core=\"0\",le=\"16\"} 1\n"));
}

/// Goal: a snapshot can leave its core.
#[test]
fn snapshots_are_send() {
    fn send<T: Send + 'static>() {}
    send::<CoreSnapshot>();
    send::<Dump>();
}

/// Goal: the small page stays within 1 MiB on the largest host that is expected, and depends on
/// nothing but its cores. Method: 128 cores with every histogram filled, and very many topics.
#[test]
fn the_small_page_is_small() {
    let core = CoreMetrics::new(CoreId(0), 0);
    for ns in (0..2000).map(|step| 1000 + step * step * 1000) {
        core.journal.write.record(ns);
        core.stages.write.record(ns);
        core.requests.produce.record(ns);
    }
    for number in 0..160 {
        core.requests.errors.inc(number);
        core.requests.received.inc(number);
    }
    core.journal.written.add(u64::MAX / 256);
    let mut dump = sample();
    dump.cores = (0..128)
        .map(|number| CoreSnapshot {
            core: number,
            ..core.snapshot()
        })
        .collect();
    let few = dump.to_prometheus(false);
    assert!(few.len() <= 1 << 20, "{} bytes", few.len());
    let many = (0..5000).map(|number| topic(&format!("topic-{number}"), number));
    dump.topics = Topics::busiest(many.collect());
    assert_eq!(dump.to_prometheus(false), few);
    assert_eq!(dump.topics.omitted, 4000);
    assert!(
        dump.topics
            .listed
            .iter()
            .all(|topic| topic.in_records >= 4000)
    );
}
