//! Scripts: what a shard might do to its journal, on a recorded simulation.

use crate::batch;
use crate::ledger::{
    ACKNOWLEDGED, Content, EPOCH, Item, Ledger, OPENED, drop_body, expected, partition,
};
use bytes::Bytes;
use penstock::base::ids::{Offset, ShardId, StageSequence};
use penstock::env::Env;
use penstock::env::sim::{Bug, FaultPlan, Media, Run, Sim};
use penstock::journal::{CommitMode, EntryKind, Journal, JournalConfig, StagedEntry};
use penstock::limits::BLOCK_ALIGN;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// One step of a script.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Stage a batch and do not wait.
    Append {
        lane: i32,
        records: u32,
        body_bytes: usize,
    },
    /// Stage a state entry and do not wait.
    State { body_bytes: usize },
    /// End a lane, once all is committed, and release its extents.
    Drop { lane: i32 },
    /// Wait until everything staged was acknowledged.
    Settle,
    /// Let other tasks run for a moment.
    Pause { us: u64 },
    /// Be idle long enough for a seal.
    Idle,
    /// Checkpoint the machine.
    Checkpoint,
    /// Close in order; only as the last step.
    Close,
}

/// A script with the limits it runs under.
#[derive(Clone, Debug)]
pub struct Script {
    pub steps: Vec<Step>,
    pub mode: CommitMode,
    pub depth: usize,
    pub segment_bytes: u64,
    pub block_bytes_max: usize,
    /// Low enough, blocks are large: segments are made without zeros, and zeros are written ahead.
    pub large_block_bytes_min: u64,
    pub faults: FaultPlan,
}

/// The journal's folder.
pub const DIR: &str = "/data/shard-000";
const IDLE_SEAL: Duration = Duration::from_millis(20);

impl Script {
    /// A script under small limits, so that rolls and cuts come soon.
    pub fn new(steps: Vec<Step>) -> Self {
        Self {
            steps,
            mode: CommitMode::Dsync,
            depth: 4,
            segment_bytes: 128 << 10,
            block_bytes_max: 16 << 10,
            large_block_bytes_min: 12 << 10,
            faults: FaultPlan::none(),
        }
    }

    /// A random script of about `length` steps, under random limits (swarm: each seed has its own
    /// mixture of steps).
    pub fn random(rng: &mut fastrand::Rng, length: usize) -> Self {
        let weights: Vec<u32> = (0..8).map(|_| [0, 1, 1, 4][rng.usize(0..4)]).collect();
        let large = rng.bool();
        let mut lanes = 0..rng.i32(1..6);
        let mut steps = Vec::new();
        for _ in 0..length {
            let lane = rng.i32(lanes.clone());
            let body_bytes = match (large, rng.u8(0..4)) {
                (true, 0) => rng.usize(4_000..12_000),
                _ => rng.usize(0..600),
            };
            let step = match pick(rng, &weights) {
                0 | 1 => Step::Append {
                    lane,
                    records: rng.u32(1..20),
                    body_bytes,
                },
                2 => Step::State {
                    body_bytes: rng.usize(0..300),
                },
                3 => Step::Settle,
                4 => Step::Pause {
                    us: rng.u64(1..2_000),
                },
                5 => Step::Idle,
                6 => Step::Checkpoint,
                _ => {
                    let lane = lanes.start;
                    lanes = lane + 1..lanes.end + 1;
                    Step::Drop { lane }
                }
            };
            steps.push(step);
        }
        if rng.u8(0..4) == 0 {
            steps.push(Step::Close);
        }
        let mut script = Self::new(steps);
        script.mode = if rng.bool() {
            CommitMode::Dsync
        } else {
            CommitMode::Fdatasync
        };
        script.depth = rng.usize(1..=4);
        script.large_block_bytes_min = if rng.bool() { 8 << 10 } else { 64 << 10 };
        script
    }

    /// What the generations after a crash do: a little of everything, so that most of their
    /// instants lie in the recovery itself.
    pub fn later(&self) -> Self {
        let small = |lane| Step::Append {
            lane,
            records: 2,
            body_bytes: 900,
        };
        let steps = vec![
            small(100),
            Step::State { body_bytes: 9 },
            small(0),
            Step::Settle,
            small(1),
        ];
        Self {
            steps,
            faults: FaultPlan::none(),
            ..self.clone()
        }
    }

