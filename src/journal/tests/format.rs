//! Goal: a block is read back as written, and no changed bit of it passes. Method: every bit of a
//! header, random blocks by proptest, and a version and kinds that do not exist.

use super::super::format::*;
use super::partition;
use crate::base::ids::{BlockSequence, Offset, Position, ShardId, Term};
use proptest::prelude::*;

fn sample_header(entries: u32, payload_len: u32) -> Header {
    Header {
        shard: ShardId(3),
        incarnation: 0x1122_3344_5566_7788,
        term: Term(1),
        sequence: BlockSequence(10),
        position: Position(8192),
        durable: BlockSequence(8),
        window_bytes: 4096,
        previous_digest: 0xdead_beef,
        entry_count: entries,
        header_len: u32::try_from(HEADER_BYTES + entries as usize * ENTRY_BYTES).unwrap(),
        payload_len,
        payload_crc: 0,
        digest: 0,
    }
}

fn sample_block(bodies: &[Vec<u8>]) -> (Header, Vec<u8>) {
    let payload: Vec<u8> = bodies.concat();
    let mut header = sample_header(
        u32::try_from(bodies.len()).unwrap(),
        u32::try_from(payload.len()).unwrap(),
    );
    header.payload_crc = crc32c::crc32c(&payload);
    let mut bytes = vec![0u8; header.block_len()];
    let mut offset = 0;
    for (index, body) in bodies.iter().enumerate() {
        let entry = DirectoryEntry {
            kind: EntryKind::Group,
            partition: partition(i32::try_from(index).unwrap()),
            base_offset: Offset(-5),
            record_count: 0,
            leader_epoch: -1,
            body_offset: offset,
            body_len: u32::try_from(body.len()).unwrap(),
            body_crc: crc32c::crc32c(body),
        };
        offset += entry.body_len;
        encode_entry(&entry, index, &mut bytes);
    }
    let start = header.header_len as usize;
    bytes[start..start + payload.len()].copy_from_slice(&payload);
    let header = encode_header(header, &mut bytes);
    (header, bytes)
}

/// Each bit of header and directory is under the header's checksum, or is that checksum.
#[test]
fn no_flipped_bit_of_a_header_passes() {
    let (header, bytes) = sample_block(&[vec![1; 10], vec![2; 20]]);
    assert_eq!(decode_header(&bytes), Ok(header));
    for bit in 0..header.header_len as usize * 8 {
        let mut rotten = bytes.clone();
        rotten[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_header(&rotten).is_err(), "bit {bit}");
    }
}

/// A newer version is told from damage, and by its number.
#[test]
fn a_newer_version_is_named() {
    let (header, mut bytes) = sample_block(&[vec![1; 10]]);
    bytes[8] = 2;
    assert_eq!(
        decode_header(&bytes),
        Err(HeaderError::Checksum),
        "only damaged"
    );
    let covered = [&bytes[..76], &bytes[80..header.header_len as usize]].concat();
    let crc = crc32c::crc32c(&covered);
    bytes[76..80].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(decode_header(&bytes), Err(HeaderError::Version(2)));
}

/// Numbers of kinds are on disk: they never move, and gaps are unknown.
#[test]
fn kinds_keep_their_numbers() {
    let known: Vec<u8> = (0..=255)
        .filter(|n| EntryKind::from_number(*n).is_some())
        .collect();
    assert_eq!(known, (1..=10).collect::<Vec<u8>>());
    for number in known {
        assert_eq!(EntryKind::from_number(number).unwrap() as u8, number);
    }
    assert_eq!(EntryKind::Records as u8, 1);
    assert_eq!(EntryKind::TopicDropped as u8, 10);
    let (header, mut bytes) = sample_block(&[vec![1; 10]]);
    bytes[HEADER_BYTES] = 11;
    assert_eq!(
        decode_entry(&header, 0, &bytes),
        Err(EntryError::UnknownKind(11))
    );
}

#[test]
fn marks_and_seals_round_trip() {
    let mark = SegmentMark {
        segment: 4,
        journal: 5,
        previous_incarnation: 6,
        segment_bytes: 7,
        fresh: true,
    };
    assert_eq!(SegmentMark::decode(&mark.encode()), Some(mark));
    assert_eq!(SegmentMark::decode(&mark.encode()[1..]), None);
    let seal = encode_seal(SealReason::Cut, Some((Position(9), BlockSequence(8))));
    assert_eq!((seal[0], get_u64(&seal, 8), get_u64(&seal, 16)), (3, 9, 8));
}

proptest! {
    #[test]
    fn blocks_round_trip(bodies in prop::collection::vec(
        prop::collection::vec(any::<u8>(), 0..600), 1..20)) {
        let (header, bytes) = sample_block(&bodies);
        prop_assert_eq!(decode_header(&bytes), Ok(header));
        prop_assert_eq!(bytes.len() % 4096, 0);
        prop_assert!(payload_is_valid(&header, &bytes));
        for (index, body) in bodies.iter().enumerate() {
            let entry = decode_entry(&header, index, &bytes).unwrap();
            let start = header.header_len as usize + entry.body_offset as usize;
            prop_assert_eq!(&bytes[start..start + entry.body_len as usize], body.as_slice());
            prop_assert_eq!(entry.body_crc, crc32c::crc32c(body));
        }
    }

    #[test]
    fn random_bytes_are_no_block(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        prop_assert!(decode_header(&bytes).is_err());
    }

    #[test]
    fn a_header_with_wild_lengths_never_panics(
        header_len in any::<u32>(), payload in any::<u32>(), count in any::<u32>()) {
        let (_, mut bytes) = sample_block(&[vec![1; 10]]);
        bytes[56..60].copy_from_slice(&header_len.to_le_bytes());
        bytes[60..64].copy_from_slice(&payload.to_le_bytes());
        bytes[12..16].copy_from_slice(&count.to_le_bytes());
        let covered = (header_len as usize).clamp(80, bytes.len());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..76]), &bytes[80..covered]);
        bytes[76..80].copy_from_slice(&crc.to_le_bytes());
        if let Ok(header) = decode_header(&bytes) {
            prop_assert!(header.block_len() <= crate::limits::BLOCK_BYTES_HARD_MAX);
            prop_assert_eq!(header.entry_count, 1);
        }
    }
}
