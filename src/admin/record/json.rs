//! Records as JSON lines: `consume --json` writes them, `produce --json` reads them, and nothing is
//! lost in between.
//!
//! ```text
//! {"topic":"t","partition":0,"offset":7,"timestamp_ms":1764531000000,
//!  "key":null,"value":"text","headers":[{"key":"h","value":"text"}]}
//! ```
//! `null` is null and `""` is empty. What is not UTF-8 is written as `key_base64` or `value_base64`
//! instead. Headers are an array, because keys may repeat and their order counts.

use super::{Header, Record};
use crate::base::base64;
use crate::base::record_batch::RecordView;
use serde_json::{Map, Value};
use std::io::Write;

/// Appends one record as a line.
pub fn write(out: &mut Vec<u8>, topic: &str, partition: i32, record: &RecordView<'_>) {
    out.extend_from_slice(b"{\"topic\":");
    string(out, topic);
    let (offset, timestamp) = (record.offset, record.timestamp);
    write!(
        out,
        ",\"partition\":{partition},\"offset\":{offset},\"timestamp_ms\":{timestamp},"
    )
    .expect("a Vec takes every byte");
    bytes(out, "key", record.key);
    out.push(b',');
    bytes(out, "value", record.value);
    out.extend_from_slice(b",\"headers\":[");
    for (index, header) in record.headers().enumerate() {
        out.extend_from_slice(if index == 0 {
            b"{\"key\":"
        } else {
            b",{\"key\":"
        });
        string(out, header.key);
        out.push(b',');
        bytes(out, "value", header.value);
        out.push(b'}');
    }
    out.extend_from_slice(b"]}\n");
}

/// Appends `"name":…`, or `"name_base64":…` where the bytes are no text.
fn bytes(out: &mut Vec<u8>, name: &str, bytes: Option<&[u8]>) {
    let text = bytes.map(std::str::from_utf8);
    let suffix = if matches!(text, Some(Err(_))) {
        "_base64"
    } else {
        ""
    };
    write!(out, "\"{name}{suffix}\":").expect("a Vec takes every byte");
    match (bytes, text) {
        (None, _) => out.extend_from_slice(b"null"),
        (Some(_), Some(Ok(text))) => string(out, text),
        (Some(bytes), _) => string(out, &base64::encode(bytes)),
    }
}

/// Appends a JSON string.
pub fn string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a Vec takes every byte");
}

/// Reads one line.
///
/// # Errors
/// What is wrong with it, for a person.
pub fn read(line: &[u8]) -> Result<Record, String> {
    let value: Value = serde_json::from_slice(line).map_err(|error| format!("no JSON: {error}"))?;
    let Value::Object(mut object) = value else {
        return Err("a record is a JSON object, such as {\"key\":null,\"value\":\"text\"}".into());
    };
    // Where it came from does not matter where it goes.
    object.remove("topic");
    object.remove("offset");
    let partition = match take_integer(&mut object, "partition")? {
        None => None,
        Some(number) => Some(
            i32::try_from(number)
                .ok()
                .filter(|number| *number >= 0)
                .ok_or_else(|| format!("\"partition\" is {number}, which none can be"))?,
        ),
    };
    let record = Record {
        partition,
        timestamp_ms: take_integer(&mut object, "timestamp_ms")?,
        key: take_bytes(&mut object, "key")?,
        value: take_bytes(&mut object, "value")?,
        headers: take_headers(&mut object)?,
    };
    nothing_left(&object)?;
    Ok(record)
}

fn take_integer(object: &mut Map<String, Value>, name: &str) -> Result<Option<i64>, String> {
    match object.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_i64() {
            Some(number) => Ok(Some(number)),
            None => Err(format!("\"{name}\" must be a whole number")),
        },
    }
}

fn take_bytes(object: &mut Map<String, Value>, name: &str) -> Result<Option<Vec<u8>>, String> {
    let encoded_name = format!("{name}_base64");
    let plain = object.remove(name).unwrap_or(Value::Null);
    let encoded = object.remove(&encoded_name).unwrap_or(Value::Null);
    match (plain, encoded) {
        (Value::Null, Value::Null) => Ok(None),
        (Value::String(text), Value::Null) => Ok(Some(text.into_bytes())),
        (Value::Null, Value::String(text)) => match base64::decode(&text) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(format!("\"{encoded_name}\" is no padded base64")),
        },
        (Value::Null, _) => Err(format!("\"{encoded_name}\" must be a string")),
        (_, Value::Null) => Err(format!(
            "\"{name}\" must be a string or null; a JSON document is written as a string"
        )),
        _ => Err(format!(
            "\"{name}\" and \"{encoded_name}\" cannot both be there"
        )),
    }
}

