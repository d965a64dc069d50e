//! The keys that people handle: written in Base64 (RFC 4648 section 4), 44 characters for 32 bytes.

mod base64;
pub(crate) mod ciphers;
pub(crate) mod invitation;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use base64::{KEY_LEN, KeyError};

use aws_lc_rs::agreement::{self, X25519};
use base64::{decode, encode};
use ciphers::Ciphers;
use invitation::InvitationSecret;
use zeroize::Zeroizing;

/// The private half of a host's static key pair (X25519, RFC 7748). Its memory is overwritten when it is dropped, and it
/// is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey(Zeroizing<[u8; KEY_LEN]>);

/// The public half of a static key pair. It is displayed and parsed as Base64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_LEN]);

/// A secret that two hosts share besides their key pairs, so that an attacker who can compute their private keys
/// from the public ones (with a quantum computer) still learns nothing. It is handled like a [`PrivateKey`].
#[derive(Clone, PartialEq, Eq)]
pub struct PresharedKey(Zeroizing<[u8; KEY_LEN]>);

/// What a host needs to seal what it sends, and to open what is sealed for it.
#[derive(Clone, PartialEq, Eq)]
pub struct HostKeys {
    pub(crate) private: PrivateKey,
    pub(crate) ciphers: Ciphers,
    pub(crate) seed: Zeroizing<[u8; KEY_LEN]>,
    pub(crate) clock_zero: Duration,
}

impl HostKeys {
    /// Of the host that is known by the static key `private`, and can seal with `ciphers`. Ephemeral keys are made of `seed`,
    /// which must be random and new at each start. `clock_zero` is the time since 1970-01-01 00:00 UTC at which the core's
    /// clock was zero.
    pub fn new(
        private: PrivateKey,
        ciphers: Ciphers,
        seed: [u8; KEY_LEN],
        clock_zero: Duration,
    ) -> Self {
        Self { private, ciphers, seed: Zeroizing::new(seed), clock_zero }
    }

    /// The same host after another start, if the clock has gone on.
    #[must_use]
    pub fn restarted(self, seed: [u8; KEY_LEN]) -> Self {
        Self { seed: Zeroizing::new(seed), ..self }
    }
}

/// Whom a handshake is with.
#[derive(Clone, PartialEq, Eq)]
pub struct PeerKeys {
    /// The static key by which the peer is known.
    pub public: PublicKey,
    /// The pre-shared key, if there is one.
    pub preshared: Option<PresharedKey>,
    /// The secret by which the peer is asked to take this host for the client that it has invited. A peer that knows the
    /// key of this host ignores it.
    pub invitation: Option<InvitationSecret>,
}

impl PrivateKey {
    /// The key that these bytes are after clamping (RFC 7748 section 5); any 32 random bytes are one.
    pub fn new(bytes: [u8; KEY_LEN]) -> Self {
        let mut bytes = Zeroizing::new(bytes);
        bytes[0] &= 248;
        bytes[31] = bytes[31] & 127 | 64;
        Self(bytes)
    }

    /// Reads the key from Base64; white space around it is ignored.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the text is not the Base64 of 32 bytes.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        Ok(Self::new(*decode(text)?))
    }

    /// The key in Base64.
    pub fn to_base64(&self) -> Zeroizing<String> {
        Zeroizing::new(encode(&self.0))
    }

    /// The public key that belongs to it.
    pub fn public(&self) -> PublicKey {
        // Every 32 bytes are a private key, so neither step fails.
        let key = agreement::PrivateKey::from_private_key(&X25519, self.bytes()).ok();
        let public = key.and_then(|key| key.compute_public_key().ok());
        let bytes = public.and_then(|public| <[u8; KEY_LEN]>::try_from(public.as_ref()).ok());
        PublicKey(bytes.unwrap_or_default())
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl PublicKey {
    /// The key of these bytes.
    pub const fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl PresharedKey {
    /// What stands for no pre-shared key.
    pub(crate) const NONE: [u8; KEY_LEN] = [0; KEY_LEN];

    /// The key of these bytes, which must be random.
    pub fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads the key from Base64, as [`PrivateKey::from_base64`].
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the text is not the Base64 of 32 bytes.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        Ok(Self(decode(text)?))
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PrivateKey")
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PresharedKey")
    }
}

impl fmt::Debug for HostKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HostKeys").field("ciphers", &self.ciphers).finish_non_exhaustive()
    }
}

impl fmt::Debug for PeerKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PeerKeys").field("public", &self.public).finish_non_exhaustive()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicKey({self})")
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&encode(&self.0))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Ok(Self(*decode(text)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key pairs of RFC 7748 section 6.1.
    #[test]
    fn public_keys_are_those_of_rfc_7748() {
        let hex = |text: &str| {
            let digits = (0..32).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16));
            let bytes: Vec<u8> = digits.map(|byte| byte.expect("hexadecimal")).collect();
            <[u8; 32]>::try_from(bytes).expect("32 bytes")
        };
        let private = hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
        let public = hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        assert_eq!(*PrivateKey::new(private).public().bytes(), public);
    }

    #[test]
    fn keys_are_written_in_base64() {
        let mut bytes = [0; 32];
        (0..).zip(&mut bytes).for_each(|(value, byte)| *byte = value);
        let key = PublicKey::new(bytes);
        let text = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        assert_eq!(key.to_string(), text);
        assert_eq!(text.parse(), Ok(key));
        assert_eq!(format!("{text}\n").parse(), Ok(key));
        let private = PrivateKey::new([0xff; 32]);
        assert_eq!(PrivateKey::from_base64(&private.to_base64()), Ok(private));
        for wrong in [
            "",
            &text[1..],
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=",
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdH_8=",
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8A",
        ] {
            assert_eq!(wrong.parse::<PublicKey>(), Err(KeyError), "{wrong}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(format!("{:?}", PrivateKey::new([7; 32])), "PrivateKey");
        assert_eq!(format!("{:?}", PresharedKey::new([7; 32])), "PresharedKey");
    }
}
