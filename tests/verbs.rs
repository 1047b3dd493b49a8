//! The client verbs against the real broker, as a shell sees them: what goes to standard output,
//! what the exit status says, and that nothing is lost between `consume --json` and `produce
//! --json`. Method: run the binary, feed its standard input, look at everything that comes out.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use support::broker::{self, Broker, Options, Ready};

/// Exit statuses that scripts depend on.
const OK: i32 = 0;
const MISUSE: i32 = 1;
const CONFIGURATION: i32 = 2;
const DATA_REFUSED: i32 = 4;
const READER_GONE: i32 = 141;

/// The binary with a clean environment that names the broker.
fn command(ready: Option<&Ready>, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PENSTOCK_") {
            command.env_remove(name);
        }
    }
    if let Some(ready) = ready {
        command
            .env("PENSTOCK_BROKER", ready.kafka[0].to_string())
            .env("PENSTOCK_HTTP", ready.http.to_string());
    }
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the binary with this standard input to its end.
fn run(ready: Option<&Ready>, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = command(ready, arguments).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    // A verb that refuses its input closes it early: that is its right.
    let feeding = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("it ends");
    feeding.join().expect("fed");
    output
}

#[track_caller]
fn good(output: Output) -> Vec<u8> {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(OK), "{errors}");
    output.stdout
}

