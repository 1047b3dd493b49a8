//! Compresses the records of a batch, and decompresses them within bounds.
//!
//! The broker stores batches as they came and never calls this on the hot path; clients, `verify`
//! and tests do. A decompressor stops at the cap rather than trusting any size the data claims:
//! 16 MiB, and 256 bytes for each compressed byte once beyond 1 MiB.

mod snappy;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read, Write};

use crate::base::record_batch::{BatchView, Codec, replace_records};
use crate::limits::{
    DECOMPRESSED_BYTES_FREE, DECOMPRESSED_BYTES_MAX, DECOMPRESSION_RATIO_MAX, ZSTD_WINDOW_LOG_MAX,
};

/// zstd's default level.
const ZSTD_LEVEL: i32 = 3;
/// How much is read from a decompressor at once.
const STEP_BYTES: usize = 64 << 10;

/// Why compressed records were refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CodecError {
    /// More output than the cap allows.
    TooLarge {
        /// The cap, in bytes.
        cap: usize,
    },
    /// Not what the codec says it is.
    Malformed {
        /// The codec.
        codec: Codec,
        /// What its library says.
        reason: String,
    },
    /// The batch names a codec that does not exist.
    Unknown,
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { cap } => write!(f, "records decompress to more than {cap} bytes"),
            Self::Malformed { codec, reason } => {
                write!(f, "malformed {} data: {reason}", codec.name())
            }
            Self::Unknown => f.write_str("a codec that does not exist"),
        }
    }
}

impl std::error::Error for CodecError {}

fn malformed(codec: Codec, reason: &dyn fmt::Display) -> CodecError {
    let reason = reason.to_string();
    CodecError::Malformed { codec, reason }
}

/// Most bytes that `input_bytes` compressed bytes may become.
#[must_use]
pub fn output_cap(input_bytes: usize) -> usize {
    input_bytes
        .saturating_mul(DECOMPRESSION_RATIO_MAX)
        .clamp(DECOMPRESSED_BYTES_FREE, DECOMPRESSED_BYTES_MAX)
}

/// Compresses.
///
/// # Errors
/// The codec's library failed, which it does only out of memory.
pub fn compress(codec: Codec, input: &[u8]) -> Result<Vec<u8>, CodecError> {
    let fail = |error: io::Error| malformed(codec, &error);
    match codec {
        Codec::None => Ok(input.to_vec()),
        Codec::Gzip => {
            let level = flate2::Compression::default();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(input).map_err(fail)?;
            encoder.finish().map_err(fail)
        }
        Codec::Snappy => snappy::compress(input),
        Codec::Lz4 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(input).map_err(fail)?;
            encoder.finish().map_err(|error| malformed(codec, &error))
        }
        Codec::Zstd => zstd::stream::encode_all(input, ZSTD_LEVEL).map_err(fail),
    }
}

/// Decompresses within [`output_cap`].
///
/// # Errors
/// The data is malformed or becomes too large.
pub fn decompress(codec: Codec, input: &[u8]) -> Result<Vec<u8>, CodecError> {
    let cap = output_cap(input.len());
    match codec {
        Codec::None if input.len() > DECOMPRESSED_BYTES_MAX => Err(CodecError::TooLarge {
            cap: DECOMPRESSED_BYTES_MAX,
        }),
        Codec::None => Ok(input.to_vec()),
        Codec::Gzip => drain(codec, flate2::read::MultiGzDecoder::new(input), cap),
        Codec::Snappy => snappy::decompress(input, cap),
        Codec::Lz4 => drain(codec, lz4_flex::frame::FrameDecoder::new(input), cap),
        Codec::Zstd => {
            let fail = |error: io::Error| malformed(codec, &error);
            let mut decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(fail)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(fail)?;
            drain(codec, decoder, cap)
        }
    }
}

/// Reads a decompressor to its end, or to the first byte above the cap.
fn drain(codec: Codec, mut decoder: impl Read, cap: usize) -> Result<Vec<u8>, CodecError> {
    let mut output = Vec::new();
    loop {
        let start = output.len();
        let step = STEP_BYTES.min(cap + 1 - start);
        output.resize(start + step, 0);
        let read = decoder.read(&mut output[start..]);
        let read = read.map_err(|error| malformed(codec, &error))?;
        output.truncate(start + read);
        if read == 0 {
            return Ok(output);
        }
        if output.len() > cap {
            return Err(CodecError::TooLarge { cap });
        }
    }
}

/// A batch's records as [`BatchView::records`] takes them: borrowed where they are not compressed.
///
/// # Errors
/// The codec does not exist, or the data is malformed or becomes too large.
pub fn uncompressed_records<'a>(batch: &BatchView<'a>) -> Result<Cow<'a, [u8]>, CodecError> {
    match batch.codec() {
        None => Err(CodecError::Unknown),
        Some(Codec::None) => Ok(Cow::Borrowed(batch.records_bytes())),
        Some(codec) => decompress(codec, batch.records_bytes()).map(Cow::Owned),
    }
}

/// The same batch with its records, not compressed so far, compressed.
///
/// # Errors
/// As [`compress`], or the batch is compressed already and cannot be read.
pub fn compress_batch(batch: &BatchView<'_>, codec: Codec) -> Result<Vec<u8>, CodecError> {
    let records = uncompressed_records(batch)?;
    let compressed = compress(codec, &records)?;
    Ok(replace_records(batch.bytes(), codec, &compressed))
}
