//! A shard against a plain model, with power cuts.
//!
//! Goal: whatever the order of appends, retries, checkpoints and power cuts, what was acknowledged
//! stays, at its offset, in order; what was not is there at most once; a retry gets the offset the
//! first try got. Method: a seeded simulation runs random operations on a real `Shard` over the
//! simulated disk, stops the machine at a random instant, lets the crash keep any subset of what
//! was not durable, opens the shard again, and compares. `PENSTOCK_SEED` replays one seed.

use bytes::Bytes;
use penstock::base::ids::{
    Offset, PartitionIndex, ProducerId, ShardId, StageSequence, TopicId, TopicPartition,
};
use penstock::base::record_batch::{BatchBuilder, BatchView, RecordData};
use penstock::env::Env;
use penstock::env::sim::{Media, Sim};
use penstock::journal::JournalConfig;
use penstock::shard::{AppendError, Shard};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

const PARTITIONS: i32 = 3;
const LANES: usize = 4;
const INCARNATIONS: usize = 5;
const OPERATIONS: usize = 40;
const BATCH_BYTES_MAX: usize = 1 << 20;

/// One batch a lane sent and has no acknowledgement for.
#[derive(Clone, Debug)]
struct Unacknowledged {
    first_sequence: i32,
    values: Vec<u64>,
    batch: Bytes,
}

/// One producer writing to one partition, one batch after the other, at most five unacknowledged.
struct Lane {
    partition: i32,
    producer: Option<ProducerId>,
    next_sequence: i32,
    unacknowledged: Vec<Unacknowledged>,
}

/// What must hold, kept outside the simulated machine.
#[derive(Default)]
struct Model {
    lanes: Vec<Lane>,
    /// Acknowledged values by partition and offset.
    acknowledged: BTreeMap<(i32, i64), u64>,
    sent: HashSet<u64>,
    next_value: u64,
    acknowledged_batches: usize,
}

fn key(partition: i32) -> TopicPartition {
    TopicPartition {
        topic: TopicId([5; 16]),
        partition: PartitionIndex(partition),
    }
}

fn new_model() -> Model {
    let lanes = (0..LANES).map(|lane| Lane {
        partition: i32::try_from(lane).expect("few") % PARTITIONS,
        // The last lane is not idempotent: its retries may make copies, and it never retries here.
        producer: (lane + 1 < LANES).then_some(ProducerId(100 + lane as i64)),
        next_sequence: 0,
        unacknowledged: Vec::new(),
    });
    Model {
        lanes: lanes.collect(),
        next_value: 1,
        ..Model::default()
    }
}

fn make_batch(lane: &mut Lane, values: &[u64], padding: usize) -> Bytes {
    let mut builder = BatchBuilder::new();
    if let Some(producer) = lane.producer {
        builder = builder.producer(producer.0, 0, lane.next_sequence);
    }
    for value in values {
        let mut bytes = value.to_le_bytes().to_vec();
        bytes.resize(8 + padding, 7);
        builder.append(&RecordData {
            value: Some(&bytes),
            timestamp: i64::try_from(*value).expect("small"),
            ..RecordData::default()
        });
    }
    lane.next_sequence += i32::try_from(values.len()).expect("few");
    Bytes::from(builder.finish())
}

/// Stages a lane's new batch; its acknowledgement is noted when it is durable.
fn send_new(env: &Env, shard: &Shard, model: &Rc<RefCell<Model>>, lane: usize, random: u64) {
    let unacknowledged = {
        let mut guard = model.borrow_mut();
        let model = &mut *guard;
        let count = 1 + random % 3;
        let values: Vec<u64> = (model.next_value..model.next_value + count).collect();
        model.next_value += count;
        model.sent.extend(&values);
        let padding = usize::try_from(random >> 8).expect("64 bit") % 900;
        let lane = &mut model.lanes[lane];
        let first_sequence = lane.next_sequence;
        let batch = make_batch(lane, &values, padding);
        let unacknowledged = Unacknowledged {
            first_sequence,
            values,
            batch,
        };
        lane.unacknowledged.push(unacknowledged.clone());
        unacknowledged
    };
    send(env, shard, model, lane, unacknowledged);
}

