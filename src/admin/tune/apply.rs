//! Writing the changes, and taking them back.
//!
//! Before the first write, what is there goes into a file of records; undo gives each setting its
//! old value and reads it back until the very bytes that were there are there again. A second
//! `--apply` keeps the first record of a setting. Only settings that a check may change are
//! written, whatever the records say: undo runs as root and must not be a way for others to write.
//! Settings of the kernel end with the kernel: after a restart of the host there is nothing left to
//! undo.

use super::finding::{Change, Finding, in_force, one_line};
use super::wanted::SYSCTLS;
use crate::admin::error::AdminError;
use crate::env::blocking::{read_file, write_file};
use crate::env::process::{HostTree, make_folder_of, remove_file_if_any};
use crate::limits::UNDO_FILE_BYTES_MAX;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// The file of records.
#[derive(Debug, Deserialize, Serialize)]
struct Records {
    schema_version: u32,
    made_by: String,
    /// The start of the kernel that they belong to.
    boot_id: String,
    changes: Vec<Record>,
}

/// What one setting was.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Record {
    check: String,
    path: String,
    /// The value that was in force.
    before_value: String,
    /// The file as it was.
    before_text: String,
    /// The file as it was after the change; absent if the process was killed in between.
    after_text: Option<String>,
}

const SCHEMA_VERSION: u32 = 1;

/// What became of one write.
#[derive(Debug)]
pub struct Outcome {
    /// The check it belongs to.
    pub check: String,
    /// The setting.
    pub path: String,
    /// What was done, or why not.
    pub result: Result<String, String>,
}

/// Makes every change that the findings ask for, and records what was before.
///
/// # Errors
/// The records cannot be read or written; nothing was changed then.
pub fn apply(
    tree: &HostTree,
    findings: &[Finding],
    undo_file: &Path,
) -> Result<Vec<Outcome>, AdminError> {
    let mut records = match load(undo_file)? {
        Some(records) if records.boot_id == boot_id(tree) => records,
        _ => Records {
            schema_version: SCHEMA_VERSION,
            made_by: format!("penstock {}", env!("CARGO_PKG_VERSION")),
            boot_id: boot_id(tree),
            changes: Vec::new(),
        },
    };
    let mut outcomes = Vec::new();
    let mut accepted: Vec<&Change> = Vec::new();
    for finding in findings {
        for change in &finding.changes {
            match record(tree, finding.name, change) {
                Ok(record) => {
                    if !records.changes.iter().any(|old| old.path == record.path) {
                        records.changes.push(record);
                    }
                    accepted.push(change);
                }
                Err(reason) => outcomes.push(Outcome {
                    check: finding.name.to_owned(),
                    path: change.path.clone(),
                    result: Err(reason),
                }),
            }
        }
    }
    store(undo_file, &records)?;
    for change in accepted {
        let result = write_checked(tree, change);
        let known = records.changes.iter_mut();
        let mut known = known.filter(|record| record.path == change.path);
        let record = known.next().expect("every accepted change has its record");
        record.after_text = tree.read(&change.path);
        outcomes.push(Outcome {
            check: record.check.clone(),
            path: change.path.clone(),
            result,
        });
    }
    // What could not be changed needs no undoing.
    records
        .changes
        .retain(|record| record.after_text.as_ref() != Some(&record.before_text));
    store(undo_file, &records)?;
    Ok(outcomes)
}

/// What is there now, if it can be given back exactly.
fn record(tree: &HostTree, check: &str, change: &Change) -> Result<Record, String> {
    if !is_setting(&change.path) {
        return Err("lies where no setting was expected".to_owned());
    }
    let text = tree
        .read(&change.path)
        .ok_or("cannot be read, so it could not be given back")?;
    if text.contains('\u{fffd}') {
        return Err("does not hold text, so it could not be given back".to_owned());
    }
    Ok(Record {
        check: check.to_owned(),
        path: change.path.clone(),
        before_value: in_force(&text).to_owned(),
        before_text: text,
        after_text: None,
    })
}

fn write_checked(tree: &HostTree, change: &Change) -> Result<String, String> {
    tree.write_setting(&change.path, &format!("{}\n", change.value))
        .map_err(|error| error.to_string())?;
    let now = tree.read(&change.path).unwrap_or_default();
    let now = in_force(&now);
    if same(now, &change.value) {
        Ok(format!("{} -> {now}", change.before))
    } else {
        Err(format!(
            "the kernel took {} and kept {}",
            change.value,
            one_line(now)
        ))
    }
}