#[track_caller]
fn refused(output: &Output, status: i32, words: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{errors}");
    assert!(errors.contains(words), "{errors}");
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

fn sorted(lines: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(lines)
        .lines()
        .map(Into::into)
        .collect();
    lines.sort();
    lines
}

fn start(test: &str) -> (tempfile::TempDir, Broker, Ready) {
    let home = broker::home(test);
    let options = Options::new(home.path())
        .cores(2)
        .with(&["--segment-bytes", "20MiB"]);
    let (broker, ready) = Broker::start(&options);
    (home, broker, ready)
}

/// Goal: a topic copied through JSON is the same topic: partitions, order, keys, values, headers,
/// times; null, empty and binary told apart. Method: records of every sort, compressed and not,
/// copied to a topic of equal width, and both read as JSON.
#[test]
fn json_copies_a_topic_byte_for_byte() {
    let (_home, _broker, ready) = start("verbs-copy");
    good(run(
        Some(&ready),
        &["topic", "create", "from", "to", "-p", "3"],
        b"",
    ));
    let records = concat!(
        r#"{"key":null,"value":"plain","partition":0,"timestamp_ms":5}"#,
        "\n",
        r#"{"key":"","value":"","partition":0,"timestamp_ms":6}"#,
        "\n",
        r#"{"key":"k","value":null,"partition":2,"timestamp_ms":7}"#,
        "\n",
        r#"{"key_base64":"/wA=","value_base64":"AP//","partition":2}"#,
        "\n",
        r#"{"value":"h","headers":[{"key":"a","value":"1"},{"key":"a","value":null},"#,
        r#"{"key":"","value_base64":"/w=="}]}"#,
        "\n",
    );
    for codec in ["none", "gzip", "snappy", "lz4", "zstd"] {
        let sent = run(
            Some(&ready),
            &["produce", "from", "--json", "-z", codec],
            records.as_bytes(),
        );
        assert!(sent.stdout.is_empty());
        good(sent);
    }
    let from = good(run(
        Some(&ready),
        &["consume", "from", "--until", "end", "--json"],
        b"",
    ));
    assert_eq!(sorted(&from).len(), 25);
    good(run(Some(&ready), &["produce", "to", "--json"], &from));
    let to = good(run(
        Some(&ready),
        &["consume", "to", "--until", "end", "--json"],
        b"",
    ));
    let renamed = text(to).replace("\"topic\":\"to\"", "\"topic\":\"from\"");
    assert_eq!(sorted(renamed.as_bytes()), sorted(&from));
    let first = &sorted(&from)[0];
    assert!(
        first.contains(r#""key":null,"value":"plain","headers":[]"#),
        "{first}"
    );
}

/// Goal: ranges are exact. Method: 5,000 numbered lines in one partition, read by offset, from the
/// end, by time, by count; an end that is taken once while another producer goes on.
#[test]
fn ranges_are_exact() {
    let (_home, _broker, ready) = start("verbs-range");
    good(run(Some(&ready), &["topic", "create", "t", "-p", "1"], b""));
    let lines: String = (0..5000).map(|number| format!("{number}\n")).collect();
    good(run(Some(&ready), &["produce", "t"], lines.as_bytes()));
    let consume = |arguments: &[&str]| {
        text(good(run(
            Some(&ready),
            &[&["consume", "t"], arguments].concat(),
            b"",
        )))
    };
    assert_eq!(consume(&["--until", "end"]), lines);
    assert_eq!(consume(&["--from", "10", "--until", "13"]), "10\n11\n12\n");
    assert_eq!(consume(&["--from", "-2", "--until", "end"]), "4998\n4999\n");
    assert_eq!(consume(&["--count", "2"]), "0\n1\n");
    assert_eq!(consume(&["--from", "end", "--until", "end"]), "");
    assert_eq!(consume(&["--from", "@-1h", "--count", "1"]), "0\n");
    assert_eq!(consume(&["--from", "@2100-01-01", "--until", "end"]), "");
    assert_eq!(
        consume(&["--from", "9", "--count", "1", "--format", "%p/%o=%v;"]),
        "0/9=9;"
    );
    good(run(
        Some(&ready),
        &["produce", "t", "--raw"],
        b"\0two\nlines",
    ));
    assert_eq!(
        consume(&["--from", "5000", "--until", "end", "--raw"]),
        "\0two\nlines"
    );
}

/// Goal: what was not acknowledged is named, and what was is counted. Method: lines of which one is
/// too large, one is no record, one is for a partition that does not exist.
#[test]
fn the_first_line_that_failed_is_named() {
    let (home, _broker, ready) = start("verbs-account");
    good(run(Some(&ready), &["topic", "create", "t", "-p", "2"], b""));
    let mut lines = b"one\ntwo\n".to_vec();
    lines.extend(std::iter::repeat_n(b'x', 2 << 20));
    lines.extend(b"\nafter\n");
    let file = home.path().join("lines");
    fs::write(&file, &lines).expect("written");
    let name = file.display().to_string();
    let output = run(Some(&ready), &["produce", "t", &name], b"");
    refused(
        &output,
        MISUSE,
        &format!("line 3 of {name} was not acknowledged: MESSAGE_TOO_LARGE"),
    );
    refused(&output, MISUSE, "2 records acknowledged");
    let output = run(
        Some(&ready),
        &["produce", "t", "--json"],
        b"{}\n{\"valeu\":1}\n",
    );
    refused(
        &output,
        MISUSE,
        "line 2 was not acknowledged: there is no field \"valeu\"",
    );
    let output = run(Some(&ready), &["produce", "t", "-p", "7"], b"x\n");
    refused(&output, MISUSE, "partition 7, but t has 2 only");
    let report = run(
        Some(&ready),
        &["produce", "t", "-p", "1", "--report"],
        b"a\nb\n",
    );
    let report = text(good(report));
    let offsets: Vec<i64> = report
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .map(|line: serde_json::Value| line["offset"].as_i64().expect("an offset"))
        .collect();
    assert_eq!(offsets.len(), 2);
    assert_eq!(offsets[1], offsets[0] + 1);
}

/// Goal: a batch refused for its size is halved until it fits, each record once and in order.
/// Method: a topic that takes little, records that are each small enough.
#[test]
fn batches_are_halved_to_fit() {
    let (_home, _broker, ready) = start("verbs-halve");
    let create = [
        "topic",
        "create",
        "t",
        "-p",
        "1",
        "-c",
        "max.message.bytes=2000",
    ];
    good(run(Some(&ready), &create, b""));
    let lines: String = (0..300).map(|number| format!("{number:0100}\n")).collect();
    good(run(Some(&ready), &["produce", "t"], lines.as_bytes()));
    let read = good(run(Some(&ready), &["consume", "t", "--until", "end"], b""));
    assert_eq!(text(read), lines);
}

/// Starts `produce` and keeps its standard input open.
fn open_producer(ready: &Ready, topic: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = command(Some(ready), &["produce", topic, "--report"])
        .spawn()
        .expect("starts");
    let reports = BufReader::new(child.stdout.take().expect("piped"));
    (child, reports)
}

/// Goal: a producer outlives its broker: killed and started again at the same address, no line is
/// lost or doubled. Method: lines before, during and after the gap, on one open standard input.
#[test]
fn a_producer_outlives_its_broker() {
    let home = broker::home("verbs-restart");
    let options = Options::new(home.path())
        .cores(1)
        .with(&["--segment-bytes", "20MiB"]);
    let (broker, ready) = Broker::start(&options);
    good(run(Some(&ready), &["topic", "create", "t", "-p", "1"], b""));
    let (mut producer, mut reports) = open_producer(&ready, "t");
    let mut stdin = producer.stdin.take().expect("piped");
    stdin.write_all(b"before\n").expect("written");
    let mut report = String::new();
    reports.read_line(&mut report).expect("acknowledged");
    assert!(report.contains("\"offset\":0"), "{report}");
    broker.kill();
    stdin.write_all(b"between\n").expect("written");
    let address = ready.kafka[0].to_string();
    let again = Options::new(home.path())
        .cores(1)
        .with(&["--kafka", &address]);
    let (_broker, ready) = Broker::start(&again);
    stdin.write_all(b"after\n").expect("written");
    drop(stdin);
    let output = producer.wait_with_output().expect("ends");
    good(output);
    let mut rest = String::new();
    reports.read_to_string(&mut rest).expect("read");
    assert_eq!(rest.lines().count(), 2, "{rest}");
    let read = good(run(Some(&ready), &["consume", "t", "--until", "end"], b""));
    assert_eq!(text(read), "before\nbetween\nafter\n");
}

/// Goal: pipes behave as pipes: a reader that leaves ends the verb quietly, a full device is an
/// error, and no broker at all is one at once. Method: close the pipe early; `/dev/full`; a port
/// nobody has.
#[test]
fn pipes_behave_as_pipes() {
    let (_home, broker, ready) = start("verbs-pipes");
    let lines: String = (0..50_000)
        .map(|number| format!("line {number}\n"))
        .collect();
    good(run(Some(&ready), &["produce", "t"], lines.as_bytes()));
    let mut child = command(Some(&ready), &["consume", "t"])
        .spawn()
        .expect("starts");
    let mut first = [0; 10];
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_exact(&mut first).expect("a beginning");
    drop(stdout);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(READER_GONE));
    assert!(output.stderr.is_empty(), "{output:?}");
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("opens");
    let mut to_full = command(Some(&ready), &["consume", "t", "--until", "end"]);
    let output = to_full
        .stdout(full)
        .spawn()
        .expect("starts")
        .wait_with_output()
        .expect("ends");
    refused(&output, MISUSE, "No space left on device");
    broker.stop(Duration::from_secs(10));
    let began = std::time::Instant::now();
    let output = run(Some(&ready), &["topic", "list"], b"");
    refused(&output, MISUSE, "`penstock serve` starts one");
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "it did not fail at once"
    );
}

