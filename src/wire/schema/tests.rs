//! The reader believes nothing, the writer forgets nothing.

use bytes::Bytes;

use super::*;
use crate::limits::{ARRAY_ELEMENTS_MAX, TAGGED_FIELDS_MAX};

const OLD: Form = Form {
    version: 0,
    flexible: false,
};
const FLEXIBLE: Form = Form {
    version: 5,
    flexible: true,
};

structure! {
    /// A structure with everything in it.
    Everything {
        /// In every version.
        number: i32 [0, LAST] = 7,
        /// Gone after version 3.
        old: Text [0, 3] = Text::from("old"),
        /// Null is allowed.
        maybe: Option<Array<i16>> [0, LAST] = None,
        @tagged {
            /// Known from version 5.
            tag: i64 [2, 5] = -1,
        }
    }
}

message! {
    Everything flexible from 5;
}

fn read<T: Wire>(bytes: &'static [u8], form: Form) -> Result<T, DecodeError> {
    let bytes = Bytes::from_static(bytes);
    let mut reader = Reader::new(&bytes, form);
    T::read(&mut reader)
}

fn write<T: Wire>(value: &T, form: Form) -> Vec<u8> {
    let mut writer = Writer::new(form, 0);
    value.write(&mut writer);
    writer.finish().expect("representable").to_vec()
}

/// Goal: unsigned varints of every width are read back; overlong ones are refused.
#[test]
fn varints_are_bounded() {
    for value in [0, 1, 127, 128, 16_383, 16_384, u32::MAX - 1, u32::MAX] {
        let mut writer = Writer::new(FLEXIBLE, 0);
        writer.unsigned_varint(value);
        let bytes = writer.finish().expect("numbers fit");
        let mut reader = Reader::new(&bytes, FLEXIBLE);
        assert_eq!(reader.unsigned_varint(), Ok(value));
        assert_eq!(reader.left(), 0);
    }
    let too_large = read::<Text>(&[0xff, 0xff, 0xff, 0xff, 0x1f], FLEXIBLE);
    assert_eq!(too_large, Err(DecodeError::InvalidVarint));
    let too_long = read::<Text>(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x00], FLEXIBLE);
    assert_eq!(too_long, Err(DecodeError::InvalidVarint));
}

/// Goal: null and values in both layouts have exactly Kafka's bytes.
#[test]
fn nullable_fields_have_kafkas_bytes() {
    let text = Some(Text::from("ab"));
    assert_eq!(write(&text, OLD), [0, 2, b'a', b'b']);
    assert_eq!(write(&text, FLEXIBLE), [3, b'a', b'b']);
    assert_eq!(write(&None::<Text>, OLD), [0xff, 0xff]);
    assert_eq!(write(&None::<Text>, FLEXIBLE), [0]);
    assert_eq!(write(&None::<Bytes>, OLD), [0xff; 4]);
    assert_eq!(write(&Some(Bytes::new()), OLD), [0; 4]);
    assert_eq!(write(&Array::from(vec![1i16]), FLEXIBLE), [2, 0, 1]);
    assert_eq!(read::<Option<Text>>(&[0xff, 0xff], OLD), Ok(None));
    assert_eq!(
        read::<Text>(&[0xff, 0xff], OLD),
        Err(DecodeError::UnexpectedNull)
    );
    let negative = Err(DecodeError::NegativeLength { length: -2 });
    assert_eq!(read::<Option<Text>>(&[0xff, 0xfe], OLD), negative);
    assert_eq!(
        read::<Text>(&[2, 0xff], FLEXIBLE),
        Err(DecodeError::InvalidUtf8)
    );
}

/// Goal: a count is believed only if its elements can be there. Method: the largest count that
/// fits, one more, and one above the limit with the bytes for it.
#[test]
fn counts_are_believed_only_with_the_bytes_for_them() {
    let two: Result<Array<i32>, _> = read(&[0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2], OLD);
    assert_eq!(two.expect("two fit").to_vec(), [1, 2]);
    let three: Result<Array<i32>, _> = read(&[0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2], OLD);
    assert_eq!(three, Err(DecodeError::CountTooLarge { count: 3, left: 8 }));
    let many = Bytes::from(vec![0; ARRAY_ELEMENTS_MAX + 1]);
    let mut reader = Reader::new(&many, OLD);
    assert_eq!(
        reader.believe(ARRAY_ELEMENTS_MAX, 1, ARRAY_ELEMENTS_MAX),
        Ok(())
    );
    let above = reader.believe(ARRAY_ELEMENTS_MAX + 1, 1, ARRAY_ELEMENTS_MAX);
    assert!(matches!(above, Err(DecodeError::CountTooLarge { .. })));
    assert!(matches!(reader.count(1), Ok(Some(0))));
}

