//! Data goes to standard output through one buffer whose every error is seen; everything else goes
//! to standard error. `println!` would panic when the reader of a pipe goes away.

use super::error::AdminError;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use serde_json::Value;
use std::io::{self, IsTerminal, Write};

const BUFFER_BYTES: usize = 64 << 10;

/// Standard output.
pub struct Output {
    writer: io::BufWriter<io::StdoutLock<'static>>,
}

impl Output {
    /// Takes standard output for the rest of the process.
    #[must_use]
    pub fn new() -> Output {
        Output {
            writer: io::BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock()),
        }
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// `Output`: the reader is gone, or the device is full.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), AdminError> {
        self.writer.write_all(bytes).map_err(AdminError::Output)
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
        self.writer.flush().map_err(AdminError::Output)
    }
}

impl Default for Output {
    fn default() -> Self {
        Output::new()
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
    let _ = writeln!(io::stderr(), "{text}");
}

/// Whether a person watches standard error.
#[must_use]
pub fn watched() -> bool {
    io::stderr().is_terminal()
}
