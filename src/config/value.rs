//! The types a configuration value can have, and how each is read from and written as text. All
//! three sources (file, environment, flag) come down to text, so that they mean the same.

use core::net::{IpAddr, SocketAddr};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A type that a key can have.
pub trait Setting: Sized {
    /// Reads the value.
    ///
    /// # Errors
    /// What is wrong with the text, as the end of a sentence.
    fn parse(text: &str) -> Result<Self, String>;
    /// Writes the value so that `parse` reads it back.
    fn show(&self) -> String;
    /// The value for `--json`: numbers as numbers.
    fn json(&self) -> Value {
        Value::String(self.show())
    }
    /// The number that a range applies to.
    fn magnitude(&self) -> Option<u64> {
        None
    }
}

/// Which CPUs get an executor.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Cores {
    /// Every CPU of the process' affinity mask.
    All,
    /// The first so many of them.
    Count(usize),
    /// Exactly these CPUs.
    List(Vec<usize>),
}

/// How many endpoints (listeners that are advertised as brokers) there are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Endpoints {
    /// One a core, up to `limits::ENDPOINTS_AUTO_MAX`.
    Auto,
    /// So many, at most one a core.
    Count(u16),
}

impl Endpoints {
    /// The number of endpoints of a process with `cores` executors.
    #[must_use]
    pub fn count(self, cores: usize) -> usize {
        match self {
            Endpoints::Auto => cores.min(crate::limits::ENDPOINTS_AUTO_MAX),
            Endpoints::Count(count) => usize::from(count).min(cores),
        }
    }
}

/// How a journal write becomes durable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CommitMode {
    /// Files are opened with `O_DSYNC`: a write is durable when it completes.
    Dsync,
    /// A write is followed by an `fdatasync`.
    Fdatasync,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Setting for String {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            Err("must not be empty".into())
        } else {
            Ok(text.to_owned())
        }
    }
    fn show(&self) -> String {
        self.clone()
    }
}

impl Setting for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            Err("must not be empty".into())
        } else {
            Ok(PathBuf::from(text))
        }
    }
    fn show(&self) -> String {
        self.display().to_string()
    }
}

/// An optional value: empty text means "none".
impl<T: Setting> Setting for Option<T> {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            Ok(None)
        } else {
            T::parse(text).map(Some)
        }
    }
    fn show(&self) -> String {
        self.as_ref().map(T::show).unwrap_or_default()
    }
    fn json(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::json)
    }
    fn magnitude(&self) -> Option<u64> {
        self.as_ref().and_then(T::magnitude)
    }
}

impl Setting for bool {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "true" | "yes" | "on" | "1" => Ok(true),
            "false" | "no" | "off" | "0" => Ok(false),
            _ => Err("must be true or false".into()),
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn json(&self) -> Value {
        json!(self)
    }
}

macro_rules! count_setting {
    ($($integer:ty),*) => {
        $(impl Setting for $integer {
            fn parse(text: &str) -> Result<Self, String> {
                text.replace('_', "").parse().map_err(|_| "must be a whole number".to_owned())
            }
            fn show(&self) -> String {
                self.to_string()
            }
            fn json(&self) -> Value {
                json!(self)
            }
            fn magnitude(&self) -> Option<u64> {
                Some(u64::from(*self))
            }
        })*
    };
}
count_setting!(u16, u32);

const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// A `u64` is always a number of bytes; it may carry a unit.
impl Setting for u64 {
    fn parse(text: &str) -> Result<Self, String> {
        let problem = || "must be a number of bytes, such as 1048576 or 64MiB".to_owned();
        let text = text.trim().replace('_', "");
        let (number, unit) = UNITS
            .iter()
            .find_map(|(unit, bytes)| text.strip_suffix(unit).map(|number| (number, *bytes)))
            .unwrap_or((text.as_str(), 1));
        let number: u64 = number.trim_end().parse().map_err(|_| problem())?;
        number.checked_mul(unit).ok_or_else(problem)
    }
    fn show(&self) -> String {
        for (unit, bytes) in UNITS.iter().take(3) {
            if *self >= *bytes && self.is_multiple_of(*bytes) {
                return format!("{}{unit}", self / bytes);
            }
        }
        self.to_string()
    }
    fn json(&self) -> Value {
        json!(self)
    }
    fn magnitude(&self) -> Option<u64> {
        Some(*self)
    }
}

