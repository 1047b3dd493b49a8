//! Goal: every rule of the disk model and of the executor holds, the forbidding ones included.
//! Method: tiny scripts on a recorded disk; all crash images of an instant are built, and the set
//! of contents they show is compared with the set the rule allows.

use super::*;
use crate::env::{Env, OpenMode, SharedBuffer};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;

const DIR: &str = "/data";
const FILE: &str = "/data/file";
const SECTOR: u64 = SECTOR_BYTES as u64;

fn filled(sectors: usize, byte: u8) -> SharedBuffer {
    SharedBuffer::from(vec![byte; sectors * SECTOR_BYTES])
}

/// A disk with a durable file of `sectors` zero sectors.
fn disk_with_file(sectors: u64) -> Media {
    let run = Sim::new(1).instant().run(async move |env: Env| {
        let disk = env.disk();
        disk.create_dir_all(Path::new(DIR)).await.unwrap();
        disk.sync_dir(Path::new("/")).await.unwrap();
        disk.create_allocated(Path::new(FILE), sectors * SECTOR, SECTOR)
            .await
            .unwrap();
        disk.sync_dir(Path::new(DIR)).await.unwrap();
    });
    assert!(run.after.undecided().is_empty(), "everything was flushed");
    run.after
}

/// First bytes of the sectors of `path`, or nothing if there is no such file.
fn first_bytes(media: &Media, path: &str) -> Option<Vec<u8>> {
    let Some(Entry::File(inode)) = media.lookup(Path::new(path)) else {
        return None;
    };
    let len = usize::try_from(media.len(inode)).unwrap();
    let bytes = media.read(inode, 0, len);
    Some(bytes.chunks(SECTOR_BYTES).map(|sector| sector[0]).collect())
}

/// What all crash images of the final instant show of `path`.
fn outcomes<T>(run: &Run<T>, path: &str) -> BTreeSet<Option<Vec<u8>>> {
    let undecided = run.after.undecided();
    assert!(
        undecided.choices() <= 4096,
        "a script this small can be enumerated"
    );
    let choices = (0..undecided.choices()).map(|index| undecided.choice(index));
    let images = choices.map(|choice| run.after.crash(&undecided, &choice));
    images.map(|image| first_bytes(&image, path)).collect()
}

fn sectors<const N: usize>(all: &[[u8; N]]) -> BTreeSet<Option<Vec<u8>>> {
    all.iter().map(|bytes| Some(bytes.to_vec())).collect()
}

/// A write that completed but was never flushed may be lost, sector by sector.
#[test]
fn unflushed_write_may_be_lost_and_torn() {
    let run = Sim::new(2).disk(disk_with_file(2)).run(async |env: Env| {
        let file = env
            .disk()
            .open(Path::new(FILE), OpenMode::Write)
            .await
            .unwrap();
        file.write_all_at(filled(2, 7), 0).await.unwrap();
        assert_eq!(
            file.read_at(0, 4096).await.unwrap()[0],
            7,
            "a running process sees it"
        );
    });
    assert_eq!(
        outcomes(&run, FILE),
        sectors(&[[0, 0], [0, 7], [7, 0], [7, 7]])
    );
}

/// A flush after completion makes a write durable: no image loses it.
#[test]
fn flushed_write_survives() {
    let run = Sim::new(3).disk(disk_with_file(2)).run(async |env: Env| {
        let file = env
            .disk()
            .open(Path::new(FILE), OpenMode::Write)
            .await
            .unwrap();
        file.write_all_at(filled(2, 7), 0).await.unwrap();
        file.sync_data().await.unwrap();
    });
    assert_eq!(outcomes(&run, FILE), BTreeSet::from([Some(vec![7, 7])]));
}

