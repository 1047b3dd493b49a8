//! Checkpoints: the small state of a shard in one file, so that recovery replays only the tail.
//!
//! Written under a new name, flushed, its name flushed, then named by an entry in the journal; two
//! are kept. A checkpoint is derived: the journal decides whether it fits (its last block must be
//! there), and if none is whole, the journal alone is enough as long as it still begins at its
//! beginning.
//!
//! ```text
//! magic 8 │ version u16 │ shard u16 │ 0 u32 │ journal u64 │ number u64 │ segment length u64
//! last block: sequence u64 │ position u64 │ end u64 │ incarnation u64 │ digest u32
//! segments u32 × { number, incarnation, live bytes, end, last block } (five u64)
//! state length u64 │ state │ CRC32C u32 over everything before
//! ```

use super::commit::{Core, DurableEnd};
use super::format::{EntryKind, get_u16, get_u32, get_u64};
use super::segment::checkpoint_path;
use super::space::{Kept, SegmentRow};
use super::{JournalConfig, JournalError, StagedEntry};
use crate::base::ids::{BlockSequence, Position};
use crate::env::Disk;
use crate::limits::CHECKPOINT_BYTES_MAX;
use bytes::Bytes;
use std::future::Future;
use std::io;
use std::path::Path;
use std::rc::Rc;

const MAGIC: [u8; 8] = *b"PENSTCKP";
const VERSION: u16 = 1;
const FIXED_BYTES: usize = 80;
const ROW_BYTES: usize = 40;

/// Everything a checkpoint says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Checkpoint {
    /// Random id of the journal.
    pub journal: u64,
    /// Rises with every checkpoint.
    pub number: u64,
    /// Length of the journal's segments.
    pub segment_bytes: u64,
    /// The last block whose effect the state holds.
    pub last: DurableEnd,
    /// The segments then in use.
    pub rows: Vec<SegmentRow>,
    /// The shard's state.
    pub state: Vec<u8>,
}

impl Checkpoint {
    /// As far as space is concerned.
    pub(super) fn kept(&self) -> Kept {
        let live = self.rows.iter().filter(|row| row.live_bytes > 0);
        Kept {
            number: self.number,
            replay_from: self.last.end,
            live: live.map(|row| row.segment).collect(),
        }
    }

    fn encode(&self, shard: u16) -> Vec<u8> {
        let rows = u32::try_from(self.rows.len()).expect("segments of one journal");
        let len = FIXED_BYTES + self.rows.len() * ROW_BYTES + 8 + self.state.len() + 4;
        let mut bytes = Vec::with_capacity(len);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&shard.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        for word in [
            self.journal,
            self.number,
            self.segment_bytes,
            self.last.sequence.0,
            self.last.position.0,
            self.last.end.0,
            self.last.incarnation,
        ] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&self.last.digest.to_le_bytes());
        bytes.extend_from_slice(&rows.to_le_bytes());
        assert_eq!(bytes.len(), FIXED_BYTES);
        for row in &self.rows {
            for word in [
                row.segment,
                row.incarnation,
                row.live_bytes,
                row.end_bytes,
                row.last.0,
            ] {
                bytes.extend_from_slice(&word.to_le_bytes());
            }
        }
        bytes.extend_from_slice(&(self.state.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&self.state);
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        assert_eq!(bytes.len(), len);
        bytes
    }

    /// `None` if the bytes are not a whole checkpoint; an error if they are, but not of this
    /// journal's shard or version.
    fn decode(file: &Path, shard: u16, bytes: &[u8]) -> Result<Option<Self>, JournalError> {
        let whole = bytes.len() >= FIXED_BYTES + 12 && bytes[..8] == MAGIC;
        if !whole {
            return Ok(None);
        }
        let (body, crc) = bytes.split_at(bytes.len() - 4);
        if crc32c::crc32c(body) != get_u32(crc, 0) {
            return Ok(None);
        }
        let version = get_u16(body, 8);
        if version != VERSION {
            return Err(JournalError::Version {
                file: file.to_owned(),
                version,
                what: "a checkpoint".to_owned(),
            });
        }
        if get_u16(body, 10) != shard {
            let owner = get_u16(body, 10);
            return Err(JournalError::foreign(
                file,
                format!("it is shard {owner}'s checkpoint"),
            ));
        }
        let rows = get_u32(body, 76) as usize;
        let state_at = FIXED_BYTES + rows * ROW_BYTES + 8;
        let state_len = body.len().checked_sub(state_at);
        let stored_len = state_len.map(|_| get_u64(body, state_at - 8));
        if state_len.map(|len| len as u64) != stored_len {
            return Ok(None);
        }
        let row = |index: usize| {
            let at = FIXED_BYTES + index * ROW_BYTES;
            SegmentRow {
                segment: get_u64(body, at),
                incarnation: get_u64(body, at + 8),
                live_bytes: get_u64(body, at + 16),
                end_bytes: get_u64(body, at + 24),
                last: BlockSequence(get_u64(body, at + 32)),
            }
        };
        Ok(Some(Self {
            journal: get_u64(body, 16),
            number: get_u64(body, 24),
            segment_bytes: get_u64(body, 32),
            last: DurableEnd {
                sequence: BlockSequence(get_u64(body, 40)),
                position: Position(get_u64(body, 48)),
                end: Position(get_u64(body, 56)),
                incarnation: get_u64(body, 64),
                digest: get_u32(body, 72),
            },
            rows: (0..rows).map(row).collect(),
            state: body[state_at..].to_vec(),
        }))
    }
}