fn send(
    env: &Env,
    shard: &Shard,
    model: &Rc<RefCell<Model>>,
    lane: usize,
    unacknowledged: Unacknowledged,
) {
    let partition = model.borrow().lanes[lane].partition;
    let batch = unacknowledged.batch.clone();
    let appended = shard
        .append(key(partition), batch, BATCH_BYTES_MAX)
        .expect("in order");
    let (shard, model) = (shard.clone(), Rc::clone(model));
    env.spawn("producer", async move {
        if shard.durable(appended.ticket).await.is_err() {
            return;
        }
        let mut model = model.borrow_mut();
        for (index, value) in unacknowledged.values.iter().enumerate() {
            let offset = appended.base_offset.0 + i64::try_from(index).expect("few");
            let before = model.acknowledged.insert((partition, offset), *value);
            assert!(
                before.is_none_or(|before| before == *value),
                "two values at one offset"
            );
        }
        model.acknowledged_batches += 1;
        model.lanes[lane]
            .unacknowledged
            .retain(|other| other.first_sequence != unacknowledged.first_sequence);
    });
}

/// Reads a partition from its start, through the same plan and read that a fetch uses.
async fn read_all(shard: &Shard, partition: i32) -> Vec<u64> {
    let mut values = Vec::new();
    loop {
        let offset = Offset(i64::try_from(values.len()).expect("few"));
        let plan = shard
            .plan(&key(partition), offset, 64 << 10)
            .expect("within the log");
        let read = shard.read(&plan, 64 << 10, true).await.expect("undamaged");
        if read.chunks.is_empty() {
            assert_eq!(
                plan.committed, offset,
                "an empty read is the end of the log"
            );
            return values;
        }
        for chunk in read.chunks {
            let mut rest: &[u8] = &chunk;
            while let Ok((view, after)) = BatchView::split(rest) {
                for record in view.records(view.records_bytes()) {
                    let record = record.expect("a whole record");
                    let at = usize::try_from(record.offset).expect("not negative");
                    if at < values.len() {
                        continue; // The batch began before the offset asked for.
                    }
                    assert_eq!(at, values.len(), "offsets have no gap");
                    let value = record.value.expect("no tombstones");
                    values.push(u64::from_le_bytes(value[..8].try_into().expect("8 bytes")));
                }
                rest = after;
            }
            assert!(rest.is_empty());
        }
    }
}

/// Compares what is in the log with the model.
async fn check(shard: &Shard, model: &Rc<RefCell<Model>>) {
    for partition in 0..PARTITIONS {
        let values = read_all(shard, partition).await;
        let model = model.borrow();
        for ((of, offset), value) in &model.acknowledged {
            if *of == partition {
                let at = usize::try_from(*offset).expect("not negative");
                assert_eq!(
                    values.get(at),
                    Some(value),
                    "acknowledged {partition}@{offset}"
                );
            }
        }
        let unique: HashSet<&u64> = values.iter().collect();
        assert_eq!(unique.len(), values.len(), "a value is there twice");
        assert!(
            values.iter().all(|value| model.sent.contains(value)),
            "an invented value"
        );
        let mut by_lane: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        let lane_of = |value: &u64| {
            let waiting = model.lanes.iter().position(|lane| {
                lane.unacknowledged
                    .iter()
                    .any(|batch| batch.values.contains(value))
            });
            waiting.unwrap_or(usize::MAX)
        };
        for value in &values {
            by_lane.entry(lane_of(value)).or_default().push(*value);
        }
        for (lane, values) in by_lane.iter().filter(|(lane, _)| **lane != usize::MAX) {
            assert!(
                values.is_sorted(),
                "lane {lane} is out of order: {values:?}"
            );
        }
    }
}

fn config() -> JournalConfig {
    JournalConfig {
        create: true,
        segment_bytes: 128 << 10,
        block_bytes_max: 16 << 10,
        block_bytes_hard_max: 32 << 10,
        cache_bytes_max: 24 << 10,
        ..JournalConfig::new("/shard-000".into(), ShardId(0))
    }
}

