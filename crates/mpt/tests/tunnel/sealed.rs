//! Sealed tunnels on real sockets: what can be seen from outside, and what a stranger gets back.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use mpt_lab::capture::Capture;
use mpt_lab::topology::Side;
use mpt_proto::PrivateKey;

use crate::site::{Site, eventually, two_links};
use crate::suite::Test;

pub(crate) const TESTS: &[Test] = &[
    ("sealed::packets_arrive_and_nothing_of_them_is_legible_on_the_way", legible),
    ("sealed::a_stranger_gets_nothing_back", stranger),
    ("sealed::a_restarted_daemon_is_known_again", restart),
];

/// The key of a side.
fn key(side: Side) -> PrivateKey {
    PrivateKey::new([if side == Side::Left { 1 } else { 2 }; 32])
}

/// The configuration of a side, with keys, whose files are in this folder.
fn sealed(folder: &Path, side: Side, config: &str) -> String {
    let other = if side == Side::Left { Side::Right } else { Side::Left };
    let file = folder.join(side.name());
    fs::write(&file, key(side).to_base64().as_bytes()).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    let private = format!("[[tunnel]]\nprivate_key_file = '{}'\n", file.display());
    let public = format!("[[tunnel.connection]]\npublic_key = '{}'\n", key(other).public());
    let config = config.replacen("[[tunnel]]\n", &private, 1);
    let config = config.replacen("[[tunnel.connection]]\n", &public, 1);
    config.replace("framing = 'plain'\n", "")
}

fn start(folder: &Path) -> Site {
    let site = Site::start_with(&two_links(4), "", |side, config| sealed(folder, side, &config));
    for side in [Side::Left, Side::Right] {
        let connection = site.connection(side);
        assert_eq!(connection.framing, "sealed");
        assert!(connection.cipher.is_some() && connection.epoch >= Some(1), "{connection:?}");
    }
    site
}

/// Whether a capture of a stream contains the addresses of inner packets.
fn shows_inner_packets(site: &Site, folder: &Path) -> bool {
    let file = folder.join("capture");
    let capture = Capture::start(&site.lab, &file, &[]).expect("a capture");
    site.assert_flawless(4);
    capture.finish().expect("a file");
    let bytes = fs::read(file).expect("the capture");
    assert!(bytes.windows(2).filter(|it| *it == 4754_u16.to_be_bytes()).count() > 500);
    bytes.windows(8).any(|it| it == [10, 9, 0, 1, 10, 9, 0, 2])
}

fn legible() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(!shows_inner_packets(&start(folder.path()), folder.path()));
    let site = Site::start(&two_links(4), "framing = 'extended'\n");
    assert!(shows_inner_packets(&site, folder.path()), "without keys they are seen");
}

fn stranger() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = start(folder.path());
    let to = SocketAddr::new(site.lab.right().address(0), 4754);
    let from = SocketAddr::new(site.lab.left().address(0), 0);
    let socket = site.lab.left().run(|| UdpSocket::bind(from)).expect("a socket");
    socket.set_nonblocking(true).expect("it does not wait");
    let mut sent = 0;
    for (word, kind) in (0..16).flat_map(|kind| [0x2000_88b5_u32, 0x3000_88b5].map(|it| (it, kind)))
    {
        for key in [0_u32, 77] {
            let mut datagram = vec![0; 400];
            datagram[..4].copy_from_slice(&word.to_be_bytes());
            datagram[4..8].copy_from_slice(&key.to_be_bytes());
            datagram[if word >> 28 == 3 { 12 } else { 8 }] = kind << 4;
            socket.send_to(&datagram, to).expect("it is sent");
            sent += 1;
        }
    }
    for datagram in [&[0_u8; 60][..], &[0xff; 3], b"GET / HTTP/1.1\r\n\r\n"] {
        socket.send_to(datagram, to).expect("it is sent");
        sent += 1;
    }
    let dropped = || -> u64 { site.status(Side::Right).tunnels[0].drops.values().sum() };
    eventually("all of it is counted", || dropped() >= sent);
    let answer = socket.recv_from(&mut [0; 2000]).err().map(|error| error.kind());
    assert_eq!(answer, Some(ErrorKind::WouldBlock));
    site.assert_flawless(4);
}

fn restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut site = start(folder.path());
    for side in [Side::Left, Side::Right] {
        site.end_daemon(side);
        let config = sealed(folder.path(), side, &site.config(side));
        site.start_daemon_with(side, &config);
        site.await_all_up();
        site.assert_flawless(4);
    }
}
