//! Dice: everything on a link that is left to chance, drawn from one seed.

use std::time::Duration;

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Carried;

/// True with probability `p`. Without chance nothing is drawn.
pub(crate) fn chance(rng: &mut impl Rng, p: f64) -> bool {
    p > 0.0 && rng.random::<f64>() < p
}

/// A random stream for each impairment: 2^128 draws apart in the same xoshiro256++ sequence.
#[derive(Clone, Debug)]
pub(super) struct Dice {
    pub(super) loss: Xoshiro256PlusPlus,
    pub(super) duplicate: Xoshiro256PlusPlus,
    pub(super) corrupt: Xoshiro256PlusPlus,
    pub(super) reorder: Xoshiro256PlusPlus,
    jitter: Xoshiro256PlusPlus,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        let mut sequence = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut stream = || {
            let here = sequence.clone();
            sequence.jump();
            here
        };
        Self {
            loss: stream(),
            duplicate: stream(),
            corrupt: stream(),
            reorder: stream(),
            jitter: stream(),
        }
    }

    /// `delay` plus a normally distributed deviation of standard size `jitter`, not below zero.
    pub(super) fn delay(&mut self, delay: Duration, jitter: Duration) -> Duration {
        if jitter.is_zero() {
            return delay;
        }
        let deviation: f64 = StandardNormal.sample(&mut self.jitter);
        let offset = jitter.mul_f64(deviation.abs());
        if deviation < 0.0 { delay.saturating_sub(offset) } else { delay.saturating_add(offset) }
    }

    /// Inverts one bit of `packet`, which must not be empty; each is equally likely.
    pub(super) fn invert_one_bit(&mut self, packet: &mut impl Carried) {
        let bit = self.corrupt.random_range(0..packet.size() * 8);
        packet.invert_bit(bit);
    }
}
