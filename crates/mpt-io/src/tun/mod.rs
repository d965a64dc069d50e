//! Inner packets in and out through a TUN interface.
//!
//! Outwards, [`Device::read`] takes one super-packet from the kernel into a [`Burst`], and
//! [`SuperPacket::next_packet`] hands out the finished inner packets in it, one after the other, as
//! slices of that same memory. Inwards, every packet goes through a [`Coalescer`], which decides
//! what is written to the device and when.
//!
//! The interface is opened without a header in front of packets, so the kernel segments and fills in
//! checksums itself: a super-packet holds exactly one packet and the coalescer writes each packet at
//! once. Callers that keep to the two loops below need not know.
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

mod coalesce;
mod device;

pub use coalesce::{Coalescer, Counters};
pub use device::{Burst, Device, MAX_PACKET, OpenError, Options, SuperPacket};
