//! `penstock config`, and reading the configuration for `serve`: the file and the environment are
//! found here, what they mean is decided in `config`.

use super::cli::{ConfigArgs, ShowConfigArgs};
use super::error::AdminError;
use super::output::{self, Output};
use crate::config::{self, HostFacts, KEYS, Loaded, MemoryBudget, Setting, Sources};
use crate::env::{blocking, process};
use crate::limits;
use serde_json::{Value, json};
use std::io;
use std::path::Path;

/// The file that is read, if it exists, when none is named.
const DEFAULT_FILE: &str = "penstock.toml";

/// Gathers the sources and makes the configuration.
///
/// # Errors
/// A file that was named and cannot be read, and whatever `config::load` refuses.
pub fn load(args: &ConfigArgs) -> Result<Loaded, AdminError> {
    let file = match &args.file {
        Some(path) => Some((path.display().to_string(), read(path)?)),
        None => match read(Path::new(DEFAULT_FILE)) {
            Ok(text) => Some((DEFAULT_FILE.to_owned(), text)),
            Err(AdminError::Input(_, error)) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        },
    };
    let environment = std::env::vars_os().filter_map(|(name, value)| {
        Some((
            name.into_string().ok()?,
            value.to_string_lossy().into_owned(),
        ))
    });
    let sources = Sources {
        file,
        environment: environment.collect(),
        flags: args.keys.0.clone(),
    };
    let host = HostFacts {
        cpus: process::affinity_cpus(),
        memory_bytes: process::memory_bytes(),
    };
    Ok(config::load(&sources, &host)?)
}

fn read(path: &Path) -> Result<String, AdminError> {
    let input = |error| AdminError::Input("the configuration".into(), error);
    let bytes = blocking::read_file(path, limits::CONFIG_FILE_BYTES_MAX).map_err(input)?;
    String::from_utf8(bytes).map_err(|_| {
        AdminError::Usage(format!(
            "{} is not UTF-8 text; save it as UTF-8",
            path.display()
        ))
    })
}

/// Prints the keys, the memory budget and the limits.
///
/// # Errors
/// As `load`; an unknown key; standard output.
pub fn show(args: &ShowConfigArgs, out: &mut Output) -> Result<(), AdminError> {
    let loaded = load(&args.config)?;
    for key in &args.only {
        let wanted = key.replace('-', "_");
        if !KEYS.iter().any(|known| known.name == wanted) {
            let text = format!("there is no key `{key}`; `penstock config` lists every key");
            return Err(AdminError::Usage(text));
        }
    }
    let shown = |name: &str| {
        args.only.is_empty() || args.only.iter().any(|only| only.replace('-', "_") == name)
    };
    if args.json {
        out.json(&document(&loaded, shown))?;
    } else {
        keys_table(&loaded, shown, out)?;
        if args.only.is_empty() {
            memory_table(&loaded.memory, out)?;
            limits_table(out)?;
        }
    }
    out.flush()
}

fn document(loaded: &Loaded, shown: impl Fn(&str) -> bool) -> Value {
    let keys = KEYS.iter().filter(|key| shown(key.name)).map(|key| {
        let (_, value) = loaded
            .config
            .show(key.name)
            .expect("the table's keys are known");
        json!({
            "key": key.name,
            "value": value,
            "default": key.default,
            "source": loaded.origin(key.name).to_string(),
            "type": key.kind,
            "range": key.range.text(),
            "takes_effect": key.effect.text(),
            "variable": key.variable(),
            "flag": format!("--{}", key.flag()),
            "meaning": key.meaning,
        })
    });
    let limits = limits::all().into_iter().map(|limit| {
        let value = u64::try_from(limit.value).unwrap_or(u64::MAX);
        json!({ "limit": limit.name, "value": value, "meaning": limit.meaning })
    });
    json!({
        "keys": keys.collect::<Vec<_>>(),
        "memory": loaded.memory.json(),
        "limits": limits.collect::<Vec<_>>(),
    })
}

fn keys_table(
    loaded: &Loaded,
    shown: impl Fn(&str) -> bool,
    out: &mut Output,
) -> Result<(), AdminError> {
    let mut table = output::table(&[
        "key",
        "value",
        "default",
        "source",
        "range",
        "takes effect",
        "meaning",
    ]);
    for key in KEYS.iter().filter(|key| shown(key.name)) {
        let (value, _) = loaded
            .config
            .show(key.name)
            .expect("the table's keys are known");
        let or_dash = |text: String| {
            if text.is_empty() {
                "-".to_owned()
            } else {
                text
            }
        };
        table.add_row([
            key.name.to_owned(),
            or_dash(value),
            or_dash(key.default.to_owned()),
            loaded.origin(key.name).to_string(),
            key.range.text(),
            key.effect.text().to_owned(),
            key.meaning.to_owned(),
        ]);
    }
    out.table(&table)?;
    out.line(
        "\nA key is set in penstock.toml (key = value), by PENSTOCK_KEY in the environment, or",
    )?;
    out.line("by --key as a flag; the later of these wins.")
}

fn memory_table(memory: &MemoryBudget, out: &mut Output) -> Result<(), AdminError> {
    let mut table = output::table(&["memory", "bytes", "per core", "for"]);
    let rows = [
        (
            "fixed",
            memory.fixed_bytes,
            None,
            "program, rings, connections, blocks being written",
        ),
        (
            "requests",
            memory.request_bytes,
            Some(memory.request_bytes_per_core()),
            "requests read and not yet answered",
        ),
        (
            "fetches",
            memory.fetch_bytes,
            Some(memory.fetch_bytes_per_core()),
            "answers not yet sent",
        ),
        (
            "cache",
            memory.cache_bytes,
            Some(memory.cache_bytes_per_core()),
            "recent blocks",
        ),
        ("total", memory.total_bytes, None, "memory_bytes"),
    ];
    for (name, bytes, per_core, meaning) in rows {
        let per_core = per_core.map_or("-".to_owned(), |bytes| approximate(bytes as u64));
        table.add_row([
            output::number(name).set_alignment(comfy_table::CellAlignment::Left),
            output::number(bytes),
            output::number(per_core),
            comfy_table::Cell::new(meaning),
        ]);
    }
    out.line("")?;
    out.table(&table)
}

fn limits_table(out: &mut Output) -> Result<(), AdminError> {
    let mut table = output::table(&["limit", "value", "meaning"]);
    for limit in limits::all() {
        table.add_row([
            comfy_table::Cell::new(limit.name.to_lowercase()),
            output::number(limit.value),
            comfy_table::Cell::new(limit.meaning),
        ]);
    }
    out.line("")?;
    out.table(&table)
}

/// A size for people: exact where it is round, else in tenths of a MiB.
fn approximate(bytes: u64) -> String {
    let shown = bytes.show();
    if shown.ends_with('B') {
        shown
    } else {
        format!("{}MiB", bytes >> 20)
    }
}
