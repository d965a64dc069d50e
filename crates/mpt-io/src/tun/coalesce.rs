//! From packets to super-packets: the last step before the TUN device.

use std::io;

use super::expected::Field;
use super::inner::{Protocol, Transport};
use super::merge::{Candidate, Identification};
use super::stage::{Extension, Stage, partial_header};
use super::{Offloads, ReadCounters, SuperPacket, VnetHeader};

/// Takes inner packets in order and writes them to a [`Device`](super::Device), as many as possible at once.
///
/// Packets that are pushed belong to one burst until [`flush`](Self::flush) ends it. A packet may be
/// held back until then, so a burst must always be ended; it may also be written at once, which is
/// what happens to every packet of a device without a header in front of packets.
///
/// One super-packet is put together at a time. That is enough for many flows, too: what was read as
/// one super-packet at the other end of the tunnel arrives here in one piece.
#[derive(Debug)]
pub struct Coalescer {
    stage: Stage,
    identification: Identification,
    /// Super-packets that the kernel has not refused yet.
    usable: Offloads,
    counters: Counters,
}

/// What became of the packets that were pushed. Their number is the sum of `written`, `down`,
/// `invalid`, `full`, `failed` and `unfinishable`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that the kernel took.
    pub written: u64,
    /// Bytes in those packets.
    pub bytes: u64,
    /// Packets dropped because the interface is down.
    pub down: u64,
    /// Packets dropped because the kernel saw no IP packet in them.
    pub invalid: u64,
    /// Packets dropped because the kernel's queue or memory was full.
    pub full: u64,
    /// Packets dropped for any other reason, such as a removed interface.
    pub failed: u64,
    /// Packets dropped because they were said to lack a checksum but hold neither TCP nor UDP.
    pub unfinishable: u64,
    /// Super-packets that the kernel took.
    pub super_packets: u64,
    /// Packets in those, which count as `written` too.
    pub merged: u64,
    /// Super-packets that the kernel refused and that were written packet by packet instead.
    pub refused: u64,
    /// Packets with a wrong checksum inside, which were passed on alone and unchanged.
    pub corrupt: u64,
}

/// Where a [`Coalescer`] writes: a [`Device`](super::Device), or what stands in for one.
pub trait Outlet {
    /// What it takes: with `tso` or `uso` super-packets of TCP or UDP, with `vnet_header` checksums
    /// to be completed.
    fn offloads(&self) -> Offloads;

    /// Takes one packet or super-packet.
    ///
    /// # Errors
    ///
    /// As [`Device::write`](super::Device::write); `EINVAL` also where `header` asks for what is not known.
    fn write_with(&self, header: &VnetHeader, packet: &[u8]) -> io::Result<()>;
}

impl Coalescer {
    /// A coalescer that holds nothing and has counted nothing.
    pub fn new() -> Self {
        Self::with_identification(Identification::default())
    }

    /// The same, with a choice of what happens to equal identifications.
    pub fn with_identification(identification: Identification) -> Self {
        let counters = Counters::default();
        Self { stage: Stage::new(), identification, usable: Offloads::ALL, counters }
    }

    /// Adds the next inner packet of this burst.
    pub fn push(&mut self, device: &impl Outlet, packet: &[u8]) {
        self.take(device, packet, Field::Complete);
    }

    /// Adds the next inner packet of this burst, which lacks its transport checksum: the field holds
    /// the sum of the pseudo header, as [`Unfinished::leave`](super::Unfinished::leave) leaves it.
    ///
    /// The kernel then trusts the packet. Only for packets that something else protected on the way.
    pub fn push_partial(&mut self, device: &impl Outlet, packet: &[u8]) {
        self.take(device, packet, Field::Partial);
    }

    /// Adds the next inner packet of this burst, which may lack its transport checksum: it does if
    /// the field holds the sum of the pseudo header that the packet shows.
    ///
    /// For the far end of a sender that [leaves out](super::Unfinished::leave) what it can and does
    /// not say of which packets; forwarded ones, fragments and other protocols come complete.
    ///
    /// One complete packet in 65 536 looks like a partial one because its checksum happens to be
    /// just that sum. Nothing is lost: completing such a packet gives the same checksum again, so
    /// it arrives unchanged. Only the verification here is skipped. This matters for a packet that
    /// was corrupted before it reached the sender: one in 65 536 of these is accepted, as with a
    /// verified checksum. Between sender and receiver another mechanism must protect packets, as
    /// with [`push_partial`](Self::push_partial).
    pub fn push_either(&mut self, device: &impl Outlet, packet: &[u8]) {
        self.take(device, packet, Field::Either);
    }

    /// Ends the burst: writes whatever is held back.
    pub fn flush(&mut self, device: &impl Outlet) {
        let Some((header, memory, content)) = self.stage.take() else { return };
        let result = device.write_with(&header, memory);
        let several = content.packets > 1;
        let refused = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
        if several && result.as_ref().is_err_and(refused) {
            if write_apart(device, &header, memory, &mut self.counters) {
                match content.protocol {
                    Protocol::Tcp => self.usable.tso = false,
                    Protocol::Udp => self.usable.uso = false,
                }
            }
            return;
        }
        if several && result.is_ok() {
            self.counters.super_packets += 1;
            self.counters.merged += content.packets;
        }
        self.counters.count(content.packets, content.bytes, result);
    }

