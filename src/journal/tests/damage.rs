//! Goal: rot, loss and exchange of files end in exactly the damage they did, or in a refusal; never
//! in wrong or silently missing records, and never in a changed file. Method: finished journals,
//! edited by hand.

use super::crash::verified;
use super::*;
use crate::base::exit::ExitCode;

const SEGMENT: [&str; 4] = [
    "journal-00000000.seg",
    "journal-00000001.seg",
    "journal-00000002.seg",
    "journal-00000003.seg",
];

/// One segment: eight blocks of three entries (two partitions, one state), sealed.
fn one_segment(close: bool) -> Media {
    disk_after(11, async move |bench: Bench| {
        for round in 0..8 {
            bench.records(0, round * 3, 300);
            bench.records(1, round * 3 + 1, 300);
            bench.settle(bench.state(round * 3 + 2, 50)).await;
        }
        if close {
            bench.journal.close().await.unwrap();
        }
    })
}

/// Four segments of large batches.
fn four_segments(seed: u64) -> Media {
    let disk = disk_after(seed, async |bench: Bench| {
        for id in 0..50 {
            bench
                .settle(bench.records(i32::try_from(id % 2).unwrap(), id, 6000))
                .await;
        }
        bench.journal.close().await.unwrap();
    });
    assert!(names(&disk).iter().any(|name| name == SEGMENT[3]));
    disk
}

fn all(count: u64) -> Vec<u64> {
    (0..count).collect()
}

/// Offset of the block with this number, and its header.
fn block(media: &Media, file: &str, sequence: u64) -> (u64, super::super::format::Header) {
    let found = headers(&contents(media, file));
    let found = found
        .into_iter()
        .find(|(_, header)| header.sequence.0 == sequence);
    let (offset, header) = found.expect("the block is there");
    (offset as u64, header)
}

fn refused(media: &Media) -> JournalError {
    let before: Vec<Vec<u8>> = names(media)
        .iter()
        .map(|name| contents(media, name))
        .collect();
    let config = JournalConfig {
        create: false,
        ..small_config()
    };
    let (opened, after) = reopen_with(media, config);
    let kept: Vec<Vec<u8>> = names(&after)
        .iter()
        .map(|name| contents(&after, name))
        .collect();
    match opened {
        Ok((_, report)) => panic!("it opened: {report:?}"),
        Err(error) => {
            assert!(before == kept, "a refusal changes nothing");
            error
        }
    }
}

#[test]
fn an_undamaged_journal_is_clean() {
    let (model, report) = reopen(&one_segment(true)).unwrap();
    assert!(!report.is_remarkable());
    assert_eq!(model.items.len(), 24);
    assert!(verified(&one_segment(true)).is_clean());
}

/// Row 1 of the table: rot in a body of an acknowledged block concerns its partition only.
#[test]
fn rot_in_records_concerns_only_their_partition() {
    let disk = one_segment(true);
    let (offset, header) = block(&disk, SEGMENT[0], 4);
    let at = offset + u64::from(header.header_len) + 100;
    let rotten = edit(&disk, SEGMENT[0], at, 1, |bytes| bytes[0] ^= 4);
    let (model, report) = reopen(&rotten).unwrap();
    assert_eq!(model.damaged, [(Some(partition(0)), 4, 2)]);
    let expected: Vec<u64> = all(24).into_iter().filter(|id| *id != 6).collect();
    let mut ids = model.ids();
    ids.sort_unstable();
    assert_eq!(ids, expected);
    assert_eq!((report.damage_total, report.cut), (1, None));
    assert!(report.file.is_some(), "it is reported");
    let DamageKind::Records { base_offset, .. } = report.damage[0].kind else {
        panic!("{:?}", report.damage);
    };
    assert_eq!(base_offset.0, 4);
    let found = verified(&rotten);
    assert_eq!(
        (found.damage_total, found.blocks),
        (1, 9),
        "{:?}",
        found.damage
    );
}

/// A state entry that was acknowledged cannot be left out.
#[test]
fn rot_in_a_state_entry_refuses() {
    let disk = one_segment(true);
    let (offset, header) = block(&disk, SEGMENT[0], 4);
    let at = offset + u64::from(header.header_len) + u64::from(header.payload_len) - 1;
    let rotten = edit(&disk, SEGMENT[0], at, 1, |bytes| bytes[0] ^= 4);
    let error = refused(&rotten);
    assert!(matches!(error, JournalError::Corrupt { .. }), "{error}");
    assert_eq!(error.exit_code(), ExitCode::DataRefused);
    assert!(error.to_string().contains(SEGMENT[0]), "{error}");
}

