//! A produce request from the first message taken into it to its answer.
//!
//! All messages of a request are meant for one interval, so it counts as a whole. Its batches stay
//! in the buffers they were built in and are handed over from there; buffers are used again.

use super::link::{Link, LinkError};
use crate::base::record_batch::{self, BatchView, BatchWriter, Codec};
use crate::load::plan::{Plan, Produce};
use crate::wire::produce::{CallBatch, ProduceCall};
use crate::wire::{codec, versions};
use bytes::Bytes;
use std::io::IoSlice;

/// Pieces handed to the kernel at once.
const SLICES_MAX: usize = 16;
/// Buffers kept to be used again.
const SPARE_MAX: usize = 64;

/// Messages of one partition.
#[derive(Debug)]
pub struct Batch {
    /// Which partition, among those of the lane.
    pub slot: usize,
    /// The record batch.
    pub bytes: Vec<u8>,
    /// When each message is meant to be sent.
    pub intended: Vec<u64>,
    /// Bytes of keys and values.
    pub payload_bytes: u64,
    /// Place of the first message among those of its producer to its partition.
    pub first: u64,
    /// The identity the batch is sealed with.
    pub identity: Option<Identity>,
}

/// Who an idempotent batch is of, and its first sequence number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Identity {
    /// Producer id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// Sequence of the first record.
    pub sequence: i32,
}

/// A batch while messages are added.
pub struct OpenBatch {
    /// Which partition, among those of the lane.
    pub slot: usize,
    /// The records so far.
    pub writer: BatchWriter,
    /// When each is meant to be sent.
    pub intended: Vec<u64>,
    /// Bytes of keys and values.
    pub payload_bytes: u64,
    /// Place of the first.
    pub first: u64,
}

/// Several batches for one broker.
#[derive(Debug)]
pub struct Request {
    /// One for each partition.
    pub batches: Vec<Batch>,
    /// The interval all messages are meant for.
    pub interval: usize,
    /// Messages in all.
    pub messages: u64,
    /// When it had to leave by its own rules (linger).
    pub ripe_at: u64,
    /// When its last byte was handed over.
    pub handed_at: u64,
    /// When its first byte was.
    pub begun_at: u64,
    /// Whether it was handed over before.
    pub sent: bool,
    /// How often it failed.
    pub attempts: u32,
    frame: Option<Frame>,
    written: usize,
}

#[derive(Debug)]
struct Frame {
    head: Bytes,
    cuts: Vec<usize>,
    bytes: usize,
}

/// Buffers that wait for their next use.
#[derive(Debug, Default)]
pub struct Spare {
    bytes: Vec<Vec<u8>>,
    times: Vec<Vec<u64>>,
}

impl Spare {
    /// An empty batch of a partition.
    pub fn open(&mut self, slot: usize, first: u64) -> OpenBatch {
        let mut intended = self.times.pop().unwrap_or_default();
        intended.clear();
        OpenBatch {
            slot,
            writer: BatchWriter::new(self.bytes.pop().unwrap_or_default()),
            intended,
            payload_bytes: 0,
            first,
        }
    }

    /// Takes a batch's buffers back.
    pub fn reclaim(&mut self, batch: Batch) {
        if self.bytes.len() < SPARE_MAX {
            self.bytes.push(batch.bytes);
            self.times.push(batch.intended);
        }
    }
}

impl OpenBatch {
    /// No further message. Compresses if asked to.
    #[must_use]
    pub fn close(self, codec: Codec) -> Batch {
        let mut bytes = self.writer.finish();
        if codec != Codec::None {
            record_batch::seal(&mut bytes);
            let view = BatchView::only(&bytes).expect("the writer makes one whole batch");
            let packed = codec::compress_batch(&view, codec);
            bytes = packed.expect("compressing to memory fails only without memory");
        }
        Batch {
            slot: self.slot,
            bytes,
            intended: self.intended,
            payload_bytes: self.payload_bytes,
            first: self.first,
            identity: None,
        }
    }
}

impl Request {
    /// A request that is ready to be handed over.
    #[must_use]
    pub fn new(batches: Vec<Batch>, interval: usize, ripe_at: u64) -> Request {
        let messages = batches
            .iter()
            .map(|batch| batch.intended.len() as u64)
            .sum();
        Request {
            batches,
            interval,
            messages,
            ripe_at,
            handed_at: 0,
            begun_at: 0,
            sent: false,
            attempts: 0,
            frame: None,
            written: 0,
        }
    }

    /// Whether its bytes are settled for the connection that stands.
    #[must_use]
    pub fn is_framed(&self) -> bool {
        self.frame.is_some()
    }

