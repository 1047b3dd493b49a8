//! Aligned buffers for `O_DIRECT`: one owner while it is filled, then shared and immutable.
//!
//! Real ones come from glommio's pool (registered with the ring where the kernel allowed it), which
//! hands memory out unwiped. Who fills a buffer sets every byte of it, so that padding on disk
//! never shows old memory; simulated ones come full of a pattern, so that a forgotten byte is
//! found.

use glommio::io::{DmaBuffer, ReadResult};
use std::ops::{Deref, Range};
use std::rc::Rc;

/// What simulated memory holds before it is set.
const UNWIPED: u8 = 0xa5;

/// An aligned buffer with one owner. `!Send`: it belongs to the executor that made it.
pub struct Buffer {
    memory: Memory,
}

enum Memory {
    Dma(DmaBuffer),
    Heap(Vec<u8>),
}

impl Buffer {
    /// Takes over a DMA buffer, as it is.
    pub(super) fn from_dma(dma: DmaBuffer) -> Buffer {
        Buffer {
            memory: Memory::Dma(dma),
        }
    }

    /// A buffer of plain memory (simulation), full of what nobody wrote.
    #[must_use]
    pub(super) fn heap_unwiped(len_bytes: usize) -> Buffer {
        Buffer {
            memory: Memory::Heap(vec![UNWIPED; len_bytes]),
        }
    }

    /// Length in bytes; a multiple of 4,096.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.memory {
            Memory::Dma(dma) => dma.len(),
            Memory::Heap(bytes) => bytes.len(),
        }
    }

    /// Whether the buffer holds no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, to be filled.
    #[expect(
        clippy::should_implement_trait,
        reason = "an inherent method needs no turbofish"
    )]
    pub fn as_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Dma(dma) => dma.as_bytes_mut(),
            Memory::Heap(bytes) => bytes,
        }
    }

    /// Cuts the buffer to its first `len_bytes`; it cannot grow again.
    ///
    /// # Panics
    /// If the buffer is shorter.
    pub fn truncate(&mut self, len_bytes: usize) {
        assert!(len_bytes <= self.len(), "a buffer can only be cut");
        match &mut self.memory {
            Memory::Dma(dma) => dma.trim_to_size(len_bytes),
            Memory::Heap(bytes) => bytes.truncate(len_bytes),
        }
    }

    /// Ends the filling: from here on the bytes are shared and immutable.
    #[must_use]
    pub fn freeze(self) -> SharedBuffer {
        let range = 0..self.len();
        let backing = match self.memory {
            Memory::Dma(dma) => Backing::Dma(Rc::new(dma)),
            Memory::Heap(bytes) => Backing::Heap(Rc::new(bytes)),
        };
        SharedBuffer { backing, range }
    }
}

/// Immutable bytes, shared by reference count on one executor (a block that was written, or a
/// read).
#[derive(Clone)]
pub struct SharedBuffer {
    backing: Backing,
    range: Range<usize>,
}

#[derive(Clone)]
enum Backing {
    Dma(Rc<DmaBuffer>),
    Read(ReadResult),
    Heap(Rc<Vec<u8>>),
}

impl SharedBuffer {
    /// The result of a read.
    pub(super) fn from_read(read: ReadResult) -> SharedBuffer {
        let range = 0..read.len();
        SharedBuffer {
            backing: Backing::Read(read),
            range,
        }
    }

    /// The DMA buffer behind this view, if the view shows the whole of it: it can be written as it
    /// is. Anything else must be copied first.
    pub(super) fn whole_dma(&self) -> Option<&Rc<DmaBuffer>> {
        match &self.backing {
            Backing::Dma(dma) if self.range == (0..dma.len()) => Some(dma),
            Backing::Dma(_) | Backing::Read(_) | Backing::Heap(_) => None,
        }
    }

    /// A view of `range` that keeps the whole buffer alive.
    ///
    /// # Panics
    /// If the range leaves the buffer.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> SharedBuffer {
        assert!(range.start <= range.end, "a slice starts after its end");
        assert!(range.end <= self.range.len(), "a slice leaves its buffer");
        let start = self.range.start + range.start;
        SharedBuffer {
            backing: self.backing.clone(),
            range: start..start + range.len(),
        }
    }
}

impl From<Vec<u8>> for SharedBuffer {
    fn from(bytes: Vec<u8>) -> SharedBuffer {
        let range = 0..bytes.len();
        SharedBuffer {
            backing: Backing::Heap(Rc::new(bytes)),
            range,
        }
    }
}

impl Deref for SharedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        let bytes: &[u8] = match &self.backing {
            Backing::Dma(dma) => dma.as_bytes(),
            Backing::Read(read) => read,
            Backing::Heap(bytes) => bytes,
        };
        &bytes[self.range.clone()]
    }
}

impl std::fmt::Debug for SharedBuffer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SharedBuffer({} bytes)", self.range.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: slices of slices address the same bytes. Method: compare with slices of the vector.
    #[test]
    fn slices_nest() {
        let bytes: Vec<u8> = (0..=255).collect();
        let shared = SharedBuffer::from(bytes.clone());
        let outer = shared.slice(16..200);
        let inner = outer.slice(4..100);
        assert_eq!(&*outer, &bytes[16..200]);
        assert_eq!(&*inner, &bytes[20..116]);
        assert!(inner.slice(96..96).is_empty());
    }

    /// Goal: a slice cannot leave its view, even where the backing is longer. Method: one byte
    /// over.
    #[test]
    #[should_panic(expected = "a slice leaves its buffer")]
    fn slice_stays_inside_its_view() {
        let outer = SharedBuffer::from(vec![0; 100]).slice(0..10);
        let _ = outer.slice(0..11);
    }
}
