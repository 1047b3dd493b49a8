//! Writes Kafka's primitives into one growing buffer.

use bytes::{BufMut, Bytes, BytesMut};

use super::{EncodeError, Form, Wire};

/// The output of one frame. The first value that cannot be represented is remembered and makes
/// [`Writer::finish`] fail, so that the writers of fields need no error path.
pub struct Writer {
    buffer: BytesMut,
    form: Form,
    error: Option<EncodeError>,
}

impl Writer {
    /// An empty writer with room for `capacity` bytes.
    #[must_use]
    pub fn new(form: Form, capacity: usize) -> Self {
        Self {
            buffer: BytesMut::with_capacity(capacity),
            form,
            error: None,
        }
    }

    /// The layout being written.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// Changes the layout, from a header's to its body's.
    pub fn set_form(&mut self, form: Form) {
        self.form = form;
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether nothing is written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buffer.put_slice(bytes);
    }

    /// Remembers the first failure.
    pub fn fail(&mut self, error: EncodeError) {
        self.error.get_or_insert(error);
    }

    /// Kafka's unsigned varint.
    pub fn unsigned_varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.buffer.put_u8((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.buffer.put_u8(value as u8);
    }

    /// A length prefix; `None` is null. `short` chooses 16 bits where lengths are not compact.
    pub(super) fn length(&mut self, length: Option<usize>, short: bool) {
        if self.form.flexible {
            let Some(compact) = length.map_or(Some(0), |length| u32::try_from(length + 1).ok())
            else {
                return self.too_large(length);
            };
            self.unsigned_varint(compact);
        } else if short {
            let Ok(length) = length.map_or(Ok(-1), i16::try_from) else {
                let length = length.unwrap_or_default();
                return self.fail(EncodeError::StringTooLong { length });
            };
            self.raw(&length.to_be_bytes());
        } else {
            let Ok(value) = length.map_or(Ok(-1), i32::try_from) else {
                return self.too_large(length);
            };
            self.raw(&value.to_be_bytes());
        }
    }

    /// The length of a nullable byte field whose bytes the caller then appends with
    /// [`Writer::raw`]: how record data goes out as a list of chunks, copied once.
    pub fn blob_length(&mut self, length: Option<usize>) {
        self.length(length, false);
    }

    /// The count of a nullable array whose elements the caller then writes.
    pub fn count(&mut self, count: Option<usize>) {
        self.length(count, false);
    }

    fn too_large(&mut self, length: Option<usize>) {
        let length = length.unwrap_or_default();
        self.fail(EncodeError::TooLarge { length });
    }

    /// One tagged field: tag, size, value.
    pub fn tag<T: Wire>(&mut self, tag: u32, value: &T) {
        let mut inner = Writer::new(self.form, 32);
        value.write(&mut inner);
        if let Some(error) = inner.error {
            self.fail(error);
        }
        self.unsigned_varint(tag);
        match u32::try_from(inner.buffer.len()) {
            Ok(size) => self.unsigned_varint(size),
            Err(_) => self.too_large(Some(inner.buffer.len())),
        }
        self.raw(&inner.buffer);
    }

    /// The bytes as written.
    ///
    /// # Errors
    /// Some value could not be represented.
    pub fn finish(self) -> Result<Bytes, EncodeError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.buffer.freeze()),
        }
    }

    /// The bytes as written, the first four being the length of the rest. Those four must have
    /// been reserved by writing anything there.
    ///
    /// # Errors
    /// Some value could not be represented, or the frame is longer than its prefix can say.
    pub fn finish_frame(self) -> Result<Bytes, EncodeError> {
        self.finish_frame_around(0)
    }

    /// The same for a frame of which `elsewhere` bytes are not here and are sent in between.
    ///
    /// # Errors
    /// As [`Writer::finish_frame`].
    pub fn finish_frame_around(mut self, elsewhere: usize) -> Result<Bytes, EncodeError> {
        assert!(self.buffer.len() >= 4, "a frame starts with its length");
        let length = self.buffer.len() - 4 + elsewhere;
        match i32::try_from(length) {
            Ok(prefix) => self.buffer[..4].copy_from_slice(&prefix.to_be_bytes()),
            Err(_) => self.too_large(Some(length)),
        }
        self.finish()
    }
}
