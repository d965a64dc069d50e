//! What a stream of TCP could be at most over wires that have a rate.

/// Bytes of a full frame of a wire, as its rate counts them: an MTU of 1500 and the Ethernet header.
const FRAME: u32 = 1500 + 14;
/// Bytes of the headers of TCP's packets: IPv4, TCP, and the time-stamp option (RFC 7323) with its
/// padding, which the kernel sends by default.
const HEADERS: u32 = 20 + 20 + 12;

/// Goodput in bits per second over `links` wires of `rate` bits per second each, if the subject has an
/// MTU of `mtu` bytes.
///
/// All wires are full of full frames, and in each is one packet of the subject's MTU, less headers.
/// What a tunnel needs around that packet is the difference of the two MTUs. Acknowledgements go the
/// other way and cost nothing.
pub(super) fn goodput(rate: u64, links: usize, mtu: u32) -> f64 {
    let share = f64::from(mtu.saturating_sub(HEADERS)) / f64::from(FRAME);
    rate as f64 * links as f64 * share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_taken_off() {
        // Worked out by hand: 1448 of 1514 bytes, and 1412 inside of 36 bytes of IPv4, UDP and GRE.
        assert!((goodput(1_000_000_000, 1, 1500) - 956_406_869.0).abs() < 1.0);
        assert!((goodput(1_000_000_000, 2, 1464) - 1_865_257_595.0).abs() < 1.0);
    }
}
