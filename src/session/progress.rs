//! Where the time of a request goes.
//!
//! Each step notes when it ended; the stages are the differences of neighbours, so that the stages
//! of a request add up to the whole of it, exactly. They are counted once, when its answer has been
//! handed to the socket. A produce costs three looks at the clock, a fetch four or five: a step
//! that waited for nothing ends when the one before it did.

use crate::journal::CommitTimes;
use crate::metrics::CoreMetrics;

/// How a request came in, in ns of the core's clock.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its length was read.
    pub announced_ns: u64,
    /// Memory for it was taken.
    pub admitted_ns: u64,
    /// Its last byte was there.
    pub received_ns: u64,
}

/// What became of it until its answer was made.
#[derive(Clone, Copy, Debug, Default)]
pub enum Progress {
    /// Nothing that is told apart.
    #[default]
    Other,
    /// A produce.
    Produce {
        /// All of it was staged, or refused.
        staged_ns: u64,
        /// Its last part to become durable; unknown for one that was there already, or refused.
        commit: Option<CommitTimes>,
    },
    /// A fetch.
    Fetch {
        /// It had waited for records; `None` if it did not.
        waited_ns: Option<u64>,
        /// It was known what to read, and there was memory for it.
        planned_ns: u64,
        /// The records were read.
        read_ns: u64,
    },
}

impl Progress {
    /// Counts the stages of a request whose answer was handed to the socket at `sent_ns`.
    pub fn count(&self, arrival: &Arrival, sent_ns: u64, metrics: &CoreMetrics) {
        let whole_ns = sent_ns.saturating_sub(arrival.announced_ns);
        match *self {
            Progress::Other => metrics.requests.other.record(whole_ns),
            Progress::Produce { staged_ns, commit } => {
                metrics.requests.produce.record(whole_ns);
                count_produce(arrival, staged_ns, commit, sent_ns, metrics);
            }
            Progress::Fetch {
                waited_ns,
                planned_ns,
                read_ns,
            } => {
                metrics.requests.fetch.record(whole_ns);
                let stages = &metrics.fetch_stages;
                let mut steps = Steps(arrival.announced_ns);
                stages.receive.record(steps.until(arrival.received_ns));
                stages
                    .wait
                    .record(steps.until(waited_ns.unwrap_or(arrival.received_ns)));
                stages.plan.record(steps.until(planned_ns));
                stages.read.record(steps.until(read_ns));
                stages.reply.record(steps.until(sent_ns));
            }
        }
    }
}

fn count_produce(
    arrival: &Arrival,
    staged_ns: u64,
    commit: Option<CommitTimes>,
    sent_ns: u64,
    metrics: &CoreMetrics,
) {
    let stages = &metrics.stages;
    // Without a block of its own it waited for none.
    let commit = commit.unwrap_or(CommitTimes {
        began_ns: staged_ns,
        written_ns: staged_ns,
        flushed_ns: staged_ns,
        released_ns: staged_ns,
    });
    let mut steps = Steps(arrival.announced_ns);
    stages.admission.record(steps.until(arrival.admitted_ns));
    stages.read.record(steps.until(arrival.received_ns));
    stages.append.record(steps.until(staged_ns));
    stages.staged.record(steps.until(commit.began_ns));
    stages.write.record(steps.until(commit.written_ns));
    stages.flush.record(steps.until(commit.flushed_ns));
    stages.order.record(steps.until(commit.released_ns));
    stages.reply.record(steps.until(sent_ns));
}

/// The end of the last step.
struct Steps(u64);

impl Steps {
    /// How long a step took that ended at `end_ns`. One that ended before the last (a block may
    /// begin while a later part of the request waits for room) took nothing: time is told once.
    fn until(&mut self, end_ns: u64) -> u64 {
        let end_ns = end_ns.max(self.0);
        let took_ns = end_ns - self.0;
        self.0 = end_ns;
        took_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::CoreId;
    use crate::metrics::Reading;

    /// Goal: the stages of every sort of request add up to the whole, whatever order its times are
    /// in. Method: a produce with a block, one without, one whose block began before it was staged,
    /// and two fetches; compare sums.
    #[test]
    fn stages_add_up_to_the_whole() {
        let metrics = CoreMetrics::new(CoreId(0), 0);
        let arrival = Arrival {
            announced_ns: 1_000,
            admitted_ns: 1_500,
            received_ns: 4_000,
        };
        let commit = CommitTimes {
            began_ns: 9_000,
            written_ns: 50_000,
            flushed_ns: 70_000,
            released_ns: 71_000,
        };
        for (staged_ns, commit) in [(5_000, Some(commit)), (5_000, None), (60_000, Some(commit))] {
            let progress = Progress::Produce { staged_ns, commit };
            progress.count(&arrival, 80_000, &metrics);
        }
        for waited_ns in [None, Some(40_000)] {
            let progress = Progress::Fetch {
                waited_ns,
                planned_ns: 41_000,
                read_ns: 45_000,
            };
            progress.count(&arrival, 46_000, &metrics);
        }
        let snapshot = metrics.snapshot();
        let sum = |group: &str, names: &[&str]| -> u64 {
            let one = |name: &&str| match snapshot.reading(group, name) {
                Some(Reading::Histogram(found)) => found.sum,
                other => panic!("{group}.{name}: {other:?}"),
            };
            names.iter().map(one).sum()
        };
        let produce = [
            "admission",
            "read",
            "append",
            "staged",
            "write",
            "flush",
            "order",
            "reply",
        ];
        assert_eq!(sum("stages", &produce), 3 * 79_000);
        assert_eq!(sum("requests", &["produce"]), 3 * 79_000);
        assert_eq!(sum("stages", &["staged"]), 4_000);
        let fetch = ["receive", "wait", "plan", "read", "reply"];
        assert_eq!(sum("fetch_stages", &fetch), 2 * 45_000);
        assert_eq!(sum("requests", &["fetch"]), 2 * 45_000);
    }
}
