//! How Kafka clients choose a key's partition: a hash that every one of them shares.

/// The partition of a key in a topic of `partitions` (at least 1).
#[must_use]
pub fn partition_of(key: &[u8], partitions: i32) -> i32 {
    (murmur2(key) & 0x7fff_ffff) % partitions
}

/// The hash of a key.
#[must_use]
pub fn murmur2(bytes: &[u8]) -> i32 {
    const M: u32 = 0x5bd1_e995;
    let length = u32::try_from(bytes.len()).expect("a key is far below four gigabytes");
    let mut hash = 0x9747_b28c ^ length;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        for (index, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * index);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^= hash >> 15;
    hash.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a key goes where every other client sends it. Method: the values of Kafka's own test
    /// of this hash.
    #[test]
    fn keys_hash_as_kafka_hashes_them() {
        for (key, expected) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
        ] {
            assert_eq!(murmur2(key.as_bytes()), expected, "{key}");
        }
    }
}
