//! Authentication of commands: the three kinds of the original.
//!
//! None of them is good. The first is nothing, the second a number that anyone who sees the answer can
//! repeat, the third a SHA-256 hash with the key appended. `docs/protocol.md` says what they are worth. The
//! kind that counts is that of the connection, never that of the message.

use std::fmt;

use crate::refusal::Refusal;

/// The length of a hash.
const HASH_LEN: usize = 32;

/// Offset of the authentication block, which begins with the cookie.
pub(crate) const BLOCK: usize = 4;

/// The bytes of the hash in a message of kind 2.
const HASH: std::ops::Range<usize> = BLOCK + 4..BLOCK + 4 + HASH_LEN;

/// A kind of authentication, by its number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AuthKind {
    /// No authentication.
    None = 0,
    /// A cookie: a random number of the responder, which the initiator repeats.
    Random = 1,
    /// The cookie, and a SHA-256 hash over message and key.
    Sha256 = 2,
}

impl AuthKind {
    /// The kind of this number, if there is one.
    pub const fn new(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::None),
            1 => Some(Self::Random),
            2 => Some(Self::Sha256),
            _ => None,
        }
    }

    /// The length of the authentication block in bytes.
    pub const fn block_len(self) -> usize {
        match self {
            Self::None => 0,
            Self::Random => 4,
            Self::Sha256 => 4 + HASH_LEN,
        }
    }
}

/// How the commands of a connection are authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// No authentication.
    None,
    /// A cookie.
    Random,
    /// A cookie and a hash with this key.
    Sha256(Key),
}

impl Auth {
    /// Its kind.
    pub const fn kind(&self) -> AuthKind {
        match self {
            Self::None => AuthKind::None,
            Self::Random => AuthKind::Random,
            Self::Sha256(_) => AuthKind::Sha256,
        }
    }

    /// Checks that `message` is authenticated in this way. The cookie is not checked: it belongs to the
    /// exchange.
    ///
    /// # Errors
    ///
    /// [`Refusal::AuthMismatch`] if it has another kind of authentication, [`Refusal::AuthHash`] if its
    /// hash is wrong, [`Refusal::Short`] if it is too short for a hash.
    pub fn verify(&self, message: &[u8]) -> Result<(), Refusal> {
        let kind = *message.get(2).ok_or(Refusal::Short)?;
        if kind != self.kind() as u8 {
            return Err(Refusal::AuthMismatch);
        }
        let Self::Sha256(key) = self else { return Ok(()) };
        let claimed = message.get(HASH).ok_or(Refusal::Short)?;
        if are_equal(claimed, &key.hash(message)) { Ok(()) } else { Err(Refusal::AuthHash) }
    }

    /// Writes the hash into a message of which all else is written.
    pub(crate) fn seal(&self, message: &mut [u8]) {
        if let Self::Sha256(key) = self {
            let hash = key.hash(message);
            message[HASH].copy_from_slice(&hash);
        }
    }
}

/// A key that both ends have.
///
/// The original hashes the first 32 characters of its setting `auth_key` as text, even where the setting
/// is written as hexadecimal digits. It ignores the other characters.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; Self::LEN]);

impl Key {
    /// The length of a key in characters.
    pub const LEN: usize = 32;

    /// The longest setting that the original has room for.
    pub const MAX_TEXT: usize = 127;

    /// The first 32 characters of the key that is built into the original: the digits of the bytes
    /// 0xA0 to 0xAF. It is public.
    const PUBLIC: [u8; Self::LEN] = *b"A0A1A2A3A4A5A6A7A8A9AAABACADAEAF";

    /// The key of this setting.
    ///
    /// # Errors
    ///
    /// If it is too short or too long, has other characters than visible ones of ASCII, or begins like the
    /// key that is built into the original, in upper or lower case.
    pub fn new(text: &str) -> Result<Self, KeyError> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyError::Character);
        }
        if text.len() > Self::MAX_TEXT {
            return Err(KeyError::Long);
        }
        let key = text.as_bytes().first_chunk::<{ Self::LEN }>().ok_or(KeyError::Short)?;
        if key.eq_ignore_ascii_case(&Self::PUBLIC) {
            return Err(KeyError::Public);
        }
        Ok(Self(*key))
    }

    /// The hash of a message: over the message, with zeroes in place of the hash, and the key.
    fn hash(&self, message: &[u8]) -> [u8; HASH_LEN] {
        let mut hash = hmac_sha256::Hash::new();
        let behind = HASH.end.min(message.len());
        hash.update(&message[..HASH.start.min(behind)]);
        hash.update([0; HASH_LEN]);
        hash.update(&message[behind..]);
        hash.update(self.0);
        hash.finalize()
    }
}

/// Hides the key.
impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(..)")
    }
}

/// Why a text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// A character that is not a visible one of ASCII.
    Character,
    /// More than [`Key::MAX_TEXT`] characters.
    Long,
    /// It begins like the key that is built into the original, which is public.
    Public,
    /// Fewer than [`Key::LEN`] characters.
    Short,
}

impl fmt::Display for KeyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Character => formatter.write_str("a key has visible ASCII characters only"),
            Self::Long => write!(formatter, "a key has at most {} characters", Key::MAX_TEXT),
            Self::Public => {
                formatter.write_str("this is the key built into the original, which is public")
            }
            Self::Short => write!(formatter, "a key has at least {} characters", Key::LEN),
        }
    }
}

impl std::error::Error for KeyError {}

/// Compares in constant time.
fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |bits, (a, b)| bits | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
impl Key {
    /// The public key, for captures that were made with it.
    pub(crate) const fn public() -> Self {
        Self(Self::PUBLIC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_key_is_refused_in_upper_and_lower_case_and_with_a_suffix() {
        let counted: String = (0xa0..=0xbf).map(|byte: u8| format!("{byte:02X}")).collect();
        assert_eq!(counted.as_bytes()[..32], Key::PUBLIC);
        for public in
            [&counted, &counted[..32], &counted.to_lowercase(), &format!("{}x", &counted[..32])]
        {
            assert_eq!(Key::new(public), Err(KeyError::Public), "{public}");
        }
        assert!(Key::new(&counted[1..]).is_ok());
    }

    #[test]
    fn the_first_32_characters_are_the_key() {
        let text = "0123456789abcdef0123456789ABCDEF";
        assert_eq!(Key::new(text), Key::new(&format!("{text}-and-more")));
        assert_ne!(Key::new(text), Key::new(&text.to_lowercase()));
        assert_eq!(Key::new(&text[1..]), Err(KeyError::Short));
        assert!(Key::new(&text.repeat(4)[1..]).is_ok());
        assert_eq!(Key::new(&text.repeat(4)), Err(KeyError::Long));
        assert_eq!(Key::new(&text.replace('7', " ")), Err(KeyError::Character));
        assert_eq!(Key::new(&text.replace('7', "é")), Err(KeyError::Character));
    }

    #[test]
    fn debug_output_hides_the_key() {
        let key = Key::new("0123456789abcdef0123456789ABCDEF").unwrap();
        assert_eq!(format!("{:?}", Auth::Sha256(key)), "Sha256(Key(..))");
    }

    #[test]
    fn the_constant_time_comparison_finds_every_difference() {
        assert!(are_equal(&[], &[]));
        assert!(are_equal(&[1, 2], &[1, 2]));
        assert!(!are_equal(&[1, 2], &[1]));
        for bit in 0..16 {
            let other = (0x0102_u16 ^ (1 << bit)).to_be_bytes();
            assert!(!are_equal(&[1, 2], &other));
        }
    }
}