impl Setting for SocketAddr {
    fn parse(text: &str) -> Result<Self, String> {
        let problem = "must be ADDRESS:PORT with a numeric address, such as 127.0.0.1:9092, \
                       0.0.0.0:9092 or [::1]:9092";
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        // The one name that needs no resolver.
        let port = text.strip_prefix("localhost:").ok_or(problem)?;
        let port = port.parse().map_err(|_| problem)?;
        Ok(SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port))
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for Cores {
    fn parse(text: &str) -> Result<Self, String> {
        let problem =
            || "must be `all`, a number of cores, or a list of CPUs such as 0,2-3".to_owned();
        if text == "all" {
            return Ok(Cores::All);
        }
        if let Ok(count) = text.parse::<usize>() {
            return if count == 0 || count > crate::limits::CORES_MAX {
                Err(problem())
            } else {
                Ok(Cores::Count(count))
            };
        }
        let mut list = Vec::new();
        for part in text.split(',') {
            let part = part.trim();
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: usize = first.parse().map_err(|_| problem())?;
            let last: usize = last.parse().map_err(|_| problem())?;
            if first > last || last - first >= crate::limits::CORES_MAX {
                return Err(problem());
            }
            list.extend(first..=last);
        }
        let mut sorted = list.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() == list.len() {
            Ok(Cores::List(list))
        } else {
            Err("names a CPU twice".into())
        }
    }
    fn show(&self) -> String {
        match self {
            Cores::All => "all".into(),
            Cores::Count(count) => count.to_string(),
            // A list of one CPU is written as a range, or it would read as a number of cores.
            Cores::List(list) if list.len() == 1 => format!("{0}-{0}", list[0]),
            Cores::List(list) => list
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(","),
        }
    }
    fn magnitude(&self) -> Option<u64> {
        let count = match self {
            Cores::All => return None,
            Cores::Count(count) => *count,
            Cores::List(list) => list.len(),
        };
        Some(count as u64)
    }
}

impl Setting for Endpoints {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Endpoints::Auto);
        }
        text.parse()
            .map(Endpoints::Count)
            .map_err(|_| "must be `auto` or a number".into())
    }
    fn show(&self) -> String {
        match self {
            Endpoints::Auto => "auto".into(),
            Endpoints::Count(count) => count.to_string(),
        }
    }
    fn magnitude(&self) -> Option<u64> {
        match self {
            Endpoints::Auto => None,
            Endpoints::Count(count) => Some(u64::from(*count)),
        }
    }
}

macro_rules! word_setting {
    ($type:ty { $($word:literal => $value:path),* }) => {
        impl Setting for $type {
            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok($value),)*
                    _ => Err(format!("must be one of: {}", [$($word),*].join(", "))),
                }
            }
            fn show(&self) -> String {
                match self {
                    $($value => $word.to_owned(),)*
                }
            }
        }
    };
}
word_setting!(CommitMode { "dsync" => CommitMode::Dsync, "fdatasync" => CommitMode::Fdatasync });
word_setting!(LogFormat { "text" => LogFormat::Text, "json" => LogFormat::Json });

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is shown can be typed. Method: round trips of every kind of value.
    #[test]
    fn shown_values_read_back() {
        fn trip<T: Setting + PartialEq + std::fmt::Debug>(text: &str, shown: &str) {
            let value = T::parse(text).expect("valid");
            assert_eq!(value.show(), shown);
            assert_eq!(T::parse(shown).expect("shown text is valid"), value);
        }
        trip::<u64>("67108864", "64MiB");
        trip::<u64>("1_048_588", "1048588");
        trip::<u64>("2 MB", "2000000");
        trip::<Cores>("all", "all");
        trip::<Cores>("0,2-3", "0,2,3");
        trip::<Cores>("3-3", "3-3");
        trip::<Cores>("4", "4");
        trip::<Endpoints>("auto", "auto");
        trip::<SocketAddr>("localhost:0", "127.0.0.1:0");
        trip::<CommitMode>("dsync", "dsync");
        trip::<Option<String>>("", "");
        trip::<bool>("no", "false");
    }

    /// Goal: nonsense is refused. Method: one bad text a kind.
    #[test]
    fn nonsense_is_refused() {
        assert!(u64::parse("64 bananas").is_err());
        assert!(u64::parse("99999999999GiB").is_err());
        assert!(u64::parse("-1").is_err());
        assert!(Cores::parse("0").is_err());
        assert!(Cores::parse("3-1").is_err());
        assert!(Cores::parse("1,1").is_err());
        assert!(SocketAddr::parse("9092").is_err());
        assert!(CommitMode::parse("never").is_err());
        assert!(bool::parse("maybe").is_err());
    }
}
