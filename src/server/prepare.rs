//! What must be right before a core starts: the host, the addresses, the data directory, the store.
//!
//! Order matters: the addresses are taken and the directory is locked before a byte is written, so
//! a start that is refused changes nothing.

use crate::base::exit::ExitCode;
use crate::base::ids::ShardId;
use crate::config::Loaded;
use crate::env::net::{self, BoundSocket};
use crate::env::process::{self, DataLock, LockError};
use crate::env::real::executor::run_one;
use crate::env::real::preflight;
use crate::journal::JournalError;
use crate::journal::store::{self, StoreMark};
use crate::router::Layout;
use crate::router::layout::Endpoint;
use core::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Why the broker does not start, or ends. The text is for a person: what, where, what to do.
#[derive(Debug)]
pub enum StartError {
    /// The configuration is wrong, or an address is taken.
    Configuration(String),
    /// The host lacks something.
    Host(String),
    /// The data directory is refused.
    Data(String),
    /// The disk failed.
    Disk(String),
    /// A core did not answer in time.
    Silent,
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Configuration(text) | Self::Host(text) | Self::Data(text) | Self::Disk(text) => {
                f.write_str(text)
            }
            Self::Silent => f.write_str("a core did not answer in time"),
        }
    }
}

impl StartError {
    /// The exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Configuration(_) => ExitCode::Configuration,
            Self::Host(_) | Self::Silent => ExitCode::Host,
            Self::Data(_) => ExitCode::DataRefused,
            Self::Disk(_) => ExitCode::DiskFailed,
        }
    }

    /// What a journal that could not be opened or closed means for the process.
    #[must_use]
    pub fn from_journal(error: JournalError) -> Self {
        let text = error.to_string();
        match error {
            JournalError::Io { .. } | JournalError::Poisoned(_) => Self::Disk(text),
            JournalError::Config(_) => Self::Configuration(text),
            _ => Self::Data(text),
        }
    }
}

/// The store, as every core needs to know it.
#[derive(Clone, Debug)]
pub struct StoreFacts {
    /// Absolute path of the data directory.
    pub dir: PathBuf,
    /// The store's id, as text.
    pub id: String,
    /// Number of shards.
    pub shards: u16,
    /// Length of its segments, in bytes.
    pub segment_bytes: u64,
    /// Whether it was made just now.
    pub is_new: bool,
}

impl StoreFacts {
    /// The folder of a shard.
    #[must_use]
    pub fn shard_dir(&self, shard: ShardId) -> PathBuf {
        store::shard_dir(&self.dir, shard)
    }
}

/// The bound sockets; they listen when recovery is over. Each is taken once, by the core it is for.
#[derive(Clone)]
pub struct Sockets {
    kafka: Vec<(SocketAddr, flume::Receiver<BoundSocket>)>,
    http: (SocketAddr, flume::Receiver<BoundSocket>),
}

impl Sockets {
    /// Addresses of the endpoints as text.
    #[must_use]
    pub fn kafka_addresses(&self) -> Vec<String> {
        self.kafka
            .iter()
            .map(|(address, _)| address.to_string())
            .collect()
    }

    /// Address of the HTTP listener as text.
    #[must_use]
    pub fn http_address(&self) -> String {
        self.http.0.to_string()
    }

    /// The endpoint of a core, if it has one.
    #[must_use]
    pub fn take_kafka(&self, core: usize) -> Option<BoundSocket> {
        self.kafka
            .get(core)
            .and_then(|(_, socket)| socket.try_recv().ok())
    }

    /// The HTTP socket, for core 0.
    #[must_use]
    pub fn take_http(&self, core: usize) -> Option<BoundSocket> {
        (core == 0).then(|| self.http.1.try_recv().ok()).flatten()
    }
}

/// Everything that was made ready.
pub struct Prepared {
    /// Held as long as the broker runs.
    pub lock: DataLock,
    /// The bound sockets.
    pub sockets: Sockets,
    /// The store.
    pub store: StoreFacts,
    /// Where every shard lives.
    pub layout: Layout,
}

