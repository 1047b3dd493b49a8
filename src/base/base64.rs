//! Base64 (RFC 4648, standard alphabet, padded): how binary travels inside JSON.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes `bytes` as text.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let second = chunk.get(1).copied().unwrap_or(0);
        let third = chunk.get(2).copied().unwrap_or(0);
        let word = u32::from(chunk[0]) << 16 | u32::from(second) << 8 | u32::from(third);
        for index in 0..4usize {
            if index <= chunk.len() {
                let sextet = (word >> (18 - 6 * index)) & 63;
                text.push(char::from(ALPHABET[sextet as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// Reads text back; `None` if it is not exactly what `encode` would write.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let groups = text.len() / 4;
    for (number, group) in text.chunks(4).enumerate() {
        let padding = group.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || (padding > 0 && number + 1 != groups) {
            return None;
        }
        let mut word = 0u32;
        for byte in &group[..4 - padding] {
            word = word << 6 | u32::from(sextet(*byte)?);
        }
        word <<= 6 * padding;
        let [_, first, second, third] = word.to_be_bytes();
        let unused: &[u8] = match padding {
            0 => &[],
            1 => &[third],
            _ => &[second, third],
        };
        if unused.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(&[first, second, third][..3 - padding]);
    }
    Some(bytes)
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the published vectors hold. Method: RFC 4648, section 10, both ways.
    #[test]
    fn the_rfc_vectors_hold() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(plain.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
    }

    /// Goal: other text is refused. Method: bad length, alphabet, padding and spare bits.
    #[test]
    fn other_text_is_refused() {
        for text in ["Zg", "Z===", "Zg==Zg==", "Zh==", "Zm9=", "Z-9v", "===="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
