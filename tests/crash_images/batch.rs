//! Record batches (magic 2) with a valid header and checksum around arbitrary bytes: the journal
//! never looks into records.

/// Bytes of a batch header.
pub const HEADER_BYTES: usize = 61;

/// A batch of `count` records as a producer sends it: offset 0, epoch 0.
pub fn unplaced(count: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0u8; HEADER_BYTES];
    bytes.extend_from_slice(body);
    let length = i32::try_from(bytes.len() - 12).expect("a test batch is small");
    put(&mut bytes, 8, &length.to_be_bytes());
    bytes[16] = 2;
    let last_delta = i32::try_from(count - 1).expect("a test batch has few records");
    put(&mut bytes, 23, &last_delta.to_be_bytes());
    put(&mut bytes, 27, &1_000i64.to_be_bytes());
    put(&mut bytes, 35, &1_001i64.to_be_bytes());
    put(&mut bytes, 43, &(-1i64).to_be_bytes());
    put(&mut bytes, 51, &(-1i16).to_be_bytes());
    put(&mut bytes, 53, &(-1i32).to_be_bytes());
    put(&mut bytes, 57, &(last_delta + 1).to_be_bytes());
    let crc = crc32c::crc32c(&bytes[21..]);
    put(&mut bytes, 17, &crc.to_be_bytes());
    bytes
}

/// The batch as it must lie in the journal: at its offset, in its epoch.
pub fn placed(mut batch: Vec<u8>, base_offset: i64, epoch: i32) -> Vec<u8> {
    put(&mut batch, 0, &base_offset.to_be_bytes());
    put(&mut batch, 12, &epoch.to_be_bytes());
    batch
}

/// Splits concatenated batches; `None` if a length leaves the bytes.
pub fn split(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut batches = Vec::new();
    while !bytes.is_empty() {
        let head: [u8; 4] = bytes.get(8..12)?.try_into().ok()?;
        let len = 12 + usize::try_from(i32::from_be_bytes(head)).ok()?;
        if len < HEADER_BYTES {
            return None;
        }
        batches.push(bytes.get(..len)?);
        bytes = &bytes[len..];
    }
    Some(batches)
}

/// Base offset and number of records of one batch.
pub fn place(batch: &[u8]) -> (i64, u32) {
    let base: [u8; 8] = batch[0..8].try_into().expect("a batch has a header");
    let delta: [u8; 4] = batch[23..27].try_into().expect("a batch has a header");
    (i64::from_be_bytes(base), u32::from_be_bytes(delta) + 1)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}
