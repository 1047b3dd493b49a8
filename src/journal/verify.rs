//! Offline verification: reads every block of every segment and lists what is damaged. Changes
//! nothing. The torn tail that a killed process leaves is the end of the journal, not damage.

use super::checkpoint;
use super::recover::{
    Cut, CutReason, Damage, DamageKind, Scanned, Scanner, Step, Walk, WalkCursor, WalkPlace,
};
use super::segment::{FileName, checkpoint_path, segment_path};
use super::space::SegmentRow;
use super::{JournalConfig, JournalError};
use crate::base::ids::{BlockSequence, Position, ShardId};
use crate::env::Env;
use crate::limits::DAMAGE_LISTED_MAX;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What `verify` found in one shard's folder.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Segment files read.
    pub segments: u64,
    /// Checkpoint files read.
    pub checkpoints: u64,
    /// Whole blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their entries.
    pub entries: u64,
    /// The torn tail that the next start will cut: not damage.
    pub torn_tail: Option<Cut>,
    /// Damaged places, up to a limit.
    pub damage: Vec<Damage>,
    /// Damaged places in all.
    pub damage_total: u64,
}

impl VerifyReport {
    /// Whether nothing is damaged.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.damage_total == 0
    }

    /// For `--json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let damage: Vec<Value> = self.damage.iter().map(Damage::to_json).collect();
        json!({
            "segments": self.segments,
            "checkpoints": self.checkpoints,
            "blocks": self.blocks,
            "bytes": self.bytes,
            "entries": self.entries,
            "torn_tail": self.torn_tail.as_ref().map(Cut::to_json),
            "damage_total": self.damage_total,
            "damage": damage,
        })
    }

    fn damaged(&mut self, damage: Damage) {
        self.damage_total += 1;
        if self.damage.len() < DAMAGE_LISTED_MAX {
            self.damage.push(damage);
        }
        assert!(self.damage.len() as u64 <= self.damage_total);
    }

    fn file_damaged(&mut self, file: &Path, position: Position, what: impl Into<String>) {
        self.damaged(Damage {
            file: file.to_owned(),
            position,
            len_bytes: 0,
            kind: DamageKind::File,
            what: what.into(),
        });
    }
}

/// Verifies the folder `dir` of `shard`. Nobody else may write to it meanwhile.
///
/// # Errors
/// If the folder cannot be listed; whatever is wrong inside is in the report.
pub async fn verify(env: Env, dir: &Path, shard: ShardId) -> Result<VerifyReport, JournalError> {
    let mut report = VerifyReport::default();
    let mut lengths = BTreeMap::new();
    let mut checkpoints = Vec::new();
    for entry in env.disk().list(dir).await? {
        match FileName::parse(&entry.name) {
            FileName::Segment(number) => {
                lengths.insert(number, entry.len_bytes);
            }
            FileName::Checkpoint(number) => checkpoints.push(number),
            FileName::Spare | FileName::Unfinished | FileName::Report | FileName::Other => {}
        }
    }
    let mut config = JournalConfig::new(dir.to_owned(), shard);
    // The length most files have: a truncated one must not decide.
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    lengths
        .values()
        .for_each(|len| *counts.entry(*len).or_default() += 1);
    let common = counts.iter().max_by_key(|(len, count)| (**count, **len));
    let Some((&segment_bytes, _)) = common.filter(|(len, _)| **len > 0) else {
        report.file_damaged(
            &segment_path(dir, 0),
            Position(0),
            "there is no segment file",
        );
        return Ok(report);
    };
    config.segment_bytes = segment_bytes;
    // What could be in flight is what the blocks themselves say.
    config.commit_depth = 1;
    config.block_bytes_max = 0;
    config.block_bytes_hard_max = 0;
    let mut books = Books::new();
    checkpoints.sort_unstable();
    for number in checkpoints {
        read_checkpoint(&env, &config, number, &mut books, &mut report).await;
    }
    let segments = books.needed(&lengths, &config, &mut report);
    for run in contiguous(&segments) {
        verify_run(&env, &config, &run, &mut books, &mut report).await;
    }
    // One that the journal does not name is only a writing that was interrupted.
    for number in books.torn.iter().filter(|number| **number <= books.named) {
        let path = checkpoint_path(&config.dir, *number);
        report.file_damaged(&path, Position(0), "the checkpoint is damaged");
    }
    Ok(report)
}

