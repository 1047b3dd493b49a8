//! `penstock tune` on hosts that are folders of files: what it finds, that what it changes can be
//! given back byte for byte, that nothing in those files makes it panic, and that the files of
//! `tuning/` hold the values that it checks. Method: trees as the kernel shows them, the library's
//! own functions, and the binary with a hidden `--root` where exit codes and files matter.

#[path = "tune/trees.rs"]
mod trees;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use penstock::admin::tune::facts::{Broker, Facts, allowed_cpus};
use penstock::admin::tune::finding::{Finding, State};
use penstock::admin::tune::report::{Subject, document};
use penstock::admin::tune::script::script;
use penstock::admin::tune::{CHECKS, apply, findings, wanted};
use penstock::env::process::HostTree;
use proptest::prelude::*;
use trees::Tree;

const OK: i32 = 0;
const MISUSE: i32 = 1;
const UNTUNED: i32 = 3;

fn host(tree: &Tree) -> HostTree {
    HostTree::new(tree.root())
}

fn found(tree: &Tree) -> Vec<Finding> {
    let host = host(tree);
    let broker = Broker {
        data: "/srv/penstock/data".to_owned(),
        cpus: allowed_cpus(&host),
        connections: 10_000,
        io_uring: None,
    };
    findings(&Facts::read(&host, broker), &[], &[]).expect("no name was given")
}

fn named<'a>(findings: &'a [Finding], name: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.name == name);
    found.expect(name)
}

#[track_caller]
fn states(findings: &[Finding], expected: &[(&str, State)]) {
    for (name, state) in expected {
        let finding = named(findings, name);
        assert_eq!(finding.state, *state, "{finding:#?}");
    }
}

/// Runs the binary on a tree.
fn tune(tree: &Tree, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PENSTOCK_") {
            command.env_remove(name);
        }
    }
    let undo = tree.path("undo/records.json");
    command
        .args(["tune", "--data", "/srv/penstock/data", "--root"])
        .arg(tree.root())
        .arg("--undo-file")
        .arg(undo)
        .args(arguments);
    command.output().expect("it starts")
}

#[track_caller]
fn ends(output: &Output, status: i32) -> String {
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}\n{errors}");
    text
}

/// Goal: a careless bare-metal host is seen through: encryption down to the drive, interrupts,
/// sockets. Method: each check's state, and a few of the writes.
#[test]
fn bare_metal_is_seen_through() {
    let tree = trees::bare_metal();
    let findings = found(&tree);
    let (change, by_hand) = (State::Change, State::ByHand);
    states(
        &findings,
        &[
            ("kernel", by_hand),
            ("io_uring", by_hand),
            ("locked_memory", by_hand),
            ("open_files", State::Note),
            ("governor", change),
            ("idle_states", change),
            ("clock_source", change),
            ("steal", State::Fine),
            ("numa_nodes", State::Note),
            ("numa_balancing", change),
            ("zone_reclaim", change),
            ("huge_pages", State::Fine),
            ("swappiness", change),
            ("dirty_pages", change),
            ("file_system", State::Fine),
            ("mount_options", by_hand),
            ("scheduler", change),
            ("nomerges", change),
            ("write_cache", State::Fine),
            ("disk_queues", State::Fine),
            ("nic_queues", State::Note),
            ("nic_irqs", change),
            ("nic_drops", by_hand),
            ("rps", change),
            ("xps", change),
            ("accept_backlog", change),
            ("syn_backlog", change),
        ],
    );
    let scheduler = &named(&findings, "scheduler").changes;
    assert_eq!(scheduler.len(), 1);
    assert_eq!(scheduler[0].path, "/sys/block/nvme0n1/queue/scheduler");
    assert_eq!(scheduler[0].before, "mq-deadline");
    let irqs = &named(&findings, "nic_irqs").changes;
    let targets: Vec<&str> = irqs.iter().map(|change| change.value.as_str()).collect();
    assert_eq!(targets, ["1", "2", "3"], "the first may stay");
    let deep = &named(&findings, "idle_states").changes;
    assert_eq!(deep.len(), 8, "C6 of each core, not C1");
    assert!(named(&findings, "mount_options").why.contains("DANGER"));
    let rps = &named(&findings, "rps").changes;
    assert!(rps.len() == 4 && rps.iter().all(|change| change.value == "ff"));
}

