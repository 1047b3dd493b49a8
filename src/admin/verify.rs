//! `penstock verify`: reads every block of a data directory that no broker uses, and names what is
//! damaged. Nothing is changed. A torn tail, which every crash leaves, is not damage.

use super::cli::VerifyArgs;
use super::error::AdminError;
use super::output::{self, Output};
use crate::base::ids::ShardId;
use crate::env::blocking::read_file;
use crate::env::process::{self, DataLock, LockError};
use crate::env::real::{executor, preflight};
use crate::journal::store::{self, StoreMark};
use crate::journal::{Damage, DamageKind, JournalError, VerifyReport, verify};
use crate::limits;
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};

/// A person who waits longer than this is told how far it is, in nanoseconds.
const PATIENCE_NS: u64 = 2_000_000_000;

/// What was found in the whole directory.
struct Findings {
    mark: StoreMark,
    shards: Vec<VerifyReport>,
}

impl Findings {
    fn is_clean(&self) -> bool {
        self.shards.iter().all(VerifyReport::is_clean)
    }
}

/// Runs the verb.
///
/// # Errors
/// `Damaged`, after the report; the directory is in use, is no store, or cannot be read; the host
/// lacks `io_uring`.
pub fn run(args: &VerifyArgs, out: &mut Output) -> Result<(), AdminError> {
    let _lock = lock(&args.directory)?;
    let directory = process::lock::data_dir(&args.directory, false)
        .map_err(|error| AdminError::Data(format!("{error}: is this the data directory?")))?;
    preflight::raise_limits();
    preflight::check_io_uring().map_err(|problem| AdminError::Host(problem.to_string()))?;
    let folder = directory.clone();
    let findings = executor::run_one("verify", move |core| async move {
        read_all(core.env, folder).await
    });
    let findings = findings.map_err(|error| AdminError::Host(error.to_string()))?;
    let findings = findings.map_err(|error| AdminError::Data(error.to_string()))?;
    if args.json {
        out.json(&document(&directory, &findings))?;
    } else {
        print(&directory, &findings, out)?;
    }
    out.flush()?;
    if findings.is_clean() {
        Ok(())
    } else {
        Err(AdminError::Damaged)
    }
}

/// Keeps a broker out meanwhile. A directory without a lock file was never served where it lies,
/// and one that cannot be written cannot be served: both are read as they are.
fn lock(directory: &Path) -> Result<Option<DataLock>, AdminError> {
    let file = directory.join("LOCK");
    match read_file(&file, limits::BLOCK_ALIGN) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        _ => {}
    }
    match DataLock::acquire(directory) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held { path }) => Err(AdminError::Data(format!(
            "{} is locked: a broker uses this directory. Stop it first, or verify a copy",
            path.display()
        ))),
        Err(LockError::Io(error)) => match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Ok(None),
            _ => Err(AdminError::Data(error.to_string())),
        },
    }
}

async fn read_all(env: crate::env::Env, directory: PathBuf) -> Result<Findings, JournalError> {
    let mark = store::inspect(&env, &directory).await?;
    let start_ns = process::monotonic_ns();
    let mut shards = Vec::new();
    for shard in (0..mark.shards).map(ShardId) {
        if process::monotonic_ns() - start_ns > PATIENCE_NS && output::watched() {
            output::note(&format!("verify: shard {shard} of {} …", mark.shards));
        }
        let folder = store::shard_dir(&directory, shard);
        shards.push(verify(env.clone(), &folder, shard).await?);
    }
    Ok(Findings { mark, shards })
}

fn document(directory: &Path, findings: &Findings) -> Value {
    let shards = findings.shards.iter().enumerate().map(|(shard, report)| {
        let mut value = report.to_json();
        value["shard"] = json!(shard);
        for (item, damage) in value["damage"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .zip(&report.damage)
        {
            item["file_offset"] = json!(file_offset(damage, &findings.mark));
        }
        value
    });
    json!({
        "directory": directory.display().to_string(),
        "store": findings.mark.id_text(),
        "clean": findings.is_clean(),
        "shards": shards.collect::<Vec<_>>(),
    })
}

/// Where in its file a damaged place begins, in bytes.
fn file_offset(damage: &Damage, mark: &StoreMark) -> u64 {
    damage.position.0 % mark.segment_bytes
}

fn print(directory: &Path, findings: &Findings, out: &mut Output) -> Result<(), AdminError> {
    out.line(&format!(
        "{}  store {}\n",
        directory.display(),
        findings.mark.id_text()
    ))?;
    let header = [
        "shard",
        "segments",
        "checkpoints",
        "blocks",
        "entries",
        "MB",
        "tail",
        "damage",
    ];
    let mut table = output::table(&header);
    for (shard, report) in findings.shards.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a size for people")]
        let megabytes = report.bytes as f64 / 1e6;
        table.add_row([
            output::number(shard),
            output::number(report.segments),
            output::number(report.checkpoints),
            output::number(report.blocks),
            output::number(report.entries),
            output::number(format!("{megabytes:.1}")),
            comfy_table::Cell::new(if report.torn_tail.is_some() {
                "torn"
            } else {
                "whole"
            }),
            output::number(report.damage_total),
        ]);
    }
    out.table(&table)?;
    if findings.is_clean() {
        return out.line("\nno damage");
    }
    for (shard, report) in findings.shards.iter().enumerate() {
        if report.damage_total == 0 {
            continue;
        }
        out.line(&format!("\nshard {shard}:"))?;
        for damage in &report.damage {
            out.line(&format!("  {}", describe(damage, &findings.mark)))?;
        }
        let listed = report.damage.len() as u64;
        if listed < report.damage_total {
            out.line(&format!("  and {} more", report.damage_total - listed))?;
        }
    }
    out.line(
        "\nKeep this directory as it is: the broker serves what is whole and sets the rest apart.",
    )
}

/// One damaged place in words: the file, where in it, what, and what it held.
fn describe(damage: &Damage, mark: &StoreMark) -> String {
    let place = format!(
        "{} at byte {}",
        damage.file.display(),
        file_offset(damage, mark)
    );
    let extent = match damage.len_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} bytes"),
    };
    let held = match &damage.kind {
        DamageKind::Records {
            partition,
            base_offset,
            record_count,
        } => format!(
            "partition {} of topic id {}, offsets {base_offset} to {}",
            partition.partition,
            partition.topic,
            base_offset.0 + i64::from(*record_count) - 1
        ),
        DamageKind::State => "an entry without records".into(),
        DamageKind::Blocks { first, last } if first == last => format!("block {first}"),
        DamageKind::Blocks { first, last } => format!("blocks {first} to {last}"),
        DamageKind::Bookkeeping => "bookkeeping; no records".into(),
        DamageKind::File => "the file as a whole".into(),
    };
    format!("{place}{extent}: {}: {held}", damage.what)
}
