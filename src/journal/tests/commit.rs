//! Goal: the live behaviour of a journal. Method: scripts on the simulated disk with random
//! latencies, many seeds, and disks that fail at a chosen operation.

use super::*;
use crate::env::sim::{Fault, FaultPlan, OpKind, Rule};
use std::cell::Cell;

/// A released ticket's effect is visible, in order, and survives reopening; both commit modes.
#[test]
fn tickets_release_in_order_and_survive() {
    for seed in 0..40 {
        let mode = [CommitMode::Dsync, CommitMode::Fdatasync][usize::from(seed % 2 == 1)];
        let sim = Sim::new(seed);
        let run = sim.run(async move |env: Env| {
            let config = JournalConfig {
                commit_mode: mode,
                ..small_config()
            };
            let (bench, _) = Bench::open(env, config).await;
            let done = Rc::new(Cell::new(0u64));
            for id in 1..=60 {
                let ticket = match id % 4 {
                    0 => bench.state(id, 100),
                    rest => bench.records(i32::try_from(rest).unwrap(), id, 900),
                };
                let (waiter, done) = (bench.clone(), Rc::clone(&done));
                bench.env.spawn("waiter", async move {
                    waiter.settle(ticket).await;
                    let seen = waiter.model.borrow().ids().contains(&id);
                    assert!(seen, "a released ticket's effect is visible");
                    assert!(waiter.journal.committed_sequence() >= ticket);
                    done.set(done.get() + 1);
                });
                if id % 7 == 0 {
                    bench.sleep_ms(1).await;
                }
            }
            bench.journal.close().await.unwrap();
            bench.sleep_ms(1).await;
            assert_eq!(done.get(), 60);
            bench.model.take()
        });
        let (model, report) = reopen(&run.after.stopped()).unwrap();
        assert_eq!(model.items, run.value.items, "seed {seed}");
        assert!(!report.is_remarkable() && report.blocks > 3);
    }
}

/// Goal: segments are made with zeros while blocks are small and without while they are large;
/// small blocks that meet unwritten places have zeros written ahead; nothing of it shows. Method:
/// small blocks, large ones until the journal has rolled, small ones again; count the zeros.
#[test]
fn zeros_are_written_for_small_blocks_only() {
    for seed in 0..20 {
        let sim = Sim::new(seed);
        let run = sim.run(async move |env: Env| {
            let config = JournalConfig {
                large_block_bytes_min: 8 << 10,
                ..small_config()
            };
            let segment_bytes = config.segment_bytes;
            let (bench, _) = Bench::open(env, config).await;
            let metrics = bench.journal.metrics();
            let figures = || {
                let made = metrics.segments_made.get();
                (made, metrics.zeroed.get(), metrics.rolls.get())
            };
            let write = async |ids: std::ops::Range<u64>, len: usize| {
                for id in ids {
                    bench.settle(bench.records(0, id, len)).await;
                }
                bench.sleep_ms(5).await;
            };
            write(1..9, 100).await;
            let (made, zeroed, _) = figures();
            assert_eq!(zeroed, made * segment_bytes, "seed {seed}: small blocks");
            write(10..60, 9_000).await;
            let (made_large, zeroed_large, rolls) = figures();
            assert!(rolls >= 4, "seed {seed}: {rolls} rolls");
            // The one that was prepared before large blocks were known, and first blocks.
            let first_blocks = (made_large - made) * 4096;
            let surplus = zeroed_large - zeroed - first_blocks;
            assert!(surplus < segment_bytes, "seed {seed}: large blocks");
            write(60..90, 100).await;
            assert!(figures().1 > zeroed_large, "seed {seed}: small ones again");
            bench.journal.close().await.unwrap();
            bench.model.take()
        });
        let (model, report) = reopen(&run.after.stopped()).unwrap();
        assert_eq!(model.items, run.value.items, "seed {seed}");
        assert!(!report.is_remarkable());
    }
}

