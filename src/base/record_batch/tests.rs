//! A batch is what it says, or it is refused.

use super::*;

const NO_HEADERS: &[(&str, Option<&[u8]>)] = &[];

fn two_records() -> Vec<u8> {
    let mut builder = BatchBuilder::new().producer(77, 3, 12);
    builder.append(&RecordData {
        key: Some(b"k"),
        value: Some(b"first"),
        headers: &[("a", Some(b"1")), ("a", None)],
        timestamp: 1_700_000_000_000,
    });
    builder.append(&RecordData {
        key: None,
        value: None,
        headers: NO_HEADERS,
        timestamp: 1_699_999_999_000,
    });
    builder.finish()
}

/// Goal: the view reads what the builder wrote. Method: every field.
#[test]
fn a_built_batch_reads_back() {
    let bytes = two_records();
    let batch = BatchView::only(&bytes).expect("one batch");
    assert_eq!(batch.validate_produced(), Ok(()));
    assert_eq!(batch.bytes().len(), bytes.len());
    assert_eq!((batch.base_offset(), batch.last_offset()), (0, 1));
    assert_eq!((batch.record_count(), batch.last_offset_delta()), (2, 1));
    assert_eq!(batch.leader_epoch(), -1);
    assert_eq!(batch.codec(), Some(Codec::None));
    assert_eq!(batch.timestamp_type(), TimestampType::CreateTime);
    assert!(!batch.is_control() && !batch.is_transactional());
    let producer = (
        batch.producer_id(),
        batch.producer_epoch(),
        batch.base_sequence(),
    );
    assert_eq!(producer, (77, 3, 12));
    assert_eq!(batch.base_timestamp(), 1_700_000_000_000);
    assert_eq!(batch.max_timestamp(), 1_700_000_000_000);
    let records: Result<Vec<_>, _> = batch.records(batch.records_bytes()).collect();
    let records = records.expect("two good records");
    assert_eq!(records[0].offset, 0);
    assert_eq!(records[0].key, Some(&b"k"[..]));
    assert_eq!(records[0].value, Some(&b"first"[..]));
    let headers: Vec<_> = records[0].headers().map(|h| (h.key, h.value)).collect();
    assert_eq!(headers, [("a", Some(&b"1"[..])), ("a", None)]);
    assert_eq!((records[1].key, records[1].value), (None, None));
    assert_eq!(records[1].timestamp, 1_699_999_999_000);
    assert_eq!(records[1].offset, 1);
    assert_eq!(records.len(), 2);
}

/// Goal: another implementation reads our batches as we mean them. Method: `kafka-protocol`'s
/// decoder, which checks the checksum.
#[test]
fn another_implementation_agrees() {
    let mut bytes = bytes::Bytes::from(two_records());
    let decoded = kafka_protocol::records::RecordBatchDecoder::decode(&mut bytes);
    let records = decoded.expect("a good batch").records;
    assert_eq!(records.len(), 2);
    assert_eq!(records[0].value.as_deref(), Some(&b"first"[..]));
    assert_eq!(records[0].key.as_deref(), Some(&b"k"[..]));
    assert_eq!((records[0].producer_id, records[0].sequence), (77, 12));
    assert_eq!(
        (records[1].offset, records[1].timestamp),
        (1, 1_699_999_999_000)
    );
    assert!(records[1].value.is_none());
}

/// Goal: offset and epoch are patched without breaking the checksum, time and producer with it
/// made anew. Method: patch each, look at fields and checksum.
#[test]
fn patches_keep_the_batch_good() {
    let mut bytes = two_records();
    let crc = BatchView::only(&bytes).expect("one batch").crc();
    set_base_offset(&mut bytes, 500);
    set_leader_epoch(&mut bytes, 9);
    let batch = BatchView::only(&bytes).expect("one batch");
    assert!(batch.crc_ok());
    assert_eq!(
        (batch.crc(), batch.last_offset(), batch.leader_epoch()),
        (crc, 501, 9)
    );
    set_log_append_time(&mut bytes, 42);
    let batch = BatchView::only(&bytes).expect("one batch");
    assert!(batch.crc_ok());
    assert_eq!(batch.timestamp_type(), TimestampType::LogAppendTime);
    let mut records = batch.records(batch.records_bytes());
    let first = records.next().expect("two records").expect("good");
    assert_eq!((first.offset, first.timestamp), (500, 42));
}