/// Goal: topics answer one by one, in tables and in stable JSON. Method: good and bad names in one
/// call.
#[test]
fn topics_answer_one_by_one() {
    let (_home, _broker, ready) = start("verbs-topics");
    let output = run(
        Some(&ready),
        &["topic", "create", "a", "b c", "--json"],
        b"",
    );
    assert_eq!(output.status.code(), Some(MISUSE));
    let answers: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answers[0]["ok"], true);
    assert_eq!(answers[1]["error"], "INVALID_TOPIC_EXCEPTION");
    good(run(Some(&ready), &["produce", "a", "-p", "1"], b"x\ny\n"));
    let described = good(run(
        Some(&ready),
        &["topic", "describe", "a", "--json"],
        b"",
    ));
    let described: serde_json::Value = serde_json::from_slice(&described).expect("JSON");
    assert_eq!(described[0]["partitions"][1]["end_offset"], 2);
    assert_eq!(described[0]["partitions"][0]["end_offset"], 0);
    let names = described[0]["configs"].as_array().expect("settings").iter();
    assert!(
        names
            .clone()
            .any(|entry| entry["name"] == "max.message.bytes")
    );
    good(run(Some(&ready), &["topic", "alter", "a", "-p", "6"], b""));
    refused(
        &run(Some(&ready), &["topic", "delete", "a"], b""),
        MISUSE,
        "add --yes",
    );
    let output = run(
        Some(&ready),
        &["topic", "delete", "a", "nosuch", "--yes"],
        b"",
    );
    refused(&output, MISUSE, "nosuch: UNKNOWN_TOPIC_OR_PARTITION");
    assert_eq!(text(output.stdout), "a: deleted\n");
    let output = run(Some(&ready), &["consume", "a", "--until", "end"], b"");
    refused(&output, MISUSE, "there is no topic a");
    assert_eq!(
        text(good(run(Some(&ready), &["topic", "list", "--json"], b""))),
        "[]\n"
    );
}