/// What the newest whole checkpoint says.
struct Books {
    rows: BTreeMap<u64, SegmentRow>,
    /// Segment in which its replay starts.
    first: u64,
    /// Checkpoint files that are not whole.
    torn: Vec<u64>,
    /// Newest checkpoint that the journal names.
    named: u64,
}

impl Books {
    fn new() -> Self {
        Self {
            rows: BTreeMap::new(),
            first: 0,
            torn: Vec::new(),
            named: 0,
        }
    }

    /// Notes the checkpoints that a block names.
    fn note_marks(&mut self, block: &Scanned) {
        for index in 0..block.header.entry_count as usize {
            let entry = block.entry(index).ok();
            let number = entry.and_then(|entry| block.named_checkpoint(&entry));
            self.named = self.named.max(number.unwrap_or(0));
        }
    }

    /// The segments that hold anything: those with live records, and the replay. Others are files
    /// on their way to be used again.
    fn needed(
        &self,
        lengths: &BTreeMap<u64, u64>,
        config: &JournalConfig,
        report: &mut VerifyReport,
    ) -> BTreeSet<u64> {
        let mut needed = BTreeSet::new();
        for (&segment, &len) in lengths {
            let live = self
                .rows
                .get(&segment)
                .is_some_and(|row| row.live_bytes > 0);
            if segment < self.first && !live {
                continue;
            }
            let path = segment_path(&config.dir, segment);
            if len != config.segment_bytes {
                let what = format!("it has {len} bytes instead of {}", config.segment_bytes);
                let position = Position(segment * config.segment_bytes + len);
                report.file_damaged(&path, position, what);
            }
            report.segments += 1;
            needed.insert(segment);
        }
        let rows = self.rows.values().filter(|row| row.live_bytes > 0);
        let listed = rows.map(|row| row.segment).chain([self.first]);
        let newest = lengths.keys().next_back().copied().unwrap_or(self.first);
        let expected: BTreeSet<u64> = listed.chain(self.first..=newest).collect();
        for segment in expected {
            if !lengths.contains_key(&segment) {
                let position = Position(segment * config.segment_bytes);
                report.file_damaged(
                    &segment_path(&config.dir, segment),
                    position,
                    "it is missing",
                );
            }
        }
        needed
    }
}

async fn read_checkpoint(
    env: &Env,
    config: &JournalConfig,
    number: u64,
    books: &mut Books,
    report: &mut VerifyReport,
) {
    let path = checkpoint_path(&config.dir, number);
    report.checkpoints += 1;
    match checkpoint::load(&env.disk(), config, number).await {
        Ok(Some(checkpoint)) => {
            books.first = checkpoint.last.position.0 / config.segment_bytes;
            books.rows = checkpoint
                .rows
                .iter()
                .map(|row| (row.segment, *row))
                .collect();
        }
        Ok(None) => books.torn.push(number),
        Err(error) => report.file_damaged(&path, Position(0), error.to_string()),
    }
}

fn contiguous(segments: &BTreeSet<u64>) -> Vec<BTreeSet<u64>> {
    let mut runs: Vec<BTreeSet<u64>> = Vec::new();
    for &segment in segments {
        match runs.last_mut() {
            Some(run) if segment > 0 && run.contains(&(segment - 1)) => {
                run.insert(segment);
            }
            _ => runs.push(BTreeSet::from([segment])),
        }
    }
    assert_eq!(
        runs.iter().map(BTreeSet::len).sum::<usize>(),
        segments.len()
    );
    runs
}

async fn verify_run(
    env: &Env,
    config: &JournalConfig,
    run: &BTreeSet<u64>,
    books: &mut Books,
    report: &mut VerifyReport,
) {
    let first = *run.first().expect("a run has segments");
    let scanner = Scanner::new(env.clone(), config.clone());
    let mut walk = match begin(scanner, run, first, report).await {
        Ok(Some(walk)) => walk,
        Ok(None) => {
            let position = Position(first * config.segment_bytes);
            let what = "neither its first nor its second block is whole";
            return report.file_damaged(&segment_path(&config.dir, first), position, what);
        }
        Err(error) => {
            let position = Position(first * config.segment_bytes);
            let path = segment_path(&config.dir, first);
            return report.file_damaged(&path, position, error.to_string());
        }
    };
    loop {
        let (segment, offset) = walk.place();
        let position = walk.scanner.position(segment, offset);
        match walk.step().await {
            Ok(Step::Block(block)) => {
                report.blocks += 1;
                report.bytes += block.bytes.len() as u64;
                report.entries += u64::from(block.header.entry_count);
                books.note_marks(&block);
            }
            Ok(Step::Damaged(block)) => note_block(&block, &walk, report),
            Ok(Step::Lost(lost)) => report.damaged(Damage {
                file: segment_path(&config.dir, segment),
                position: lost.from,
                len_bytes: lost.to.0 - lost.from.0,
                kind: lost.damage_kind(),
                what: "headers of acknowledged blocks are damaged".to_owned(),
            }),
            Ok(Step::End(reason)) => return note_end(&walk, run, books, reason, report),
            Err(error) => {
                let path = segment_path(&config.dir, segment);
                return report.file_damaged(&path, position, error.to_string());
            }
        }
    }
}

