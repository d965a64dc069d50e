//! What the tests share: how one is run, and labs and sockets in a line each.

use std::env;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use libtest_mimic::{Completion, Failed};
use mpt_lab::lab::{Host, Lab};
use mpt_lab::topology::Topology;

/// A test by name; it fails by panicking.
pub(crate) type Test = (&'static str, fn());

/// No packet of these tests needs longer; only a failure waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a test, unless the machine does not permit it.
pub(crate) fn run(entered: Result<(), String>, test: fn()) -> Result<Completion, Failed> {
    if let Err(reason) = entered {
        return skip(reason);
    }
    match catch_unwind(AssertUnwindSafe(test)) {
        Ok(()) => Ok(Completion::Completed),
        Err(payload) if payload.is::<Lacking>() => {
            let Lacking(reason) = *payload.downcast().expect("it was looked at");
            skip(reason)
        }
        Err(payload) => match payload.downcast::<Skip>() {
            Ok(skip) => Ok(Completion::ignored_with(skip.0)),
            Err(_) => Err("it panicked; see above".into()),
        },
    }
}

/// Why a test found out on its way that this machine cannot run it.
struct Lacking(String);

/// Ends a test that this machine cannot run, saying what it lacks.
pub(crate) fn give_up(reason: String) -> ! {
    resume_unwind(Box::new(Lacking(reason)))
}

struct Skip(String);

/// Ends a test for which the kernel lacks a module. Few kernels have them all, so that this fails
/// only where `MPT_NO_SKIP` is `all`.
pub(crate) fn lacks_module(reason: &str) -> ! {
    assert_ne!(env::var("MPT_NO_SKIP").as_deref(), Ok("all"), "{reason}");
    resume_unwind(Box::new(Skip(reason.to_owned())))
}

/// Reports a test as ignored, or as failed where nothing may be.
pub(crate) fn skip(reason: String) -> Result<Completion, Failed> {
    match env::var_os("MPT_NO_SKIP") {
        Some(_) => Err(reason.into()),
        None => Ok(Completion::ignored_with(reason)),
    }
}

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
