//! Why a verb failed, and the exit code that says so. A message says what happened, where, and what
//! to do.

use crate::base::exit::ExitCode;
use crate::config::ConfigError;
use std::fmt;
use std::io;

/// Why a verb failed.
#[derive(Debug)]
pub enum AdminError {
    /// Arguments that do not make sense together.
    Usage(String),
    /// The configuration.
    Config(ConfigError),
    /// Standard output could not be written.
    Output(io::Error),
    /// Input could not be read: what, and why.
    Input(String, io::Error),
    /// The broker could not be reached, or went away.
    Broker(String),
    /// The broker, or the data, refused: everything worth saying.
    Failed(String),
    /// A file of the data directory or probe could not be used.
    Data(String),
    /// The data directory is damaged; the report is printed already.
    Damaged,
    /// The host lacks something.
    Host(String),
    /// The host should be changed; what, is printed already.
    Untuned,
    /// What failed was reported line by line already.
    Reported,
    /// The verb did what it should, and what it found has an exit code of its own.
    Ended(ExitCode, String),
}

impl AdminError {
    /// The exit status.
    #[must_use]
    pub fn status(&self) -> i32 {
        match self {
            AdminError::Usage(_)
            | AdminError::Output(_)
            | AdminError::Input(..)
            | AdminError::Broker(_)
            | AdminError::Failed(_)
            | AdminError::Reported => ExitCode::Misuse.code(),
            AdminError::Config(_) => ExitCode::Configuration.code(),
            AdminError::Data(_) | AdminError::Damaged => ExitCode::DataRefused.code(),
            AdminError::Host(_) | AdminError::Untuned => ExitCode::Host.code(),
            AdminError::Ended(code, _) => code.code(),
        }
    }

    /// Whether there is nothing more to say on standard error.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        matches!(
            self,
            AdminError::Damaged | AdminError::Untuned | AdminError::Reported
        )
    }
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdminError::Usage(text)
            | AdminError::Broker(text)
            | AdminError::Failed(text)
            | AdminError::Data(text)
            | AdminError::Host(text)
            | AdminError::Ended(_, text) => f.write_str(text),
            AdminError::Config(error) => error.fmt(f),
            // These name the operation and its subject themselves.
            AdminError::Output(error) => error.fmt(f),
            AdminError::Input(what, error) => write!(f, "{what}: {error}"),
            AdminError::Damaged => f.write_str("the data directory is damaged"),
            AdminError::Untuned => f.write_str("the host should be changed"),
            AdminError::Reported => f.write_str("not everything succeeded"),
        }
    }
}

impl std::error::Error for AdminError {}

impl From<ConfigError> for AdminError {
    fn from(error: ConfigError) -> Self {
        AdminError::Config(error)
    }
}
