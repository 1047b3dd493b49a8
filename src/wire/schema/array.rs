//! A Kafka array that was read stays the bytes it was; one that is to be written is a list.
//!
//! A request for two million empty names is six megabytes on the wire and would be seventy as a
//! list. As a view it costs nothing: the elements were walked once, to be sure of them, and are
//! read again one at a time when somebody asks.

use std::fmt;

use bytes::Bytes;

use super::{DecodeError, Form, Reader, Wire, Writer};

/// An array field.
#[derive(Clone)]
pub struct Array<T> {
    content: Content<T>,
}

#[derive(Clone)]
enum Content<T> {
    /// `count` elements in `bytes`, each of which has been read without error in `form`.
    View {
        bytes: Bytes,
        count: usize,
        form: Form,
    },
    Items(Vec<T>),
}

impl<T: Wire> Array<T> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.content {
            Content::View { count, .. } => *count,
            Content::Items(items) => items.len(),
        }
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements, in order, by value (each a handful of slices).
    #[must_use]
    pub fn iter(&self) -> Iter<'_, T> {
        match &self.content {
            Content::View { bytes, count, form } => Iter::View {
                reader: Reader::new(bytes, *form),
                left: *count,
            },
            Content::Items(items) => Iter::Items(items.iter()),
        }
    }

    /// The first element.
    #[must_use]
    pub fn first(&self) -> Option<T> {
        self.iter().next()
    }

    /// The elements as a list.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        self.iter().collect()
    }

    /// Reads `count` elements, to be sure of them, and keeps the bytes.
    pub(super) fn view(reader: &mut Reader<'_>, count: usize) -> Result<Self, DecodeError> {
        let start = reader.position();
        for _ in 0..count {
            T::read(reader)?;
        }
        let content = Content::View {
            bytes: reader.since(start),
            count,
            form: reader.form(),
        };
        Ok(Self { content })
    }

    pub(super) fn write_elements(&self, writer: &mut Writer) {
        match &self.content {
            Content::View { .. } => self.iter().for_each(|item| item.write(writer)),
            Content::Items(items) => items.iter().for_each(|item| item.write(writer)),
        }
    }
}

/// Iterator over an [`Array`].
pub enum Iter<'a, T> {
    #[doc(hidden)]
    View { reader: Reader<'a>, left: usize },
    #[doc(hidden)]
    Items(std::slice::Iter<'a, T>),
}

impl<T: Wire> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            Self::View { left: 0, .. } => None,
            Self::View { reader, left } => {
                *left -= 1;
                let item = T::read(reader).expect("the array was read through when it arrived");
                Some(item)
            }
            Self::Items(items) => items.next().cloned(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match self {
            Self::View { left, .. } => *left,
            Self::Items(items) => items.len(),
        };
        (left, Some(left))
    }
}

impl<T: Wire> ExactSizeIterator for Iter<'_, T> {}

impl<'a, T: Wire> IntoIterator for &'a Array<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl<T> From<Vec<T>> for Array<T> {
    fn from(items: Vec<T>) -> Self {
        Self {
            content: Content::Items(items),
        }
    }
}

impl<T> FromIterator<T> for Array<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::from(items.into_iter().collect::<Vec<_>>())
    }
}

impl<T: Wire + PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<T: Wire + fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
