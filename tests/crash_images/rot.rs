//! Goal: rot is never served and never silent (reliability.md, R7 and R8). Method: a store is
//! written and stopped; every bit of every block header and directory, a sample of the other bits,
//! and every file as a whole are damaged one at a time. After each the journal either refuses to
//! open, or opens and serves only right bytes, with everything that is missing reported.
//!
//! The one documented residue: the very last block, if nothing vouches for it, may be cut. Even
//! then the cut is reported.

use crate::ledger::{Content, Item, Ledger, expected};
use crate::script::{self, DIR, Promise, Script, Step};
use crate::{append, images, seed};
use penstock::env::Env;
use penstock::env::sim::{Bug, InodeId, Media, SECTOR_BYTES, Sim};
use penstock::journal::{Journal, JournalError, RecoveryReport, format};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

/// A store on a stopped disk.
struct Store {
    script: Script,
    media: Media,
    whole: Content,
    /// Items that only the last block holds, if nothing vouches for it.
    residue: usize,
}

impl Store {
    fn new(steps: Vec<Step>, residue: usize) -> Self {
        let script = Script::new(steps);
        let run = script::run(
            &script,
            seed(),
            &script::empty_disk(),
            &Promise::none(),
            &[],
        );
        let run = run.unwrap_or_else(|failure| panic!("PENSTOCK_SEED={}: {failure}", seed()));
        assert!(run.value.faults.is_empty() && run.value.poisoned == 0);
        let items: &[Item] = &run.value.items;
        let whole = expected(items, items.len());
        Self {
            script,
            media: run.after.stopped(),
            whole,
            residue,
        }
    }

    fn planted(steps: Vec<Step>, bug: Bug) -> Self {
        let script = Script::new(steps);
        let run = script::run(
            &script,
            seed(),
            &script::empty_disk(),
            &Promise::none(),
            &[bug],
        );
        let run = run.unwrap_or_else(|failure| panic!("PENSTOCK_SEED={}: {failure}", seed()));
        let items: &[Item] = &run.value.items;
        let whole = expected(items, items.len());
        Self {
            script,
            media: run.after.stopped(),
            whole,
            residue: 0,
        }
    }

    fn files(&self) -> Vec<(PathBuf, InodeId, u64)> {
        let files = self.media.files(std::path::Path::new(DIR));
        let path = |name: &str| PathBuf::from(DIR).join(name);
        files
            .into_iter()
            .map(|(name, inode, len)| (path(&name), inode, len))
            .collect()
    }

    fn bytes(&self, inode: InodeId, len: u64) -> Vec<u8> {
        self.media
            .read(inode, 0, usize::try_from(len).expect("a small file"))
    }

    /// Where whole block headers lie: offset in the file, bytes of header and directory, of the
    /// whole block.
    fn blocks(&self, inode: InodeId, len: u64) -> Vec<(u64, usize, usize)> {
        let bytes = self.bytes(inode, len);
        let mut blocks = Vec::new();
        for offset in (0..bytes.len()).step_by(SECTOR_BYTES) {
            if let Ok(header) = format::decode_header(&bytes[offset..]) {
                blocks.push((
                    offset as u64,
                    header.header_len as usize,
                    header.block_len(),
                ));
            }
        }
        blocks
    }
}

/// What came of one damaged store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Outcome {
    Refused,
    Reported,
    Unharmed,
}

struct Opened {
    content: Content,
    damaged: u64,
    report: RecoveryReport,
    read_errors: u64,
}

