//! Self-describing values: a payload that names its producer, its place in that producer's order
//! and its own length and checksum, so that every read proves its own bytes.
//!
//! ```text
//!  0        4          8           16        20      24
//!  ┌────────┬──────────┬───────────┬─────────┬───────┬───────────────┐
//!  │ "pnsv" │ producer │ sequence  │ length  │ crc   │ filler …      │
//!  │ 4 B    │ u32 LE   │ u64 LE    │ u32 LE  │ u32 LE│ to `length`   │
//!  └────────┴──────────┴───────────┴─────────┴───────┴───────────────┘
//! ```
//! `length` is the whole payload; `crc` is the CRC32C of every byte but its own four. The filler
//! follows from producer and sequence, so two values never share their bytes.

use std::fmt;

/// Smallest payload that can describe itself, in bytes.
pub const VALUE_BYTES_MIN: usize = 24;

const MAGIC: [u8; 4] = *b"pnsv";
const CRC_AT: usize = 20;

/// What a payload says of itself. The unit in which histories count.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Value {
    /// The producer that made it; unique over a campaign.
    pub producer: u32,
    /// Its place in that producer's order, from 0.
    pub sequence: u64,
    /// Payload length in bytes.
    pub length: u32,
    /// CRC32C of the payload without the checksum itself.
    pub crc: u32,
}

impl Value {
    /// The producer number of a payload that does not describe itself, or not truly: never sent by
    /// anybody, so that reading it is a violation of L4.
    pub const FOREIGN_PRODUCER: u32 = u32::MAX;

    /// Stands for a payload that [`parse`] refused.
    #[must_use]
    pub fn foreign(payload: &[u8]) -> Value {
        Value {
            producer: Self::FOREIGN_PRODUCER,
            sequence: 0,
            length: u32::try_from(payload.len()).unwrap_or(u32::MAX),
            crc: crc32c::crc32c(payload),
        }
    }

    /// Whether this stands for a payload that does not describe itself.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.producer == Self::FOREIGN_PRODUCER
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_foreign() {
            return write!(f, "foreign bytes ({} B, crc {:08x})", self.length, self.crc);
        }
        let Value {
            producer,
            sequence,
            length,
            crc,
        } = self;
        write!(f, "p{producer}#{sequence} ({length} B, crc {crc:08x})")
    }
}

/// Why a payload does not prove itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Damage {
    /// Shorter than [`VALUE_BYTES_MIN`], or without the magic: not one of ours.
    NotAValue,
    /// Its bytes are more or fewer than it says.
    Length,
    /// Its checksum does not match its bytes.
    Checksum,
}

/// Makes the payload of `producer`'s value `sequence`, `length_bytes` long (at least
/// [`VALUE_BYTES_MIN`]), and what it says of itself.
#[must_use]
pub fn build(producer: u32, sequence: u64, length_bytes: usize) -> (Value, Vec<u8>) {
    assert!(length_bytes >= VALUE_BYTES_MIN, "a value has a head");
    assert!(
        producer != Value::FOREIGN_PRODUCER,
        "the number of foreign bytes is taken"
    );
    let length = u32::try_from(length_bytes).expect("a payload is far below 4 GiB");
    let mut payload = Vec::with_capacity(length_bytes);
    payload.extend_from_slice(&MAGIC);
    payload.extend_from_slice(&producer.to_le_bytes());
    payload.extend_from_slice(&sequence.to_le_bytes());
    payload.extend_from_slice(&length.to_le_bytes());
    payload.extend_from_slice(&[0; 4]);
    fill(
        &mut payload,
        u64::from(producer) << 40 ^ sequence,
        length_bytes,
    );
    let crc = checksum(&payload);
    payload[CRC_AT..VALUE_BYTES_MIN].copy_from_slice(&crc.to_le_bytes());
    (
        Value {
            producer,
            sequence,
            length,
            crc,
        },
        payload,
    )
}

/// Makes bytes that are there already describe themselves, in place; with `sealed` they also prove
/// themselves. For who makes very many.
///
/// # Panics
/// There are fewer than [`VALUE_BYTES_MIN`], or the producer is that of foreign bytes.
pub fn stamp(payload: &mut [u8], producer: u32, sequence: u64, sealed: bool) {
    assert!(payload.len() >= VALUE_BYTES_MIN, "a value has a head");
    assert!(
        producer != Value::FOREIGN_PRODUCER,
        "the number of foreign bytes is taken"
    );
    let length = u32::try_from(payload.len()).expect("a payload is far below 4 GiB");
    payload[..4].copy_from_slice(&MAGIC);
    payload[4..8].copy_from_slice(&producer.to_le_bytes());
    payload[8..16].copy_from_slice(&sequence.to_le_bytes());
    payload[16..CRC_AT].copy_from_slice(&length.to_le_bytes());
    let crc = if sealed { checksum(payload) } else { 0 };
    payload[CRC_AT..VALUE_BYTES_MIN].copy_from_slice(&crc.to_le_bytes());
}

