//! The AEADs that seal datagrams, in place (section 9.1 of `docs/protocol.md`).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

use crate::keys::KEY_LEN;
use crate::keys::ciphers::Cipher;
use crate::stats::Drop;
use crate::wire::extended::sealed::TAG_LEN;
use crate::wire::extended::{Header, Kind, NO_PATH};

/// So many datagrams may be sealed with one key: the confidentiality limit of RFC 9001 appendix B, for packets of up
/// to 2^11 bytes.
pub(crate) const MOST_SEALED: u64 = 1 << 28;

/// The space of the nonces of numbered control.
const CONTROL_SPACE: u16 = u16::MAX;

/// What the library computes of a key: the key schedule and the table of GCM. The library does not overwrite it, so it stays in
/// one place until this does, with a key of zeros for AES, which is as large as any and has no gaps.
#[derive(Debug)]
struct Aead(Box<LessSafeKey>);

impl Aead {
    /// Bytes of memory apart from its own size.
    const MEMORY: usize = size_of::<LessSafeKey>();

    fn new(cipher: Cipher, bytes: &[u8; KEY_LEN]) -> Self {
        let algorithm = match cipher {
            Cipher::Aes256Gcm => &AES_256_GCM,
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        Self(expand(algorithm, bytes))
    }
}

impl std::ops::Drop for Aead {
    fn drop(&mut self) {
        *self.0 = *expand(&AES_256_GCM, &[0; KEY_LEN]);
        // Nobody reads it any more, so the compiler would leave that out.
        std::hint::black_box(&*self.0);
    }
}

fn expand(algorithm: &'static Algorithm, bytes: &[u8; KEY_LEN]) -> Box<LessSafeKey> {
    let key = UnboundKey::new(algorithm, bytes).expect("both have keys of 32 bytes");
    Box::new(LessSafeKey::new(key))
}

/// A cipher with a key of zeros, so that a caller with a clock can measure which one is the faster on this machine.
#[derive(Debug)]
pub struct CipherTrial(Aead);

impl CipherTrial {
    /// Sets up the key, which is done once in many packets and so is no part of what is to be measured.
    pub fn new(cipher: Cipher) -> Self {
        Self(Aead::new(cipher, &[0; KEY_LEN]))
    }

    /// Seals a buffer.
    pub fn seal(&self, buffer: &mut [u8]) {
        let sealed = self.0.0.seal_in_place_separate_tag(nonce(0, 0), Aad::empty(), buffer);
        std::hint::black_box(sealed.is_ok());
    }
}

/// The key of the direction to the peer, in one epoch.
pub(crate) struct SealingKey {
    key: Aead,
    /// What stands in the way of using a nonce twice; by [`place`] of the space, as far as spaces are used.
    spaces: Vec<Numbers>,
    sealed: Arc<AtomicU64>,
}

/// The numbers of one space: the first one, and how far behind it the next one must be at least.
#[derive(Clone, Copy, Default)]
struct Numbers {
    first: u32,
    next: u32,
}

/// The key of the direction from the peer, in one epoch.
pub(crate) struct OpeningKey(Aead);

/// A key to seal with, on its way from the half that agrees on it to the one that sends.
#[derive(Clone)]
pub(crate) struct KeyBytes {
    cipher: Cipher,
    bytes: Zeroizing<[u8; KEY_LEN]>,
    usage: Usage,
}

/// How many datagrams a [`SealingKey`] has sealed, for the half that decides when it is replaced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage(Arc<AtomicU64>);

impl Usage {
    /// Bytes of memory apart from its own size, which it shares with the key.
    pub(crate) const MEMORY: usize = 3 * size_of::<usize>();

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl KeyBytes {
    pub(crate) fn new(cipher: Cipher, bytes: Zeroizing<[u8; KEY_LEN]>) -> Self {
        Self { cipher, bytes, usage: Usage::default() }
    }

    /// The key itself, of which there must be one.
    pub(crate) fn key(&self) -> SealingKey {
        let sealed = Arc::clone(&self.usage.0);
        SealingKey { key: Aead::new(self.cipher, &self.bytes), spaces: Vec::new(), sealed }
    }

    pub(crate) fn usage(&self) -> Usage {
        self.usage.clone()
    }
}

impl SealingKey {
    /// Seals a datagram in place: header, then what is to be encrypted, then [`TAG_LEN`] bytes for the tag.
    ///
    /// # Errors
    ///
    /// [`Drop::SealExpired`] if the number has been used, or is not above the last one of its space, or the key has been used
    /// up. Then the datagram is filled with zeros.
    #[inline]
    pub(crate) fn seal(&mut self, header: &Header, datagram: &mut [u8]) -> Result<(), Drop> {
        let (slot, space) = space(header);
        if !self.take(slot, header.path_sequence) {
            datagram.fill(0);
            return Err(Drop::SealExpired);
        }
        let (head, rest) = datagram.split_at_mut(header.size());
        let (text, tag) = rest.split_at_mut(rest.len() - TAG_LEN);
        let nonce = nonce(space, header.path_sequence);
        let sealed = self.key.0.seal_in_place_separate_tag(nonce, Aad::from(&*head), text);
        match sealed {
            Ok(sealed) => tag.copy_from_slice(sealed.as_ref()),
            // Of no length that a datagram has.
            Err(_) => {
                datagram.fill(0);
                return Err(Drop::SealExpired);
            }
        }
        Ok(())
    }

