//! Goal: a store is what its marks say; a lost mark is never a new store. Method: scripts on the
//! simulated disk, rot in one and in both copies, and a power cut at every instant of the making.

use super::super::store::{self, StoreMark};
use super::*;
use crate::env::sim::CrashPoints;

const ROOT: &str = "/data";

async fn open(env: &Env, create: bool) -> Result<(StoreMark, bool), JournalError> {
    let wanted = StoreMark::new(4, 96 << 10);
    store::open_or_create(env, Path::new(ROOT), create.then_some(wanted)).await
}

fn made() -> Media {
    let run = Sim::new(1).run(async |env: Env| {
        let (mark, new) = open(&env, true).await.unwrap();
        assert!(new && !mark.ready && mark.shards == 4);
        let (_, still_new) = open(&env, true).await.unwrap();
        assert!(still_new, "until it is marked ready");
        store::mark_ready(&env, Path::new(ROOT)).await.unwrap();
        let (again, new) = open(&env, false).await.unwrap();
        assert!(!new && again.ready && again.id == mark.id);
        assert_eq!(again.id_text().len(), 36);
    });
    run.after.stopped()
}

fn rot(media: &Media, copy: u64) -> Media {
    rot_small(media, &format!("{ROOT}/store.{copy}"), 20)
}

#[test]
fn one_rotten_copy_is_repaired_two_are_refused() {
    let disk = made();
    for copy in 0..2 {
        let sim = Sim::new(1).disk(rot(&disk, copy)).instant();
        let run = sim.run(async |env: Env| open(&env, false).await.unwrap().0.ready);
        assert!(run.value);
        let sim = Sim::new(1)
            .disk(rot(&run.after.stopped(), 1 - copy))
            .instant();
        assert!(
            sim.run(async |env: Env| open(&env, false).await.unwrap().0.ready)
                .value
        );
    }
    let sim = Sim::new(1).disk(rot(&rot(&disk, 0), 1)).instant();
    let run = sim.run(async |env: Env| open(&env, true).await.err());
    assert!(matches!(run.value, Some(JournalError::Corrupt { .. })));
}

#[test]
fn no_store_is_made_unasked_or_over_journals() {
    let run = Sim::new(1).run(async |env: Env| open(&env, false).await.err());
    assert!(matches!(run.value, Some(JournalError::Missing { .. })));
    let journal = disk_after(1, async |bench: Bench| bench.journal.close().await.unwrap());
    let sim = Sim::new(1).disk(journal).instant();
    let run = sim.run(async |env: Env| open(&env, true).await.err());
    assert!(
        matches!(run.value, Some(JournalError::Missing { .. })),
        "the mark was lost"
    );
}

/// At every instant of the making, a power cut leaves a store that can be made or opened.
#[test]
fn power_cuts_while_a_store_is_made() {
    let run = Sim::new(2).run(async |env: Env| {
        open(&env, true).await.unwrap();
        let (bench, _) = Bench::open(env.clone(), small_config()).await;
        store::mark_ready(&env, Path::new(ROOT)).await.unwrap();
        env.mark(1);
        bench.settle(bench.state(1, 8)).await;
        env.mark(2);
    });
    let mut points = CrashPoints::new(&run.before, &run.events);
    let mut rng = fastrand::Rng::with_seed(3);
    let mut marks = 0;
    while let Some(event) = points.step() {
        marks += u64::from(matches!(event, crate::env::sim::Event::Mark(_)));
        let undecided = points.media().undecided();
        for choice in undecided.some(6, &mut rng) {
            let image = points.media().crash(&undecided, &choice);
            let sim = Sim::new(1).disk(image).instant().unrecorded();
            let opened = sim.run(async |env: Env| {
                let (mark, new) = open(&env, true).await.unwrap();
                let config = JournalConfig {
                    create: new,
                    ..small_config()
                };
                let (bench, _) = Bench::open(env.clone(), config).await;
                let ids = bench.model.borrow().ids();
                store::mark_ready(&env, Path::new(ROOT)).await.unwrap();
                (mark.ready, ids)
            });
            let (ready, ids) = opened.value;
            assert!(ready || marks == 0, "ready before anything is served");
            assert!(ids == [1] || marks < 2, "acknowledged and lost");
        }
    }
    assert_eq!(marks, 2);
}
