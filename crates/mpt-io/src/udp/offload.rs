//! What the kernel does for many datagrams at once, and whether this one does it.

use std::io;

use crate::sockopt;

/// Offloads of a socket: wanted, in [`Options`](super::Options), or in force, from
/// [`Socket::offloads`](super::Socket::offloads).
///
/// Either works without the other, and neither needs to be in force at the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    /// Datagrams leave as super-datagrams that the kernel or the network card cuts (`UDP_SEGMENT`,
    /// Linux 4.18).
    pub segmentation: bool,
    /// Datagrams that arrive one behind the other are received together (`UDP_GRO`, Linux 5.0).
    pub coalescing: bool,
}

impl Offloads {
    /// Brings as many of the `wanted` offloads into force as this kernel has.
    pub(super) fn grant(socket: &socket2::Socket, wanted: Self) -> Self {
        let coalesce = || sockopt::set(socket, libc::SOL_UDP, libc::UDP_GRO, 1);
        Self {
            segmentation: wanted.segmentation && knows_segmentation(socket).is_ok(),
            coalescing: wanted.coalescing && coalesce().is_ok(),
        }
    }
}

/// Succeeds if the kernel supports the option. Whether it can segment towards a certain remote
/// address shows only when sending.
fn knows_segmentation(socket: &socket2::Socket) -> io::Result<()> {
    sockopt::get(socket, libc::SOL_UDP, libc::UDP_SEGMENT).map(drop)
}
