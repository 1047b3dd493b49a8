//! What hostile clients send: recorded requests of real clients with wild counts planted in them,
//! cuts, damage, and the first words of other protocols.

use std::collections::BTreeSet;

/// Largest frame the broker takes, as its documentation says, in bytes.
const FRAME_BYTES_MAX: i32 = 16 << 20;
/// Random frames beside the exhaustive ones.
const RANDOM_FRAMES: usize = 3000;
/// Places of a request where something is planted: longer ones repeat what shorter ones have.
const PLACES_MAX: usize = 160;

/// One recorded request of each served API and version: the shortest and the longest of each.
pub fn recorded(served: &[(i16, i16, i16)]) -> Vec<Vec<u8>> {
    let text = include_str!("../data/kafka-4.4.jsonl");
    let mut all: Vec<(i16, i16, Vec<u8>)> = Vec::new();
    for line in text.lines() {
        let json: serde_json::Value = serde_json::from_str(line).expect("a recorded pair");
        let bytes = unhex(json["request"].as_str().expect("a request"));
        let word = |at: usize| i16::from_be_bytes([bytes[at], bytes[at + 1]]);
        all.push((word(0), word(2), bytes));
    }
    let is_served = |key: i16, version: i16| {
        served
            .iter()
            .any(|&(api, min, max)| api == key && (min..=max).contains(&version))
    };
    all.retain(|(key, version, _)| is_served(*key, *version));
    all.sort_by_key(|(key, version, bytes)| (*key, *version, bytes.len()));
    let mut chosen = BTreeSet::new();
    for group in all.chunk_by(|left, right| (left.0, left.1) == (right.0, right.1)) {
        for request in [group.first(), group.last()].into_iter().flatten() {
            chosen.insert(request.2.clone());
        }
    }
    chosen.into_iter().collect()
}

/// Every hostile frame made of `requests`, length prefix included.
pub fn hostile(requests: &[Vec<u8>], seed: u64) -> Vec<Vec<u8>> {
    const COUNT: [u8; 4] = i32::MAX.to_be_bytes();
    const COMPACT_COUNT: [u8; 5] = [0xff, 0xff, 0xff, 0xff, 0x07];
    let mut frames = Vec::new();
    for request in requests {
        for at in 8..request.len().min(PLACES_MAX) {
            frames.push(framed(&overwritten(request, at, &COUNT)));
            frames.push(framed(&overwritten(request, at, &COMPACT_COUNT)));
            frames.push(framed(&request[..at]));
        }
    }
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..RANDOM_FRAMES {
        let request = &requests[random.usize(..requests.len())];
        let mut damaged = request.clone();
        for _ in 0..random.usize(1..8) {
            let at = random.usize(4..damaged.len());
            damaged[at] = [0, 0x7f, 0x80, 0xff, random.u8(..)][random.usize(..5)];
        }
        let mut frame = framed(&damaged);
        if random.u32(0..4) == 0 {
            frame.truncate(random.usize(1..frame.len())); // The rest never comes.
        }
        frames.push(frame);
    }
    frames
}

/// The first words of other protocols, and lengths no frame can have.
pub fn foreign() -> Vec<(&'static str, Vec<u8>)> {
    let mut tls = vec![
        0x16, 0x03, 0x01, 0x00, 0xc8, 0x01, 0x00, 0x00, 0xc4, 0x03, 0x03,
    ];
    tls.extend((0..194).map(|index| index as u8));
    let length = |length: i32| [&length.to_be_bytes()[..], &[0; 64]].concat();
    vec![
        ("HTTP", b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n".to_vec()),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("TLS", tls),
        ("Redis", b"*1\r\n$4\r\nPING\r\n".to_vec()),
        ("SSH", b"SSH-2.0-OpenSSH_9.6\r\n".to_vec()),
        ("SMTP", b"EHLO example.org\r\n".to_vec()),
        ("AMQP", b"AMQP\x00\x00\x09\x01".to_vec()),
        (
            "MQTT",
            b"\x10\x20\x00\x04MQTT\x04\x02\x00\x3c\x00\x14".to_vec(),
        ),
        ("length −1", length(-1)),
        ("length 2³¹ − 1", length(i32::MAX)),
        ("length −2³¹", length(i32::MIN)),
        ("length 0", length(0)),
        ("length 7", length(7)),
        (
            "one byte more than a frame may have",
            length(FRAME_BYTES_MAX + 1),
        ),
    ]
}

fn framed(body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len()).expect("recorded requests are short");
    [&length.to_be_bytes()[..], body].concat()
}

fn overwritten(request: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = request.to_vec();
    let end = frame.len().min(at + bytes.len());
    frame[at..end].copy_from_slice(&bytes[..end - at]);
    frame
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("hex") as u8;
    text.as_bytes()
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}