fn take_headers(object: &mut Map<String, Value>) -> Result<Vec<Header>, String> {
    let list = match object.remove("headers") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err("\"headers\" must be an array of objects".into()),
    };
    let headers = list.into_iter().map(|header| {
        let Value::Object(mut header) = header else {
            return Err("a header is an object with \"key\" and \"value\"".to_owned());
        };
        let Some(Value::String(key)) = header.remove("key") else {
            return Err("a header's \"key\" must be a string".to_owned());
        };
        let value = take_bytes(&mut header, "value")?;
        nothing_left(&header)?;
        Ok((key, value))
    });
    headers.collect()
}

fn nothing_left(object: &Map<String, Value>) -> Result<(), String> {
    match object.keys().next() {
        None => Ok(()),
        Some(name) => Err(format!("there is no field \"{name}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::record_batch::{BatchBuilder, BatchView, RecordData};

    /// Writes one record through a real batch, as `consume` sees it.
    fn line(record: &RecordData<'_>) -> String {
        let mut builder = BatchBuilder::new();
        builder.append(record);
        let batch = builder.finish();
        let view = BatchView::only(&batch).expect("a batch");
        let read = view
            .records(view.records_bytes())
            .next()
            .expect("one")
            .expect("valid");
        let mut out = Vec::new();
        write(&mut out, "t", 3, &read);
        String::from_utf8(out).expect("JSON is text")
    }

    /// Goal: nothing is lost between writing and reading. Method: null, empty, text and binary in
    /// key, value and headers; every combination.
    #[test]
    fn records_survive_the_round_trip() {
        let samples: [Option<&[u8]>; 5] = [
            None,
            Some(b""),
            Some("täxt\n\"\\\u{1}".as_bytes()),
            Some(b"\xff\x00\xfe"),
            Some(b"{}"),
        ];
        for key in samples {
            for value in samples {
                let headers = [("h", value), ("h", key), ("", None)];
                let data = RecordData {
                    key,
                    value,
                    headers: &headers,
                    timestamp: 1234,
                };
                let text = line(&data);
                assert!(text.ends_with("}\n") && text.lines().count() == 1, "{text}");
                let record = read(text.as_bytes()).expect("reads back");
                assert_eq!(record.key.as_deref(), key);
                assert_eq!(record.value.as_deref(), value);
                assert_eq!(
                    (record.partition, record.timestamp_ms),
                    (Some(3), Some(1234))
                );
                let read: Vec<_> = record
                    .headers
                    .iter()
                    .map(|(k, v)| (k.as_str(), v.as_deref()))
                    .collect();
                assert_eq!(read, headers);
            }
        }
    }

    /// Goal: the form is stable. Method: one line, literally.
    #[test]
    fn the_form_is_stable() {
        let headers: [(&str, Option<&[u8]>); 2] = [("a", Some(b"\xff")), ("b", None)];
        let data = RecordData {
            key: None,
            value: Some(b"v"),
            headers: &headers,
            timestamp: 5,
        };
        assert_eq!(
            line(&data),
            "{\"topic\":\"t\",\"partition\":3,\"offset\":0,\"timestamp_ms\":5,\"key\":null,\
             \"value\":\"v\",\"headers\":[{\"key\":\"a\",\"value_base64\":\"/w==\"},\
             {\"key\":\"b\",\"value\":null}]}\n"
        );
    }

    /// Goal: lines that do not say what is meant are refused. Method: one of each sort.
    #[test]
    fn unclear_lines_are_refused() {
        for (text, expected) in [
            ("x", "no JSON"),
            ("[1]", "JSON object"),
            ("{\"vlaue\":\"x\"}", "no field \"vlaue\""),
            ("{\"value\":{\"a\":1}}", "must be a string or null"),
            ("{\"value\":\"x\",\"value_base64\":\"eA==\"}", "cannot both"),
            ("{\"value_base64\":\"?\"}", "no padded base64"),
            ("{\"partition\":-1}", "which none can be"),
            ("{\"headers\":{\"a\":\"b\"}}", "array"),
        ] {
            let error = read(text.as_bytes()).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(read(b"{}").expect("all null"), Record::default());
    }
}
