//! Record batches: the view, the records, and every codec.

use super::{CODEC_HEAP_BYTES, HEAP_SLACK_BYTES, Meter, bounded};
use crate::base::record_batch::{
    BatchBuilder, BatchView, Batches, Codec, HEADER_BYTES, RecordData, seal,
};
use crate::wire::codec;
use crate::wire::schema::Entropy;

/// Walks the input as batches; if it starts like one, also with its checksum made right, so that
/// damage reaches what lies behind the check.
pub(super) fn batches(input: &[u8], meter: &dyn Meter) {
    walk(input, meter);
    if input.len() >= HEADER_BYTES {
        let mut sealed = input.to_vec();
        sealed[16] = 2;
        seal(&mut sealed);
        let batch = BatchView::only(&sealed).expect("it was sealed");
        assert!(batch.crc_ok());
        walk(&sealed, meter);
    }
}

fn walk(input: &[u8], meter: &dyn Meter) {
    let mut bytes = 0;
    for batch in Batches::new(input) {
        let Ok(batch) = batch else { break };
        assert!(batch.bytes().len() >= HEADER_BYTES);
        bytes += batch.bytes().len();
        assert!(bytes <= input.len(), "batches do not overlap");
        let valid = bounded(HEAP_SLACK_BYTES, meter, || batch.validate_produced());
        if valid.is_ok() {
            assert!(batch.record_count() > 0);
            assert!(batch.crc_ok());
        }
        records(&batch, meter);
    }
}

fn records(batch: &BatchView<'_>, meter: &dyn Meter) {
    let compressed = batch.records_bytes().len();
    let cap = codec::output_cap(compressed);
    let bound = match batch.codec() {
        Some(Codec::None) | None => HEAP_SLACK_BYTES,
        Some(_) => 2 * cap + 2 * compressed + CODEC_HEAP_BYTES,
    };
    let Ok(records) = bounded(bound, meter, || codec::uncompressed_records(batch)) else {
        return;
    };
    assert!(records.len() <= cap.max(compressed));
    bounded(HEAP_SLACK_BYTES, meter, || {
        let (mut count, mut bytes) = (0, 0);
        for record in batch.records(&records) {
            let Ok(record) = record else { return };
            count += 1;
            bytes += record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len);
            for header in record.headers() {
                bytes += header.key.len() + header.value.map_or(0, <[u8]>::len);
            }
            assert!(bytes <= records.len(), "records do not overlap");
        }
        assert_eq!(count, batch.record_count().max(0));
    });
}

/// One or two good batches, of any codec.
pub(super) fn sample(entropy: &mut Entropy) -> Vec<u8> {
    let mut input = Vec::new();
    for _ in 0..=entropy.below(2) {
        let codec = Codec::ALL[entropy.below(Codec::ALL.len())];
        let plain = sample_batch(entropy);
        let batch = BatchView::only(&plain).expect("just built");
        let batch = codec::compress_batch(&batch, codec).expect("codecs work");
        input.extend_from_slice(&batch);
    }
    input
}

fn sample_batch(entropy: &mut Entropy) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    if entropy.one_in(2) {
        builder = builder.producer(entropy.integer(), 3, entropy.below(1000) as i32);
    }
    for _ in 0..=entropy.below(4) {
        let (key, value, header) = (entropy.bytes(12), entropy.bytes(80), entropy.bytes(6));
        let headers = [("trace", Some(&header[..])), ("trace", None)];
        builder.append(&RecordData {
            key: entropy.one_in(2).then_some(&key[..]),
            value: (!entropy.one_in(8)).then_some(&value[..]),
            headers: &headers[..entropy.below(3)],
            timestamp: entropy.integer(),
        });
    }
    builder.finish()
}