/// Goal: a host that is set up well has nothing to change, and exits 0; what only the hypervisor
/// can change is said and does not count. Method: the virtual machine.
#[test]
fn a_good_host_exits_zero() {
    let tree = trees::virtual_machine();
    let findings = found(&tree);
    states(
        &findings,
        &[
            ("governor", State::Absent),
            ("scheduler", State::Fine),
            ("swappiness", State::Fine),
            ("steal", State::Note),
            ("write_cache", State::Note),
            ("nic_queues", State::Absent),
        ],
    );
    let text = ends(&tune(&tree, &[]), OK);
    assert!(text.contains("0 to change, 0 by hand"), "{text}");
    let applied = ends(&tune(&tree, &["--apply", "--yes"]), OK);
    assert_eq!(applied, "nothing to change\n");
    assert!(!tree.path("undo").exists(), "nothing to record");
}

/// Goal: hosts that show little or nothing are reported, not failed on. Method: a container, an
/// empty tree, a root that is not there.
#[test]
fn poor_hosts_are_reported() {
    let container = trees::container();
    let findings = found(&container);
    states(
        &findings,
        &[
            ("file_system", State::ByHand),
            ("scheduler", State::Absent),
            ("governor", State::Absent),
        ],
    );
    ends(&tune(&container, &[]), UNTUNED);
    let empty = Tree::empty();
    let findings = found(&empty);
    assert!(findings.iter().all(|finding| !finding.state.is_wanting()));
    ends(&tune(&empty, &["--json"]), OK);
    let output = tune(&empty, &["--undo"]);
    ends(&output, MISUSE);
    assert!(String::from_utf8_lossy(&output.stderr).contains("nothing to undo"));
}

/// Goal: five hundred CPUs make one row each check, and no line of the table is wider than 80.
/// Method: the huge tree through the binary.
#[test]
fn a_huge_host_fits_the_table() {
    let tree = trees::huge();
    let text = ends(&tune(&tree, &[]), UNTUNED);
    let fix = |line: &&str| line.trim_start().starts_with("fix ");
    for line in text.lines().filter(|line| !fix(line)) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(text.contains("and 511 more"), "{text}");
}

/// Goal: names choose checks, and a wrong one is misuse that lists the right ones. Method: the
/// binary.
#[test]
fn checks_are_chosen_by_name() {
    let tree = trees::bare_metal();
    let text = ends(
        &tune(&tree, &["--json", "--only", "scheduler,steal"]),
        UNTUNED,
    );
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let names: Vec<_> = json["checks"].as_array().expect("list").iter().collect();
    assert_eq!(names.len(), 2);
    assert_eq!(names[0]["name"], "steal");
    assert_eq!(names[1]["enabled"], false);
    assert_eq!(names[1]["supported"], true);
    let all: Vec<&str> = CHECKS.iter().map(|check| check.name).collect();
    let unique: BTreeSet<&str> = all.iter().copied().collect();
    assert_eq!(all.len(), unique.len());
    ends(&tune(&tree, &["--skip", &all.join(",")]), OK);
    let output = tune(&tree, &["--only", "schedular"]);
    ends(&output, MISUSE);
    assert!(String::from_utf8_lossy(&output.stderr).contains("scheduler, nomerges"));
    ends(&tune(&tree, &["--json", "--script"]), MISUSE);
    ends(&tune(&tree, &["--yes"]), MISUSE);
}