/// Everything staged in one turn is one block; records of one partition are one entry of it.
#[test]
fn what_is_staged_together_shares_a_block() {
    let run = run_script(3, async |bench: Bench| {
        let before = bench.journal.metrics().blocks.get();
        for id in 0..20 {
            bench.records(0, id, 100);
        }
        let last = bench.state(99, 8);
        bench.settle(last).await;
        assert_eq!(bench.journal.metrics().blocks.get(), before + 1);
        assert_eq!(bench.model.borrow().extents.len(), 1);
    });
    assert!(run.elapsed_ns > 0);
}

/// After a quiet time one seal is written, and then nothing, for ever.
#[test]
fn an_idle_journal_seals_once_and_rests() {
    run_script(4, async |bench: Bench| {
        bench.settle(bench.state(1, 8)).await;
        let metrics = bench.journal.metrics();
        bench.sleep_ms(45).await;
        assert_eq!(metrics.seals.get(), 0, "not yet quiet for long enough");
        bench.sleep_ms(20).await;
        assert_eq!(metrics.seals.get(), 1);
        let blocks = metrics.blocks.get();
        bench.sleep_ms(100_000).await;
        assert_eq!(
            metrics.blocks.get(),
            blocks,
            "an idle journal writes nothing"
        );
        assert_eq!(metrics.in_flight.get(), 0);
    });
}

/// One item larger than a block makes a block of its own.
#[test]
fn a_large_item_gets_its_own_block() {
    let disk = disk_after(5, async |bench: Bench| {
        bench.records(0, 1, 100);
        bench.records(0, 2, 20_000);
        let last = bench.records(0, 3, 100);
        bench.settle(last).await;
        assert_eq!(bench.model.borrow().extents.len(), 3);
    });
    assert_eq!(reopen(&disk).unwrap().0.ids(), [1, 2, 3]);
}

/// A producer is held back while too much is staged, and let go when it is written.
#[test]
fn room_holds_producers_back() {
    run_script(6, async |bench: Bench| {
        let mut last = StageSequence(0);
        for id in 0..8 {
            last = bench.records(0, id, 7000);
        }
        assert_eq!(bench.journal.metrics().room_waits.get(), 0);
        bench.journal.room().await.unwrap();
        assert_eq!(bench.journal.metrics().room_waits.get(), 1);
        assert!(
            bench.journal.committed_sequence() < last,
            "room comes before the end"
        );
        bench.settle(last).await;
    });
}

/// Reads are the bytes that were appended, from memory and from the disk, alone and together.
#[test]
fn reads_return_what_was_appended() {
    run_script(7, async |bench: Bench| {
        for id in 0..60 {
            let ticket = bench.records(i32::try_from(id % 3).unwrap(), id, 1500);
            bench.settle(ticket).await;
        }
        let extents: Vec<Extent> = bench
            .model
            .borrow()
            .extents
            .iter()
            .map(|(_, extent, _)| *extent)
            .collect();
        assert_eq!(extents.len(), 60);
        let together = bench.journal.read_many(&extents).await;
        for (id, (extent, merged)) in (0u64..).zip(extents.iter().zip(together)) {
            let alone = bench.journal.read(*extent).await.unwrap();
            let merged = merged.unwrap();
            assert_eq!(&*alone, &*merged);
            assert_eq!(&alone[61..69], &id.to_le_bytes());
            assert_eq!(alone.len(), extent.len_bytes as usize);
        }
        let metrics = bench.journal.metrics();
        assert!(metrics.cache_hits.get() > 0 && metrics.cache_misses.get() > 0);
        let alone = metrics.cache_misses.get();
        bench.journal.read_many(&extents[..20]).await;
        assert!(
            metrics.cache_misses.get() - alone < 10,
            "neighbours are read together"
        );
    });
}

