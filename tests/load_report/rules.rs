//! Rules 3 to 7, 9, 10 (the report's side) and 11 of a believable load report.

use crate::random::{self, Plan};
use crate::read::{self, Told};
use crate::runs;
use penstock::base::units::Micro;
use penstock::load::report::{Gate, Kind, Summary, hlog, json, merge, table};
use penstock::load::run::{Counts, Failure, Phase, Run};
use proptest::prelude::*;
use serde_json::{Value, json};

const CASES: u32 = 32;

/// One second, measured, with these answers in microseconds and these waits in vain.
fn second(answered: &[u64], unanswered: &[u64], failed: u64) -> Run {
    let mut run = runs::empty_run();
    let mut interval = runs::interval(0, 1000, 0, Phase::Measured);
    let acknowledged = answered.len() as u64;
    let waiting = unanswered.len() as u64;
    interval.counts = Counts {
        offered: acknowledged + waiting + failed,
        sent: acknowledged + waiting + failed,
        acknowledged,
        acknowledged_meanwhile: acknowledged,
        failed,
        unanswered: waiting,
        ..Counts::default()
    };
    for us in answered {
        interval.latencies.response.saturating_record(*us);
        interval.latencies.service.saturating_record(*us);
    }
    for us in unanswered {
        interval.latencies.unanswered.saturating_record(*us);
    }
    run.intervals.push(interval);
    run
}

/// Goal: rule 3. Each latency says what it is wherever it is shown, and what came before it was
/// sent is counted, not clamped. Method: a run that has all of them.
#[test]
fn rule_3_latencies_are_defined_where_they_are_shown() {
    let mut run = runs::bimodal();
    run.intervals[5].counts.negative = 3;
    let told = Told::of(&run);
    let document = told.document();
    for (name, words) in [
        ("response", "from the intended send to the acknowledgement"),
        ("service", "from the actual send to the acknowledgement"),
        ("end_to_end", "from the intended send to the receipt"),
        ("schedule_lag", "from the intended send to the socket"),
    ] {
        assert!(told.table.contains(&format!("{name}: {words}")), "{name}");
        assert!(
            told.page.contains(&format!("<b>{name}</b>: {words}")),
            "{name}"
        );
        let is = document["summary"][name]["is"].as_str().expect("defined");
        assert!(is.starts_with(words), "{name}");
    }
    assert_eq!(document["summary"]["received_before_sent"], 3);
    for text in [&told.table, &told.page] {
        assert!(text.contains("3 messages were received before their intended send"));
    }
}

/// Goal: rule 4. What is unanswered counts as "at least", and only where it makes a difference.
/// Method: 90 answers of 1 ms and 10 waits of 5 s: by arithmetic p50 is 1 ms, p99 at least 5 s.
#[test]
fn rule_4_unanswered_are_at_least() {
    let told = Told::of(&second(&[1000; 90], &[5_000_000; 10], 0));
    let response = &told.document()["summary"]["response"];
    assert_eq!(response["p50_us"], 1000);
    assert!(response["p99_us"].as_u64().expect("a number") >= 4_995_000);
    assert_eq!(
        response["at_least"],
        json!(["mean_us", "p99_us", "p99_9_us", "p99_99_us", "max_us"])
    );
    assert_eq!(told.row("p50").expect("a row")[0], "1.000 ms");
    assert!(told.row("p99").expect("a row")[0].starts_with(">= 5.00"));
    assert!(told.page.contains("≥ 5.00"));
    let service = &told.document()["summary"]["service"];
    assert!(service["max_us"].as_u64().expect("a number") < 1002);
    assert_eq!(
        Summary::of(&second(&[1000; 90], &[1; 10], 0))
            .verdict
            .kind(),
        Kind::Errors
    );
}

