//! The way out: inner packet to connection, path and datagram.
//!
//! Follow the packet: [`side`] finds the connection ([`route`]), [`connection`] picks the path and allocates
//! the sequence number, [`transmit`] is the datagram to send, [`retransmit`] remembers it for a moment.
//! [`control`] makes what the endpoint itself sends, [`greeting`] asks for a session, [`beacon`] says that a path
//! has become idle, [`feedback`] what arrived, [`mtu`] asks how long datagrams it carries, [`paced`] lets packets wait where paths are full ([`offer`], [`stages`]), by [`rates`], [`poll`] gives all of it out, [`reconfigure`] changes settings at run time.

mod beacon;
pub(crate) mod connection;
mod control;
pub(crate) mod feedback;
mod greeting;
mod idle;
mod mtu;
mod offer;
mod paced;
mod path;
mod poll;
mod rates;
mod reconfigure;
pub(crate) mod retransmit;
mod route;
pub(crate) mod side;
mod stages;
pub(crate) mod transmit;
mod weight;
