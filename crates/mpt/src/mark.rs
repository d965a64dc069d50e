//! The firewall mark (fwmark) of our own datagrams, and what else keeps them out of the tunnel.

/// The mark of all datagrams that MPT sends. The number says 4754, the port of GRE in UDP.
pub(crate) const MARK: u32 = 0x4754;

/// What stands before a name server of the uplinks in a `resolv.conf` that `mpt join --everything` wrote: the daemon asks
/// these past the tunnel, with its [`MARK`].
pub(crate) const UPLINK: &str = "# uplink: ";
