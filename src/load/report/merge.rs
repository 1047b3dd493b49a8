//! Several processes of one load as one run: counts and histograms add up, interval by interval, on
//! one grid of absolute time. Two halves merged are the whole.
//!
//! The grid is that of the run that began first. Another run is moved by the difference of the
//! beginnings, to the nearest interval; an interval whose middle lies in one of the same step and
//! phase is added to it, one that meets none is put in.

use crate::load::run::{Ended, Interval, Run, Step, Verification};
use std::fmt;

/// Findings of a verification that are kept as examples.
const EXAMPLES_MAX: usize = 20;

/// Why runs are not parts of one load.
#[derive(Debug, Eq, PartialEq)]
pub enum MergeError {
    /// There are none.
    Nothing,
    /// Another number of steps, or steps of other lengths.
    Steps,
    /// An interval meets one of another step or phase: begun too far apart.
    Time,
}

/// Merges runs of processes that shared a load.
///
/// # Errors
/// They did not.
pub fn merge(runs: Vec<Run>) -> Result<Run, MergeError> {
    let mut runs = runs;
    runs.sort_by_key(|run| run.began_unix_us);
    let mut runs = runs.into_iter();
    let mut whole = runs.next().ok_or(MergeError::Nothing)?;
    let mut processes = 1;
    for part in runs {
        add(&mut whole, part)?;
        processes += 1;
    }
    if processes > 1 {
        let key = "processes_merged".to_owned();
        whole.about.plan.insert(key, processes.into());
    }
    Ok(whole)
}

fn add(whole: &mut Run, part: Run) -> Result<(), MergeError> {
    let same_length = |(a, b): (&Step, &Step)| a.length_ms == b.length_ms && a.name == b.name;
    let pairs = || whole.steps.iter().zip(&part.steps);
    if whole.steps.len() != part.steps.len() || !pairs().all(same_length) {
        return Err(MergeError::Steps);
    }
    let moved_ms = moved_ms(whole, &part);
    for (mine, theirs) in whole.steps.iter_mut().zip(&part.steps) {
        mine.rate_per_s = sum(mine.rate_per_s, theirs.rate_per_s);
        mine.rate_until_per_s = sum(mine.rate_until_per_s, theirs.rate_until_per_s);
        mine.verdict = mine
            .verdict
            .filter(|verdict| Some(*verdict) == theirs.verdict);
    }
    for interval in part.intervals {
        add_interval(&mut whole.intervals, interval, moved_ms)?;
    }
    for failure in part.failures {
        failure.add_to(&mut whole.failures, moved_ms);
    }
    for mut event in part.events {
        event.at_ms += moved_ms;
        if !whole.events.contains(&event) {
            whole.events.push(event);
        }
    }
    whole.events.sort_by_key(|event| event.at_ms);
    whole.setup.connect_ms = whole.setup.connect_ms.max(part.setup.connect_ms);
    whole.setup.join_ms = whole.setup.join_ms.max(part.setup.join_ms);
    whole.setup.first_fetch_ms = whole.setup.first_fetch_ms.max(part.setup.first_fetch_ms);
    whole.about.worker_busy.extend(part.about.worker_busy);
    whole.about.floor = whole.about.floor.or(part.about.floor);
    if !whole.about.command.contains(&part.about.command) {
        whole.about.command.push_str(" & ");
        whole.about.command.push_str(&part.about.command);
    }
    add_verification(&mut whole.verification, part.verification);
    whole.ended = worse(whole.ended, part.ended);
    Ok(())
}

/// How far the part's beginning lies behind the whole's, to the nearest interval of the grid.
fn moved_ms(whole: &Run, part: &Run) -> u64 {
    let grid_ms = whole
        .intervals
        .iter()
        .map(|interval| interval.length_ms)
        .max();
    let grid_ms = grid_ms.unwrap_or(1).max(1);
    let apart_ms = (part.began_unix_us - whole.began_unix_us) / 1000;
    (apart_ms + grid_ms / 2) / grid_ms * grid_ms
}

fn add_interval(
    intervals: &mut Vec<Interval>,
    mut part: Interval,
    moved_ms: u64,
) -> Result<(), MergeError> {
    part.at_ms += moved_ms;
    let middle_ms = part.at_ms + part.length_ms / 2;
    let end_ms = |interval: &Interval| interval.at_ms + interval.length_ms;
    let index = intervals.partition_point(|known| end_ms(known) <= middle_ms);
    let next_ms = intervals.get(index).map(|known| known.at_ms);
    if next_ms.is_none_or(|next_ms| next_ms > middle_ms) {
        // Nothing is there; its edges give way to its neighbours.
        let from_ms = index
            .checked_sub(1)
            .map_or(0, |before| end_ms(&intervals[before]));
        let until_ms = next_ms.unwrap_or(u64::MAX).min(end_ms(&part));
        part.at_ms = part.at_ms.max(from_ms);
        part.length_ms = until_ms.saturating_sub(part.at_ms);
        intervals.insert(index, part);
        return Ok(());
    }
    let known = &mut intervals[index];
    if known.step != part.step || known.phase != part.phase {
        return Err(MergeError::Time);
    }
    known.counts.add(&part.counts);
    known.latencies.add(&part.latencies);
    // Both asked the same broker.
    known.broker = known.broker.or(part.broker);
    Ok(())
}

fn add_verification(whole: &mut Option<Verification>, part: Option<Verification>) {
    let Some(part) = part else { return };
    let found = whole.get_or_insert_default();
    found.proven += part.proven;
    found.lost += part.lost;
    found.duplicated += part.duplicated;
    found.reordered += part.reordered;
    found.damaged += part.damaged;
    found.foreign += part.foreign;
    found.examples.extend(part.examples);
    found.examples.truncate(EXAMPLES_MAX);
}

fn sum(mine: Option<f64>, theirs: Option<f64>) -> Option<f64> {
    Some(mine? + theirs?)
}

fn worse(mine: Ended, theirs: Ended) -> Ended {
    match (mine, theirs) {
        (Ended::BrokerLost, _) | (_, Ended::BrokerLost) => Ended::BrokerLost,
        (Ended::Interrupted, _) | (_, Ended::Interrupted) => Ended::Interrupted,
        (Ended::Completed, Ended::Completed) => Ended::Completed,
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MergeError::Nothing => "nothing to merge",
            MergeError::Steps => {
                "these runs had other steps, so they are not parts of one load: compare them with \
                 --overlay"
            }
            MergeError::Time => {
                "these runs did not begin together, so their intervals are of different steps: \
                 compare them with --overlay"
            }
        })
    }
}

impl std::error::Error for MergeError {}
