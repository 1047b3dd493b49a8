//! Aligned buffers for `O_DIRECT`: one owner while it is filled, then shared and immutable.

use std::ops::Deref;

/// An aligned, zeroed buffer with one owner. `!Send`: it belongs to the executor that made it.
pub struct Buffer {
    _private: (),
}

impl Buffer {
    /// Length in bytes; a multiple of 4,096.
    #[must_use]
    pub fn len(&self) -> usize {
        unimplemented!()
    }

    /// The bytes, to be filled.
    pub fn as_mut(&mut self) -> &mut [u8] {
        unimplemented!()
    }

    /// Ends the filling: from here on the bytes are shared and immutable.
    #[must_use]
    pub fn freeze(self) -> SharedBuffer {
        unimplemented!()
    }
}

/// Immutable bytes, shared by reference count on one executor (a block that was written, or a read).
#[derive(Clone)]
pub struct SharedBuffer {
    _private: (),
}

impl SharedBuffer {
    /// A view of `range` that keeps the whole buffer alive.
    ///
    /// # Panics
    /// If the range leaves the buffer.
    #[must_use]
    pub fn slice(&self, range: std::ops::Range<usize>) -> SharedBuffer {
        let _ = range;
        unimplemented!()
    }
}

impl Deref for SharedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        unimplemented!()
    }
}
