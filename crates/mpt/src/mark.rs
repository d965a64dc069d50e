//! The firewall mark (fwmark) of our own datagrams.

/// The mark of all datagrams that MPT sends. The number says 4754, the port of GRE in UDP.
pub(crate) const MARK: u32 = 0x4754;