/// A failed write or flush poisons: no ticket is released, the hook is called once, and what was
/// released before is there after a restart. For every n until no operation is hit.
#[test]
fn the_nth_write_fails() {
    for kind in [OpKind::Write, OpKind::Sync] {
        let mut hits = 0;
        for nth in 2..40 {
            let plan = FaultPlan::none().and(Rule {
                kind,
                path_contains: Some("journal-".to_owned()),
                nth,
                times: 1,
                fault: Fault::Errno(5),
            });
            let (acked, calls, after, hit) = run_until_poisoned(nth, plan);
            hits += u64::from(hit);
            assert!(
                calls <= u64::from(hit),
                "{kind:?} {nth}: the hook is called once"
            );
            // A journal whose making failed is made again, as its store is not marked ready.
            let (reopened, _) = reopen_with(&after, small_config());
            let ids = reopened.unwrap().0.ids();
            for id in &acked {
                assert!(ids.contains(id), "{kind:?} {nth}: {id} was acknowledged");
            }
            assert!(
                ids.windows(2).all(|pair| pair[0] < pair[1]),
                "in order, once"
            );
            if !hit {
                assert_eq!(acked.len(), 25);
                break;
            }
        }
        assert!(hits > 5, "{kind:?}: the plan reaches the journal");
    }
}

/// Appends one by one; the ids acknowledged, the hook's calls, the disk, and whether a fault was
/// met.
fn run_until_poisoned(seed: u64, plan: FaultPlan) -> (Vec<u64>, u64, Media, bool) {
    let calls = Rc::new(Cell::new(0));
    let hook = Rc::clone(&calls);
    let run = Sim::new(seed).faults(plan).run(async move |env: Env| {
        let config = JournalConfig {
            commit_mode: CommitMode::Fdatasync,
            on_poison: Rc::new(move |_| hook.set(hook.get() + 1)),
            ..small_config()
        };
        let mut acked = Vec::new();
        let Ok((bench, _)) = Bench::try_open(env, config).await else {
            return (acked, false);
        };
        let mut poisoned = false;
        for id in 1..=25 {
            let first = bench.records(0, id, 3000);
            if bench.journal.committed(first).await.is_err() {
                poisoned = true;
                break;
            }
            acked.push(id);
        }
        if poisoned {
            assert!(bench.journal.poisoned().is_some());
            assert!(bench.journal.room().await.is_err());
            bench.state(999, 8);
            let late = bench.state(1000, 8);
            bench.sleep_ms(1000).await;
            assert!(bench.journal.committed(late).await.is_err());
        }
        let closed = bench.journal.close().await;
        assert_eq!(closed.is_err(), bench.journal.poisoned().is_some());
        (acked, closed.is_err())
    });
    let (acked, poisoned) = run.value;
    let hit = run.faults.hits() > 0;
    assert!(
        !hit || poisoned || acked.is_empty(),
        "a fault ends in poison or a refused start"
    );
    assert_eq!(
        calls.get(),
        u64::from(poisoned),
        "whoever is poisoned says so"
    );
    (acked, calls.get(), run.after.stopped(), hit)
}

/// A full disk is waited for: nothing is lost, nothing is poisoned, and it goes on by itself.
#[test]
fn a_full_disk_is_waited_for() {
    let plan = FaultPlan::none().and(Rule {
        kind: OpKind::Create,
        path_contains: Some("spare-".to_owned()),
        nth: 3,
        times: 3,
        fault: Fault::Errno(28),
    });
    let run = Sim::new(8).faults(plan).run(async |env: Env| {
        let (bench, _) = Bench::open(env, small_config()).await;
        for id in 0..60 {
            let ticket = bench.records(0, id, 6000);
            bench.settle(ticket).await;
        }
        assert!(bench.journal.metrics().space_waits.get() > 0);
        bench.journal.close().await.unwrap();
    });
    let (model, _) = reopen(&run.after.stopped()).unwrap();
    assert_eq!(model.ids(), (0..60).collect::<Vec<u64>>());
}

/// Equal seeds give equal runs: nothing in the journal depends on addresses or real time.
#[test]
fn runs_are_deterministic() {
    let trace = |seed| {
        let run = run_script(seed, async |bench: Bench| {
            for id in 0..50 {
                bench.records(i32::try_from(id % 5).unwrap(), id, 2000);
                bench.sleep_ms(id % 3).await;
            }
            bench.journal.close().await.unwrap();
        });
        run.trace
    };
    for seed in 0..5 {
        assert_eq!(trace(seed), trace(seed), "seed {seed}");
    }
}