/// Goal: rule 5. Failures are no samples and have a table. Method: a run half of which failed.
#[test]
fn rule_5_failures_are_apart() {
    let mut run = second(&[1000; 50], &[], 50);
    for (error, count, first_ms, last_ms) in [
        ("NOT_LEADER_OR_FOLLOWER", 40, 120, 340),
        ("REQUEST_TIMED_OUT", 10, 200, 900),
    ] {
        run.failures.push(Failure {
            error: error.to_owned(),
            count,
            first_ms,
            last_ms,
        });
    }
    let told = Told::of(&run);
    let document = told.document();
    assert_eq!(document["summary"]["response"]["count"], 50);
    assert_eq!(document["summary"]["failed"], 50);
    assert_eq!(
        document["errors"][0],
        json!({"error": "NOT_LEADER_OR_FOLLOWER", "count": 40, "first_ms": 120, "last_ms": 340})
    );
    let row = told.row("NOT_LEADER_OR_FOLLOWER").expect("a row");
    assert_eq!(row, ["40", "+0.12 s", "+0.34 s"]);
    assert!(
        told.page
            .contains("<td>REQUEST_TIMED_OUT</td><td>10</td><td>+0.2 s</td>")
    );
    assert_eq!(document["verdict"]["kind"], "errors");
}

/// Goal: rule 6, the marks. Method: 999 samples have 9 beyond p99 and 1,000 have 10.
#[test]
fn rule_6_few_samples_are_marked() {
    for (samples, marked) in [(999, true), (1000, false)] {
        let told = Told::of(&second(&vec![1000; samples], &[], 0));
        let response = &told.document()["summary"]["response"];
        let few = response["few_samples"].as_array().expect("a list");
        assert_eq!(few.contains(&json!("p99_us")), marked);
        assert_eq!(told.row("p99").expect("a row")[0].ends_with('*'), marked);
        assert!(told.table.contains("* fewer than 10 samples"));
    }
}

fn not_absurd(run: &Run) -> Result<(), TestCaseError> {
    let told = Told::of(run);
    read::numbers(&told.document(), &mut |number| {
        assert!(number.is_finite() && number >= 0.0, "{number}");
    });
    for (name, cells) in told.columns() {
        for cell in cells
            .iter()
            .filter(|cell| name != "phase" && !cell.is_empty())
        {
            let number: f64 = cell.parse().expect(&name);
            prop_assert!(number.is_finite() && number >= 0.0, "{}: {}", name, number);
        }
    }
    for (us, quantile, _) in told.percentiles() {
        prop_assert!(us.is_finite() && us >= 0.0 && (0.0..=1.0).contains(&quantile));
    }
    for text in [told.drawn(), &told.table, &told.hgrm] {
        for absurd in ["NaN", "inf ", "inf\"", "Infinity", "-0 ", "-0.0"] {
            prop_assert!(!text.contains(absurd), "{} in {}", absurd, text);
        }
    }
    let document = told.document();
    let summary = &document["summary"];
    for latency in ["response", "service", "end_to_end", "schedule_lag"] {
        let keys = [
            "min_us",
            "p50_us",
            "p90_us",
            "p99_us",
            "p99_9_us",
            "p99_99_us",
            "max_us",
        ];
        let figures: Vec<Option<u64>> = keys.iter().map(|k| summary[latency][k].as_u64()).collect();
        let empty = summary[latency]["count"] == 0;
        prop_assert!(figures.iter().all(|figure| figure.is_none() == empty));
        prop_assert!(figures.is_sorted(), "{}: {:?}", latency, figures);
    }
    let whole = |key: &str| summary[key].as_f64().expect("a number");
    let seconds = whole("measured_ms") / 1e3;
    if seconds > 0.0 {
        let product = whole("acknowledged_per_s") * seconds;
        prop_assert!((product - whole("acknowledged")).abs() <= 1e-9 * product.max(1.0));
    }
    prop_assert_eq!(
        whole("sent"),
        whole("acknowledged") + whole("failed") + whole("unanswered")
    );
    prop_assert_eq!(whole("offered"), whole("sent") + whole("unsent"));
    Ok(())
}

/// Two numbers are the same as far as a histogram of three digits, or four printed ones, can tell.
fn near(left: f64, right: f64) -> bool {
    (left - right).abs() <= 0.001 * left.max(right) + 0.051
}

