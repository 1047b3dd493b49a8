//! Record batches (magic 2), uncompressed, as a producer builds and a consumer reads them.

use super::bytes::{Malformed, Reader, Writer};

/// One record as a client sees it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Record {
    pub offset: i64,
    pub timestamp_ms: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// Who produces: -1 everywhere without idempotence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Identity {
    pub producer_id: i64,
    pub epoch: i16,
    pub base_sequence: i32,
}

pub const NOBODY: Identity = Identity {
    producer_id: -1,
    epoch: -1,
    base_sequence: -1,
};

/// Bytes of a batch before its records.
pub const HEADER_BYTES: usize = 61;
/// Where the CRC lies, and what follows it is what it covers.
pub const CRC_AT: usize = 17;

/// Builds one batch of `records` (their offsets are ignored; a broker assigns them).
pub fn build(identity: Identity, records: &[Record]) -> Vec<u8> {
    let first = records.first().map_or(0, |record| record.timestamp_ms);
    let max = records
        .iter()
        .map(|record| record.timestamp_ms)
        .max()
        .unwrap_or(0);
    let count = i32::try_from(records.len()).expect("test batches are small");
    let mut tail = Vec::new();
    tail.put_i16(0); // attributes: no compression, the producer's time
    tail.put_i32(count - 1);
    tail.put_i64(first);
    tail.put_i64(max);
    tail.put_i64(identity.producer_id);
    tail.put_i16(identity.epoch);
    tail.put_i32(identity.base_sequence);
    tail.put_i32(count);
    let mut body = Vec::new();
    for (index, record) in (0i64..).zip(records) {
        body.clear();
        put_record(&mut body, index, record, first);
        tail.put_varint(body.len() as i64);
        tail.extend_from_slice(&body);
    }
    let mut batch = Vec::with_capacity(tail.len() + CRC_AT + 4);
    batch.put_i64(0);
    batch.put_i32(i32::try_from(tail.len() + 9).expect("test batches are small"));
    batch.put_i32(-1); // leader epoch, the broker's
    batch.put_i8(2);
    batch.extend_from_slice(&crc32c::crc32c(&tail).to_be_bytes());
    batch.extend_from_slice(&tail);
    batch
}

fn put_record(body: &mut Vec<u8>, index: i64, record: &Record, first_ms: i64) {
    let field = |body: &mut Vec<u8>, bytes: Option<&[u8]>| match bytes {
        Some(bytes) => {
            body.put_varint(bytes.len() as i64);
            body.extend_from_slice(bytes);
        }
        None => body.put_varint(-1),
    };
    body.put_i8(0);
    body.put_varint(record.timestamp_ms - first_ms);
    body.put_varint(index);
    field(body, record.key.as_deref());
    field(body, record.value.as_deref());
    body.put_varint(record.headers.len() as i64);
    for (name, value) in &record.headers {
        field(body, Some(name));
        field(body, value.as_deref());
    }
}

/// Takes apart a fetch's batches; a batch cut off at the end is left out, as clients do.
pub fn parse(mut bytes: &[u8]) -> Result<Vec<Record>, Malformed> {
    let mut records = Vec::new();
    while bytes.len() >= HEADER_BYTES {
        let length = Reader(&bytes[8..12]).i32()?;
        let length = usize::try_from(length).map_err(|_| Malformed("a negative batch length"))?;
        let Some(batch) = bytes.get(..length + 12) else {
            break;
        };
        parse_one(batch, &mut records)?;
        bytes = &bytes[length + 12..];
    }
    Ok(records)
}

fn parse_one(batch: &[u8], records: &mut Vec<Record>) -> Result<(), Malformed> {
    if batch.len() < HEADER_BYTES {
        return Err(Malformed("a batch shorter than its header"));
    }
    let mut reader = Reader(batch);
    let base_offset = reader.i64()?;
    let _length = reader.i32()?;
    let _leader_epoch = reader.i32()?;
    if reader.i8()? != 2 {
        return Err(Malformed("a batch that is not magic 2"));
    }
    if reader.u32()? != crc32c::crc32c(reader.0) {
        return Err(Malformed("a batch whose CRC does not match"));
    }
    if reader.i16()? & 0x7 != 0 {
        return Err(Malformed("a compressed batch, though none was sent"));
    }
    let last_delta = reader.i32()?;
    let first_ms = reader.i64()?;
    reader.take(8 + 8 + 2 + 4)?;
    let count = reader.i32()?;
    if count != last_delta + 1 {
        return Err(Malformed("a count that is not the last offset delta + 1"));
    }
    for index in 0..i64::from(count) {
        let length = usize::try_from(reader.varint()?).map_err(|_| Malformed("record length"))?;
        let mut body = Reader(reader.take(length)?);
        let record = parse_record(&mut body, base_offset, first_ms)?;
        if record.offset != base_offset + index || !body.0.is_empty() {
            return Err(Malformed("a record that does not fill its place"));
        }
        records.push(record);
    }
    if reader.0.is_empty() {
        Ok(())
    } else {
        Err(Malformed("bytes behind the last record"))
    }
}

fn parse_record(
    body: &mut Reader<'_>,
    base_offset: i64,
    first_ms: i64,
) -> Result<Record, Malformed> {
    fn field(body: &mut Reader<'_>) -> Result<Option<Vec<u8>>, Malformed> {
        match usize::try_from(body.varint()?) {
            Ok(length) => Ok(Some(body.take(length)?.to_vec())),
            Err(_) => Ok(None),
        }
    }
    body.i8()?;
    let timestamp_ms = first_ms + body.varint()?;
    let offset = base_offset + body.varint()?;
    let (key, value) = (field(body)?, field(body)?);
    let count = body.varint()?;
    let mut headers = Vec::new();
    for _ in 0..count {
        let name = field(body)?.ok_or(Malformed("a header without a name"))?;
        headers.push((name, field(body)?));
    }
    Ok(Record {
        offset,
        timestamp_ms,
        key,
        value,
        headers,
    })
}