    /// What became of all packets so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn take(&mut self, device: &impl Outlet, packet: &[u8], field: Field) {
        let extension = self.stage.extend(packet, field);
        match extension {
            Extension::Added => return,
            Extension::Last => return self.flush(device),
            Extension::Corrupt | Extension::Unforeseen => {}
        }
        let partial = match field {
            Field::Complete => false,
            Field::Partial => true,
            Field::Either => Transport::of_partial(packet).is_some(),
        };
        if extension == Extension::Corrupt {
            self.pass_corrupt(device, packet, partial);
        } else {
            self.take_apart(device, packet, partial);
        }
    }

    /// Takes a packet by looking at it field by field.
    fn take_apart(&mut self, device: &impl Outlet, packet: &[u8], partial: bool) {
        let candidate = Candidate::new(packet)
            .filter(|candidate| self.merges(device.offloads(), candidate.transport.protocol));
        let Some(candidate) = candidate else {
            self.flush(device);
            return self.write_alone(device, packet, partial);
        };
        let continues = self.stage.is_continued_by(&candidate, self.identification);
        if !continues {
            self.flush(device);
            if candidate.is_pushed() {
                return self.write_alone(device, packet, partial);
            }
        }
        if !candidate.is_intact(partial) {
            return self.pass_corrupt(device, packet, partial);
        }
        if continues {
            if self.stage.add(&candidate) {
                self.flush(device);
            }
        } else if !self.stage.begin(&candidate, partial) {
            self.write_alone(device, packet, partial);
        }
    }

    fn pass_corrupt(&mut self, device: &impl Outlet, packet: &[u8], partial: bool) {
        self.counters.corrupt += 1;
        self.flush(device);
        self.write_alone(device, packet, partial);
    }

    fn merges(&self, offloads: Offloads, protocol: Protocol) -> bool {
        match protocol {
            Protocol::Tcp => offloads.tso && self.usable.tso,
            Protocol::Udp => offloads.uso && self.usable.uso,
        }
    }

    /// Writes a packet that is not merged with any other; nothing may be held back before it.
    fn write_alone(&mut self, device: &impl Outlet, packet: &[u8], partial: bool) {
        let result = if partial {
            self.write_partial(device, packet)
        } else {
            Some(device.write_with(&VnetHeader::NONE, packet))
        };
        match result {
            Some(result) => self.counters.count(1, packet.len() as u64, result),
            None => self.counters.unfinishable += 1,
        }
    }

    /// Writes a packet that lacks its checksum, or `None` if it has no place for one.
    ///
    /// The kernel completes the checksum, and trusts the packet, only if the field has the expected
    /// partial sum. If not, the checksum is completed here from the field: this is correct with a
    /// routing header, and stays wrong after corruption.
    fn write_partial(&mut self, device: &impl Outlet, packet: &[u8]) -> Option<io::Result<()>> {
        let transport = Transport::find(packet)?;
        transport.headers_len(packet)?;
        let field = transport.field();
        if device.offloads().vnet_header && transport.is_partial(packet) {
            return Some(device.write_with(&partial_header(field), packet));
        }
        let memory = self.stage.scratch(packet)?;
        field.complete(memory);
        Some(device.write_with(&VnetHeader::NONE, memory))
    }
}

impl Default for Coalescer {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes the packets of a super-packet one by one; whether the kernel took any.
fn write_apart(
    device: &impl Outlet,
    header: &VnetHeader,
    memory: &mut [u8],
    counters: &mut Counters,
) -> bool {
    counters.refused += 1;
    let written_before = counters.written;
    let mut ignored = ReadCounters::default();
    let mut packets = SuperPacket::with_header(header, memory, Offloads::ALL, &mut ignored);
    while let Some(packet) = packets.next_packet() {
        let result = device.write_with(&VnetHeader::NONE, packet);
        counters.count(1, packet.len() as u64, result);
    }
    counters.written > written_before
}

impl Counters {
    fn count(&mut self, packets: u64, bytes: u64, result: io::Result<()>) {
        let Err(error) = result else {
            self.written += packets;
            self.bytes += bytes;
            return;
        };
        let outcome = match error.raw_os_error() {
            Some(libc::EIO) => &mut self.down,
            Some(libc::EINVAL) => &mut self.invalid,
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => &mut self.full,
            _ => &mut self.failed,
        };
        *outcome += packets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_one_counter() {
        let mut counters = Counters::default();
        counters.count(1, 100, Ok(()));
        counters.count(3, 40, Ok(()));
        for errno in [libc::EIO, libc::EINVAL, libc::EAGAIN, libc::ENOBUFS, libc::EBADFD] {
            counters.count(2, 7, Err(io::Error::from_raw_os_error(errno)));
        }
        let expected = Counters {
            written: 4,
            bytes: 140,
            down: 2,
            invalid: 2,
            full: 4,
            failed: 2,
            ..Counters::default()
        };
        assert_eq!(counters, expected);
    }
}
