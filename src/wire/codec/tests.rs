//! Codecs give back what they got, and stop where they must.

use super::*;
use crate::base::record_batch::{BatchBuilder, RecordData};

fn text(bytes: usize) -> Vec<u8> {
    let line = b"penstock: one core, one journal, one stream of water. ";
    line.iter().copied().cycle().take(bytes).collect()
}

/// Goal: every codec gives back what it got. Method: nothing, a little, and more than one block of
/// each format.
#[test]
fn every_codec_round_trips() {
    for codec in Codec::ALL {
        for bytes in [0, 1, 1000, 32 << 10, 300_000] {
            let input = text(bytes);
            let compressed = compress(codec, &input).expect("memory");
            assert_eq!(
                decompress(codec, &compressed).as_ref(),
                Ok(&input),
                "{codec:?}"
            );
            assert!(codec == Codec::None || bytes < 1000 || compressed.len() < bytes / 4);
        }
    }
}

/// Goal: the cap holds for every codec. Method: 40 MiB of zeros, which all compress well past the
/// ratio or beyond 16 MiB; and the same cut to just what is allowed.
#[test]
fn bombs_are_stopped() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let bomb = compress(codec, &vec![0; 40 << 20]).expect("memory");
        let cap = output_cap(bomb.len());
        assert!(cap <= DECOMPRESSED_BYTES_MAX);
        assert_eq!(
            decompress(codec, &bomb),
            Err(CodecError::TooLarge { cap }),
            "{codec:?}"
        );
        let honest = compress(codec, &vec![0; DECOMPRESSED_BYTES_FREE]).expect("memory");
        let output = decompress(codec, &honest).expect("within what is free");
        assert_eq!(output.len(), DECOMPRESSED_BYTES_FREE);
        let above = compress(codec, &vec![0; DECOMPRESSED_BYTES_FREE + 1]).expect("memory");
        let allowed = output_cap(above.len()) > DECOMPRESSED_BYTES_FREE;
        assert_eq!(decompress(codec, &above).is_ok(), allowed, "{codec:?}");
    }
}

/// Goal: Snappy is read as librdkafka writes it too. Method: a raw block, and a block that claims
/// 4 GiB.
#[test]
fn raw_snappy_is_read() {
    let input = text(5000);
    let raw = snap::raw::Encoder::new()
        .compress_vec(&input)
        .expect("memory");
    assert_eq!(decompress(Codec::Snappy, &raw), Ok(input));
    let claim = [0xff, 0xff, 0xff, 0xff, 0x0f, 0x00];
    let cap = output_cap(claim.len());
    let refused = decompress(Codec::Snappy, &claim);
    assert_eq!(refused, Err(CodecError::TooLarge { cap }));
}

/// Goal: a zstd frame cannot make the decoder allocate a window of its choice. Method: a frame
/// header that asks for 1 GiB.
#[test]
fn zstd_windows_are_bounded() {
    let header = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa0, 0x01, 0x00, 0x00];
    let refused = decompress(Codec::Zstd, &header).expect_err("the window is too large");
    assert!(refused.to_string().contains("too much memory"), "{refused}");
}

/// Goal: noise is an error of its codec. Method: bytes no format starts with.
#[test]
fn noise_is_malformed() {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let refused = decompress(codec, &[0x13, 0x37, 0xfe, 0xed, 0x13, 0x37, 0xfe, 0xed]);
        assert!(refused.is_err(), "{codec:?}");
    }
}

/// Goal: a batch keeps its records and its header through compression. Method: compress with each
/// codec, check, read the records.
#[test]
fn batches_keep_their_records() {
    let mut builder = BatchBuilder::new().producer(9, 2, 40);
    for number in 0..10i64 {
        let value = text(200);
        builder.append(&RecordData {
            key: Some(b"key"),
            value: Some(&value),
            headers: &[("h", None)],
            timestamp: 1000 + number,
        });
    }
    let plain = builder.finish();
    let plain = BatchView::only(&plain).expect("just built");
    for codec in Codec::ALL {
        let bytes = compress_batch(&plain, codec).expect("memory");
        let batch = BatchView::only(&bytes).expect("just built");
        assert_eq!(batch.validate_produced(), Ok(()));
        assert_eq!(batch.codec(), Some(codec));
        assert_eq!(batch.producer_id(), 9);
        let records = uncompressed_records(&batch).expect("just compressed");
        assert_eq!(records, plain.records_bytes());
    }
}
