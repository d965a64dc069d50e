//! Inner packets through a real TUN device.

pub(crate) mod capture;
mod joined;
pub(crate) mod transfer;

use std::net::{IpAddr, SocketAddr, UdpSocket};

use mpt_io::netlink::Netlink;
use mpt_io::tun::{Burst, Coalescer, Counters, Device, Offloads, OpenError, Options};
use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};

use crate::world::{PATIENCE, readable};
use crate::{Outcome, Skip, Test};

pub(crate) const TESTS: &[Test] = &[
    ("tun::packets_leave_and_come_back", packets_leave_and_come_back),
    ("tun::the_largest_packet_passes", the_largest_packet_passes),
    ("tun::a_segmented_send_arrives_as_finished_packets", segmented),
    ("tun::refused_packets_are_counted_by_reason", refused_packets),
    ("tun::the_queue_has_the_length_asked_for", queue_length),
    ("tun::the_carrier_can_be_pulled", carrier),
    ("tun::a_removed_interface_is_an_error", removed_interface),
    ("tun::the_interface_goes_with_the_device", gone_with_the_device),
    ("tun::open_errors_name_cause_and_remedy", open_errors),
];

fn options(name: &str) -> Options {
    Options { name: name.into(), queue_len: None, offloads: Offloads::ALL }
}

/// A device, or why this machine has none.
fn open(options: &Options) -> Result<Device, Skip> {
    Device::open(options).map_err(|error| {
        let absent =
            matches!(error, OpenError::NodeMissing { .. } | OpenError::NodePermission { .. });
        assert!(absent, "{error}");
        Skip(error.to_string())
    })
}

/// A device that is up and has the addresses 10.9.0.1/24 and fd00:9::1/64.
fn tunnel(options: &Options) -> Result<(Device, Netlink), Skip> {
    let device = open(options)?;
    let mut netlink = Netlink::open().unwrap();
    let index = device.index();
    netlink.disable_address_generation(index).unwrap();
    netlink.add_address(index, "10.9.0.1".parse().unwrap(), 24).unwrap();
    netlink.add_address(index, "fd00:9::1".parse().unwrap(), 64).unwrap();
    netlink.set_up(index, true).unwrap();
    assert!(netlink.wait_for_address("fd00:9::1".parse().unwrap(), PATIENCE).unwrap());
    Ok((device, netlink))
}

/// The next UDP packet out of the device; IPv6 sends other packets by itself.
pub(crate) fn next_udp(device: &Device, burst: &mut Burst) -> Vec<u8> {
    loop {
        readable(device);
        while let Some(mut super_packet) = device.read(burst).unwrap() {
            while let Some(packet) = super_packet.next_packet() {
                if udp_header(packet).is_some() {
                    return packet.to_vec();
                }
            }
        }
    }
}

/// Where the UDP header of an IP packet starts.
fn udp_header(packet: &[u8]) -> Option<usize> {
    match (packet[0] >> 4, packet[9], packet[6]) {
        (4, 17, _) => Some(20),
        (6, _, 17) => Some(40),
        _ => None,
    }
}

/// Turns a UDP packet into an answer. Checksums stay right, being sums.
pub(crate) fn turn(packet: &mut [u8]) {
    let udp = udp_header(packet).unwrap();
    let (addresses, len) = if udp == 20 { (12, 4) } else { (8, 16) };
    let (source, destination) = packet[addresses..addresses + 2 * len].split_at_mut(len);
    source.swap_with_slice(destination);
    let (source, destination) = packet[udp..udp + 4].split_at_mut(2);
    source.swap_with_slice(destination);
}

