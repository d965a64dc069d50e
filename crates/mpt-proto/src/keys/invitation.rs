//! What stands for a client whose key a server does not know yet.

use std::fmt;
use std::str::FromStr;

use blake2::{Blake2s256, Digest as _};
use zeroize::Zeroizing;

use super::base64::{KEY_LEN, KeyError, decode, encode};

/// The secret of an invitation. It comes with the first handshake of the client who has it, and the server takes the key
/// of that client for the one that was meant. It is handled like a [`PrivateKey`](super::PrivateKey).
#[derive(Clone, PartialEq, Eq)]
pub struct InvitationSecret(Zeroizing<[u8; KEY_LEN]>);

/// The BLAKE2s-256 hash of such a secret: what the server keeps, so that its files do not give the secret away.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct InvitationHash([u8; KEY_LEN]);

impl InvitationSecret {
    /// The secret of these bytes, which must be random; zeros stand for none.
    pub fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads the secret from Base64, as [`PrivateKey::from_base64`](super::PrivateKey::from_base64).
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the text is not the Base64 of 32 bytes.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        Ok(Self(decode(text)?))
    }

    /// The secret in Base64.
    pub fn to_base64(&self) -> Zeroizing<String> {
        Zeroizing::new(encode(&self.0))
    }

    /// What the server keeps of it.
    pub fn hash(&self) -> InvitationHash {
        InvitationHash(Blake2s256::digest(self.0.as_slice()).into())
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl fmt::Debug for InvitationSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("InvitationSecret")
    }
}

impl fmt::Debug for InvitationHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "InvitationHash({self})")
    }
}

impl fmt::Display for InvitationHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&encode(&self.0))
    }
}

impl FromStr for InvitationHash {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Ok(Self(*decode(text)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_blake2s_and_the_secret_is_not_shown() {
        // Python: base64.b64encode(hashlib.blake2s(b"\x07" * 32).digest())
        let secret = InvitationSecret::new([7; 32]);
        let hash = "IaCmb1oE0R3CoebxJCamJztXNKem949ClWmVVZt/07o=";
        assert_eq!(secret.hash().to_string(), hash);
        assert_eq!(hash.parse(), Ok(secret.hash()));
        assert_eq!(format!("{secret:?}"), "InvitationSecret");
        assert_eq!(InvitationSecret::from_base64(&secret.to_base64()), Ok(secret));
    }
}
