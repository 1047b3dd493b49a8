//! `penstock dump`: the broker's metrics as JSON, or what happened between two saved dumps.

use super::cli::DumpArgs;
use super::error::AdminError;
use super::output::Output;
use crate::env::blocking::{BlockingStream, read_file};
use crate::limits;
use crate::metrics::Dump;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

/// Runs the verb.
///
/// # Errors
/// The broker's HTTP address does not answer, or a file is no dump.
pub fn run(args: &DumpArgs, out: &mut Output) -> Result<(), AdminError> {
    let mut document = match args.diff.as_deref() {
        Some([earlier, later]) => read(later)?.since(&read(earlier)?).to_json(),
        Some(_) => return Err(AdminError::Usage("--diff takes two files".into())),
        None => {
            let body = get(&args.http, "/dump")?;
            serde_json::from_slice(&body).map_err(|error| {
                AdminError::Broker(format!("{} answered no JSON: {error}", args.http))
            })?
        }
    };
    if args.brief {
        strip(&mut document);
    }
    out.json(&document)?;
    out.flush()
}

/// What a broker says of itself now.
///
/// # Errors
/// Nobody answers there, or it is no broker of ours.
pub fn fetch(address: &str) -> Result<Dump, AdminError> {
    let bytes = get(address, "/dump")?;
    let no_dump =
        |problem: String| AdminError::Broker(format!("{address} is no Penstock: {problem}"));
    let document = serde_json::from_slice(&bytes).map_err(|error| no_dump(error.to_string()))?;
    Dump::from_json(&document).map_err(no_dump)
}

fn read(name: &str) -> Result<Dump, AdminError> {
    let bytes = read_file(Path::new(name), limits::CLIENT_HTTP_BYTES_MAX)
        .map_err(|error| AdminError::Input("a dump".into(), error))?;
    let no_dump = |problem: String| AdminError::Usage(format!("{name} is no dump: {problem}"));
    let document = serde_json::from_slice(&bytes).map_err(|error| no_dump(error.to_string()))?;
    Dump::from_json(&document).map_err(no_dump)
}

/// Removes the encoded histograms, which are not for people.
fn strip(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.remove("hdr_v2_base64");
            object.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Asks for one page over HTTP.
fn get(address: &str, path: &str) -> Result<Vec<u8>, AdminError> {
    let failed = |error: io::Error| {
        AdminError::Broker(format!(
            "{error}: no broker at {address}? `penstock serve` starts one; --http or \
             PENSTOCK_HTTP names another"
        ))
    };
    let timeout = Duration::from_millis(limits::CLIENT_TIMEOUT_MS);
    let mut stream = BlockingStream::connect(address, timeout).map_err(failed)?;
    // Version 1.0: the body is what comes until the end, in one piece.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = Vec::new();
    let limit = u64::try_from(limits::CLIENT_HTTP_BYTES_MAX).unwrap_or(u64::MAX);
    stream
        .take(limit)
        .read_to_end(&mut answer)
        .map_err(failed)?;
    body(&answer).map_err(|problem| AdminError::Broker(format!("{address}{path}: {problem}")))
}

/// The body of a whole HTTP answer, if it is a good one.
fn body(answer: &[u8]) -> Result<Vec<u8>, String> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.ok_or("the answer is no HTTP")?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    let code = status.split(' ').nth(1).unwrap_or_default();
    if !status.starts_with("HTTP/1.") || code != "200" {
        return Err(format!("the answer is `{status}`"));
    }
    let body = &answer[end + 4..];
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find_map(|(name, value)| {
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>())
        });
    match length {
        Some(Ok(length)) if length != body.len() => Err(format!(
            "the answer was cut off: {} of {length} bytes",
            body.len()
        )),
        _ => Ok(body.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Goal: only a whole, good answer counts. Method: one of each sort.
    #[test]
    fn only_a_good_answer_counts() {
        let good = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(body(good), Ok(b"{}".to_vec()));
        assert_eq!(body(b"HTTP/1.0 200 OK\r\n\r\nabc"), Ok(b"abc".to_vec()));
        let cut = body(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}");
        assert!(cut.expect_err("cut").contains("2 of 9"));
        assert!(
            body(b"HTTP/1.1 404 Not Found\r\n\r\n")
                .expect_err("404")
                .contains("404")
        );
        assert!(body(b"\x00\x00").is_err());
    }

    /// Goal: a brief dump keeps everything but the encodings.
    #[test]
    fn brief_drops_only_the_encodings() {
        let mut value = json!({"a": [{"hdr_v2_base64": "x", "count": 1}]});
        strip(&mut value);
        assert_eq!(value, json!({"a": [{"count": 1}]}));
    }
}
