//! Cuts a byte stream into frames: four bytes of length, then that many bytes.
//!
//! Invariants: a length is checked before a byte is allocated on its account; the buffer grows only
//! with bytes that arrived, so a peer that announces 16 MiB and sends one byte costs one byte.
//! After an error the stream has no meaning any more and the splitter says so for ever.
//!
//! Sans-io: fed by whoever owns the socket.

use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

use crate::limits::FRAME_BYTES_MAX;

/// Bytes of the length before each frame.
pub const PREFIX_BYTES: usize = 4;
/// Shortest request: API key, version and correlation id.
pub const REQUEST_BYTES_MIN: usize = 8;
/// Shortest response: a correlation id.
pub const RESPONSE_BYTES_MIN: usize = 4;

/// Why a length was refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FrameError {
    /// Below zero.
    Negative {
        /// The length as it came.
        length: i32,
    },
    /// Shorter than any header.
    TooShort {
        /// The length as it came.
        length: usize,
    },
    /// Above the limit.
    TooLong {
        /// The length as it came.
        length: usize,
        /// The limit.
        max: usize,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Negative { length } => write!(f, "a frame of {length} bytes"),
            Self::TooShort { length } => write!(f, "a frame of only {length} bytes"),
            Self::TooLong { length, max } => {
                write!(f, "a frame of {length} bytes; the limit is {max}")
            }
        }
    }
}

impl std::error::Error for FrameError {}

/// What lengths are accepted.
#[derive(Clone, Copy, Debug)]
pub struct FrameBounds {
    /// Shortest frame, in bytes.
    pub bytes_min: usize,
    /// Longest frame, in bytes.
    pub bytes_max: usize,
}

impl FrameBounds {
    /// What a broker accepts.
    pub const REQUEST: Self = Self {
        bytes_min: REQUEST_BYTES_MIN,
        bytes_max: FRAME_BYTES_MAX,
    };

    /// What a client accepts that asks for at most `bytes_max`.
    #[must_use]
    pub const fn response(bytes_max: usize) -> Self {
        Self {
            bytes_min: RESPONSE_BYTES_MIN,
            bytes_max,
        }
    }

    /// The frame's length in bytes, from its prefix.
    ///
    /// # Errors
    /// The length is negative or out of bounds.
    pub fn check(self, prefix: [u8; PREFIX_BYTES]) -> Result<usize, FrameError> {
        let length = i32::from_be_bytes(prefix);
        let Ok(bytes) = usize::try_from(length) else {
            return Err(FrameError::Negative { length });
        };
        if bytes < self.bytes_min {
            Err(FrameError::TooShort { length: bytes })
        } else if bytes > self.bytes_max {
            Err(FrameError::TooLong {
                length: bytes,
                max: self.bytes_max,
            })
        } else {
            Ok(bytes)
        }
    }
}

/// Cuts one connection's stream into frames.
#[derive(Debug)]
pub struct FrameSplitter {
    bounds: FrameBounds,
    buffer: BytesMut,
    failed: Option<FrameError>,
}

impl FrameSplitter {
    /// A splitter for a stream that starts at a length.
    #[must_use]
    pub fn new(bounds: FrameBounds) -> Self {
        assert!(bounds.bytes_min <= bounds.bytes_max);
        Self {
            bounds,
            buffer: BytesMut::new(),
            failed: None,
        }
    }

    /// Takes bytes that arrived.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next whole frame without its length, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// A length was refused; the same error comes back ever after.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, FrameError> {
        let Some(length) = self.pending()? else {
            return Ok(None);
        };
        if self.buffer.len() < PREFIX_BYTES + length {
            return Ok(None);
        }
        self.buffer.advance(PREFIX_BYTES);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    /// Bytes still to come before the next frame is whole: a hint how much to read.
    ///
    /// # Errors
    /// A length was refused.
    pub fn wanted(&mut self) -> Result<usize, FrameError> {
        let whole = self.pending()?.unwrap_or(0) + PREFIX_BYTES;
        Ok(whole.saturating_sub(self.buffer.len()))
    }

    /// Bytes held that belong to no frame handed out yet.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// The checked length of the frame at the front, if its prefix is here.
    fn pending(&mut self) -> Result<Option<usize>, FrameError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let Some(prefix) = self.buffer.first_chunk::<PREFIX_BYTES>() else {
            return Ok(None);
        };
        let checked = self.bounds.check(*prefix);
        self.failed = checked.err();
        checked.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every bound of the length is enforced. Method: the values at and beside each bound.
    #[test]
    fn lengths_are_checked_before_anything_is_allocated() {
        let check = |length: i32| FrameBounds::REQUEST.check(length.to_be_bytes());
        assert_eq!(check(-1), Err(FrameError::Negative { length: -1 }));
        assert_eq!(check(0), Err(FrameError::TooShort { length: 0 }));
        assert_eq!(check(7), Err(FrameError::TooShort { length: 7 }));
        assert_eq!(check(8), Ok(8));
        assert_eq!(check(FRAME_BYTES_MAX as i32), Ok(FRAME_BYTES_MAX));
        let above = FRAME_BYTES_MAX + 1;
        let error = FrameError::TooLong {
            length: above,
            max: FRAME_BYTES_MAX,
        };
        assert_eq!(check(above as i32), Err(error));
    }

    /// Goal: a frame comes out whole however its bytes arrive. Method: three frames, one byte at a
    /// time; each must appear with its last byte and not before.
    #[test]
    fn frames_appear_with_their_last_byte() {
        let bodies: [&[u8]; 3] = [b"12345678", b"123456789", &[7; 300]];
        let mut splitter = FrameSplitter::new(FrameBounds::REQUEST);
        for body in bodies {
            let mut stream = (body.len() as i32).to_be_bytes().to_vec();
            stream.extend_from_slice(body);
            let (last, head) = stream.split_last().expect("not empty");
            for byte in head {
                splitter.feed(&[*byte]);
                assert_eq!(splitter.next_frame(), Ok(None));
            }
            assert_eq!(splitter.wanted(), Ok(1));
            splitter.feed(&[*last]);
            assert_eq!(splitter.next_frame(), Ok(Some(Bytes::from_static(body))));
        }
        assert_eq!(splitter.buffered(), 0);
        assert_eq!(splitter.wanted(), Ok(PREFIX_BYTES));
    }

    /// Goal: after a bad length nothing is believed. Method: a negative length, then a good frame.
    #[test]
    fn a_refused_length_ends_the_stream() {
        let mut splitter = FrameSplitter::new(FrameBounds::REQUEST);
        splitter.feed(&(-5i32).to_be_bytes());
        let refused = Err(FrameError::Negative { length: -5 });
        assert_eq!(splitter.next_frame(), refused);
        splitter.feed(&[0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(splitter.next_frame(), refused);
    }
}
