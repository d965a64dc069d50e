//! The Internet checksum (RFC 1071): the complement of the one's complement sum of 16-bit words.
//!
//! Such a sum does not depend on the order or the width of its parts, only on which bytes stand at
//! even places. So words are added eight bytes at a time, in the byte order of the machine, into
//! lanes wide enough never to overflow; everything is folded to 16 bits once at the end.
//!
//! Bytes are summed in the pass that copies them: fetching uncached memory costs more than adding.

mod narrow;
#[cfg(target_arch = "x86_64")]
mod wide;

/// A one's complement sum that is not folded yet.
///
/// Parts may be added in any order as long as each starts at an even place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum(u64);

impl Sum {
    /// The sum of `bytes`; a missing last byte counts as zero.
    #[inline]
    pub(super) fn of(bytes: &[u8]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if bytes.len() >= WIDE_FROM && std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the only feature that this function asks for.
            return Self(unsafe { wide::sum(bytes) });
        }
        Self(narrow::sum(bytes))
    }

    /// The sum of `bytes`, which are copied to `place` in the same pass.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    #[inline]
    pub(super) fn of_copied(bytes: &[u8], place: &mut [u8]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if bytes.len() >= WIDE_FROM && std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the only feature that this function asks for.
            return Self(unsafe { wide::copy(bytes, place) });
        }
        Self(narrow::copy(bytes, place))
    }

    /// With a 16-bit field of this value.
    pub(super) fn word(self, value: u16) -> Self {
        Self(self.0 + u64::from(value.to_be()))
    }

    /// Without a 16-bit field of this value: its complement is what it takes to cancel it.
    pub(super) fn without(self, value: u16) -> Self {
        self.word(!value)
    }

    /// With a 32-bit field of this value.
    pub(super) fn long(self, value: u32) -> Self {
        self.word((value >> 16) as u16).word(value as u16)
    }

    /// With all that `other` sums up.
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// The sum in 16 bits, not complemented: the content of the field of a partial checksum.
    ///
    /// Zero only if nothing but zeroes was added.
    #[inline]
    pub(super) fn partial(self) -> u16 {
        // Either half is added to the other, so that the upper one also gets the carry of the lower.
        let sum = self.0;
        let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
        let sum = (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16;
        u16::from_be(sum)
    }

    /// The checksum: the complement of the sum.
    pub(super) fn checksum(self) -> u16 {
        !self.partial()
    }

    /// Whether this is the sum of data with a correct checksum in it.
    pub(super) fn is_valid(self) -> bool {
        self.partial() == 0xffff
    }
}

/// Below this many bytes the wide registers cost more than they save.
#[cfg(target_arch = "x86_64")]
const WIDE_FROM: usize = 128;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071, section 4.1, word by word.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum = 0_u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        }
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::of(&bytes).partial(), 0xddf2);
        assert_eq!(Sum::of(&bytes).checksum(), 0x220d);
        assert!(Sum::of(&bytes).word(0x220d).is_valid());
        assert!(!Sum::of(&bytes).word(0x220e).is_valid());
    }

    #[test]
    fn a_super_packet_full_of_ones_does_not_overflow() {
        assert_eq!(Sum::of(&[0xff; 65_535]).partial(), plain(&[0xff; 65_535]));
    }

    proptest! {
        #[test]
        fn equals_the_plain_sum(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert_eq!(Sum::of(&bytes).partial(), plain(&bytes));
            prop_assert_eq!(Sum(narrow::sum(&bytes)).partial(), plain(&bytes));
        }

        #[test]
        fn bytes_summed_while_copying_arrive_unchanged(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            for copied in [Sum::of_copied, |bytes: &[u8], place: &mut [u8]| Sum(narrow::copy(bytes, place))] {
                let mut place = vec![0xee; bytes.len()];
                prop_assert_eq!(copied(&bytes, &mut place).partial(), plain(&bytes));
                prop_assert_eq!(&place, &bytes);
            }
        }

        #[test]
        fn any_sum_is_folded_as_word_by_word(sum in any::<u64>()) {
            let mut expected = sum;
            while expected > 0xffff {
                expected = (expected & 0xffff) + (expected >> 16);
            }
            prop_assert_eq!(Sum(sum).partial(), u16::from_be(expected as u16));
        }

        #[test]
        fn parts_and_fields_add_up(
            head in prop::collection::vec(any::<[u8; 2]>(), 0..40),
            tail in prop::collection::vec(any::<u8>(), 1..200),
            (short, long) in any::<(u16, u32)>(),
        ) {
            let head = head.concat();
            let sum = Sum::of(&head).word(short).and(Sum::of(&tail)).long(long);
            let fields = [&head[..], &short.to_be_bytes(), &long.to_be_bytes(), &tail].concat();
            prop_assert_eq!(sum.partial(), plain(&fields));
            let rest = [&head[..], &long.to_be_bytes(), &tail].concat();
            prop_assert_eq!(sum.without(short).partial() % 0xffff, plain(&rest) % 0xffff);
        }
    }
}
