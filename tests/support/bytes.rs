//! The protocol's primitives: big-endian integers, strings and arrays with a count in front.

/// The answer does not have the form it should have: always a fault of the broker.
#[derive(Debug)]
pub struct Malformed(pub &'static str);

/// Reads primitives from the front of an answer.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        if count > self.0.len() {
            return Err(Malformed("the answer ends early"));
        }
        let (head, tail) = self.0.split_at(count);
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        Ok(self
            .take(N)?
            .try_into()
            .expect("as many bytes as asked for"))
    }

    pub fn i8(&mut self) -> Result<i8, Malformed> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    pub fn i16(&mut self) -> Result<i16, Malformed> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    pub fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub fn bool(&mut self) -> Result<bool, Malformed> {
        Ok(self.i8()? != 0)
    }

    pub fn string(&mut self) -> Result<Option<String>, Malformed> {
        let Ok(length) = usize::try_from(self.i16()?) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| Malformed("not UTF-8"))?;
        Ok(Some(text.to_owned()))
    }

    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        match usize::try_from(self.i32()?) {
            Ok(length) => self.take(length),
            Err(_) => Ok(&[]),
        }
    }

    /// A count of elements; null counts as none.
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let count = usize::try_from(self.i32()?).unwrap_or(0);
        if count > self.0.len() {
            return Err(Malformed("more elements than bytes"));
        }
        Ok(count)
    }

    /// A zigzag varint of up to 64 bits, as records use them.
    pub fn varint(&mut self) -> Result<i64, Malformed> {
        let mut raw = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            raw |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((raw >> 1) as i64 ^ -((raw & 1) as i64));
            }
        }
        Err(Malformed("a varint without end"))
    }
}

/// Appends primitives to a request.
pub trait Writer {
    fn put_i8(&mut self, value: i8);
    fn put_i16(&mut self, value: i16);
    fn put_i32(&mut self, value: i32);
    fn put_i64(&mut self, value: i64);
    fn put_string(&mut self, text: Option<&str>);
    fn put_bytes(&mut self, bytes: &[u8]);
    fn put_varint(&mut self, value: i64);
}

impl Writer for Vec<u8> {
    fn put_i8(&mut self, value: i8) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_i16(&mut self, value: i16) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_i32(&mut self, value: i32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_i64(&mut self, value: i64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => {
                self.put_i16(i16::try_from(text.len()).expect("test names are short"));
                self.extend_from_slice(text.as_bytes());
            }
            None => self.put_i16(-1),
        }
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_i32(i32::try_from(bytes.len()).expect("test requests are far below 2 GiB"));
        self.extend_from_slice(bytes);
    }

    fn put_varint(&mut self, value: i64) {
        let mut raw = (value << 1 ^ value >> 63) as u64;
        while raw >= 0x80 {
            self.push(raw as u8 | 0x80);
            raw >>= 7;
        }
        self.push(raw as u8);
    }
}
