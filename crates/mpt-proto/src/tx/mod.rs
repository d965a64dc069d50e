//! The way out: inner packet to connection, path and datagram.
//!
//! Follow the packet: [`side`] finds the connection ([`route`]), [`connection`] picks the path and allocates
//! the sequence number, [`transmit`] is the datagram to send, [`emit`] writes it, [`retransmit`] remembers it for a
//! moment. Where paths are full packets wait first ([`offer`], [`stages`], [`paced`], [`acks`]), by [`rates`].
//! [`control`] makes what the endpoint itself sends, its [`message`]s, [`greeting`] asks for a session, [`beacon`] says that a path
//! has become idle, [`feedback`] what arrived, [`mtu`] asks how long datagrams it carries, [`poll`] gives all of it
//! out, [`reconfigure`] changes settings at run time, [`standing`] says what the choice rests on.

mod acks;
mod beacon;
pub(crate) mod connection;
mod control;
mod emit;
mod equalise;
pub(crate) mod feedback;
mod greeting;
mod idle;
mod message;
mod moves;
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
pub(crate) mod standing;
pub(crate) mod trains;
pub(crate) mod transmit;
mod weight;
