//! I/O errors that say which operation failed on what, and keep the kernel's number.
//!
//! The standard library's `io::Error` holds either a number or a text, never both, so the text and
//! the original travel inside as an [`OperationError`]; [`raw_os_error`] finds the number again.

use std::fmt;
use std::io;
use std::path::Path;

/// What was attempted, on what, and how the kernel answered.
#[derive(Debug)]
pub struct OperationError {
    operation: &'static str,
    subject: String,
    source: io::Error,
}

impl fmt::Display for OperationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "cannot {} {}: {}",
            self.operation, self.subject, self.source
        )
    }
}

impl std::error::Error for OperationError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Names operation (an infinitive: "open", "write 4096 bytes to") and path in an error; kind and
/// number stay.
#[must_use]
pub fn at_path(operation: &'static str, path: &Path, source: io::Error) -> io::Error {
    at(operation, path.display().to_string(), source)
}

/// Names operation and subject (an address, a file and position) in an error; kind and number stay.
#[must_use]
pub fn at(operation: &'static str, subject: String, source: io::Error) -> io::Error {
    io::Error::new(
        source.kind(),
        OperationError {
            operation,
            subject,
            source,
        },
    )
}

/// The kernel's error number, whether or not the error carries an operation's name.
#[must_use]
pub fn raw_os_error(error: &io::Error) -> Option<i32> {
    error.raw_os_error().or_else(|| {
        let inner = error.get_ref()?.downcast_ref::<OperationError>()?;
        raw_os_error(&inner.source)
    })
}

/// glommio's errors as the `io::Error` they began as, without losing the kernel's number.
pub(super) fn from_glommio(error: glommio::GlommioError<()>) -> io::Error {
    match error {
        glommio::GlommioError::IoError(source)
        | glommio::GlommioError::EnhancedIoError { source, .. } => source,
        other => io::Error::from(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: text, kind and number all survive, also when named twice. Method: wrap ENOSPC twice.
    #[test]
    fn number_kind_and_text_survive() {
        let source = io::Error::from_raw_os_error(28);
        let once = at_path("allocate", Path::new("/data/x.seg"), source);
        let twice = at("prepare segment", "7".to_owned(), once);
        assert_eq!(raw_os_error(&twice), Some(28));
        assert_eq!(twice.kind(), io::ErrorKind::StorageFull);
        let text = twice.to_string();
        assert!(text.contains("cannot allocate /data/x.seg"), "{text}");
        assert!(text.contains("os error 28"), "{text}");
    }
}
