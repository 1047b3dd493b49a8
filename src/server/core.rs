//! The life of one core: open its shards, wire itself to the others, listen, drain, close. Each
//! step waits for the main thread's command, so that all cores take it together.

use super::dump::{self, DumpRequest};
use super::http;
use super::prepare::{Sockets, StartError, StoreFacts};
use crate::base::exit::ExitCode;
use crate::base::ids::{CoreId, ShardId};
use crate::config::{CommitMode, Loaded};
use crate::env::net::ListenerStop;
use crate::env::process;
use crate::env::real::executor::Core;
use crate::env::real::watchdog;
use crate::journal::{self, JournalConfig, JournalError, RecoveryReport};
use crate::limits::{
    BLOCK_BYTES_HARD_MAX, DRAIN_PATIENCE, LISTEN_BACKLOG, METRICS_TICK, POISON_GRACE,
    STAGED_BYTES_MAX,
};
use crate::metrics::CoreMetrics;
use crate::router::control::ControlRequest;
use crate::router::mesh::LaneRequest;
use crate::router::{Layout, Router, RouterParts};
use crate::session::listener::{ConnectionLimits, accept};
use crate::session::{Session, Settings};
use crate::shard::Shard;
use std::rc::Rc;
use std::time::Duration;

/// What the main thread asks of a core, in this order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Command {
    /// Serve the other cores.
    Wire,
    /// Core 0: give every core the catalogue.
    Publish,
    /// Accept clients.
    Listen,
    /// Accept no more; answer what was read.
    Drain,
    /// Checkpoint, seal and close the journals, then end.
    Close,
}

/// What a core answers: once when its shards are open, then once for each command.
pub enum CoreReport {
    /// The shards are open.
    Opened(Vec<(ShardId, RecoveryReport)>),
    /// The command is done.
    Done,
    /// Core 0: the catalogue, of so many topics, is on every core.
    Published(usize),
    /// A journal could not be opened or closed, or the address is taken after all.
    Failed(StartError),
}

/// What every core is given; each takes its own place in the lists.
#[derive(Clone)]
pub struct CoreSeat {
    /// The configuration.
    pub loaded: Loaded,
    /// Where every shard lives.
    pub layout: Layout,
    /// The store.
    pub store: StoreFacts,
    /// The bound sockets.
    pub sockets: Sockets,
    /// The ways into each core.
    pub lanes: Vec<flume::Sender<LaneRequest>>,
    /// Their ends.
    pub lane_ends: Vec<flume::Receiver<LaneRequest>>,
    /// The way to the control task.
    pub control: flume::Sender<ControlRequest>,
    /// Its end, for core 0.
    pub control_end: flume::Receiver<ControlRequest>,
    /// The main thread's commands, by core.
    pub command_ends: Vec<flume::Receiver<Command>>,
    /// Requests for a dump into the file, for core 0.
    pub dumps_end: flume::Receiver<DumpRequest>,
    /// The way to the main thread.
    pub report: flume::Sender<CoreReport>,
}

