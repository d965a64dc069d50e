//! Ports that are bound to a path.

use crate::ports::PortRanges;
use crate::wire::flow::Flow;

/// The ports whose packets are to take a path while it is usable: the keys `tcp_dst`, `tcp_src`,
/// `udp_dst` and `udp_src` of draft-lencse-tsvwg-mpt. A packet is pinned if any of them holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pins {
    /// Destination ports of TCP.
    pub tcp_dst: PortRanges,
    /// Source ports of TCP.
    pub tcp_src: PortRanges,
    /// Destination ports of UDP.
    pub udp_dst: PortRanges,
    /// Source ports of UDP.
    pub udp_src: PortRanges,
}

impl Pins {
    /// Whether nothing is pinned.
    pub fn is_empty(&self) -> bool {
        self.lists().all(|(_, ports)| ports.is_empty())
    }

    /// Whether packets of this flow are pinned. Those with unknown ports are not.
    #[inline]
    pub fn holds(&self, flow: &Flow) -> bool {
        let (source, destination) = match flow.protocol {
            Flow::TCP => (&self.tcp_src, &self.tcp_dst),
            Flow::UDP => (&self.udp_src, &self.udp_dst),
            _ => return false,
        };
        flow.ports.is_some_and(|ports| {
            destination.contains(ports.destination) || source.contains(ports.source)
        })
    }

    /// The four lists with the keys that they have in configuration.
    pub fn lists(&self) -> impl Iterator<Item = (&'static str, &PortRanges)> {
        [
            ("tcp_dst", &self.tcp_dst),
            ("tcp_src", &self.tcp_src),
            ("udp_dst", &self.udp_dst),
            ("udp_src", &self.udp_src),
        ]
        .into_iter()
    }
}