/// Goal: a dump is JSON whose difference counts what happened between. Method: dump, produce, dump,
/// compare; and the same figures at /metrics.
#[test]
fn dumps_can_be_compared() {
    let (home, _broker, ready) = start("verbs-dump");
    let save = |name: &str| {
        let path = home.path().join(name);
        fs::write(&path, good(run(Some(&ready), &["dump"], b""))).expect("written");
        path.display().to_string()
    };
    good(run(Some(&ready), &["topic", "create", "t"], b""));
    let earlier = save("earlier");
    good(run(Some(&ready), &["produce", "t"], b"1\n2\n3\n"));
    let later = save("later");
    let between = good(run(
        None,
        &["dump", "--diff", &earlier, &later, "--brief"],
        b"",
    ));
    let between: serde_json::Value = serde_json::from_slice(&between).expect("JSON");
    assert_eq!(between["total"]["produce"]["records"], 3);
    assert_eq!(between["total"]["requests"]["received"]["Produce"], 1);
    assert_eq!(between["total"]["stages"]["staged"]["count"], 1);
    let (status, metrics) = broker::http_get(ready.http, "/metrics").expect("answers");
    assert_eq!(status, 200);
    let records = metrics
        .lines()
        .filter(|line| line.starts_with("penstock_produce_records_total{"));
    let counts = records.map(|line| line.rsplit(' ').next().expect("a value").parse::<u64>());
    assert_eq!(counts.map(|count| count.expect("a number")).sum::<u64>(), 3);
}

/// Goal: `verify` finds nothing wrong after a kill, names one flipped byte, refuses a directory in
/// use, and changes nothing. Method: all of that on one store.
#[test]
fn verify_names_the_damage() {
    let (home, broker, ready) = start("verbs-verify");
    let value = "v".repeat(20_000);
    let lines = format!("{value}\n").repeat(50);
    good(run(Some(&ready), &["topic", "create", "t", "-p", "1"], b""));
    good(run(Some(&ready), &["produce", "t"], lines.as_bytes()));
    let data = home.path().join("data").display().to_string();
    refused(
        &run(None, &["verify", &data], b""),
        DATA_REFUSED,
        "a broker uses this directory",
    );
    broker.kill();
    let report = good(run(None, &["verify", &data, "--json"], b""));
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["clean"], true);
    let segment = segment_with(&home.path().join("data"), value.as_bytes());
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&segment.0)
        .expect("opens");
    file.write_all_at(b"X", segment.1 + 10_000)
        .expect("damaged");
    let output = run(None, &["verify", &data], b"");
    assert_eq!(output.status.code(), Some(DATA_REFUSED), "{output:?}");
    let shown = text(output.stdout);
    let name = segment
        .0
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    assert!(shown.contains(&name), "{shown}");
    assert!(shown.contains("offsets 0 to"), "{shown}");
    refused(
        &run(None, &["verify", "/nonexistent"], b""),
        DATA_REFUSED,
        "/nonexistent",
    );
}

/// The segment file that holds `bytes`, and where in it.
fn segment_with(data: &std::path::Path, bytes: &[u8]) -> (std::path::PathBuf, u64) {
    for folder in fs::read_dir(data)
        .expect("lists")
        .map(|entry| entry.expect("entry").path())
    {
        let Ok(files) = fs::read_dir(&folder) else {
            continue;
        };
        for path in files.map(|entry| entry.expect("entry").path()) {
            let content = fs::read(&path).expect("reads");
            let found = content
                .windows(bytes.len())
                .position(|window| window == bytes);
            if let Some(at) = found.filter(|_| path.extension().is_some_and(|end| end == "seg")) {
                return (path, at as u64);
            }
        }
    }
    panic!("no segment holds the records");
}