    /// Takes a number of a space, which is above those before.
    #[inline]
    fn take(&mut self, slot: u8, number: u32) -> bool {
        let place = place(slot);
        if place >= self.spaces.len() {
            self.add_spaces(place);
        }
        let numbers = &mut self.spaces[place];
        if numbers.next == 0 {
            numbers.first = number;
        }
        let distance = number.wrapping_sub(numbers.first);
        let sealed = self.sealed.load(Ordering::Relaxed);
        if distance < numbers.next || distance == u32::MAX || sealed >= MOST_SEALED {
            return false;
        }
        numbers.next = distance + 1;
        // This is the only place that writes it.
        self.sealed.store(sealed + 1, Ordering::Relaxed);
        true
    }

    #[cold]
    fn add_spaces(&mut self, place: usize) {
        self.spaces.reserve_exact(place + 1 - self.spaces.len());
        self.spaces.resize(place + 1, Numbers::default());
    }

    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.spaces.capacity() * size_of::<Numbers>() + Aead::MEMORY
    }
}

impl OpeningKey {
    /// Bytes of memory apart from its own size.
    pub(crate) const MEMORY: usize = Aead::MEMORY;

    pub(crate) fn new(cipher: Cipher, bytes: &[u8; KEY_LEN]) -> Self {
        Self(Aead::new(cipher, bytes))
    }

    /// Opens a datagram in place: what was encrypted stands behind the header then, and the tag behind that.
    ///
    /// # Errors
    ///
    /// [`Drop::ExtendedTruncated`] if there is no room for a tag; [`Drop::SealForged`] if it is not authentic. What is behind the
    /// header is worthless then.
    #[inline]
    pub(crate) fn open(&self, header: &Header, datagram: &mut [u8]) -> Result<(), Drop> {
        let size = header.size();
        if datagram.len() < size + TAG_LEN {
            return Err(Drop::ExtendedTruncated);
        }
        let (head, text) = datagram.split_at_mut(size);
        let (_, space) = space(header);
        let nonce = nonce(space, header.path_sequence);
        let opened = self.0.0.open_in_place(nonce, Aad::from(&*head), text);
        opened.map(|_| ()).map_err(|_| Drop::SealForged)
    }
}

/// The space of the nonce of a datagram, and the place at which it is remembered.
#[inline]
pub(crate) fn space(header: &Header) -> (u8, u16) {
    if matches!(header.kind, Kind::PathChallenge | Kind::PathAnswer | Kind::Close) {
        (NO_PATH, CONTROL_SPACE)
    } else {
        (header.path, header.path.into())
    }
}

/// Where in a table the space with this [slot](space) stands: numbered control, which all epochs have, then the path ids,
/// which begin with 0.
#[inline]
pub(super) fn place(slot: u8) -> usize {
    slot.wrapping_add(1).into()
}

/// Lane 0, space, sequence.
#[inline]
fn nonce(space: u16, sequence: u32) -> Nonce {
    let mut nonce = [0; 12];
    nonce[2..4].copy_from_slice(&space.to_be_bytes());
    nonce[8..].copy_from_slice(&sequence.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SealingKey")
    }
}

impl fmt::Debug for KeyBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyBytes")
    }
}

impl PartialEq for KeyBytes {
    /// Whether they are the same key, not merely equal bytes.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.usage.0, &other.usage.0)
    }
}

impl Eq for KeyBytes {}

impl fmt::Debug for OpeningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("OpeningKey")
    }
}

#[cfg(test)]
mod tests;