fn packets_leave_and_come_back() -> Outcome {
    let (device, _netlink) = tunnel(&options("mpt0"))?;
    assert_eq!(
        (device.name(), device.index()),
        ("mpt0", mpt_io::interface::index("mpt0").unwrap())
    );
    let (mut burst, mut coalescer) = (Burst::new(), Coalescer::new());
    for (local, remote) in [("10.9.0.1:0", "10.9.0.2:7"), ("[fd00:9::1]:0", "[fd00:9::2]:7")] {
        let remote: SocketAddr = remote.parse().unwrap();
        let socket = UdpSocket::bind(local).unwrap();
        socket.send_to(b"there and back", remote).unwrap();
        let mut packet = next_udp(&device, &mut burst);
        let udp = udp_header(&packet).unwrap();
        assert_eq!(&packet[udp + 8..], b"there and back");
        let destination = match remote.ip() {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        assert_eq!(packet[udp - destination.len()..udp], destination);

        turn(&mut packet);
        coalescer.push(&device, &packet);
        coalescer.flush(&device);
        readable(&socket);
        let mut answer = [0; 100];
        let (len, from) = socket.recv_from(&mut answer).unwrap();
        assert_eq!((&answer[..len], from), (&b"there and back"[..], remote));
    }
    let bytes = (20 + 8 + 14) + (40 + 8 + 14);
    assert_eq!(coalescer.counters(), Counters { written: 2, bytes, ..Counters::default() });
    assert!(device.read(&mut burst).unwrap().is_none(), "nothing else waits");
    Ok(())
}

fn the_largest_packet_passes() -> Outcome {
    let (device, mut netlink) = tunnel(&options("mpt0"))?;
    netlink.set_mtu(device.index(), 65_535).unwrap();
    let (mut burst, mut coalescer) = (Burst::new(), Coalescer::new());
    let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
    let payload: Vec<u8> = (0..65_507_u32).map(|i| (i * 7) as u8).collect();
    socket.send_to(&payload, "10.9.0.2:7").unwrap();
    let mut packet = next_udp(&device, &mut burst);
    assert_eq!(packet.len(), 65_535);
    turn(&mut packet);
    coalescer.push(&device, &packet);
    coalescer.flush(&device);
    readable(&socket);
    let mut answer = vec![0; 65_535];
    let len = socket.recv(&mut answer).unwrap();
    assert!(answer[..len] == payload, "all of it, unchanged");
    Ok(())
}

fn segmented() -> Outcome {
    let (device, _netlink) = tunnel(&options("mpt0"))?;
    let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
    let remote: SocketAddr = "10.9.0.2:7".parse().unwrap();
    socket.connect(remote).unwrap();
    setsockopt(&socket, UdpGsoSegment, &1000).unwrap();
    socket.send(&[0x5a; 2500]).unwrap();
    let mut burst = Burst::new();
    let mut lengths = Vec::new();
    while lengths.len() < 3 {
        readable(&device);
        let Some(mut super_packet) = device.read(&mut burst).unwrap() else { continue };
        while let Some(packet) = super_packet.next_packet() {
            if udp_header(packet).is_some() {
                let mut packet = packet.to_vec();
                // A wrong checksum would make the kernel drop the answer.
                turn(&mut packet);
                device.write(&packet).unwrap();
                readable(&socket);
                lengths.push((packet.len() - 28, socket.recv(&mut [0; 2000]).unwrap()));
            }
        }
    }
    assert_eq!(lengths, [(1000, 1000), (1000, 1000), (500, 500)]);
    Ok(())
}

fn refused_packets() -> Outcome {
    let (device, mut netlink) = tunnel(&options("mpt0"))?;
    let mut coalescer = Coalescer::new();
    coalescer.push(&device, &[0x55; 40]); // IP version 5
    netlink.set_up(device.index(), false).unwrap();
    coalescer.push(&device, &[0x45; 40]);
    netlink.remove_link(device.index()).unwrap();
    coalescer.push(&device, &[0x45; 40]);
    coalescer.flush(&device);
    let expected = Counters { invalid: 1, down: 1, failed: 1, ..Counters::default() };
    assert_eq!(coalescer.counters(), expected);
    Ok(())
}

fn queue_length() -> Outcome {
    let (device, mut netlink) = tunnel(&Options { queue_len: Some(5), ..options("mpt0") })?;
    let before = netlink.link("mpt0").unwrap().unwrap();
    assert_eq!(before.queue_len, 5);
    let mut burst = Burst::new();
    while device.read(&mut burst).unwrap().is_some() {}
    let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
    for _ in 0..20 {
        let _ = socket.send_to(b"x", "10.9.0.2:7"); // a full queue shows here as ENOBUFS or not at all
    }
    let mut waiting = 0;
    while device.read(&mut burst).unwrap().is_some() {
        waiting += 1;
    }
    let dropped = netlink.link("mpt0").unwrap().unwrap().tx_dropped - before.tx_dropped;
    assert_eq!((waiting, dropped), (5, 15));
    Ok(())
}

fn carrier() -> Outcome {
    let (device, mut netlink) = tunnel(&options("mpt0"))?;
    let mut carrier = || netlink.link("mpt0").unwrap().unwrap().carrier;
    assert!(carrier());
    device.set_carrier(false).unwrap();
    assert!(!carrier());
    device.set_carrier(true).unwrap();
    assert!(carrier());
    Ok(())
}

fn removed_interface() -> Outcome {
    let (device, mut netlink) = tunnel(&options("mpt0"))?;
    netlink.remove_link(device.index()).unwrap();
    let mut burst = Burst::new();
    assert_eq!(device.read(&mut burst).unwrap_err().raw_os_error(), Some(libc::EBADFD));
    Ok(())
}

fn gone_with_the_device() -> Outcome {
    let (device, mut netlink) = tunnel(&options("mpt0"))?;
    assert!(netlink.link("mpt0").unwrap().is_some());
    drop(device);
    assert_eq!(netlink.link("mpt0").unwrap(), None);
    open(&options("mpt0"))?;
    Ok(())
}

fn open_errors() -> Outcome {
    let _device = open(&options("mpt0"))?;
    for taken in ["mpt0", "lo"] {
        let error = Device::open(&options(taken)).unwrap_err();
        assert!(matches!(error, OpenError::NameInUse { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(&format!("'{taken}'")) && text.contains("choose another"), "{text}");
    }
    for bad in ["", "sixteen-bytes-xx", "a/b", "a b", "tun%d"] {
        let error = Device::open(&options(bad)).unwrap_err();
        assert!(matches!(error, OpenError::Name(_)), "{bad}: {error:?}");
    }
    Ok(())
}