/// A flush submitted while a write is in flight promises nothing about that write, even if both
/// have completed since. Forty seeds meet both orders of completion.
#[test]
fn flush_beside_a_write_does_not_cover_it() {
    for seed in 0..40 {
        let run = Sim::new(seed)
            .disk(disk_with_file(1))
            .run(async |env: Env| {
                let file = env
                    .disk()
                    .open(Path::new(FILE), OpenMode::Write)
                    .await
                    .unwrap();
                let write = file.write_all_at(filled(1, 7), 0);
                let flush = file.sync_data();
                let (written, flushed) = futures_lite::future::zip(write, flush).await;
                written.unwrap();
                flushed.unwrap();
            });
        let lost_or_kept = BTreeSet::from([Some(vec![0]), Some(vec![7])]);
        assert_eq!(outcomes(&run, FILE), lost_or_kept, "seed {seed}");
    }
}

/// An `O_DSYNC` write is durable when it completes; not before; and it covers no other write.
#[test]
fn dsync_write_is_durable_exactly_from_its_completion() {
    let run = Sim::new(4).disk(disk_with_file(3)).run(async |env: Env| {
        let disk = env.disk();
        let plain = disk.open(Path::new(FILE), OpenMode::Write).await.unwrap();
        let dsync = disk
            .open(Path::new(FILE), OpenMode::WriteDsync)
            .await
            .unwrap();
        plain.write_all_at(filled(1, 5), 2 * SECTOR).await.unwrap();
        dsync.write_all_at(filled(2, 7), 0).await.unwrap();
    });
    let only_the_plain_one_is_open = BTreeSet::from([Some(vec![7, 7, 0]), Some(vec![7, 7, 5])]);
    assert_eq!(outcomes(&run, FILE), only_the_plain_one_is_open);

    let mut points = CrashPoints::new(&run.before, &run.events);
    let mut in_flight = 0;
    while let Some(event) = points.step() {
        if matches!(event, Event::Submit(_, Change::Write { dsync: true, .. })) {
            let undecided = points.media().undecided();
            assert_eq!(
                undecided.choices(),
                8,
                "two sectors in flight, one volatile"
            );
            in_flight += 1;
        }
    }
    assert_eq!(in_flight, 1, "the script writes once with O_DSYNC");
}

/// Of two `O_DSYNC` writes in flight either may be durable first.
#[test]
fn dsync_writes_complete_in_any_order() {
    let mut orders = BTreeSet::new();
    for seed in 0..40 {
        let run = Sim::new(seed)
            .disk(disk_with_file(2))
            .run(async |env: Env| {
                let file = env
                    .disk()
                    .open(Path::new(FILE), OpenMode::WriteDsync)
                    .await
                    .unwrap();
                let first = file.write_all_at(filled(1, 1), 0);
                let second = file.write_all_at(filled(1, 2), SECTOR);
                let (first, second) = futures_lite::future::zip(first, second).await;
                first.and(second).unwrap();
            });
        let ends = run.events.iter().filter_map(|event| match event {
            Event::Complete(op) => Some(*op),
            _ => None,
        });
        let ends: Vec<_> = ends.collect();
        orders.insert(ends[0] < ends[1]);
    }
    assert_eq!(orders.len(), 2, "both orders are met");
}

/// Overwriting a sector twice without a flush leaves three possible values; a flush between them
/// settles the first only.
#[test]
fn versions_of_a_sector() {
    let run = Sim::new(5).disk(disk_with_file(1)).run(async |env: Env| {
        let file = env
            .disk()
            .open(Path::new(FILE), OpenMode::Write)
            .await
            .unwrap();
        file.write_all_at(filled(1, 1), 0).await.unwrap();
        file.write_all_at(filled(1, 2), 0).await.unwrap();
    });
    let all = BTreeSet::from([Some(vec![0]), Some(vec![1]), Some(vec![2])]);
    assert_eq!(outcomes(&run, FILE), all);
    let run = Sim::new(5).disk(disk_with_file(1)).run(async |env: Env| {
        let file = env
            .disk()
            .open(Path::new(FILE), OpenMode::Write)
            .await
            .unwrap();
        file.write_all_at(filled(1, 1), 0).await.unwrap();
        file.sync_data().await.unwrap();
        file.write_all_at(filled(1, 2), 0).await.unwrap();
    });
    assert_eq!(
        outcomes(&run, FILE),
        BTreeSet::from([Some(vec![1]), Some(vec![2])])
    );
}