/// Goal: each rule for produced batches refuses what breaks it. Method: break one at a time,
/// resealing so that only that rule can see it.
#[test]
fn each_rule_refuses_what_breaks_it() {
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = two_records();
        change(&mut bytes);
        patch::seal(&mut bytes);
        let batch = BatchView::only(&bytes).expect("one batch");
        batch.validate_produced().expect_err("a rule is broken")
    };
    let attributes = |value: u8| move |bytes: &mut Vec<u8>| bytes[22] = value;
    assert_eq!(refused(&attributes(5)), BatchError::Codec { attributes: 5 });
    assert_eq!(refused(&attributes(0x10)), BatchError::Transactional);
    assert_eq!(refused(&attributes(0x20)), BatchError::Control);
    let counts = |count: i32, last: i32| {
        refused(&move |bytes| {
            bytes[23..27].copy_from_slice(&last.to_be_bytes());
            bytes[57..61].copy_from_slice(&count.to_be_bytes());
        })
    };
    for (count, last) in [
        (0, -1),
        (0, 0),
        (-1, -2),
        (2, 0),
        (1, 1),
        (i32::MIN, i32::MAX),
    ] {
        let last_offset_delta = last;
        let expected = BatchError::Count {
            count,
            last_offset_delta,
        };
        assert_eq!(counts(count, last), expected);
    }
    let bomb = counts(i32::MAX, i32::MAX - 1);
    assert!(matches!(bomb, BatchError::Truncated { .. }), "{bomb:?}");
}

/// Goal: every bit under the checksum counts. Method: flip each bit from the attributes on.
#[test]
fn every_bit_under_the_checksum_counts() {
    let bytes = two_records();
    for bit in CRC_START * 8..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let batch = BatchView::only(&damaged).expect("the length is outside");
        assert!(!batch.crc_ok());
        assert!(batch.validate_produced().is_err());
    }
}

/// Goal: a batch is cut out only whole. Method: every shorter prefix, other magics, lengths no
/// batch has, a second batch behind.
#[test]
fn only_whole_batches_are_cut_out() {
    let bytes = two_records();
    for length in 0..bytes.len() {
        let cut = BatchView::split(&bytes[..length]).map(|_| ());
        assert!(matches!(cut, Err(BatchError::Truncated { .. })), "{length}");
    }
    for magic in [-1, 0, 1, 3] {
        let mut other = bytes.clone();
        other[16] = magic as u8;
        let refused = BatchView::split(&other).map(|_| ());
        assert_eq!(refused, Err(BatchError::Magic { magic }));
    }
    for length in [-1, 0, 48, i32::MIN] {
        let mut other = bytes.clone();
        other[8..12].copy_from_slice(&length.to_be_bytes());
        let refused = BatchView::split(&other).map(|_| ());
        assert_eq!(refused, Err(BatchError::Length { length }));
    }
    let double = [&bytes[..], &bytes[..]].concat();
    let left = bytes.len();
    let refused = BatchView::only(&double).map(|_| ());
    assert_eq!(refused, Err(BatchError::MoreThanOne { left }));
    assert_eq!(Batches::new(&double).filter(Result::is_ok).count(), 2);
    let cut = &double[..double.len() - 1];
    assert_eq!(
        Batches::with_partial_tail(cut)
            .filter(Result::is_ok)
            .count(),
        1
    );
    assert_eq!(Batches::with_partial_tail(cut).count(), 1);
    assert_eq!(Batches::new(cut).filter(Result::is_err).count(), 1);
}

/// Goal: records that lie about their lengths are refused. Method: single records with one lie
/// each; the last is honest.
#[test]
fn lying_records_are_refused() {
    let first = |bytes: &[u8]| {
        let mut records = Records::new(bytes, 1, 0, 0, None);
        records.next().expect("a record or an error").map(|_| ())
    };
    assert!(
        first(&[0x0c, 0, 0, 0, 1, 1, 0]).is_ok(),
        "the smallest record"
    );
    let trailing = BatchError::TrailingBytes { left: 1 };
    assert_eq!(first(&[0x0e, 0, 0, 0, 1, 1, 0, 9]), Err(trailing));
    assert!(matches!(
        first(&[0x20, 0, 0]),
        Err(BatchError::Truncated { .. })
    ));
    assert!(matches!(
        first(&[0x01]),
        Err(BatchError::RecordLength { length: -1 })
    ));
    assert_eq!(
        first(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        Err(BatchError::Varint)
    );
    let key_past_end = [0x0c, 0, 0, 0, 0x40, 1, 0];
    assert!(matches!(
        first(&key_past_end),
        Err(BatchError::Truncated { .. })
    ));
    let key_below_null = [0x0c, 0, 0, 0, 3, 1, 0];
    assert!(matches!(
        first(&key_below_null),
        Err(BatchError::RecordLength { length: -2 })
    ));
    let header_bomb = [0x14, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f];
    assert!(matches!(
        first(&header_bomb),
        Err(BatchError::Truncated { .. })
    ));
    let null_header_key = [0x10, 0, 0, 0, 1, 1, 2, 1, 1];
    assert_eq!(first(&null_header_key), Err(BatchError::HeaderKey));
}

/// Goal: records beyond the count are seen. Method: two records under a count of one.
#[test]
fn records_beyond_the_count_are_an_error() {
    let bytes = two_records();
    let mut records = Records::new(&bytes[HEADER_BYTES..], 1, 0, 0, None);
    assert!(records.next().is_some_and(|record| record.is_ok()));
    let beyond = records.next().expect("an error");
    assert!(matches!(beyond, Err(BatchError::TrailingBytes { .. })));
    assert!(records.next().is_none());
}
