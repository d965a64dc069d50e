//! The way out: inner packet to connection, path and datagram.
//!
//! Follow the packet: [`side`] finds the connection ([`route`]), [`connection`] picks the path and allocates
//! the sequence number, [`transmit`] is the datagram to send, [`emit`] writes it, [`retransmit`] remembers it for a
//! moment. Where paths are full packets wait first; long ones [`pass`] as long as none is ([`offer`], [`stages`], [`paced`], [`acks`]), by [`rates`],
//! which [`trains`] and [`opening`] find out before they are needed; [`equalise`] and [`early`] are for senders that
//! keep little in flight, [`highest`] remembers what paths carried of late, [`by_weight`] for all TCP where paths are taken by weight. While much is sent, paths take [`turns`] in [`run`]s.
//! [`control`] makes what the endpoint itself sends, its [`message`]s, [`greeting`] asks for a session, [`beacon`] says that a path
//! has become idle, [`feedback`] what arrived, [`mtu`] asks how long datagrams it carries, [`poll`] gives all of it
//! out, [`duplicate`] sends what is critical twice, and what its class wants so ([`classify`]), [`repair`], [`resend`] and [`fail_over`] send again what was lost, [`doubt`] what may be ([`doubts`] says on which paths), [`reconfigure`] changes settings at run time, [`beyond`] counts what is sent beyond inner packets, [`standing`] says what the choice rests on.

mod acks;
mod beacon;
pub(crate) mod beyond;
mod by_weight;
mod classify;
pub(crate) mod connection;
mod control;
mod copies;
mod doubt;
mod doubts;
mod duplicate;
mod early;
mod emit;
mod equalise;
mod fail_over;
pub(crate) mod feedback;
mod feedback_copy;
mod greeting;
mod highest;
mod idle;
mod memory;
mod message;
mod moves;
mod mtu;
mod offer;
mod opened;
mod opening;
mod paced;
mod parity;
mod pass;
mod path;
mod poll;
mod rates;
mod reconfigure;
pub(crate) mod repair;
mod resend;
pub(crate) mod retransmit;
mod route;
pub(crate) mod run;
pub(crate) mod side;
mod silent;
mod stages;
pub(crate) mod standing;
mod tell;
mod told;
pub(crate) mod trains;
pub(crate) mod transmit;
mod turns;
mod weight;
mod within;