/// One life of the machine: open, check, retry what is unacknowledged, work, stop at some instant.
async fn live(env: Env, model: Rc<RefCell<Model>>, last: bool) {
    let (shard, _) = Shard::open(env.clone(), config())
        .await
        .expect("opens after any crash");
    check(&shard, &model).await;
    for lane in 0..LANES {
        let waiting = model.borrow().lanes[lane].unacknowledged.clone();
        let idempotent = model.borrow().lanes[lane].producer.is_some();
        if !idempotent {
            model.borrow_mut().lanes[lane].unacknowledged.clear();
            continue;
        }
        for unacknowledged in waiting {
            send(&env, &shard, &model, lane, unacknowledged);
        }
    }
    for _ in 0..if last { 0 } else { OPERATIONS } {
        let random = env.random_u64();
        let lane = usize::try_from(random % LANES as u64).expect("few");
        match (random >> 32) % 16 {
            0..=9 if model.borrow().lanes[lane].unacknowledged.len() < 5 => {
                send_new(&env, &shard, &model, lane, random >> 3);
            }
            10..=12 => {
                env.clock()
                    .sleep(Duration::from_micros((random >> 40) % 3_000))
                    .await
            }
            13 => shard.checkpoint().await.expect("the disk is well"),
            14 => {
                // A retry of something old, or of something in flight, must be told apart.
                let oldest = model.borrow().lanes[lane].unacknowledged.first().cloned();
                if let (Some(oldest), true) = (oldest, lane + 1 < LANES) {
                    let partition = model.borrow().lanes[lane].partition;
                    let retried = shard.append(key(partition), oldest.batch, BATCH_BYTES_MAX);
                    assert!(
                        retried.expect("a retry").duplicate,
                        "a retry made a second copy"
                    );
                }
            }
            _ => env.yield_now().await,
        }
    }
    if last {
        shard.close().await.expect("the disk is well");
        assert!(
            model
                .borrow()
                .lanes
                .iter()
                .all(|lane| lane.unacknowledged.is_empty())
        );
        check(&shard, &model).await;
    }
}

fn run_seed(seed: u64) -> (usize, u64) {
    let model = Rc::new(RefCell::new(new_model()));
    let mut random = fastrand::Rng::with_seed(seed);
    let mut media = Media::new();
    let mut trace = 0;
    for incarnation in 0..INCARNATIONS {
        let last = incarnation + 1 == INCARNATIONS;
        let shared = Rc::clone(&model);
        let sim = Sim::new(random.u64(..)).disk(media).unrecorded();
        let run = sim.run(move |env| live(env, shared, last));
        trace ^= run
            .trace
            .rotate_left(u32::try_from(incarnation).expect("few"));
        let undecided = run.after.undecided();
        let choice = undecided.sample(&mut random);
        media = run.after.crash(&undecided, &choice);
    }
    let acknowledged = model.borrow().acknowledged_batches;
    (acknowledged, trace)
}

/// Goal and method: see the head of this file.
#[test]
fn a_shard_keeps_what_it_acknowledged() {
    let seeds = match std::env::var("PENSTOCK_SEED") {
        Ok(seed) => vec![seed.parse().expect("PENSTOCK_SEED is a number")],
        Err(_) => (0..150).collect::<Vec<u64>>(),
    };
    let mut acknowledged = 0;
    for seed in seeds {
        println!("seed {seed}");
        acknowledged += run_seed(seed).0;
    }
    assert!(
        acknowledged > 50,
        "the runs must reach acknowledgements: {acknowledged}"
    );
}

/// Goal: a seed is a whole run. Method: ten seeds, each twice, equal traces.
#[test]
fn ten_seeds_twice_give_equal_traces() {
    for seed in 0..10 {
        assert_eq!(run_seed(seed), run_seed(seed), "seed {seed}");
    }
}

