//! What a message is made of: its size, its key and the bytes of its payload. All of it follows
//! from the seed, the producer and the message's number.
//!
//! A payload describes itself as `check::value` says, and its first bytes after that head are
//! ours:
//!
//! ```text
//!  0 ───────────── 24 ──────────────── 32 ──────── 36 ──────────── 40
//!  │ check::value   │ intended send     │ the run    │ partition     │ filler …
//!  │ (crc optional) │ u64 LE, ns (unix) │ u32 LE     │ u32 LE        │
//! ```
//! A payload shorter than that carries nothing and can be neither timed nor checked. The filler is
//! a slice of a pool made once: random bytes need not be new for each message to be random.

use super::chance::{Chance, Zipf, below, draw, mix};
use crate::check::value;

/// Bytes of a payload that says what it is.
pub const STAMP_BYTES: usize = value::VALUE_BYTES_MIN + 16;
/// The pool has this much more than the longest payload, so that slices differ.
const POOL_BYTES: usize = 1 << 20;
/// Slices of the pool begin at multiples of this: whole cache lines copy best.
const POOL_STEP_BYTES: u64 = 64;
/// Bytes of a key.
pub const KEY_BYTES: usize = 12;

const PURPOSE_SIZE: u64 = 1;
const PURPOSE_KEY: u64 = 2;
const PURPOSE_FILLER: u64 = 3;

/// How large payloads are, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// All the same.
    Fixed(usize),
    /// Evenly from one to the other, both included.
    Uniform(usize, usize),
    /// From one to the other, small ones most: the n-th size comes as often as n^-exponent.
    Zipf(usize, Zipf),
    /// These, with weights; the last of each pair is the sum of the weights up to it.
    Weighted(Vec<(usize, u64)>),
}

impl Sizes {
    /// The size of one message.
    #[must_use]
    pub fn of(&self, seed: u64, producer: u64, message: u64) -> usize {
        let draw = || draw(seed, PURPOSE_SIZE, producer, message);
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Uniform(least, most) => {
                least + below(draw(), (most - least) as u64 + 1) as usize
            }
            Sizes::Zipf(least, zipf) => least + zipf.rank(draw()) as usize - 1,
            Sizes::Weighted(list) => {
                let total = list.last().map_or(1, |(_, sum)| *sum);
                let place = below(draw(), total);
                let found = list.partition_point(|(_, sum)| *sum <= place);
                list[found].0
            }
        }
    }

    /// The smallest that can come.
    #[must_use]
    pub fn least(&self) -> usize {
        match self {
            Sizes::Fixed(bytes) | Sizes::Uniform(bytes, _) | Sizes::Zipf(bytes, _) => *bytes,
            Sizes::Weighted(list) => list.iter().map(|(bytes, _)| *bytes).min().unwrap_or(0),
        }
    }

    /// The largest that can come.
    #[must_use]
    pub fn most(&self) -> usize {
        match self {
            Sizes::Fixed(bytes) | Sizes::Uniform(_, bytes) => *bytes,
            Sizes::Zipf(least, zipf) => least + zipf.ranks() as usize - 1,
            Sizes::Weighted(list) => list.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0),
        }
    }
}

/// How keys are chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Keys {
    /// None; each request of a producer goes to the next partition, as Kafka clients do.
    None,
    /// None; each message of a producer goes to the next partition.
    Spread,
    /// So many keys, one after the other.
    RoundRobin(u64),
    /// So many keys, evenly.
    Uniform(u64),
    /// Some keys more than others.
    Zipf(Zipf),
}

impl Keys {
    /// The key of one message, if it has one.
    #[must_use]
    pub fn of(&self, seed: u64, producer: u64, message: u64) -> Option<[u8; KEY_BYTES]> {
        let draw = || draw(seed, PURPOSE_KEY, producer, message);
        let number = match self {
            Keys::None | Keys::Spread => return None,
            Keys::RoundRobin(count) => message % count,
            Keys::Uniform(count) => below(draw(), *count),
            Keys::Zipf(zipf) => zipf.rank(draw()) - 1,
        };
        Some(key(number))
    }
}

