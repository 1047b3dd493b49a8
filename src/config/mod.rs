//! The configuration: one table of keys, four sources in rising precedence (built-in default,
//! `penstock.toml`, `PENSTOCK_KEY` in the environment, flags), one validated result.
//!
//! Pure: whoever calls `load` has read the file and the environment. Every error says what, where,
//! and what to do.

mod keys;
mod memory;
#[cfg(test)]
mod tests;
mod value;

pub use keys::{Config, Effect, KEYS, Key, Range};
pub use memory::MemoryBudget;
pub use value::{CommitMode, Cores, Endpoints, LogFormat, Setting};

use std::collections::BTreeMap;
use std::fmt;

/// Variables that begin with `PENSTOCK_` and are not keys: the client verbs', the tests'.
const OTHER_VARIABLES: [&str; 6] = ["BROKER", "CONFIG", "SEED", "IMAGES", "FUZZ", "KILLS"];

/// What the configuration is made from, as it was found.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file's path and text, if there is one.
    pub file: Option<(String, String)>,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// Keys and values given as flags, in order.
    pub flags: Vec<(String, String)>,
}

/// What the host offers; defaults depend on it.
#[derive(Clone, Debug)]
pub struct HostFacts {
    /// CPUs of the process' affinity mask, in order.
    pub cpus: Vec<usize>,
    /// Memory of the host or of the control group, whichever is less, in bytes.
    pub memory_bytes: u64,
}

/// Where a value came from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// Built in.
    Default,
    /// The file, with the line.
    File(String, usize),
    /// An environment variable.
    Environment(String),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path, line) => write!(f, "{path} line {line}"),
            Origin::Environment(variable) => write!(f, "${variable}"),
            Origin::Flag(flag) => write!(f, "--{flag}"),
        }
    }
}

/// Why there is no configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ConfigError {
    /// Nobody knows this key.
    UnknownKey {
        /// As it was written.
        key: String,
        /// Where.
        place: Origin,
        /// The known one that may have been meant.
        nearest: Option<&'static str>,
    },
    /// A value its key does not take.
    Value {
        /// The key.
        key: &'static str,
        /// Where.
        place: Origin,
        /// As it was written.
        text: String,
        /// What is wrong with it, beginning with "must".
        problem: String,
    },
    /// The file is not TOML.
    Syntax {
        /// The file.
        path: String,
        /// The parser's words, which name the line.
        problem: String,
    },
    /// Values that do not go together, or with this host.
    Conflict(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::UnknownKey {
                key,
                place,
                nearest,
            } => {
                write!(f, "{place}: there is no key `{key}`")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean `{nearest}`?")?,
                    None => f.write_str(".")?,
                }
                f.write_str(" `penstock config` lists every key")
            }
            ConfigError::Value {
                key,
                place,
                text,
                problem,
            } => {
                write!(f, "{place}: `{key}` is \"{text}\", but it {problem}")
            }
            ConfigError::Syntax { path, problem } => {
                write!(f, "{path} is not a TOML file: {problem}")
            }
            ConfigError::Conflict(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ConfigError {}

/// A configuration, and where each value came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The values, `auto` worked out.
    pub config: Config,
    /// The CPUs that get an executor: core *k* of the process runs on `cpus[k]`.
    pub cpus: Vec<usize>,
    /// The split of the memory budget.
    pub memory: MemoryBudget,
    origins: BTreeMap<&'static str, Origin>,
}

impl Loaded {
    /// Where the value of a key came from.
    #[must_use]
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }
}

/// Makes the configuration of a process.
///
/// # Errors
/// The first thing that is wrong, in the order file, environment, flags, conflicts.
pub fn load(sources: &Sources, host: &HostFacts) -> Result<Loaded, ConfigError> {
    let mut config = Config::defaults().expect("a test parses every built-in default");
    let mut origins = BTreeMap::new();
    for (key, text, place) in gather(sources)? {
        let name = known(&key, &place)?;
        config
            .set(name, &text)
            .map_err(|problem| ConfigError::Value {
                key: name,
                place: place.clone(),
                text,
                problem,
            })?;
        origins.insert(name, place);
    }
    let cpus = cpus(&config, host)?;
    if config.memory_bytes == 0 {
        config.memory_bytes = memory::default_bytes(&config, cpus.len(), host.memory_bytes);
    }
    let memory = MemoryBudget::new(&config, cpus.len()).map_err(|least| {
        ConfigError::Conflict(format!(
            "memory_bytes is {} but {} cores with these limits need at least {}: give more memory, \
             or lower cores, max_connections, commit_depth or block_bytes_max",
            config.memory_bytes.show(),
            cpus.len(),
            least.show()
        ))
    })?;
    validate(&config, &cpus, host)?;
    Ok(Loaded {
        config,
        cpus,
        memory,
        origins,
    })
}

