//! The headers before each body: which request, which version, whose answer.
//!
//! A request header is of version 2 (tagged fields) where the request is flexible, else 1. A
//! response header is of version 1 where the response is flexible, else 0; but that of ApiVersions
//! is always 0, because the client does not know yet what the broker understands.

use bytes::Bytes;

use super::schema::{DecodeError, Form, Reader, Text, Wire, Writer};
use super::versions;

/// What precedes every request body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeader {
    /// Which API.
    pub api_key: i16,
    /// Which version of it.
    pub api_version: i16,
    /// The client's number for this request; the answer carries it.
    pub correlation_id: i32,
    /// What the client calls itself.
    pub client_id: Option<Text>,
}

impl RequestHeader {
    /// Splits a frame (without its length) into header and body.
    ///
    /// The header of an API or version that this broker does not know is read as far as that is
    /// possible, since the answer to an unknown version of ApiVersions needs no more.
    ///
    /// # Errors
    /// The frame is too short, or its client id or tagged fields are malformed.
    pub fn decode(frame: &Bytes) -> Result<(RequestHeader, Bytes), DecodeError> {
        let mut reader = Reader::new(frame, PLAIN);
        let mut header = RequestHeader {
            api_key: Wire::read(&mut reader)?,
            api_version: Wire::read(&mut reader)?,
            correlation_id: Wire::read(&mut reader)?,
            client_id: None,
        };
        let flexible = versions::is_flexible(header.api_key, header.api_version);
        let known = versions::support(header.api_key, header.api_version).is_served();
        match read_rest(frame, &mut header, flexible) {
            Ok(body) => Ok((header, body)),
            Err(_) if header.api_key == versions::API_VERSIONS && !known => {
                Ok((header, Bytes::new()))
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the header before a body.
    pub(super) fn write(&self, writer: &mut Writer, flexible: bool) {
        let form = writer.form();
        writer.set_form(PLAIN);
        self.api_key.write(writer);
        self.api_version.write(writer);
        self.correlation_id.write(writer);
        self.client_id.write(writer);
        if flexible {
            writer.unsigned_varint(0);
        }
        writer.set_form(form);
    }
}

/// Headers are never compact: the client id has a 16-bit length in every version.
const PLAIN: Form = Form {
    version: 0,
    flexible: false,
};
/// Bytes of API key, version and correlation id.
const FIXED_BYTES: usize = 8;

fn read_rest(
    frame: &Bytes,
    header: &mut RequestHeader,
    flexible: bool,
) -> Result<Bytes, DecodeError> {
    let rest = frame.slice(FIXED_BYTES..);
    let mut reader = Reader::new(&rest, PLAIN);
    header.client_id = Wire::read(&mut reader)?;
    let rest = rest.slice(reader.position()..);
    if !flexible {
        return Ok(rest);
    }
    let form = Form {
        version: 2,
        flexible: true,
    };
    let mut reader = Reader::new(&rest, form);
    reader.tags(|_, _| Ok(false))?;
    Ok(rest.slice(reader.position()..))
}

/// Starts a response frame: four bytes for the length, then the header.
pub(super) fn write_response(writer: &mut Writer, correlation_id: i32, flexible_header: bool) {
    writer.raw(&[0; 4]);
    correlation_id.write(writer);
    if flexible_header {
        writer.unsigned_varint(0);
    }
}

/// Splits a response frame (without its length) into correlation id and body.
///
/// # Errors
/// The frame is too short, or its tagged fields are malformed.
pub fn decode_response(
    frame: &Bytes,
    api_key: i16,
    version: i16,
) -> Result<(i32, Bytes), DecodeError> {
    let flexible = versions::is_flexible(api_key, version) && api_key != versions::API_VERSIONS;
    let form = Form {
        version: i16::from(flexible),
        flexible,
    };
    let mut reader = Reader::new(frame, form);
    let correlation_id = Wire::read(&mut reader)?;
    reader.tags(|_, _| Ok(false))?;
    Ok((correlation_id, frame.slice(reader.position()..)))
}
