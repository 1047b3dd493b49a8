//! How Kafka's messages are described: one declaration gives a type, its reader and its writer.
//!
//! The `message!` macro turns a list of fields, each with the versions that carry it, into a struct
//! with a bounded reader and a writer. A field a version does not carry is skipped when written and
//! keeps its default when read, so that a handler fills in everything it knows and never asks which
//! version it is answering.
//!
//! Invariants: reading allocates nothing but reference counts (an [`Array`] that was read stays a
//! slice of the frame); a count is believed only if `count × smallest element ≤ bytes left`;
//! whatever was read can be read again, so iterating a read array cannot fail.
//!
//! Pure: no core, no clock, no I/O.

mod array;
mod error;
mod primitive;
mod reader;
mod sample;
mod writer;

#[cfg(test)]
mod tests;

pub use array::{Array, Iter};
pub use error::{DecodeError, EncodeError};
pub use reader::Reader;
pub use sample::{Entropy, Sample};
pub use writer::Writer;

use bytes::Bytes;

/// A UTF-8 string that is a slice of the frame it came in.
pub use kafka_wire_core::StrBytes as Text;

/// "Up to the newest version" in a field's version range.
pub const LAST: i16 = i16::MAX;

/// How a message is laid out: its version, and whether that version is flexible (compact lengths
/// and tagged fields). Nested structures share the form of their message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Form {
    /// The API version.
    pub version: i16,
    /// Whether lengths are compact and structures end in tagged fields.
    pub flexible: bool,
}

impl Form {
    /// Whether a field of versions `first..=last` is present.
    #[must_use]
    pub const fn carries(self, first: i16, last: i16) -> bool {
        self.version >= first && self.version <= last
    }
}

/// Something that can be a field.
pub trait Wire: Sized + Clone {
    /// The fewest bytes this takes in `form`; what makes a count believable.
    fn bytes_min(form: Form) -> usize;
    /// Reads one, leaving the reader after it.
    ///
    /// # Errors
    /// The bytes are not such a value.
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;
    /// Writes one. A value that cannot be represented is remembered by the writer and reported by
    /// [`Writer::finish`].
    fn write(&self, writer: &mut Writer);
}

/// A whole request or response body.
pub trait Message: Wire + Sample + Default {
    /// Kafka's name for it.
    const NAME: &'static str;
    /// The first version with compact lengths and tagged fields.
    const FLEXIBLE_FROM: i16;

    /// The layout of `version`.
    #[must_use]
    fn form(version: i16) -> Form {
        Form {
            version,
            flexible: version >= Self::FLEXIBLE_FROM,
        }
    }

    /// Reads a body that must be exactly one message.
    ///
    /// # Errors
    /// The bytes are not this message in that version, or bytes follow it.
    fn decode(body: &Bytes, version: i16) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(body, Self::form(version));
        let message = Self::read(&mut reader)?;
        match reader.left() {
            0 => Ok(message),
            left => Err(DecodeError::TrailingBytes { left }),
        }
    }
}

/// Declares structures: see the module comment. `name: Type [first, last] = default`.
macro_rules! structure {
    ($(
        $(#[$meta:meta])*
        $name:ident {
            $( $(#[$field_meta:meta])*
               $field:ident : $type:ty [$first:expr, $last:expr] = $default:expr, )*
            $( @tagged { $( $(#[$tag_meta:meta])*
               $tag_field:ident : $tag_type:ty [$tag:literal, $tag_first:expr] = $tag_default:expr,
            )* } )?
        }
    )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $type, )*
            $($( $(#[$tag_meta])* pub $tag_field: $tag_type, )*)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $( $field: $default, )*
                    $($( $tag_field: $tag_default, )*)?
                }
            }
        }

        impl $crate::wire::schema::Wire for $name {
            fn bytes_min(form: $crate::wire::schema::Form) -> usize {
                usize::from(form.flexible)
                $( + if form.carries($first, $last) {
                    <$type as $crate::wire::schema::Wire>::bytes_min(form)
                } else { 0 } )*
            }

            fn read(
                reader: &mut $crate::wire::schema::Reader<'_>,
            ) -> Result<Self, $crate::wire::schema::DecodeError> {
                let mut value = Self::default();
                $( if reader.form().carries($first, $last) {
                    value.$field = $crate::wire::schema::Wire::read(reader)?;
                } )*
                reader.tags(|_tag, _reader| {
                    $($( if _tag == $tag && _reader.form().carries($tag_first, i16::MAX) {
                        value.$tag_field = $crate::wire::schema::Wire::read(_reader)?;
                        return Ok(true);
                    } )*)?
                    Ok(false)
                })?;
                Ok(value)
            }

            fn write(&self, writer: &mut $crate::wire::schema::Writer) {
                $( if writer.form().carries($first, $last) {
                    $crate::wire::schema::Wire::write(&self.$field, writer);
                } )*
                if writer.form().flexible {
                    let _count: u32 = 0 $($( + u32::from(
                        writer.form().carries($tag_first, i16::MAX)
                            && self.$tag_field != $tag_default
                    ) )*)?;
                    writer.unsigned_varint(_count);
                    $($( if writer.form().carries($tag_first, i16::MAX)
                        && self.$tag_field != $tag_default
                    {
                        writer.tag($tag, &self.$tag_field);
                    } )*)?
                }
            }
        }

        impl $crate::wire::schema::Sample for $name {
            fn sample(
                entropy: &mut $crate::wire::schema::Entropy,
                form: $crate::wire::schema::Form,
            ) -> Self {
                let mut value = Self::default();
                $( if form.carries($first, $last) {
                    value.$field = $crate::wire::schema::Sample::sample(entropy, form);
                } )*
                $($( if form.flexible && form.carries($tag_first, i16::MAX) && entropy.one_in(2) {
                    value.$tag_field = $crate::wire::schema::Sample::sample(entropy, form);
                } )*)?
                value
            }
        }
    )* };
}

/// Declares whole messages and the version from which each is flexible.
macro_rules! message {
    ($($name:ident flexible from $flexible:expr;)*) => { $(
        impl $crate::wire::schema::Message for $name {
            const NAME: &'static str = stringify!($name);
            const FLEXIBLE_FROM: i16 = $flexible;
        }
    )* };
}

pub(in crate::wire) use {message, structure};
