//! Tests of the journal as a whole, on the simulated disk. Here: the model machine, small limits
//! and the scripts that the test files share.
//!
//! `format` bytes · `planner` what goes into a block · `commit` live behaviour · `crash` power cuts
//! at every instant · `damage` rot, swaps and the table of `recover` · `space` recycling and
//! checkpoints · `store` the store's marks.

mod commit;
mod crash;
mod damage;
mod format;
mod planner;
mod space;
mod store;

use super::format::batch;
use super::*;
use crate::base::ids::{PartitionIndex, TopicId};
use crate::env::OpenMode;
use crate::env::sim::{Media, Run, Sim};
use std::collections::BTreeMap;
use std::path::Path;

pub(super) const DIR: &str = "/data/shard-000";

/// Limits small enough that a few entries fill a block and a few blocks a segment.
pub(super) fn small_config() -> JournalConfig {
    JournalConfig {
        create: true,
        segment_bytes: 96 << 10,
        block_bytes_max: 8 << 10,
        block_bytes_hard_max: 24 << 10,
        commit_depth: 3,
        cache_bytes_max: 32 << 10,
        staged_bytes_max: 32 << 10,
        ..JournalConfig::new(DIR.into(), ShardId(0))
    }
}

pub(super) fn partition(index: i32) -> TopicPartition {
    TopicPartition {
        topic: TopicId([7; 16]),
        partition: PartitionIndex(index),
    }
}

/// A value's number is the first eight bytes of its body; the rest repeats it.
pub(super) fn body(id: u64, len: usize) -> Vec<u8> {
    let mut bytes = id.to_le_bytes().repeat(len.div_ceil(8).max(1));
    bytes.truncate(len.max(8));
    bytes
}

/// One item the model has seen.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Item {
    pub(super) id: u64,
    /// Partition and offset of a batch; -1 for a state entry.
    pub(super) partition: i32,
    pub(super) offset: i64,
}

/// A state machine that remembers all it was given.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) items: Vec<Item>,
    pub(super) extents: Vec<(TopicPartition, Extent, u32)>,
    pub(super) damaged: Vec<(Option<TopicPartition>, i64, u32)>,
    pub(super) last_block: u64,
}

impl Model {
    pub(super) fn ids(&self) -> Vec<u64> {
        self.items.iter().map(|item| item.id).collect()
    }

    /// The checkpoint of this model.
    pub(super) fn save(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(self.items.len() as u64).to_le_bytes());
        for item in &self.items {
            bytes.extend_from_slice(&item.id.to_le_bytes());
            bytes.extend_from_slice(&item.partition.to_le_bytes());
            bytes.extend_from_slice(&item.offset.to_le_bytes());
        }
        for (partition, extent, count) in &self.extents {
            bytes.extend_from_slice(&partition.partition.0.to_le_bytes());
            bytes.extend_from_slice(&extent.position.0.to_le_bytes());
            bytes.extend_from_slice(&extent.len_bytes.to_le_bytes());
            bytes.extend_from_slice(&extent.base_offset.0.to_le_bytes());
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        bytes
    }
}

impl StateMachine for Model {
    fn restore(&mut self, checkpoint: &[u8]) -> Result<(), String> {
        let word = |at: usize| u64::from_le_bytes(checkpoint[at..at + 8].try_into().unwrap());
        let half = |at: usize| u32::from_le_bytes(checkpoint[at..at + 4].try_into().unwrap());
        let count = usize::try_from(word(0)).unwrap();
        self.items = (0..count)
            .map(|index| 8 + index * 20)
            .map(|at| Item {
                id: word(at),
                partition: half(at + 8).cast_signed(),
                offset: word(at + 12).cast_signed(),
            })
            .collect();
        self.extents = (8 + count * 20..checkpoint.len())
            .step_by(28)
            .map(|at| {
                let extent = Extent {
                    position: Position(word(at + 4)),
                    len_bytes: half(at + 12),
                    leader_epoch: 5,
                    base_offset: Offset(word(at + 16).cast_signed()),
                };
                (partition(half(at).cast_signed()), extent, half(at + 24))
            })
            .collect();
        Ok(())
    }

