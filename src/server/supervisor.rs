//! What the supervisor hears: that recovery goes on, that everything is served, that every core is
//! alive, that the stop has begun.
//!
//! *"Alive" is said only while every executor's heart beats.* A core that stands still for good
//! (an endless loop, a lost wake-up that no signal mends) makes this process fall silent, and the
//! supervisor starts it anew, which is as safe as any crash. A slow disk does not: executors wait
//! for it without standing still.

use crate::env::process::{self, StopSignal, Supervisor, SupervisorSettings};
use crate::env::real::watchdog;
use crate::limits::{START_EXTENSION, START_REPORT_INTERVAL};
use std::time::Duration;

/// The conversation with the supervisor, from the main thread.
pub struct Reporter {
    supervisor: Supervisor,
    vigil: Vigil,
    reported_ns: Option<u64>,
}

impl Reporter {
    /// Opens the way to the supervisor, if there is one.
    pub fn new() -> Reporter {
        let settings = SupervisorSettings::of_this_process();
        let supervisor = Supervisor::new(&settings).unwrap_or_else(|error| {
            tracing::warn!(%error, "the supervisor will not hear from this process");
            Supervisor::default()
        });
        Reporter {
            supervisor,
            vigil: Vigil::default(),
            reported_ns: None,
        }
    }

    /// Says, now and then, that recovery goes on and may take longer; not if a core stands still.
    /// So many cores have opened their shards.
    pub fn recovering(&mut self, opened: usize, cores: usize) {
        let now_ns = process::monotonic_ns();
        let is_due = self
            .reported_ns
            .is_none_or(|then| now_ns - then >= nanoseconds(START_REPORT_INTERVAL));
        if !is_due || !self.supervisor.is_there() {
            return;
        }
        self.reported_ns = Some(now_ns);
        let still_max_ns = nanoseconds(START_EXTENSION);
        if self
            .vigil
            .is_alive(&watchdog::beats(), now_ns, still_max_ns)
        {
            let status = format!("recovering: {opened} of {cores} cores have opened their shards");
            self.supervisor.extend(START_EXTENSION, &status);
        }
    }

    /// Says that everything is served, at these addresses.
    pub fn serving(&self, kafka: &[String]) {
        self.supervisor
            .ready(&format!("serving on {}", kafka.join(" ")));
    }

    /// Says that this process is alive, until it is to stop; then says that.
    pub fn watch_until_stopped(&mut self, stopped: &flume::Receiver<StopSignal>) -> StopSignal {
        let signal = match self.supervisor.watchdog() {
            None => stopped.recv().ok(),
            Some(patience) => self.ping_until_stopped(stopped, patience),
        };
        self.supervisor.stopping();
        signal.unwrap_or(StopSignal::Terminate)
    }

    fn ping_until_stopped(
        &mut self,
        stopped: &flume::Receiver<StopSignal>,
        patience: Duration,
    ) -> Option<StopSignal> {
        // A message in time even if one is late; a core may be still for half the patience.
        let (interval, still_max) = (patience / 3, patience / 2);
        loop {
            let now_ns = process::monotonic_ns();
            let beats = watchdog::beats();
            if self.vigil.is_alive(&beats, now_ns, nanoseconds(still_max)) {
                self.supervisor.alive();
            } else {
                tracing::error!(
                    "a core stands still; the supervisor is told no more that this broker is alive"
                );
            }
            match stopped.recv_timeout(interval) {
                Ok(signal) => return Some(signal),
                Err(flume::RecvTimeoutError::Timeout) => {}
                Err(flume::RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// When each heart was last seen to beat.
#[derive(Default)]
struct Vigil {
    seen: Vec<Seen>,
}

struct Seen {
    beats: u64,
    at_ns: u64,
}

impl Vigil {
    /// Whether every heart has beaten within `still_max_ns`, as far as these looks can tell. Cores
    /// that are new count as just seen.
    fn is_alive(&mut self, beats: &[u64], now_ns: u64, still_max_ns: u64) -> bool {
        if beats.len() != self.seen.len() {
            let fresh = |beats: &u64| Seen {
                beats: *beats,
                at_ns: now_ns,
            };
            self.seen = beats.iter().map(fresh).collect();
            return true;
        }
        for (seen, beats) in self.seen.iter_mut().zip(beats) {
            if seen.beats != *beats {
                *seen = Seen {
                    beats: *beats,
                    at_ns: now_ns,
                };
            }
        }
        let stillest = self.seen.iter().map(|seen| seen.at_ns).min();
        stillest.is_none_or(|at_ns| now_ns.saturating_sub(at_ns) <= still_max_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: one heart that stops among others is noticed, after the patience and not before, and
    /// forgiven when it beats again. Method: beats by hand.
    #[test]
    fn one_still_heart_is_noticed() {
        let mut vigil = Vigil::default();
        assert!(vigil.is_alive(&[1, 1], 0, 10));
        assert!(vigil.is_alive(&[2, 2], 10, 10));
        assert!(vigil.is_alive(&[3, 2], 20, 10), "not yet");
        assert!(!vigil.is_alive(&[4, 2], 21, 10));
        assert!(vigil.is_alive(&[5, 3], 22, 10), "it beats again");
        assert!(vigil.is_alive(&[6, 4, 1], 500, 10), "a new core is fresh");
        assert!(vigil.is_alive(&[], 600, 10), "no core, nothing still");
    }
}
