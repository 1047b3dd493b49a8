//! The figures of a run: over the measured phase only. Warm-up is in the data and not in here. Of a
//! search, the figures are those of the step that confirmed the answer.

use super::gate::{Checked, Gate};
use super::totals::Totals;
use super::verdict::Verdict;
use crate::load::run::{Failure, Interval, Phase, Run, Step, StepVerdict};

/// The name of the step that confirms a search.
pub const CONFIRM: &str = "confirm";

/// What every output says of a run.
#[derive(Clone, Debug)]
pub struct Summary {
    /// What it is worth.
    pub verdict: Verdict,
    /// What the figures are over, in words.
    pub scope: String,
    /// The figures.
    pub totals: Totals,
    /// Time that was measured but is left out: warm-up.
    pub warm_up_ms: u64,
    /// Figures of each step.
    pub steps: Vec<StepFigures>,
    /// Failures of the whole run by name, warm-up included: where they began matters.
    pub failures: Vec<Failure>,
    /// What the run was asked to be held against.
    pub thresholds: Vec<Checked>,
    /// What checking the payloads found.
    pub verification: Option<crate::load::run::Verification>,
    /// Busiest generator worker, 0 to 1.
    pub busiest: f64,
}

/// One step's figures.
#[derive(Clone, Debug)]
pub struct StepFigures {
    /// The step.
    pub step: Step,
    /// Over its measured phase; over all of it when it has no other.
    pub totals: Totals,
}

impl Summary {
    /// Of a run.
    #[must_use]
    pub fn of(run: &Run) -> Summary {
        let confirm = run.steps.iter().rposition(|step| step.name == CONFIRM);
        let measured = |interval: &&Interval| {
            interval.phase == Phase::Measured && confirm.is_none_or(|only| interval.step == only)
        };
        let totals = Totals::over(run.intervals.iter().filter(measured));
        let warm_up = run.intervals.iter().filter(|i| i.phase == Phase::WarmUp);
        let mut summary = Summary {
            verdict: Verdict::of(run, &totals),
            scope: match confirm {
                Some(_) => "the step that confirmed the search".to_owned(),
                None => "the measured phase".to_owned(),
            },
            warm_up_ms: warm_up.map(|interval| interval.length_ms).sum(),
            steps: (0..run.steps.len())
                .map(|index| step_figures(run, index))
                .collect(),
            failures: run.failures.clone(),
            thresholds: Vec::new(),
            verification: run.verification.clone(),
            busiest: run.about.worker_busy.iter().copied().fold(0.0, f64::max),
            totals,
        };
        let gates = Gate::of_plan(&run.about);
        summary.thresholds = gates.iter().map(|gate| gate.check(&summary)).collect();
        summary
    }

    /// The step whose rate is the answer of a search: the confirmed one, or the highest that held.
    #[must_use]
    pub fn chosen(&self) -> Option<usize> {
        let held = |figures: &&StepFigures| figures.step.verdict == Some(StepVerdict::Held);
        let rate = |figures: &StepFigures| figures.step.rate_per_s.unwrap_or(0.0);
        let steps = self.steps.iter().enumerate();
        let candidates = steps.filter(|(_, figures)| held(figures));
        candidates
            .max_by(|(_, left), (_, right)| {
                let left = (rate(left), left.step.name == CONFIRM);
                let right = (rate(right), right.step.name == CONFIRM);
                left.0.total_cmp(&right.0).then(left.1.cmp(&right.1))
            })
            .map(|(index, _)| index)
    }

    /// Whether the run was a series of rates worth a table of its own.
    #[must_use]
    pub fn has_steps(&self) -> bool {
        self.steps.len() > 1
    }
}

/// Whether a run is a search whose answer was not confirmed.
#[must_use]
pub fn is_unconfirmed_search(run: &Run) -> bool {
    run.steps.iter().any(|step| step.verdict.is_some())
        && run.steps.iter().all(|step| step.name != CONFIRM)
}

fn step_figures(run: &Run, index: usize) -> StepFigures {
    let all = || run.intervals.iter().filter(move |i| i.step == index);
    let any_measured = all().any(|interval| interval.phase == Phase::Measured);
    let wanted = |interval: &&Interval| !any_measured || interval.phase == Phase::Measured;
    StepFigures {
        step: run.steps[index].clone(),
        totals: Totals::over(all().filter(wanted)),
    }
}
