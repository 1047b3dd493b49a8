//! What is counted. Each core records into plain cells of its own (`CoreMetrics`), without atomics;
//! on request it copies them into a `CoreSnapshot`, which may travel; a `Dump` of all cores is
//! rendered as JSON (`penstock dump`, `/dump`) or as Prometheus text (`/metrics`).
//!
//! Recording never allocates. Every metric is declared once, in `table`.

mod cell;
mod json;
mod labels;
mod prometheus;
mod snapshot;
mod table;
#[cfg(test)]
mod tests;
mod topics;

pub use cell::{Counter, Family, Gauge, Histogram, Unit};
pub use json::{Dump, SCHEMA};
pub use prometheus::CONTENT_TYPE;
pub use snapshot::{CoreSnapshot, HistogramSnapshot, Reading};
pub use table::{
    AdmissionMetrics, ConnectionMetrics, FetchMetrics, FetchStageMetrics, ForwardMetrics, Groups,
    JournalMetrics, Kind, METRICS, Metric, Page, ProduceMetrics, RequestMetrics, RuntimeMetrics,
    ShardMetrics, StageMetrics,
};
pub use topics::{TopicFigures, Topics};

use crate::base::ids::CoreId;
use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

/// The metrics of one core. Lives on that core; the groups are shared (`Rc`) with what records.
pub struct CoreMetrics {
    core: CoreId,
    cpu: u32,
    groups: Groups,
    journals: RefCell<Vec<Rc<JournalMetrics>>>,
}

impl CoreMetrics {
    /// All zero, for core `core` pinned to CPU `cpu`.
    #[must_use]
    pub fn new(core: CoreId, cpu: u32) -> Rc<CoreMetrics> {
        let (groups, journals) = (Groups::new(), RefCell::new(Vec::new()));
        Rc::new(CoreMetrics {
            core,
            cpu,
            groups,
            journals,
        })
    }

    /// Adds the metrics of a journal that keeps its own; they count into the group `journal`.
    pub fn attach_journal(&self, journal: Rc<JournalMetrics>) {
        if !Rc::ptr_eq(&journal, &self.groups.journal) {
            self.journals.borrow_mut().push(journal);
        }
    }

    /// Copies every value.
    #[must_use]
    pub fn snapshot(&self) -> CoreSnapshot {
        let mut snapshot = CoreSnapshot {
            core: self.core.0,
            cpu: self.cpu,
            readings: self.groups.read(),
        };
        for journal in self.journals.borrow().iter() {
            let mut theirs = CoreSnapshot::zero(self.core.0, self.cpu);
            let first = METRICS.iter().position(|metric| metric.group == "journal");
            let first = first.expect("the table declares the group");
            for (index, reading) in journal.read().into_iter().enumerate() {
                theirs.readings[first + index] = reading;
            }
            snapshot.merge(&theirs);
        }
        snapshot
    }
}

impl Deref for CoreMetrics {
    type Target = Groups;
    fn deref(&self) -> &Groups {
        &self.groups
    }
}