    /// Settles its bytes: the batches' checksums, with identities if they have them, and the frame
    /// around them.
    ///
    /// # Errors
    /// The broker has no usable version of Produce.
    pub fn frame(
        &mut self,
        link: &mut Link,
        plan: &Plan,
        produce: &Produce,
        partition_of: impl Fn(usize) -> u32,
        now: u64,
    ) -> Result<(), LinkError> {
        for batch in &mut self.batches {
            match batch.identity {
                Some(Identity {
                    id,
                    epoch,
                    sequence,
                }) => record_batch::set_producer(&mut batch.bytes, id, epoch, sequence),
                None => record_batch::seal(&mut batch.bytes),
            }
        }
        let places = self.batches.iter().map(|batch| {
            let partition = &plan.target.partitions[partition_of(batch.slot) as usize];
            CallBatch {
                topic: &plan.target.topics[partition.topic],
                index: partition.index,
                bytes: batch.bytes.len(),
            }
        });
        let places: Vec<CallBatch<'_>> = places.collect();
        let call = ProduceCall {
            acks: produce.acks,
            timeout_ms: i32::try_from(plan.timeout_ns / 1_000_000).unwrap_or(i32::MAX),
            batches: &places,
        };
        let version = link.version(versions::PRODUCE)?;
        let mut cuts = Vec::with_capacity(places.len());
        let head = link.conversation().ask_produce(version, &call, &mut cuts);
        let head = head.map_err(|error| LinkError::Protocol(error.to_string()))?;
        let bytes = head.len() + places.iter().map(|place| place.bytes).sum::<usize>();
        self.frame = Some(Frame { head, cuts, bytes });
        self.written = 0;
        self.begun_at = now;
        Ok(())
    }

    /// Forgets a frame that belongs to a connection that is gone.
    pub fn unframe(&mut self) {
        self.frame = None;
        self.written = 0;
    }

    /// Hands over as much as there is room for. Says whether all of it is handed over.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn hand_over(&mut self, link: &mut Link) -> Result<bool, LinkError> {
        let frame = self.frame.as_ref().expect("framed before");
        while self.written < frame.bytes {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = pieces(frame, &self.batches, self.written, &mut slices);
            match link.hand_over(&slices[..count])? {
                Some(bytes) => self.written += bytes,
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// The first pieces of what is left to be handed over; says how many.
fn pieces<'a>(
    frame: &'a Frame,
    batches: &'a [Batch],
    written: usize,
    slices: &mut [IoSlice<'a>; SLICES_MAX],
) -> usize {
    let mut count = 0;
    let mut skip = written;
    let mut add = |piece: &'a [u8]| {
        if skip >= piece.len() {
            skip -= piece.len();
        } else if count < SLICES_MAX {
            slices[count] = IoSlice::new(&piece[skip..]);
            skip = 0;
            count += 1;
        }
        count < SLICES_MAX
    };
    let mut from = 0;
    for (cut, batch) in frame.cuts.iter().zip(batches) {
        if !add(&frame.head[from..*cut]) || !add(&batch.bytes) {
            break;
        }
        from = *cut;
    }
    add(&frame.head[from..]);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the pieces are the frame, whatever was handed over before. Method: forty batches, more
    /// than fit at once, and every number of bytes handed over.
    #[test]
    fn pieces_go_on_where_they_stopped() {
        let batches: Vec<Batch> = (0..40u8)
            .map(|index| Batch {
                slot: 0,
                bytes: vec![index; usize::from(index % 7) + 1],
                intended: Vec::new(),
                payload_bytes: 0,
                first: 0,
                identity: None,
            })
            .collect();
        let head: Vec<u8> = (100..190).collect();
        let cuts: Vec<usize> = (0..40).map(|index| 10 + 2 * index).collect();
        let mut whole = Vec::new();
        let mut from = 0;
        for (cut, batch) in cuts.iter().zip(&batches) {
            whole.extend_from_slice(&head[from..*cut]);
            whole.extend_from_slice(&batch.bytes);
            from = *cut;
        }
        whole.extend_from_slice(&head[from..]);
        let frame = Frame {
            head: Bytes::from(head),
            cuts,
            bytes: whole.len(),
        };
        for start in 0..whole.len() {
            let mut written = start;
            while written < whole.len() {
                let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                let count = pieces(&frame, &batches, written, &mut slices);
                assert!(count > 0);
                for slice in &slices[..count] {
                    assert_eq!(&whole[written..written + slice.len()], &slice[..]);
                    written += slice.len();
                }
            }
        }
    }
}