/// Makes everything ready.
///
/// # Errors
/// The first thing that is missing; nothing in the data directory was changed then.
pub fn prepare(loaded: &Loaded) -> Result<Prepared, StartError> {
    let config = &loaded.config;
    if let Some(path) = &config.ready_file {
        process::remove_ready_file(path)
            .map_err(|error| StartError::Configuration(error.to_string()))?;
    }
    let limits = preflight::raise_limits();
    tracing::debug!(?limits, "process limits");
    preflight::check_io_uring().map_err(|error| StartError::Host(error.to_string()))?;
    let sockets = bind(loaded)?;
    let dir = data_dir(&config.data, config.create)?;
    if !config.create && !store::marks(&dir).iter().any(|mark| process::is_file(mark)) {
        return Err(StartError::Data(format!(
            "there is no store in {}, and --no-create refuses to make one: is the volume mounted?",
            dir.display()
        )));
    }
    preflight::check_direct_io(&dir).map_err(|error| StartError::Host(error.to_string()))?;
    let lock = DataLock::acquire(&dir).map_err(|error| match error {
        LockError::Held { .. } => StartError::Data(error.to_string()),
        _ => StartError::Disk(error.to_string()),
    })?;
    let store = open_store(loaded, &dir)?;
    let layout = layout(loaded, &sockets, &store);
    Ok(Prepared {
        lock,
        sockets,
        store,
        layout,
    })
}

fn bind(loaded: &Loaded) -> Result<Sockets, StartError> {
    let config = &loaded.config;
    let taken = |error: std::io::Error| StartError::Configuration(error.to_string());
    let endpoints = config.endpoints.count(loaded.cpus.len());
    let mut kafka = Vec::with_capacity(endpoints);
    for index in 0..endpoints {
        let mut address: SocketAddr = config.kafka;
        if address.port() != 0 {
            let port = usize::from(address.port()) + index;
            address.set_port(u16::try_from(port).expect("the configuration was validated"));
        }
        kafka.push(bind_one(address).map_err(taken)?);
    }
    let http = bind_one(config.http).map_err(taken)?;
    Ok(Sockets { kafka, http })
}

fn bind_one(
    address: SocketAddr,
) -> Result<(SocketAddr, flume::Receiver<BoundSocket>), std::io::Error> {
    let socket = net::bind(&address.to_string())?;
    let address = socket.address();
    let (give, take) = flume::bounded(1);
    give.send(socket).expect("the receiver is alive");
    Ok((address, take))
}

/// The data directory as an absolute path; made if it may be.
fn data_dir(path: &Path, create: bool) -> Result<PathBuf, StartError> {
    process::data_dir(path, create).map_err(|error| {
        if create {
            StartError::Data(error.to_string())
        } else {
            StartError::Data(format!(
                "{error}. --no-create refuses to make a store: is the volume mounted?"
            ))
        }
    })
}

/// Opens the store, or makes it.
fn open_store(loaded: &Loaded, dir: &Path) -> Result<StoreFacts, StartError> {
    let config = &loaded.config;
    let shards = match config.shards {
        0 => u16::try_from(loaded.cpus.len()).unwrap_or(u16::MAX),
        count => count,
    };
    let wanted = StoreMark::new(shards, config.segment_bytes);
    let (folder, create) = (dir.to_owned(), config.create);
    let opened = run_one("store", move |core| async move {
        store::open_or_create(&core.env, &folder, create.then_some(wanted)).await
    });
    let (mark, is_new) = opened
        .map_err(|error| StartError::Host(error.to_string()))?
        .map_err(StartError::from_journal)?;
    Ok(StoreFacts {
        dir: dir.to_owned(),
        id: mark.id_text(),
        shards: mark.shards,
        segment_bytes: mark.segment_bytes,
        is_new,
    })
}

fn layout(loaded: &Loaded, sockets: &Sockets, store: &StoreFacts) -> Layout {
    let config = &loaded.config;
    let endpoints = sockets.kafka.iter().map(|(address, _)| Endpoint {
        host: config
            .advertised_host
            .clone()
            .unwrap_or_else(|| address.ip().to_string()),
        port: address.port(),
    });
    Layout {
        host_id: i32::from(config.host_id),
        cores: u16::try_from(loaded.cpus.len()).expect("the configuration bounds the cores"),
        shards: store.shards,
        endpoints: endpoints.collect(),
        cluster_id: store.id.clone(),
        rack: config.rack.clone(),
    }
}
