//! Packet evidence: what passed the links and tunnels of a lab, in files for Wireshark.

pub mod pcapng;
