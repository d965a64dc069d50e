//! Noise (revision 34) by snow, with the primitives of the crate that also seals datagrams, and BLAKE2s.
//!
//! One pattern is used, `IKpsk2`: the initiator knows the responder's static key, and each host contributes an
//! ephemeral one. Randomness comes in by the door, as the 32 bytes of the ephemeral key.

use std::sync::{Arc, LazyLock};

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{self, UnparsedPublicKey, X25519};
use blake2::{Blake2s256, Digest as _};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, Error, HandshakeState};
use zeroize::Zeroizing;

use super::hash::is_equal;
use crate::keys::{KEY_LEN, PresharedKey, PrivateKey, PublicKey};
use crate::wire::extended::sealed::TAG_LEN;

/// The name of the protocol, which both hosts hash first.
const NAME: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";

/// What both hosts hash next.
const PROLOGUE: &[u8] = b"MPT sealed 1";

/// Where the pre-shared key is mixed in: at the end of the second message.
const PSK_PLACE: usize = 2;

/// The keys that a handshake has agreed on.
pub(crate) struct Split {
    /// For the initiator's direction.
    pub(crate) first: Zeroizing<[u8; KEY_LEN]>,
    /// For the responder's.
    pub(crate) second: Zeroizing<[u8; KEY_LEN]>,
}

/// A static key that is ready to be used: to make it so costs as much as a fifth of a handshake.
#[derive(Clone)]
pub(crate) struct StaticKey {
    private: PrivateKey,
    key: Option<Arc<agreement::PrivateKey>>,
    public: PublicKey,
}

impl StaticKey {
    pub(crate) fn new(private: &PrivateKey) -> Self {
        let key = agreement::PrivateKey::from_private_key(&X25519, private.bytes()).ok();
        Self { private: private.clone(), key: key.map(Arc::new), public: private.public() }
    }

    /// The public key that belongs to it.
    pub(crate) fn public(&self) -> &PublicKey {
        &self.public
    }
}

/// The key of the state that takes the place of those that are over.
static BLANK: LazyLock<StaticKey> =
    LazyLock::new(|| StaticKey::new(&PrivateKey::new([0; KEY_LEN])));

/// A handshake under way. It is larger than what contains it should be.
pub(crate) struct Noise(Box<HandshakeState>);

impl Noise {
    /// Of the host that begins. `ephemeral` must be random and is used once.
    pub(crate) fn initiator(
        own: &StaticKey,
        ephemeral: Zeroizing<[u8; KEY_LEN]>,
        peer: &PublicKey,
        preshared: Option<&PresharedKey>,
    ) -> Option<Self> {
        let preshared = preshared.map_or(&PresharedKey::NONE, PresharedKey::bytes);
        let builder = builder(own, ephemeral)?.local_private_key(own.private.bytes()).ok()?;
        let builder = builder.remote_public_key(peer.bytes()).ok()?;
        let builder = builder.psk(PSK_PLACE as u8, preshared).ok()?;
        Some(Self(Box::new(builder.build_initiator().ok()?)))
    }

    /// Of the host that answers; whom, the first message says.
    pub(crate) fn responder(own: &StaticKey, ephemeral: Zeroizing<[u8; KEY_LEN]>) -> Option<Self> {
        let builder = builder(own, ephemeral)?.local_private_key(own.private.bytes()).ok()?;
        Some(Self(Box::new(builder.build_responder().ok()?)))
    }

    /// Writes the next message, with this payload.
    pub(crate) fn write(&mut self, payload: &[u8], message: &mut [u8]) -> Option<usize> {
        self.0.write_message(payload, message).ok()
    }

    /// Reads the next message and returns the length of its payload; `None` if it is not authentic, which changes
    /// nothing.
    pub(crate) fn read(&mut self, message: &[u8], payload: &mut [u8]) -> Option<usize> {
        self.0.read_message(message, payload).ok()
    }

    /// The peer's static key, at a responder that has read the first message.
    pub(crate) fn peer(&self) -> Option<PublicKey> {
        self.0.get_remote_static()?.try_into().ok().map(PublicKey::new)
    }

    /// Has the responder use a pre-shared key, before it writes its message.
    pub(crate) fn set_preshared(&mut self, key: Option<&PresharedKey>) -> Option<()> {
        let key = key.map_or(&PresharedKey::NONE, PresharedKey::bytes);
        self.0.set_psk(PSK_PLACE, key).ok()
    }

    /// The keys, once both messages are through.
    pub(crate) fn split(mut self) -> Option<Split> {
        if !self.0.is_handshake_finished() {
            return None;
        }
        let (first, second) = self.0.dangerously_get_raw_split();
        let (first, second) = (Zeroizing::new(first), Zeroizing::new(second));
        Some(Split { first, second })
    }
}

impl Drop for Noise {
    /// Another state takes the place of this one in memory, as the crate does not overwrite its chaining key.
    fn drop(&mut self) {
        let blank = Self::responder_state(&BLANK);
        if let Some(blank) = blank {
            *self.0 = blank;
            std::hint::black_box(&mut *self.0);
        }
    }
}

impl Noise {
    fn responder_state(own: &StaticKey) -> Option<HandshakeState> {
        let builder = builder(own, Zeroizing::new([0; KEY_LEN]))?;
        builder.local_private_key(own.private.bytes()).ok()?.build_responder().ok()
    }
}

