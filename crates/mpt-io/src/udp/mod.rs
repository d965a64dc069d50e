//! Datagrams in and out through UDP sockets, many per system call.
//!
//! A [`Socket`] belongs to one local address; paths that share it share the socket. What is sent
//! belongs to one path: its [`Train`] stages datagrams one behind the other in one piece of memory,
//! each written once, in place, and [`Socket::send`] sends them together. What is received goes
//! into a [`Receive`] batch and is looked at there.
//!
//! ```no_run
//! # use mpt_io::udp;
//! # fn demo(socket: &udp::Socket, remote: std::net::SocketAddr) -> std::io::Result<()> {
//! let mut train = udp::Train::new(remote, None);
//! if let Some(place) = train.reserve(5) {
//!     place.copy_from_slice(b"hello");
//!     train.commit();
//! }
//! let sent = socket.send(&mut train); // empties the train; every datagram is accounted for
//!
//! let mut batch = udp::Receive::new(&udp::ReceiveOptions::default());
//! while socket.receive(&mut batch)? > 0 {
//!     for datagram in batch.datagrams() {
//!         println!("{} bytes from {}", datagram.payload.len(), datagram.remote);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod address;
mod control;
mod open;
mod receive;
mod send;
mod socket;
mod train;

pub use open::{OpenError, Options, route_mtu};
pub use receive::{Datagram, Receive, ReceiveOptions};
pub use send::Sent;
pub use socket::{Buffers, Counters, Socket};
pub use train::{MAX_DATAGRAM, Train};

/// Most messages in one system call, sent or received.
///
/// Also what a kernel of any age takes as segments of one `UDP_SEGMENT` send.
pub const MAX_BATCH: usize = 64;
