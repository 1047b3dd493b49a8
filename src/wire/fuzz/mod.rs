//! The bodies of the fuzz targets: what every input must not do, whatever it is.
//!
//! One execution takes some bytes through a decoder and asserts: no panic; the heap at its peak
//! within bounds (measured by the caller's [`Meter`]); no more work than bytes; what was decoded
//! encodes to no more bytes than came, and decodes from those to the same value.
//!
//! The bodies are ordinary code, so that `tests/fuzz.rs` runs them seeded on stable Rust and
//! `tests/fuzz/` under libFuzzer. Inputs of the seeded runs come from [`input`].

mod batch;
mod input;

use bytes::Bytes;

pub use input::{mutate, sample};

use super::RequestHeader;
use super::frame::{FrameBounds, FrameSplitter, PREFIX_BYTES};
use super::refusal::{self, Refusal};
use super::request::{self, Request};
use super::response::{self, Response};
use super::schema::Entropy;
use super::versions::{self, SERVED};

/// Heap that decoding may take beside twice the input: 64 KiB.
pub const HEAP_SLACK_BYTES: usize = 64 << 10;
/// Heap of codecs' own tables and blocks (LZ4 frames have blocks of up to 8 MiB).
const CODEC_HEAP_BYTES: usize = 24 << 20;

/// What is fuzzed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target {
    /// The frame splitter, fed in pieces.
    Frames,
    /// Whole request frames: header, then decode or refuse.
    Requests,
    /// The body of a served request.
    Request {
        /// Its API key.
        api_key: i16,
        /// Its version.
        version: i16,
    },
    /// The body of a served response, as a client reads it.
    Response {
        /// Its API key.
        api_key: i16,
        /// Its version.
        version: i16,
    },
    /// Record batches, their records and codecs.
    Batches,
}

/// Measures the heap of some work.
pub trait Meter {
    /// Does `work`; returns by how many bytes the heap grew at its peak.
    fn peak(&self, work: &mut dyn FnMut()) -> usize;
}

/// Measures nothing, for runs whose allocator does not count.
#[derive(Clone, Copy, Debug)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn peak(&self, work: &mut dyn FnMut()) -> usize {
        work();
        0
    }
}

/// One execution.
///
/// # Panics
/// The decoder broke one of its promises.
pub fn run(target: Target, input: &[u8], meter: &dyn Meter) {
    match target {
        Target::Frames => frames(input, meter),
        Target::Requests => requests(input, meter),
        Target::Request { api_key, version } => request(api_key, version, input, meter),
        Target::Response { api_key, version } => response(api_key, version, input, meter),
        Target::Batches => batch::batches(input, meter),
    }
}

/// A served version of an API, by chance.
#[must_use]
pub fn version_of(api_key: i16, entropy: &mut Entropy) -> i16 {
    let range = versions::served(api_key).expect("a served API");
    let versions: Vec<i16> = (range.min..=range.max)
        .filter(|version| versions::support(api_key, *version).is_served())
        .collect();
    versions[entropy.below(versions.len())]
}

/// Runs `work` once under the meter and asserts the bound on its heap.
fn bounded<T>(bound: usize, meter: &dyn Meter, mut work: impl FnMut() -> T) -> T {
    let mut outcome = None;
    let peak = meter.peak(&mut || outcome = Some(work()));
    assert!(peak <= bound, "{peak} bytes of heap, the bound is {bound}");
    outcome.expect("the meter does the work")
}

fn decode_bound(input: &[u8]) -> usize {
    2 * input.len() + HEAP_SLACK_BYTES
}

/// The first byte says how long the pieces are.
fn frames(input: &[u8], meter: &dyn Meter) {
    let Some((piece, stream)) = input.split_first() else {
        return;
    };
    let mut entropy = Entropy::new(u64::from(*piece));
    let bounds = FrameBounds::REQUEST;
    let frames = bounded(decode_bound(input) + frames_bytes(stream), meter, || {
        let mut splitter = FrameSplitter::new(bounds);
        let mut frames = Vec::new();
        let mut rest = stream;
        while !rest.is_empty() {
            let length = entropy.below(64).min(rest.len() - 1) + 1;
            splitter.feed(&rest[..length]);
            rest = &rest[length..];
            while let Ok(Some(frame)) = splitter.next_frame() {
                frames.push(frame);
            }
        }
        assert!(splitter.buffered() <= stream.len());
        frames
    });
    let mut rest = stream;
    for frame in frames {
        let prefix = rest.first_chunk::<PREFIX_BYTES>().expect("a frame has one");
        assert_eq!(bounds.check(*prefix), Ok(frame.len()));
        let whole = PREFIX_BYTES + frame.len();
        assert_eq!(frame, rest[PREFIX_BYTES..whole]);
        rest = &rest[whole..];
    }
    if let Some(prefix) = rest.first_chunk::<PREFIX_BYTES>()
        && let Ok(length) = bounds.check(*prefix)
    {
        assert!(
            PREFIX_BYTES + length > rest.len(),
            "a whole frame was held back"
        );
    }
}

