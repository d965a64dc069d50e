//! TCP and UDP between two hosts, with every offload and without.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};

use mpt_io::tun::{Counters, Offloads};
use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};

use super::joined::{FAR, Joined, Moved};
use crate::world::PATIENCE;
use crate::{Outcome, Test};

pub(crate) const TESTS: &[Test] = &[
    ("tun::tcp_arrives_in_super_packets", tcp_with_everything),
    ("tun::tcp_arrives_with_checksums_left_out", tcp_with_checksums_left_out),
    ("tun::tcp_arrives_without_tso", || tcp(Offloads { tso: false, ..Offloads::ALL }, false)),
    ("tun::tcp_arrives_without_uso", || tcp(Offloads { uso: false, ..Offloads::ALL }, false)),
    ("tun::tcp_arrives_with_checksums_alone", || tcp(CHECKSUMS, false)),
    ("tun::tcp_arrives_without_any_offload", || tcp(Offloads::NONE, false)),
    ("tun::udp_arrives_in_super_packets", || udp(Offloads::ALL, false)),
    ("tun::udp_arrives_with_checksums_left_out", || udp(Offloads::ALL, true)),
    ("tun::udp_arrives_without_uso", || udp(Offloads { uso: false, ..Offloads::ALL }, false)),
    ("tun::udp_arrives_without_any_offload", || udp(Offloads::NONE, false)),
];

/// The header in front of packets and nothing that is many packets at once.
const CHECKSUMS: Offloads = Offloads { vnet_header: true, tso: false, uso: false };

const PORT: u16 = 7;
/// Datagrams in one send, and sends.
const DATAGRAMS: usize = 32;
const SENDS: usize = 10;
const DATAGRAM: usize = 1300;

fn tcp_with_everything() -> Outcome {
    tcp(Offloads::ALL, false)
}

fn tcp_with_checksums_left_out() -> Outcome {
    tcp(Offloads::ALL, true)?;
    // The other end may have no header that could indicate it.
    tcp(CHECKSUMS, true)
}

/// Sends data there and back over both versions of IP.
fn tcp(offloads: Offloads, left_out: bool) -> Outcome {
    for ip in FAR {
        let remote = SocketAddr::new(ip.parse::<IpAddr>().unwrap(), PORT);
        let (joined, server) = Joined::new(offloads, move |ready| {
            let listener = TcpListener::bind(remote).unwrap();
            ready.send(()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            stream.write_all(&received).unwrap();
        })?;
        let sent: Vec<u8> = (0..4_000_000_u32).map(|i| (i * 31 / 7) as u8).collect();
        let (received, moved) = joined.run(left_out, || {
            let mut stream = TcpStream::connect_timeout(&remote, PATIENCE).unwrap();
            stream.write_all(&sent).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            received
        });
        server.join().unwrap();
        assert!(received == sent, "all of it, there and back");
        for Moved { read, written } in &moved {
            assert_eq!(read.dropped(), 0, "{read:?}");
            assert_eq!(written.written, read.packets, "{moved:?}");
            assert!(read.packets > 2000, "{read:?}");
            check_super_packets(offloads.tso, &moved);
            let clean = Counters { corrupt: 0, refused: 0, ..*written };
            assert_eq!(*written, clean);
        }
    }
    Ok(())
}

/// Sends datagrams many at a time over both versions of IP; the far end answers every send.
fn udp(offloads: Offloads, left_out: bool) -> Outcome {
    for ip in FAR {
        let remote = SocketAddr::new(ip.parse::<IpAddr>().unwrap(), PORT);
        let (joined, server) = Joined::new(offloads, move |ready| {
            let socket = UdpSocket::bind(remote).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            ready.send(()).unwrap();
            let mut buffer = [0; 2 * DATAGRAM];
            for send in 0..SENDS {
                let mut from = None;
                for number in 0..DATAGRAMS {
                    let (len, sender) = socket.recv_from(&mut buffer).unwrap();
                    assert!(buffer[..len] == datagram(send, number), "{send} {number}");
                    from = Some(sender);
                }
                socket.send_to(b"all here", from.unwrap()).unwrap();
            }
        })?;
        let ((), moved) = joined.run(left_out, || {
            let local = if remote.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(local).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.connect(remote).unwrap();
            setsockopt(&socket, UdpGsoSegment, &(DATAGRAM as i32)).unwrap();
            for send in 0..SENDS {
                let datagrams: Vec<_> = (0..DATAGRAMS).map(|n| datagram(send, n)).collect();
                socket.send(&datagrams.concat()).unwrap();
                socket.recv(&mut [0; 100]).unwrap();
            }
        });
        server.join().unwrap();
        let Moved { read, written } = &moved[0];
        assert_eq!((read.dropped(), written.written), (0, read.packets), "{moved:?}");
        assert!(read.packets >= (SENDS * DATAGRAMS) as u64, "{read:?}");
        check_super_packets(offloads.uso, &moved[..1]);
        if offloads.uso {
            assert_eq!(read.super_packets, SENDS as u64);
            assert_eq!(written.super_packets, SENDS as u64);
        }
    }
    Ok(())
}

/// One of the datagrams: the last of each send is shorter than the others.
fn datagram(send: usize, number: usize) -> Vec<u8> {
    let len = if number + 1 == DATAGRAMS { DATAGRAM - 301 } else { DATAGRAM };
    (0..len).map(|i| (i * 7 + number * 3 + send) as u8).collect()
}

/// Whether packets moved many at a time, as they should or should not.
fn check_super_packets(wanted: bool, moved: &[Moved]) {
    for Moved { read, written } in moved {
        if wanted {
            assert!(read.packets > 4 * read.super_packets && read.super_packets > 0, "{moved:?}");
            assert!(written.merged > written.written / 2, "{moved:?}");
            assert!(written.merged > 4 * written.super_packets, "{moved:?}");
        } else {
            assert_eq!((read.super_packets, written.super_packets), (0, 0), "{moved:?}");
        }
    }
}
