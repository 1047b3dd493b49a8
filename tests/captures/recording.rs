//! The recorded conversations, one list for each client, in the order they happened.

use bytes::Bytes;
use penstock::wire::{DecodeError, Response, response, versions};

/// One request and what Kafka answered.
pub struct Pair {
    /// Who asked.
    pub client: String,
    /// The API's name.
    pub api: String,
    /// Which API.
    pub api_key: i16,
    /// Which version.
    pub version: i16,
    /// From the request header on.
    pub request: Bytes,
    /// From the response header on; none to a Produce with acks 0.
    pub response: Option<Bytes>,
}

impl Pair {
    /// What Kafka answered; this API must be a served one.
    pub fn answer(&self) -> Option<Response> {
        let recorded = self.response.as_ref()?;
        let (_, answer) = self.decode(recorded).expect("a recorded answer");
        Some(answer)
    }

    /// Decodes an answer to this request, whoever gave it.
    pub fn decode(&self, answer: &Bytes) -> Result<(i32, Response), DecodeError> {
        // An ApiVersions of an unknown version is answered in version 0, with error 35.
        let is_api_versions = self.api_key == versions::API_VERSIONS;
        let version = match answer.get(4..6) {
            Some([0, 35]) if is_api_versions => 0,
            _ => self.version,
        };
        response::decode(self.api_key, version, answer)
    }
}

/// Every recorded pair, by client.
pub fn by_client() -> Vec<(String, Vec<Pair>)> {
    let mut clients: Vec<(String, Vec<Pair>)> = Vec::new();
    for line in include_str!("../data/kafka-4.4.jsonl").lines() {
        let pair = pair(line);
        match clients
            .iter_mut()
            .find(|(client, _)| *client == pair.client)
        {
            Some((_, pairs)) => pairs.push(pair),
            None => clients.push((pair.client.clone(), vec![pair])),
        }
    }
    assert_eq!(clients.len(), 11, "the recording is whole");
    clients
}

fn pair(line: &str) -> Pair {
    let value: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
    let number = |name: &str| {
        let number = value[name].as_i64().expect("a number");
        i16::try_from(number).expect("keys and versions are small")
    };
    let text = |name: &str| value[name].as_str().expect("a text").to_owned();
    Pair {
        client: text("client"),
        api: text("api"),
        api_key: number("api_key"),
        version: number("version"),
        request: unhex(&text("request")),
        response: value["response"].as_str().map(unhex),
    }
}

fn unhex(hex: &str) -> Bytes {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hex digit") as u8;
    let pairs = hex.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}