/// A new file's name is lost without `sync_dir`, although its contents were flushed; with it, not.
#[test]
fn name_waits_for_sync_dir() {
    let script = async |env: Env, flush: bool| {
        let disk = env.disk();
        disk.write_small_new(Path::new("/data/new"), b"hello".to_vec())
            .await
            .unwrap();
        if flush {
            disk.sync_dir(Path::new(DIR)).await.unwrap();
        }
    };
    let run = Sim::new(6)
        .disk(disk_with_file(1))
        .run(move |env| script(env, false));
    assert_eq!(
        outcomes(&run, "/data/new"),
        BTreeSet::from([None, Some(vec![b'h'])])
    );
    let run = Sim::new(6)
        .disk(disk_with_file(1))
        .run(move |env| script(env, true));
    assert_eq!(
        outcomes(&run, "/data/new"),
        BTreeSet::from([Some(vec![b'h'])])
    );
}

/// A rename is atomic, and undone by a crash before `sync_dir`.
#[test]
fn rename_waits_for_sync_dir_and_is_atomic() {
    let run = Sim::new(7).disk(disk_with_file(1)).run(async |env: Env| {
        let target = Path::new("/data/target");
        env.disk().rename(Path::new(FILE), target).await.unwrap();
        assert!(
            env.disk()
                .open(Path::new(FILE), OpenMode::Read)
                .await
                .is_err()
        );
    });
    let undecided = run.after.undecided();
    assert_eq!(undecided.choices(), 2);
    for index in 0..2 {
        let image = run.after.crash(&undecided, &undecided.choice(index));
        let source = first_bytes(&image, FILE).is_some();
        let target = first_bytes(&image, "/data/target").is_some();
        assert!(source != target, "exactly one name");
    }
}

/// A removed file may come back until the directory is flushed.
#[test]
fn removal_waits_for_sync_dir() {
    let run = Sim::new(8).disk(disk_with_file(1)).run(async |env: Env| {
        env.disk().remove(Path::new(FILE)).await.unwrap();
    });
    assert_eq!(outcomes(&run, FILE), BTreeSet::from([None, Some(vec![0])]));
}

/// A folder whose name was not flushed takes everything in it along.
#[test]
fn lost_folder_loses_its_files() {
    let run = Sim::new(9).run(async |env: Env| {
        let disk = env.disk();
        disk.create_dir_all(Path::new(DIR)).await.unwrap();
        disk.create_allocated(Path::new(FILE), SECTOR, SECTOR)
            .await
            .unwrap();
        disk.sync_dir(Path::new(DIR)).await.unwrap();
    });
    assert_eq!(outcomes(&run, FILE), BTreeSet::from([None, Some(vec![0])]));
}

/// While a file is being zeroed a crash finds it shorter; once it is made, it has its length.
#[test]
fn length_is_volatile_until_flushed() {
    let run = Sim::new(10).disk(disk_with_file(1)).run(async |env: Env| {
        let disk = env.disk();
        disk.create_allocated(Path::new("/data/new"), 9 * SECTOR, SECTOR)
            .await
            .unwrap();
        disk.sync_dir(Path::new(DIR)).await.unwrap();
    });
    assert_eq!(
        outcomes(&run, "/data/new"),
        BTreeSet::from([Some(vec![0; 9])])
    );
    let mut lengths = BTreeSet::new();
    let mut points = CrashPoints::new(&run.before, &run.events);
    while points.step().is_some() {
        let undecided = points.media().undecided();
        for index in 0..undecided.choices() {
            let image = points.media().crash(&undecided, &undecided.choice(index));
            lengths.extend(first_bytes(&image, "/data/new").map(|bytes| bytes.len()));
        }
    }
    assert!(
        lengths.len() >= 3,
        "intermediate lengths are met: {lengths:?}"
    );
}