/// Goal: apply makes every change it announced, and undo gives every byte back, also after a second
/// apply. Method: snapshots of the tree.
#[test]
fn undo_restores_every_byte() {
    let tree = trees::bare_metal();
    let before = tree.snapshot();
    let changes: usize = found(&tree).iter().map(|it| it.changes.len()).sum();
    let text = ends(&tune(&tree, &["--apply", "--yes"]), OK);
    assert_eq!(text.lines().count(), changes, "{text}");
    assert_eq!(tree.text("/sys/block/nvme0n1/queue/scheduler"), "none\n");
    assert_eq!(tree.text("/proc/sys/vm/swappiness"), "1\n");
    let left = found(&tree);
    let left: Vec<&str> = left
        .iter()
        .filter(|finding| finding.state == State::Change)
        .map(|finding| finding.name)
        // A real card shows where its interrupts go in a second file, which nobody keeps here.
        .filter(|name| *name != "nic_irqs")
        .collect();
    assert_eq!(left, Vec::<&str>::new());
    // Somebody raises a threshold in between, and applies again.
    ends(&tune(&tree, &["--apply", "--yes"]), OK);
    let text = ends(&tune(&tree, &["--undo"]), OK);
    assert_eq!(text.lines().count(), changes, "{text}");
    let mut after = tree.snapshot();
    after.retain(|path, _| !path.starts_with(tree.path("undo")));
    assert_eq!(before, after);
    assert!(!tree.path("undo/records.json").exists());
}

/// Goal: what somebody changed after us is left alone and said; records of an earlier start of the
/// host are dropped. Method: change one setting, then pretend a restart.
#[test]
fn undo_leaves_others_changes_alone() {
    let tree = trees::bare_metal();
    let only = ["--only", "swappiness,zone_reclaim"];
    ends(
        &tune(&tree, &[&["--apply", "--yes"], &only[..]].concat()),
        OK,
    );
    tree.put("/proc/sys/vm/swappiness", "30\n");
    let output = tune(&tree, &["--undo"]);
    ends(&output, MISUSE);
    assert!(String::from_utf8_lossy(&output.stderr).contains("somebody set it to 30"));
    assert_eq!(tree.text("/proc/sys/vm/swappiness"), "30\n");
    assert_eq!(tree.text("/proc/sys/vm/zone_reclaim_mode"), "1\n");
    tree.put("/proc/sys/kernel/random/boot_id", "another\n");
    let text = ends(&tune(&tree, &["--undo"]), OK);
    assert!(text.contains("restarted since"), "{text}");
    assert!(!tree.path("undo/records.json").exists());
}

/// Goal: records that others wrote are no way to write elsewhere as root. Method: records that name
/// other files.
#[test]
fn forged_records_write_nothing() {
    let tree = trees::bare_metal();
    tree.put("/proc/sys/kernel/core_pattern", "core\n");
    tree.put("/etc/passwd", "root\n");
    for path in [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/io_uring_disabled",
        "/etc/passwd",
        "/proc/sys/vm/swappiness/../../kernel/core_pattern",
        "/sys/block/../../etc/passwd",
    ] {
        assert!(!apply::is_setting(path), "{path}");
        let records = serde_json::json!({
            "schema_version": 1, "made_by": "x", "boot_id": "11111111-2222",
            "changes": [{ "check": "x", "path": path, "before_value": "|evil",
                          "before_text": "|evil\n", "after_text": null }],
        });
        tree.put("/undo/records.json", records.to_string());
        ends(&tune(&tree, &["--undo"]), MISUSE);
    }
    assert_eq!(tree.text("/proc/sys/kernel/core_pattern"), "core\n");
    assert_eq!(tree.text("/etc/passwd"), "root\n");
    tree.put("/undo/records.json", "{ not json");
    ends(&tune(&tree, &["--undo"]), MISUSE);
    ends(&tune(&tree, &["--apply", "--yes"]), MISUSE);
    assert_eq!(tree.text("/proc/sys/vm/swappiness"), "60\n");
}

/// Goal: a setting that cannot be written is one failure among successes. Method: one file goes
/// after the facts were read.
#[test]
fn one_refusal_does_not_stop_the_rest() {
    let tree = trees::bare_metal();
    let findings = found(&tree);
    fs::remove_file(tree.path("/proc/sys/vm/swappiness")).expect("removed");
    let undo = tree.path("undo.json");
    let outcomes = apply::apply(&host(&tree), &findings, &undo).expect("recorded");
    let failed: Vec<_> = outcomes.iter().filter(|it| it.result.is_err()).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0].check, "swappiness");
    assert_eq!(tree.text("/proc/sys/vm/zone_reclaim_mode"), "0\n");
}

