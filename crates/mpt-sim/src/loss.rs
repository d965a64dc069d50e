//! How packets get lost on a wire: one by one, or in bursts.
//!
//! [`Loss`] is the description, [`LossProcess`] the running process with its state. Bursts follow
//! the four-parameter Gilbert-Elliott chain as in E. O. Elliott, "Estimates of error rates for
//! codes on burst-noise channels", Bell System Technical Journal 42 (1963): a wire is *good* or
//! *bad*, each packet meets the present state and then the state may change.

use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::link::chance;

/// The loss process of one direction of a wire. Every parameter is a probability in 0..=1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// No packet is lost.
    #[default]
    None,
    /// Each packet is lost with this probability, independently of all others.
    Random(f64),
    /// Loss in bursts.
    GilbertElliott(GilbertElliott),
}

/// Parameters of the Gilbert-Elliott chain, each a probability in 0..=1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// From good to bad, per packet.
    pub p: f64,
    /// From bad to good, per packet. The mean burst lasts 1/r packets.
    pub r: f64,
    /// Probability that a packet survives the bad state. Zero if not given.
    #[serde(default)]
    pub h: f64,
    /// Probability that a packet survives the good state. One if not given.
    #[serde(default = "certain")]
    pub k: f64,
}

fn certain() -> f64 {
    1.0
}

impl Loss {
    /// The share of packets lost in the long run, in 0..=1.
    ///
    /// The chain is in the bad state for p / (p + r) of all packets; one that never moves stays
    /// good, because that is where it begins.
    pub fn long_run(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Random(p) => p,
            Self::GilbertElliott(GilbertElliott { p, r, h, k }) => {
                let bad = if p > 0.0 { p / (p + r) } else { 0.0 };
                bad * (1.0 - h) + (1.0 - bad) * (1.0 - k)
            }
        }
    }
}

/// A [`Loss`] at work: the description and the state it is in.
#[derive(Clone, Debug)]
pub struct LossProcess {
    loss: Loss,
    bad: bool,
}

impl LossProcess {
    /// A process that begins in the good state.
    pub fn new(loss: Loss) -> Self {
        Self { loss, bad: false }
    }

    /// Changes the description. A wire that is in a bad state stays in it.
    pub fn set_loss(&mut self, loss: Loss) {
        self.loss = loss;
    }

    /// Whether the next packet is lost; advances the state by one packet.
    pub fn is_lost(&mut self, rng: &mut impl Rng) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Random(p) => chance(rng, p),
            Loss::GilbertElliott(GilbertElliott { p, r, h, k }) => {
                let survives = if self.bad { h } else { k };
                let lost = chance(rng, 1.0 - survives);
                if chance(rng, if self.bad { r } else { p }) {
                    self.bad = !self.bad;
                }
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    const PACKETS: usize = 200_000;

    fn run(loss: Loss) -> Vec<bool> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut process = LossProcess::new(loss);
        (0..PACKETS).map(|_| process.is_lost(&mut rng)).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|&&l| l).count() as f64 / lost.len() as f64
    }

    /// Lengths of the runs of consecutive losses.
    fn bursts(lost: &[bool]) -> Vec<usize> {
        lost.split(|&l| !l).map(<[bool]>::len).filter(|&n| n > 0).collect()
    }

    #[test]
    fn random_loss_hits_its_share_without_bursts() {
        let lost = run(Loss::Random(0.01));
        // Five standard deviations of a binomial with n = 200 000, p = 0.01: 0.0011.
        assert!((share(&lost) - 0.01).abs() < 0.0011, "{}", share(&lost));
        // Independent losses: the mean run is 1 / (1 - p).
        let bursts = bursts(&lost);
        let mean = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
        assert!((mean - 1.0 / 0.99).abs() < 0.02, "{mean}");
    }

    #[test]
    fn gilbert_elliott_hits_its_share_in_bursts_of_the_set_length() {
        let loss = Loss::GilbertElliott(GilbertElliott { p: 0.01, r: 0.3, h: 0.0, k: 1.0 });
        assert!((loss.long_run() - 0.01 / 0.31).abs() < 1e-12);
        let lost = run(loss);
        // The variance of a two-state chain's mean is that of independent trials times
        // (2 - p - r) / (p + r) = 5.45; five standard deviations are then 0.0046.
        assert!((share(&lost) - loss.long_run()).abs() < 0.0046, "{}", share(&lost));
        // Burst lengths are geometric with mean 1/r and deviation below 1/r; there are about 1935.
        let bursts = bursts(&lost);
        let mean = bursts.iter().sum::<usize>() as f64 / bursts.len() as f64;
        assert!((mean - 1.0 / 0.3).abs() < 5.0 * (1.0 / 0.3) / 1935_f64.sqrt(), "{mean}");
    }

    #[test]
    fn both_states_of_the_chain_can_lose_and_spare() {
        let loss = Loss::GilbertElliott(GilbertElliott { p: 0.1, r: 0.1, h: 0.5, k: 0.9 });
        assert!((loss.long_run() - 0.3).abs() < 1e-12);
        assert!((share(&run(loss)) - 0.3).abs() < 0.012);
    }

    #[test]
    fn certain_loss_loses_all_and_none_loses_nothing() {
        assert_eq!(share(&run(Loss::Random(1.0))), 1.0);
        assert_eq!(share(&run(Loss::Random(0.0))), 0.0);
        assert_eq!(share(&run(Loss::None)), 0.0);
    }
}