/// A failed flush forgets: a later flush answers `Ok`, and the data may still be lost.
#[test]
fn failed_flush_forgets() {
    let plan = FaultPlan::nth(OpKind::Sync, 1, Fault::Errno(libc::EIO));
    let run = Sim::new(11)
        .disk(disk_with_file(1))
        .faults(plan)
        .run(async |env: Env| {
            let file = env
                .disk()
                .open(Path::new(FILE), OpenMode::Write)
                .await
                .unwrap();
            file.write_all_at(filled(1, 7), 0).await.unwrap();
            let error = file.sync_data().await.unwrap_err();
            assert_eq!(crate::env::raw_os_error(&error), Some(libc::EIO));
            file.sync_data().await.unwrap();
        });
    assert_eq!(
        outcomes(&run, FILE),
        BTreeSet::from([Some(vec![0]), Some(vec![7])])
    );
}

/// A lying flush answers `Ok` and makes nothing durable.
#[test]
fn lying_flush_makes_nothing_durable() {
    let plan = FaultPlan::nth(OpKind::Sync, 1, Fault::Lie);
    let run = Sim::new(12)
        .disk(disk_with_file(1))
        .faults(plan)
        .run(async |env: Env| {
            let file = env
                .disk()
                .open(Path::new(FILE), OpenMode::Write)
                .await
                .unwrap();
            file.write_all_at(filled(1, 7), 0).await.unwrap();
            file.sync_data().await.unwrap();
        });
    assert_eq!(
        outcomes(&run, FILE),
        BTreeSet::from([Some(vec![0]), Some(vec![7])])
    );
}

/// The n-th write fails with the number asked for and is never durable; its neighbours are.
#[test]
fn nth_write_fails() {
    for nth in 1..=3u64 {
        let plan = FaultPlan::nth(OpKind::Write, nth, Fault::Errno(libc::ENOSPC));
        let run = Sim::new(13)
            .disk(disk_with_file(3))
            .faults(plan)
            .run(async |env: Env| {
                let file = env
                    .disk()
                    .open(Path::new(FILE), OpenMode::WriteDsync)
                    .await
                    .unwrap();
                let mut failed = Vec::new();
                for index in 0..3 {
                    let outcome = file.write_all_at(filled(1, 7), index * SECTOR).await;
                    failed.extend(outcome.err().map(|error| crate::env::raw_os_error(&error)));
                }
                failed
            });
        assert_eq!(run.value, vec![Some(libc::ENOSPC)]);
        assert_eq!(run.faults.hits(), 1);
        let open = outcomes(&run, FILE);
        assert!(
            open.len() <= 2,
            "only the failed sector is undecided, if it landed at all"
        );
    }
}

/// A read with a bit flip differs in exactly one bit, and the next one is right again.
#[test]
fn bit_flip_on_read() {
    let plan = FaultPlan::nth(OpKind::Read, 1, Fault::BitFlip);
    let run = Sim::new(14)
        .disk(disk_with_file(1))
        .faults(plan)
        .run(async |env: Env| {
            let file = env
                .disk()
                .open(Path::new(FILE), OpenMode::Read)
                .await
                .unwrap();
            let bad = file.read_at(0, SECTOR_BYTES).await.unwrap();
            let good = file.read_at(0, SECTOR_BYTES).await.unwrap();
            let ones = |bytes: &[u8]| bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
            (ones(&bad), ones(&good))
        });
    assert_eq!(run.value, (1, 0));
}

/// A full disk refuses a new file with `ENOSPC`; removing one makes room.
#[test]
fn full_disk() {
    let small = Sim::new(15)
        .disk(disk_with_file(2))
        .capacity_bytes(3 * SECTOR);
    small.run(async |env: Env| {
        let disk = env.disk();
        let new = Path::new("/data/new");
        let error = disk
            .create_allocated(new, 2 * SECTOR, SECTOR)
            .await
            .unwrap_err();
        assert_eq!(crate::env::raw_os_error(&error), Some(libc::ENOSPC));
        disk.remove(Path::new(FILE)).await.unwrap();
        disk.create_allocated(new, 2 * SECTOR, SECTOR)
            .await
            .unwrap();
    });
}