/// The bytes of a key: `k` and eleven digits, readable where records are looked at.
fn key(mut number: u64) -> [u8; KEY_BYTES] {
    let mut bytes = *b"k00000000000";
    for place in (1..KEY_BYTES).rev() {
        bytes[place] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    bytes
}

/// What payloads are filled with.
#[derive(Clone, Debug)]
pub struct Filler {
    pool: Vec<u8>,
    starts: u64,
    seed: u64,
}

impl Filler {
    /// Bytes without any pattern but for the share `zeros` of each 64, which is 0: 0 compresses not
    /// at all, 0.5 to about half.
    #[must_use]
    pub fn random(seed: u64, size_max: usize, zeros: f64) -> Filler {
        let mut chance = Chance::new(mix(seed ^ PURPOSE_FILLER));
        let mut pool = vec![0; POOL_BYTES + size_max];
        let kept = (64.0 * (1.0 - zeros.clamp(0.0, 1.0))).round() as usize;
        for line in pool.chunks_mut(64) {
            let kept = kept.min(line.len());
            for word in line[..kept].chunks_mut(8) {
                let drawn = chance.next_u64().to_le_bytes();
                word.copy_from_slice(&drawn[..word.len()]);
            }
        }
        Filler::of_pool(pool, size_max, seed)
    }

    /// The bytes of a sample, over and over.
    ///
    /// # Panics
    /// The sample is empty.
    #[must_use]
    pub fn sample(sample: &[u8], size_max: usize, seed: u64) -> Filler {
        assert!(!sample.is_empty(), "a sample has bytes");
        let length = POOL_BYTES.max(sample.len()) + size_max;
        let pool = sample.iter().copied().cycle().take(length).collect();
        Filler::of_pool(pool, size_max, seed)
    }

    fn of_pool(pool: Vec<u8>, size_max: usize, seed: u64) -> Filler {
        let starts = (pool.len() - size_max) as u64 / POOL_STEP_BYTES;
        Filler { pool, starts, seed }
    }

    /// The payload of one message before it is stamped.
    #[must_use]
    pub fn of(&self, producer: u64, message: u64, bytes: usize) -> &[u8] {
        let drawn = draw(self.seed, PURPOSE_FILLER, producer, message);
        let start = (below(drawn, self.starts) * POOL_STEP_BYTES) as usize;
        &self.pool[start..start + bytes]
    }
}

/// What a payload of a load says of itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stamp {
    /// Which producer.
    pub producer: u32,
    /// Its place among the messages of that producer to that partition.
    pub sequence: u64,
    /// When it was meant to be sent, nanoseconds since 1970.
    pub intended_unix_ns: u64,
    /// Which run.
    pub run: u32,
    /// Which partition, counted over all topics.
    pub partition: u32,
}

impl Stamp {
    /// Writes it over the head of a payload of at least [`STAMP_BYTES`]; with `sealed`, the
    /// checksum too.
    pub fn put(&self, payload: &mut [u8], sealed: bool) {
        let at = value::VALUE_BYTES_MIN;
        payload[at..at + 8].copy_from_slice(&self.intended_unix_ns.to_le_bytes());
        payload[at + 8..at + 12].copy_from_slice(&self.run.to_le_bytes());
        payload[at + 12..at + 16].copy_from_slice(&self.partition.to_le_bytes());
        value::stamp(payload, self.producer, self.sequence, sealed);
    }

    /// Reads it from a payload, without a proof of its bytes; `None` if it is none of a load's.
    #[must_use]
    pub fn read(payload: &[u8]) -> Option<Stamp> {
        if payload.len() < STAMP_BYTES {
            return None;
        }
        let (producer, sequence) = value::claimed(payload)?;
        let at = value::VALUE_BYTES_MIN;
        let (time, rest) = payload[at..].split_first_chunk::<8>()?;
        let (run, rest) = rest.split_first_chunk::<4>()?;
        let partition = rest.first_chunk::<4>()?;
        Some(Stamp {
            producer,
            sequence,
            intended_unix_ns: u64::from_le_bytes(*time),
            run: u32::from_le_bytes(*run),
            partition: u32::from_le_bytes(*partition),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a stamp is read back, and proves its payload where it is sealed. Method: stamp over
    /// filler, read, prove, flip a bit.
    #[test]
    fn a_stamp_is_read_back() {
        let filler = Filler::random(1, 500, 0.0);
        let stamp = Stamp {
            producer: 3,
            sequence: 1 << 40,
            intended_unix_ns: 1_700_000_000_123_456_789,
            run: 99,
            partition: 12,
        };
        for size in [STAMP_BYTES, 500] {
            let mut payload = filler.of(3, 7, size).to_vec();
            stamp.put(&mut payload, true);
            assert_eq!(Stamp::read(&payload), Some(stamp));
            assert!(value::parse(&payload).is_ok());
            payload[size - 1] ^= 1;
            assert!(value::parse(&payload).is_err());
        }
        assert_eq!(Stamp::read(&[0; 100]), None);
        assert_eq!(Stamp::read(&[0; 10]), None);
    }

    /// Goal: sizes stay in their bounds, reach both, and weights count. Method: many draws of each
    /// kind.
    #[test]
    fn sizes_keep_their_bounds() {
        let kinds = [
            Sizes::Fixed(9),
            Sizes::Uniform(10, 12),
            Sizes::Zipf(100, Zipf::new(3, 1.0)),
            Sizes::Weighted(vec![(50, 9), (70, 10)]),
        ];
        for sizes in kinds {
            let drawn: Vec<usize> = (0..2000).map(|m| sizes.of(5, 1, m)).collect();
            assert_eq!(drawn.iter().min(), Some(&sizes.least()));
            assert_eq!(drawn.iter().max(), Some(&sizes.most()));
            if matches!(sizes, Sizes::Weighted(_)) {
                let small = drawn.iter().filter(|size| **size == 50).count();
                assert!((1700..1900).contains(&small), "{small}");
            }
        }
    }

    /// Goal: keys are what their number says. Method: one after the other, and the text of one.
    #[test]
    fn keys_are_numbered() {
        assert_eq!(&key(1234), b"k00000001234");
        let keys = Keys::RoundRobin(3);
        assert_eq!(keys.of(0, 0, 4), Some(key(1)));
        assert_eq!(Keys::Spread.of(0, 0, 4), None);
    }

    /// Goal: half zeros compress to about half. Method: count them.
    #[test]
    fn zeros_are_as_many_as_asked() {
        let filler = Filler::random(1, 64, 0.5);
        let zeros = filler.pool.iter().filter(|byte| **byte == 0).count();
        let share = zeros as f64 / filler.pool.len() as f64;
        assert!((0.49..0.52).contains(&share), "{share}");
    }
}