fn builder<'k>(own: &StaticKey, ephemeral: Zeroizing<[u8; KEY_LEN]>) -> Option<Builder<'k>> {
    let resolver = Box::new(Resolver { own: own.clone(), ephemeral });
    Builder::with_resolver(NAME.parse().ok()?, resolver).prologue(PROLOGUE).ok()
}

/// Gives snow the primitives.
struct Resolver {
    own: StaticKey,
    ephemeral: Zeroizing<[u8; KEY_LEN]>,
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Ephemeral(Some(self.ephemeral.clone()))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        let pair = || Box::new(KeyPair::new(self.own.clone())) as Box<dyn Dh>;
        (*choice == DHChoice::Curve25519).then(pair)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        (*choice == HashChoice::Blake2s).then(|| Box::<Blake2s>::default() as Box<dyn Hash>)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        (*choice == CipherChoice::ChaChaPoly).then(|| Box::new(ChaChaPoly(None)) as Box<dyn Cipher>)
    }
}

/// The randomness of one handshake, which is one ephemeral key.
struct Ephemeral(Option<Zeroizing<[u8; KEY_LEN]>>);

impl Random for Ephemeral {
    fn try_fill_bytes(&mut self, place: &mut [u8]) -> Result<(), Error> {
        let bytes = self.0.take().filter(|bytes| bytes.len() == place.len()).ok_or(Error::Rng)?;
        place.copy_from_slice(&*bytes);
        Ok(())
    }
}

/// A key pair of X25519.
struct KeyPair {
    /// The one that need not be made ready.
    known: StaticKey,
    private: Zeroizing<[u8; KEY_LEN]>,
    key: Option<Arc<agreement::PrivateKey>>,
    public: [u8; KEY_LEN],
}

impl KeyPair {
    fn new(known: StaticKey) -> Self {
        let (private, public) = (Zeroizing::default(), [0; KEY_LEN]);
        Self { known, private, key: None, public }
    }
}

impl Dh for KeyPair {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY_LEN
    }

    fn priv_len(&self) -> usize {
        KEY_LEN
    }

    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        if is_equal(private, self.known.private.bytes()) {
            self.key.clone_from(&self.known.key);
            self.public = *self.known.public.bytes();
            return;
        }
        let key = agreement::PrivateKey::from_private_key(&X25519, private).ok();
        self.key = key.map(Arc::new);
        let public = self.key.as_ref().and_then(|key| key.compute_public_key().ok());
        let bytes = public.and_then(|public| <[u8; KEY_LEN]>::try_from(public.as_ref()).ok());
        self.public = bytes.unwrap_or_default();
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        let mut private = Zeroizing::new([0; KEY_LEN]);
        rng.try_fill_bytes(&mut *private)?;
        self.set(&*private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &*self.private
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let key = self.key.as_ref().ok_or(Error::Dh)?;
        let public = UnparsedPublicKey::new(&X25519, public.get(..KEY_LEN).ok_or(Error::Dh)?);
        // It refuses a shared secret of zeros, which keys of low order lead to (RFC 7748 section 6.1).
        agreement::agree(key, public, Error::Dh, |shared| {
            out[..KEY_LEN].copy_from_slice(shared);
            Ok(())
        })
    }
}

/// ChaCha20-Poly1305 with the nonces of Noise: 32 zero bits, then 64 bits in little-endian order.
struct ChaChaPoly(Option<LessSafeKey>);

impl ChaChaPoly {
    fn nonce(number: u64) -> Nonce {
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&number.to_le_bytes());
        Nonce::assume_unique_for_key(nonce)
    }
}

impl Cipher for ChaChaPoly {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; KEY_LEN]) {
        self.0 = UnboundKey::new(&CHACHA20_POLY1305, key).ok().map(LessSafeKey::new);
    }

    fn encrypt(&self, nonce: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let (text, rest) = out.split_at_mut(plaintext.len());
        text.copy_from_slice(plaintext);
        let key = self.0.as_ref().expect("snow sets the key first");
        let tag = key.seal_in_place_separate_tag(Self::nonce(nonce), Aad::from(authtext), text);
        rest[..TAG_LEN].copy_from_slice(tag.expect("a payload of allowed length").as_ref());
        plaintext.len() + TAG_LEN
    }

    fn decrypt(
        &self,
        nonce: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let key = self.0.as_ref().ok_or(Error::Decrypt)?;
        let len = ciphertext.len().checked_sub(TAG_LEN).ok_or(Error::Decrypt)?;
        let (text, tag) = ciphertext.split_at(len);
        let place = out.get_mut(..len).ok_or(Error::Decrypt)?;
        let aad = Aad::from(authtext);
        let done = key.open_separate_gather(Self::nonce(nonce), aad, text, tag, place);
        done.map(|()| len).map_err(|_| Error::Decrypt)
    }
}

/// BLAKE2s with 32 bytes of output.
#[derive(Default)]
struct Blake2s(Blake2s256);

impl Hash for Blake2s {
    fn name(&self) -> &'static str {
        "BLAKE2s"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.0 = Blake2s256::new();
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        out[..32].copy_from_slice(&self.0.finalize_reset());
    }
}