    fn apply(&mut self, location: Location, entry: EntryView<'_>) {
        assert!(location.block.0 >= self.last_block, "blocks come in order");
        self.last_block = location.block.0;
        match entry {
            EntryView::Records {
                partition,
                base_offset,
                record_count,
                extent,
                batches,
            } => {
                let next = batch::check(batches, base_offset, 5).expect("applied bytes are whole");
                assert_eq!(next.0, base_offset.0 + i64::from(record_count));
                assert_eq!(extent.len_bytes as usize, batches.len());
                self.extents.push((partition, extent, record_count));
                let mut at = 0;
                while at < batches.len() {
                    let field = |from: usize, len: usize| &batches[at + from..at + from + len];
                    let offset = i64::from_be_bytes(field(0, 8).try_into().unwrap());
                    let len = i32::from_be_bytes(field(8, 4).try_into().unwrap());
                    self.items.push(Item {
                        id: u64::from_le_bytes(field(61, 8).try_into().unwrap()),
                        partition: partition.partition.0,
                        offset,
                    });
                    at += usize::try_from(len).unwrap() + 12;
                }
            }
            EntryView::State { body, .. } => self.items.push(Item {
                id: u64::from_le_bytes(body[..8].try_into().unwrap()),
                partition: -1,
                offset: 0,
            }),
            EntryView::Damaged {
                partition,
                base_offset,
                record_count,
                ..
            } => self.damaged.push((partition, base_offset.0, record_count)),
        }
    }
}

/// A journal under test with its model and the offsets that were handed out.
#[derive(Clone)]
pub(super) struct Bench {
    pub(super) env: Env,
    pub(super) journal: Journal,
    pub(super) model: Rc<RefCell<Model>>,
    next: Rc<RefCell<BTreeMap<i32, i64>>>,
}

impl Bench {
    pub(super) async fn try_open(
        env: Env,
        config: JournalConfig,
    ) -> Result<(Bench, RecoveryReport), JournalError> {
        let model = Rc::new(RefCell::new(Model::default()));
        let machine: Rc<RefCell<dyn StateMachine>> = model.clone();
        let (journal, report) = Journal::open(env.clone(), config, machine).await?;
        let mut next = BTreeMap::new();
        for (partition, extent, count) in &model.borrow().extents {
            let end = extent.base_offset.0 + i64::from(*count);
            next.insert(partition.partition.0, end);
        }
        let next = Rc::new(RefCell::new(next));
        let bench = Bench {
            env,
            journal,
            model,
            next,
        };
        Ok((bench, report))
    }

    pub(super) async fn open(env: Env, config: JournalConfig) -> (Bench, RecoveryReport) {
        Self::try_open(env, config)
            .await
            .expect("the journal opens")
    }

    /// Stages one batch of two records with the value `id`.
    pub(super) fn records(&self, index: i32, id: u64, len: usize) -> StageSequence {
        let mut next = self.next.borrow_mut();
        let base = next.entry(index).or_insert(0);
        let entry = StagedEntry::Records {
            partition: partition(index),
            base_offset: Offset(*base),
            leader_epoch: 5,
            record_count: 2,
            batches: batch::sample(2, &body(id, len)).into(),
        };
        *base += 2;
        self.journal.stage(entry)
    }

    pub(super) fn state(&self, id: u64, len: usize) -> StageSequence {
        self.journal.stage(StagedEntry::State {
            kind: EntryKind::OffsetCommit,
            body: body(id, len).into(),
        })
    }

    /// Waits for the last of these tickets.
    pub(super) async fn settle(&self, sequence: StageSequence) {
        self.journal
            .committed(sequence)
            .await
            .expect("the disk is well");
    }

    pub(super) async fn checkpoint(&self) {
        let state = self.model.borrow().save();
        self.journal
            .checkpoint(state)
            .await
            .expect("the disk is well");
    }

    pub(super) async fn sleep_ms(&self, ms: u64) {
        self.env.clock().sleep(Duration::from_millis(ms)).await;
    }
}

