//! The state machine under test: it keeps everything, so that nothing lost or invented can hide.
//!
//! An [`Item`] is one thing a script staged. A [`Ledger`] is what the journal applied. What
//! recovery must produce is the fold of the first *k* items: [`expected`].

use crate::batch;
use penstock::base::ids::{Offset, PartitionIndex, Position, TopicId, TopicPartition};
use penstock::env::Env;
use penstock::journal::{EntryKind, EntryView, Extent, Location, StateMachine};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Leader epoch of every batch.
pub const EPOCH: i32 = 3;
/// Note in the event log: so many items were applied.
pub const APPLIED: u64 = 1 << 56;
/// Note: the item with this number (from 1) was acknowledged.
pub const ACKNOWLEDGED: u64 = 2 << 56;
/// Note: the journal was opened with so many items.
pub const OPENED: u64 = 3 << 56;
/// The number below a note's kind.
pub const NOTE_VALUE: u64 = (1 << 56) - 1;

/// One staged thing.
#[derive(Clone, Debug)]
pub enum Item {
    /// A batch, as it must lie in the journal.
    Records { lane: i32, batch: Rc<[u8]> },
    /// A state entry.
    State(Rc<[u8]>),
    /// A partition ends.
    Drop(i32),
}

/// The partition that a lane number stands for.
pub fn partition(lane: i32) -> TopicPartition {
    TopicPartition {
        topic: TopicId([7; 16]),
        partition: PartitionIndex(lane),
    }
}

/// What was applied.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Content {
    /// Number of items.
    pub applied: u64,
    /// Batches per lane.
    pub lanes: BTreeMap<i32, Vec<Rc<[u8]>>>,
    /// State entries.
    pub states: Vec<Rc<[u8]>>,
}

impl Content {
    /// Applies one item.
    pub fn push(&mut self, item: &Item) {
        self.applied += 1;
        match item {
            Item::Records { lane, batch } => {
                self.lanes.entry(*lane).or_default().push(Rc::clone(batch));
            }
            Item::State(body) => self.states.push(Rc::clone(body)),
            Item::Drop(lane) => {
                self.lanes.remove(lane);
                self.states.push(drop_body(*lane));
            }
        }
    }

    /// Offset that the next record of a lane gets.
    pub fn next_offset(&self, lane: i32) -> i64 {
        let last = self.lanes.get(&lane).and_then(|batches| batches.last());
        last.map_or(0, |last| {
            let (base, count) = batch::place(last);
            base + i64::from(count)
        })
    }
}

/// The body of the state entry that ends a lane.
pub fn drop_body(lane: i32) -> Rc<[u8]> {
    Rc::from(lane.to_le_bytes().as_slice())
}

/// An extent and the batches in it.
pub type StoredBatches = (Extent, Vec<Rc<[u8]>>);

/// The machine.
#[derive(Default)]
pub struct Ledger {
    /// What was applied.
    pub content: Content,
    /// Where the live batches lie, one extent per lane and block.
    pub extents: BTreeMap<i32, Vec<StoredBatches>>,
    /// Entries that came as damaged.
    pub damaged: u64,
    /// Extents of lanes that ended since the last call of `take_dead`.
    dead: Vec<Extent>,
    /// What should not have happened.
    pub faults: Vec<String>,
    /// Where notes go while a script runs.
    env: Option<Env>,
}

impl Ledger {
    /// A ledger that notes what it applies in the simulation's event log.
    pub fn noting(env: Env) -> Self {
        Self {
            env: Some(env),
            ..Self::default()
        }
    }

    /// Extents whose records are dead.
    pub fn take_dead(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.dead)
    }

    fn records(&mut self, lane: i32, base: i64, count: u32, extent: Extent, bytes: &[u8]) {
        let Some(batches) = batch::split(bytes) else {
            self.faults.push(format!(
                "lane {lane}: batches that cannot be split were applied"
            ));
            return;
        };
        let batches: Vec<Rc<[u8]>> = batches.into_iter().map(Rc::from).collect();
        let mut next = base;
        for bytes in &batches {
            let (base, count) = batch::place(bytes);
            if base != next {
                self.faults
                    .push(format!("lane {lane}: batch at {base}, expected {next}"));
            }
            next = base + i64::from(count);
            let item = Item::Records {
                lane,
                batch: Rc::clone(bytes),
            };
            self.content.push(&item);
        }
        if next != base + i64::from(count) {
            self.faults.push(format!(
                "lane {lane}: {count} records were said, {next} found"
            ));
        }
        self.extents
            .entry(lane)
            .or_default()
            .push((extent, batches));
    }
}