/// Producer and sequence that `payload` claims, without any proof.
#[must_use]
pub fn claimed(payload: &[u8]) -> Option<(u32, u64)> {
    let rest = payload.strip_prefix(&MAGIC)?;
    let (producer, rest) = rest.split_first_chunk::<4>()?;
    let sequence = rest.first_chunk::<8>()?;
    Some((u32::from_le_bytes(*producer), u64::from_le_bytes(*sequence)))
}

/// Reads back what `payload` says of itself, after proving it.
///
/// # Errors
/// The payload was not made by [`build`], or is not as it was made.
pub fn parse(payload: &[u8]) -> Result<Value, Damage> {
    if payload.len() < VALUE_BYTES_MIN || payload[..4] != MAGIC {
        return Err(Damage::NotAValue);
    }
    let word = |at: usize| {
        let bytes: [u8; 4] = payload[at..at + 4]
            .try_into()
            .expect("four bytes, checked above");
        u32::from_le_bytes(bytes)
    };
    let length = word(16);
    if length as usize != payload.len() {
        return Err(Damage::Length);
    }
    let crc = word(CRC_AT);
    if crc != checksum(payload) {
        return Err(Damage::Checksum);
    }
    let sequence = u64::from(word(8)) | u64::from(word(12)) << 32;
    Ok(Value {
        producer: word(4),
        sequence,
        length,
        crc,
    })
}

/// The fingerprint of a whole record: key, headers, timestamp and payload, null told from empty.
/// Two records with the same digest are the same record, byte for byte, as far as clients can see.
#[must_use]
pub fn digest<'a>(
    key: Option<&[u8]>,
    headers: impl IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    timestamp_ms: i64,
    payload: Option<&[u8]>,
) -> u32 {
    let mut crc = crc32c::crc32c(&timestamp_ms.to_le_bytes());
    crc = field(crc, key);
    crc = field(crc, payload);
    for (name, value) in headers {
        crc = field(crc, Some(name));
        crc = field(crc, value);
    }
    crc
}

fn field(crc: u32, bytes: Option<&[u8]>) -> u32 {
    let length = bytes.map_or(-1, |bytes| i64::try_from(bytes.len()).unwrap_or(i64::MAX));
    let crc = crc32c::crc32c_append(crc, &length.to_le_bytes());
    crc32c::crc32c_append(crc, bytes.unwrap_or_default())
}

fn checksum(payload: &[u8]) -> u32 {
    crc32c::crc32c_append(
        crc32c::crc32c(&payload[..CRC_AT]),
        &payload[VALUE_BYTES_MIN..],
    )
}

/// Appends incompressible-looking bytes that follow from `seed` (xorshift64*), up to
/// `length_bytes`.
fn fill(payload: &mut Vec<u8>, seed: u64, length_bytes: usize) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while payload.len() < length_bytes {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let word = state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
        let rest = length_bytes - payload.len();
        payload.extend_from_slice(&word[..rest.min(8)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a payload proves itself, and any single flipped bit or cut byte is noticed. Method:
    /// flip every bit and cut at every length of two values.
    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        for length in [VALUE_BYTES_MIN, 100] {
            let (value, payload) = build(7, 1 << 33, length);
            assert_eq!(parse(&payload), Ok(value));
            assert_eq!(claimed(&payload), Some((7, 1 << 33)));
            let mut stamped = payload.clone();
            stamped[..VALUE_BYTES_MIN].fill(0);
            stamp(&mut stamped, 7, 1 << 33, true);
            assert_eq!(stamped, payload);
            for bit in 0..payload.len() * 8 {
                let mut wrong = payload.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert!(parse(&wrong).is_err(), "bit {bit} of {length} bytes");
            }
            for cut in 0..payload.len() {
                assert!(parse(&payload[..cut]).is_err(), "cut at {cut}");
            }
        }
    }

    /// Goal: the digest sees every part of a record. Method: change one part at a time, null and
    /// empty included.
    #[test]
    fn the_digest_tells_null_from_empty_and_moved_bytes() {
        let none: [(&[u8], Option<&[u8]>); 0] = [];
        let base = digest(Some(b"k"), none, 5, Some(b"v"));
        assert_ne!(base, digest(None, none, 5, Some(b"v")));
        assert_ne!(base, digest(Some(b""), none, 5, Some(b"v")));
        assert_ne!(base, digest(Some(b"kv"), none, 5, Some(b"")));
        assert_ne!(base, digest(Some(b"k"), none, 6, Some(b"v")));
        assert_ne!(base, digest(Some(b"k"), none, 5, None));
        assert_ne!(base, digest(Some(b"k"), [(&b"h"[..], None)], 5, Some(b"v")));
        assert_eq!(base, digest(Some(b"k"), none, 5, Some(b"v")));
    }
}
