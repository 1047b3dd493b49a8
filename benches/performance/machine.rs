//! What was measured, and where: without it a figure is an anecdote.

use std::path::Path;
use std::process::Command;

use crate::bench;
use penstock::env::process;
use serde_json::{Value, json};

/// The machine, the commit and the command.
pub fn describe(folder: &Path) -> Value {
    json!({
        "commit": commit(),
        "command": command(),
        "kernel": process::kernel_release(),
        "cpu": process::cpu_model(),
        "cpus": bench::cpus(),
        "clock_source": process::clock_source(),
        "folder": folder.display().to_string(),
        "file_system": mount_of(folder),
        "unix_ms": process::unix_ms(),
    })
}

/// The commit that was built, marked when the tree differs from it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = command.output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return "unknown".to_owned();
    };
    let is_changed = git(&["status", "--porcelain"]).is_none_or(|text| !text.is_empty());
    if is_changed {
        format!("{commit} with changes")
    } else {
        commit
    }
}

/// As it is typed.
fn command() -> String {
    let arguments = std::env::args().skip(1).filter(|text| text != "--bench");
    let arguments: Vec<String> = arguments.collect();
    format!("cargo bench --bench performance -- {}", arguments.join(" "))
        .trim_end()
        .to_owned()
}

/// Device, type and options of the file system that holds a folder.
pub fn mount_of(folder: &Path) -> Value {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut best: Option<Vec<&str>> = None;
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let length = |fields: &[&str]| fields[1].len();
        let is_above = fields.len() > 3 && folder.starts_with(fields[1]);
        // The last of equal ones lies on top.
        if is_above
            && best
                .as_ref()
                .is_none_or(|old| length(&fields) >= length(old))
        {
            best = Some(fields);
        }
    }
    match best {
        Some(fields) => json!({
            "device": fields[0], "mounted_on": fields[1], "type": fields[2], "options": fields[3],
        }),
        None => Value::Null,
    }
}
