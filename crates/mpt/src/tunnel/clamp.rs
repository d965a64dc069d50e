//! What TCP announces, lowered to segments that fit the tunnel, where that is asked for.
//!
//! Each side has a [`Clamp`]: the transmit side for the SYNs of hosts here, which announce what they take
//! from beyond the tunnel, the receive side for those from there. Both go by the MTU of this end, which is
//! all that is known here.

use mpt_io::tun::Unfinished;
use mpt_proto::wire::mss::{self, Checksum};

/// One direction.
#[derive(Default)]
pub(super) struct Clamp {
    /// What segments have to fit; none where nothing is asked for.
    mtu: Option<u32>,
    /// SYNs that were changed.
    pub(super) lowered: u64,
    /// The changed copy of a packet that lies in memory of others.
    copy: Vec<u8>,
}

impl Clamp {
    /// From here on announcements have to fit `mtu` bytes; `None`: they are left alone. Returns whether
    /// it changed.
    pub(super) fn set(&mut self, mtu: Option<u32>) -> bool {
        std::mem::replace(&mut self.mtu, mtu) != mtu
    }

    /// Takes a packet from the interface.
    #[inline]
    pub(super) fn outgoing(&mut self, packet: &mut Unfinished<'_>) {
        let Some(mtu) = self.mtu else { return };
        let checksum = if packet.lacks_checksum() { Checksum::Missing } else { Checksum::Complete };
        self.lowered += u64::from(mss::clamp(packet.bytes_mut(), mtu, checksum));
    }

    /// Takes a packet from the peer, and returns it or its changed copy. `partial`: it may lack its
    /// checksum.
    #[inline]
    pub(super) fn incoming<'p>(&'p mut self, packet: &'p [u8], checksum_partial: bool) -> &'p [u8] {
        match self.mtu {
            Some(mtu) if mss::is_syn(packet) => self.lower_copy(packet, mtu, checksum_partial),
            _ => packet,
        }
    }

    fn lower_copy(&mut self, packet: &[u8], mtu: u32, checksum_partial: bool) -> &[u8] {
        self.copy.clear();
        self.copy.extend_from_slice(packet);
        let checksum = if checksum_partial { Checksum::Shown } else { Checksum::Complete };
        self.lowered += u64::from(mss::clamp(&mut self.copy, mtu, checksum));
        &self.copy
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, TcpOptionElement};
    use mpt_io::tun::{Offloads, ReadCounters, SuperPacket, VnetHeader};

    use super::*;

    /// A SYN that announces 1460 bytes, its checksum complete.
    fn syn() -> Vec<u8> {
        let mut packet = Vec::new();
        let options = [TcpOptionElement::MaximumSegmentSize(1460)];
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(7, 9, 1, 100).syn();
        builder.options(&options).unwrap().write(&mut packet, &[]).unwrap();
        packet
    }

    /// What a SYN announces, and its checksum less the right one.
    fn read(packet: &[u8]) -> (u16, bool) {
        let sliced = etherparse::SlicedPacket::from_ip(packet).unwrap();
        let Some(etherparse::TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("TCP") };
        let right = tcp.calc_checksum_ipv4([10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
        let Some(Ok(TcpOptionElement::MaximumSegmentSize(mss))) = tcp.options_iterator().next()
        else {
            panic!("an announcement")
        };
        (mss, tcp.checksum() == right)
    }

    #[test]
    fn a_complete_syn_from_the_interface_stays_complete() {
        let mut clamp = Clamp::default();
        assert!(clamp.set(Some(1400)) && !clamp.set(Some(1400)));
        let mut packet = syn();
        let mut counters = ReadCounters::default();
        let mut read_packets = SuperPacket::new(&mut packet, Offloads::NONE, &mut counters);
        let mut unfinished = read_packets.next_unfinished().unwrap();
        clamp.outgoing(&mut unfinished);
        assert_eq!((read(unfinished.finish()), clamp.lowered), ((1360, true), 1));
    }

    #[test]
    fn a_syn_of_this_host_is_completed_after_it_is_changed() {
        let mut clamp = Clamp::default();
        clamp.set(Some(1400));
        let header = VnetHeader {
            flags: VnetHeader::NEEDS_CSUM,
            csum_start: 20,
            csum_offset: 16,
            ..VnetHeader::NONE
        };
        let mut packet = [&header.to_bytes()[..], &syn()].concat();
        let at = packet.len() - 24 + 16;
        // 10.0.0.1, 10.0.0.2, protocol 6 and 24 bytes of segment, added up.
        let partial = 0x0a00_u16 * 2 + 1 + 2 + 6 + 24;
        packet[at..at + 2].copy_from_slice(&partial.to_be_bytes());
        let mut counters = ReadCounters::default();
        let mut read_packets = SuperPacket::new(&mut packet, Offloads::ALL, &mut counters);
        let mut unfinished = read_packets.next_unfinished().unwrap();
        assert!(unfinished.lacks_checksum());
        clamp.outgoing(&mut unfinished);
        assert_eq!((read(unfinished.finish()), clamp.lowered), ((1360, true), 1));
    }

    #[test]
    fn a_syn_of_the_peer_is_changed_in_a_copy() {
        let mut clamp = Clamp::default();
        let packet = syn();
        assert_eq!(clamp.incoming(&packet, false), packet, "nobody asked for it");
        clamp.set(Some(1400));
        assert_eq!(read(clamp.incoming(&packet, false)), (1360, true));
        assert_eq!(
            read(clamp.incoming(&packet, true)),
            (1360, true),
            "it is complete all the same"
        );
        assert_eq!((read(&packet), clamp.lowered), ((1460, true), 2));
        clamp.set(Some(1500));
        assert_eq!((read(clamp.incoming(&packet, false)), clamp.lowered), ((1460, true), 2));
    }
}
