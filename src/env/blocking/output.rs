//! Standard output for data, standard error for everything else.
//!
//! A reader that closes the pipe ends the process quietly, as with every Unix tool; a full disk
//! behind standard output is an error that reaches the exit code. The standard library's own
//! standard output would panic for the first and hide some of the second.

use crate::env::error::at;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

/// What a shell shows for a process that SIGPIPE ended.
const BROKEN_PIPE_STATUS: i32 = 141;

/// A buffered place for data: standard output or a file. [`Output::flush`] it before the process
/// ends and after each burst that someone may be waiting for.
pub struct Output {
    writer: BufWriter<File>,
    name: String,
    terminal: bool,
}

impl Output {
    /// Standard output.
    ///
    /// # Errors
    /// If the process was started without one.
    pub fn standard() -> io::Result<Output> {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let owned = stdout.as_fd().try_clone_to_owned();
        let owned = owned.map_err(|error| at("use", "standard output".to_owned(), error))?;
        let name = "standard output".to_owned();
        Ok(Output {
            writer: BufWriter::new(File::from(owned)),
            name,
            terminal,
        })
    }

    /// A file, made or emptied; `-` is standard output.
    ///
    /// # Errors
    /// Names the file.
    pub fn file(path: &Path) -> io::Result<Output> {
        if path == Path::new("-") {
            return Output::standard();
        }
        let name = path.display().to_string();
        let file = File::create(path).map_err(|error| at("create", name.clone(), error))?;
        Ok(Output {
            writer: BufWriter::new(file),
            name,
            terminal: false,
        })
    }

    /// Whether a person is looking: colours, tables and pictures are for them.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    fn conclude(&self, outcome: io::Result<()>) -> io::Result<()> {
        match outcome {
            // SAFETY: `_exit` only ends the process; what is buffered has no reader.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => unsafe {
                libc::_exit(BROKEN_PIPE_STATUS)
            },
            other => other.map_err(|error| at("write to", self.name.clone(), error)),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let outcome = self.writer.write_all(bytes);
        self.conclude(outcome)
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = self.writer.flush();
        self.conclude(outcome)
    }
}

/// A line on standard error. A dead standard error is not worth failing for.
pub fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Columns and rows of the terminal on standard output, if it is one.
#[must_use]
pub fn terminal_size() -> Option<(u16, u16)> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: fills one struct.
    let outcome = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (outcome == 0 && size.ws_col > 0).then_some((size.ws_col, size.ws_row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    #[ignore = "runs as a child of closed_pipe_ends_quietly"]
    fn child_writes_for_ever() {
        if !crate::env::process::is_test_child() {
            return;
        }
        let mut output = Output::standard().expect("standard output");
        loop {
            output
                .write_all(b"drop after drop after drop\n")
                .expect("written");
        }
    }

    /// Goal: when the reader closes the pipe, the writer ends with 141 and says nothing. Method: a
    /// child whose output is dropped after the first bytes (SIGPIPE is ignored in it, as in Rust).
    #[test]
    fn closed_pipe_ends_quietly() {
        let test = "env::blocking::output::tests::child_writes_for_ever";
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .env(crate::env::process::TEST_CHILD, "1")
            .args([
                test,
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("child");
        // The test harness of the child speaks first.
        let lines = io::BufReader::new(child.stdout.take().expect("piped"));
        let mut lines = io::BufRead::lines(lines).map_while(Result::ok);
        assert!(
            lines.any(|line| line.starts_with("drop after drop")),
            "no data came"
        );
        drop(lines);
        let output = child.wait_with_output().expect("ended");
        assert_eq!(output.status.code(), Some(BROKEN_PIPE_STATUS), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }

    /// Goal: a full disk is an error, with number and name, by the time of the flush. Method: the
    /// kernel's full device.
    #[test]
    fn full_disk_is_an_error() {
        let mut output = Output::file(Path::new("/dev/full")).expect("opened");
        let outcome = output.write_all(b"drop").and_then(|()| output.flush());
        let error = outcome.expect_err("full");
        assert_eq!(crate::env::raw_os_error(&error), Some(libc::ENOSPC));
        assert!(error.to_string().contains("/dev/full"), "{error}");
    }
}
