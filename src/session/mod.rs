//! One client: listener, connection, admission, dispatch, and answers in order.
//!
//! A [`Session`] is what all connections of one core share: the router, the memory pools, the
//! settings. It lives on that core. Kafka's error codes are made here, at the room's door
//! (`errors.rs`), and nowhere deeper.

pub mod admission;
pub mod connection;
mod errors;
mod handlers;
pub mod listener;
mod progress;
pub mod replies;
mod watch;

use crate::config::{Config, MemoryBudget};
use crate::env::net::Conn;
use crate::limits::{
    DRAIN_POLL, SMALL_FETCHES_PERCENT, SMALL_REQUESTS_PERCENT, WRITE_STALL_UNDER_PRESSURE,
};
use crate::metrics::CoreMetrics;
use crate::router::Router;
use crate::shard::parked::{Parked, ParkedList};
use crate::wire::{Request, RequestHeader};
use admission::MemoryPool;
use replies::{Replies, Reply};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;
use watch::{OpenConnection, Watch};

/// What the connections of one core share. Cheap to clone, `!Send`.
#[derive(Clone)]
pub struct Session {
    inner: Rc<Inner>,
}

/// See [`Session`].
pub struct Inner {
    /// The way to every shard.
    pub router: Router,
    /// The settings that matter here.
    pub settings: Settings,
    /// Memory for requests of up to 64 KiB: large ones can never starve it.
    pub small_requests: MemoryPool,
    /// Memory for larger requests.
    pub large_requests: MemoryPool,
    /// Memory for fetch answers of up to 64 KiB: readers of a backlog can never starve it.
    pub small_fetches: MemoryPool,
    /// Memory for larger fetch answers.
    pub large_fetches: MemoryPool,
    stopping: Cell<bool>,
    /// Everything that waits for something that may never come, and must not outwait a stop.
    waiting: RefCell<ParkedList>,
    open: RefCell<HashMap<u64, OpenConnection>>,
    next_connection: Cell<u64>,
    /// See [`Session::recent_ns`].
    recent_ns: Cell<u64>,
}

impl std::ops::Deref for Session {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.inner
    }
}

/// The settings of sessions, taken from the configuration once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The endpoint these connections came to.
    pub endpoint: usize,
    /// Requests of one connection being worked on at once.
    pub requests_in_flight_max: usize,
    /// How long a connection may ask nothing.
    pub idle_deadline: Duration,
    /// How long a request may take to arrive.
    pub body_deadline: Duration,
    /// Whether asking for an unknown topic makes it.
    pub auto_create_topics: bool,
    /// Partitions of a topic made without saying how many.
    pub partitions_default: i32,
    /// Largest batch of a topic that does not say.
    pub message_bytes_max: usize,
}

impl Settings {
    /// Takes the settings for one endpoint from the configuration.
    #[must_use]
    pub fn new(config: &Config, endpoint: usize) -> Self {
        Self {
            endpoint,
            requests_in_flight_max: usize::from(config.requests_in_flight_max),
            idle_deadline: Duration::from_millis(u64::from(config.idle_deadline_ms)),
            body_deadline: Duration::from_millis(u64::from(config.body_deadline_ms)),
            auto_create_topics: config.auto_create_topics,
            partitions_default: i32::try_from(config.num_partitions).unwrap_or(i32::MAX),
            message_bytes_max: usize::try_from(config.message_bytes_max).unwrap_or(usize::MAX),
        }
    }
}

impl Session {
    /// What the connections of one core share.
    #[must_use]
    pub fn new(router: Router, settings: Settings, budget: &MemoryBudget) -> Self {
        // 0 would mean "not waiting".
        let now_ns = router.env.clock().now_ns().max(1);
        let request_bytes = budget.request_bytes_per_core();
        let small_bytes = request_bytes / 100 * SMALL_REQUESTS_PERCENT;
        let fetch_bytes = budget.fetch_bytes_per_core();
        let small_fetch_bytes = fetch_bytes / 100 * SMALL_FETCHES_PERCENT;
        Self {
            inner: Rc::new(Inner {
                router,
                settings,
                small_requests: MemoryPool::new(small_bytes),
                large_requests: MemoryPool::new(request_bytes - small_bytes),
                small_fetches: MemoryPool::new(small_fetch_bytes),
                large_fetches: MemoryPool::new(fetch_bytes - small_fetch_bytes),
                stopping: Cell::new(false),
                waiting: RefCell::default(),
                open: RefCell::default(),
                next_connection: Cell::new(0),
                recent_ns: Cell::new(now_ns),
            }),
        }
    }

