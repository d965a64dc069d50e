//! One number for everything that happened.

use mpt_proto::Instant;

/// FNV-1a's step, taken by words of 64 bits instead of bytes, over records of time, place and
/// content. It only has to distinguish runs, not to resist attacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    pub(super) fn add(&mut self, now: Instant, place: u64, bytes: &[u8]) {
        self.step(now.as_nanos());
        self.step(place);
        self.step(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.step(u64::from_be_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.step(u64::from_be_bytes(last));
    }

    pub(super) fn value(self) -> u64 {
        self.0
    }

    fn step(&mut self, word: u64) {
        // The rotation carries high bits down, where the product alone would leave them.
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
    }
}