/// Goal: the window survives a restart: a retry of a durable batch is recognised, a gap is refused.
#[test]
fn the_producer_window_survives_a_restart() {
    let make = |sequence: i32| {
        let mut builder = BatchBuilder::new().producer(7, 0, sequence);
        builder.append(&RecordData {
            value: Some(b"v"),
            ..RecordData::default()
        });
        Bytes::from(builder.finish())
    };
    let run = Sim::new(1).run(move |env| async move {
        let (shard, _) = Shard::open(env, config()).await.expect("opens");
        for sequence in 0..8 {
            let appended = shard
                .append(key(0), make(sequence), BATCH_BYTES_MAX)
                .expect("fresh");
            assert_eq!(appended.base_offset, Offset(i64::from(sequence)));
            shard
                .durable(appended.ticket)
                .await
                .expect("the disk is well");
        }
    });
    let undecided = run.after.undecided();
    let crashed = run.after.crash(&undecided, &undecided.choice(0));
    Sim::new(2).disk(crashed).run(move |env| async move {
        let (shard, _) = Shard::open(env, config()).await.expect("opens");
        for sequence in 3..8 {
            let retried = shard
                .append(key(0), make(sequence), BATCH_BYTES_MAX)
                .expect("known");
            assert!(retried.duplicate);
            assert_eq!(retried.base_offset, Offset(i64::from(sequence)));
            assert_eq!(retried.ticket, StageSequence(0));
        }
        let gap = shard.append(key(0), make(9), BATCH_BYTES_MAX);
        assert_eq!(
            gap,
            Err(AppendError::OutOfOrderSequence {
                expected: 8,
                found: 9
            })
        );
        let next = shard
            .append(key(0), make(8), BATCH_BYTES_MAX)
            .expect("fresh");
        assert_eq!(next.base_offset, Offset(8));
    });
}

/// Goal: a shard that closes while its house task is writing a checkpoint closes well; it once
/// ended the process as a bug. Method: begin a checkpoint in a task of its own, close at each of
/// the first instants of it.
#[test]
fn a_close_waits_for_a_checkpoint_under_way() {
    for turns in 0..40 {
        Sim::new(turns).run(move |env| async move {
            let (shard, _) = Shard::open(env.clone(), config()).await.expect("opens");
            let mut builder = BatchBuilder::new();
            builder.append(&RecordData {
                value: Some(b"v"),
                ..RecordData::default()
            });
            let batch = Bytes::from(builder.finish());
            let appended = shard.append(key(0), batch, BATCH_BYTES_MAX);
            let ticket = appended.expect("fresh").ticket;
            shard.durable(ticket).await.expect("the disk is well");
            let house = shard.clone();
            env.spawn("house", async move {
                house.checkpoint().await.expect("the disk is well");
            });
            for _ in 0..turns {
                env.yield_now().await;
            }
            env.clock().sleep(Duration::from_micros(turns * 20)).await;
            shard.close().await.expect("the disk is well");
        });
    }
}

/// Goal: what a fetch waits for is what is there, although a read leaves an extent to the next one
/// when most of it would not fit: else a fetch that asks for as much as it may take waits in vain.
/// Method: extents of which the second fits for less than half.
#[test]
fn a_fetch_foresees_what_a_read_leaves_out() {
    Sim::new(1).run(move |env| async move {
        let (shard, _) = Shard::open(env, config()).await.expect("opens");
        let mut lengths = Vec::new();
        for _ in 0..3 {
            let mut builder = BatchBuilder::new();
            builder.append(&RecordData {
                value: Some(&[7; 7_000]),
                ..RecordData::default()
            });
            let batch = Bytes::from(builder.finish());
            lengths.push(batch.len());
            let appended = shard.append(key(0), batch, BATCH_BYTES_MAX);
            let ticket = appended.expect("fresh").ticket;
            shard.durable(ticket).await.expect("the disk is well");
        }
        let bytes_max = lengths[0] + lengths[1] / 3;
        let plan = shard.plan(&key(0), Offset(0), bytes_max).expect("there");
        assert_eq!(plan.extents.len(), 1, "a third of it would be read in vain");
        let foreseen = shard.foresee(&key(0), Offset(0), bytes_max);
        assert_eq!(foreseen, Ok((lengths[0] + lengths[1], lengths[0])));
        let more = shard.plan(&key(0), Offset(0), lengths[0] + lengths[1] / 2 + 1);
        assert_eq!(more.expect("there").extents.len(), 2);
    });
}