/// Goal: tagged fields keep their order, their size and their number. Method: an unknown tag is
/// stepped over; each rule broken once.
#[test]
fn tagged_fields_are_checked() {
    let body = |tags: &[u8]| {
        let mut body = vec![0, 0, 0, 9, 0];
        body.extend_from_slice(tags);
        Everything::decode(&Bytes::from(body), 5)
    };
    assert_eq!(body(&[0]).map(|value| value.tag), Ok(-1));
    let known = [2, 1, 1, 0xaa, 2, 8, 0, 0, 0, 0, 0, 0, 0, 3];
    assert_eq!(body(&known).map(|value| value.tag), Ok(3));
    assert_eq!(
        body(&[2, 3, 0, 3, 0]),
        Err(DecodeError::TagOrder { tag: 3 })
    );
    let long = [1, 2, 9, 0, 0, 0, 0, 0, 0, 0, 3, 0];
    assert_eq!(body(&long), Err(DecodeError::TagSize { tag: 2 }));
    let short = [1, 2, 7, 0, 0, 0, 0, 0, 0, 0, 3];
    assert_eq!(
        body(&short),
        Err(DecodeError::Truncated { needed: 8, left: 7 })
    );
    assert_eq!(
        body(&[1, 9, 4]),
        Err(DecodeError::Truncated { needed: 4, left: 0 })
    );
    assert_eq!(
        body(&[9, 1]),
        Err(DecodeError::CountTooLarge { count: 9, left: 1 })
    );
    let mut many = vec![0xe9, 0x07]; // 1001
    many.extend(std::iter::repeat_n(0, 2 * (TAGGED_FIELDS_MAX + 1)));
    assert!(matches!(
        body(&many),
        Err(DecodeError::CountTooLarge { .. })
    ));
    assert_eq!(body(&[0, 0]), Err(DecodeError::TrailingBytes { left: 1 }));
}

/// Goal: what a version does not carry is neither written nor read. Method: a full value through
/// an old and a new version.
#[test]
fn versions_choose_the_fields() {
    let value = Everything {
        number: 1,
        old: Text::from("x"),
        maybe: Some(vec![5].into()),
        tag: 6,
    };
    let old = Bytes::from(write(&value, Everything::form(3)));
    assert_eq!(old[..], [0, 0, 0, 1, 0, 1, b'x', 0, 0, 0, 1, 0, 5]);
    let read_old = Everything::decode(&old, 3).expect("just written");
    assert_eq!(
        read_old,
        Everything {
            tag: -1,
            ..value.clone()
        }
    );
    let new = Bytes::from(write(&value, Everything::form(5)));
    assert_eq!(
        new[..],
        [0, 0, 0, 1, 2, 0, 5, 1, 2, 8, 0, 0, 0, 0, 0, 0, 0, 6]
    );
    let read_new = Everything::decode(&new, 5).expect("just written");
    assert_eq!(
        read_new,
        Everything {
            old: Text::from("old"),
            ..value
        }
    );
}

/// Goal: what cannot be represented fails the whole message. Method: a string above 16 bits.
#[test]
fn unrepresentable_values_fail_the_message() {
    let long = Text::from("x".repeat(32_768));
    let mut writer = Writer::new(OLD, 0);
    long.write(&mut writer);
    1i32.write(&mut writer);
    assert_eq!(
        writer.finish(),
        Err(EncodeError::StringTooLong { length: 32_768 })
    );
    assert_eq!(write(&long, FLEXIBLE).len(), 3 + 32_768);
}

/// Goal: an array that was read equals the list it was made of, and can be written in another
/// layout. Method: compact to plain.
#[test]
fn views_and_lists_are_the_same_array() {
    let list = Array::from(vec![Text::from("a"), Text::from("bc")]);
    let bytes = Bytes::from(write(&list, FLEXIBLE));
    let mut reader = Reader::new(&bytes, FLEXIBLE);
    let view: Array<Text> = Wire::read(&mut reader).expect("just written");
    assert_eq!(view, list);
    assert_eq!(view.len(), 2);
    assert_eq!(view.first(), Some(Text::from("a")));
    assert_eq!(write(&view, OLD), write(&list, OLD));
    assert_eq!(format!("{view:?}"), format!("{list:?}"));
}
