//! Goal: dead segments are used again, live ones never; checkpoints shorten the replay and can be
//! lost. Method: scripts that release and checkpoint, and disks without this or that checkpoint.

use super::*;

/// Appends until `segments` have been begun, releasing all but the last few extents.
async fn churn(bench: &Bench, from: u64, items: u64) {
    for id in from..from + items {
        bench.settle(bench.records(0, id, 6000)).await;
        let released: Vec<Extent> = {
            let mut model = bench.model.borrow_mut();
            let keep = model.extents.len().saturating_sub(4);
            model
                .extents
                .drain(..keep)
                .map(|(_, extent, _)| extent)
                .collect()
        };
        released
            .into_iter()
            .for_each(|extent| bench.journal.release(extent));
        if id % 8 == 7 {
            bench.checkpoint().await;
        }
    }
}

fn segments(media: &Media) -> usize {
    names(media)
        .iter()
        .filter(|name| name.ends_with(".seg"))
        .count()
}

/// A journal that keeps little takes little room, however much goes through it.
#[test]
fn dead_segments_are_used_again() {
    for seed in 0..6 {
        let disk = disk_after(seed, async |bench: Bench| {
            churn(&bench, 0, 300).await;
            let metrics = bench.journal.metrics();
            assert!(metrics.rolls.get() > 15);
            assert!(metrics.segments_recycled.get() > 10);
            assert!(metrics.segments_made.get() < 8);
            bench.journal.close().await.unwrap();
        });
        assert!(segments(&disk) <= 8, "{:?}", names(&disk));
        assert_eq!(
            names(&disk)
                .iter()
                .filter(|name| name.ends_with(".ckpt"))
                .count(),
            2
        );
        let (model, report) = reopen(&disk).unwrap();
        assert_eq!(model.ids(), (0..300).collect::<Vec<u64>>());
        assert!(report.checkpoint.is_some() && report.blocks < 40);
    }
}

/// Recycling goes on after a restart, and what is still alive can be read.
#[test]
fn the_books_survive_a_restart() {
    let disk = disk_after(1, async |bench: Bench| {
        churn(&bench, 0, 60).await;
        bench.journal.close().await.unwrap();
    });
    let sim = Sim::new(2).disk(disk);
    let run = sim.run(async |env: Env| {
        let config = JournalConfig {
            create: false,
            ..small_config()
        };
        let (bench, _) = Bench::open(env, config).await;
        // What was released after the checkpoint is released again, as a shard does.
        let extents: Vec<Extent> = bench
            .model
            .borrow()
            .extents
            .iter()
            .map(|(_, extent, _)| *extent)
            .collect();
        for extent in &extents[extents.len() - 4..] {
            bench
                .journal
                .read(*extent)
                .await
                .expect("a live extent is there");
        }
        churn(&bench, 60, 200).await;
        assert!(bench.journal.metrics().segments_recycled.get() > 5);
        bench.journal.close().await.unwrap();
    });
    let disk = run.after.stopped();
    assert!(segments(&disk) <= 8, "{:?}", names(&disk));
    assert_eq!(
        reopen(&disk).unwrap().0.ids(),
        (0..260).collect::<Vec<u64>>()
    );
}

/// A lost checkpoint falls back to the older one, two to the beginning, as long as it is there.
#[test]
fn checkpoints_can_be_lost() {
    let disk = disk_after(3, async |bench: Bench| {
        for id in 0..50 {
            bench.settle(bench.records(0, id, 6000)).await;
            if id % 20 == 15 {
                bench.checkpoint().await;
            }
        }
        bench.journal.close().await.unwrap();
    });
    let whole = reopen(&disk).unwrap();
    assert_eq!(whole.1.checkpoint, Some(2));
    let rot = |media: &Media, number: u64| {
        rot_small(media, &format!("{DIR}/checkpoint-{number:08x}.ckpt"), 50)
    };
    let older = reopen(&rot(&disk, 2)).unwrap();
    assert_eq!(
        (older.1.checkpoint, older.1.checkpoints_damaged),
        (Some(1), 1)
    );
    assert_eq!(older.0.items, whole.0.items);
    let neither = reopen(&rot(&rot(&disk, 2), 1)).unwrap();
    assert_eq!(
        (neither.1.checkpoint, neither.1.checkpoints_damaged),
        (None, 2)
    );
    assert_eq!(neither.0.items, whole.0.items);
    assert!(older.1.blocks > whole.1.blocks && neither.1.blocks > older.1.blocks);
}