/// Goal: the configuration is explained, and a slip is answered with what was meant. Method: print
/// it, and make one slip in each source.
#[test]
fn the_configuration_is_explained() {
    let home = broker::home("verbs-config");
    let shown = good(run(None, &["config", "--json", "--commit-depth", "3"], b""));
    let shown: serde_json::Value = serde_json::from_slice(&shown).expect("JSON");
    let keys = shown["keys"].as_array().expect("keys");
    let depth = keys
        .iter()
        .find(|key| key["key"] == "commit_depth")
        .expect("known");
    assert_eq!(
        (&depth["value"], &depth["source"]),
        (&3.into(), &"--commit-depth".into())
    );
    let memory = &shown["memory"];
    let part = |name: &str| memory[name].as_u64().expect("bytes");
    let parts = ["fixed_bytes", "request_bytes", "fetch_bytes", "cache_bytes"];
    assert_eq!(parts.map(part).iter().sum::<u64>(), part("total_bytes"));
    assert!(shown["limits"].as_array().expect("limits").len() > 50);
    let file = home.path().join("penstock.toml");
    fs::write(&file, "\nkafak = \"127.0.0.1:1\"\n").expect("written");
    let name = file.display().to_string();
    let output = run(None, &["serve", "--config", &name], b"");
    refused(
        &output,
        CONFIGURATION,
        &format!("{name} line 2: there is no key `kafak`"),
    );
    refused(&output, CONFIGURATION, "did you mean `kafka`?");
    let output = command(None, &["serve"])
        .env("PENSTOCK_CROES", "2")
        .output()
        .expect("runs");
    refused(&output, CONFIGURATION, "did you mean `cores`?");
    let output = run(None, &["serve", "--kafka", "0.0.0.0:0"], b"");
    refused(&output, CONFIGURATION, "--insecure");
    refused(
        &run(None, &["serve", "--croes", "2"], b""),
        MISUSE,
        "--cores",
    );
}

/// Goal: `probe` measures, leaves nothing, and can be repeated with fio. Method: the shortest probe
/// there is.
#[test]
fn probe_measures_and_leaves_nothing() {
    let home = broker::home("verbs-probe");
    let folder = home.path().display().to_string();
    let arguments = [
        "probe",
        &folder,
        "--seconds",
        "1",
        "--size-mib",
        "16",
        "--json",
    ];
    let measured = good(run(None, &arguments, b""));
    let measured: serde_json::Value = serde_json::from_slice(&measured).expect("JSON");
    let rows = measured["measurements"].as_array().expect("rows");
    assert!(rows.len() >= 8);
    for row in rows {
        let figure = |name: &str| row[name].as_f64().expect("a number");
        assert!(figure("per_second") > 0.0, "{row}");
        assert!(figure("p50_us") <= figure("p99_us"), "{row}");
        assert!(figure("p99_us") <= figure("max_us"), "{row}");
    }
    assert!(
        rows[0]["fio"]
            .as_str()
            .expect("a command")
            .starts_with("fio ")
    );
    assert_eq!(fs::read_dir(home.path()).expect("lists").count(), 0);
}

/// Goal: single measurements can be asked for, also those on places never written, which need a
/// file of their own. Method: two by name, in the other order; then a name that there is not.
#[test]
fn probe_measures_what_it_is_asked_for() {
    let home = broker::home("verbs-probe-only");
    let folder = home.path().display().to_string();
    let probe = |only: &str| {
        let size = ["--seconds", "1", "--size-mib", "16", "--json"];
        let arguments = [&["probe", &folder, "--only", only], &size[..]].concat();
        run(None, &arguments, b"")
    };
    let measured = good(probe("crc32c_1m,write_1m_dsync_x4_new"));
    let measured: serde_json::Value = serde_json::from_slice(&measured).expect("JSON");
    let rows = measured["measurements"].as_array().expect("rows");
    let names: Vec<_> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["write_1m_dsync_x4_new", "crc32c_1m"]);
    // Whole files of 16 places each.
    let count = rows[0]["count"].as_u64().expect("a number");
    assert!(count >= 16 && count.is_multiple_of(16), "{count}");
    assert_eq!(fs::read_dir(home.path()).expect("lists").count(), 0);
    refused(&probe("write_2m"), MISUSE, "write_1m_dsync_x4_new");
}