/// The list of frames that the body itself keeps: a handle for every twelve bytes at most.
fn frames_bytes(stream: &[u8]) -> usize {
    2 * size_of::<Bytes>() * (stream.len() / (PREFIX_BYTES + FrameBounds::REQUEST.bytes_min) + 4)
}

fn requests(input: &[u8], meter: &dyn Meter) {
    let frame = Bytes::copy_from_slice(input);
    bounded(decode_bound(input), meter, || {
        let Ok((header, body)) = RequestHeader::decode(&frame) else {
            return;
        };
        if versions::support(header.api_key, header.api_version).is_served() {
            let _decoded = request::decode(&header, &body);
        } else if let Refusal::Answer(answer) = refusal::refuse(&header, &body) {
            let length = (answer.len() - PREFIX_BYTES) as u32;
            assert_eq!(answer[..4], length.to_be_bytes());
            assert_eq!(answer[4..8], header.correlation_id.to_be_bytes());
        }
    });
}

fn request(api_key: i16, version: i16, input: &[u8], meter: &dyn Meter) {
    let header = RequestHeader {
        api_key,
        api_version: version,
        ..RequestHeader::default()
    };
    let body = Bytes::copy_from_slice(input);
    let decode = || request::decode(&header, &body);
    let Ok(decoded) = bounded(decode_bound(input), meter, decode) else {
        return;
    };
    let frame = request::encode(&header, &decoded).expect("what was read can be written");
    let (_, again) = RequestHeader::decode(&frame.slice(PREFIX_BYTES..)).expect("our own header");
    assert!(
        again.len() <= input.len(),
        "more was made of the request than came"
    );
    let again = request::decode(&header, &again);
    assert_eq!(again.as_ref(), Ok(&decoded));
}

fn response(api_key: i16, version: i16, input: &[u8], meter: &dyn Meter) {
    let frame = Bytes::copy_from_slice(input);
    let decode = || response::decode(api_key, version, &frame);
    let Ok((id, decoded)) = bounded(decode_bound(input), meter, decode) else {
        return;
    };
    let encoded = response::encode(api_key, version, id, &decoded);
    let again = encoded
        .expect("what was read can be written")
        .slice(PREFIX_BYTES..);
    assert!(
        again.len() <= input.len(),
        "more was made of the response than came"
    );
    let again = response::decode(api_key, version, &again);
    assert_eq!(again, Ok((id, decoded)));
}

/// Makes up a served request body, encoded in `version`.
#[must_use]
pub fn request_body(api_key: i16, version: i16, entropy: &mut Entropy) -> Vec<u8> {
    let frame = request_frame(api_key, version, entropy);
    let (_, body) = RequestHeader::decode(&frame).expect("our own header");
    body.to_vec()
}

fn request_frame(api_key: i16, version: i16, entropy: &mut Entropy) -> Bytes {
    let request = Request::sample(api_key, version, entropy).expect("a served API");
    let header = RequestHeader {
        api_key,
        api_version: version,
        correlation_id: entropy.integer() as i32,
        client_id: None,
    };
    let frame = request::encode(&header, &request).expect("samples are short");
    frame.slice(PREFIX_BYTES..)
}

fn response_frame(api_key: i16, version: i16, entropy: &mut Entropy) -> Bytes {
    let response = Response::sample(api_key, version, entropy).expect("a served API");
    let id = entropy.integer() as i32;
    let frame = response::encode(api_key, version, id, &response).expect("samples are short");
    frame.slice(PREFIX_BYTES..)
}

fn any_request_frame(entropy: &mut Entropy) -> Bytes {
    let api_key = SERVED[entropy.below(SERVED.len())].key;
    let version = version_of(api_key, entropy);
    request_frame(api_key, version, entropy)
}
