//! Sums with the registers that every processor has.

/// The sum of `bytes` in at most 34 bits, without any wide register.
#[inline]
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    // What overflows 64 bits is counted in the upper half, to be added at the lower end.
    let mut sum = 0_u128;
    for word in words {
        sum += u128::from(u64::from_ne_bytes(*word));
    }
    let (sum, carries) = (sum as u64, (sum >> 64) as u64);
    (sum >> 32) + (sum & 0xffff_ffff) + carries + sum_end(rest)
}

/// The sum of less than eight bytes.
#[inline]
fn sum_end(bytes: &[u8]) -> u64 {
    let (first, rest) = match bytes.split_first_chunk() {
        Some((first, rest)) => (u32::from_ne_bytes(*first), rest),
        None => (0, bytes),
    };
    let last = match *rest {
        [] => 0,
        [a] => u32::from_ne_bytes([a, 0, 0, 0]),
        [a, b] => u32::from_ne_bytes([a, b, 0, 0]),
        [a, b, c, ..] => u32::from_ne_bytes([a, b, c, 0]),
    };
    u64::from(first) + u64::from(last)
}

/// The [`sum`] of `bytes`, which are copied to `place` as well.
pub(super) fn copy(bytes: &[u8], place: &mut [u8]) -> u64 {
    place.copy_from_slice(bytes);
    sum(bytes)
}
