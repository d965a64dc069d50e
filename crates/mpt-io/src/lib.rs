//! Linux packets in and out.
//!
//! A tunnel has two kinds of doors. Inner packets come and go through a TUN interface
//! ([`tun::Device`]); datagrams come and go through UDP sockets ([`udp::Socket`]). This crate opens
//! both, moves packets in batches through memory that was allocated at start, and counts what the
//! kernel refuses. It knows nothing of what the bytes mean.
//!
//! In the order in which a packet meets them:
//!
//! - [`tun`]: one read gives one super-packet, which is taken apart into inner packets; on the way
//!   back a [`tun::Coalescer`] puts inner packets together before they are written.
//! - [`udp`]: datagrams of one path are staged in its [`udp::SendBatch`] and sent together; a
//!   [`udp::Receive`] batch takes in many datagrams with one call.
//! - [`buffer`]: a bounded pool for packets that must wait.
//! - [`poll`]: readiness and one deadline with nanosecond resolution.
//! - [`netlink`]: addresses, routes, MTU and interfaces.
//! - [`packet`]: a look at what passes an interface.
//! - [`ethtool`], [`tcp_info`], [`mptcp_info`], [`limits`], [`sysctl`], [`capability`], [`interface`]:
//!   the few questions to the kernel that fit nowhere else.
//!
//! Three rules hold throughout. A packet is never an error: what cannot be delivered is counted
//! under a name, and errors are for what a human can mend. Whatever the kernel does not permit or
//! does not have degrades alone, and what was really granted can be asked for. And this is the only
//! crate of the workspace with `unsafe` code, each block saying why it is sound.

pub mod buffer;
pub mod capability;
pub mod ethtool;
pub mod interface;
pub mod limits;
pub mod mptcp_info;
pub mod netlink;
pub mod packet;
pub mod poll;
pub mod sysctl;
pub mod tcp_info;
pub mod tun;
pub mod udp;

mod sockopt;
