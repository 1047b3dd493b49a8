//! The store's mark: whose data directory this is, and how many shards it has. Two copies, each
//! with checksum and sequence; the newest whole one counts, and none whole is a refusal, never a
//! new store.
//!
//! A store is first marked *creating*, then its shards' journals are made, then it is marked
//! *ready*. No listener opens before that, so nothing was acknowledged by a store that is still
//! creating, and a crash in between is simply gone through again.
//!
//! ```text
//! magic 8 │ version u16 │ shards u16 │ state u8, 3 zero │ id 16 │ sequence u64
//! segment length u64
//! CRC32C u32 over everything before          (little-endian; 52 bytes)
//! ```

use super::error::JournalError;
use super::format::{get_u16, get_u32, get_u64};
use super::segment::FileName;
use crate::base::ids::{Position, ShardId, TopicId};
use crate::env::Env;
use std::io;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"PENSTORE";
const VERSION: u16 = 1;
const MARK_BYTES: usize = 52;
const NAMES: [&str; 2] = ["store.0", "store.1"];

/// The two marks of the store in `dir`, whether or not they are there.
#[must_use]
pub fn marks(dir: &Path) -> [PathBuf; 2] {
    NAMES.map(|name| dir.join(name))
}

/// What a store's mark says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StoreMark {
    /// The store's random id.
    pub id: [u8; 16],
    /// Number of shards, for ever.
    pub shards: u16,
    /// Length of every journal segment, for ever, in bytes.
    pub segment_bytes: u64,
    /// Whether all shards' journals have been made.
    pub ready: bool,
    sequence: u64,
}

impl StoreMark {
    /// The mark of a store to be made: see [`open_or_create`].
    ///
    /// # Panics
    /// If there are no shards.
    #[must_use]
    pub fn new(shards: u16, segment_bytes: u64) -> Self {
        assert!(shards > 0, "a store has at least one shard");
        Self {
            id: [0; 16],
            shards,
            segment_bytes,
            ready: false,
            sequence: 0,
        }
    }

    /// The id as a UUID.
    #[must_use]
    pub fn id_text(&self) -> String {
        TopicId(self.id).to_string()
    }
}

/// Folder of a shard.
#[must_use]
pub fn shard_dir(dir: &Path, shard: ShardId) -> PathBuf {
    dir.join(format!("shard-{:03}", shard.0))
}

/// Reads the mark of the store in `dir`, or makes a store like `new` (`None`: `--no-create`).
///
/// The second value says whether the store is *new*: made by this call, or by one whose process
/// ended before [`mark_ready`]. Of a new store the journals are opened with `create`, and when all
/// are open, and before any listener is, [`mark_ready`] must be called.
///
/// # Errors
/// If there is no store and none may be made, if both copies are damaged, or if journals are there
/// without a mark: nothing is changed then.
pub async fn open_or_create(
    env: &Env,
    dir: &Path,
    new: Option<StoreMark>,
) -> Result<(StoreMark, bool), JournalError> {
    let mut whole: Vec<(usize, StoreMark)> = Vec::new();
    let mut damaged = 0;
    for (index, name) in NAMES.iter().enumerate() {
        match read(env, &dir.join(name)).await? {
            Copy::Absent => {}
            Copy::Damaged => damaged += 1,
            Copy::Whole(mark) => whole.push((index, mark)),
        }
    }
    let newest = whole
        .iter()
        .map(|(_, mark)| *mark)
        .max_by_key(|mark| mark.sequence);
    if let Some(newest) = newest {
        check_same(dir, &whole)?;
        // The other copy is brought up to date, so that one more rot is survived.
        for (index, name) in NAMES.iter().enumerate() {
            if !whole.contains(&(index, newest)) {
                write(env, dir, name, &newest).await?;
            }
        }
        return Ok((newest, !newest.ready));
    }
    if damaged > 0 {
        let what = "no copy of the store's mark is whole";
        return Err(JournalError::corrupt(
            &dir.join(NAMES[0]),
            Position(0),
            what,
        ));
    }
    let Some(new) = new else {
        let what = "there is no store in this directory, and none may be made (--no-create)";
        return Err(JournalError::missing(&dir.join(NAMES[0]), what));
    };
    refuse_orphans(env, dir).await?;
    let mark = StoreMark {
        id: random_id(env),
        sequence: 1,
        ..new
    };
    assert!(!mark.ready, "a store becomes ready by mark_ready");
    env.disk().create_dir_all(dir).await?;
    sync_ancestors(env, dir).await?;
    for name in NAMES {
        write(env, dir, name, &mark).await?;
    }
    Ok((mark, true))
}

/// Reads the mark without changing anything; for offline tools.
///
/// # Errors
/// If no copy is whole.
pub async fn inspect(env: &Env, dir: &Path) -> Result<StoreMark, JournalError> {
    let mut newest: Option<StoreMark> = None;
    for name in NAMES {
        if let Copy::Whole(mark) = read(env, &dir.join(name)).await? {
            let newer = newest.is_none_or(|newest| newest.sequence < mark.sequence);
            newest = if newer { Some(mark) } else { newest };
        }
    }
    newest.ok_or_else(|| {
        let what = "no copy of the store's mark is there and whole";
        JournalError::missing(&dir.join(NAMES[0]), what)
    })
}

