//! Data goes to standard output through one buffer whose every error is seen; everything else goes
//! to standard error. `println!` would panic when the reader of a pipe goes away.

use super::error::AdminError;
use crate::env::blocking;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use serde_json::Value;
use std::io::{self, IsTerminal, Write};

const BUFFER_BYTES: usize = 64 << 10;

/// Standard output. When its reader goes away the process ends quietly, in `env`.
pub struct Output {
    inner: blocking::Output,
    buffer: Vec<u8>,
}

impl Output {
    /// Takes standard output.
    ///
    /// # Errors
    /// The process was started without one.
    pub fn new() -> Result<Output, AdminError> {
        let inner = blocking::Output::standard().map_err(AdminError::Output)?;
        Ok(Output {
            inner,
            buffer: Vec::with_capacity(2 * BUFFER_BYTES),
        })
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// `Output`: the device is full.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), AdminError> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES {
            self.pass_on()?;
        }
        Ok(())
    }

    fn pass_on(&mut self) -> Result<(), AdminError> {
        let written = self.inner.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(AdminError::Output)
    }

    /// Writes a line of text.
    ///
    /// # Errors
    /// As `bytes`.
    pub fn line(&mut self, text: &str) -> Result<(), AdminError> {
        self.bytes(text.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Writes a JSON document, indented.
    ///
    /// # Errors
    /// As `bytes`.
    pub fn json(&mut self, value: &Value) -> Result<(), AdminError> {
        self.line(&format!("{value:#}"))
    }

    /// Writes a table.
    ///
    /// # Errors
    /// As `bytes`.
    pub fn table(&mut self, table: &Table) -> Result<(), AdminError> {
        for line in table.lines() {
            self.line(line.trim_end())?;
        }
        Ok(())
    }

    /// Passes on what is buffered. The last call decides whether a verb succeeded: a full device
    /// shows only here.
    ///
    /// # Errors
    /// As `bytes`.
    pub fn flush(&mut self) -> Result<(), AdminError> {
        self.pass_on()?;
        self.inner.flush().map_err(AdminError::Output)
    }
}

/// A table without lines around cells: it can be read, cut and copied.
#[must_use]
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    if io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    table.set_header(header.iter().map(|text| Cell::new(text.to_uppercase())));
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// A cell of a number.
#[must_use]
pub fn number(value: impl ToString) -> Cell {
    Cell::new(value).set_alignment(CellAlignment::Right)
}

/// Says something to the person at the terminal. A dead standard error is no reason to fail.
pub fn note(text: &str) {
    blocking::warn(text);
}

/// Whether a person watches standard error.
#[must_use]
pub fn watched() -> bool {
    io::stderr().is_terminal()
}
