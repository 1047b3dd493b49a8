//! What a person sees of a load while it runs: one line a second on standard error, and what
//! happens when it happens.

use crate::admin::output;
use crate::load::conduct::Glimpse;
use crate::load::run::{EventKind, latency_histogram};

/// Shows glimpses.
pub struct Watch {
    shows_progress: bool,
    is_quiet: bool,
    last: (f64, u64, u64),
}

impl Watch {
    /// Progress for a terminal; events unless all is to be quiet.
    #[must_use]
    pub fn new(shows_progress: bool, is_quiet: bool) -> Watch {
        Watch {
            shows_progress,
            is_quiet,
            last: (0.0, 0, 0),
        }
    }

    /// Shows one.
    pub fn show(&mut self, glimpse: &Glimpse<'_>) {
        match glimpse {
            Glimpse::Event(event) => {
                let weighs = matches!(
                    event.kind,
                    EventKind::BrokerLost | EventKind::BrokerBack | EventKind::Interrupted
                );
                if weighs && !self.is_quiet {
                    output::note(&format!(
                        "{:>6.1} s  {}",
                        event.at_ms as f64 / 1e3,
                        event.text
                    ));
                }
            }
            Glimpse::Progress(seconds, workers) if self.shows_progress => {
                let mut recent = latency_histogram();
                for progress in workers.values() {
                    if let Some(latencies) = &progress.recent {
                        recent.add(latencies).expect("the same bounds");
                    }
                }
                let sum = |of: fn(&crate::load::worker::Progress) -> u64| -> u64 {
                    workers.values().map(of).sum()
                };
                let (sent, acknowledged) = (sum(|one| one.sent), sum(|one| one.acknowledged));
                let passed = (seconds - self.last.0).max(1e-3);
                let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / passed;
                let lag_ns = workers.values().map(|one| one.lag_ns).max().unwrap_or(0);
                output::note(&format!(
                    "{seconds:>6.1} s  sent {:>9.0}/s  acked {:>9.0}/s  p50 {:>7} us  \
                     p99 {:>7} us  in flight {:>6}  lag {:>6} us",
                    rate(sent, self.last.1),
                    rate(acknowledged, self.last.2),
                    recent.value_at_quantile(0.5),
                    recent.value_at_quantile(0.99),
                    sum(|one| one.in_flight),
                    lag_ns / 1000,
                ));
                self.last = (*seconds, sent, acknowledged);
            }
            Glimpse::Progress(..) => {}
        }
    }
}