/// Goal: the script does what apply does, twice without harm, and `sh` reads it. Method: run it on
/// the tree, with the tree's root before each path.
#[test]
fn the_script_makes_the_same_changes() {
    let tree = trees::bare_metal();
    let text = ends(&tune(&tree, &["--script"]), OK);
    let root = tree.root().display().to_string();
    let moved = text
        .replace(" /proc/", &format!(" {root}/proc/"))
        .replace(" /sys/", &format!(" {root}/sys/"));
    tree.put("/fix.sh", &moved);
    for _ in 0..2 {
        let status = Command::new("sh").arg(tree.path("/fix.sh")).status();
        assert!(status.expect("sh").success(), "{moved}");
    }
    let scripted = tree.snapshot();
    let other = trees::bare_metal();
    ends(&tune(&other, &["--apply", "--yes"]), OK);
    for (path, bytes) in scripted
        .iter()
        .filter(|(path, _)| !path.ends_with("fix.sh"))
    {
        let below = path.strip_prefix(tree.root()).expect("below");
        let twin = fs::read(other.root().join(below)).expect("the same files");
        assert_eq!(*bytes, twin, "{}", path.display());
    }
    assert!(text.contains("# undo: put mq-deadline /sys/block/nvme0n1/queue/scheduler"));
    assert!(text.contains("# by hand: "));
}

/// What may lie where a setting is expected.
fn odd_content() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop_oneof![
        Just(None),
        Just(Some(Vec::new())),
        proptest::collection::vec(any::<u8>(), 0..200).prop_map(Some),
        "[\\[\\]0-9a-z ,:/\\-\n]{0,80}".prop_map(|text| Some(text.into_bytes())),
        "(18446744073709551615|-1|0|9{1,30}|[0-9]{1,3}-[0-9]{1,20})\n"
            .prop_map(|text| Some(text.into_bytes())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Goal: whatever the kernel's files hold, nothing panics, and what was applied can be given
    /// back. Method: a third of a bare-metal host's files replaced by anything, or by a folder.
    #[test]
    fn no_content_makes_it_panic(
        contents in proptest::collection::vec((any::<prop::sample::Index>(), odd_content()), 1..60),
    ) {
        let tree = trees::bare_metal();
        let files: Vec<_> = tree.snapshot().into_keys().collect();
        for (index, content) in contents {
            let path = index.get(&files);
            let _ = fs::remove_file(path);
            match content {
                Some(bytes) if !path.is_dir() => fs::write(path, bytes).expect("written"),
                Some(_) => {}
                None => { let _ = fs::create_dir(path); }
            }
        }
        let before = tree.snapshot();
        let findings = found(&tree);
        prop_assert_eq!(findings.len(), CHECKS.len());
        let subject = Subject {
            host: "x".into(), kernel: "x".into(), data: "x".into(), cpus: "x".into(),
        };
        let _ = document(&subject, &findings).to_string();
        let text = script(&findings, "x");
        prop_assert!(text.ends_with("exit \"$failed\"\n"));
        prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
        let undo = tree.root().join("undo.json");
        apply::apply(&host(&tree), &findings, &undo).expect("recorded");
        if undo.exists() {
            apply::undo(&host(&tree), &undo).expect("undone");
        }
        prop_assert_eq!(before, tree.snapshot());
    }
}

fn repository_file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `key = value` lines of a file without comments and sections.
fn assignments(text: &str) -> Vec<(String, String)> {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with(['#', '[']) && !line.is_empty());
    let pairs = lines.map(|line| line.split_once('=').expect(line));
    pairs
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect()
}

/// Goal: the sysctl file and the checks agree, in both directions. Method: compare with the table.
#[test]
fn the_sysctl_file_holds_the_table() {
    let lines = assignments(&repository_file("tuning/penstock.sysctl.conf"));
    let in_file: BTreeSet<(String, String)> = lines
        .into_iter()
        .map(|(key, value)| (key.trim_start_matches('-').to_owned(), value))
        .collect();
    let in_table: BTreeSet<(String, String)> = wanted::SYSCTLS
        .iter()
        .map(|sysctl| (sysctl.name.to_owned(), sysctl.value.to_string()))
        .collect();
    assert_eq!(in_file, in_table);
}

