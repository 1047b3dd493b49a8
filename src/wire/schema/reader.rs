//! Reads Kafka's primitives from a frame, never past its end and never by an unchecked count.

use bytes::Bytes;

use super::{DecodeError, Form, Text};
use crate::limits::{ARRAY_ELEMENTS_MAX, TAGGED_FIELDS_MAX};

/// A cursor over one frame. What it hands out are slices of that frame.
pub struct Reader<'a> {
    source: &'a Bytes,
    position: usize,
    /// Exclusive; lowered while a tagged field is read. Always `position ≤ end ≤ source.len()`.
    end: usize,
    form: Form,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `source`.
    #[must_use]
    pub fn new(source: &'a Bytes, form: Form) -> Self {
        Self {
            source,
            position: 0,
            end: source.len(),
            form,
        }
    }

    /// The layout being read.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// Bytes not yet read.
    #[must_use]
    pub fn left(&self) -> usize {
        self.end - self.position
    }

    /// Bytes read so far.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// The next `length` bytes, borrowed.
    pub(super) fn raw(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let left = self.left();
        if length > left {
            return Err(DecodeError::Truncated {
                needed: length,
                left,
            });
        }
        let start = self.position;
        self.position += length;
        Ok(&self.source[start..self.position])
    }

    /// The next `N` bytes by value.
    pub(super) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut value = [0; N];
        value.copy_from_slice(self.raw(N)?);
        Ok(value)
    }

    /// The next `length` bytes as a slice that keeps the frame alive.
    pub(super) fn shared(&mut self, length: usize) -> Result<Bytes, DecodeError> {
        self.raw(length)?;
        Ok(self.source.slice(self.position - length..self.position))
    }

    /// The bytes from `start` up to where the reader stands.
    pub(super) fn since(&self, start: usize) -> Bytes {
        self.source.slice(start..self.position)
    }

    /// Kafka's unsigned varint: at most five bytes, at most `u32::MAX`.
    pub(super) fn unsigned_varint(&mut self) -> Result<u32, DecodeError> {
        let mut value: u32 = 0;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.fixed()?;
            let bits = u32::from(byte & 0x7f);
            if shift == 28 && bits > 0x0f {
                return Err(DecodeError::InvalidVarint);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::InvalidVarint)
    }

    /// A length prefix: compact in flexible versions, else of 16 or 32 bits. `None` is null.
    fn length(&mut self, short: bool) -> Result<Option<usize>, DecodeError> {
        let length = if self.form.flexible {
            i64::from(self.unsigned_varint()?) - 1
        } else if short {
            i64::from(i16::from_be_bytes(self.fixed()?))
        } else {
            i64::from(i32::from_be_bytes(self.fixed()?))
        };
        match length {
            -1 => Ok(None),
            _ => usize::try_from(length)
                .map(Some)
                .map_err(|_| DecodeError::NegativeLength { length }),
        }
    }

    /// A nullable string.
    pub(super) fn text(&mut self) -> Result<Option<Text>, DecodeError> {
        let Some(length) = self.length(true)? else {
            return Ok(None);
        };
        let bytes = self.shared(length)?;
        let text = Text::try_from(bytes).map_err(|_| DecodeError::InvalidUtf8)?;
        Ok(Some(text))
    }

    /// A nullable byte field.
    pub(super) fn blob(&mut self) -> Result<Option<Bytes>, DecodeError> {
        match self.length(false)? {
            Some(length) => self.shared(length).map(Some),
            None => Ok(None),
        }
    }

    /// A nullable array's count, believed only if that many elements can be in the bytes left.
    pub(super) fn count(&mut self, element_bytes_min: usize) -> Result<Option<usize>, DecodeError> {
        let Some(count) = self.length(false)? else {
            return Ok(None);
        };
        self.believe(count, element_bytes_min, ARRAY_ELEMENTS_MAX)?;
        Ok(Some(count))
    }

    pub(super) fn believe(
        &self,
        count: usize,
        bytes_min: usize,
        max: usize,
    ) -> Result<(), DecodeError> {
        let left = self.left();
        let fits = count <= max && count.saturating_mul(bytes_min.max(1)) <= left;
        if fits {
            Ok(())
        } else {
            Err(DecodeError::CountTooLarge { count, left })
        }
    }

    /// The tagged fields that end a flexible structure. `known` reads the value of a tag it knows
    /// and says so; an unknown field is stepped over.
    pub(in crate::wire) fn tags(
        &mut self,
        mut known: impl FnMut(u32, &mut Self) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        if !self.form.flexible {
            return Ok(());
        }
        let count = self.unsigned_varint()? as usize;
        self.believe(count, 2, TAGGED_FIELDS_MAX)?;
        let mut previous = None;
        for _ in 0..count {
            let tag = self.unsigned_varint()?;
            if previous.is_some_and(|previous| tag <= previous) {
                return Err(DecodeError::TagOrder { tag });
            }
            previous = Some(tag);
            let size = self.unsigned_varint()? as usize;
            let left = self.left();
            if size > left {
                return Err(DecodeError::Truncated { needed: size, left });
            }
            self.tag_value(tag, size, &mut known)?;
        }
        Ok(())
    }

    fn tag_value(
        &mut self,
        tag: u32,
        size: usize,
        known: &mut impl FnMut(u32, &mut Self) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        let end = self.end;
        self.end = self.position + size;
        let recognized = known(tag, self)?;
        let filled = self.position == self.end;
        if recognized && !filled {
            return Err(DecodeError::TagSize { tag });
        }
        self.position = self.end;
        self.end = end;
        Ok(())
    }
}