    /// This core's figures.
    #[must_use]
    pub fn metrics(&self) -> Rc<CoreMetrics> {
        Rc::clone(&self.router.metrics)
    }

    /// Whether the broker is stopping: requests that were read are answered, no more are read.
    #[must_use]
    pub fn stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Begins the stop: every connection's reading ends, what was read is still answered.
    pub fn stop(&self) {
        self.stopping.set(true);
        for connection in self.open.borrow().values() {
            connection.control.stop_reading();
        }
        self.waiting.borrow_mut().wake_all();
    }

    /// Waits for `future`, or until the broker begins to stop (`None`).
    async fn unless_stopping<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        if self.stopping() {
            return None;
        }
        let parked = Parked::new();
        self.waiting.borrow_mut().park(&parked);
        let stopping = async {
            parked.woken().await;
            None
        };
        futures_lite::future::or(async { Some(future.await) }, stopping).await
    }

    /// The core's clock as it was at the last tick, for what may be off by a tick's length: looking
    /// at it costs nothing.
    fn recent_ns(&self) -> u64 {
        self.recent_ns.get()
    }

    /// Closes what is still open: clients that do not take their answers must not hold a stop up.
    pub fn cut_off(&self) {
        for connection in self.open.borrow().values() {
            connection.control.shutdown();
        }
    }

    /// Waits until every connection has answered what it had read, and is closed.
    pub async fn drained(&self) {
        while !self.open.borrow().is_empty() {
            self.router.env.clock().sleep(DRAIN_POLL).await;
        }
    }

    /// Notes a connection; the number is for [`Session::leave`].
    fn enter(&self, conn: &Conn) -> (u64, Replies, Rc<Watch>) {
        let id = self.next_connection.get();
        self.next_connection.set(id + 1);
        let replies = Replies::new(self.settings.requests_in_flight_max);
        let watch = Rc::new(Watch::default());
        let connection = OpenConnection {
            control: conn.control(),
            replies: replies.clone(),
            watch: Rc::clone(&watch),
        };
        self.open.borrow_mut().insert(id, connection);
        self.metrics().connections.accepted.inc();
        self.metrics().connections.open.add(1);
        (id, replies, watch)
    }

    fn leave(&self, id: u64) {
        self.open.borrow_mut().remove(&id);
        self.metrics().connections.open.sub(1);
    }

    /// Closes the connections that ask nothing, and, while others wait for memory, those that leave
    /// unread the answers that hold it. Called now and then.
    pub fn end_the_useless(&self) {
        let scarce = self.small_fetches.is_scarce() || self.large_fetches.is_scarce();
        let now_ns = self.router.env.clock().now_ns();
        self.recent_ns.set(now_ns);
        for connection in self.open.borrow().values() {
            if connection.is_idle(now_ns, self.settings.idle_deadline) {
                connection.watch.was_idle.set(true);
                connection.control.stop_reading();
            }
            if scarce && connection.is_deaf(now_ns, WRITE_STALL_UNDER_PRESSURE) {
                self.metrics().connections.closed_slow_reader.inc();
                connection.control.shutdown();
            }
        }
    }

    /// Brings the figures that are kept elsewhere up to date.
    pub fn update_figures(&self) {
        let pools = [
            &self.small_requests,
            &self.large_requests,
            &self.small_fetches,
            &self.large_fetches,
        ];
        let admission = &self.router.metrics.admission;
        admission
            .used
            .set(pools.iter().map(|pool| pool.used_bytes()).sum());
        admission
            .waits
            .set(pools.iter().map(|pool| pool.waits()).sum());
    }

    /// Starts one request. What fixes its order (staging) is done when this returns; `None` if the
    /// connection must be closed.
    async fn start(&self, header: RequestHeader, request: Request) -> Option<Reply> {
        let reply = match request {
            Request::Produce(request) => self.produce(header, request).await,
            Request::Fetch(request) => self.fetch(header, request),
            Request::ListOffsets(request) => self.list_offsets(header, request),
            Request::Metadata(request) => self.metadata(header, request),
            Request::FindCoordinator(request) => self.find_coordinator(&header, &request),
            Request::ApiVersions(request) => self.api_versions(&header, &request),
            Request::CreateTopics(request) => self.create_topics(header, request),
            Request::DeleteTopics(request) => self.delete_topics(header, request),
            Request::InitProducerId(request) => self.init_producer_id(header, request),
            Request::DescribeConfigs(request) => self.describe_configs(&header, &request),
            Request::CreatePartitions(request) => self.create_partitions(header, request),
            Request::DescribeCluster(request) => self.describe_cluster(&header, &request),
        };
        Some(reply)
    }
}
