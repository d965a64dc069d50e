//! Which ciphers there are, and which of them two hosts use (section 9 of `docs/protocol.md`).

/// An authenticated encryption with associated data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-256-GCM (NIST SP 800-38D).
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 8439).
    ChaCha20Poly1305,
}

/// What a host can seal with, as it stands in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ciphers(u32);

impl Ciphers {
    const AES: u32 = 1;
    const CHACHA: u32 = 2;
    const AES_IS_SLOWER: u32 = 4;

    /// Both; `fastest` is the faster one on this machine.
    pub const fn fastest(fastest: Cipher) -> Self {
        match fastest {
            Cipher::Aes256Gcm => Self(Self::AES | Self::CHACHA),
            Cipher::ChaCha20Poly1305 => Self(Self::AES | Self::CHACHA | Self::AES_IS_SLOWER),
        }
    }

    pub(crate) const fn from_word(word: u32) -> Self {
        Self(word)
    }

    pub(crate) const fn word(self) -> u32 {
        self.0
    }

    /// What two hosts use: AES unless it is the slower one at one of them.
    pub(crate) fn common(self, other: Self) -> Option<Cipher> {
        let (both, any) = (self.0 & other.0, self.0 | other.0);
        let aes = both & Self::AES != 0;
        let chacha = both & Self::CHACHA != 0;
        match (aes, chacha) {
            (true, true) if any & Self::AES_IS_SLOWER != 0 => Some(Cipher::ChaCha20Poly1305),
            (true, _) => Some(Cipher::Aes256Gcm),
            (false, true) => Some(Cipher::ChaCha20Poly1305),
            (false, false) => None,
        }
    }
}

impl Cipher {
    /// The name under which it is shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "aes-256-gcm",
            Self::ChaCha20Poly1305 => "chacha20-poly1305",
        }
    }

    /// The word that stands for it in a response.
    pub(crate) const fn word(self) -> u32 {
        match self {
            Self::Aes256Gcm => Ciphers::AES,
            Self::ChaCha20Poly1305 => Ciphers::CHACHA,
        }
    }

    /// What a response selects, if that is one and was offered.
    pub(crate) fn selected(word: u32) -> Option<Self> {
        match word {
            Ciphers::AES => Some(Self::Aes256Gcm),
            Ciphers::CHACHA => Some(Self::ChaCha20Poly1305),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Cipher; 2] = [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];

    #[test]
    fn aes_is_used_unless_it_is_the_slower_one() {
        let [aes, chacha] = BOTH.map(Ciphers::fastest);
        assert_eq!(aes.common(aes), Some(Cipher::Aes256Gcm));
        assert_eq!(aes.common(chacha), Some(Cipher::ChaCha20Poly1305));
        assert_eq!(chacha.common(aes), Some(Cipher::ChaCha20Poly1305));
        assert_eq!(aes.common(Ciphers::from_word(2)), Some(Cipher::ChaCha20Poly1305));
        assert_eq!(chacha.common(Ciphers::from_word(1)), Some(Cipher::Aes256Gcm));
        assert_eq!(aes.common(Ciphers::from_word(0xff00)), None);
        for cipher in BOTH {
            assert_eq!(Cipher::selected(cipher.word()), Some(cipher));
        }
        assert_eq!(Cipher::selected(3), None);
    }
}