/// The main future of a core.
pub async fn live(core: Core, seat: CoreSeat) {
    let commands = seat.command_ends[core.index].clone();
    let metrics = CoreMetrics::new(core_id(core.index), u32::try_from(core.cpu).unwrap_or(0));
    let shards = match open_shards(&core, &seat, &metrics).await {
        Ok((shards, reports)) => {
            let _ = seat.report.send(CoreReport::Opened(reports));
            shards
        }
        Err(error) => {
            let _ = seat
                .report
                .send(CoreReport::Failed(StartError::from_journal(error)));
            return;
        }
    };
    let router = Router::new(RouterParts {
        env: core.env.clone(),
        core: core_id(core.index),
        layout: seat.layout.clone(),
        metrics: Rc::clone(&metrics),
        shards: shards.clone(),
        lanes: seat.lanes.clone(),
        control: seat.control.clone(),
    });
    let endpoint = core.index % seat.layout.endpoints.len();
    let settings = Settings::new(&seat.loaded.config, endpoint);
    let session = Session::new(router.clone(), settings, &seat.loaded.memory);
    let mut listeners = Vec::new();
    while let Ok(command) = commands.recv_async().await {
        match command {
            Command::Wire => wire(&core, &seat, &router, &session, &shards),
            Command::Publish if core.index == 0 => {
                let outcome = publish(&core, &seat, &router).await;
                let _ = seat.report.send(match outcome {
                    Ok(topics) => CoreReport::Published(topics),
                    Err(error) => CoreReport::Failed(StartError::from_journal(error)),
                });
                continue;
            }
            Command::Publish => {}
            Command::Listen => match listen(&core, &seat, &session) {
                Ok(stops) => listeners = stops,
                Err(error) => {
                    let error = StartError::Configuration(error.to_string());
                    let _ = seat.report.send(CoreReport::Failed(error));
                    continue;
                }
            },
            Command::Drain => drain(&session, &listeners).await,
            Command::Close => {
                let _ = seat.report.send(match close_shards(&shards).await {
                    Ok(()) => CoreReport::Done,
                    Err(error) => CoreReport::Failed(StartError::from_journal(error)),
                });
                return;
            }
        }
        let _ = seat.report.send(CoreReport::Done);
    }
}

fn core_id(index: usize) -> CoreId {
    CoreId(u16::try_from(index).expect("the configuration bounds the number of cores"))
}

/// Opens this core's shards, all at once: they recover side by side.
async fn open_shards(
    core: &Core,
    seat: &CoreSeat,
    metrics: &Rc<CoreMetrics>,
) -> Result<(Vec<Shard>, Vec<(ShardId, RecoveryReport)>), JournalError> {
    let ids: Vec<ShardId> = (0..seat.layout.shards)
        .map(ShardId)
        .filter(|shard| seat.layout.core_of(*shard) == core_id(core.index))
        .collect();
    let count = ids.len().max(1);
    let opening = ids.iter().map(|shard| {
        let config = journal_config(core, seat, *shard, count);
        Shard::open(core.env.clone(), config)
    });
    let opened = futures_util::future::try_join_all(opening).await?;
    let (mut shards, mut reports) = (Vec::new(), Vec::new());
    for (shard, report) in opened {
        metrics.attach_journal(shard.journal_metrics());
        reports.push((shard.id(), report));
        shards.push(shard);
    }
    Ok((shards, reports))
}

fn journal_config(
    core: &Core,
    seat: &CoreSeat,
    shard: ShardId,
    shards_here: usize,
) -> JournalConfig {
    let config = &seat.loaded.config;
    let env = core.env.clone();
    JournalConfig {
        create: seat.store.is_new,
        segment_bytes: seat.store.segment_bytes,
        block_bytes_max: usize::try_from(config.block_bytes_max).unwrap_or(BLOCK_BYTES_HARD_MAX),
        commit_depth: usize::from(config.commit_depth),
        commit_mode: match config.commit_mode {
            CommitMode::Dsync => journal::CommitMode::Dsync,
            CommitMode::Fdatasync => journal::CommitMode::Fdatasync,
        },
        idle_seal: Duration::from_millis(u64::from(config.idle_seal_ms)),
        cache_bytes_max: seat.loaded.memory.cache_bytes_per_core() / shards_here,
        staged_bytes_max: STAGED_BYTES_MAX,
        on_poison: Rc::new(move |poisoned| {
            tracing::error!(shard = shard.0, %poisoned, "the disk failed; ending the process");
            let reason = format!("shard {shard}: {poisoned}");
            let clock = env.clock();
            env.spawn("end after a disk failure", async move {
                // Time for the producers that wait to be told.
                clock.sleep(POISON_GRACE).await;
                process::exit_now(ExitCode::DiskFailed, &reason);
            });
        }),
        ..JournalConfig::new(seat.store.shard_dir(shard), shard)
    }
}

