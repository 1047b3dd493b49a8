//! The dashboard in `tuning/` asks for nothing that the broker does not tell.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use penstock::metrics::{Kind, METRICS, Page};
use serde_json::Value;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tuning")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn dashboard() -> Value {
    serde_json::from_str(&read("grafana-dashboard.json")).expect("JSON")
}

/// Every name that a sample of the small page can have.
fn known() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = ["penstock_build_info", "penstock_uptime_seconds"]
        .map(str::to_owned)
        .into();
    for metric in METRICS.iter().filter(|metric| metric.page != Page::Full) {
        let name = metric.prometheus_name();
        if metric.kind == Kind::Histogram {
            names.extend(["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")));
        } else {
            names.insert(name);
        }
    }
    names
}

/// The names of metrics in an expression.
fn names_in(expression: &str) -> Vec<String> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    expression
        .split(|letter| !is_name(letter))
        .filter(|word| word.starts_with("penstock_"))
        .map(str::to_owned)
        .collect()
}

/// Every expression, wherever it stands.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value.as_str() {
                    Some(text) if matches!(key.as_str(), "expr" | "definition" | "query") => {
                        found.push(text.to_owned());
                    }
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

/// Goal: every metric that is asked for exists, on the page that is scraped. Method: the names in
/// all expressions, against the table that the exposition is made from.
#[test]
fn every_metric_asked_for_exists() {
    let known = known();
    let mut found = Vec::new();
    expressions(&dashboard(), &mut found);
    assert!(found.len() > 50, "{} expressions", found.len());
    let mut asked = BTreeSet::new();
    for expression in &found {
        let opened = expression.matches(['(', '{', '[']).count();
        assert_eq!(
            opened,
            expression.matches([')', '}', ']']).count(),
            "{expression}"
        );
        for name in names_in(expression) {
            assert!(known.contains(&name), "{name} in {expression}");
            asked.insert(name);
        }
    }
    // What every operator asks first is there.
    for needed in [
        "penstock_produce_records_total",
        "penstock_runtime_cpu_seconds_total",
        "penstock_journal_write_seconds_bucket",
        "penstock_journal_staged_bytes",
        "penstock_connections_open",
        "penstock_forward_sent_total",
        "penstock_requests_errors_total",
    ] {
        assert!(asked.contains(needed), "{needed} is on no panel");
    }
    assert!(names_in("rate(penstock_a_total{x=\"1\"}[5m])") == ["penstock_a_total"]);
}

/// Goal: the file is a dashboard that Grafana takes: a current schema, a data source that can be
/// chosen, panels with their own numbers and places. Method: look at each.
#[test]
fn the_dashboard_is_well_formed() {
    let dashboard = dashboard();
    assert!(dashboard["schemaVersion"].as_u64() >= Some(39));
    assert_eq!(dashboard["uid"], "penstock");
    let variables = dashboard["templating"]["list"]
        .as_array()
        .expect("variables");
    assert!(
        variables
            .iter()
            .any(|variable| variable["type"] == "datasource")
    );
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        assert!(
            ids.insert(panel["id"].as_u64().expect("a number")),
            "{title}"
        );
        let place = |side: &str| panel["gridPos"][side].as_u64().expect("a place");
        assert!(place("x") + place("w") <= 24, "{title} is too wide");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(taken.insert((x, y)), "{title} lies on another panel");
            }
        }
        if panel["type"] == "row" {
            continue;
        }
        assert!(
            panel["description"]
                .as_str()
                .is_some_and(|text| text.ends_with('.')),
            "{title}"
        );
        assert!(
            panel["fieldConfig"]["defaults"]["unit"].is_string(),
            "{title}"
        );
        let targets = panel["targets"].as_array().expect("targets");
        let mut names = BTreeSet::new();
        for target in targets {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            assert!(
                names.insert(target["refId"].as_str().expect("a name")),
                "{title}"
            );
        }
        assert!(!targets.is_empty(), "{title}");
    }
}

/// Goal: the scrape example asks for the page that exists.
#[test]
fn the_scrape_example_asks_for_the_page() {
    let text = read("prometheus.yml");
    assert!(text.contains("metrics_path: /metrics\n"));
    assert!(text.contains("127.0.0.1:9080"));
}
