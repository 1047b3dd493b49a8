//! The lanes between cores: one bounded `flume` channel into each core, and with each request the
//! way its answer comes back. A full lane makes the sender wait, and past a deadline it answers its
//! client with a retriable error; nothing is dropped in silence.

use super::Router;
use super::fetch::{FetchPart, Fetched, IntoOwned};
use super::offsets::{OffsetAnswer, OffsetPart};
use super::produce::{ProducePart, ProducedElsewhere, later};
use crate::base::ids::{CoreId, StageSequence, TopicId};
use crate::limits::LANE_SEND_TIMEOUT;
use crate::metrics::{CoreSnapshot, TopicFigures, Topics};
use crate::shard::catalog::Catalog;
use crate::shard::{AppendError, Shard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// An answer to a batch of forwarded parts, each with its place in the request.
pub type Answers<T> = Vec<(usize, T)>;

/// What one core asks of another.
pub enum LaneRequest {
    /// Append these batches, in this order. With a `reply` they are answered when durable.
    Produce {
        /// The batches, each with its place in the request.
        parts: Vec<(usize, ProducePart)>,
        /// `None` for `acks=0`.
        reply: Option<flume::Sender<ProducedElsewhere>>,
    },
    /// Read what is there now.
    Fetch {
        /// Where to read, each with its place in the request.
        parts: Vec<(usize, FetchPart)>,
        /// At most so many bytes in all (but one batch at least).
        bytes_max: usize,
        /// The records, copied: a block buffer never leaves its core.
        reply: flume::Sender<Answers<Fetched>>,
    },
    /// Answer when any of these partitions has something at or past its offset.
    Await {
        /// The partitions.
        parts: Vec<FetchPart>,
        /// For at most so long.
        wait: Duration,
        /// Where to.
        reply: flume::Sender<()>,
    },
    /// Look up offsets.
    Offsets {
        /// Which, each with its place in the request.
        parts: Vec<(usize, OffsetPart)>,
        /// Where to.
        reply: flume::Sender<Answers<OffsetAnswer>>,
    },
    /// A newer catalogue.
    Install {
        /// The snapshot.
        catalog: Arc<Catalog>,
        /// Answered when it is in force.
        reply: flume::Sender<()>,
    },
    /// This core's figures.
    Metrics {
        /// Where to.
        reply: flume::Sender<CoreSnapshot>,
    },
    /// The figures of the topics whose partitions live here.
    Topics {
        /// Where to.
        reply: flume::Sender<BTreeMap<TopicId, TopicFigures>>,
    },
}

impl Router {
    /// Sends a request to another core; false if its lane stayed full, or the core has ended.
    pub(super) async fn send(&self, core: CoreId, request: LaneRequest) -> bool {
        assert_ne!(core, self.core, "a request of our own needs no lane");
        let request = match self.lane(core).try_send(request) {
            Ok(()) => return true,
            Err(flume::TrySendError::Disconnected(_)) => return false,
            Err(flume::TrySendError::Full(request)) => request,
        };
        self.metrics.forward.refused.inc();
        let sending = self.lane(core).send_async(request);
        matches!(
            self.env.clock().deadline(LANE_SEND_TIMEOUT, sending).await,
            Some(Ok(()))
        )
    }

    /// Sends `count` parts to their core and returns where its answers will come; `None` if they
    /// could not be sent.
    pub(super) async fn forward<T>(
        &self,
        core: CoreId,
        count: usize,
        request: impl FnOnce(flume::Sender<Answers<T>>) -> LaneRequest,
    ) -> Option<flume::Receiver<Answers<T>>> {
        self.metrics.forward.sent.add(count as u64);
        let (reply, answers) = flume::bounded(1);
        self.send(core, request(reply)).await.then_some(answers)
    }

    /// Serves the requests of other cores until their lanes close. Run as a task of its own.
    pub async fn serve_lane(self, requests: flume::Receiver<LaneRequest>) {
        while let Ok(request) = requests.recv_async().await {
            match request {
                LaneRequest::Produce { parts, reply } => self.serve_produce(parts, reply).await,
                LaneRequest::Fetch {
                    parts,
                    bytes_max,
                    reply,
                } => {
                    self.metrics.forward.received.add(parts.len() as u64);
                    let router = self.clone();
                    self.env.spawn("forwarded fetch", async move {
                        let answers = router.fetch_here(&parts, bytes_max).await;
                        let owned = answers
                            .into_iter()
                            .map(|(at, part)| (at, part.into_owned()));
                        let _ = reply.send_async(owned.collect()).await;
                    });
                }
                LaneRequest::Await { parts, wait, reply } => {
                    let router = self.clone();
                    self.env.spawn("forwarded wait", async move {
                        router.wait_here(&parts, wait).await;
                        let _ = reply.send_async(()).await;
                    });
                }
                LaneRequest::Offsets { parts, reply } => {
                    self.metrics.forward.received.add(parts.len() as u64);
                    let router = self.clone();
                    self.env.spawn("forwarded offsets", async move {
                        let answers = router.offsets_here(parts).await;
                        let _ = reply.send_async(answers).await;
                    });
                }
                LaneRequest::Install { catalog, reply } => {
                    self.install(catalog);
                    let _ = reply.try_send(());
                }
                LaneRequest::Metrics { reply } => {
                    let _ = reply.try_send(self.snapshot());
                }
                LaneRequest::Topics { reply } => {
                    let router = self.clone();
                    self.env.spawn("topic figures", async move {
                        let _ = reply.try_send(router.topics_here().await);
                    });
                }
            }
        }
    }

    /// Stages forwarded batches at once, in the order they came (the lane is first in, first out);
    /// only the wait for the disk is a task of its own.
    async fn serve_produce(
        &self,
        parts: Vec<(usize, ProducePart)>,
        reply: Option<flume::Sender<ProducedElsewhere>>,
    ) {
        self.metrics.forward.received.add(parts.len() as u64);
        let mut answers = Vec::with_capacity(parts.len());
        let mut tickets: Vec<(Shard, StageSequence)> = Vec::new();
        for (at, part) in parts {
            let result = match self.locate(&part.key) {
                Ok(shard) => {
                    let _ = shard.room().await;
                    let appended = self.append_here(shard, part);
                    if let Ok(appended) = &appended {
                        tickets.push((shard.clone(), appended.ticket));
                    }
                    appended
                }
                Err(_) => Err(AppendError::UnknownPartition),
            };
            answers.push((at, result));
        }
        let Some(reply) = reply else { return };
        self.env.spawn("forwarded produce", async move {
            let mut commit = None;
            for (shard, ticket) in tickets {
                if shard.durable(ticket).await.is_err() {
                    for (_, answer) in answers.iter_mut().filter(|(_, answer)| answer.is_ok()) {
                        *answer = Err(AppendError::DiskFailed);
                    }
                    break;
                }
                commit = later(commit, shard.commit_times(ticket));
            }
            let _ = reply
                .send_async(ProducedElsewhere { answers, commit })
                .await;
        });
    }

    /// The figures of every core, in order of core; a core that does not answer is left out.
    pub async fn snapshots(&self) -> Vec<CoreSnapshot> {
        let mut snapshots = self.ask_cores(|reply| LaneRequest::Metrics { reply }).await;
        snapshots.push(self.snapshot());
        snapshots.sort_by_key(|snapshot| snapshot.core);
        snapshots
    }

    /// The figures of every topic of the catalogue.
    pub async fn topic_figures(&self) -> Topics {
        let mut cores = self.ask_cores(|reply| LaneRequest::Topics { reply }).await;
        cores.push(self.topics_here().await);
        let catalog = self.catalog();
        let topics = catalog.topics().map(|topic| {
            let mut sum = TopicFigures {
                name: topic.name.clone(),
                id: topic.id.to_string(),
                partitions: u64::from(topic.partitions.unsigned_abs()),
                ..TopicFigures::default()
            };
            for figures in cores.iter().filter_map(|core| core.get(&topic.id)) {
                sum.add(figures);
            }
            sum
        });
        Topics::busiest(topics.collect())
    }

    /// Asks every other core, and gathers what comes back in time.
    async fn ask_cores<T>(&self, request: impl Fn(flume::Sender<T>) -> LaneRequest) -> Vec<T> {
        let mut waiting = Vec::new();
        for core in (0..self.layout.cores).map(CoreId) {
            let (reply, answer) = flume::bounded(1);
            if core != self.core && self.send(core, request(reply)).await {
                waiting.push(answer);
            }
        }
        let clock = self.env.clock();
        let mut answers = Vec::with_capacity(waiting.len() + 1);
        for answer in waiting {
            let received = clock.deadline(LANE_SEND_TIMEOUT, answer.recv_async()).await;
            answers.extend(received.and_then(Result::ok));
        }
        answers
    }

    /// The figures of the topics here, one shard after the other: other work goes in between.
    async fn topics_here(&self) -> BTreeMap<TopicId, TopicFigures> {
        let mut topics = BTreeMap::new();
        for shard in self.shards() {
            shard.add_topic_figures(&mut topics);
            self.env.yield_now().await;
        }
        topics
    }

    /// This core's figures.
    fn snapshot(&self) -> CoreSnapshot {
        let count = |of: fn(&Shard) -> usize| {
            i64::try_from(self.shards().map(of).sum::<usize>()).unwrap_or(i64::MAX)
        };
        self.metrics.shard.shards.set(count(|_| 1));
        self.metrics
            .shard
            .partitions
            .set(count(Shard::partition_count));
        self.metrics
            .shard
            .quarantined
            .set(count(Shard::quarantined_count));
        self.metrics.snapshot()
    }
}
