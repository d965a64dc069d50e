//! Namespaces to test in, and waiting for what happens there.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mpt_io::netlink::Netlink;
use mpt_io::poll::{Events, Interest, Poll};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, getgid, getuid};

/// Index of the loopback interface in every namespace.
pub(crate) const LO: u32 = 1;

/// How long to wait for what must come. Only a failing test ever waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Gains the right to make network namespaces, or says why that is impossible. To be called before
/// any thread starts.
pub(crate) fn enter() -> Result<(), String> {
    let (uid, gid) = (getuid(), getgid());
    if unshare(CloneFlags::CLONE_NEWNET).is_ok() {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)
        .map_err(|error| format!("neither network nor user namespaces can be made: {error}"))?;
    let map = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(|error| format!("{file}: {error}"))
    };
    map("setgroups", "deny".into())?;
    map("uid_map", format!("0 {uid} 1"))?;
    map("gid_map", format!("0 {gid} 1"))
}

/// Whether this is root of the machine and not only of a user namespace.
pub(crate) fn is_real_root() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap();
    Uid::effective().is_root() && map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Runs `body` on a thread in a new network namespace, with the loopback interface up.
pub(crate) fn in_fresh_namespace<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        Netlink::open().unwrap().set_up(LO, true).unwrap();
        body()
    })
}

/// A second host: a thread in another network namespace that runs `body`, given a descriptor of its
/// namespace that it can be reached by.
pub(crate) fn other_host<T: Send + 'static>(
    body: impl FnOnce() -> T + Send + 'static,
) -> (File, JoinHandle<T>) {
    let (sender, receiver) = mpsc::channel();
    let thread = in_fresh_namespace(move || {
        sender.send(File::open("/proc/thread-self/ns/net").unwrap()).unwrap();
        body()
    });
    (receiver.recv().unwrap(), thread)
}

/// Waits until `condition` holds, for what the kernel does in its own time without telling.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until `fd` is readable.
pub(crate) fn readable(fd: impl AsFd) {
    assert!(readable_within(fd, PATIENCE), "nothing came");
}

/// Whether `fd` becomes readable before that much time has passed.
pub(crate) fn readable_within(fd: impl AsFd, time: Duration) -> bool {
    let (poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(1));
    poll.add(fd, 0, Interest::READABLE).unwrap();
    poll.wait(&mut events, Some(time)).unwrap() == 1
}