/// Reads one checkpoint file; `None` if it is damaged.
pub(super) async fn load(
    disk: &Disk,
    config: &JournalConfig,
    number: u64,
) -> Result<Option<Checkpoint>, JournalError> {
    let path = checkpoint_path(&config.dir, number);
    let Ok(bytes) = disk.read_small(&path, CHECKPOINT_BYTES_MAX).await else {
        return Ok(None);
    };
    let checkpoint = Checkpoint::decode(&path, config.shard.0, &bytes)?;
    let Some(checkpoint) = checkpoint else {
        return Ok(None);
    };
    if checkpoint.number != number {
        let other = checkpoint.number;
        return Err(JournalError::foreign(
            &path,
            format!("it is checkpoint {other:08x}, renamed"),
        ));
    }
    if checkpoint.segment_bytes != config.segment_bytes {
        return Err(JournalError::Config(format!(
            "the journal was made with segments of {} bytes, configured are {}",
            checkpoint.segment_bytes, config.segment_bytes
        )));
    }
    Ok(Some(checkpoint))
}

/// See [`super::Journal::checkpoint`]. What it holds is fixed in this call.
pub(super) fn write(
    core: Rc<Core>,
    state: Vec<u8>,
) -> impl Future<Output = Result<(), JournalError>> + 'static {
    assert!(
        !core.is_applying(),
        "a checkpoint inside apply would hold half a block"
    );
    assert!(!core.checkpointing.get(), "one checkpoint at a time");
    core.checkpointing.set(true);
    let space = core.space.borrow();
    let checkpoint = Checkpoint {
        journal: core.journal,
        number: space.next_checkpoint(),
        segment_bytes: core.config.segment_bytes,
        last: core.durable_end.get(),
        rows: space.rows(),
        state,
    };
    drop(space);
    async move {
        let written = write_file(&core, checkpoint).await;
        core.checkpointing.set(false);
        core.wake_closers();
        written
    }
}

async fn write_file(core: &Rc<Core>, checkpoint: Checkpoint) -> Result<(), JournalError> {
    let kept = checkpoint.kept();
    assert_eq!(kept.replay_from, checkpoint.last.end);
    assert!(
        checkpoint.last.sequence.0 > 0,
        "a checkpoint follows the first block"
    );
    let path = checkpoint_path(&core.config.dir, checkpoint.number);
    let bytes = checkpoint.encode(core.config.shard.0);
    if bytes.len() > CHECKPOINT_BYTES_MAX {
        let what = format!("a checkpoint of {} bytes is above the limit", bytes.len());
        return Err(JournalError::Config(what));
    }
    core.space.borrow_mut().checkpoint_tried(checkpoint.number);
    let number = checkpoint.number;
    drop(checkpoint);
    let disk = core.env.disk();
    let mut stored = disk.write_small_new(&path, bytes).await;
    if stored.is_ok() {
        stored = disk.sync_dir(&core.config.dir).await;
    }
    if let Err(error) = stored {
        return Err(failed(core, &path, error).await);
    }
    name(core, number).await?;
    core.counters.checkpoints.inc();
    let surplus = core.space.borrow_mut().keep(kept);
    for number in surplus {
        let path = checkpoint_path(&core.config.dir, number);
        disk.remove(&path).await.map_err(|error| {
            core.poison("an old checkpoint could not be removed", &error);
            JournalError::Io(error)
        })?;
    }
    super::segment::keep_house(core);
    Ok(())
}

/// A full disk only costs the checkpoint; anything else means the disk fails.
async fn failed(core: &Rc<Core>, path: &Path, error: io::Error) -> JournalError {
    if error.kind() == io::ErrorKind::StorageFull {
        // The half-written file would be found damaged and passed over; removing it frees its
        // space.
        let _ = core.env.disk().remove(path).await;
    } else {
        core.poison("a checkpoint could not be written", &error);
    }
    JournalError::Io(error)
}

/// Names the checkpoint in the journal.
async fn name(core: &Rc<Core>, number: u64) -> Result<(), JournalError> {
    let body = Bytes::copy_from_slice(&number.to_le_bytes());
    let kind = EntryKind::CheckpointMark;
    let sequence = core.stage(StagedEntry::State { kind, body });
    core.committed(sequence).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Checkpoint {
        Checkpoint {
            journal: 3,
            number: 4,
            segment_bytes: 8192,
            last: DurableEnd {
                sequence: BlockSequence(9),
                position: Position(4096),
                end: Position(8192),
                digest: 5,
                incarnation: 6,
            },
            rows: vec![SegmentRow {
                segment: 0,
                incarnation: 6,
                live_bytes: 11,
                end_bytes: 8192,
                last: BlockSequence(9),
            }],
            state: b"state".to_vec(),
        }
    }

    /// Goal: what is written is read back, and no flipped bit and no truncation passes. Method:
    /// every bit and every length of a small checkpoint.
    #[test]
    fn round_trip_and_every_bit() {
        let file = Path::new("checkpoint");
        let bytes = sample().encode(2);
        let decoded = Checkpoint::decode(file, 2, &bytes).unwrap();
        assert_eq!(decoded, Some(sample()));
        assert!(
            Checkpoint::decode(file, 3, &bytes).is_err(),
            "another shard's"
        );
        for bit in 0..bytes.len() * 8 {
            let mut rotten = bytes.clone();
            rotten[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                Checkpoint::decode(file, 2, &rotten).unwrap(),
                None,
                "bit {bit}"
            );
        }
        for len in 0..bytes.len() {
            assert_eq!(
                Checkpoint::decode(file, 2, &bytes[..len]).unwrap(),
                None,
                "len {len}"
            );
        }
    }
}
