//! Keys as text: Base64 (RFC 4648 section 4), 44 characters for 32 bytes.

use std::fmt;

use zeroize::Zeroizing;

/// The bytes of each kind of key.
pub const KEY_LEN: usize = 32;

/// A text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyError;

impl fmt::Display for KeyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key is 44 characters of Base64, as `mpt genkey` writes it")
    }
}

impl std::error::Error for KeyError {}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8; KEY_LEN]) -> String {
    let mut text = String::with_capacity(44);
    for group in bytes.chunks(3) {
        let word = (0..3)
            .fold(0, |word, at| word << 8 | u32::from(group.get(at).copied().unwrap_or_default()));
        for place in 0..=group.len() {
            text.push(char::from(ALPHABET[(word >> (18 - 6 * place) & 63) as usize]));
        }
    }
    text.push('=');
    text
}

pub(super) fn decode(text: &str) -> Result<Zeroizing<[u8; KEY_LEN]>, KeyError> {
    let digits = text.trim().strip_suffix('=').filter(|digits| digits.len() == 43);
    let mut bytes = Zeroizing::new([0; KEY_LEN]);
    let (mut word, mut bits, mut at) = (0_u32, 0, 0);
    for digit in digits.ok_or(KeyError)?.bytes() {
        let value = ALPHABET.iter().position(|other| *other == digit).ok_or(KeyError)?;
        (word, bits) = (word << 6 | value as u32, bits + 6);
        if bits >= 8 {
            bits -= 8;
            bytes[at] = (word >> bits) as u8;
            at += 1;
        }
    }
    // The last digit has two bits too many, which must be 0, or a key had several texts.
    if word & 3 != 0 { Err(KeyError) } else { Ok(bytes) }
}
