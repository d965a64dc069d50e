//! What allows changes by the page: who can read the control socket has it.

use std::fmt::{self, Write as _};
use std::hint::black_box;
use std::io;

use crate::random;

/// Bytes of a token: nobody guesses 128 bits.
const LENGTH: usize = 16;

/// A random number that the operator passes to the browser.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// There are no random numbers.
    pub(crate) fn new() -> io::Result<Self> {
        let mut text = String::new();
        for byte in random::bytes::<LENGTH>()? {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// As it is passed on.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `text` is it, found out in a time that does not depend on where they differ.
    pub(crate) fn is(&self, text: &str) -> bool {
        let (own, other) = (self.0.as_bytes(), text.as_bytes());
        let mut difference = u8::from(own.len() != other.len());
        for (place, byte) in own.iter().enumerate() {
            difference |= byte ^ other.get(place).unwrap_or(&0);
            // So that the compiler does not leave the loop early.
            difference = black_box(difference);
        }
        difference == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_itself_and_no_other() {
        let (token, other) = (Token::new().unwrap(), Token::new().unwrap());
        let text = token.as_str().to_owned();
        assert_eq!(text.len(), 32);
        assert!(token.is(&text));
        for wrong in [other.as_str(), "", &text[..31], &format!("{text}0"), &text.to_uppercase()] {
            let same = wrong == text;
            assert_eq!(token.is(wrong), same, "{wrong}");
        }
        for place in 0..32 {
            let mut near = text.clone().into_bytes();
            near[place] ^= 1;
            assert!(!token.is(&String::from_utf8(near).unwrap()), "{place}");
        }
        assert!(!format!("{token:?}").contains(&text), "it is not for the log");
    }
}
