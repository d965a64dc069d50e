//! What the tests share: labs and sockets in a line each.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use mpt_lab::lab::{Host, Lab};
use mpt_lab::topology::Topology;

pub(crate) use crate::pool::{Test, lacks_module, skip};

/// No packet of these tests needs longer; only a failure waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A lab from a topology in TOML.
pub(crate) fn lab(topology: &str) -> Lab {
    Lab::start(&Topology::parse(topology).unwrap()).unwrap_or_else(|error| panic!("{error:#}"))
}

/// A UDP socket in `host`, on its address on a link.
pub(crate) fn socket(host: &Host, link: usize) -> UdpSocket {
    let address = SocketAddr::new(host.address(link), 0);
    let socket = host.run(|| UdpSocket::bind(address)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// A socket at either end of a link, each connected to the other.
pub(crate) fn pair(lab: &Lab, link: usize) -> (UdpSocket, UdpSocket) {
    let left = socket(lab.left(), link);
    let right = socket(lab.right(), link);
    left.connect(right.local_addr().unwrap()).unwrap();
    right.connect(left.local_addr().unwrap()).unwrap();
    (left, right)
}

/// Receives a datagram of a number.
pub(crate) fn receive(socket: &UdpSocket) -> u32 {
    let mut buffer = [0; 2048];
    let len = socket.recv(&mut buffer).unwrap();
    u32::from_be_bytes(buffer[..len.min(4)].try_into().unwrap())
}

/// Sends a number.
pub(crate) fn send(socket: &UdpSocket, number: u32) {
    socket.send(&number.to_be_bytes()).unwrap();
}

/// Waits until something is so.
pub(crate) fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// How many descriptors and threads this process has.
pub(crate) fn belongings() -> (usize, usize) {
    let count = |folder| fs::read_dir(folder).unwrap().count();
    (count("/proc/self/fd"), count("/proc/self/task"))
}