    /// The journal's settings; `create` while the store is being made.
    pub fn config(&self, create: bool) -> JournalConfig {
        JournalConfig {
            create,
            segment_bytes: self.segment_bytes,
            block_bytes_max: self.block_bytes_max,
            block_bytes_hard_max: self.block_bytes_max + BLOCK_ALIGN,
            cache_bytes_max: 64 << 10,
            staged_bytes_max: 64 << 10,
            commit_depth: self.depth,
            commit_mode: self.mode,
            large_block_bytes_min: self.large_block_bytes_min,
            idle_seal: IDLE_SEAL,
            ..JournalConfig::new(PathBuf::from(DIR), ShardId(0))
        }
    }
}

fn pick(rng: &mut fastrand::Rng, weights: &[u32]) -> usize {
    let total: u32 = weights.iter().sum::<u32>() + 4;
    let mut left = rng.u32(0..total);
    for (index, weight) in weights.iter().enumerate() {
        if left < *weight {
            return index;
        }
        left -= weight;
    }
    0
}

/// What a generation of a journal's life staged, on top of what it found.
#[derive(Clone, Debug, Default)]
pub struct Generation {
    /// What was found, and what was staged after it.
    pub items: Vec<Item>,
    /// What went wrong while the script ran.
    pub faults: Vec<String>,
    /// How often an operation was refused because the journal had failed.
    pub poisoned: u64,
}

/// A disk on which the store's own folder is made and flushed; the shard's is the journal's affair.
pub fn empty_disk() -> Media {
    let run = Sim::new(1).instant().run(async |env: Env| {
        let made = env.disk().create_dir_all(Path::new("/data")).await;
        made.and(env.disk().sync_dir(Path::new("/")).await)
    });
    run.value.expect("a simulated disk without faults");
    run.after
}

/// What was promised by the instant of a crash.
#[derive(Clone, Debug)]
pub struct Promise {
    /// Everything that may be found, in order.
    pub items: Rc<[Item]>,
    /// How many of them must be.
    pub required: u64,
    /// Whether the journal was ever open: then it may not be made anew.
    pub made: bool,
}

impl Promise {
    /// Nothing was promised yet.
    pub fn none() -> Self {
        Self {
            items: Rc::from([]),
            required: 0,
            made: false,
        }
    }
}

/// Runs a script on `disk`, whose journal may hold any of `before`'s prefixes.
pub fn run(
    script: &Script,
    seed: u64,
    disk: &Media,
    before: &Promise,
    bugs: &[Bug],
) -> Result<Run<Generation>, String> {
    let mut sim = Sim::new(seed)
        .disk(disk.clone())
        .faults(script.faults.clone());
    for bug in bugs {
        sim = sim.plant(*bug);
    }
    let (script, before) = (script.clone(), before.clone());
    let body = move |env: Env| async move {
        let live = Live::open(env, &script, &before).await;
        match live {
            Ok(live) => live.play(&script).await,
            // An operation that was made to fail may fail the opening: nothing was promised then.
            Err(_) if !script.faults.is_empty() => Generation::default(),
            Err(fault) => Generation {
                faults: vec![fault],
                ..Generation::default()
            },
        }
    };
    sim.try_run(body).map_err(|failure| failure.to_string())
}

struct Live {
    env: Env,
    journal: Journal,
    ledger: Rc<RefCell<Ledger>>,
    generation: Rc<RefCell<Generation>>,
    /// Everything staged, for the next offset.
    staged: Content,
    /// Items found; stage sequence `n` of this run is item `found + n`.
    found: u64,
    last: Option<(StageSequence, u64)>,
}

impl Live {
    async fn open(env: Env, script: &Script, before: &Promise) -> Result<Self, String> {
        let ledger = Rc::new(RefCell::new(Ledger::noting(env.clone())));
        let opened = Journal::open(env.clone(), script.config(!before.made), ledger.clone()).await;
        let (journal, _report) = opened.map_err(|error| format!("open: {error}"))?;
        let staged = ledger.borrow().content.clone();
        let found = staged.applied;
        let count = usize::try_from(found).expect("a script is short");
        let known = count <= before.items.len() && found >= before.required;
        if !known || staged != expected(&before.items, count) {
            return Err(format!(
                "open found {found} items, not the ones that were promised"
            ));
        }
        let dead = ledger.borrow_mut().take_dead();
        dead.into_iter().for_each(|extent| journal.release(extent));
        env.mark(OPENED | found);
        let generation = Generation {
            items: before.items[..count].to_vec(),
            ..Generation::default()
        };
        let generation = Rc::new(RefCell::new(generation));
        Ok(Self {
            env,
            journal,
            ledger,
            generation,
            staged,
            found,
            last: None,
        })
    }

