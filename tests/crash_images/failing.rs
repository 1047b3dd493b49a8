//! Goal: whichever operation of the disk fails, nothing is acknowledged that a crash could take,
//! and what was acknowledged before survives (reliability.md, R5 on the journal). Method: for every
//! *n* until a run ends without a hit, the n-th operation fails, in each way; then the usual
//! crashes.

use crate::explore::{Effort, Findings};
use crate::script::{Script, Step};
use crate::{append, explore, images, seed};
use penstock::env::sim::{Fault, FaultPlan, OpKind};
use penstock::journal::CommitMode;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;

/// A bit of everything: rolls, a checkpoint, a lane that ends, recycling.
fn everything(mode: CommitMode) -> Script {
    let mut steps = Vec::new();
    for lane in 0..2 {
        steps.extend((0..14).map(|_| append(lane, 9_000)));
        steps.extend([Step::Drop { lane }, Step::Checkpoint, Step::Checkpoint]);
    }
    steps.extend([append(7, 100), Step::Idle, append(8, 100), Step::Settle]);
    let mut script = Script::new(steps);
    script.mode = mode;
    script
}

/// Lets the n-th operation fail, for every n (in steps of `stride`) until nothing is hit.
fn every_nth(script: &Script, fault: Fault, stride: u64) -> (u64, Findings) {
    let effort = Effort {
        images_per_run: 12,
        every_instant: false,
        twice_every: 5,
        generation_every: 101,
        generations_max: 2,
    };
    let mut all = Findings::default();
    for nth in (1..).step_by(usize::try_from(stride).expect("a small number")) {
        let mut script = script.clone();
        script.faults = FaultPlan::nth(OpKind::Any, nth, fault);
        let findings = explore(&script, seed(), effort, &[]);
        all.images += findings.images;
        let named = findings
            .violations
            .iter()
            .map(|text| format!("operation {nth}: {text}"));
        all.violations.extend(named);
        if findings.hits == 0 || all.violations.len() > 5 {
            return (nth, all);
        }
        all.hits += 1;
    }
    unreachable!("a script has an end");
}

#[test]
fn every_failing_operation_is_survived() {
    let stride = (200_000 / images().max(1)).max(1);
    for (mode, fault) in [
        (CommitMode::Dsync, Fault::Errno(EIO)),
        (CommitMode::Fdatasync, Fault::Errno(EIO)),
        (CommitMode::Dsync, Fault::Errno(ENOSPC)),
        (CommitMode::Fdatasync, Fault::Errno(EROFS)),
        (CommitMode::Dsync, Fault::Short),
    ] {
        let (operations, findings) = every_nth(&everything(mode), fault, stride);
        println!(
            "{mode:?} {fault:?}: {operations} operations, {} images",
            findings.images
        );
        assert!(
            findings.violations.is_empty(),
            "{}",
            findings.violations.join("\n")
        );
        assert!(
            findings.hits * stride > 100,
            "the script is long enough: {}",
            findings.hits
        );
    }
}
