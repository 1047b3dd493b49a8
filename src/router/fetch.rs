//! The fetch path: plan at once, read, or park until a commit. No polling anywhere.
//!
//! A fetch of partitions that all live here never leaves the core. Parts of other cores are asked
//! for over their lanes, one message a core; when too little was found, each core is asked to say
//! when there is more.

use super::Router;
use super::mesh::{Answers, LaneRequest};
use crate::base::ids::{CoreId, Offset, TopicPartition};
use crate::env::SharedBuffer;
use crate::limits::{FETCH_WAIT_MAX, READS_AT_ONCE_MAX};
use crate::shard::FetchError;
use crate::shard::parked::Parked;
use crate::shard::read::ReadPlan;
use bytes::Bytes;
use futures_util::future::select;
use futures_util::stream::{self, FuturesUnordered, StreamExt};
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

/// One partition to read.
#[derive(Clone, Copy, Debug)]
pub struct FetchPart {
    /// The partition.
    pub key: TopicPartition,
    /// The first offset wanted.
    pub offset: Offset,
    /// At most so many bytes from this partition (but one batch at least, once per fetch).
    pub bytes_max: usize,
}

/// What a fetch would hold, about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Foreseen {
    /// All of it.
    pub total_bytes: usize,
    /// Its first batch, which is always sent: at most so many.
    pub first_bytes: usize,
}

