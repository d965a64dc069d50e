//! Datagrams in and out through UDP sockets, many per system call.
//!
//! A [`Socket`] belongs to one local address; paths that share it share the socket. What is sent
//! belongs to one path: its [`SendBatch`] stages datagrams one behind the other in one piece of memory,
//! each written once, in place, and [`Socket::send`] sends them together. What is received goes
//! into a [`Receive`] batch and is looked at there.
//!
//! Two offloads reduce the kernel's work per datagram, which is many times ours. Neighbours of
//! equal length in a send batch leave as one super-datagram, which is segmented as late as
//! possible; consecutive datagrams from one sender are received as one [`Coalesced`] buffer.
//! Without kernel support datagrams are processed one by one. Super-datagrams that are too long for
//! a slow first hop cause delay; [`EgressRate`] measures its rate.
//!
//! ```no_run
//! # use mpt_io::udp;
//! # fn demo(socket: &udp::Socket, remote: std::net::SocketAddr) -> std::io::Result<()> {
//! let mut send_batch = udp::SendBatch::new(remote, None);
//! if let Some(place) = send_batch.reserve(5) {
//!     place.copy_from_slice(b"hello");
//!     send_batch.commit();
//! }
//! let sent = socket.send(&mut send_batch); // empties the batch; every datagram is accounted for
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
mod coalesced;
mod control;
mod egress_rate;
mod icmp;
mod offload;
mod open;
mod receive;
mod run;
mod send;
mod send_batch;
mod sending;
mod sent;
mod slots;
mod socket;

pub use coalesced::{Coalesced, Datagram};
pub use egress_rate::EgressRate;
pub use icmp::{IcmpError, Unreachable};
pub use offload::Offloads;
pub use open::{OpenError, Options, route_mtu};
pub use receive::{Kept, Receive, ReceiveOptions};
pub use send_batch::{MAX_DATAGRAM, MAX_SUPER, SendBatch};
pub use sent::Sent;
pub use socket::{Buffers, Counters, Socket};

/// Most messages in one system call, sent or received.
pub const MAX_BATCH: usize = 64;

/// Most datagrams in a send batch: four full super-datagrams, like the limit in bytes.
pub const MAX_SEND_BATCH: usize = 4 * MAX_SEGMENTS;

/// Most datagrams in one super-datagram: what a kernel of any age takes. Later ones take 128, but at
/// an MTU of 1500 the limit in bytes comes first.
pub const MAX_SEGMENTS: usize = 64;