fn one_story(run: &Run) -> Result<(), TestCaseError> {
    let told = Told::of(run);
    let document = told.document();
    prop_assert_eq!(&document, &told.embedded());
    let summary = &document["summary"];
    let first = told.table.lines().next().expect("a line");
    prop_assert_eq!(&document["verdict"]["text"], first);
    let kind = document["verdict"]["kind"].as_str().expect("a kind");
    prop_assert!(told.drawn().contains(kind));
    for key in [
        "offered",
        "sent",
        "acknowledged",
        "failed",
        "unanswered",
        "unsent",
    ] {
        let cell = &told.row(key).expect("a row")[0];
        prop_assert_eq!(summary[key].as_u64(), Some(read::count(cell)), "{}", key);
    }
    let response = &summary["response"];
    if let Some(samples) = response["count"].as_u64().filter(|samples| *samples > 0) {
        prop_assert_eq!(
            read::count(&told.row("samples").expect("a row")[0]),
            samples
        );
        for (name, key) in [("p50", "p50_us"), ("p99.9", "p99_9_us"), ("max", "max_us")] {
            let cell = &told.row(name).expect("a row")[0];
            let us = response[key].as_f64().expect("a number");
            prop_assert!(
                near(read::latency_us(cell), us),
                "{}: {} {}",
                name,
                cell,
                us
            );
        }
        let lines = told.percentiles();
        let spectrum = Summary::of(run).totals.response;
        prop_assert_eq!(lines.last().expect("a line").2, samples);
        prop_assert!(near(
            lines.last().expect("a line").0,
            response["max_us"].as_f64().expect("us")
        ));
        for (us, quantile, _) in lines {
            let exact = spectrum.at(quantile).expect("samples").us as f64;
            // The text rounds the quantile, which may reach the next sample.
            let next = quantile + 2e-12;
            let above = spectrum.at(next).expect("samples").us as f64;
            prop_assert!(near(us, exact) || near(us, above), "{} {}", us, exact);
        }
    }
    time_line_adds_up(&told)
}

/// The measured lines of the CSV add up to the summary.
fn time_line_adds_up(told: &Told) -> Result<(), TestCaseError> {
    let document = told.document();
    let summary = &document["summary"];
    let columns = told.columns();
    for (key, column) in [
        ("acknowledged", "acknowledged"),
        ("sent", "sent"),
        ("failed", "failed"),
    ] {
        let cells = columns.get(column).cloned().unwrap_or_default();
        let phases = columns.get("phase").cloned().unwrap_or_default();
        let measured = cells
            .iter()
            .zip(phases)
            .filter(|(_, phase)| phase == "measured");
        let sum: u64 = measured
            .map(|(cell, _)| cell.parse::<u64>().expect("a count"))
            .sum();
        prop_assert_eq!(summary[key].as_u64(), Some(sum), "{}", key);
    }
    Ok(())
}

fn same(run: &Run, again: &Run) -> Result<(), TestCaseError> {
    prop_assert_eq!(run.began_unix_us, again.began_unix_us);
    prop_assert_eq!(json!(run.about), json!(again.about));
    prop_assert_eq!(json!(run.steps), json!(again.steps));
    prop_assert_eq!(&run.failures, &again.failures);
    prop_assert_eq!(&run.events, &again.events);
    prop_assert_eq!(run.setup, again.setup);
    prop_assert_eq!(&run.verification, &again.verification);
    prop_assert_eq!(run.ended, again.ended);
    prop_assert_eq!(run.intervals.len(), again.intervals.len());
    for (was, is) in run.intervals.iter().zip(&again.intervals) {
        prop_assert_eq!(
            (was.at_ms, was.length_ms, was.step),
            (is.at_ms, is.length_ms, is.step)
        );
        prop_assert_eq!((was.phase, was.counts), (is.phase, is.counts));
        prop_assert_eq!(was.broker.is_some(), is.broker.is_some());
        // What was read may be shorter, so it stands on the left.
        let (was, is) = (&is.latencies, &was.latencies);
        prop_assert!(was.response == is.response && was.service == is.service);
        prop_assert!(was.unanswered == is.unanswered && was.end_to_end == is.end_to_end);
        prop_assert!(was.schedule_lag == is.schedule_lag);
    }
    Ok(())
}