/// Judges the end of a run: a torn tail is none, but what the checkpoint or the name of a later
/// segment proves must be there.
fn note_end(
    walk: &Walk,
    run: &BTreeSet<u64>,
    books: &Books,
    reason: Option<CutReason>,
    report: &mut VerifyReport,
) {
    let last = run.last().copied().expect("a run has segments");
    let (segment, offset) = walk.place();
    assert!(segment <= last, "a walk ends in its run");
    let first = BlockSequence(walk.cursor.sequence.0 + 1);
    let known = books
        .rows
        .get(&last)
        .map_or(BlockSequence(0), |row| row.last);
    let position = walk.scanner.position(segment, offset);
    let file = walk.scanner.path(segment);
    if known >= first {
        report.damaged(Damage {
            file,
            position,
            len_bytes: 0,
            kind: DamageKind::Blocks { first, last: known },
            what: "blocks that the newest checkpoint knows are not there".to_owned(),
        });
    } else if last > segment + 1 {
        let path = walk.scanner.path(segment + 1);
        let position = walk.scanner.position(segment + 1, 0);
        report.file_damaged(
            &path,
            position,
            "it has no first block, but its successor exists",
        );
    } else if let (Some(reason), true) = (reason, last >= books.first) {
        report.torn_tail = Some(Cut {
            file,
            position,
            sequence: first,
            reason,
        });
    }
}

/// A walk that starts at the first block of a run, whatever its number.
async fn begin(
    mut scanner: Scanner,
    run: &BTreeSet<u64>,
    first: u64,
    report: &mut VerifyReport,
) -> Result<Option<Walk>, JournalError> {
    let present = |segment: u64| run.contains(&segment);
    let Some(identity) = scanner.identity(first, &present).await? else {
        return Ok(None);
    };
    let mut offset = 0;
    let mut header = scanner.header(first, 0, Some(identity.incarnation)).await?;
    if header.is_none() {
        offset = super::recover::ALIGN;
        header = scanner
            .header(first, offset, Some(identity.incarnation))
            .await?;
        report.damaged(Damage {
            file: segment_path(&scanner.config.dir, first),
            position: scanner.position(first, 0),
            len_bytes: offset,
            kind: DamageKind::Bookkeeping,
            what: "the segment's mark is damaged".to_owned(),
        });
    }
    let Some(header) = header else {
        return Ok(None);
    };
    assert!(header.sequence.0 > 0, "blocks are counted from 1");
    let cursor = WalkCursor {
        place: Some(WalkPlace {
            segment: first,
            offset,
            identity,
        }),
        sequence: BlockSequence(header.sequence.0 - 1),
        digest: header.previous_digest,
        sealed: false,
        window_bytes: header.window_bytes,
    };
    Ok(Some(Walk::new(scanner, run.clone(), cursor, None)))
}

/// Lists the damaged entries of a block whose header is whole.
fn note_block(block: &Scanned, walk: &Walk, report: &mut VerifyReport) {
    let file = walk.scanner.path(block.segment);
    let before = report.damage_total;
    let mut note = |kind: DamageKind, what: &str| {
        report.damaged(Damage {
            file: file.clone(),
            position: block.header.position,
            len_bytes: block.bytes.len() as u64,
            kind,
            what: what.to_owned(),
        });
    };
    for index in 0..block.header.entry_count as usize {
        match block.entry(index) {
            Ok(entry) if block.entry_is_whole(&entry) => {}
            Ok(entry) => note(
                DamageKind::of(&entry),
                "an acknowledged block's body is damaged",
            ),
            Err(error) => note(DamageKind::State, &format!("{error:?}")),
        }
    }
    assert!(!block.payload_valid, "only a rotten block is looked into");
    if report.damage_total == before {
        report.damaged(Damage {
            file,
            position: block.header.position,
            len_bytes: block.bytes.len() as u64,
            kind: DamageKind::Bookkeeping,
            what: "no entry is concerned".to_owned(),
        });
    }
}
