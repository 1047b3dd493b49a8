//! Makes one time line of what every worker counted.

use super::plan::timeline::Timeline;
use super::run::{About, Ended, Interval, Run, Setup};
use super::worker::{Cell, Tally};
use std::collections::BTreeMap;

/// A run in which nothing happened yet.
pub(super) fn empty_run(about: About, setup: Setup) -> Run {
    Run {
        began_unix_us: 0,
        about,
        steps: Vec::new(),
        intervals: Vec::new(),
        failures: Vec::new(),
        events: Vec::new(),
        setup,
        verification: None,
        ended: Ended::Completed,
    }
}

/// Adds what the workers counted in a stage that was over after `over_ns`.
pub(super) fn add_intervals(
    run: &mut Run,
    timeline: &Timeline,
    tallies: BTreeMap<usize, Box<Tally>>,
    over_ns: u64,
    (at_ms, first_step): (u64, usize),
) {
    let mut cells: Vec<Cell> = Vec::new();
    for tally in tallies.into_values() {
        for (index, cell) in tally.cells.into_iter().enumerate() {
            if cells.len() <= index {
                cells.resize_with(index + 1, Default::default);
            }
            if let Some(cell) = cell {
                cells[index].counts.add(&cell.counts);
                cells[index].latencies.add(&cell.latencies);
            }
        }
        for failure in tally.failures.into_values() {
            failure.add_to(&mut run.failures, at_ms);
        }
    }
    let planned = timeline.index(over_ns.saturating_sub(1)) + 1;
    cells.resize_with(planned.max(cells.len()), Default::default);
    for (index, cell) in cells.into_iter().enumerate() {
        let (begin_ns, section) = timeline.interval(index);
        let end_ns = timeline
            .end_of(index)
            .min(over_ns.max(begin_ns + 1_000_000));
        run.intervals.push(Interval {
            at_ms: at_ms + begin_ns / 1_000_000,
            length_ms: (end_ns / 1_000_000 - begin_ns / 1_000_000).max(1),
            step: first_step + section.step,
            phase: section.phase,
            counts: cell.counts,
            latencies: cell.latencies,
            broker: None,
        });
    }
}

/// The spans in which every worker that ever stalled was stalled: one that had nothing to wait for
/// says nothing.
pub(super) fn in_all(stalls: &[Vec<(u64, u64)>]) -> Vec<(u64, u64)> {
    let mut lists = stalls.iter().filter(|list| !list.is_empty());
    let Some(first) = lists.next() else {
        return Vec::new();
    };
    lists.fold(first.clone(), |left, right| {
        let overlaps = left.iter().flat_map(|(from, until)| {
            right
                .iter()
                .map(|(also_from, also_until)| (*from.max(also_from), *until.min(also_until)))
        });
        overlaps.filter(|(from, until)| from < until).collect()
    })
}
