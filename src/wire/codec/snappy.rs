//! Snappy as Kafka's clients use it: raw (librdkafka, Go) or in Xerial frames (Java).
//!
//! ```text
//! 0x82 "SNAPPY" 0x00 · version i32 · lowest compatible version i32
//! · { length i32 · raw block }*
//! ```
//! We write Xerial frames, which every client reads; Java reads nothing else.

use super::{CodecError, malformed};
use crate::base::record_batch::Codec;

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const HEADER_BYTES: usize = 16;
/// Uncompressed bytes of a block, as Java writes them.
const BLOCK_BYTES: usize = 32 << 10;

pub(super) fn compress(input: &[u8]) -> Result<Vec<u8>, CodecError> {
    let mut output = MAGIC.to_vec();
    output.extend_from_slice(&1i32.to_be_bytes());
    output.extend_from_slice(&1i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for block in input.chunks(BLOCK_BYTES) {
        let compressed = encoder
            .compress_vec(block)
            .map_err(|error| malformed(Codec::Snappy, &error))?;
        let length =
            u32::try_from(compressed.len()).map_err(|error| malformed(Codec::Snappy, &error))?;
        output.extend_from_slice(&length.to_be_bytes());
        output.extend_from_slice(&compressed);
    }
    Ok(output)
}

pub(super) fn decompress(input: &[u8], cap: usize) -> Result<Vec<u8>, CodecError> {
    let mut output = Vec::new();
    if input.len() < HEADER_BYTES || !input.starts_with(&MAGIC) {
        append_block(input, cap, &mut output)?;
        return Ok(output);
    }
    let mut rest = &input[HEADER_BYTES..];
    while !rest.is_empty() {
        let block = rest.split_first_chunk::<4>().and_then(|(prefix, after)| {
            let length = usize::try_from(i32::from_be_bytes(*prefix)).ok()?;
            after.split_at_checked(length)
        });
        let Some((block, after)) = block else {
            return Err(malformed(Codec::Snappy, &"a block reaches past the end"));
        };
        append_block(block, cap, &mut output)?;
        rest = after;
    }
    Ok(output)
}

/// The block says how large it becomes; that is checked before it gets the memory.
fn append_block(block: &[u8], cap: usize, output: &mut Vec<u8>) -> Result<(), CodecError> {
    let fail = |error: snap::Error| malformed(Codec::Snappy, &error);
    let length = snap::raw::decompress_len(block).map_err(fail)?;
    let start = output.len();
    if length > cap - start {
        return Err(CodecError::TooLarge { cap });
    }
    output.resize(start + length, 0);
    let written = snap::raw::Decoder::new()
        .decompress(block, &mut output[start..])
        .map_err(fail)?;
    output.truncate(start + written);
    Ok(())
}
