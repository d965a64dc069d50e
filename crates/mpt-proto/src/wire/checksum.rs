//! The Internet checksum (RFC 1071).

/// The ones' complement checksum of `bytes`, padded with a zero byte to an even length.
///
/// A message that contains its own correct checksum sums to zero.
pub fn internet(bytes: &[u8]) -> u16 {
    let mut sum: u64 = 0;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        sum += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut tail = [0; 4];
    tail[..words.remainder().len()].copy_from_slice(words.remainder());
    sum += u64::from(u32::from_be_bytes(tail));
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_example_of_rfc_1071_section_3() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(internet(&bytes), !0xddf2);
    }

    #[test]
    fn odd_lengths_are_padded_and_a_summed_message_sums_to_zero() {
        let mut message = vec![0x12, 0x34, 0, 0, 0x56];
        let sum = internet(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(internet(&message), 0);
        assert_eq!(internet(&[]), 0xffff);
    }
}