/// All settings in rising precedence.
fn gather(sources: &Sources) -> Result<Vec<(String, String, Origin)>, ConfigError> {
    let mut all = Vec::new();
    if let Some((path, text)) = &sources.file {
        all.extend(file_settings(path, text)?);
    }
    for (variable, text) in &sources.environment {
        let Some(name) = variable.strip_prefix("PENSTOCK_") else {
            continue;
        };
        if OTHER_VARIABLES.contains(&name) || is_service_link(name) {
            continue;
        }
        all.push((
            name.to_lowercase(),
            text.clone(),
            Origin::Environment(variable.clone()),
        ));
    }
    for (key, text) in &sources.flags {
        all.push((
            key.clone(),
            text.clone(),
            Origin::Flag(key.replace('_', "-")),
        ));
    }
    Ok(all)
}

/// Kubernetes and Docker put these into the environment of everything that runs beside a service
/// called `penstock`. They are not ours, and must not keep a broker from starting.
fn is_service_link(name: &str) -> bool {
    name == "PORT"
        || name.starts_with("PORT_")
        || name == "SERVICE_HOST"
        || name.starts_with("SERVICE_PORT")
}

fn file_settings(path: &str, text: &str) -> Result<Vec<(String, String, Origin)>, ConfigError> {
    let table: BTreeMap<toml::Spanned<String>, toml::Value> =
        toml::from_str(text).map_err(|error| ConfigError::Syntax {
            path: path.to_owned(),
            problem: error.to_string().trim_end().to_owned(),
        })?;
    let mut settings = Vec::new();
    for (key, value) in table {
        let start = key.span().start.min(text.len());
        let line = text.as_bytes()[..start]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
            + 1;
        let place = Origin::File(path.to_owned(), line);
        let key = key.into_inner();
        let name = known(&key, &place)?;
        let text = toml_text(&value).ok_or_else(|| ConfigError::Value {
            key: name,
            place: place.clone(),
            text: value.to_string(),
            problem: "must be a string, a whole number, true or false".into(),
        })?;
        settings.push((key, text, place));
    }
    Ok(settings)
}

/// A TOML value as the text a flag would have had.
fn toml_text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(truth) => Some(truth.to_string()),
        toml::Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(toml_text).collect();
            items.map(|items| items.join(","))
        }
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

fn known(key: &str, place: &Origin) -> Result<&'static str, ConfigError> {
    if let Some(found) = KEYS.iter().find(|known| known.name == key) {
        return Ok(found.name);
    }
    let nearest = crate::base::nearest::nearest(key, KEYS.iter().map(|known| known.name));
    Err(ConfigError::UnknownKey {
        key: key.to_owned(),
        place: place.clone(),
        nearest,
    })
}

/// The CPUs to run on.
fn cpus(config: &Config, host: &HostFacts) -> Result<Vec<usize>, ConfigError> {
    let allowed = &host.cpus;
    let conflict = |text: String| Err(ConfigError::Conflict(text));
    match &config.cores {
        Cores::All => Ok(allowed
            .iter()
            .copied()
            .take(crate::limits::CORES_MAX)
            .collect()),
        // More cores than CPUs share them in turn: slower, but a store can be opened anywhere.
        Cores::Count(count) => Ok(allowed.iter().copied().cycle().take(*count).collect()),
        Cores::List(list) => match list.iter().find(|cpu| !allowed.contains(cpu)) {
            Some(cpu) => conflict(format!(
                "cores names CPU {cpu}, but this process may run on {} only: choose among those, \
                 or widen its affinity mask",
                Cores::List(allowed.clone()).show()
            )),
            None => Ok(list.clone()),
        },
    }
}

/// Checks what concerns more than one key.
fn validate(config: &Config, cpus: &[usize], host: &HostFacts) -> Result<(), ConfigError> {
    let conflict = |text: String| Err(ConfigError::Conflict(text));
    for (key, address) in [("kafka", config.kafka), ("http", config.http)] {
        if !address.ip().is_loopback() && !config.insecure {
            return conflict(format!(
                "{key} = {address} can be reached from other machines, and nobody has to \
                 authenticate: listen on 127.0.0.1, or add --insecure if the network is trusted"
            ));
        }
    }
    if config.kafka.ip().is_unspecified() && config.advertised_host.is_none() {
        return conflict(format!(
            "kafka = {} listens on every address, so clients cannot be told which to use: set \
             advertised_host to the name or address they reach this host by",
            config.kafka
        ));
    }
    if config.kafka.port() != 0 {
        let first = usize::from(config.kafka.port());
        let last = first + config.endpoints.count(cpus.len()) - 1;
        if last > usize::from(u16::MAX) {
            return conflict(format!(
                "kafka = {} with {} endpoints would need port {last}: choose a lower port or \
                 fewer endpoints",
                config.kafka,
                config.endpoints.count(cpus.len())
            ));
        }
        let http_port = usize::from(config.http.port());
        if config.http.ip() == config.kafka.ip() && (first..=last).contains(&http_port) {
            return conflict(format!(
                "http = {} is one of the Kafka endpoints' ports ({first} – {last}): choose another",
                config.http
            ));
        }
    }
    if config.memory_bytes > host.memory_bytes {
        return conflict(format!(
            "memory_bytes is {} ({}), but the host or control group has {} only: lower it, or \
             lower cores or max_connections so that less is needed",
            config.memory_bytes.show(),
            config.memory_bytes,
            host.memory_bytes.show()
        ));
    }
    Ok(())
}