fn wire(core: &Core, seat: &CoreSeat, router: &Router, session: &Session, shards: &[Shard]) {
    let env = &core.env;
    env.spawn(
        "lane",
        router
            .clone()
            .serve_lane(seat.lane_ends[core.index].clone()),
    );
    if core.index == 0 {
        env.spawn(
            "control",
            router.clone().serve_control(seat.control_end.clone()),
        );
        let file = dump::file_of(&seat.loaded.config.dump_file, &seat.store.dir);
        let (memory, requests) = (seat.loaded.memory, seat.dumps_end.clone());
        env.spawn("dump", dump::serve(session.clone(), memory, file, requests));
    }
    for shard in shards {
        env.spawn("housekeeping", shard.clone().keep_house());
    }
    env.spawn("figures", tick(core.env.clone(), session.clone()));
}

/// From here on a missing journal is refused, and every core knows the topics.
async fn publish(core: &Core, seat: &CoreSeat, router: &Router) -> Result<usize, JournalError> {
    if seat.store.is_new {
        journal::store::mark_ready(&core.env, &seat.store.dir).await?;
    }
    router.publish().await;
    Ok(router.catalog().len())
}

/// Brings the figures that are read from elsewhere up to date, now and then.
async fn tick(env: crate::env::Env, session: Session) {
    let started_ns = env.clock().now_ns();
    while !session.stopping() {
        let before_ns = env.clock().now_ns();
        env.clock().sleep(METRICS_TICK).await;
        let metrics = session.metrics();
        let slept_ns = env.clock().now_ns() - before_ns;
        let late_ns = slept_ns.saturating_sub(METRICS_TICK.as_nanos() as u64);
        metrics.runtime.tick_delay.record(late_ns);
        if late_ns > 10_000_000 {
            metrics.runtime.timers_late.inc();
        }
        metrics.runtime.wall.set(env.clock().now_ns() - started_ns);
        metrics.runtime.cpu.set(process::thread_cpu_ns());
        metrics.runtime.watchdog_kicks.set(watchdog::kicks());
        session.update_figures();
        session.end_the_useless();
    }
}

fn listen(
    core: &Core,
    seat: &CoreSeat,
    session: &Session,
) -> Result<Vec<ListenerStop>, std::io::Error> {
    let config = &seat.loaded.config;
    let mut stops = Vec::new();
    if let Some(socket) = seat.sockets.take_kafka(core.index) {
        let listener = socket.listen(LISTEN_BACKLOG)?;
        let endpoints = seat.layout.endpoints.len();
        let limits = ConnectionLimits {
            total_max: (config.max_connections as usize).div_ceil(endpoints),
            address_max: (config.max_connections_per_ip as usize).div_ceil(endpoints),
            rate_max: u64::from(config.accept_rate_max),
        };
        stops.push(listener.stopper());
        core.env
            .spawn("listener", accept(session.clone(), listener, limits));
    }
    if let Some(socket) = seat.sockets.take_http(core.index) {
        let listener = socket.listen(LISTEN_BACKLOG)?;
        stops.push(listener.stopper());
        core.env.spawn(
            "http",
            http::accept(session.clone(), listener, seat.loaded.memory),
        );
    }
    Ok(stops)
}

/// Accepts no more, reads no more, and waits until every request that was read is answered.
async fn drain(session: &Session, listeners: &[ListenerStop]) {
    session.stop();
    for listener in listeners {
        listener.stop();
    }
    let clock = session.router.env.clock();
    if clock
        .deadline(DRAIN_PATIENCE, session.drained())
        .await
        .is_none()
    {
        session.cut_off();
        let _ = clock.deadline(DRAIN_PATIENCE / 3, session.drained()).await;
    }
}

async fn close_shards(shards: &[Shard]) -> Result<(), JournalError> {
    for shard in shards {
        shard.close().await?;
    }
    Ok(())
}
