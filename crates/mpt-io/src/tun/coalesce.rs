//! From packets to super-packets: the last step before the TUN device.

use std::io;

use super::Device;

/// Takes inner packets in order and writes them to a [`Device`].
///
/// Packets that are pushed belong to one burst until [`flush`](Self::flush) ends it. A packet may be
/// held back until then, so a burst must always be ended; it may also be written at once, which is
/// what happens to every packet of a device without a header in front of packets.
#[derive(Debug, Default)]
pub struct Coalescer {
    counters: Counters,
}

/// What became of the packets that were pushed. The sum of all but `bytes` is their number.
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
}

impl Coalescer {
    /// A coalescer that holds nothing and has counted nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next inner packet of this burst.
    pub fn push(&mut self, device: &Device, packet: &[u8]) {
        let result = device.write(packet);
        self.counters.count(packet.len(), result);
    }

    /// Ends the burst: writes whatever is held back.
    pub fn flush(&mut self, _device: &Device) {}

    /// What became of all packets so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

impl Counters {
    fn count(&mut self, len: usize, result: io::Result<()>) {
        let Err(error) = result else {
            self.written += 1;
            self.bytes += len as u64;
            return;
        };
        match error.raw_os_error() {
            Some(libc::EIO) => self.down += 1,
            Some(libc::EINVAL) => self.invalid += 1,
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => self.full += 1,
            _ => self.failed += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_one_counter() {
        let mut counters = Counters::default();
        counters.count(100, Ok(()));
        counters.count(40, Ok(()));
        for errno in [libc::EIO, libc::EINVAL, libc::EAGAIN, libc::ENOBUFS, libc::EBADFD] {
            counters.count(7, Err(io::Error::from_raw_os_error(errno)));
        }
        let expected = Counters { written: 2, bytes: 140, down: 1, invalid: 1, full: 2, failed: 1 };
        assert_eq!(counters, expected);
    }
}
