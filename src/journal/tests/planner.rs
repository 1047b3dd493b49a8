//! Goal: the planner's invariants. Method: hand-made cases, then random scripts of staging and
//! completions in any order, against a naive account of what is staged, in flight and durable.

use super::super::format::{EntryKind, batch, decode_entry};
use super::super::pack::{Plan, Planner, Tail};
use super::*;
use proptest::prelude::*;

fn planner(config: &JournalConfig) -> Planner {
    let tail = Tail {
        segment: 0,
        offset: 4096,
        incarnation: 77,
        sequence: BlockSequence(1),
        digest: 99,
        sealed: true,
    };
    Planner::new(config, tail)
}

fn records(index: i32, base: i64, id: u64, len: usize) -> StagedEntry {
    StagedEntry::Records {
        partition: partition(index),
        base_offset: Offset(base),
        leader_epoch: 5,
        record_count: 2,
        batches: batch::sample(2, &body(id, len)).into(),
    }
}

/// Packs the next block; its bytes.
fn pack(planner: &mut Planner) -> Option<Vec<u8>> {
    let Plan::Block(draft) = planner.plan() else {
        return None;
    };
    let mut bytes = vec![0; draft.block_len()];
    planner.pack(draft, &mut bytes);
    planner.keep(SharedBuffer::from(bytes.clone()));
    Some(bytes)
}

/// Batches of one partition become one entry, wherever they were staged; state follows in order.
#[test]
fn entries_are_grouped_by_partition() {
    let config = small_config();
    let mut planner = planner(&config);
    planner.stage(records(1, 0, 1, 8));
    planner.stage(StagedEntry::State {
        kind: EntryKind::Topic,
        body: body(2, 8).into(),
    });
    planner.stage(records(0, 10, 3, 8));
    planner.stage(records(1, 2, 4, 8));
    let bytes = pack(&mut planner).expect("there is room");
    let header = super::super::format::decode_header(&bytes).unwrap();
    let entry = |index| decode_entry(&header, index, &bytes).unwrap();
    assert_eq!(header.entry_count, 3);
    assert_eq!(
        (entry(0).partition, entry(0).base_offset.0),
        (partition(0), 10)
    );
    assert_eq!(
        (entry(1).partition, entry(1).record_count),
        (partition(1), 4)
    );
    assert_eq!(entry(2).kind, EntryKind::Topic);
    assert_eq!(header.previous_digest, 99);
    assert_eq!((header.durable.0, header.sequence.0), (1, 2));
    let start = header.header_len as usize + entry(1).body_offset as usize;
    let batches = &bytes[start..start + entry(1).body_len as usize];
    assert_eq!(batch::check(batches, Offset(0), 5), Ok(Offset(4)));
    assert_eq!(planner.stage_packed(), 4);
}

/// A gap in the offsets of a partition is a bug that must not reach the disk.
#[test]
#[should_panic(expected = "an offset is assigned once")]
fn a_gap_in_offsets_panics() {
    let config = small_config();
    let mut planner = planner(&config);
    planner.stage(records(1, 0, 1, 8));
    planner.stage(records(1, 3, 2, 8));
    pack(&mut planner);
}

/// Batches that span other offsets than staged are a bug that must not reach the disk.
#[test]
#[should_panic(expected = "span the offsets they claim")]
fn a_false_record_count_panics() {
    let config = small_config();
    let mut planner = planner(&config);
    let StagedEntry::Records { batches, .. } = records(1, 0, 1, 8) else {
        unreachable!()
    };
    planner.stage(StagedEntry::Records {
        partition: partition(1),
        base_offset: Offset(0),
        leader_epoch: 5,
        record_count: 3,
        batches,
    });
    pack(&mut planner);
}

/// What does not fit into the segment waits for the next one.
#[test]
fn a_full_segment_rolls() {
    let config = small_config();
    let mut planner = planner(&config);
    let mut rolled = false;
    for id in 0..40 {
        planner.stage(records(0, id * 2, 1, 6000));
        match planner.plan() {
            Plan::Roll => {
                rolled = true;
                break;
            }
            Plan::Block(_) => {
                pack(&mut planner);
                planner.written(planner.tail().sequence, CommitTimes::default());
                assert!(planner.pop_durable().is_some());
            }
            Plan::Wait => panic!("nothing is in flight"),
        }
    }
    assert!(rolled);
    assert!(planner.tail().offset <= config.segment_bytes);
}

proptest! {
    /// Tickets become durable in order whatever the order of completions; no more is in flight than
    /// a crash may tear; nothing staged is lost or doubled.
    #[test]
    fn any_order_of_completions(
        script in prop::collection::vec((0u8..3, 0usize..9000, any::<u8>()), 1..120),
    ) {
        let mut config = small_config();
        config.segment_bytes = 16 << 20;
        let mut planner = planner(&config);
        let mut open: Vec<(BlockSequence, usize)> = Vec::new();
        let (mut staged, mut durable, mut next) = (0u64, 0u64, 0i64);
        for (action, len, choice) in script {
            match action {
                0 => {
                    staged += 1;
                    planner.stage(records(0, next, staged, len));
                    next += 2;
                }
                1 => {
                    if let Some(bytes) = pack(&mut planner) {
                        let single = bytes.len() > config.block_bytes_max + 4096;
                        prop_assert!(!single || bytes.len() <= config.block_bytes_hard_max);
                        open.push((planner.tail().sequence, bytes.len()));
                    }
                }
                _ => {
                    if !open.is_empty() {
                        let index = usize::from(choice) % open.len();
                        let (sequence, _) = open.remove(index);
                        planner.written(sequence, CommitTimes::default());
                    }
                    while let Some(block) = planner.pop_durable() {
                        prop_assert!(block.stage_last >= durable);
                        durable = block.stage_last;
                        let waits = open.iter().any(|(open, _)| *open <= block.header.sequence);
                        prop_assert!(!waits, "an earlier block is still being written");
                    }
                }
            }
            prop_assert!(planner.in_flight() <= config.commit_depth);
            let bytes: usize = open.iter().map(|(_, len)| len).sum();
            prop_assert!(open.len() == 1 || bytes <= config.window_bytes() as usize);
            prop_assert!(durable <= planner.stage_packed() && planner.stage_packed() <= staged);
        }
    }
}
