//! One good way of mixing 64 bits.

/// A bijection on 64 bits of which every input bit changes every output bit about half of the time:
/// the last step of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
/// OOPSLA 2014), two multiplications and three shifts.
///
/// It has no secret, so it does not resist deliberate collisions. It only selects the path of a
/// flow, and a sender of the packets can load one path with a single flow as well.
#[inline]
pub(crate) const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::mix;

    #[test]
    fn every_bit_of_the_input_changes_half_of_the_output() {
        for bit in 0..64 {
            let changed: u32 = (0..256)
                .map(|seed| (mix(seed * 77) ^ mix((seed * 77) ^ (1 << bit))).count_ones())
                .sum();
            let share = f64::from(changed) / (256.0 * 64.0);
            assert!((0.48..0.52).contains(&share), "bit {bit}: {share}");
        }
    }
}
