//! A path's weight in one byte of a keepalive: four bits of exponent, and four behind a leading one.
//!
//! `docs/protocol.md` section 3.4 has the form, and why there is one byte for it. Weights up to 31 are
//! exact, larger ones within 3.1 %.

use std::num::NonZeroU16;

/// Smaller values are the IP version that stood here before, and announce nothing.
const FIRST: u8 = 16;

/// The value for the largest weight that there is one for.
const LAST: u8 = 179;

/// The weight that a value announces, 1 to 9728; `None` if it announces none.
pub(super) fn announced(value: u8) -> Option<NonZeroU16> {
    let place = value.checked_sub(FIRST).filter(|_| value <= LAST)?;
    let weight = match (place / 16, u16::from(place % 16)) {
        (0, weight) => weight,
        (exponent, mantissa) => (16 + mantissa) << (exponent - 1),
    };
    NonZeroU16::new(weight)
}

/// The value that announces the weight nearest to `weight`, of two the smaller one.
pub(super) fn announcement(weight: NonZeroU16) -> u8 {
    let weight = u32::from(weight.get());
    // The bits behind the first five are rounded away. If that makes it six, the sum below carries.
    let exponent = (weight.ilog2() + 1).saturating_sub(5);
    let mantissa = (weight + (1 << exponent) / 2 - u32::from(exponent > 0)) >> exponent;
    (u32::from(FIRST) + 16 * exponent + mantissa).min(LAST.into()) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MAX_WEIGHT;

    fn nearest(weight: u16) -> u16 {
        announced(announcement(NonZeroU16::new(weight).unwrap())).unwrap().get()
    }

    #[test]
    fn weights_are_announced_within_a_few_percent() {
        for weight in 1..=MAX_WEIGHT {
            let near = nearest(weight);
            let off = f64::from(near.abs_diff(weight)) / f64::from(weight);
            assert!(if weight < 32 { off == 0.0 } else { off <= 0.031 }, "{weight} as {near}");
            assert_eq!(nearest(near), near);
        }
        assert_eq!([33, 40, 100, 1000, MAX_WEIGHT].map(nearest), [32, 40, 100, 992, 9728]);
    }

    #[test]
    fn values_out_of_range_announce_nothing() {
        for value in 0..=u8::MAX {
            assert_eq!(announced(value).is_some(), (17..=179).contains(&value), "{value}");
        }
        let weights: Vec<_> = (17..=179).filter_map(announced).collect();
        assert!(weights.is_sorted_by(|a, b| a < b), "each value has a weight of its own");
    }
}
