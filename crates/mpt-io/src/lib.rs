//! Linux packets in and out.
//!
//! A tunnel has two kinds of descriptors. Inner packets pass through a TUN interface
//! ([`tun::Device`]); datagrams pass through UDP sockets ([`udp::Socket`]). This crate opens both,
//! moves packets in batches through memory that was allocated at start, and counts what the kernel
//! refuses. It does not interpret the bytes.
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
//! - [`memory`]: what happens where there is none left.
//! - [`ethtool`], [`tcp_info`], [`mptcp_info`], [`limits`], [`sysctl`], [`capability`], [`interface`]:
//!   the few questions to the kernel that fit nowhere else.
//!
//! Three rules apply. A packet is never an error: a packet that cannot be delivered is counted by
//! reason, and errors are for problems that an operator can fix. A feature that the kernel does not
//! permit or support is switched off separately, and a method returns what the kernel granted. This
//! is the only crate of the workspace with `unsafe` code; each block states why it is sound.

pub mod buffer;
pub mod capability;
pub mod ethtool;
pub mod interface;
pub mod limits;
pub mod memory;
pub mod mptcp_info;
pub mod netlink;
pub mod packet;
pub mod poll;
pub mod sysctl;
pub mod tcp_info;
pub mod tun;
pub mod udp;

mod sockopt;
