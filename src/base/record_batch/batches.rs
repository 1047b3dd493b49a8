//! Walks batches that lie one after the other, as an answer to a fetch holds them.

use super::{BatchError, BatchView};

/// Iterator over concatenated batches. After an error it ends.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
    partial_tail: bool,
}

impl<'a> Batches<'a> {
    /// Over bytes that must be whole batches.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            partial_tail: false,
        }
    }

    /// Over bytes that may end inside a batch, as a broker may cut an answer at a client's limit;
    /// the cut batch is left out.
    #[must_use]
    pub fn with_partial_tail(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            partial_tail: true,
        }
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<BatchView<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match BatchView::split(self.rest) {
            Ok((batch, rest)) => {
                assert!(rest.len() < self.rest.len(), "every batch has bytes");
                self.rest = rest;
                Some(Ok(batch))
            }
            Err(error) => {
                self.rest = &[];
                let cut = self.partial_tail && matches!(error, BatchError::Truncated { .. });
                (!cut).then_some(Err(error))
            }
        }
    }
}
