//! Random variations of inputs, the same for the same seed.

use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::corpus::Input;

/// Bytes and lengths at which something tends to happen.
const INTERESTING: [u8; 9] = [0, 1, 4, 0x0f, 0x45, 0x60, 0x7f, 0x80, 0xff];

/// Longer inputs only take more time.
const MAX_LEN: usize = 4096;

pub(crate) struct Variations<'a> {
    inputs: &'a [Input],
    random: Xoshiro256PlusPlus,
}

impl<'a> Variations<'a> {
    /// Variations for a target: other targets get others from the same seed.
    pub(crate) fn new(inputs: &'a [Input], target: &str, seed: u64) -> Self {
        let seed = target.bytes().fold(seed, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
        Self { inputs, random: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    pub(crate) fn next(&mut self) -> Vec<u8> {
        let mut bytes = self.input().to_vec();
        for _ in 0..self.random.random_range(1..=6) {
            self.vary(&mut bytes);
        }
        bytes.truncate(MAX_LEN);
        bytes
    }

    fn input(&mut self) -> &'a [u8] {
        self.inputs.choose(&mut self.random).map_or(&[], |input| &input.bytes)
    }

    fn vary(&mut self, bytes: &mut Vec<u8>) {
        let at = self.random.random_range(0..=bytes.len());
        let end = self.random.random_range(at..=bytes.len().min(at + 32));
        match self.random.random_range(0..9) {
            0 => bytes[at..end].iter_mut().take(1).for_each(|byte| *byte ^= 1 << (end % 8)),
            1 => bytes[at..end].iter_mut().take(1).for_each(|byte| *byte = self.random.random()),
            2 => {
                let value = INTERESTING.choose(&mut self.random).copied().unwrap_or_default();
                bytes[at..end].iter_mut().take(1).for_each(|byte| *byte = value);
            }
            3 => {
                let step = self.random.random_range(1..=16_u8);
                bytes[at..end].iter_mut().take(1).for_each(|byte| *byte = byte.wrapping_sub(step));
            }
            4 => bytes.truncate(at),
            5 => drop(bytes.drain(at..end)),
            6 => {
                let more: Vec<u8> = (at..end + 1).map(|_| self.random.random()).collect();
                bytes.splice(at..at, more);
            }
            7 => bytes.extend_from_within(at..end),
            _ => {
                let other = self.input();
                let from = self.random.random_range(0..=other.len());
                bytes.splice(at.., other[from..].iter().copied());
            }
        }
        if self.random.random_ratio(1, 50) {
            bytes.shuffle(&mut self.random);
        }
    }
}
