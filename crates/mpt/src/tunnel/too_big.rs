//! Inner packets that exceed the tunnel's MTU: dropped, and answered by ICMP.
//!
//! The kernel checks packets against the interface's MTU before it hands them over. Bigger ones come all
//! the same: those that waited in the interface's queue while its MTU fell, and all up to a configured
//! MTU that the paths do not carry.
//!
//! The answer is handed to the kernel as a packet out of the tunnel, and so is subject to what the kernel
//! believes of such. It refuses those that claim to come from itself, and with strict reverse path
//! filtering (RFC 3704 section 2.2) those whose sender is not reached through the tunnel. The one
//! address that is right on every host is the one that the packet was sent to: it is what the packet
//! was routed into the tunnel for. Path MTU discovery does not look at who answers (RFC 1191
//! section 4, RFC 8201 section 4), only at the packet quoted.

use std::io;
use std::time::Duration;

use mpt_proto::wire::{icmp, inner};
use mpt_proto::{Instant, TokenBucket};

/// Answers in a burst, and how often one more: as many as Linux sends (`icmp_msgs_burst`,
/// `icmp_msgs_per_sec`). All flows of a site may need one at once.
const BURST: u32 = 50;
const INTERVAL: Duration = Duration::from_millis(1);

/// The answers to packets that are too big.
pub(super) struct TooBig {
    answers: TokenBucket,
    /// Answers that were sent.
    pub(super) answered: u64,
}

impl TooBig {
    pub(super) fn new() -> Self {
        Self { answers: TokenBucket::new(BURST, INTERVAL), answered: 0 }
    }

    /// Sends the sender of `packet` an ICMP message with `mtu`, by calling `write` with it. Returns
    /// whether that was done: some packets get no answer ([`icmp::too_big`]), and there is a limit.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        packet: &[u8],
        mtu: u32,
        write: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> bool {
        let mut place = [0; icmp::MAX_LEN];
        let answered = answer_to(packet, mtu, &mut place)
            .is_some_and(|len| self.answers.take(now) && write(&place[..len]).is_ok());
        self.answered += u64::from(answered);
        answered
    }
}

fn answer_to(packet: &[u8], mtu: u32, place: &mut [u8; icmp::MAX_LEN]) -> Option<usize> {
    let destination = inner::parse(packet)?.destination;
    // A multicast address is never a source address (RFC 1122 section 3.2.1.3, RFC 4291 section
    // 2.7).
    if destination.is_multicast() {
        return None;
    }
    icmp::too_big(packet, mtu, destination, place)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use etherparse::PacketBuilder;

    use super::*;

    fn ipv6(destination: [u8; 16]) -> Vec<u8> {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv6([0xfd; 16], destination, 64).udp(7, 9);
        builder.write(&mut packet, &[0; 1400]).unwrap();
        packet
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn the_icmp_answer_comes_from_the_packets_destination() {
        let mut too_big = TooBig::new();
        let packet = ipv6([0xfc; 16]);
        let mut told = Vec::new();
        let answered = too_big.answer(at(0), &packet, 1300, |answer| {
            told.extend_from_slice(answer);
            Ok(())
        });
        assert!(answered);
        let parsed = inner::parse(&told).unwrap();
        assert_eq!([parsed.source, parsed.destination], [[0xfc; 16], [0xfd; 16]].map(IpAddr::from));
        assert_eq!((told[40], u32::from_be_bytes(told[44..48].try_into().unwrap())), (2, 1300));
    }

    #[test]
    fn answers_are_limited_and_those_that_fail_do_not_count() {
        let mut too_big = TooBig::new();
        let packet = ipv6([0xfc; 16]);
        assert!(!too_big.answer(at(0), &packet, 1300, |_| Err(io::ErrorKind::WouldBlock.into())));
        let mut written = 0;
        for _ in 0..200 {
            too_big.answer(at(1000), &packet, 1300, |_| {
                written += 1;
                Ok(())
            });
        }
        assert_eq!((written, too_big.answered), (u64::from(BURST), u64::from(BURST)));
        assert!(too_big.answer(at(1001), &packet, 1300, |_| Ok(())));
    }

    #[test]
    fn no_icmp_answer_for_a_multicast_destination() {
        let group = [0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert!(!TooBig::new().answer(at(0), &ipv6(group), 1300, |_| Ok(())));
    }
}