/// A write whose caller went away still lands.
#[test]
fn cancelled_write_may_land() {
    let run = Sim::new(16).disk(disk_with_file(1)).run(async |env: Env| {
        let file = env
            .disk()
            .open(Path::new(FILE), OpenMode::WriteDsync)
            .await
            .unwrap();
        let write = file.write_all_at(filled(1, 7), 0);
        let quick = env.clock().deadline(Duration::from_nanos(500), write).await;
        assert!(quick.is_none(), "no write is that fast");
        env.clock().sleep(Duration::from_secs(1)).await;
        file.read_at(0, SECTOR_BYTES).await.unwrap()[0]
    });
    assert_eq!(run.value, 7);
    assert_eq!(outcomes(&run, FILE), BTreeSet::from([Some(vec![7])]));
}

/// Rot is found on the platter of every later image, and only there.
#[test]
fn rot_and_loss_behind_everybodys_back() {
    let mut media = disk_with_file(2);
    media.flip_bit(Path::new(FILE), SECTOR, 3);
    assert_eq!(first_bytes(&media, FILE), Some(vec![0, 8]));
    media.plant_file(Path::new(FILE), &[9; SECTOR_BYTES]);
    assert_eq!(first_bytes(&media, FILE), Some(vec![9]));
    assert!(media.lose_file(Path::new(FILE)));
    assert_eq!(first_bytes(&media, FILE), None);
}

async fn busy(env: Env) -> u64 {
    let disk = env.disk();
    disk.create_dir_all(Path::new(DIR)).await.unwrap();
    disk.create_allocated(Path::new(FILE), 16 * SECTOR, SECTOR)
        .await
        .unwrap();
    let file = disk.open(Path::new(FILE), OpenMode::Write).await.unwrap();
    let done = Rc::new(Cell::new(0u64));
    for index in 0..16u64 {
        let (env, file, done) = (env.clone(), file.clone(), Rc::clone(&done));
        env.clone().spawn("writer", async move {
            let pause = Duration::from_micros(env.random_u64() % 100);
            env.clock().sleep(pause).await;
            file.write_all_at(filled(1, index as u8), index * SECTOR)
                .await
                .unwrap();
            file.sync_data().await.unwrap();
            done.set(done.get().wrapping_mul(31).wrapping_add(index));
        });
    }
    while env.clock().now_ns() < 100_000_000 {
        env.yield_now().await;
    }
    done.get()
}

/// Ten seeds twice: equal traces, events and results; different seeds differ.
#[test]
fn equal_seeds_give_equal_runs() {
    let mut traces = BTreeSet::new();
    let mut orders = BTreeSet::new();
    for seed in 0..10 {
        let (one, two) = (Sim::new(seed).run(busy), Sim::new(seed).run(busy));
        assert_eq!(one.trace, two.trace, "seed {seed}");
        assert_eq!(one.value, two.value, "seed {seed}");
        assert_eq!(
            format!("{:?}", one.events),
            format!("{:?}", two.events),
            "seed {seed}"
        );
        traces.insert(one.trace);
        orders.insert(one.value);
    }
    assert_eq!(traces.len(), 10, "every seed has its own trace");
    assert!(orders.len() > 5, "the seed decides the order of completion");
}

/// The canaries: a simulation that must fail does, and says how.
#[test]
fn bounds_turn_bad_behaviour_into_failures() {
    let spins = Sim::new(1).polls_max(10_000).try_run(async |_: Env| {
        loop {
            futures_lite::future::yield_now().await;
        }
    });
    assert_eq!(spins.map(|run: Run<()>| run.value), Err(Failure::Livelock));
    let waits = Sim::new(1).try_run(async |_: Env| std::future::pending::<()>().await);
    assert_eq!(waits.map(|run| run.value), Err(Failure::Deadlock));
    let sleeps = Sim::new(1)
        .virtual_time_max(Duration::from_secs(60))
        .try_run(async |env: Env| {
            loop {
                env.clock().sleep(Duration::from_secs(1)).await;
            }
        });
    assert_eq!(
        sleeps.map(|run: Run<()>| run.value),
        Err(Failure::OutOfTime)
    );
    let panics = Sim::new(1).try_run(async |env: Env| {
        env.spawn("faulty", async { panic!("on purpose") });
        env.clock().sleep(Duration::from_secs(1)).await;
    });
    let expected = Failure::Panic("faulty".to_owned(), "on purpose".to_owned());
    assert_eq!(panics.map(|run| run.value), Err(expected));
}

