//! The few bytes of a record batch's header that the journal must read or stamp.
//!
//! Why not the batch view of `base`: the journal verifies what it wrote itself, in terms of its own
//! directory (tiling, continuity of offsets, epoch), and stamps two fields; it never looks inside.
//!
//! ```text
//! 0 base offset i64 │ 8 length i32 │ 12 leader epoch i32 │ 16 magic i8 │ 17 crc u32
//! 21 attributes i16 │ 23 last offset delta i32 │ … 61 records
//! (big-endian; the CRC covers bytes 21..)
//! ```

use crate::base::ids::Offset;

/// Bytes of a batch's header.
const BATCH_HEADER_BYTES: usize = 61;

/// Why batches are not what the directory or the extent says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::journal) enum BatchError {
    /// A batch's length leaves the body, or the body does not end with a batch.
    Length,
    /// Not magic 2.
    Magic,
    /// The batch CRC does not match.
    Checksum,
    /// The offsets do not continue.
    Offset,
    /// Another leader epoch than was stamped.
    Epoch,
}

impl BatchError {
    pub(in crate::journal) fn as_str(self) -> &'static str {
        match self {
            Self::Length => "a record batch's length cannot be",
            Self::Magic => "a record batch's magic is not 2",
            Self::Checksum => "a record batch's checksum does not match",
            Self::Offset => "a record batch's offset does not continue its predecessor's",
            Self::Epoch => "a record batch's leader epoch is not the one that was written",
        }
    }
}

/// Length of the batch that starts here, and the offsets it spans; nothing beyond its fields is
/// verified.
fn measure(bytes: &[u8]) -> Result<(usize, i64), BatchError> {
    if bytes.len() < BATCH_HEADER_BYTES {
        return Err(BatchError::Length);
    }
    let length = get_i32(bytes, 8);
    let total = usize::try_from(length).map_err(|_| BatchError::Length)? + 12;
    if total < BATCH_HEADER_BYTES || total > bytes.len() {
        return Err(BatchError::Length);
    }
    if bytes[16] != 2 {
        return Err(BatchError::Magic);
    }
    let span = i64::from(get_i32(bytes, 23)) + 1;
    if span < 1 {
        return Err(BatchError::Offset);
    }
    Ok((total, span))
}

/// Stamps base offsets and epoch into concatenated batches; returns the offset after the last.
pub(in crate::journal) fn stamp(
    bytes: &mut [u8],
    base: Offset,
    epoch: i32,
) -> Result<Offset, BatchError> {
    let mut at = 0;
    let mut offset = base.0;
    while at < bytes.len() {
        let (total, span) = measure(&bytes[at..])?;
        bytes[at..at + 8].copy_from_slice(&offset.to_be_bytes());
        bytes[at + 12..at + 16].copy_from_slice(&epoch.to_be_bytes());
        offset = offset.checked_add(span).ok_or(BatchError::Offset)?;
        at += total;
    }
    assert_eq!(at, bytes.len(), "batches tile their bytes");
    Ok(Offset(offset))
}

/// Verifies every byte of concatenated batches; returns the offset after the last.
pub(in crate::journal) fn check(
    bytes: &[u8],
    base: Offset,
    epoch: i32,
) -> Result<Offset, BatchError> {
    let mut at = 0;
    let mut offset = base.0;
    while at < bytes.len() {
        let batch = &bytes[at..];
        let (total, span) = measure(batch)?;
        let mut stored_base = [0u8; 8];
        stored_base.copy_from_slice(&batch[..8]);
        if i64::from_be_bytes(stored_base) != offset {
            return Err(BatchError::Offset);
        }
        if get_i32(batch, 12) != epoch {
            return Err(BatchError::Epoch);
        }
        let stored_crc = get_i32(batch, 17).cast_unsigned();
        if crc32c::crc32c(&batch[21..total]) != stored_crc {
            return Err(BatchError::Checksum);
        }
        offset = offset.checked_add(span).ok_or(BatchError::Offset)?;
        at += total;
    }
    assert_eq!(at, bytes.len(), "batches tile their bytes");
    Ok(Offset(offset))
}

fn get_i32(bytes: &[u8], at: usize) -> i32 {
    let mut word = [0u8; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    i32::from_be_bytes(word)
}

/// One batch of `records` records around opaque bytes, for tests.
#[cfg(test)]
pub(in crate::journal) fn sample(records: i32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0u8; BATCH_HEADER_BYTES + body.len()];
    let length = i32::try_from(bytes.len() - 12).unwrap();
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[16] = 2;
    bytes[23..27].copy_from_slice(&(records - 1).to_be_bytes());
    bytes[57..61].copy_from_slice(&records.to_be_bytes());
    bytes[BATCH_HEADER_BYTES..].copy_from_slice(body);
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}