/// Two halves of a plan, the second begun a little later, as processes do.
fn halves(plan: &Plan) -> Vec<Run> {
    let mut halves = vec![plan.run(Some(0)), plan.run(Some(1))];
    halves[1].began_unix_us += 3000;
    halves
}

fn halves_are_the_whole(plan: &Plan) -> Result<(), TestCaseError> {
    let mut whole = plan.run(None);
    for interval in &mut whole.intervals {
        // Each process sees its own largest number in flight; the sum is what can be known.
        interval.counts.in_flight_max *= 2;
    }
    let merged = merge::merge(halves(plan)).expect("parts of one load");
    let told = |run: &Run| {
        let mut document = json::document(run, &Summary::of(run));
        for key in ["about", "errors", "events", "verification", "verdict"] {
            document[key] = Value::Null;
        }
        document["summary"]["generator_busy_max_share"] = Value::Null;
        document
    };
    let (left, right) = (told(&whole), told(&merged));
    for key in ["summary", "steps", "intervals", "setup"] {
        prop_assert_eq!(&left[key], &right[key], "{}", key);
    }
    let failed = |run: &Run| {
        run.failures
            .iter()
            .map(|failure| failure.count)
            .sum::<u64>()
    };
    prop_assert_eq!(failed(&whole), failed(&merged));
    prop_assert_eq!(whole.began_unix_us, merged.began_unix_us);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Goal: rules 4 and 6. No output of any run has an absurd figure, percentiles grow and stay
    /// below the maximum, the sums hold. Method: random runs, the odd ones among them.
    #[test]
    fn rule_6_no_absurd_figures(plan in random::plan()) {
        not_absurd(&plan.run(None))?;
    }

    /// Goal: rule 7. Table, JSON, `.hgrm`, CSV and page tell the same figures. Method: random runs,
    /// each output read back from its text.
    #[test]
    fn rule_7_one_story(plan in random::plan()) {
        one_story(&plan.run(None))?;
    }

    /// Goal: rule 7. A log is the run. Method: random runs, written and read.
    #[test]
    fn rule_7_the_log_is_without_loss(plan in random::plan()) {
        let run = plan.run(None);
        let text = hlog::text(&run);
        let again = hlog::parse(&text).expect("our own log");
        same(&run, &again)?;
        prop_assert_eq!(hlog::text(&again), text);
    }

    /// Goal: rule 10. Two processes that shared a load, merged, are the load. Method: random runs,
    /// split message by message.
    #[test]
    fn rule_10_halves_are_the_whole(plan in random::plan()) {
        halves_are_the_whole(&plan)?;
    }
}