/// Without its header nobody knows whose records a block held.
#[test]
fn rot_in_a_header_is_unknown_damage() {
    let disk = one_segment(true);
    let (offset, header) = block(&disk, SEGMENT[0], 4);
    let rotten = edit(&disk, SEGMENT[0], offset, 4096, |bytes| bytes.fill(0));
    let (model, report) = reopen(&rotten).unwrap();
    assert_eq!(model.damaged, [(None, 0, 0)]);
    assert_eq!(model.items.len(), 21);
    assert_eq!(report.damage[0].position, header.position);
    let kind = &report.damage[0].kind;
    let only = BlockSequence(4);
    assert_eq!(
        *kind,
        DamageKind::Blocks {
            first: only,
            last: only
        }
    );
}

/// Last row: rot of the very last block, which nothing vouches for, is cut and said.
#[test]
fn rot_of_the_last_block_is_cut_and_said() {
    let disk = one_segment(false);
    let last = headers(&contents(&disk, SEGMENT[0]))
        .last()
        .copied()
        .unwrap();
    for at in [
        last.0 as u64,
        last.0 as u64 + u64::from(last.1.header_len) + 9,
    ] {
        let rotten = edit(&disk, SEGMENT[0], at, 1, |bytes| bytes[0] ^= 1);
        let config = JournalConfig {
            create: false,
            ..small_config()
        };
        let (opened, after) = reopen_with(&rotten, config);
        let (model, report) = opened.unwrap();
        let cut = report.cut.expect("the tail is cut");
        assert_eq!(
            (cut.reason, cut.sequence),
            (CutReason::Residual, last.1.sequence)
        );
        assert_eq!(model.items.len(), 21);
        assert!(
            names(&after)
                .iter()
                .any(|name| name.starts_with("recovery-"))
        );
        let (again, report) = reopen(&after).unwrap();
        assert_eq!(again.items, model.items);
        assert!(!report.is_remarkable());
    }
}

/// A sealed journal's last block cannot be cut: the seal vouches.
#[test]
fn a_seal_vouches_for_the_last_block() {
    let disk = one_segment(true);
    let blocks = headers(&contents(&disk, SEGMENT[0]));
    let (offset, _) = blocks[blocks.len() - 2];
    let rotten = edit(&disk, SEGMENT[0], offset as u64, 8, |bytes| bytes.fill(0));
    let (model, report) = reopen(&rotten).unwrap();
    assert_eq!((model.damaged.len(), report.cut), (1, None));
}

/// Damage wider than what can be in flight is no crash, even if nothing vouches.
#[test]
fn damage_wider_than_a_crash_refuses() {
    let disk = one_segment(false);
    let (offset, header) = headers(&contents(&disk, SEGMENT[0]))
        .last()
        .copied()
        .unwrap();
    let end = (offset + header.block_len()) as u64;
    let window = usize::try_from(small_config().window_bytes()).unwrap();
    let wide = edit(&disk, SEGMENT[0], end, window + 4096, |bytes| {
        bytes.fill(0x5a)
    });
    assert!(matches!(refused(&wide), JournalError::Corrupt { .. }));
    assert_eq!(verified(&wide).damage_total, 1);
    let narrow = edit(&disk, SEGMENT[0], end, window, |bytes| bytes.fill(0x5a));
    let (model, report) = reopen(&narrow).unwrap();
    assert_eq!(report.cut.unwrap().reason, CutReason::Residual);
    assert_eq!(model.items.len(), 24);
}

/// A segment's mark holds nothing of a user's.
#[test]
fn rot_of_a_mark_loses_nothing() {
    let disk = four_segments(12);
    for file in &SEGMENT[..3] {
        let rotten = edit(&disk, file, 20, 1, |bytes| bytes[0] ^= 1);
        let (model, report) = reopen(&rotten).unwrap();
        assert_eq!(model.items.len(), 50, "{file}");
        assert!(model.damaged.is_empty());
        assert_eq!(report.damage.len(), 1);
        assert_eq!(report.damage[0].kind, DamageKind::Bookkeeping);
        assert_eq!(verified(&rotten).damage_total, 1, "{file}");
    }
}

