//! What can happen to sessions only.

use mpt_proto::wire::extended::Header;
use mpt_proto::{ConnectionId, Seq};

use super::{World, packet};
use crate::input::Input;

impl World {
    /// What the settings of sessions add to what can happen.
    pub(super) fn disturb_session(&mut self, host: usize, choice: u8, input: &mut Input<'_>) {
        match choice % 4 {
            // A translator has forgotten the first host, or that has moved.
            0 => {
                let lane = self.settings.lane(input);
                self.network.rebind(lane);
            }
            // Somebody repeats what he has seen, from where he is.
            1 => {
                let Some(seen) = self.any(input).cloned() else { return };
                let origin = self.settings.origin(seen.from, input);
                self.hosts[1 - seen.from].receive(self.now, origin, &seen.sent.bytes);
            }
            2 => {
                let (lane, len) = (self.settings.lane(input), 1280 + usize::from(input.byte()));
                self.hosts[host].set_local_len(self.now, ConnectionId(0), lane, len);
            }
            // A link carries only short datagrams.
            _ => {
                let longest = 40 + 8 * usize::from(input.byte());
                self.in_flight.retain(|datagram| datagram.sent.bytes.len() <= longest);
            }
        }
    }

    /// A packet as the other host could send it in its session, with these numbers.
    pub(super) fn packet_of_session(
        &self,
        host: usize,
        sequence: u32,
        packet: &[u8],
        input: &mut Input<'_>,
    ) -> Option<Vec<u8>> {
        let last = self.hosts[1 - host].last_header()?;
        let header = Header {
            sequence: Some(Seq::new(sequence)),
            path_sequence: last.path_sequence.wrapping_add(u32::from(input.byte())),
            distance: u16::from(input.byte()),
            ..last
        };
        let mut datagram = vec![0; header.size()];
        datagram.extend_from_slice(packet);
        header.emit(&mut datagram);
        Some(datagram)
    }
}

/// The number of the packet in a datagram, if that has not been damaged.
pub(super) fn number_in(datagram: &[u8]) -> Option<u64> {
    use mpt_proto::wire::extended::{self, is_extended};
    use mpt_proto::wire::gre;
    if is_extended(datagram) {
        return packet::number(datagram.get(extended::DATA_LEN..)?);
    }
    packet::number(gre::parse(datagram).ok()?.payload)
}
