//! Goal: whatever a power cut or a kill leaves, everything acknowledged is replayed, in order,
//! nothing is invented, and nothing is called damage. Method: run a script, cut the power at every
//! few events, build several images of each instant, open each twice, and compare with the live
//! order.

use super::*;
use crate::env::sim::{CrashPoints, Event, Undecided};

/// What a campaign met, so that a test can demand that every case was reached.
#[derive(Default)]
struct Met {
    images: u64,
    torn: u64,
    residual: u64,
    clean: u64,
}

/// A script that acknowledges by marks, rolls, checkpoints and recycles.
async fn busy(bench: Bench, items: u64, mode: u64) -> Vec<Item> {
    let mut released = 0;
    for id in 1..=items {
        let len = usize::try_from((id * 7919 + mode * 31) % 5000).unwrap();
        let ticket = match id % 5 {
            0 => bench.state(id, len.min(600)),
            rest => bench.records(i32::try_from(rest % 3).unwrap(), id, len),
        };
        let waiter = bench.clone();
        bench.env.spawn("waiter", async move {
            if waiter.journal.committed(ticket).await.is_ok() {
                waiter.env.mark(id);
            }
        });
        if id % 4 == mode % 4 {
            bench.settle(ticket).await;
        }
        if id % 25 == 0 {
            bench.checkpoint().await;
        }
        if id % 31 == 0 {
            bench.sleep_ms(80).await;
        }
        if mode % 2 == 1 && id % 10 == 0 {
            let extents: Vec<Extent> = bench
                .model
                .borrow()
                .extents
                .iter()
                .map(|(_, extent, _)| *extent)
                .collect();
            let keep = extents.len().saturating_sub(5);
            for extent in &extents[released..keep.max(released)] {
                bench.journal.release(*extent);
            }
            released = keep.max(released);
        }
    }
    bench.journal.close().await.unwrap();
    bench.model.take().items
}

fn config(mode: u64) -> JournalConfig {
    JournalConfig {
        commit_mode: match mode % 3 {
            0 => CommitMode::Fdatasync,
            _ => CommitMode::Dsync,
        },
        // Blocks of these sizes are large in one mode, small in the others: segments are made
        // without zeros then, and zeros are written ahead when small ones follow.
        large_block_bytes_min: match mode % 2 {
            0 => 8 << 10,
            _ => 64 << 10,
        },
        ..small_config()
    }
}

/// One image: opens, shows a prefix of the live order with all that was acknowledged, and opens
/// again to the same, with nothing left to cut.
fn check(image: &Media, acked: &[u64], live: &[Item], mode: u64, place: &str) -> RecoveryReport {
    let config = config(mode);
    let (opened, after) = reopen_with(image, config.clone());
    let (model, report) = opened.unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(
        report.damage_total, 0,
        "{place}: a false alarm: {:?}",
        report.damage
    );
    assert!(model.damaged.is_empty(), "{place}");
    let replayed = model.items.len();
    assert!(replayed <= live.len(), "{place}: invented");
    assert_eq!(
        model.items,
        live[..replayed],
        "{place}: not a prefix of the live order"
    );
    let ids = model.ids();
    for id in acked {
        assert!(
            ids.contains(id),
            "{place}: {id} was acknowledged and is lost"
        );
    }
    let (again, _) = reopen_with(&after, config);
    let (model_again, report_again) = again.unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(
        model_again.items, model.items,
        "{place}: another state at the second opening"
    );
    assert!(
        !report_again.is_remarkable(),
        "{place}: the cut was not repaired"
    );
    report
}

fn campaign(seed: u64, items: u64, every: usize, images: u64) -> Met {
    let mode = seed;
    let run = Sim::new(seed).run(async move |env: Env| {
        let (bench, _) = Bench::open(env, config(mode)).await;
        busy(bench, items, mode).await
    });
    let live = run.value;
    assert_eq!(live.len() as u64, items);
    let mut met = Met::default();
    let mut acked = Vec::new();
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut points = CrashPoints::new(&run.before, &run.events);
    while let Some(event) = points.step() {
        if let Event::Mark(id) = event {
            acked.push(*id);
        }
        if !points.index().is_multiple_of(every) {
            continue;
        }
        let undecided: Undecided = points.media().undecided();
        for (number, choice) in undecided.some(images, &mut rng).iter().enumerate() {
            let image = points.media().crash(&undecided, choice);
            let place = format!("seed {seed}, event {}, image {number}", points.index());
            let report = check(&image, &acked, &live, mode, &place);
            met.images += 1;
            match report.cut.map(|cut| cut.reason) {
                Some(CutReason::Torn) => met.torn += 1,
                Some(CutReason::Residual) => met.residual += 1,
                None => met.clean += 1,
            }
        }
    }
    met
}

