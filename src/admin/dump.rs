//! `penstock dump`: the broker's metrics as JSON; what happened between two dumps, with rates; or a
//! dump a line, for ever, which `penstock top --from` plays back.

use super::cli::DumpArgs;
use super::client::http;
use super::error::AdminError;
use super::output::{self, Output};
use crate::env::blocking::read_file;
use crate::env::process;
use crate::limits;
use crate::metrics::Dump;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_millis(limits::CLIENT_TIMEOUT_MS);

/// Runs the verb.
///
/// # Errors
/// The broker's HTTP address does not answer, or a file is no dump.
pub fn run(args: &DumpArgs, out: &mut Output) -> Result<(), AdminError> {
    if args.follow {
        return follow(args, out);
    }
    let mut document = match (args.diff.as_deref(), &args.file, args.interval) {
        (Some([earlier, later]), ..) => difference(&read(earlier)?, &read(later)?)?,
        (Some(_), ..) => return Err(AdminError::Usage("--diff takes two files".into())),
        (None, Some(file), _) => read(file)?.to_json(),
        (None, None, Some(seconds)) => {
            let earlier = http::dump(&args.http, PATIENCE)?;
            process::sleep_blocking(interval(seconds)?);
            difference(&earlier, &http::dump(&args.http, PATIENCE)?)?
        }
        (None, None, None) => http::dump(&args.http, PATIENCE)?.to_json(),
    };
    if args.brief {
        strip(&mut document);
    }
    out.json(&document)?;
    out.flush()
}

/// A dump a line. A broker that goes away is waited for: this may be running when it matters.
fn follow(args: &DumpArgs, out: &mut Output) -> Result<(), AdminError> {
    let pause = interval(args.interval.unwrap_or(1.0))?;
    let mut left = args.count.unwrap_or(u64::MAX);
    let mut next_ns = process::monotonic_ns();
    let mut lost = false;
    while left > 0 {
        match http::dump(&args.http, PATIENCE) {
            Ok(dump) => {
                let mut document = dump.to_json();
                if args.brief {
                    strip(&mut document);
                }
                out.line(&document.to_string())?;
                out.flush()?;
                left -= 1;
                lost = false;
            }
            Err(_) if lost => {}
            Err(error) => {
                let error = AdminError::from(error);
                output::note(&format!("penstock: {error}; trying again"));
                lost = true;
            }
        }
        next_ns += pause.as_nanos() as u64;
        let now_ns = process::monotonic_ns();
        next_ns = next_ns.max(now_ns);
        if left > 0 {
            process::sleep_blocking(Duration::from_nanos(next_ns - now_ns).max(pause / 10));
        }
    }
    Ok(())
}

/// An interval as it was typed.
///
/// # Errors
/// It is not between a hundredth of a second and a day.
pub fn interval(seconds: f64) -> Result<Duration, AdminError> {
    if (0.01..=86_400.0).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    let text = format!("an interval is between 0.01 and 86400 seconds, not {seconds}");
    Err(AdminError::Usage(text))
}

/// What happened between two dumps: counters and distributions are differences, gauges are as they
/// were at the end, and `rates` has every counter by the second.
fn difference(earlier: &Dump, later: &Dump) -> Result<Value, AdminError> {
    if later.unix_ms <= earlier.unix_ms {
        let text = "the second dump is not later than the first";
        return Err(AdminError::Usage(text.into()));
    }
    let since = later.since(earlier);
    let mut document = since.to_json();
    document["rates"] = since.rates_to_json();
    Ok(document)
}

/// The dump in a file; the last one where there is one a line.
fn read(name: &str) -> Result<Dump, AdminError> {
    let bytes = read_file(Path::new(name), limits::CLIENT_HTTP_BYTES_MAX)
        .map_err(|error| AdminError::Input("a dump".into(), error))?;
    parse(&bytes).map_err(|problem| AdminError::Usage(format!("{name} is no dump: {problem}")))
}

fn parse(bytes: &[u8]) -> Result<Dump, String> {
    let mut lines = bytes.rsplit(|byte| *byte == b'\n');
    let last = lines.find(|line| !line.trim_ascii().is_empty());
    let document = serde_json::from_slice(bytes)
        .or_else(|whole| serde_json::from_slice(last.unwrap_or_default()).map_err(|_| whole))
        .map_err(|error| error.to_string())?;
    Dump::from_json(&document)
}

/// Removes the encoded histograms, which are not for people.
fn strip(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.shift_remove("hdr_v2_base64");
            object.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(unix_ms: i64) -> Value {
        json!({"schema": crate::metrics::SCHEMA, "unix_ms": unix_ms, "cores": []})
    }

    /// Goal: a dump is found in a file of one, pretty or not, and of many lines; rubbish is none.
    #[test]
    fn the_last_dump_of_a_file_counts() {
        let pretty = format!("{:#}\n", at(5));
        assert_eq!(parse(pretty.as_bytes()).expect("one").unix_ms, 5);
        let lines = format!("{}\n{}\n\n", at(6), at(7));
        assert_eq!(parse(lines.as_bytes()).expect("many").unix_ms, 7);
        assert!(parse(b"").is_err() && parse(b"{").is_err() && parse(b"[]").is_err());
    }

    /// Goal: a difference needs an order, and has rates. Method: both orders.
    #[test]
    fn differences_go_forward() {
        let dump = |unix_ms| Dump::from_json(&at(unix_ms)).expect("a dump");
        let document = difference(&dump(1000), &dump(3000)).expect("forward");
        assert_eq!(document["rates"]["interval_ms"], 2000);
        assert!(difference(&dump(3000), &dump(1000)).is_err());
        assert!(interval(0.0).is_err() && interval(f64::NAN).is_err() && interval(1.5).is_ok());
    }

    /// Goal: a brief dump keeps everything but the encodings.
    #[test]
    fn brief_drops_only_the_encodings() {
        let mut value = json!({"a": [{"hdr_v2_base64": "x", "count": 1}]});
        strip(&mut value);
        assert_eq!(value, json!({"a": [{"count": 1}]}));
    }
}