/// Goal: the unit holds what the broker depends on, and its exit codes are the broker's. Method:
/// compare with the table; the status of each code that no restart mends.
#[test]
fn the_unit_holds_the_table() {
    use penstock::base::exit::ExitCode;
    let lines = assignments(&repository_file("tuning/penstock.service"));
    for (key, value) in wanted::UNIT {
        let values: Vec<&str> = lines
            .iter()
            .filter(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(values, [value], "{key}");
    }
    let hopeless = [
        ExitCode::Misuse,
        ExitCode::Configuration,
        ExitCode::Host,
        ExitCode::DataRefused,
    ];
    let codes: Vec<String> = hopeless
        .iter()
        .map(|code| code.code().to_string())
        .collect();
    assert!(wanted::UNIT.contains(&("RestartPreventExitStatus", codes.join(" ").as_str())));
    let files = wanted::UNIT_OPEN_FILES.to_string();
    assert!(wanted::UNIT.contains(&("LimitNOFILE", files.as_str())));
}

/// Goal: the udev rule sets what the checks want, and the folder's page names every file. Method:
/// look for them.
#[test]
fn the_udev_rule_and_the_page_agree() {
    let rules = repository_file("tuning/60-penstock.rules");
    let rules: Vec<&str> = rules
        .lines()
        .filter(|line| line.starts_with("ACTION"))
        .collect();
    assert_eq!(rules.len(), 3);
    for rule in rules {
        let scheduler = format!("ATTR{{queue/scheduler}}=\"{}\"", wanted::SCHEDULER);
        let nomerges = format!("ATTR{{queue/nomerges}}=\"{}\"", wanted::NOMERGES);
        assert!(
            rule.contains(&scheduler) && rule.contains(&nomerges),
            "{rule}"
        );
    }
    let page = repository_file("tuning/README.md");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tuning");
    for entry in fs::read_dir(folder).expect("listed") {
        let name = entry.expect("listed").file_name();
        let name = name.to_string_lossy().into_owned();
        assert!(
            name == "README.md" || page.contains(&format!("`{name}`")),
            "{name}"
        );
    }
}

/// Goal: the guides name only metrics that exist. Method: every `penstock_…` of theirs against the
/// table that is exported.
#[test]
fn the_guides_name_metrics_that_exist() {
    let known: BTreeSet<String> = penstock::metrics::METRICS
        .iter()
        .map(penstock::metrics::Metric::prometheus_name)
        .collect();
    let mut seen = 0;
    for document in ["docs/DEPLOYMENT.md", "docs/SIZING.md"] {
        let text = repository_file(document);
        for (at, mark) in text.match_indices("penstock_") {
            let rest = &text[at + mark.len()..];
            let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '_'));
            let name = format!("{mark}{}", &rest[..end.unwrap_or(rest.len())]);
            assert!(known.contains(&name), "{document}: {name}");
            seen += 1;
        }
    }
    assert!(seen > 10, "the guides were not understood");
}

/// Goal: the memory of the sizing guide's example is what the broker computes. Method: the default
/// configuration on two cores.
#[test]
fn the_sizing_guide_computes_as_the_broker_does() {
    use penstock::config::{HostFacts, Sources, load};
    let host = HostFacts {
        cpus: vec![0, 1],
        memory_bytes: 24 << 30,
    };
    let memory = load(&Sources::default(), &host)
        .expect("the defaults are valid")
        .memory;
    let text = repository_file("docs/SIZING.md");
    for bytes in [
        memory.fixed_bytes,
        memory.total_bytes - memory.fixed_bytes,
        memory.request_bytes,
        memory.fetch_bytes,
        memory.cache_bytes,
    ] {
        let digits = bytes.to_string();
        let mut shown = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                shown.push(',');
            }
            shown.push(digit);
        }
        assert!(text.contains(&shown), "{shown} is not in docs/SIZING.md");
    }
}
