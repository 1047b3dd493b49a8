//! One page of the broker's HTTP listener.

use crate::admin::error::AdminError;
use crate::env::blocking::BlockingStream;
use crate::limits;
use crate::metrics::Dump;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Why a page was not to be had.
#[derive(Debug)]
pub enum HttpError {
    /// Nobody answers at this address.
    Silent(String, io::Error),
    /// What answers at this address is no broker, or is in trouble.
    Foreign(String, String),
}

impl HttpError {
    /// Why, in a few words.
    #[must_use]
    pub fn cause(&self) -> String {
        match self {
            HttpError::Silent(_, error) => {
                let inner = error.get_ref().and_then(std::error::Error::source);
                let text = inner.map_or_else(|| error.to_string(), ToString::to_string);
                // "Connection refused (os error 111)": the number is for programs.
                text.split(" (os error")
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            }
            HttpError::Foreign(_, problem) => problem.clone(),
        }
    }
}

impl From<HttpError> for AdminError {
    fn from(error: HttpError) -> Self {
        AdminError::Broker(match error {
            HttpError::Silent(address, error) => format!(
                "{error}: no broker at {address}? `penstock serve` starts one; --http or \
                 PENSTOCK_HTTP names another"
            ),
            HttpError::Foreign(address, problem) => format!("{address}/dump: {problem}"),
        })
    }
}

/// Asks for the figures of all cores, waiting for at most `patience` at each step.
///
/// # Errors
/// Nobody answers, or what answers is no broker.
pub fn dump(address: &str, patience: Duration) -> Result<Dump, HttpError> {
    let body = get(address, "/dump", patience)?;
    let foreign = |problem: String| HttpError::Foreign(address.to_owned(), problem);
    let document = serde_json::from_slice(&body).map_err(|error| foreign(error.to_string()))?;
    Dump::from_json(&document).map_err(foreign)
}

/// Asks for one page.
fn get(address: &str, path: &str, patience: Duration) -> Result<Vec<u8>, HttpError> {
    let failed = |error: io::Error| HttpError::Silent(address.to_owned(), error);
    let mut stream = BlockingStream::connect(address, patience).map_err(failed)?;
    // Version 1.0: the body is what comes until the end, in one piece.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = Vec::new();
    let limit = u64::try_from(limits::CLIENT_HTTP_BYTES_MAX).unwrap_or(u64::MAX);
    stream
        .take(limit)
        .read_to_end(&mut answer)
        .map_err(failed)?;
    body(&answer).map_err(|problem| HttpError::Foreign(address.to_owned(), problem))
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
}