/// Goal: rule 9. Thresholds are read, held against a run, and wrong ones name what was meant.
/// Method: a table of them on a run of 99 answers of 1 ms, one of 20 ms and one wait of 5 s.
#[test]
fn rule_9_thresholds() {
    let mut answers = vec![1000; 99];
    answers.push(20_000);
    let mut run = second(&answers, &[5_000_000], 0);
    run.intervals[0].counts.acknowledged_bytes = 2_500_000;
    let summary = Summary::of(&run);
    for (text, failed) in [
        ("p50>10ms", false),
        ("p50 > 999us", true),
        ("p50>=1001us", false),
        ("p50<2ms", true),
        ("p50<=0.5ms", false),
        ("response.p99>10ms", true),
        ("p99.9>10s", true),
        ("max>1h", true),
        ("service.max>1s", false),
        ("service.mean>1.1ms", true),
        ("end_to_end.p50>1ms", true),
        ("errors>0", true),
        ("errors>1", false),
        ("failed>0", false),
        ("unanswered>=1", true),
        ("acked_rate<1000", true),
        ("acked_rate<0.1k/s", false),
        ("acked_mb<2.4MB/s", false),
        ("error_share>1%", false),
        ("error_share>0.9%", true),
        ("lost>0", true),
        ("offered<1M", true),
    ] {
        match Gate::parse(text) {
            Ok(gate) => assert_eq!(gate.check(&summary).failed, failed, "{text}"),
            Err(error) => assert_eq!(text, "max>1h", "{error}"),
        }
    }
    for (text, holds) in [
        ("p50<10ms", true),
        ("p50<=1ms", true),
        ("p50<1ms", false),
        ("p99.9<10s", false),
        ("p99.9>1s", true),
        ("end_to_end.p50<1s", false),
    ] {
        assert_eq!(
            Gate::parse(text).expect(text).holds(&summary),
            holds,
            "{text}"
        );
    }
    for (text, words) in [
        ("p99", "no threshold"),
        ("p99>", "no threshold"),
        ("p99>10", "us, ms or s"),
        ("p99>tenms", "does not begin with a number"),
        ("eror>0", "did you mean `errors`?"),
        ("respons.p99>1ms", "did you mean `response.p99`?"),
        ("p101>1ms", "did you mean"),
        ("acked_rat<5", "did you mean `acked_rate`?"),
        ("errors>1ms", "no unit"),
        ("zookeeper>0", "there are p50"),
        ("p99>1.2.3ms", "does not begin with a number"),
    ] {
        let error = Gate::parse(text).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

/// Goal: rule 9. The outcome of a threshold is in every output. Method: a plan that has two.
#[test]
fn rule_9_thresholds_are_told() {
    let told = Told::of(&second(&[20_000; 5000], &[], 0));
    let document = told.document();
    assert_eq!(document["thresholds"][0]["fail_if"], "p99>10ms");
    assert_eq!(document["thresholds"][0]["failed"], true);
    assert_eq!(document["thresholds"][1]["failed"], false);
    assert!(
        told.table
            .contains("FAILED  fails if p99>10ms: measured 20.")
    );
    assert!(told.table.contains("ok      fails if errors>0: measured 0"));
    assert!(
        told.page
            .contains("✗</span> fails if <code>p99&gt;10ms</code>")
    );
}

/// Goal: rule 9. A run that proves nothing is never valid. Method: each way of failing.
#[test]
fn rule_9_verdicts() {
    let kind = |run: &Run| Summary::of(run).verdict.kind();
    assert_eq!(kind(&runs::empty_run()), Kind::NothingAcknowledged);
    assert_eq!(kind(&second(&[1000; 10], &[], 0)), Kind::Valid);
    assert_eq!(kind(&second(&[1000; 10], &[], 1)), Kind::Errors);
    assert_eq!(kind(&runs::generator_limited()), Kind::GeneratorLimited);
    assert_eq!(kind(&runs::search()), Kind::Valid);
    let overloaded = Summary::of(&runs::overloaded());
    assert!(
        overloaded.verdict.has(Kind::Overloaded),
        "{:?}",
        overloaded.verdict
    );
    let mut run = second(&[1000; 10], &[], 0);
    run.ended = penstock::load::run::Ended::Interrupted;
    assert_eq!(kind(&run), Kind::Interrupted);
    run.verification = Some(penstock::load::run::Verification::default());
    assert_eq!(kind(&run), Kind::VerificationFailed);
    run.verification = None;
    run.steps[0].rate_per_s = None;
    run.ended = penstock::load::run::Ended::Completed;
    let summary = Summary::of(&run);
    assert_eq!(summary.verdict.kind(), Kind::Valid);
    assert!(summary.verdict.notes[0].starts_with("closed loop"));
}

/// Goal: rule 10. A search is told by its confirmation, and every step is listed with its verdict;
/// warm-up is in the data and not in the figures. Method: a search, and a run with warm-up.
#[test]
fn rule_10_what_the_figures_are_over() {
    let run = runs::search();
    let told = Told::of(&run);
    let document = told.document();
    assert_eq!(
        document["summary"]["over"],
        "the step that confirmed the search"
    );
    assert_eq!(document["summary"]["offered"], 40_000);
    let steps = document["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 8);
    assert_eq!(steps[3]["verdict"], "generator-limited");
    assert_eq!(steps[7]["chosen"], true);
    assert_eq!(
        steps.iter().filter(|step| step["chosen"] == true).count(),
        1
    );
    assert!(told.table.contains("held <- answer"));
    let run = runs::calm(100.0, 5, 1);
    let document = Told::of(&run).document();
    assert_eq!(document["summary"]["measured_ms"], 3000);
    assert_eq!(document["summary"]["warm_up_ms"], 2000);
    assert_eq!(document["summary"]["offered"], 300);
    assert_eq!(document["intervals"].as_array().expect("a list").len(), 5);
}

/// Goal: rule 11. Keys carry their units; a plain locale sees plain letters; MiB appears nowhere.
/// Method: the keys of a full document, and the outputs' letters.
#[test]
fn rule_11_units_are_said() {
    let run = runs::stalled();
    let told = Told::of(&run);
    let mut keys = Vec::new();
    collect(&told.document(), &mut keys);
    let units = ["_us", "_ms", "_bytes", "_per_s", "_share", "_cores"];
    let measures = [
        "latency", "time", "duration", "length", "bytes", "rate", "lag",
    ];
    for key in keys {
        let measured = measures.iter().any(|word| key.contains(word));
        let said = units.iter().any(|unit| key.ends_with(unit));
        let container = ["schedule_lag", "rate"].contains(&key.as_str());
        assert!(
            !measured || said || container,
            "`{key}` does not say its unit"
        );
    }
    assert!(told.table.is_ascii(), "{}", told.table);
    let summary = Summary::of(&run);
    assert!(table::text(&run, &summary, Micro::Sign).contains("µs"));
    for text in [&told.table, &told.json, &told.csv, &told.page] {
        assert!(!text.contains("MiB") && !text.contains("KiB"));
    }
    assert!(told.table.contains("MB/s"));
}

fn collect(value: &Value, keys: &mut Vec<String>) {
    match value {
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, keys)),
        Value::Object(parts) => {
            for (key, part) in parts.iter().filter(|(key, _)| *key != "plan") {
                keys.push(key.clone());
                collect(part, keys);
            }
        }
        _ => {}
    }
}

/// Goal: a damaged or strange log is refused with its line, never a panic. Method: every line of a
/// log cut, doubled or left out.
#[test]
fn a_strange_log_is_refused() {
    let text = hlog::text(&runs::calm(100.0, 4, 1));
    let error = hlog::parse("#[Histogram log format version 1.3]\n").expect_err("no run");
    assert!(
        error.to_string().contains("no `#penstock-run` line"),
        "{error}"
    );
    let lines: Vec<&str> = text.lines().collect();
    for index in 0..lines.len() {
        for cut in [0, 1, lines[index].len() / 2, lines[index].len() - 1] {
            let mut changed = lines.clone();
            changed[index] = &lines[index][..cut];
            let _ = hlog::parse(&changed.join("\n"));
        }
        let mut changed = lines.clone();
        changed.swap(index, lines.len() - 1);
        let _ = hlog::parse(&changed.join("\n"));
    }
    let later = text.replace("\"schema_version\":1", "\"schema_version\":2");
    let error = hlog::parse(&later).expect_err("later");
    assert!(error.to_string().contains("later version"), "{error}");
    let mut huge = hdrhistogram::Histogram::<u64>::new(3).expect("three digits");
    huge.record(1 << 60).expect("recorded");
    let line = format!(
        "\nTag=response,0.000,1.000,1.000,{}\n",
        hlog::encoded(&huge)
    );
    let error = hlog::parse(&format!("{text}{line}")).expect_err("too large");
    assert!(error.to_string().contains("does not decode"), "{error}");
    let damaged = text.replacen("Tag=response", "Tag=respons", 1);
    let error = hlog::parse(&damaged).expect_err("damaged").to_string();
    assert!(
        error.starts_with("line 7: a histogram that belongs"),
        "{error}"
    );
}