/// A run of whole record batches.
#[derive(Clone)]
pub enum Chunk {
    /// A view of a block of this core.
    Shared(SharedBuffer),
    /// A copy from another core.
    Owned(Bytes),
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::ops::Deref for Chunk {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Shared(buffer) => buffer,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// What was found in one partition.
#[derive(Clone, Default)]
pub struct FetchedRecords<C = Chunk> {
    /// The first offset there is.
    pub log_start: Offset,
    /// One past the last offset that may be read.
    pub committed: Offset,
    /// The records, in order.
    pub chunks: Vec<C>,
}

/// A read of one partition that was planned and takes place now.
struct PlannedRead {
    /// Of its answer.
    index: usize,
    plan: ReadPlan,
    room: usize,
    one_at_least: bool,
}

/// Parts, each with its place in the request.
type Placed = Vec<(usize, FetchPart)>;

/// Parts that other cores own.
type Elsewhere = BTreeMap<CoreId, Placed>;

/// The answer for one partition, in a form that may cross cores.
pub type Fetched = Result<FetchedRecords<Bytes>, FetchError>;

/// The answer for one partition, on the core that asked.
pub type FetchedHere = Result<FetchedRecords<Chunk>, FetchError>;

/// Turns an answer into one that may cross cores.
pub(super) trait IntoOwned {
    /// Copies the chunks: a block buffer never leaves its core.
    fn into_owned(self) -> Fetched;
}

impl IntoOwned for FetchedHere {
    fn into_owned(self) -> Fetched {
        self.map(|found| FetchedRecords {
            log_start: found.log_start,
            committed: found.committed,
            chunks: found
                .chunks
                .iter()
                .map(|chunk| Bytes::copy_from_slice(chunk))
                .collect(),
        })
    }
}

/// Puts what was read into an answer that had only the partition's ends so far.
fn put(answer: &mut FetchedHere, read: Result<Vec<Chunk>, FetchError>) {
    match (read, answer.as_mut()) {
        (Ok(chunks), Ok(found)) => found.chunks = chunks,
        (Err(error), _) => *answer = Err(error),
        (Ok(_), Err(_)) => unreachable!("only what could be planned is read"),
    }
}

fn len_bytes(answer: &FetchedHere) -> usize {
    answer.as_ref().map_or(0, |found| {
        found.chunks.iter().map(|chunk| chunk.len()).sum()
    })
}

impl Router {
    /// Waits until `parts` have `bytes_min` bytes to read, or something to report, but at
    /// most `wait`. Nothing is held meanwhile. (With parts on other cores any byte will do.)
    /// Returns whether it had to wait.
    pub async fn wait_for(&self, parts: &[FetchPart], bytes_min: usize, wait: Duration) -> bool {
        let clock = self.env.clock();
        let wait = wait.min(FETCH_WAIT_MAX);
        if wait.is_zero() || bytes_min == 0 {
            return false;
        }
        let (here, elsewhere) = self.split(parts);
        if !elsewhere.is_empty() {
            self.wait_everywhere(parts, &elsewhere, wait).await;
            return true;
        }
        let mut deadline_ns = None;
        while let Some(parked) = self.park_if_short(&here, bytes_min) {
            let now_ns = clock.now_ns();
            let deadline_ns =
                *deadline_ns.get_or_insert_with(|| aligned_deadline_ns(now_ns, duration_ns(wait)));
            let left = Duration::from_nanos(deadline_ns.saturating_sub(now_ns));
            let fetch = &self.metrics.fetch;
            fetch.parks.inc();
            fetch.parked.add(1);
            let woken = clock.deadline(left, parked.woken()).await;
            fetch.parked.sub(1);
            if woken.is_none() {
                fetch.expired.inc();
                return true;
            }
        }
        deadline_ns.is_some()
    }

    /// What a fetch of `parts` would hold now. For parts of other cores it is the most they may
    /// give.
    #[must_use]
    pub fn foresee(&self, parts: &[FetchPart]) -> Foreseen {
        let mut foreseen = Foreseen::default();
        for part in parts {
            let (total, first) = match self.locate(&part.key) {
                Ok(shard) => {
                    let found = shard.foresee(&part.key, part.offset, part.bytes_max);
                    found.unwrap_or_default()
                }
                Err(_) => (part.bytes_max, 0),
            };
            foreseen.total_bytes = foreseen.total_bytes.saturating_add(total);
            if foreseen.first_bytes == 0 {
                foreseen.first_bytes = first;
            }
        }
        foreseen
    }

    /// Reads what `parts` have now, at most `bytes_max` bytes in all (but one batch at least). The
    /// answers are in the order of the parts.
    pub async fn fetch(&self, parts: &[FetchPart], bytes_max: usize) -> Vec<FetchedHere> {
        let (here, elsewhere) = self.split(parts);
        self.fetch_everywhere(parts, here, &elsewhere, bytes_max)
            .await
    }

    fn split(&self, parts: &[FetchPart]) -> (Placed, Elsewhere) {
        let mut here = Vec::with_capacity(parts.len());
        let mut elsewhere = Elsewhere::new();
        for (at, part) in parts.iter().enumerate() {
            match self.locate(&part.key) {
                Ok(_) => here.push((at, *part)),
                Err(core) => elsewhere.entry(core).or_default().push((at, *part)),
            }
        }
        (here, elsewhere)
    }

    /// Parks a fetch on its partitions unless they have enough, or something to report, already.
    /// Looking and parking are one step: no commit can slip between.
    fn park_if_short(
        &self,
        parts: &[(usize, FetchPart)],
        bytes_min: usize,
    ) -> Option<std::rc::Rc<Parked>> {
        let mut planned_bytes = 0;
        for (_, part) in parts {
            let shard = self
                .locate(&part.key)
                .ok()
                .filter(|_| self.knows(&part.key))?;
            let found = shard.foresee(&part.key, part.offset, part.bytes_max);
            planned_bytes += found.ok()?.0;
            if planned_bytes >= bytes_min {
                return None;
            }
        }
        let parked = Parked::new();
        for (_, part) in parts {
            if let Ok(shard) = self.locate(&part.key) {
                shard.park(part.key, &parked);
            }
        }
        Some(parked)
    }

    /// Reads what is there now, here and on the other cores.
    async fn fetch_everywhere(
        &self,
        parts: &[FetchPart],
        here: Placed,
        elsewhere: &Elsewhere,
        bytes_max: usize,
    ) -> Vec<FetchedHere> {
        let mut waiting = Vec::new();
        for (core, parts) in elsewhere {
            let request = |reply| LaneRequest::Fetch {
                parts: parts.clone(),
                bytes_max,
                reply,
            };
            waiting.extend(self.forward(*core, parts.len(), request).await);
        }
        let mut answers: Vec<FetchedHere> =
            parts.iter().map(|_| Err(FetchError::Overloaded)).collect();
        for (at, answer) in self.fetch_here(&here, bytes_max).await {
            answers[at] = answer;
        }
        for receiver in waiting {
            let received: Answers<Fetched> = receiver.recv_async().await.unwrap_or_default();
            for (at, answer) in received {
                answers[at] = answer.map(|found| FetchedRecords {
                    log_start: found.log_start,
                    committed: found.committed,
                    chunks: found.chunks.into_iter().map(Chunk::Owned).collect(),
                });
            }
        }
        if !elsewhere.is_empty() {
            keep_within(&mut answers, bytes_max);
        }
        answers
    }

    /// Reads what is there now in this core's partitions, within the limits: room is given out in
    /// order, by what is planned, and several partitions are read at once.
    pub(super) async fn fetch_here(
        &self,
        parts: &[(usize, FetchPart)],
        bytes_max: usize,
    ) -> Answers<FetchedHere> {
        let mut answers = Vec::with_capacity(parts.len());
        let mut reads = Vec::new();
        let mut planned_bytes = 0;
        for (at, part) in parts {
            let room = bytes_max.saturating_sub(planned_bytes).min(part.bytes_max);
            let plan = match self.locate(&part.key) {
                Ok(shard) if self.knows(&part.key) => shard.plan(&part.key, part.offset, room),
                _ => Err(FetchError::UnknownPartition),
            };
            let one_at_least = planned_bytes == 0;
            let answer = plan.map(|plan| {
                let nothing = FetchedRecords {
                    log_start: plan.log_start,
                    committed: plan.committed,
                    chunks: Vec::new(),
                };
                if !plan.extents.is_empty() && (room > 0 || one_at_least) {
                    planned_bytes += plan.len_bytes();
                    let index = answers.len();
                    reads.push(PlannedRead {
                        index,
                        plan,
                        room,
                        one_at_least,
                    });
                }
                nothing
            });
            answers.push((*at, answer));
        }
        // The usual tail consumer waits for one partition: no need for a set of futures.
        if let [read] = &reads[..] {
            let found = self.read_one(read).await;
            put(&mut answers[read.index].1, found);
            return answers;
        }
        let mut reads = stream::iter(reads.iter())
            .map(|read| async move { (read.index, self.read_one(read).await) })
            .buffer_unordered(READS_AT_ONCE_MAX);
        while let Some((index, found)) = reads.next().await {
            put(&mut answers[index].1, found);
        }
        answers
    }

    async fn read_one(&self, read: &PlannedRead) -> Result<Vec<Chunk>, FetchError> {
        let Ok(shard) = self.locate(&read.plan.key) else {
            unreachable!("what was planned here is read here");
        };
        let found = shard.read(&read.plan, read.room, read.one_at_least).await?;
        self.metrics.fetch.records.add(found.records);
        self.metrics.fetch.served.add(found.bytes);
        Ok(found.chunks.into_iter().map(Chunk::Shared).collect())
    }

    /// Waits until a partition of this core has something at or past its offset.
    pub(super) async fn wait_here(&self, parts: &[FetchPart], wait: Duration) {
        let parts: Vec<(usize, FetchPart)> = parts.iter().map(|part| (0, *part)).collect();
        if let Some(parked) = self.park_if_short(&parts, 1) {
            self.metrics.fetch.parks.inc();
            let _ = self.env.clock().deadline(wait, parked.woken()).await;
        }
    }

    /// Waits until any partition, here or elsewhere, has something at or past its offset.
    async fn wait_everywhere(&self, parts: &[FetchPart], elsewhere: &Elsewhere, wait: Duration) {
        let mut answers = FuturesUnordered::new();
        for (core, parts) in elsewhere {
            let (reply, answer) = flume::bounded(1);
            let parts = parts.iter().map(|(_, part)| *part).collect();
            if self
                .send(*core, LaneRequest::Await { parts, wait, reply })
                .await
            {
                answers.push(answer.into_recv_async());
            }
        }
        let here: Vec<FetchPart> = parts
            .iter()
            .filter(|part| self.locate(&part.key).is_ok())
            .copied()
            .collect();
        let local = async {
            if here.is_empty() {
                std::future::pending::<()>().await;
            }
            self.wait_here(&here, wait).await;
        };
        let local = pin!(local);
        let any = select(local, answers.next());
        let _ = self.env.clock().deadline(wait, any).await;
    }
}

fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// When a wait that begins now gives up: at most a quarter before its time, on a grid, so that the
/// waits of many consumers end together. A core that wakes for each of them alone spends most of
/// its time on waking (benches/idle, 500 consumers: 15.8 % of a core alone, 3.6 % together).
fn aligned_deadline_ns(now_ns: u64, wait_ns: u64) -> u64 {
    let deadline_ns = now_ns.saturating_add(wait_ns);
    let grid_ns = (wait_ns / 4).max(1);
    // A power of two, so that waits of about the same length share a grid.
    let grid_ns = 1 << grid_ns.ilog2();
    let aligned_ns = deadline_ns / grid_ns * grid_ns;
    assert!(
        aligned_ns > now_ns || wait_ns == 0,
        "a quarter is less than the wait"
    );
    aligned_ns
}

/// Drops what exceeds the limit of a fetch that several cores answered, from the end.
fn keep_within(answers: &mut [FetchedHere], bytes_max: usize) {
    let mut taken_bytes = 0;
    for answer in answers.iter_mut() {
        let bytes = len_bytes(answer);
        if taken_bytes > 0
            && taken_bytes + bytes > bytes_max
            && let Ok(found) = answer
        {
            found.chunks.clear();
            continue;
        }
        taken_bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a wait ends at most a quarter early and never late, and waits that begin at different
    /// times end together. Method: many begins, one length.
    #[test]
    fn waits_end_together() {
        let wait_ns = 500_000_000;
        let mut ends = std::collections::BTreeSet::new();
        for begin_ns in (1_000_000_000..1_500_000_000).step_by(1_000_003) {
            let end_ns = aligned_deadline_ns(begin_ns, wait_ns);
            assert!(end_ns <= begin_ns + wait_ns);
            assert!(end_ns > begin_ns + wait_ns - wait_ns / 4);
            ends.insert(end_ns);
        }
        assert!(ends.len() <= 9, "{} different ends", ends.len());
        assert_eq!(aligned_deadline_ns(17, 1), 18);
    }
}
