//! Changes a batch in place: what the broker assigns, and what must be resealed after.

use super::{CRC_START, Codec, HEADER_BYTES, LENGTH_OVERHEAD_BYTES};

/// Sets the first record's offset. Outside the checksum.
///
/// # Panics
/// `batch` is shorter than a batch's header; likewise below.
pub fn set_base_offset(batch: &mut [u8], offset: i64) {
    put(batch, 0, &offset.to_be_bytes());
}

/// Sets the leader epoch. Outside the checksum.
pub fn set_leader_epoch(batch: &mut [u8], epoch: i32) {
    put(batch, 12, &epoch.to_be_bytes());
}

/// Gives every record the broker's time, in milliseconds since 1970, and reseals.
pub fn set_log_append_time(batch: &mut [u8], timestamp: i64) {
    batch[22] |= 0x08;
    put(batch, 35, &timestamp.to_be_bytes());
    seal(batch);
}

/// Sets the idempotent producer's id, epoch and first sequence number, and reseals.
pub fn set_producer(batch: &mut [u8], id: i64, epoch: i16, base_sequence: i32) {
    put(batch, 43, &id.to_be_bytes());
    put(batch, 51, &epoch.to_be_bytes());
    put(batch, 53, &base_sequence.to_be_bytes());
    seal(batch);
}

/// A batch with `header`'s fields but other records, `records` being compressed with `codec`.
///
/// # Panics
/// `header` is shorter than a batch's header, or the records are longer than a length can say.
#[must_use]
pub fn replace_records(header: &[u8], codec: Codec, records: &[u8]) -> Vec<u8> {
    let mut batch = Vec::with_capacity(HEADER_BYTES + records.len());
    batch.extend_from_slice(&header[..HEADER_BYTES]);
    batch.extend_from_slice(records);
    batch[22] = (batch[22] & !0x07) | codec as u8;
    seal(&mut batch);
    batch
}

/// Sets length and checksum from the bytes, which must be exactly one batch.
///
/// # Panics
/// `batch` is shorter than a batch's header or longer than its length field can say.
pub fn seal(batch: &mut [u8]) {
    assert!(batch.len() >= HEADER_BYTES);
    let length = i32::try_from(batch.len() - LENGTH_OVERHEAD_BYTES)
        .expect("a batch is far below two gigabytes");
    put(batch, 8, &length.to_be_bytes());
    let crc = crc32c::crc32c(&batch[CRC_START..]);
    put(batch, 17, &crc.to_be_bytes());
}

fn put(batch: &mut [u8], at: usize, bytes: &[u8]) {
    assert!(batch.len() >= HEADER_BYTES);
    batch[at..at + bytes.len()].copy_from_slice(bytes);
}
