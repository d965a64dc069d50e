//! The way out: inner packet to connection, path and datagram.
//!
//! Follow the packet: [`side`] finds the connection ([`route`]), [`connection`] picks the path and allocates
//! the sequence number, [`transmit`] is the datagram to send, [`emit`] writes it, [`retransmit`] remembers it for a
//! moment. Where paths are full packets wait first ([`offer`], [`stages`], [`paced`], [`acks`]), by [`rates`].
//! [`control`] makes what the endpoint itself sends, [`greeting`] asks for a session, [`beacon`] says that a path
//! has become idle, [`feedback`] what arrived, [`mtu`] asks how long datagrams it carries, [`poll`] gives all of it
//! out, [`repair`], [`resend`] and [`fail_over`] send again what was lost, [`reconfigure`] changes settings at run time, [`standing`] says what the choice rests on.

mod acks;
mod beacon;
pub(crate) mod connection;
mod control;
mod copies;
mod emit;
mod equalise;
mod fail_over;
pub(crate) mod feedback;
mod feedback_copy;
mod greeting;
mod idle;
mod moves;
mod mtu;
mod offer;
mod paced;
mod path;
mod poll;
mod rates;
mod reconfigure;
pub(crate) mod repair;
mod resend;
pub(crate) mod retransmit;
mod route;
pub(crate) mod side;
mod silent;
mod stages;
pub(crate) mod standing;
pub(crate) mod trains;
pub(crate) mod transmit;
mod weight;
