//! Records as the command line reads and writes them.

pub mod format;
pub mod json;
pub mod time;

/// A header: its key, and its value, which may be null.
pub type Header = (String, Option<Vec<u8>>);

/// A record that was read from input and is to be sent.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Record {
    /// The partition it is meant for, if that is given.
    pub partition: Option<i32>,
    /// Its time, milliseconds since 1970; now if it is not given.
    pub timestamp_ms: Option<i64>,
    /// Its key; null is not empty.
    pub key: Option<Vec<u8>>,
    /// Its value; null is a tombstone.
    pub value: Option<Vec<u8>>,
    /// Its headers, in order; keys may repeat.
    pub headers: Vec<Header>,
}

impl Record {
    /// An upper bound of what it takes in a batch, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        const FRAME: usize = 32;
        let part = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len) + 5;
        let headers = self.headers.iter();
        let headers: usize = headers
            .map(|(key, value)| key.len() + 5 + part(value))
            .sum();
        FRAME + part(&self.key) + part(&self.value) + headers
    }
}
