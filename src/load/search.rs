//! The search for the highest rate that keeps a bound: doubles until a step breaks it, halves the
//! gap between the last that held and the first that broke, and has the answer confirmed by a full
//! run. Pure: says which rate is next, and is told how it went.

use super::honesty::Total;
use super::run::StepVerdict;

/// Steps are close enough when they differ by less than this factor.
const CLOSE: f64 = 1.1;
/// Most steps, and most runs to confirm the answer.
const STEPS_MAX: usize = 24;
const CONFIRMATIONS_MAX: usize = 3;
/// Answers keep up if they are this share of what was offered.
const KEPT_SHARE: f64 = 0.98;

/// A bound on the response time.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// As it was written.
    pub text: String,
    quantile: f64,
    limit_us: u64,
}

impl Bound {
    /// `p99` below a limit in microseconds; `max` is the largest value.
    ///
    /// # Errors
    /// What is no bound, in words.
    pub fn new(text: &str, name: &str, limit_us: u64) -> Result<Bound, String> {
        let percent = name
            .strip_prefix('p')
            .and_then(|rest| rest.parse::<f64>().ok());
        let quantile = match (name, percent) {
            ("max", _) => 1.0,
            (_, Some(percent)) if (0.0..=100.0).contains(&percent) => percent / 100.0,
            _ => return Err(format!("`{name}` is no percentile: p50, p99.9 and max are")),
        };
        Ok(Bound {
            text: text.to_owned(),
            quantile,
            limit_us,
        })
    }

    /// What a step says about the broker.
    #[must_use]
    pub fn judge(&self, total: &Total, busy: f64) -> StepVerdict {
        if total.counts.failed > 0 {
            return StepVerdict::Errors;
        }
        let acknowledged = total.counts.acknowledged as f64;
        let keeps_up = acknowledged >= KEPT_SHARE * total.counts.offered as f64;
        let holds = total.response_us(self.quantile) < self.limit_us;
        if keeps_up && holds && total.counts.acknowledged > 0 {
            StepVerdict::Held
        } else if total.generator_limit(busy).is_some() {
            StepVerdict::GeneratorLimited
        } else {
            StepVerdict::Broken
        }
    }
}

/// What to run next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// A step at this rate.
    Step(f64),
    /// The full run at the rate that was found.
    Confirm(f64),
    /// It is over; the rate that was confirmed, if one was.
    Done(Option<f64>),
}

/// A search.
#[derive(Clone, Debug)]
pub struct Search {
    rate: f64,
    held: Option<f64>,
    broken: Option<f64>,
    steps: usize,
    confirmations: usize,
    confirmed: Option<f64>,
    rate_max: f64,
}

impl Search {
    /// Begins at a rate; never goes above `rate_max`.
    #[must_use]
    pub fn new(rate: f64, rate_max: f64) -> Search {
        Search {
            rate,
            held: None,
            broken: None,
            steps: 0,
            confirmations: 0,
            confirmed: None,
            rate_max,
        }
    }

    /// What to run next.
    #[must_use]
    pub fn next(&self) -> Next {
        if self.confirmed.is_some() || self.confirmations >= CONFIRMATIONS_MAX {
            return Next::Done(self.confirmed);
        }
        let is_narrow = match (self.held, self.broken) {
            (Some(held), Some(broken)) => broken / held < CLOSE,
            (None, Some(broken)) => broken <= 1.0,
            (Some(held), None) => held >= self.rate_max,
            (None, None) => false,
        };
        if is_narrow || self.confirmations > 0 || self.steps >= STEPS_MAX {
            self.held.map_or(Next::Done(None), Next::Confirm)
        } else {
            Next::Step(self.rate)
        }
    }

    /// How the last step or confirmation went.
    pub fn note(&mut self, verdict: StepVerdict) {
        let is_held = verdict == StepVerdict::Held;
        match self.next() {
            Next::Step(rate) => {
                self.steps += 1;
                if is_held {
                    self.held = Some(rate);
                } else {
                    self.broken = Some(rate);
                }
                self.rate = match (self.held, self.broken) {
                    (Some(held), None) => (2.0 * held).min(self.rate_max),
                    (Some(held), Some(broken)) => (held * broken).sqrt(),
                    (None, Some(broken)) => broken / 2.0,
                    (None, None) => self.rate,
                };
            }
            Next::Confirm(rate) => {
                self.confirmations += 1;
                if is_held {
                    self.confirmed = Some(rate);
                } else {
                    // What held for a moment need not hold for long: the next lower one.
                    self.held = Some(rate / CLOSE);
                }
            }
            Next::Done(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a search against a broker that holds up to `limit`, and counts what it took.
    fn search(begin: f64, limit: f64) -> (Option<f64>, usize) {
        let mut search = Search::new(begin, 1e8);
        let mut runs = 0;
        loop {
            let rate = match search.next() {
                Next::Step(rate) | Next::Confirm(rate) => rate,
                Next::Done(found) => return (found, runs),
            };
            runs += 1;
            assert!(runs < 100, "it must end");
            search.note(if rate <= limit {
                StepVerdict::Held
            } else {
                StepVerdict::Broken
            });
        }
    }

    /// Goal: the answer lies within 10 % below the limit, from wherever it began, and is confirmed.
    /// Method: limits from far below to far above the first rate.
    #[test]
    fn the_limit_is_found() {
        for limit in [3.0, 900.0, 1000.0, 1001.0, 54_321.0, 3e6] {
            let (found, runs) = search(1000.0, limit);
            let found = found.expect("there is a rate that holds");
            assert!(found <= limit && found * 1.1 >= limit, "{limit}: {found}");
            assert!(runs <= 25, "{limit}: {runs}");
        }
    }

    /// Goal: no answer rather than a wrong one. Method: a broker that holds nothing; one that never
    /// breaks.
    #[test]
    fn the_ends_are_told() {
        assert_eq!(search(1000.0, 0.0).0, None);
        assert_eq!(search(1000.0, 1e12).0, Some(1e8));
    }

    /// Goal: a bound means what it says. Method: percentiles and nonsense.
    #[test]
    fn bounds_are_read() {
        let bound = |name| Bound::new("x", name, 10);
        let quantile = bound("p99.9").map(|bound| (bound.quantile * 1e4).round());
        assert_eq!(quantile, Ok(9990.0));
        assert_eq!(bound("max").map(|bound| bound.quantile), Ok(1.0));
        assert!(bound("p101").is_err() && bound("mean").is_err());
    }
}
