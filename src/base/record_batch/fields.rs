//! What every maker of batches writes alike: numbers of records, and the header's counts and times.

use super::{MAGIC, patch};

/// A length as a record says it.
///
/// # Panics
/// It does not fit 32 bits.
pub(super) fn length(length: usize) -> i64 {
    i64::from(i32::try_from(length).expect("a record is far below two gigabytes"))
}

/// A signed number with its sign in the lowest bit, so that small ones are short.
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Appends a number in groups of seven bits, the lowest first.
pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Writes the header of a batch of `count` records with these times, but for its producer: the
/// caller sets that, or seals.
///
/// # Panics
/// There is no record.
pub(super) fn header(batch: &mut [u8], count: i32, base_timestamp: i64, max_timestamp: i64) {
    assert!(count > 0, "a batch has at least one record");
    batch[16] = MAGIC as u8;
    batch[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    batch[27..35].copy_from_slice(&base_timestamp.to_be_bytes());
    batch[35..43].copy_from_slice(&max_timestamp.to_be_bytes());
    batch[57..61].copy_from_slice(&count.to_be_bytes());
    patch::set_leader_epoch(batch, -1);
}