#[test]
fn power_cuts_lose_nothing_acknowledged() {
    let mut all = Met::default();
    for seed in 0..12 {
        let met = campaign(seed, 90, 5, 4);
        all.images += met.images;
        all.torn += met.torn;
        all.residual += met.residual;
        all.clean += met.clean;
    }
    println!(
        "{} images: {} torn, {} residual, {} clean",
        all.images, all.torn, all.residual, all.clean
    );
    assert!(all.images > 2000 && all.clean > 100);
    assert!(
        all.torn > 20 && all.residual > 20,
        "every row of the table was reached"
    );
}

/// A killed process leaves its disk with the volatile part still at stake: what recovery has shown
/// must survive a power cut right after.
#[test]
fn what_recovery_showed_survives_a_later_power_cut() {
    for seed in 0..10 {
        let mode = seed * 3;
        let run = Sim::new(seed).run(async move |env: Env| {
            let (bench, _) = Bench::open(env, config(mode)).await;
            busy(bench, 60, mode).await
        });
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut points = CrashPoints::new(&run.before, &run.events);
        while points.step().is_some() {
            if !points.index().is_multiple_of(11) {
                continue;
            }
            let killed = points.media().killed(&mut rng);
            let (opened, _) = reopen_recorded(&killed, mode);
            let (shown, after) = opened.expect("a killed process' journal opens");
            let undecided = after.undecided();
            for choice in undecided.some(3, &mut rng) {
                let image = after.crash(&undecided, &choice);
                let (again, _) = reopen_with(&image, config(mode));
                let (model, _) = again.expect("it opens again");
                assert_eq!(model.items, shown.items, "seed {seed}: shown, then lost");
            }
        }
    }
}

/// Opens without settling the disk afterwards.
fn reopen_recorded(media: &Media, mode: u64) -> (Option<(Model, Media)>, ()) {
    let config = config(mode);
    let sim = Sim::new(5).disk(media.clone()).unrecorded();
    let run = sim.run(async move |env: Env| {
        let (bench, _) = Bench::try_open(env, config).await.ok()?;
        let model = bench.model.borrow().clone();
        Some(model)
    });
    let after = run.after;
    (run.value.map(|model| (model, after)), ())
}

/// Power cuts during recovery: the second recovery shows the same, or what the first would have.
#[test]
fn power_cuts_during_recovery() {
    let mut images = 0;
    for seed in 0..6 {
        let mode = seed;
        let run = Sim::new(seed + 100).run(async move |env: Env| {
            let (bench, _) = Bench::open(env, config(mode)).await;
            busy(bench, 40, mode).await
        });
        let live = run.value;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut acked = Vec::new();
        let mut points = CrashPoints::new(&run.before, &run.events);
        while let Some(event) = points.step() {
            if let Event::Mark(id) = event {
                acked.push(*id);
            }
            if !points.index().is_multiple_of(37) {
                continue;
            }
            let undecided = points.media().undecided();
            let first = points
                .media()
                .crash(&undecided, &undecided.sample(&mut rng));
            let recovery = Sim::new(seed).disk(first).run(async move |env: Env| {
                let opened = Bench::try_open(env, config(mode)).await;
                opened.map(|_| ()).expect("an image opens");
            });
            let mut within = CrashPoints::new(&recovery.before, &recovery.events);
            while within.step().is_some() {
                let undecided = within.media().undecided();
                for choice in undecided.some(2, &mut rng) {
                    let image = within.media().crash(&undecided, &choice);
                    let at = (points.index(), within.index());
                    let place = format!("seed {seed}, event {at:?} of recovery");
                    check(&image, &acked, &live, mode, &place);
                    images += 1;
                }
            }
        }
    }
    println!("{images} images");
    assert!(images > 200);
}

/// `verify` calls nothing damaged that a power cut left.
#[test]
fn verify_raises_no_false_alarm() {
    for seed in 0..4 {
        let run = Sim::new(seed + 50).run(async move |env: Env| {
            let (bench, _) = Bench::open(env, config(seed)).await;
            busy(bench, 80, seed).await
        });
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut points = CrashPoints::new(&run.before, &run.events);
        let mut torn = 0;
        while points.step().is_some() {
            let made = points
                .media()
                .lookup(&Path::new(DIR).join("journal-00000000.seg"));
            if !points.index().is_multiple_of(23) || made.is_none() {
                continue;
            }
            let undecided = points.media().undecided();
            let image = points
                .media()
                .crash(&undecided, &undecided.sample(&mut rng));
            if image.lookup(Path::new(DIR)).is_none() {
                continue;
            }
            let report = verified(&image);
            if report.segments > 0 && report.blocks > 0 {
                assert!(report.is_clean(), "seed {seed}: {:?}", report.damage);
            }
            torn += u64::from(report.torn_tail.is_some());
        }
        assert!(torn > 0 || seed > 0);
    }
}

pub(super) fn verified(media: &Media) -> VerifyReport {
    let sim = Sim::new(2).disk(media.clone()).instant().unrecorded();
    let run = sim.run(async |env: Env| {
        verify(env, Path::new(DIR), ShardId(0))
            .await
            .expect("the folder can be listed")
    });
    run.value
}
