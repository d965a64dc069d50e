//! Hardware addresses, and whether neighbours are asked for theirs.

use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};

use super::{Error, Netlink};

impl Netlink {
    /// Makes the interface `index` one end of a cable at whose other end there is only one: it gets
    /// this hardware address and does not use ARP (`IFF_NOARP`). It sends to its own hardware
    /// address, so the other end must have the same address; then only packets of the hosts cross
    /// the cable.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn set_point_to_point(&mut self, index: u32, address: [u8; 6]) -> Result<(), Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Noarp;
        message.header.change_mask = LinkFlags::Noarp;
        message.attributes.push(LinkAttribute::Address(address.into()));
        self.set_link(message, &format!("make interface {index} the end of a cable"))
    }
}
