//! The way in: datagram to path, order, and inner packet.
//!
//! Follow the datagram: [`side`] finds connection and path, in extended framing [`greet`] does, which also answers
//! who begins a path, and [`hello`] who begins a [`session`]; [`connection`] checks inner packets, [`keepalive`] reads
//! what the peer says of itself, [`reorder`] puts them in order, and [`playout`] lets some wait. [`path`] is what is known of each path as a receiver,
//! [`recorder`] is what arrived on it by path sequence, [`quiet`] that nothing does, and [`overdue`] on which. [`disagree`] is
//! what dropped datagrams say of settings that do not fit. In
//! sealed framing, [`unseal`] opens datagrams first, and [`sealed`] agrees on keys by [`handshakes`];
//! [`apply`] and [`reconfigure`] change settings at run time, [`report`] has what is counted, and [`rest`](crate::rest) gives back the memory
//! that an idle connection does not need.

mod apply;
pub(crate) mod clients;
pub(crate) mod connection;
mod covers;
mod disagree;
mod greet;
pub(crate) mod handshakes;
mod hello;
mod invite;
mod keepalive;
pub(crate) mod measured;
mod missing;
mod overdue;
mod parity;
mod path;
mod playout;
mod quiet;
mod receive;
mod reconfigure;
pub(crate) mod record;
pub(crate) mod recorder;
pub(crate) mod reorder;
mod report;
mod sealed;
mod session;
mod sessions;
pub(crate) mod side;
mod unseal;
mod ways_back;
