//! The recorded conversations of eleven stock clients with Apache Kafka 4.4: tests/data/README.md.

use bytes::Bytes;

/// One request and what Kafka answered.
pub(in crate::wire) struct Pair {
    /// Who asked.
    pub client: String,
    /// Which API.
    pub api_key: i16,
    /// Which version.
    pub version: i16,
    /// From the request header on.
    pub request: Bytes,
    /// From the response header on; none to a Produce with acks 0.
    pub response: Option<Bytes>,
}

/// Every recorded pair.
pub(in crate::wire) fn recording() -> Vec<Pair> {
    let lines = include_str!("../../../tests/data/kafka-4.4.jsonl");
    let pairs: Vec<Pair> = lines.lines().map(pair).collect();
    assert!(pairs.len() > 400, "the recording is whole");
    pairs
}

fn pair(line: &str) -> Pair {
    let value: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
    let number = |name: &str| value[name].as_i64().expect("a number") as i16;
    Pair {
        client: value["client"].as_str().expect("a name").to_owned(),
        api_key: number("api_key"),
        version: number("version"),
        request: unhex(value["request"].as_str().expect("hex")),
        response: value["response"].as_str().map(unhex),
    }
}

fn unhex(hex: &str) -> Bytes {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("a hex digit") as u8;
    let pairs = hex.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}
