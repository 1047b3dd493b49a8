//! Goal: each mistake this harness is there for is seen by it (reliability.md, R20). Method: the
//! same seeds run with the bug switched on and off; with it there must be a violation, without it
//! none.
//!
//! A mistake that another line of defence hides is planted together with that line's absence.

use crate::explore;
use crate::explore::{Effort, Findings};
use crate::script::{Script, Step};
use crate::{append, seed};
use penstock::env::sim::{Bug, Fault, FaultPlan, OpKind, Rule};
use penstock::journal::CommitMode;

const EFFORT: Effort = Effort {
    images_per_run: 600,
    every_instant: false,
    twice_every: 3,
    generation_every: 61,
    generations_max: 2,
};

/// The scripts of one test; each runs with its own seed.
fn campaign(scripts: &[Script], effort: Effort, bugs: &[Bug]) -> Findings {
    let mut all = Findings::default();
    for (index, script) in scripts.iter().enumerate() {
        let findings = explore(script, seed() + index as u64, effort, bugs);
        all.images += findings.images;
        all.violations.extend(findings.violations);
        if !bugs.is_empty() && !all.violations.is_empty() {
            break;
        }
    }
    all
}

/// With the bugs a violation that says `word`, without them none.
fn caught(scripts: &[Script], bugs: &[Bug], word: &str) {
    let sound = campaign(scripts, EFFORT, &[]);
    assert!(
        sound.violations.is_empty(),
        "without the bug: {}",
        sound.violations.join("\n")
    );
    assert!(
        sound.images > 100,
        "the scripts must crash often enough: {}",
        sound.images
    );
    let planted = campaign(scripts, EFFORT, bugs);
    let seen = planted
        .violations
        .iter()
        .any(|violation| violation.contains(word));
    assert!(
        seen,
        "{bugs:?} went unnoticed in {} images: {:?}",
        planted.images, planted.violations
    );
}

fn in_mode(mode: CommitMode, steps: &[Step]) -> Script {
    let mut script = Script::new(steps.to_vec());
    script.mode = mode;
    script
}

/// Appends that keep several blocks in flight.
fn stream() -> Vec<Step> {
    let pairs = (0..24).flat_map(|index| [append(index % 3, 2_000), Step::Pause { us: 30 }]);
    pairs.collect()
}

/// Appends that fill segments.
fn rolls() -> Vec<Step> {
    (0..40).map(|index| append(index % 2, 9_000)).collect()
}

/// Lanes that live and die, so that segments are used again.
fn lives(checkpoints: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for lane in 0..4 {
        steps.extend((0..16).map(|_| append(lane, 9_000)));
        steps.push(Step::Drop { lane });
        steps.extend((0..checkpoints).map(|_| Step::Checkpoint));
        steps.extend((0..6).map(|_| append(lane + 10, 500)));
    }
    steps
}

#[test]
fn acknowledge_before_flush_is_caught() {
    let scripts = [in_mode(CommitMode::Dsync, &stream())];
    caught(
        &scripts,
        &[Bug::AcknowledgeBeforeFlush],
        "acknowledged before it was applied",
    );
}

#[test]
fn flush_before_write_completes_is_caught() {
    let scripts = [in_mode(CommitMode::Fdatasync, &stream())];
    caught(&scripts, &[Bug::FlushBeforeWriteCompletes], "LOST");
}

#[test]
fn no_directory_sync_is_caught() {
    let scripts = [in_mode(CommitMode::Dsync, &rolls())];
    caught(&scripts, &[Bug::NoDirectorySync], "LOST");
}

#[test]
fn tickets_out_of_order_is_caught() {
    let scripts = [in_mode(CommitMode::Dsync, &stream())];
    caught(
        &scripts,
        &[Bug::TicketsOutOfOrder],
        "tickets are released in order",
    );
}

#[test]
fn watermark_past_durable_is_caught() {
    let scripts = [in_mode(CommitMode::Dsync, &stream())];
    caught(
        &scripts,
        &[Bug::WatermarkPastDurable],
        "damage after a mere crash",
    );
}

/// One flush of a block fails; the disk forgets and says all is well from then on.
fn one_flush_fails() -> Vec<Script> {
    let failing = |nth| {
        let mut script = in_mode(CommitMode::Fdatasync, &stream());
        script.faults = FaultPlan::none().and(Rule {
            kind: OpKind::Sync,
            path_contains: Some("journal-".to_owned()),
            nth,
            times: 1,
            fault: Fault::Errno(5),
        });
        script
    };
    (5..13).map(failing).collect()
}

#[test]
fn failed_flush_retried_is_caught() {
    caught(&one_flush_fails(), &[Bug::FailedFlushRetried], "LOST");
}

/// The process ends after the failed flush, and the next one finds blocks that only seem durable.
#[test]
fn failed_flush_trusted_by_recovery_is_caught() {
    caught(
        &one_flush_fails(),
        &[Bug::FailedFlushTrusted],
        "second recovery",
    );
}

#[test]
fn trust_checkpoint_over_journal_is_caught() {
    let steps = [stream(), vec![Step::Checkpoint], stream()].concat();
    let scripts = [in_mode(CommitMode::Dsync, &steps)];
    caught(&scripts, &[Bug::TrustCheckpointOverJournal], "LOST");
}

#[test]
fn payload_not_checked_is_caught() {
    let steps: Vec<Step> = (0..12).map(|index| append(index % 2, 9_000)).collect();
    let scripts = [in_mode(CommitMode::Dsync, &steps)];
    caught(&scripts, &[Bug::PayloadNotChecked], "CHANGED");
}

#[test]
fn recovery_not_flushed_is_caught() {
    let scripts = [in_mode(CommitMode::Fdatasync, &stream())];
    caught(&scripts, &[Bug::RecoveryNotFlushed], "second recovery");
}

#[test]
fn recycled_too_early_is_caught() {
    let scripts = [in_mode(CommitMode::Dsync, &lives(1))];
    caught(&scripts, &[Bug::RecycledTooEarly], "seg");
}

#[test]
fn stale_block_accepted_is_caught() {
    let scripts = [in_mode(CommitMode::Dsync, &lives(2))];
    caught(&scripts, &[Bug::StaleBlockAccepted], "recovery refused");
}

#[test]
fn chain_not_checked_is_caught() {
    let scripts = [in_mode(CommitMode::Dsync, &stream())];
    caught(
        &scripts,
        &[Bug::ChainNotChecked, Bug::CutNotZeroed],
        "second recovery",
    );
}
