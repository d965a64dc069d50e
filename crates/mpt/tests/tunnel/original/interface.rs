//! The original's interface, through which inner packets come and go.

use std::net::IpAddr;

use mpt_io::netlink::Netlink;
use mpt_io::tun::{Burst, Device, Offloads, Options};

use super::frames;

#[derive(Debug)]
pub(super) struct Interface {
    device: Device,
    burst: Burst,
}

impl Interface {
    /// With its address and ready to use, in the network namespace of `netlink` and the calling thread.
    pub(super) fn open(netlink: &mut Netlink, address: IpAddr) -> Self {
        let options =
            Options { name: "tun0".into(), queue_len: Some(1500), offloads: Offloads::NONE };
        let device = Device::open(&options).expect("a TUN interface");
        let (mtu, prefix) = if address.is_ipv4() { (1464, 24) } else { (1440, 64) };
        netlink.disable_address_generation(device.index()).expect("no other address");
        netlink.set_mtu(device.index(), mtu).expect("an MTU");
        netlink.set_up(device.index(), true).expect("it is up");
        netlink.add_address(device.index(), address, prefix).expect("an address");
        Self { device, burst: Burst::new() }
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// The next packet that the host sends, if there is one.
    pub(super) fn read(&mut self) -> Option<Vec<u8>> {
        let mut packets = self.device.read(&mut self.burst).expect("an interface")?;
        Some(packets.next_packet().map(<[u8]>::to_vec).unwrap_or_default())
    }

    /// Hands packets to the host. What is none the kernel refuses.
    pub(super) fn write(&self, packets: &[Vec<u8>]) {
        for packet in packets {
            let _ = self.device.write(packet);
        }
    }
}

/// Whether a packet goes from one of these addresses to the other. It has to be of their IP version.
pub(super) fn is_between(packet: &[u8], ends: [IpAddr; 2]) -> bool {
    let (version, addresses) = match packet {
        [0x40..=0x4f, ..] if packet.len() >= 20 => (4, [&packet[12..16], &packet[16..20]]),
        [0x60..=0x6f, ..] if packet.len() >= 40 => (6, [&packet[8..24], &packet[24..40]]),
        _ => return false,
    };
    let is = |(address, end): (&[u8], IpAddr)| {
        frames::version(end) == version && frames::wide(end).ends_with(address)
    };
    addresses.into_iter().zip(ends).all(is)
}