/// A damaged checkpoint is kept and told of until two newer ones are there; then it goes.
#[test]
fn a_damaged_checkpoint_goes_in_the_end() {
    let disk = disk_after(6, async |bench: Bench| {
        bench.settle(bench.records(0, 1, 100)).await;
        bench.checkpoint().await;
        bench.checkpoint().await;
        bench.journal.close().await.unwrap();
    });
    let mut disk = rot_small(&disk, &format!("{DIR}/checkpoint-00000002.ckpt"), 50);
    for (round, damaged) in [(3, 1), (4, 1), (5, 0)] {
        let run = Sim::new(round).disk(disk).run(async |env: Env| {
            let config = JournalConfig {
                create: false,
                ..small_config()
            };
            let (bench, report) = Bench::open(env, config).await;
            bench.checkpoint().await;
            bench.journal.close().await.unwrap();
            report.checkpoints_damaged
        });
        assert_eq!(run.value, damaged, "round {round}");
        disk = run.after.stopped();
    }
    let left = names(&disk);
    let left: Vec<&String> = left.iter().filter(|name| name.ends_with(".ckpt")).collect();
    assert_eq!(
        left,
        ["checkpoint-00000004.ckpt", "checkpoint-00000005.ckpt"]
    );
}

/// Without checkpoints and without the beginning, nothing is guessed.
#[test]
fn no_checkpoint_and_no_beginning_refuses() {
    let disk = disk_after(4, async |bench: Bench| {
        churn(&bench, 0, 100).await;
        bench.journal.close().await.unwrap();
    });
    let mut rotten = disk.clone();
    for name in names(&disk).iter().filter(|name| name.ends_with(".ckpt")) {
        rotten = rot_small(&rotten, &format!("{DIR}/{name}"), 60);
    }
    assert!(matches!(reopen(&rotten), Err(JournalError::Missing { .. })));
}

/// The older checkpoint stays good for as long as it is kept: no segment it needs is recycled.
#[test]
fn the_older_checkpoint_stays_usable() {
    for items in [40, 55, 70, 95, 110] {
        let disk = disk_after(items, async move |bench: Bench| {
            churn(&bench, 0, items).await;
            bench.journal.close().await.unwrap();
        });
        let newest = names(&disk)
            .into_iter()
            .filter(|name| name.ends_with(".ckpt"))
            .max();
        let rotten = rot_small(&disk, &format!("{DIR}/{}", newest.unwrap()), 70);
        let (model, report) = reopen(&rotten).unwrap();
        assert_eq!(report.checkpoints_damaged, 1);
        assert_eq!(model.ids(), (0..items).collect::<Vec<u64>>());
    }
}

/// A segment with live records before the checkpoint that is gone is missed.
#[test]
fn a_missing_live_segment_is_missed() {
    let disk = disk_after(5, async |bench: Bench| {
        for id in 0..50 {
            bench.settle(bench.records(0, id, 6000)).await;
        }
        bench.checkpoint().await;
        bench.checkpoint().await;
        bench.journal.close().await.unwrap();
    });
    let path = Path::new(DIR).join("journal-00000001.seg");
    let sim = Sim::new(1).disk(disk).instant();
    let run = sim.run(async move |env: Env| env.disk().remove(&path).await.unwrap());
    let error = reopen(&run.after.stopped()).expect_err("live records are gone");
    assert!(matches!(error, JournalError::Missing { .. }), "{error}");
    assert!(error.to_string().contains("journal-00000001.seg"));
}