/// Every bit of every header, and bits of every body: what is missing afterwards was said, what is
/// there is right, and nothing is invented.
#[test]
fn no_bit_is_lost_in_silence() {
    let config = || JournalConfig {
        segment_bytes: 40 << 10,
        ..small_config()
    };
    let run = Sim::new(13).run(async move |env: Env| {
        let (bench, _) = Bench::open(env, config()).await;
        for round in 0..2 {
            bench.records(0, round * 2, 30);
            bench.settle(bench.records(1, round * 2 + 1, 30)).await;
        }
        bench.journal.close().await.unwrap();
    });
    let disk = run.after.stopped();
    let reopen = |media: &Media| {
        let config = JournalConfig {
            create: false,
            ..config()
        };
        reopen_with(media, config).0
    };
    let (whole, _) = reopen(&disk).unwrap();
    let bytes = contents(&disk, SEGMENT[0]);
    for (offset, header) in headers(&bytes) {
        let used = header.header_len as usize + header.payload_len as usize;
        for bit in 0..used * 8 {
            // Headers in full, bodies sampled.
            if bit / 8 >= header.header_len as usize && bit % 7 != 0 {
                continue;
            }
            let at = (offset + bit / 8) as u64;
            let rotten = edit(&disk, SEGMENT[0], at, 1, move |bytes| {
                bytes[0] ^= 1 << (bit % 8)
            });
            let place = format!("block {}, bit {bit}", header.sequence);
            match reopen(&rotten) {
                Err(JournalError::Corrupt { .. }) => {}
                Err(error) => panic!("{place}: {error}"),
                Ok((model, report)) => {
                    assert!(report.is_remarkable(), "{place}: nothing was said");
                    let known = |item: &Item| whole.items.contains(item);
                    assert!(model.items.iter().all(known), "{place}: invented");
                    let missing = model.items.len() < whole.items.len();
                    let said = !model.damaged.is_empty() || report.cut.is_some();
                    assert!(!missing || said, "{place}: lost in silence");
                }
            }
        }
    }
}

/// Files that are missing, exchanged, truncated, of another shard or store: refused, by name.
#[test]
fn wrong_files_are_refused() {
    let disk = four_segments(12);
    let gone = |file: &'static str| without(&disk, file);
    for file in &SEGMENT[..3] {
        let error = refused(&gone(file));
        let named = error.to_string();
        assert!(
            matches!(error, JournalError::Missing { .. }),
            "{file}: {named}"
        );
        assert!(named.contains(file), "{named}");
        assert!(!verified(&gone(file)).is_clean(), "{file}");
    }
    for (left, right) in [(0, 1), (1, 2), (1, 3), (2, 3)] {
        let (one, two) = (
            contents(&disk, SEGMENT[left]),
            contents(&disk, SEGMENT[right]),
        );
        let half = replaced(&disk, SEGMENT[left], two);
        let swapped = replaced(&half, SEGMENT[right], one.clone());
        assert!(
            matches!(refused(&swapped), JournalError::Foreign { .. }),
            "{left} {right}"
        );
        assert!(!verified(&swapped).is_clean());
        let copied = replaced(&disk, SEGMENT[right], one);
        assert!(
            matches!(refused(&copied), JournalError::Foreign { .. }),
            "{left} over {right}"
        );
    }
    let other = four_segments(99);
    for file in SEGMENT {
        let mixed = replaced(&disk, file, contents(&other, file));
        let error = refused(&mixed);
        assert!(
            matches!(error, JournalError::Foreign { .. }),
            "{file}: {error}"
        );
    }
    let config = JournalConfig {
        shard: ShardId(1),
        create: false,
        ..small_config()
    };
    let (opened, _) = reopen_with(&disk, config);
    assert!(matches!(opened, Err(JournalError::Foreign { .. })));
}

#[test]
fn a_truncated_segment_is_refused() {
    let disk = four_segments(12);
    for file in SEGMENT {
        let mut bytes = contents(&disk, file);
        bytes.truncate(bytes.len() - 4096);
        let error = refused(&replaced(&without(&disk, file), file, bytes));
        assert!(
            matches!(error, JournalError::Corrupt { .. }),
            "{file}: {error}"
        );
    }
}

#[test]
fn another_segment_length_is_refused() {
    let config = JournalConfig {
        segment_bytes: 128 << 10,
        create: false,
        ..small_config()
    };
    let (opened, _) = reopen_with(&one_segment(true), config);
    assert!(opened.is_err());
}

/// A folder without a journal is a missing journal, unless the store is being made.
#[test]
fn an_empty_folder_is_not_an_empty_journal() {
    let run = Sim::new(1).run(async |env: Env| {
        env.disk().create_dir_all(Path::new(DIR)).await.unwrap();
        let config = JournalConfig {
            create: false,
            ..small_config()
        };
        let opened = Bench::try_open(env, config).await;
        assert!(matches!(opened.err(), Some(JournalError::Missing { .. })));
    });
    assert!(names(&run.after).is_empty());
    let blank = edit(&one_segment(true), SEGMENT[0], 0, 96 << 10, |bytes| {
        bytes.fill(0)
    });
    assert!(
        matches!(refused(&blank), JournalError::Corrupt { .. }),
        "all zeros"
    );
}