/// Opens the journal on this disk and shows what it replays.
pub(super) fn reopen(media: &Media) -> Result<(Model, RecoveryReport), JournalError> {
    let config = JournalConfig {
        create: false,
        ..small_config()
    };
    reopen_with(media, config).0
}

pub(super) type Reopened = Result<(Model, RecoveryReport), JournalError>;

/// As [`reopen`], with a configuration; also the disk afterwards.
pub(super) fn reopen_with(media: &Media, config: JournalConfig) -> (Reopened, Media) {
    let sim = Sim::new(9).disk(media.clone()).instant().unrecorded();
    let run = sim.run(async move |env: Env| {
        let (bench, report) = Bench::try_open(env, config).await?;
        let model = bench.model.borrow().clone();
        Ok((model, report))
    });
    (run.value, run.after.stopped())
}

/// Runs a script on an empty disk and shows the disk of a clean machine stop.
pub(super) fn disk_after<F: Future<Output = ()> + 'static>(
    seed: u64,
    script: impl FnOnce(Bench) -> F + 'static,
) -> Media {
    run_script(seed, script).after.stopped()
}

pub(super) fn run_script<F: Future<Output = ()> + 'static>(
    seed: u64,
    script: impl FnOnce(Bench) -> F + 'static,
) -> Run<()> {
    Sim::new(seed).run(async move |env: Env| {
        let (bench, report) = Bench::open(env, small_config()).await;
        assert!(report.created && !report.is_remarkable());
        script(bench).await;
    })
}

/// Changes a file's bytes on a disk, sector by sector, outside any journal.
pub(super) fn edit(
    media: &Media,
    file: &str,
    offset: u64,
    len: usize,
    change: impl FnOnce(&mut [u8]) + 'static,
) -> Media {
    let path = Path::new(DIR).join(file);
    let first = offset / 4096 * 4096;
    let end = (offset + len as u64).next_multiple_of(4096);
    let whole = usize::try_from(end - first).unwrap();
    let inside = usize::try_from(offset - first).unwrap();
    let sim = Sim::new(1).disk(media.clone()).instant().unrecorded();
    let run = sim.run(async move |env: Env| {
        let file = env.disk().open(&path, OpenMode::Write).await.unwrap();
        let mut bytes = file.read_at(first, whole).await.unwrap().to_vec();
        change(&mut bytes[inside..inside + len]);
        file.write_all_at(SharedBuffer::from(bytes), first)
            .await
            .unwrap();
    });
    run.after.stopped()
}

/// Turns one bit of byte `at` of a small file.
pub(super) fn rot_small(media: &Media, path: &str, at: usize) -> Media {
    let path = Path::new(path).to_owned();
    let sim = Sim::new(1).disk(media.clone()).instant().unrecorded();
    let run = sim.run(async move |env: Env| {
        let mut bytes = env.disk().read_small(&path, 1 << 20).await.unwrap();
        bytes[at] ^= 1;
        env.disk().remove(&path).await.unwrap();
        env.disk().write_small_new(&path, bytes).await.unwrap();
    });
    run.after.stopped()
}

/// The whole contents of a file.
pub(super) fn contents(media: &Media, file: &str) -> Vec<u8> {
    let path = Path::new(DIR).join(file);
    let Some(crate::env::sim::Entry::File(inode)) = media.lookup(&path) else {
        panic!("{file} is not there");
    };
    let len = usize::try_from(media.len(inode)).unwrap();
    media.read(inode, 0, len)
}

/// Names of the shard's files.
pub(super) fn names(media: &Media) -> Vec<String> {
    let files = media.files(Path::new(DIR));
    files
        .into_iter()
        .map(|(name, _, _)| name.to_string())
        .collect()
}

/// Headers of the blocks of a segment file, in order, with their offsets.
pub(super) fn headers(bytes: &[u8]) -> Vec<(usize, super::format::Header)> {
    let mut found: Vec<(usize, super::format::Header)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let Ok(header) = super::format::decode_header(&bytes[at..]) else {
            break;
        };
        if found
            .last()
            .is_some_and(|(_, last)| header.previous_digest != last.digest)
        {
            break;
        }
        found.push((at, header));
        at += header.block_len();
    }
    found
}
