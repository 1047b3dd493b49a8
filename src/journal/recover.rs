//! What a crash means: torn tail or corruption. The decision is a pure function; `scan` reads,
//! `walk` goes from block to block, `opening` finds the start, `replay` applies, `repair` ends it,
//! `report` says what was found.
//!
//! Everything is flushed first, then read. At the first invalid block *k*, recovery looks on, at
//! aligned places only, for blocks that carry the identity of their segment's present use:
//!
//! | what follows | meaning | action |
//! |---|---|---|
//! | a later block with `durable_seq ≥ k` | *k* was acknowledged | **corruption**: tell, go on |
//! | traces wider than what can be in flight | not one crash | **corruption**: refuse to open |
//! | later blocks, none vouching for *k* | same unflushed window | **torn tail**: cut at *k* |
//! | no later block, traces within the window | torn, or rot of the last | cut, and say so |
//! | nothing at all | the end | go on writing here |
//!
//! To tell means: what is damaged is handed to the state machine in its place and listed in a
//! report, the replay goes on behind it, and every byte is kept.
//!
//! A stale block can never vouch: blocks past a cut were written while block *k* was not durable,
//! so their `durable_seq` is below *k*. Even so the window behind a cut is zeroed and flushed, and
//! a seal that names the cut is written, before anything else.
//!
//! Invariants: *nothing is cut that any later block vouches for; nothing is zeroed but the window
//! behind a cut; when opening has returned, everything replayed is on the platter.*

mod opening;
mod repair;
mod replay;
mod report;
mod scan;
mod walk;

pub(super) use opening::open;
pub use report::{Cut, Damage, DamageKind, RecoveryReport};
pub(super) use scan::{ALIGN, Scanned, Scanner};
pub(super) use walk::{Cursor as WalkCursor, Place as WalkPlace, Step, Walk};

use crate::base::ids::BlockSequence;

/// Why the tail was cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CutReason {
    /// Later blocks of the same unflushed window are there: one crash tore them.
    Torn,
    /// Nothing follows: torn, or rot of the very last block, which nothing vouched for.
    Residual,
}

impl CutReason {
    /// The reason in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Torn => "torn tail: the blocks that follow belong to the same unflushed window",
            Self::Residual => "torn tail, or rot of the very last block: nothing follows",
        }
    }
}

/// What was found behind the first invalid block.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Evidence {
    /// Highest `durable_seq` of any later block; 0 if there is none.
    pub vouched: BlockSequence,
    /// A later block with a whole header is there.
    pub later: bool,
    /// Something of this use of the segment, or something the device cannot read, is there.
    pub traces: bool,
    /// How far from the invalid block, or from the start of a later segment, traces and blocks
    /// reach.
    pub width_bytes: u64,
}

/// What it means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// Nothing was ever written here.
    End,
    /// The invalid block had been acknowledged.
    Corruption,
    /// More is damaged than one crash can damage.
    TooWide,
    /// The invalid block was never acknowledged.
    Cut(CutReason),
}

/// The table of the module's comment, row by row.
pub(super) fn decide(invalid: BlockSequence, evidence: &Evidence, window_bytes: u64) -> Verdict {
    assert!(invalid.0 > 0, "blocks are counted from 1");
    assert!(
        evidence.later || evidence.vouched.0 == 0,
        "only a block vouches"
    );
    if evidence.vouched >= invalid {
        return Verdict::Corruption;
    }
    if evidence.width_bytes > window_bytes {
        return Verdict::TooWide;
    }
    if evidence.later {
        return Verdict::Cut(CutReason::Torn);
    }
    match evidence.traces {
        true => Verdict::Cut(CutReason::Residual),
        false => Verdict::End,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each row of the table. Method: the smallest evidence for each, and its neighbours.
    #[test]
    fn every_row() {
        let nothing = Evidence::default();
        let block = |vouched: u64, width_bytes: u64| Evidence {
            vouched: BlockSequence(vouched),
            later: true,
            traces: true,
            width_bytes,
        };
        let traces = |width_bytes: u64| Evidence {
            traces: true,
            width_bytes,
            ..Evidence::default()
        };
        let rows = [
            (nothing, Verdict::End),
            (block(10, 500), Verdict::Corruption),
            (block(11, 5000), Verdict::Corruption),
            (block(9, 1000), Verdict::Cut(CutReason::Torn)),
            (block(0, 1000), Verdict::Cut(CutReason::Torn)),
            (block(9, 1001), Verdict::TooWide),
            (traces(1000), Verdict::Cut(CutReason::Residual)),
            (traces(1001), Verdict::TooWide),
        ];
        for (evidence, verdict) in rows {
            let decided = decide(BlockSequence(10), &evidence, 1000);
            assert_eq!(decided, verdict, "{evidence:?}");
        }
    }
}
