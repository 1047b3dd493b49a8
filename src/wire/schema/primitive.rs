//! The field types: integers, booleans, ids, strings, bytes, arrays, and the nullable ones.

use bytes::Bytes;

use super::{Array, DecodeError, Form, Reader, Text, Wire, Writer};
use crate::base::ids::TopicId;

macro_rules! integer {
    ($($type:ty),*) => { $(
        impl Wire for $type {
            fn bytes_min(_: Form) -> usize {
                size_of::<$type>()
            }

            fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                reader.fixed().map(<$type>::from_be_bytes)
            }

            fn write(&self, writer: &mut Writer) {
                writer.raw(&self.to_be_bytes());
            }
        }
    )* };
}

integer!(i8, i16, i32, i64);

impl Wire for bool {
    fn bytes_min(_: Form) -> usize {
        1
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [byte] = reader.fixed()?;
        Ok(byte != 0)
    }

    fn write(&self, writer: &mut Writer) {
        writer.raw(&[u8::from(*self)]);
    }
}

impl Wire for TopicId {
    fn bytes_min(_: Form) -> usize {
        16
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.fixed().map(TopicId)
    }

    fn write(&self, writer: &mut Writer) {
        writer.raw(&self.0);
    }
}

/// A field type whose length or count can be the null marker.
pub trait Nullable: Sized + Clone {
    /// The fewest bytes of the prefix.
    fn prefix_bytes(form: Form) -> usize;
    /// Reads one or null.
    ///
    /// # Errors
    /// The bytes are not such a value.
    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError>;
    /// Writes one or null.
    fn write_nullable(value: Option<&Self>, writer: &mut Writer);
}

impl Nullable for Text {
    fn prefix_bytes(form: Form) -> usize {
        if form.flexible { 1 } else { 2 }
    }

    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        reader.text()
    }

    fn write_nullable(value: Option<&Self>, writer: &mut Writer) {
        writer.length(value.map(Text::len), true);
        writer.raw(value.map_or(&[], Text::as_bytes));
    }
}

impl Nullable for Bytes {
    fn prefix_bytes(form: Form) -> usize {
        if form.flexible { 1 } else { 4 }
    }

    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        reader.blob()
    }

    fn write_nullable(value: Option<&Self>, writer: &mut Writer) {
        writer.length(value.map(Bytes::len), false);
        writer.raw(value.map_or(&[], |bytes| bytes));
    }
}

impl<T: Wire> Nullable for Array<T> {
    fn prefix_bytes(form: Form) -> usize {
        if form.flexible { 1 } else { 4 }
    }

    fn read_nullable(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        match reader.count(T::bytes_min(reader.form()))? {
            Some(count) => Self::view(reader, count).map(Some),
            None => Ok(None),
        }
    }

    fn write_nullable(value: Option<&Self>, writer: &mut Writer) {
        writer.length(value.map(Array::len), false);
        if let Some(array) = value {
            array.write_elements(writer);
        }
    }
}

macro_rules! required {
    ($($type:ty $(, $element:ident)?;)*) => { $(
        impl $(<$element: Wire>)? Wire for $type {
            fn bytes_min(form: Form) -> usize {
                Self::prefix_bytes(form)
            }

            fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                Self::read_nullable(reader)?.ok_or(DecodeError::UnexpectedNull)
            }

            fn write(&self, writer: &mut Writer) {
                Self::write_nullable(Some(self), writer);
            }
        }
    )* };
}

required! {
    Text;
    Bytes;
    Array<T>, T;
}

impl<T: Nullable> Wire for Option<T> {
    fn bytes_min(form: Form) -> usize {
        T::prefix_bytes(form)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        T::read_nullable(reader)
    }

    fn write(&self, writer: &mut Writer) {
        T::write_nullable(self.as_ref(), writer);
    }
}