fn open(store: &Store, media: Media, bugs: &[Bug]) -> Result<Result<Opened, JournalError>, String> {
    let mut sim = Sim::new(1).disk(media).instant().unrecorded();
    for bug in bugs {
        sim = sim.plant(*bug);
    }
    let config = store.script.config(false);
    let run = sim.try_run(move |env: Env| async move {
        let ledger = Rc::new(RefCell::new(Ledger::default()));
        let (journal, report) = match Journal::open(env, config, ledger.clone()).await {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(fault) = ledger.borrow_mut().faults.pop() {
            return Err(fault);
        }
        let extents = ledger.borrow().extents.clone();
        let mut read_errors = 0;
        for (extent, batches) in extents.into_values().flatten() {
            match journal.read(extent).await {
                Ok(bytes) if *bytes == *batches.concat() => {}
                Ok(_) => return Err("WRONG: a read gave other bytes than were written".to_owned()),
                Err(_) => read_errors += 1,
            }
        }
        let mut ledger = ledger.borrow_mut();
        let content = std::mem::take(&mut ledger.content);
        Ok(Ok(Opened {
            content,
            damaged: ledger.damaged,
            report,
            read_errors,
        }))
    });
    run.map_err(|failure| format!("open: {failure}"))?.value
}

/// Opens a damaged store and judges it.
fn examine(store: &Store, media: Media, bugs: &[Bug]) -> Result<Outcome, String> {
    let opened = match open(store, media, bugs)? {
        Ok(opened) => opened,
        Err(
            JournalError::Corrupt { .. }
            | JournalError::Version { .. }
            | JournalError::Foreign { .. }
            | JournalError::Missing { .. },
        ) => return Ok(Outcome::Refused),
        Err(error) => return Err(format!("refused for no good reason: {error}")),
    };
    let missing = missing(&store.whole, &opened.content)?;
    let damage = opened.damaged > 0 || opened.report.damage_total > 0 || opened.read_errors > 0;
    if missing > 0 && !damage {
        let cut = opened.report.cut.as_ref();
        if cut.is_none() {
            return Err(format!(
                "SILENT: {missing} items are gone and nothing says so"
            ));
        }
        if missing > store.residue {
            return Err(format!("CUT: {missing} acknowledged items were cut off"));
        }
    }
    Ok(match missing > 0 || damage {
        true => Outcome::Reported,
        false => Outcome::Unharmed,
    })
}

/// How many items of `whole` are not in `found`; an error if `found` has anything else.
fn missing(whole: &Content, found: &Content) -> Result<usize, String> {
    let mut missing = 0;
    for (lane, batches) in &found.lanes {
        let all = whole
            .lanes
            .get(lane)
            .ok_or("WRONG: a lane that never was")?;
        if !is_subsequence(batches, all) {
            return Err(format!(
                "WRONG: lane {lane} has batches that were never written"
            ));
        }
    }
    for (lane, all) in &whole.lanes {
        missing += all.len() - found.lanes.get(lane).map_or(0, Vec::len);
    }
    if !is_subsequence(&found.states, &whole.states) {
        return Err("WRONG: a state entry that was never written".to_owned());
    }
    Ok(missing + whole.states.len() - found.states.len())
}

fn is_subsequence(part: &[Rc<[u8]>], all: &[Rc<[u8]>]) -> bool {
    let mut rest = all.iter();
    part.iter().all(|wanted| rest.any(|item| item == wanted))
}

fn mixed(count: usize) -> Vec<Step> {
    let steps = (0..count).flat_map(|index| {
        let lane = i32::try_from(index % 3).expect("a lane");
        [
            append(lane, 700),
            append((lane + 1) % 3, 300),
            Step::State { body_bytes: 90 },
            Step::Settle,
        ]
    });
    steps.collect()
}

/// Stores of every shape: sealed by idleness, closed, stopped at once, with checkpoints, recycled.
fn stores() -> Vec<(&'static str, Store)> {
    let checkpoint = vec![Step::Checkpoint];
    let wide: Vec<Step> = (0..18).map(|index| append(index % 2 + 20, 9_000)).collect();
    let mut lives = Vec::new();
    for lane in 0..3 {
        lives.extend((0..16).map(|_| append(lane, 9_000)));
        lives.extend([Step::Drop { lane }, Step::Checkpoint, Step::Checkpoint]);
    }
    lives.extend(mixed(2));
    lives.push(Step::Close);
    vec![
        ("idle", Store::new([mixed(6), vec![Step::Idle]].concat(), 0)),
        (
            "closed",
            Store::new([mixed(2), vec![Step::Close]].concat(), 0),
        ),
        ("stopped", Store::new(mixed(6), 3)),
        (
            "checkpoint",
            Store::new(
                [mixed(3), checkpoint.clone(), mixed(3), vec![Step::Close]].concat(),
                0,
            ),
        ),
        (
            "two checkpoints and rolls",
            Store::new(
                [
                    wide.clone(),
                    checkpoint.clone(),
                    wide,
                    checkpoint,
                    vec![Step::Close],
                ]
                .concat(),
                0,
            ),
        ),
        ("recycled", Store::new(lives, 0)),
    ]
}

#[derive(Default)]
struct Tally {
    refused: u64,
    reported: u64,
    unharmed: u64,
    violations: Vec<String>,
}

impl Tally {
    fn examine(&mut self, store: &Store, media: Media, what: &str, bugs: &[Bug]) {
        match examine(store, media, bugs) {
            Ok(Outcome::Refused) => self.refused += 1,
            Ok(Outcome::Reported) => self.reported += 1,
            Ok(Outcome::Unharmed) => self.unharmed += 1,
            Err(fault) => self.violations.push(format!("{what}: {fault}")),
        }
    }

    fn finish(&self, name: &str) {
        println!(
            "{name}: {} refused, {} reported, {} unharmed",
            self.refused, self.reported, self.unharmed
        );
        let shown: Vec<_> = self.violations.iter().take(8).cloned().collect();
        let count = self.violations.len();
        assert!(
            count == 0,
            "PENSTOCK_SEED={}: {count} violations\n{}",
            seed(),
            shown.join("\n")
        );
    }
}

/// One bit of one file turned.
fn flip(store: &Store, path: &std::path::Path, bit: u64) -> Media {
    let mut media = store.media.clone();
    media.flip_bit(path, bit / 8, u8::try_from(bit % 8).expect("below 8"));
    media
}

/// Which bits to turn.
#[derive(Clone, Copy)]
struct Flips {
    /// Of the bits of headers and directories, every so many.
    stride: usize,
    /// So many others per file.
    samples: u64,
}

/// Flips bits of one store, one at a time.
fn flips(store: &Store, name: &str, flips: Flips, bugs: &[Bug], tally: &mut Tally) {
    let Flips { stride, samples } = flips;
    assert!(
        samples > 0,
        "{name}: something outside the headers is flipped, too"
    );
    let mut rng = fastrand::Rng::with_seed(seed());
    for (path, inode, len) in store.files() {
        let is_segment = path.extension().is_some_and(|extension| extension == "seg");
        let what = |bit: u64| {
            format!(
                "{name}: {} byte {} bit {}",
                path.display(),
                bit / 8,
                bit % 8
            )
        };
        let mut bits: Vec<u64> = Vec::new();
        if is_segment {
            for (offset, header_len, block_len) in store.blocks(inode, len) {
                let first = rng.u64(0..stride as u64);
                let header = offset * 8 + first..(offset + header_len as u64) * 8;
                bits.extend(header.step_by(stride));
                let rest = (offset + header_len as u64) * 8..(offset + block_len as u64) * 8;
                bits.extend((0..samples / 20).map(|_| rng.u64(rest.clone())));
            }
        } else {
            bits.extend((0..(len * 8).min(700)).step_by(stride));
        }
        bits.extend((0..samples).map(|_| rng.u64(0..len * 8)));
        for bit in bits {
            tally.examine(store, flip(store, &path, bit), &what(bit), bugs);
        }
    }
}

/// Every bit of every header of one store, and a sample of the others, in every kind of store; with
/// a million images, every header bit of every store.
#[test]
fn no_flipped_bit_is_served_or_silent() {
    let mut tally = Tally::default();
    let stores = stores();
    let samples = images() / 1_000 + 10;
    let stride = usize::try_from(1_000_000 / images().max(1))
        .unwrap_or(1)
        .max(1);
    for (name, store) in &stores {
        let sound = examine(store, store.media.clone(), &[]);
        assert_eq!(sound, Ok(Outcome::Unharmed), "{name}: the undamaged store");
        let stride = if *name == "closed" { 1 } else { stride };
        flips(store, name, Flips { stride, samples }, &[], &mut tally);
    }
    assert!(
        tally.reported > 0 && tally.unharmed > 0,
        "both ends are met"
    );
    tally.finish("bit rot");
}

/// A body's rot costs its own partition only: the other lanes and the states stay whole.
#[test]
fn body_rot_costs_one_partition() {
    let store = Store::new([mixed(6), vec![Step::Close]].concat(), 0);
    let mut harmed = 0;
    for (path, inode, len) in store.files() {
        for (offset, header_len, _) in store.blocks(inode, len) {
            let bit = (offset + header_len as u64 + 100) * 8;
            let opened = open(&store, flip(&store, &path, bit), &[]);
            let Ok(Ok(opened)) = opened else {
                continue;
            };
            let lanes = store.whole.lanes.iter();
            let short = lanes.filter(|(lane, all)| opened.content.lanes.get(lane) != Some(all));
            let short = short.count();
            if short > 0 {
                harmed += 1;
                assert_eq!(short, 1, "{} at {offset}: rot spread", path.display());
                assert_eq!(opened.content.states, store.whole.states);
                assert!(opened.damaged > 0, "the state machine hears of it");
            }
        }
    }
    assert!(harmed >= 5, "the method must hit bodies: {harmed}");
}

/// Each file lost, emptied, cut short, swapped with a sibling, or replaced by an older self.
#[test]
fn lost_short_and_swapped_files_never_start_empty() {
    let mut tally = Tally::default();
    for (name, store) in &stores() {
        let files = store.files();
        for (path, inode, len) in &files {
            let what = |how: &str| format!("{name}: {} {how}", path.display());
            let mut lost = store.media.clone();
            assert!(lost.lose_file(path));
            tally.examine(store, lost, &what("lost"), &[]);
            let bytes = store.bytes(*inode, *len);
            for keep in [
                SECTOR_BYTES,
                bytes.len() / 2,
                bytes.len().saturating_sub(SECTOR_BYTES),
            ] {
                let mut short = store.media.clone();
                short.plant_file(path, &bytes[..keep.min(bytes.len())]);
                tally.examine(store, short, &what("cut short"), &[]);
            }
            let mut zeroed = store.media.clone();
            zeroed.plant_file(path, &vec![0; bytes.len()]);
            tally.examine(store, zeroed, &what("zeroed"), &[]);
            for (other, other_inode, other_len) in &files {
                if other != path {
                    let mut swapped = store.media.clone();
                    swapped.plant_file(path, &store.bytes(*other_inode, *other_len));
                    let how = format!("replaced by {}", other.display());
                    tally.examine(store, swapped, &what(&how), &[]);
                }
            }
        }
    }
    tally.finish("lost, short and swapped files");
}

/// Bugs that only rot can show.
fn caught(steps: &[Step], recovery: Option<Bug>, writing: Option<Bug>, word: &str) {
    let mut sound = Tally::default();
    let some = Flips {
        stride: 7,
        samples: 40,
    };
    flips(
        &Store::new(steps.to_vec(), 0),
        "sound",
        some,
        &[],
        &mut sound,
    );
    assert!(
        sound.violations.is_empty(),
        "without the bug: {}",
        sound.violations.join("\n")
    );
    let store = match writing {
        Some(bug) => Store::planted(steps.to_vec(), bug),
        None => Store::new(steps.to_vec(), 0),
    };
    let mut planted = Tally::default();
    flips(&store, "planted", some, recovery.as_slice(), &mut planted);
    let seen = planted
        .violations
        .iter()
        .any(|violation| violation.contains(word));
    assert!(
        seen,
        "{recovery:?} {writing:?} went unnoticed: {:?}",
        planted.violations.first()
    );
}

#[test]
fn cut_of_acknowledged_data_is_caught() {
    let steps = [mixed(4), vec![Step::Close]].concat();
    caught(&steps, Some(Bug::CutAcknowledgedData), None, "CUT");
}

#[test]
fn missing_seal_is_caught() {
    let steps = [mixed(4), vec![Step::Idle]].concat();
    caught(&steps, None, Some(Bug::SealMissing), "CUT");
}

#[test]
fn unchecked_payload_is_caught() {
    let steps = [mixed(4), vec![Step::Close]].concat();
    caught(&steps, Some(Bug::PayloadNotChecked), None, "WRONG");
}
