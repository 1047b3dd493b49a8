//! The reporting side: values copied from one core's cells, which may travel to another core, be
//! merged, compared and rendered.

use super::cell::{Unit, empty_hdr};
use super::table::{Kind, METRICS};
use hdrhistogram::Histogram as Hdr;
use std::collections::BTreeMap;

/// One metric's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// Only grows.
    Counter(u64),
    /// Rises and falls.
    Gauge(i64),
    /// A distribution.
    Histogram(Box<HistogramSnapshot>),
    /// Members that are not zero.
    Family(BTreeMap<usize, u64>),
}

/// A distribution as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramSnapshot {
    /// The counts, all histograms of a unit with the same bounds.
    pub counts: Hdr<u64>,
    /// The exact sum of the values.
    pub sum: u64,
}

impl HistogramSnapshot {
    /// No values.
    #[must_use]
    pub fn empty(unit: Unit) -> HistogramSnapshot {
        HistogramSnapshot {
            counts: empty_hdr(unit),
            sum: 0,
        }
    }
}

impl Reading {
    /// Zero of a kind.
    pub(super) fn zero(kind: Kind, unit: Unit) -> Reading {
        match kind {
            Kind::Counter => Reading::Counter(0),
            Kind::Gauge => Reading::Gauge(0),
            Kind::Histogram => Reading::Histogram(Box::new(HistogramSnapshot::empty(unit))),
            Kind::ByApi | Kind::ByError => Reading::Family(BTreeMap::new()),
        }
    }

    /// Adds another reading of the same metric.
    fn merge(&mut self, other: &Reading) {
        match (self, other) {
            (Reading::Counter(mine), Reading::Counter(theirs)) => {
                *mine = mine.wrapping_add(*theirs)
            }
            (Reading::Gauge(mine), Reading::Gauge(theirs)) => *mine += theirs,
            (Reading::Histogram(mine), Reading::Histogram(theirs)) => {
                mine.counts
                    .add(&theirs.counts)
                    .expect("histograms of a unit share their bounds");
                mine.sum = mine.sum.wrapping_add(theirs.sum);
            }
            (Reading::Family(mine), Reading::Family(theirs)) => {
                for (index, count) in theirs {
                    *mine.entry(*index).or_default() += count;
                }
            }
            _ => panic!("readings of one metric are of one kind"),
        }
    }

    /// What happened since `earlier`. Where a counter went back (a restart) it is what is there
    /// now.
    fn since(&self, earlier: &Reading) -> Reading {
        match (self, earlier) {
            (Reading::Counter(now), Reading::Counter(then)) => {
                Reading::Counter(now.checked_sub(*then).unwrap_or(*now))
            }
            (Reading::Histogram(now), Reading::Histogram(then)) => {
                let mut counts = now.counts.clone();
                let sum = now.sum.checked_sub(then.sum);
                match (counts.subtract(&then.counts), sum) {
                    (Ok(()), Some(sum)) => {
                        Reading::Histogram(Box::new(HistogramSnapshot { counts, sum }))
                    }
                    _ => self.clone(),
                }
            }
            (Reading::Family(now), Reading::Family(then)) => {
                let since = now.iter().map(|(index, count)| {
                    let before = then.get(index).copied().unwrap_or(0);
                    (*index, count.checked_sub(before).unwrap_or(*count))
                });
                Reading::Family(since.filter(|(_, count)| *count > 0).collect())
            }
            _ => self.clone(),
        }
    }
}

/// The metrics of one core at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreSnapshot {
    /// The core, from 0.
    pub core: u16,
    /// The CPU it is pinned to.
    pub cpu: u32,
    /// One reading for each row of `METRICS`, in its order.
    pub readings: Vec<Reading>,
}

impl CoreSnapshot {
    /// All zero.
    #[must_use]
    pub fn zero(core: u16, cpu: u32) -> CoreSnapshot {
        let readings = METRICS
            .iter()
            .map(|metric| Reading::zero(metric.kind, metric.unit));
        CoreSnapshot {
            core,
            cpu,
            readings: readings.collect(),
        }
    }

    /// Adds another core's readings.
    pub fn merge(&mut self, other: &CoreSnapshot) {
        assert_eq!(
            self.readings.len(),
            other.readings.len(),
            "one table made both"
        );
        for (mine, theirs) in self.readings.iter_mut().zip(&other.readings) {
            mine.merge(theirs);
        }
    }

    /// What happened on this core since `earlier`; gauges are as they are now.
    #[must_use]
    pub fn since(&self, earlier: &CoreSnapshot) -> CoreSnapshot {
        assert_eq!(
            self.readings.len(),
            earlier.readings.len(),
            "one table made both"
        );
        let readings = self.readings.iter().zip(&earlier.readings);
        let readings = readings.map(|(now, then)| now.since(then)).collect();
        CoreSnapshot {
            core: self.core,
            cpu: self.cpu,
            readings,
        }
    }

    /// The reading of a metric, by group and name.
    #[must_use]
    pub fn reading(&self, group: &str, name: &str) -> Option<&Reading> {
        let index = METRICS
            .iter()
            .position(|m| m.group == group && m.name == name)?;
        self.readings.get(index)
    }
}
