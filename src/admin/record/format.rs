//! Format strings of `consume --format`: `%k %v %h %o %p %T %t`, escapes, and modifiers in braces.

use super::{json, time};
use crate::base::base64;
use crate::base::record_batch::RecordView;
use std::io::Write;

/// A format string, taken apart once.
#[derive(Debug, Eq, PartialEq)]
pub struct Format(Vec<Piece>);

#[derive(Debug, Eq, PartialEq)]
enum Piece {
    Literal(Vec<u8>),
    Bytes(Source, Style),
    Headers(Style),
    Length(Source),
    Offset,
    Partition,
    Topic,
    TimestampMs,
    TimestampIso,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Source {
    Key,
    Value,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Style {
    /// The bytes as they are; null is nothing.
    Plain,
    Hex,
    Base64,
    /// A JSON string, or null.
    Json,
}

impl Format {
    /// Takes a format string apart.
    ///
    /// # Errors
    /// What is wrong with it, and what there is.
    pub fn parse(text: &str) -> Result<Format, String> {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            rest = &rest[first.len_utf8()..];
            match first {
                '\\' => rest = escape(rest, &mut literal)?,
                '%' if rest.starts_with('%') => {
                    literal.push(b'%');
                    rest = &rest[1..];
                }
                '%' => {
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    let (piece, after) = field(rest)?;
                    pieces.push(piece);
                    rest = after;
                }
                _ => literal.extend_from_slice(first.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Format(pieces))
    }

    /// Appends one record.
    pub fn write(&self, out: &mut Vec<u8>, topic: &str, partition: i32, record: &RecordView<'_>) {
        let number = |out: &mut Vec<u8>, number: i64| {
            write!(out, "{number}").expect("a Vec takes every byte");
        };
        let source = |source: Source| match source {
            Source::Key => record.key,
            Source::Value => record.value,
        };
        for piece in &self.0 {
            match piece {
                Piece::Literal(bytes) => out.extend_from_slice(bytes),
                Piece::Bytes(from, style) => styled(out, source(*from), *style),
                Piece::Headers(style) => {
                    for (index, header) in record.headers().enumerate() {
                        if index > 0 {
                            out.push(b',');
                        }
                        out.extend_from_slice(header.key.as_bytes());
                        out.push(b'=');
                        styled(out, header.value, *style);
                    }
                }
                Piece::Length(from) => {
                    // -1 for null, as on the wire.
                    let length = source(*from).map(|bytes| i64::try_from(bytes.len()));
                    number(out, length.map_or(-1, |length| length.unwrap_or(i64::MAX)));
                }
                Piece::Offset => number(out, record.offset),
                Piece::Partition => number(out, i64::from(partition)),
                Piece::Topic => out.extend_from_slice(topic.as_bytes()),
                Piece::TimestampMs => number(out, record.timestamp),
                Piece::TimestampIso => {
                    out.extend_from_slice(time::iso(record.timestamp).as_bytes());
                }
            }
        }
    }
}

fn styled(out: &mut Vec<u8>, bytes: Option<&[u8]>, style: Style) {
    match (style, bytes) {
        (Style::Json, None) => out.extend_from_slice(b"null"),
        (Style::Json, Some(bytes)) => json::string(out, &String::from_utf8_lossy(bytes)),
        (_, None) => {}
        (Style::Plain, Some(bytes)) => out.extend_from_slice(bytes),
        (Style::Base64, Some(bytes)) => out.extend_from_slice(base64::encode(bytes).as_bytes()),
        (Style::Hex, Some(bytes)) => {
            for byte in bytes {
                write!(out, "{byte:02x}").expect("a Vec takes every byte");
            }
        }
    }
}

/// The field after a `%`, and what follows it.
fn field(rest: &str) -> Result<(Piece, &str), String> {
    let letter = rest
        .chars()
        .next()
        .ok_or("the format ends in a lone %; write %% for one")?;
    let mut rest = &rest[letter.len_utf8()..];
    let mut modifier = "";
    if let Some(inside) = rest.strip_prefix('{') {
        let end = inside
            .find('}')
            .ok_or(format!("%{letter}{{ has no closing brace"))?;
        (modifier, rest) = (&inside[..end], &inside[end + 1..]);
    }
    let style = || match modifier {
        "" => Ok(Style::Plain),
        "hex" => Ok(Style::Hex),
        "base64" => Ok(Style::Base64),
        "json" => Ok(Style::Json),
        _ => Err(format!(
            "%{letter} has no modifier `{modifier}`: hex, base64 or json"
        )),
    };
    let piece = match letter {
        'k' => Piece::Bytes(Source::Key, style()?),
        'v' | 's' => Piece::Bytes(Source::Value, style()?),
        'h' => Piece::Headers(style()?),
        'T' if modifier == "iso" => Piece::TimestampIso,
        _ if !modifier.is_empty() => {
            return Err(format!("%{letter} has no modifier `{modifier}`"));
        }
        'K' => Piece::Length(Source::Key),
        'V' | 'S' => Piece::Length(Source::Value),
        'o' => Piece::Offset,
        'p' => Piece::Partition,
        't' => Piece::Topic,
        'T' => Piece::TimestampMs,
        _ => {
            return Err(format!(
                "there is no field %{letter}: %k key, %v value, %h headers, %o offset, \
                 %p partition, %T timestamp, %t topic, %K and %V lengths"
            ));
        }
    };
    Ok((piece, rest))
}

/// The byte after a backslash, and what follows it.
fn escape<'a>(rest: &'a str, literal: &mut Vec<u8>) -> Result<&'a str, String> {
    let letter = rest
        .chars()
        .next()
        .ok_or("the format ends in a lone backslash")?;
    let mut after = &rest[letter.len_utf8()..];
    let byte = match letter {
        'n' => b'\n',
        't' => b'\t',
        'r' => b'\r',
        '0' => 0,
        '\\' => b'\\',
        'x' => {
            let digits = after.get(..2).ok_or("\\x needs two hexadecimal digits")?;
            after = &after[2..];
            u8::from_str_radix(digits, 16).map_err(|_| "\\x needs two hexadecimal digits")?
        }
        _ => {
            return Err(format!(
                "there is no escape \\{letter}: \\n \\t \\r \\0 \\\\ \\xNN"
            ));
        }
    };
    literal.push(byte);
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::record_batch::{BatchBuilder, BatchView, RecordData};

    fn render(format: &str, key: Option<&[u8]>, value: Option<&[u8]>) -> Vec<u8> {
        let headers: [(&str, Option<&[u8]>); 2] = [("a", Some(b"1")), ("b", None)];
        let mut builder = BatchBuilder::new();
        builder.append(&RecordData {
            key,
            value,
            headers: &headers,
            timestamp: 1500,
        });
        let batch = builder.finish();
        let view = BatchView::only(&batch).expect("a batch");
        let record = view
            .records(view.records_bytes())
            .next()
            .expect("one")
            .expect("valid");
        let mut out = Vec::new();
        Format::parse(format)
            .expect("valid")
            .write(&mut out, "top", 2, &record);
        out
    }

    /// Goal: each field and modifier renders. Method: one string with all of them.
    #[test]
    fn every_field_renders() {
        let out = render(
            "%t/%p@%o %T %T{iso} %k=%v %K %V [%h] %v{hex} %v{base64} %v{json} %%\\t\\x41\\n",
            None,
            Some(b"hi\""),
        );
        let expected = "top/2@0 1500 1970-01-01T00:00:01.500Z =hi\" -1 3 [a=1,b=] 686922 aGki \
                        \"hi\\\"\" %\tA\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
        assert_eq!(render("%v", Some(b"k"), Some(b"\xff\x00")), b"\xff\x00");
        assert_eq!(render("ä%k{json}", None, None), "änull".as_bytes());
    }

    /// Goal: mistakes are explained. Method: one of each sort.
    #[test]
    fn mistakes_are_explained() {
        for (format, expected) in [
            ("%q", "no field %q"),
            ("%", "lone %"),
            ("%v{hex", "closing brace"),
            ("%v{upper}", "no modifier `upper`"),
            ("%o{hex}", "no modifier `hex`"),
            ("\\q", "no escape"),
            ("\\x4", "two hexadecimal"),
            ("\\", "lone backslash"),
        ] {
            let error = Format::parse(format).expect_err(format);
            assert!(error.contains(expected), "{error}");
        }
    }
}