    async fn play(mut self, script: &Script) -> Generation {
        for step in &script.steps {
            self.step(*step).await;
        }
        if !matches!(script.steps.last(), Some(Step::Close)) {
            self.settle().await;
        }
        let mut generation = self.generation.borrow().clone();
        generation
            .faults
            .append(&mut self.ledger.borrow_mut().faults);
        if self.ledger.borrow().damaged > 0 {
            generation
                .faults
                .push("an entry was applied as damaged".to_owned());
        }
        generation
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Append {
                lane,
                records,
                body_bytes,
            } => {
                self.append(lane, records, body_bytes).await;
            }
            Step::State { body_bytes } => {
                let body = self.body(body_bytes + 8);
                let kind = EntryKind::Group;
                let entry = StagedEntry::State {
                    kind,
                    body: Bytes::from(body.clone()),
                };
                self.stage(entry, Item::State(Rc::from(body))).await;
            }
            Step::Drop { lane } => {
                self.settle().await;
                let body = Bytes::copy_from_slice(&drop_body(lane));
                let entry = StagedEntry::State {
                    kind: EntryKind::TopicDropped,
                    body,
                };
                self.stage(entry, Item::Drop(lane)).await;
                self.settle().await;
                let dead = self.ledger.borrow_mut().take_dead();
                dead.into_iter()
                    .for_each(|extent| self.journal.release(extent));
            }
            Step::Settle => self.settle().await,
            Step::Pause { us } => self.env.clock().sleep(Duration::from_micros(us)).await,
            Step::Idle => self.env.clock().sleep(IDLE_SEAL * 3).await,
            Step::Checkpoint => {
                let state = self.ledger.borrow().checkpoint();
                if self.journal.checkpoint(state).await.is_err() {
                    self.generation.borrow_mut().poisoned += 1;
                }
            }
            Step::Close => {
                if self.journal.close().await.is_err() {
                    self.generation.borrow_mut().poisoned += 1;
                }
            }
        }
    }

    async fn append(&mut self, lane: i32, records: u32, body_bytes: usize) {
        let batch = batch::unplaced(records, &self.body(body_bytes + 8));
        let base = self.staged.next_offset(lane);
        let entry = StagedEntry::Records {
            partition: partition(lane),
            base_offset: Offset(base),
            leader_epoch: EPOCH,
            record_count: records,
            batches: Bytes::from(batch.clone()),
        };
        let placed = Rc::from(batch::placed(batch, base, EPOCH));
        self.stage(
            entry,
            Item::Records {
                lane,
                batch: placed,
            },
        )
        .await;
    }

    /// Bytes that differ from all others: the item's number, then noise.
    fn body(&self, len: usize) -> Vec<u8> {
        let noise = (0..len.div_ceil(8)).flat_map(|_| self.env.random_u64().to_le_bytes());
        let mut body: Vec<u8> = noise.take(len).collect();
        body[..8].copy_from_slice(&self.staged.applied.to_le_bytes());
        body
    }

    async fn stage(&mut self, entry: StagedEntry, item: Item) {
        if self.journal.room().await.is_err() {
            self.generation.borrow_mut().poisoned += 1;
            return;
        }
        self.staged.push(&item);
        let number = self.staged.applied;
        self.generation.borrow_mut().items.push(item);
        let sequence = self.journal.stage(entry);
        assert!(number > self.found, "a staged item is new");
        self.last = Some((sequence, number));
        let (journal, ledger) = (self.journal.clone(), Rc::clone(&self.ledger));
        let (env, generation) = (self.env.clone(), Rc::clone(&self.generation));
        self.env.spawn("ticket", async move {
            if journal.committed(sequence).await.is_err() {
                generation.borrow_mut().poisoned += 1;
                return;
            }
            env.mark(ACKNOWLEDGED | number);
            if ledger.borrow().content.applied < number {
                let fault = format!("item {number} was acknowledged before it was applied");
                generation.borrow_mut().faults.push(fault);
            }
        });
    }

    async fn settle(&mut self) {
        if let Some((sequence, _)) = self.last.take()
            && self.journal.committed(sequence).await.is_err()
        {
            self.generation.borrow_mut().poisoned += 1;
        }
        // The tickets are tasks of their own: let them note what they were told.
        self.env.clock().sleep(Duration::from_micros(20)).await;
    }
}