/// Time is virtual: a day passes in no time, sleeps end in order, a deadline cuts.
#[test]
fn virtual_time() {
    let run = Sim::new(1).run(async |env: Env| {
        let clock = env.clock();
        let start_ms = clock.unix_ms();
        clock.sleep(Duration::from_secs(3600)).await;
        assert!(clock.unix_ms() - start_ms >= 3_600_000);
        let never = std::future::pending::<()>();
        assert_eq!(clock.deadline(Duration::from_secs(5), never).await, None);
        let soon = clock.sleep(Duration::from_secs(1));
        assert_eq!(clock.deadline(Duration::from_secs(5), soon).await, Some(()));
        env.spawn_blocking(|| 42).await
    });
    assert_eq!(run.value, 42);
    assert!(run.elapsed_ns >= 3_606_000_000_000);
}

/// A large set of choices is sampled, both extremes included, and never a choice out of range.
#[test]
fn sampling_stays_in_range() {
    let run = Sim::new(17).disk(disk_with_file(40)).run(async |env: Env| {
        let file = env
            .disk()
            .open(Path::new(FILE), OpenMode::Write)
            .await
            .unwrap();
        file.write_all_at(filled(40, 7), 0).await.unwrap();
    });
    let undecided = run.after.undecided();
    assert_eq!((undecided.len(), undecided.choices()), (40, 1 << 40));
    let mut rng = fastrand::Rng::with_seed(1);
    let some = undecided.some(100, &mut rng);
    assert_eq!(some.len(), 100);
    let kept = |choice: &Vec<u8>| choice.iter().filter(|digit| **digit == 1).count();
    assert_eq!((kept(&some[0]), kept(&some[1])), (0, 40));
    let kinds: BTreeSet<usize> = some.iter().map(kept).collect();
    assert!(kinds.len() > 10, "samples differ: {kinds:?}");
    for choice in &some {
        let image = run.after.crash(&undecided, choice);
        assert_eq!(first_bytes(&image, FILE).map(|bytes| bytes.len()), Some(40));
    }
}

/// Only a planted simulation has the bug.
#[test]
fn planted_bugs_are_off_unless_planted() {
    let ask = async |env: Env| env.planted(Bug::TicketsOutOfOrder);
    assert!(!Sim::new(1).run(ask).value);
    assert!(!Sim::new(1).plant(Bug::SealMissing).run(ask).value);
    assert!(Sim::new(1).plant(Bug::TicketsOutOfOrder).run(ask).value);
}

/// A kill is no power cut: the next process sees what was written and not flushed, and a power cut
/// after it may still take it back, unless the next process flushed.
#[test]
fn kill_keeps_volatile_data_volatile() {
    let run = Sim::new(18).disk(disk_with_file(1)).run(async |env: Env| {
        let file = env
            .disk()
            .open(Path::new(FILE), OpenMode::Write)
            .await
            .unwrap();
        file.write_all_at(filled(1, 7), 0).await.unwrap();
    });
    let killed = run.after.killed(&mut fastrand::Rng::with_seed(1));
    for flush in [false, true] {
        let next = Sim::new(19)
            .disk(killed.clone())
            .run(async move |env: Env| {
                let file = env
                    .disk()
                    .open(Path::new(FILE), OpenMode::Write)
                    .await
                    .unwrap();
                assert_eq!(file.read_at(0, SECTOR_BYTES).await.unwrap()[0], 7);
                if flush {
                    file.sync_data().await.unwrap();
                }
            });
        let lost_or_kept = BTreeSet::from([Some(vec![0]), Some(vec![7])]);
        let kept = BTreeSet::from([Some(vec![7])]);
        assert_eq!(
            outcomes(&next, FILE),
            if flush { kept } else { lost_or_kept }
        );
    }
}
