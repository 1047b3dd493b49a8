//! Which shard, and how to reach it. `produce.rs` and `fetch.rs` show each path on one screen.
//!
//! Every core has a [`Router`]: its own shards, its snapshot of the catalogue, and a bounded lane
//! to each other core. On the owning core a request is a plain call; elsewhere it is one hop over a
//! lane, counted. Nothing here is shared between cores but the lanes.

pub mod control;
pub mod fetch;
pub mod layout;
pub mod mesh;
pub mod offsets;
pub mod produce;

pub use fetch::{Chunk, FetchPart, Fetched, FetchedRecords};
pub use layout::Layout;
pub use produce::{ProducePart, Staged};

use crate::base::ids::{CoreId, ShardId, TopicPartition};
use crate::env::Env;
use crate::metrics::CoreMetrics;
use crate::shard::Shard;
use crate::shard::catalog::Catalog;
use control::ControlRequest;
use mesh::LaneRequest;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// One core's view of where everything is. Cheap to clone, `!Send`.
#[derive(Clone)]
pub struct Router {
    inner: Rc<Inner>,
}

/// A core's hold on the catalogue: a count of its own around the one that all cores share, so that
/// the data path touches no shared memory to look at it.
#[derive(Clone, Default)]
pub struct CatalogView(Rc<SharedCatalog>);

#[derive(Default)]
struct SharedCatalog(Arc<Catalog>);

impl std::ops::Deref for CatalogView {
    type Target = Catalog;
    fn deref(&self) -> &Catalog {
        &self.0.0
    }
}

/// What the clones of a [`Router`] share.
pub struct Inner {
    /// This core's surroundings.
    pub env: Env,
    /// This core.
    pub core: CoreId,
    /// Where every shard lives.
    pub layout: Layout,
    /// This core's figures.
    pub metrics: Rc<CoreMetrics>,
    shards: HashMap<ShardId, Shard>,
    lanes: Vec<flume::Sender<LaneRequest>>,
    control: flume::Sender<ControlRequest>,
    catalog: RefCell<CatalogView>,
    producer_ids: Cell<(i64, i64)>,
}

impl std::ops::Deref for Router {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.inner
    }
}

/// What a core starts its router with.
pub struct RouterParts {
    /// The core's surroundings.
    pub env: Env,
    /// The core.
    pub core: CoreId,
    /// Where every shard lives.
    pub layout: Layout,
    /// The core's figures.
    pub metrics: Rc<CoreMetrics>,
    /// The shards this core owns, recovered.
    pub shards: Vec<Shard>,
    /// A lane to each core, by core number.
    pub lanes: Vec<flume::Sender<LaneRequest>>,
    /// The way to the control task on core 0.
    pub control: flume::Sender<ControlRequest>,
}

impl Router {
    /// Puts a core's router together.
    #[must_use]
    pub fn new(parts: RouterParts) -> Self {
        assert_eq!(
            parts.lanes.len(),
            usize::from(parts.layout.cores),
            "a lane to each core"
        );
        let shards: HashMap<ShardId, Shard> = parts
            .shards
            .into_iter()
            .map(|shard| (shard.id(), shard))
            .collect();
        for shard in shards.keys() {
            assert_eq!(
                parts.layout.core_of(*shard),
                parts.core,
                "a shard lives on its core"
            );
        }
        Self {
            inner: Rc::new(Inner {
                env: parts.env,
                core: parts.core,
                layout: parts.layout,
                metrics: parts.metrics,
                shards,
                lanes: parts.lanes,
                control: parts.control,
                catalog: RefCell::default(),
                producer_ids: Cell::new((0, 0)),
            }),
        }
    }

    /// This core's snapshot of the catalogue.
    #[must_use]
    pub fn catalog(&self) -> CatalogView {
        self.catalog.borrow().clone()
    }

    /// The shards this core owns.
    pub fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.shards.values()
    }

    /// Takes a newer snapshot of the catalogue and lets go of what it says is deleted.
    pub fn install(&self, catalog: Arc<Catalog>) {
        if catalog.version < self.catalog.borrow().version {
            return;
        }
        for shard in self.shards.values() {
            shard.drop_deleted(&catalog);
        }
        *self.catalog.borrow_mut() = CatalogView(Rc::new(SharedCatalog(catalog)));
    }

    /// The shard of a partition if it lives here, else the core where it does.
    fn locate(&self, key: &TopicPartition) -> Result<&Shard, CoreId> {
        let shard = key.shard(self.layout.shards);
        self.shards
            .get(&shard)
            .ok_or_else(|| self.layout.core_of(shard))
    }

    /// Whether this core's snapshot of the catalogue has the partition.
    fn knows(&self, key: &TopicPartition) -> bool {
        let catalog = self.catalog.borrow();
        let topic = catalog.by_id(key.topic);
        topic.is_some_and(|topic| (0..topic.partitions).contains(&key.partition.0))
    }

    fn lane(&self, core: CoreId) -> &flume::Sender<LaneRequest> {
        &self.lanes[usize::from(core.0)]
    }
}
