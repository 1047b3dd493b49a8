//! Makes values up, for fuzzing and differential tests: any message in any version.
//!
//! Deterministic: the same seed makes the same values, so that a failure can be replayed.

use bytes::Bytes;

use super::{Array, Form, Text, Wire};
use crate::base::ids::TopicId;

/// A stream of numbers that is a function of its seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Entropy {
    state: u64,
}

impl Entropy {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0);
        (self.bits() % bound as u64) as usize
    }

    /// True one time in `bound`.
    pub fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    /// An integer that is often one at which something changes.
    pub fn integer(&mut self) -> i64 {
        match self.below(8) {
            0 => 0,
            1 => -1,
            2 => 1,
            3 => i64::MIN,
            4 => i64::MAX,
            5 => self.below(256) as i64,
            _ => self.bits() as i64,
        }
    }

    /// Up to `length_max` bytes.
    pub fn bytes(&mut self, length_max: usize) -> Vec<u8> {
        let length = self.below(length_max + 1);
        (0..length).map(|_| self.bits() as u8).collect()
    }
}

/// Characters of one, two, three and four bytes.
const CHARACTERS: [char; 8] = ['a', 'Z', '0', '.', '_', 'é', '→', '🜄'];
/// Longest sampled string, in characters.
const TEXT_LENGTH_MAX: usize = 12;
/// Longest sampled byte field.
const BLOB_LENGTH_MAX: usize = 64;
/// Longest sampled array.
const ARRAY_LENGTH_MAX: usize = 3;

/// Something that can be made up.
pub trait Sample: Sized {
    /// A value as a message of `form` can carry it: what that version lacks keeps its default.
    fn sample(entropy: &mut Entropy, form: Form) -> Self;
}

macro_rules! integer {
    ($($type:ty),*) => { $(
        impl Sample for $type {
            fn sample(entropy: &mut Entropy, _: Form) -> Self {
                entropy.integer() as $type
            }
        }
    )* };
}

integer!(i8, i16, i32, i64);

impl Sample for bool {
    fn sample(entropy: &mut Entropy, _: Form) -> Self {
        entropy.one_in(2)
    }
}

impl Sample for TopicId {
    fn sample(entropy: &mut Entropy, _: Form) -> Self {
        if entropy.one_in(4) {
            return Self::default();
        }
        let mut id = [0; 16];
        id.fill_with(|| entropy.bits() as u8);
        Self(id)
    }
}

impl Sample for Text {
    fn sample(entropy: &mut Entropy, _: Form) -> Self {
        let length = entropy.below(TEXT_LENGTH_MAX + 1);
        let character = |_| CHARACTERS[entropy.below(CHARACTERS.len())];
        let text: String = (0..length).map(character).collect();
        Self::from(text)
    }
}

impl Sample for Bytes {
    fn sample(entropy: &mut Entropy, _: Form) -> Self {
        Self::from(entropy.bytes(BLOB_LENGTH_MAX))
    }
}

impl<T: Sample + Wire> Sample for Array<T> {
    fn sample(entropy: &mut Entropy, form: Form) -> Self {
        let length = entropy.below(ARRAY_LENGTH_MAX + 1);
        (0..length).map(|_| T::sample(entropy, form)).collect()
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(entropy: &mut Entropy, form: Form) -> Self {
        match entropy.below(4) {
            0 => None,
            _ => Some(T::sample(entropy, form)),
        }
    }
}
