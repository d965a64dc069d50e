//! Inner packets in and out through a TUN interface.
//!
//! Outwards, [`Device::read`] takes one super-packet from the kernel into a [`Burst`], and
//! [`SuperPacket::next_packet`] hands out the finished inner packets in it, one after the other, as
//! slices of that same memory. Inwards, every packet goes through a [`Coalescer`], which puts packets
//! together again as the kernel's own receive offload would and writes them as one.
//!
//! How much of this is used depends on the [`Offloads`] requested and supported by the kernel: from
//! many TCP segments and UDP datagrams per system call down to one packet for each, finished by the
//! kernel. Callers that use the two loops below are not affected.
//!
//! ```no_run
//! # use mpt_io::tun;
//! # fn demo(device: &tun::Device) -> std::io::Result<()> {
//! let mut burst = tun::Burst::new();
//! let mut coalescer = tun::Coalescer::new();
//! while let Some(mut super_packet) = device.read(&mut burst)? {
//!     while let Some(packet) = super_packet.next_packet() {
//!         coalescer.push(device, packet); // here: back where it came from
//!     }
//! }
//! coalescer.flush(device); // at the end of a burst, when nothing more waits
//! # Ok(())
//! # }
//! ```
//!
//! What the kernel says about a packet is believed only as far as the packet bears it out; a lie is a
//! drop with a name in [`ReadCounters`]. What the network says is not believed: a packet is merged
//! with others only if the checksum inside it is right, because the kernel does not look at that of
//! a super-packet. A packet with a wrong one is passed on alone, and stays wrong.
//!
//! # One look at every byte
//!
//! What was just read is not in the processor's cache yet, and to fetch it costs more than to add it
//! up. So a packet that is copied on its way has its checksum computed by the same pass:
//! [`Unfinished::emit`] copies it to where it is sent from and completes it there, and a [`Coalescer`]
//! verifies it while it puts it behind the others.
//!
//! # Checksums left out
//!
//! Two ends that protect packets between them by a stronger mechanism can omit inner checksums: the
//! sender uses [`Unfinished::emit_partial`], the receiver [`Coalescer::push_either`]. Then some
//! packets have partial checksums, which is visible from the packet. If the datagram also has a
//! flag for it, [`Coalescer::push_partial`] and [`push`](Coalescer::push) handle the two kinds
//! separately. None of this applies to `next_packet`, `emit` and `push`.

mod checksum;
mod coalesce;
mod device;
mod error;
mod expected;
mod inner;
mod merge;
mod offload;
mod read_counters;
mod segment;
mod split;
mod stage;
mod vnet;

pub use coalesce::{Coalescer, Counters, Outlet};
pub use device::{Device, Options};
pub use error::OpenError;
pub use inner::MAX_PACKET;
pub use merge::Identification;
pub use offload::Offloads;
pub use read_counters::ReadCounters;
pub use split::{Burst, SuperPacket, Unfinished};
pub use vnet::VnetHeader;
