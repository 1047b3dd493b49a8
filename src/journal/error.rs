//! What can go wrong in a journal, and which exit code each failure ends in.

use crate::base::exit::ExitCode;
use crate::base::ids::Position;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A failed write or flush: from here on no ticket is ever released.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Poisoned {
    /// What failed, on which file, with the kernel's words.
    pub reason: Arc<str>,
}

impl fmt::Display for Poisoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the journal stopped after a disk failure: {}",
            self.reason
        )
    }
}

impl std::error::Error for Poisoned {}

/// Why a journal could not be opened, checkpointed or closed.
#[derive(Debug)]
pub enum JournalError {
    /// The numbers of the configuration contradict each other.
    Config(String),
    /// An operation on a file failed; the error's text names operation and path.
    Io(io::Error),
    /// Something that was acknowledged cannot be read, and going on would hide it.
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Where in the journal.
        position: Position,
        /// What is wrong.
        what: String,
    },
    /// Written by a newer Penstock.
    Version {
        /// The file.
        file: PathBuf,
        /// The format version found.
        version: u16,
        /// What exactly is unknown.
        what: String,
    },
    /// A file of another shard or another store.
    Foreign {
        /// The file.
        file: PathBuf,
        /// Whose it is.
        what: String,
    },
    /// A file that must be there is not.
    Missing {
        /// The file.
        file: PathBuf,
        /// Why it must be there.
        what: String,
    },
    /// The journal was poisoned.
    Poisoned(Poisoned),
}

impl JournalError {
    /// The exit code this failure ends in.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) => ExitCode::Configuration,
            Self::Io(_) | Self::Poisoned(_) => ExitCode::DiskFailed,
            Self::Corrupt { .. }
            | Self::Version { .. }
            | Self::Foreign { .. }
            | Self::Missing { .. } => ExitCode::DataRefused,
        }
    }

    pub(super) fn corrupt(file: &Path, position: Position, what: impl Into<String>) -> Self {
        Self::Corrupt {
            file: file.to_owned(),
            position,
            what: what.into(),
        }
    }

    pub(super) fn foreign(file: &Path, what: impl Into<String>) -> Self {
        Self::Foreign {
            file: file.to_owned(),
            what: what.into(),
        }
    }

    pub(super) fn missing(file: &Path, what: impl Into<String>) -> Self {
        Self::Missing {
            file: file.to_owned(),
            what: what.into(),
        }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(what) => write!(f, "journal configuration: {what}"),
            Self::Io(error) => error.fmt(f),
            Self::Corrupt {
                file,
                position,
                what,
            } => write!(
                f,
                "{} is corrupt at journal position {position}: {what}; nothing was changed, \
                 `penstock verify` lists the damage",
                file.display()
            ),
            Self::Version {
                file,
                version,
                what,
            } => write!(
                f,
                "{} has format version {version} ({what}), which this Penstock does not know; \
                 use the version that wrote it, or a newer one",
                file.display()
            ),
            Self::Foreign { file, what } => {
                write!(f, "{} does not belong here: {what}", file.display())
            }
            Self::Missing { file, what } => {
                write!(f, "{} is missing: {what}", file.display())
            }
            Self::Poisoned(poisoned) => poisoned.fmt(f),
        }
    }
}

impl std::error::Error for JournalError {}

impl From<io::Error> for JournalError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Poisoned> for JournalError {
    fn from(poisoned: Poisoned) -> Self {
        Self::Poisoned(poisoned)
    }
}

/// Why an extent could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// A batch does not match its checksum, or cannot be read from the device.
    Damaged {
        /// The segment file.
        file: PathBuf,
        /// Where in the journal.
        position: Position,
        /// What is wrong.
        what: String,
    },
    /// The extent's segment is gone: it was released.
    Gone(Position),
    /// The file could not be opened.
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged {
                file,
                position,
                what,
            } => write!(
                f,
                "{} is damaged at journal position {position}: {what}",
                file.display()
            ),
            Self::Gone(position) => write!(f, "journal position {position} was released"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}
