//! What is made of BLAKE2s (RFC 7693): the codes that precede a handshake, and randomness.

use blake2::digest::consts::U16;
use blake2::digest::{Digest as _, KeyInit as _, Mac as _};
use blake2::{Blake2s256, Blake2sMac};
use zeroize::Zeroizing;

use crate::keys::{KEY_LEN, PublicKey};
use crate::wire::extended::sealed::MAC_LEN;

/// A message authentication code.
pub(crate) type MacBytes = [u8; MAC_LEN];

/// The keyed hash of `parts`, one after the other. Keys have 16 or 32 bytes.
pub(crate) fn mac(key: &[u8], parts: &[&[u8]]) -> MacBytes {
    let mut mac = Blake2sMac::<U16>::new_from_slice(key).expect("a key of at most 32 bytes");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// Whether two codes are equal; how long that takes says nothing about where they differ.
pub(crate) fn is_equal(one: &[u8], other: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(one, other).is_ok()
}

/// The key of [`mac`] for messages to the owner of a public key.
pub(crate) fn labelled(label: &[u8], key: &PublicKey) -> [u8; KEY_LEN] {
    Blake2s256::new().chain_update(label).chain_update(key.bytes()).finalize().into()
}

/// Random bytes from one seed, by fast key erasure: with each draw the seed is replaced, so that what was drawn before
/// cannot be found out from it any more (Bernstein 2017).
pub(crate) struct Generator(Zeroizing<[u8; KEY_LEN]>);

impl Generator {
    /// The same seed gives the same bytes.
    pub(crate) fn new(seed: &[u8; KEY_LEN]) -> Self {
        let mut generator = Self(Zeroizing::new(*seed));
        // The caller's copy of the seed is of no use any more.
        generator.draw();
        generator
    }

    /// The next 32 bytes.
    pub(crate) fn draw(&mut self) -> Zeroizing<[u8; KEY_LEN]> {
        let hash = |label: u8| {
            let hash = Blake2s256::new().chain_update(self.0.as_slice()).chain_update([label]);
            Zeroizing::new(<[u8; KEY_LEN]>::from(hash.finalize()))
        };
        let (drawn, next) = (hash(1), hash(2));
        self.0 = next;
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_depends_on_key_and_content() {
        let code = mac(&[1; 32], &[b"ab", b"c"]);
        assert_eq!(code, mac(&[1; 32], &[b"a", b"bc"]));
        assert_ne!(code, mac(&[2; 32], &[b"abc"]));
        assert_ne!(code, mac(&[1; 32], &[b"abd"]));
        assert!(is_equal(&code, &code) && !is_equal(&code, &[0; 16]));
    }

    #[test]
    fn no_draw_repeats_and_the_seed_decides() {
        let draws = |seed| {
            let mut generator = Generator::new(&[seed; 32]);
            [(); 3].map(|()| *generator.draw())
        };
        assert_eq!(draws(1), draws(1));
        let all = [draws(1), draws(2)].concat();
        assert!((0..6).all(|at| !all[..at].contains(&all[at])));
    }
}
