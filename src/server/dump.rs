//! All cores' figures in one piece: for `/metrics` and `/dump`, and into a file when the process is
//! asked (SIGUSR1) and when it stops. Copying the figures is all that the cores do; what takes
//! milliseconds, rendering and writing, is done on a thread of its own.

use crate::config::MemoryBudget;
use crate::env::blocking::keep_previous;
use crate::env::process;
use crate::env::real::ring;
use crate::metrics::Dump;
use crate::session::Session;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Asks for a dump into the file; told when it is there, or was not to be had.
pub type DumpRequest = Option<flume::Sender<()>>;

/// Gathers the figures of all cores.
pub async fn gather(session: &Session, memory: MemoryBudget) -> Dump {
    let layout = &session.router.layout;
    let cores = session.router.snapshots().await;
    let topics = session.router.topic_figures().await;
    let cpus: Vec<usize> = cores.iter().map(|core| core.cpu as usize).collect();
    let usage = move || process::usage(&cpus);
    let usage = session.router.env.spawn_blocking(usage).await;
    let ring = ring::status();
    Dump {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        unix_ms: process::unix_ms(),
        uptime_ms: process::uptime_ms(),
        process: json!({
            "pid": process::process_id(),
            "kernel": process::kernel_release(),
            "store": layout.cluster_id,
            "shards": layout.shards,
            "endpoints": layout.endpoints.len(),
            "memory": memory.json(),
            "resident_bytes": usage.resident_bytes,
            "cpu_us": usage.process_cpu_ns / 1000,
            "host": {
                "cpus_busy_us": usage.cpus_busy_ns / 1000,
                "cpus_steal_us": usage.cpus_steal_ns / 1000,
            },
            "io_uring": {
                "setup_wrapped": ring.setup_wrapped,
                "rings_tuned": ring.rings_tuned,
                "rings_refused": ring.rings_refused,
                "no_iowait": ring.no_iowait,
            },
        }),
        cores,
        topics,
    }
}

/// The file that dumps go into, if any: `auto` is in the data directory.
#[must_use]
pub fn file_of(key: &Path, data: &Path) -> Option<PathBuf> {
    match key.to_str() {
        Some("none") => None,
        Some("auto") => Some(data.join("dump.json")),
        _ => Some(key.to_owned()),
    }
}

/// Writes a dump for each request. Run on core 0 as a task of its own.
pub async fn serve(
    session: Session,
    memory: MemoryBudget,
    file: Option<PathBuf>,
    requests: flume::Receiver<DumpRequest>,
) {
    while let Ok(reply) = requests.recv_async().await {
        match &file {
            Some(file) => write(&session, memory, file.clone()).await,
            None if reply.is_none() => {
                tracing::warn!("asked for a dump, but `dump_file` is none");
            }
            None => {}
        }
        if let Some(reply) = reply {
            let _ = reply.try_send(());
        }
    }
}

async fn write(session: &Session, memory: MemoryBudget, file: PathBuf) {
    let dump = gather(session, memory).await;
    let path = file.clone();
    let writing = move || {
        let text = format!("{}\n", dump.to_json());
        keep_previous(&path, text.as_bytes()).map(|()| text.len())
    };
    match session.router.env.spawn_blocking(writing).await {
        Ok(bytes) => tracing::info!(bytes, "dump written to {}", file.display()),
        Err(error) => tracing::warn!(%error, "no dump could be written"),
    }
}