/// All journals of the store have been made and are durable: from here on a missing one is refused.
/// Does nothing if that was so already.
///
/// # Errors
/// If no copy is whole, or one cannot be written.
pub async fn mark_ready(env: &Env, dir: &Path) -> Result<StoreMark, JournalError> {
    let mark = inspect(env, dir).await?;
    if mark.ready {
        return Ok(mark);
    }
    let ready = StoreMark {
        ready: true,
        sequence: mark.sequence + 1,
        ..mark
    };
    for name in NAMES {
        write(env, dir, name, &ready).await?;
    }
    Ok(ready)
}

enum Copy {
    Absent,
    Damaged,
    Whole(StoreMark),
}

async fn read(env: &Env, path: &Path) -> Result<Copy, JournalError> {
    match env.disk().read_small(path, MARK_BYTES * 2).await {
        Ok(bytes) => decode(path, &bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Copy::Absent),
        // "Cannot read" is not "absent".
        Err(_) => Ok(Copy::Damaged),
    }
}

fn encode(mark: &StoreMark) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MARK_BYTES);
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&mark.shards.to_le_bytes());
    bytes.extend_from_slice(&[u8::from(mark.ready), 0, 0, 0]);
    bytes.extend_from_slice(&mark.id);
    bytes.extend_from_slice(&mark.sequence.to_le_bytes());
    bytes.extend_from_slice(&mark.segment_bytes.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    assert_eq!(bytes.len(), MARK_BYTES);
    bytes
}

fn decode(path: &Path, bytes: &[u8]) -> Result<Copy, JournalError> {
    let len = bytes.len();
    if len < MARK_BYTES || bytes[..8] != MAGIC {
        return Ok(Copy::Damaged);
    }
    if crc32c::crc32c(&bytes[..len - 4]) != get_u32(bytes, len - 4) {
        return Ok(Copy::Damaged);
    }
    let version = get_u16(bytes, 8);
    if version != VERSION || len != MARK_BYTES {
        return Err(JournalError::Version {
            file: path.to_owned(),
            version,
            what: "a store's mark".to_owned(),
        });
    }
    let mut id = [0u8; 16];
    id.copy_from_slice(&bytes[16..32]);
    Ok(Copy::Whole(StoreMark {
        id,
        shards: get_u16(bytes, 10),
        segment_bytes: get_u64(bytes, 40),
        ready: bytes[12] == 1,
        sequence: get_u64(bytes, 32),
    }))
}

/// Two whole copies must be of one store.
fn check_same(dir: &Path, whole: &[(usize, StoreMark)]) -> Result<(), JournalError> {
    let Some((_, first)) = whole.first() else {
        return Ok(());
    };
    let same = whole.iter().all(|(_, mark)| {
        mark.id == first.id
            && mark.shards == first.shards
            && mark.segment_bytes == first.segment_bytes
    });
    if same {
        return Ok(());
    }
    let what = "the two copies of the mark belong to different stores";
    Err(JournalError::foreign(&dir.join(NAMES[1]), what))
}

/// Writes one copy beside the old one and puts it in its place.
async fn write(env: &Env, dir: &Path, name: &str, mark: &StoreMark) -> Result<(), JournalError> {
    let disk = env.disk();
    let nonce = env.random_u64();
    let aside = dir.join(format!("{name}.{nonce:016x}.tmp"));
    disk.write_small_new(&aside, encode(mark)).await?;
    disk.rename(&aside, &dir.join(name)).await?;
    disk.sync_dir(dir).await?;
    Ok(())
}

/// Journals without a mark: the mark was lost, and a new store over them would hide them.
async fn refuse_orphans(env: &Env, dir: &Path) -> Result<(), JournalError> {
    let shard = shard_dir(dir, ShardId(0));
    let Ok(entries) = env.disk().list(&shard).await else {
        return Ok(());
    };
    let journal = entries
        .iter()
        .find(|entry| matches!(FileName::parse(&entry.name), FileName::Segment(_)));
    match journal {
        None => Ok(()),
        Some(entry) => Err(JournalError::missing(
            &dir.join(NAMES[0]),
            format!(
                "{} holds {}, but the store's mark is gone",
                shard.display(),
                entry.name
            ),
        )),
    }
}

/// Makes the names that lead to a new folder durable, each in its parent.
pub(super) async fn sync_ancestors(env: &Env, dir: &Path) -> Result<(), JournalError> {
    for ancestor in dir
        .ancestors()
        .skip(1)
        .filter(|path| !path.as_os_str().is_empty())
    {
        match env.disk().sync_dir(ancestor).await {
            Ok(()) => {}
            // A folder that we may not even open is none of those we made.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A random UUID (version 4).
fn random_id(env: &Env) -> [u8; 16] {
    let mut id = [0u8; 16];
    id[..8].copy_from_slice(&env.random_u64().to_le_bytes());
    id[8..].copy_from_slice(&env.random_u64().to_le_bytes());
    id[6] = (id[6] & 0x0f) | 0x40;
    id[8] = (id[8] & 0x3f) | 0x80;
    id
}