/// The kernel pads masks with zeros and writes them in groups.
fn same(left: &str, right: &str) -> bool {
    fn bare(text: &str) -> &str {
        text.trim_start_matches(['0', ','])
    }
    left == right || bare(left) == bare(right)
}

/// Gives every recorded setting what it had. Settings that somebody changed since are left alone
/// and said so; their records stay.
///
/// # Errors
/// The records cannot be read or written.
pub fn undo(tree: &HostTree, undo_file: &Path) -> Result<Vec<Outcome>, AdminError> {
    let Some(mut records) = load(undo_file)? else {
        return Err(AdminError::Failed(format!(
            "there is nothing to undo: {} does not exist",
            undo_file.display()
        )));
    };
    if records.boot_id != boot_id(tree) {
        discard(undo_file)?;
        return Ok(Vec::new());
    }
    let mut outcomes = Vec::new();
    let mut left = Vec::new();
    for record in records.changes.into_iter().rev() {
        let result = give_back(tree, &record);
        outcomes.push(Outcome {
            check: record.check.clone(),
            path: record.path.clone(),
            result: result.clone(),
        });
        if result.is_err() {
            left.insert(0, record);
        }
    }
    records.changes = left;
    store(undo_file, &records)?;
    Ok(outcomes)
}

fn give_back(tree: &HostTree, record: &Record) -> Result<String, String> {
    if !is_setting(&record.path) {
        return Err("no setting that `tune` changes".to_owned());
    }
    let now = tree.read(&record.path);
    let shown = one_line(&record.before_value);
    if now.as_ref() == Some(&record.before_text) {
        return Ok(format!("{shown} already"));
    }
    if record.after_text.is_some() && now != record.after_text {
        let now = now.unwrap_or_default();
        return Err(format!(
            "left alone: somebody set it to {} since",
            one_line(in_force(&now))
        ));
    }
    // A file that lists choices takes one of them; any other takes what it showed.
    for text in [
        format!("{}\n", record.before_value),
        record.before_text.clone(),
    ] {
        tree.write_setting(&record.path, &text)
            .map_err(|error| error.to_string())?;
        if tree.read(&record.path).as_ref() == Some(&record.before_text) {
            return Ok(format!("{shown} again"));
        }
    }
    Err(format!("could not be given {shown} back"))
}

/// Whether a check may change this file.
#[must_use]
pub fn is_setting(path: &str) -> bool {
    if path.split('/').any(|part| part == "..") {
        return false;
    }
    let numbers = SYSCTLS.iter().any(|sysctl| sysctl.path() == path);
    let within = |start: &str, ends: &[&str]| {
        path.starts_with(start) && ends.iter().any(|end| path.ends_with(end))
    };
    numbers
        || within("/proc/irq/", &["/smp_affinity_list"])
        || within(
            "/sys/devices/system/cpu/",
            &["/cpufreq/scaling_governor", "/disable"],
        )
        || within(
            "/sys/devices/system/clocksource/",
            &["/current_clocksource"],
        )
        || within("/sys/block/", &["/queue/scheduler", "/queue/nomerges"])
        || within("/sys/devices/", &["/queue/scheduler", "/queue/nomerges"])
        || within("/sys/class/net/", &["/rps_cpus", "/xps_cpus"])
}

fn boot_id(tree: &HostTree) -> String {
    let text = tree.read("/proc/sys/kernel/random/boot_id");
    text.unwrap_or_default().trim().to_owned()
}

fn load(path: &Path) -> Result<Option<Records>, AdminError> {
    let bytes = match read_file(path, UNDO_FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(AdminError::Failed(error.to_string())),
    };
    let records: Result<Records, _> = serde_json::from_slice(&bytes);
    match records {
        Ok(records) if records.schema_version == SCHEMA_VERSION => Ok(Some(records)),
        Ok(records) => Err(AdminError::Failed(format!(
            "{} was written by {} in a form this version does not know: use that version to undo",
            path.display(),
            one_line(&records.made_by)
        ))),
        Err(error) => Err(AdminError::Failed(format!(
            "{} holds no undo records ({error}): move it away, or name another --undo-file",
            path.display()
        ))),
    }
}

/// Writes the records whole; without any, there is no file.
fn store(path: &Path, records: &Records) -> Result<(), AdminError> {
    if records.changes.is_empty() {
        return discard(path);
    }
    let text = serde_json::to_string_pretty(records).expect("records are plain text");
    make_folder_of(path)
        .and_then(|()| write_file(path, format!("{text}\n").as_bytes()))
        .map_err(|error| AdminError::Failed(error.to_string()))
}

fn discard(path: &Path) -> Result<(), AdminError> {
    remove_file_if_any(path).map_err(|error| AdminError::Failed(error.to_string()))
}
