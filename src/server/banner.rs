//! What the broker says when it starts: to people, and in the ready file to scripts.

use super::core::CoreReport;
use super::prepare::Prepared;
use crate::admin::output;
use crate::config::{Loaded, Setting};
use crate::env::process;
use crate::env::real::ring;
use serde_json::json;

/// Logs what recovery found.
pub fn report_recovery(opened: &[CoreReport]) {
    for report in opened {
        let CoreReport::Opened(shards) = report else {
            continue;
        };
        for (shard, report) in shards {
            tracing::debug!(shard = shard.0, ?report, "shard recovered");
            if let Some(cut) = &report.cut {
                tracing::warn!(shard = shard.0, ?cut, "an unacknowledged tail was cut off");
            }
            for damage in &report.damage {
                tracing::error!(
                    shard = shard.0,
                    ?damage,
                    "DAMAGE on disk; see `penstock verify`"
                );
            }
        }
    }
}

/// Logs which store this is, and whether it is new.
pub fn report_store(prepared: &Prepared, reports: &[CoreReport]) {
    let topics = reports.iter().find_map(|report| match report {
        CoreReport::Published(topics) => Some(*topics),
        _ => None,
    });
    let topics = topics.unwrap_or(0);
    let store = &prepared.store;
    let path = store.dir.display();
    if store.is_new {
        tracing::info!(
            "created NEW store, id {} in {path}, {} shards",
            store.id,
            store.shards
        );
    } else {
        tracing::info!(
            "opened store, {topics} topics, id {} in {path}, {} shards",
            store.id,
            store.shards
        );
    }
}

/// The content of the ready file.
pub fn ready_text(loaded: &Loaded, prepared: &Prepared) -> String {
    let ready = json!({
        "pid": process::process_id(),
        "version": env!("CARGO_PKG_VERSION"),
        "kafka": prepared.sockets.kafka_addresses(),
        "http": prepared.sockets.http_address(),
        "data": prepared.store.dir.display().to_string(),
        "store": prepared.store.id,
        "cores": loaded.cpus.len(),
        "shards": prepared.store.shards,
    });
    format!("{ready}\n")
}

/// The banner of the first minute.
pub fn print(loaded: &Loaded, prepared: &Prepared) {
    let kafka = prepared.sockets.kafka_addresses();
    let first = kafka.first().cloned().unwrap_or_default();
    let ring = ring::status();
    let tuned = if ring.setup_wrapped {
        "tuned"
    } else {
        "plain (the linker ignored --wrap)"
    };
    let lines = [
        format!("penstock {}", env!("CARGO_PKG_VERSION")),
        format!("  Kafka       {}", kafka.join("  ")),
        format!(
            "  HTTP        http://{}  (/healthz /readyz /metrics /dump)",
            prepared.sockets.http_address()
        ),
        format!("  data        {}", prepared.store.dir.display()),
        format!(
            "  cores       {} on CPUs {:?}, {} shards",
            loaded.cpus.len(),
            loaded.cpus,
            prepared.store.shards
        ),
        format!(
            "  durability  acknowledged = on disk ({} commits, {} deep)",
            loaded.config.commit_mode.show(),
            loaded.config.commit_depth
        ),
        format!(
            "  memory      at most {} in all",
            loaded.config.memory_bytes.show()
        ),
        format!("  io_uring    {tuned}"),
        "try:".to_owned(),
        format!("  echo hello | penstock produce greetings --broker {first}"),
        format!("  penstock consume greetings --until end --broker {first}"),
        format!("  penstock topic list --broker {first}"),
    ];
    for line in lines {
        output::note(&line);
    }
}
