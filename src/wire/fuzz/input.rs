//! Inputs: valid ones made up, and what becomes of them when they are damaged.

use super::{Target, any_request_frame, batch, request_body, response_frame};
use crate::wire::frame::PREFIX_BYTES;
use crate::wire::schema::Entropy;

/// Numbers that break decoders which believe them, as lengths of each width.
const BOMBS: [&[u8]; 12] = [
    &[0x7f, 0xff, 0xff, 0xff],
    &[0x80, 0x00, 0x00, 0x00],
    &[0xff, 0xff, 0xff, 0xff],
    &[0xff, 0xff, 0xff, 0xfe],
    &[0x00, 0x0f, 0x42, 0x40],
    &[0x00, 0x01, 0x86, 0xa0],
    &[0x7f, 0xff],
    &[0xff, 0xfe],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0x7f],
    &[0x80, 0x80, 0x80, 0x80, 0x08],
    &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
];
/// Longest input that damage grows.
const INPUT_BYTES_MAX: usize = 64 << 10;
/// Fewest bytes behind the count of a bloated input; half of it hides in the heap's slack.
const BLOAT_BYTES_MIN: usize = 16 << 10;
/// Longest input of pure noise.
const NOISE_BYTES_MAX: usize = 96;

/// Makes up a valid input of `target`, or sometimes noise.
#[must_use]
pub fn sample(target: Target, entropy: &mut Entropy) -> Vec<u8> {
    if entropy.one_in(16) {
        return entropy.bytes(NOISE_BYTES_MAX);
    }
    if entropy.one_in(128) {
        return bloated(target, entropy);
    }
    valid(target, entropy)
}

/// A count of thousands with the bytes for it: what a decoder that sizes a list by a count it has
/// good reason to believe would pay for, many bytes of heap for each byte that came.
fn bloated(target: Target, entropy: &mut Entropy) -> Vec<u8> {
    let mut input = match entropy.one_in(2) {
        true => Vec::new(),
        false => valid(target, entropy),
    };
    input.truncate(entropy.below(input.len() + 1));
    let filler = [0, 0, 1, 2][entropy.below(4)];
    let bytes = BLOAT_BYTES_MIN + entropy.below(BLOAT_BYTES_MIN);
    let count = (bytes / [1, 2, 3, 4, 6, 8, 12, 16][entropy.below(8)]) as u32;
    if entropy.one_in(2) {
        input.extend_from_slice(&count.to_be_bytes());
    } else {
        let compact = count + 1;
        let low = [compact, compact >> 7].map(|bits| (bits & 0x7f) as u8 | 0x80);
        input.extend_from_slice(&low);
        input.push((compact >> 14) as u8);
    }
    input.resize(input.len() + bytes, filler);
    input
}

fn valid(target: Target, entropy: &mut Entropy) -> Vec<u8> {
    match target {
        Target::Frames => {
            let mut stream = vec![entropy.bits() as u8];
            for _ in 0..entropy.below(4) {
                let frame = any_request_frame(entropy);
                stream.extend_from_slice(&(frame.len() as i32).to_be_bytes());
                stream.extend_from_slice(&frame);
            }
            stream
        }
        Target::Requests => {
            let mut frame = any_request_frame(entropy).to_vec();
            if entropy.one_in(2) {
                frame[0] = 0;
                frame[1] = entropy.below(96) as u8;
            }
            if entropy.one_in(4) {
                frame[3] = entropy.below(20) as u8;
            }
            frame
        }
        Target::Request { api_key, version } => request_body(api_key, version, entropy),
        Target::Response { api_key, version } => response_frame(api_key, version, entropy).to_vec(),
        Target::Batches => batch::sample(entropy),
    }
}

/// Damages an input in up to four places.
pub fn mutate(input: &mut Vec<u8>, entropy: &mut Entropy) {
    for _ in 0..=entropy.below(4) {
        let at = entropy.below(input.len() + 1);
        match entropy.below(8) {
            0 if at < input.len() => input[at] ^= 1 << entropy.below(8),
            1 if at < input.len() => input[at] = entropy.bits() as u8,
            2 => input.truncate(at),
            3 => overwrite(input, at, BOMBS[entropy.below(BOMBS.len())]),
            4 => {
                let bomb = BOMBS[entropy.below(BOMBS.len())];
                input.splice(at..at, bomb.iter().copied());
            }
            5 => {
                let end = at + entropy.below(input.len() - at + 1);
                let copy = input[at..end].to_vec();
                let times = 1 + entropy.below(8);
                for _ in 0..times {
                    input.splice(at..at, copy.iter().copied());
                }
            }
            6 => {
                let end = at + entropy.below((input.len() - at).min(PREFIX_BYTES) + 1);
                input.drain(at..end);
            }
            _ => input.extend(entropy.bytes(NOISE_BYTES_MAX)),
        }
        input.truncate(INPUT_BYTES_MAX);
    }
}

fn overwrite(input: &mut [u8], at: usize, bytes: &[u8]) {
    for (target, source) in input[at..].iter_mut().zip(bytes) {
        *target = *source;
    }
}