impl StateMachine for Ledger {
    fn restore(&mut self, checkpoint: &[u8]) -> Result<(), String> {
        let restored = Restored { bytes: checkpoint }.ledger();
        let (content, extents) = restored.ok_or_else(|| "a checkpoint cut short".to_owned())?;
        self.content = content;
        self.extents = extents;
        Ok(())
    }

    fn apply(&mut self, _location: Location, entry: EntryView<'_>) {
        match entry {
            EntryView::Records {
                partition,
                base_offset,
                record_count,
                extent,
                batches,
            } => {
                let lane = partition.partition.0;
                self.records(lane, base_offset.0, record_count, extent, batches);
            }
            EntryView::State {
                kind: EntryKind::TopicDropped,
                body,
            } => {
                let lane = body.try_into().map(i32::from_le_bytes).unwrap_or(-1);
                self.content.push(&Item::Drop(lane));
                let extents = self.extents.remove(&lane).unwrap_or_default();
                self.dead
                    .extend(extents.into_iter().map(|(extent, _)| extent));
            }
            EntryView::State { body, .. } => self.content.push(&Item::State(Rc::from(body))),
            EntryView::Damaged { .. } => self.damaged += 1,
        }
        if let Some(env) = &self.env {
            env.mark(APPLIED | self.content.applied);
        }
    }
}

/// What recovery must produce from the first `count` items.
pub fn expected(items: &[Item], count: usize) -> Content {
    let mut content = Content::default();
    items[..count].iter().for_each(|item| content.push(item));
    content
}

impl Ledger {
    /// The state as a checkpoint keeps it.
    pub fn checkpoint(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.content.applied.to_le_bytes());
        bytes.extend((self.content.states.len() as u64).to_le_bytes());
        for state in &self.content.states {
            put_bytes(&mut bytes, state);
        }
        let lanes = self.extents.values().map(Vec::len).sum::<usize>();
        bytes.extend((lanes as u64).to_le_bytes());
        for (lane, extents) in &self.extents {
            for (extent, batches) in extents {
                bytes.extend(u64::from(lane.cast_unsigned()).to_le_bytes());
                bytes.extend(extent.position.0.to_le_bytes());
                bytes.extend(u64::from(extent.len_bytes).to_le_bytes());
                bytes.extend(extent.base_offset.0.to_le_bytes());
                put_bytes(&mut bytes, &batches.concat());
            }
        }
        bytes
    }
}

fn put_bytes(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend((bytes.len() as u64).to_le_bytes());
    into.extend(bytes);
}

struct Restored<'bytes> {
    bytes: &'bytes [u8],
}

type Extents = BTreeMap<i32, Vec<(Extent, Vec<Rc<[u8]>>)>>;

impl Restored<'_> {
    fn number(&mut self) -> Option<u64> {
        let (head, rest) = self.bytes.split_first_chunk::<8>()?;
        self.bytes = rest;
        Some(u64::from_le_bytes(*head))
    }

    fn slice(&mut self) -> Option<&[u8]> {
        let len = usize::try_from(self.number()?).ok()?;
        let (head, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(head)
    }

    fn ledger(mut self) -> Option<(Content, Extents)> {
        let mut content = Content {
            applied: self.number()?,
            ..Content::default()
        };
        for _ in 0..self.number()? {
            content.states.push(Rc::from(self.slice()?));
        }
        let mut extents = Extents::new();
        for _ in 0..self.number()? {
            let lane = u32::try_from(self.number()?).ok()?.cast_signed();
            let position = Position(self.number()?);
            let len_bytes = u32::try_from(self.number()?).ok()?;
            let base_offset = Offset(self.number()?.cast_signed());
            let batches = batch::split(self.slice()?)?;
            let batches: Vec<Rc<[u8]>> = batches.into_iter().map(Rc::from).collect();
            content
                .lanes
                .entry(lane)
                .or_default()
                .extend(batches.iter().cloned());
            let leader_epoch = EPOCH;
            let extent = Extent {
                position,
                len_bytes,
                leader_epoch,
                base_offset,
            };
            extents.entry(lane).or_default().push((extent, batches));
        }
        Some((content, extents))
    }
}