/// What a newer Penstock wrote is refused by the number of its version.
#[test]
fn a_newer_format_is_refused_by_its_number() {
    let disk = one_segment(true);
    let (offset, header) = block(&disk, SEGMENT[0], 5);
    let header_len = header.header_len as usize;
    let patch = |change: fn(&mut [u8])| {
        edit(&disk, SEGMENT[0], offset, header_len, move |bytes| {
            change(bytes);
            let fixed = crc32c::crc32c(&bytes[..76]);
            let crc = crc32c::crc32c_append(fixed, &bytes[80..]);
            bytes[76..80].copy_from_slice(&crc.to_le_bytes());
        })
    };
    let error = refused(&patch(|bytes| bytes[8] = 9));
    assert!(
        matches!(error, JournalError::Version { version: 9, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("version 9"));
    // The chain to the next block breaks too, but an unknown kind is met first.
    let error = refused(&patch(|bytes| bytes[80] = 77));
    assert!(matches!(error, JournalError::Version { .. }), "{error}");
    assert!(error.to_string().contains("77"));
}

/// A read that meets rot is an error for that extent, and only for it.
#[test]
fn a_damaged_extent_is_an_error_not_wrong_bytes() {
    run_script(14, async |bench: Bench| {
        for id in 0..40 {
            bench.settle(bench.records(0, id, 1500)).await;
        }
        let extents: Vec<Extent> = bench
            .model
            .borrow()
            .extents
            .iter()
            .map(|(_, extent, _)| *extent)
            .collect();
        let target = extents[3];
        let path = Path::new(DIR).join(SEGMENT[0]);
        let file = bench.env.disk().open(&path, OpenMode::Write).await.unwrap();
        // The first 21 bytes are outside the batch's own checksum.
        for byte in [0, 7, 8, 11, 12, 15, 16, 17, 21, 60, 61, 1000] {
            let at = target.position.0 + byte;
            let sector = at / 4096 * 4096;
            let good = file.read_at(sector, 4096).await.unwrap();
            let mut bad = good.to_vec();
            bad[usize::try_from(at - sector).unwrap()] ^= 0x10;
            file.write_all_at(SharedBuffer::from(bad), sector)
                .await
                .unwrap();
            let error = bench.journal.read(target).await.expect_err("rot is seen");
            assert!(
                matches!(error, ReadError::Damaged { .. }),
                "byte {byte}: {error}"
            );
            let answers = bench.journal.read_many(&extents[2..5]).await;
            let good_ones: Vec<bool> = answers.iter().map(Result::is_ok).collect();
            assert_eq!(good_ones, [true, false, true], "byte {byte}");
            file.write_all_at(good, sector).await.unwrap();
            assert!(bench.journal.read(target).await.is_ok());
        }
    });
}

/// A read that fails now and then is tried in smaller pieces: nothing is lost by it.
#[test]
fn a_failing_read_is_bisected() {
    use crate::env::sim::{Fault, FaultPlan, OpKind, Rule};
    let disk = four_segments(12);
    for (nth, fault) in [
        (1, Fault::Errno(5)),
        (2, Fault::Errno(5)),
        (2, Fault::Short),
    ] {
        let plan = FaultPlan::none().and(Rule {
            kind: OpKind::Read,
            path_contains: Some("journal-".to_owned()),
            nth,
            times: 1,
            fault,
        });
        let sim = Sim::new(1).disk(disk.clone()).instant().faults(plan);
        let run = sim.run(async |env: Env| {
            let config = JournalConfig {
                create: false,
                ..small_config()
            };
            let (bench, report) = Bench::open(env, config).await;
            assert!(!report.is_remarkable());

            bench.model.borrow().items.len()
        });
        assert_eq!((run.value, run.faults.hits()), (50, 1));
    }
}

/// The disk without this file.
fn without(media: &Media, file: &str) -> Media {
    let path = Path::new(DIR).join(file);
    let sim = Sim::new(1).disk(media.clone()).instant().unrecorded();
    let run = sim.run(async move |env: Env| env.disk().remove(&path).await.unwrap());
    run.after.stopped()
}

/// The disk with this file's contents replaced.
fn replaced(media: &Media, file: &str, bytes: Vec<u8>) -> Media {
    let path = Path::new(DIR).join(file);
    let sim = Sim::new(1).disk(media.clone()).instant().unrecorded();
    let run = sim.run(async move |env: Env| {
        let _ = env.disk().remove(&path).await;
        env.disk().write_small_new(&path, bytes).await.unwrap();
    });
    run.after.stopped()
}
