//! Two hosts whose TUN devices the test joins: what is read from one is pushed to the other.

use std::sync::mpsc;
use std::thread::JoinHandle;

use mpt_io::netlink::Netlink;
use mpt_io::poll::{Events, Interest, Poll, Waker};
use mpt_io::tun::{
    Burst, Coalescer, Counters, Device, MAX_PACKET, Offloads, Options, ReadCounters,
};

use super::{open, options};
use crate::Skip;
use crate::world::{PATIENCE, other_host};

/// Addresses of the host that the test runs on, and of the other one.
pub(super) const NEAR: [&str; 2] = ["10.9.0.1", "fd00:9::1"];
pub(super) const FAR: [&str; 2] = ["10.9.0.2", "fd00:9::2"];

/// One direction: a device to read from, one to write to, and what went through.
struct Way {
    burst: Burst,
    /// What is between the two.
    datagram: Vec<u8>,
    coalescer: Coalescer,
    /// Whether inner checksums are left out in between.
    left_out: bool,
}

/// What went through in one direction.
#[derive(Debug)]
pub(super) struct Moved {
    pub(super) read: ReadCounters,
    pub(super) written: Counters,
}

/// The devices of two hosts.
pub(super) struct Joined {
    near: Device,
    far: Device,
}

impl Joined {
    /// Joins this host to another one that runs `service` once both devices are up.
    pub(super) fn new<T: Send + 'static>(
        offloads: Offloads,
        service: impl FnOnce(mpsc::Sender<()>) -> T + Send + 'static,
    ) -> Result<(Self, JoinHandle<T>), Skip> {
        let near = open(&Options { offloads, ..options("mpt0") })?;
        set_up(&near, NEAR);
        let (device, far) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let (_namespace, thread) = other_host(move || {
            let far = Device::open(&Options { offloads, ..options("mpt0") }).unwrap();
            set_up(&far, FAR);
            device.send(far).unwrap();
            service(ready)
        });
        let far = far.recv().unwrap();
        is_ready.recv().unwrap();
        assert_eq!((near.offloads(), far.offloads()), (offloads, offloads), "this kernel has all");
        Ok((Self { near, far }, thread))
    }

    /// Moves packets both ways until `client`, on a thread of this host, is done.
    pub(super) fn run<T: Send>(
        &self,
        left_out: bool,
        client: impl FnOnce() -> T + Send,
    ) -> (T, [Moved; 2]) {
        const WAKER: u64 = 2;
        let poll = Poll::new().unwrap();
        poll.add(&self.near, 0, Interest::READABLE).unwrap();
        poll.add(&self.far, 1, Interest::READABLE).unwrap();
        let waker = Waker::new(&poll, WAKER).unwrap();
        let mut ways = [Way::new(left_out), Way::new(left_out)];
        std::thread::scope(|scope| {
            let done = WakeOnDrop(&waker);
            let client = scope.spawn(move || {
                let _done = done;
                client()
            });
            let mut events = Events::with_capacity(3);
            let mut done = false;
            while !done {
                assert!(poll.wait(&mut events, Some(PATIENCE)).unwrap() > 0, "nothing moves");
                done = events.iter().any(|event| event.token == WAKER);
                ways[0].carry(&self.near, &self.far);
                ways[1].carry(&self.far, &self.near);
            }
            (client.join().unwrap(), ways.map(Way::moved))
        })
    }
}

impl Way {
    fn new(left_out: bool) -> Self {
        let datagram = vec![0; MAX_PACKET];
        Self { burst: Burst::new(), datagram, coalescer: Coalescer::new(), left_out }
    }

    fn carry(&mut self, from: &Device, to: &Device) {
        while let Some(mut super_packet) = from.read(&mut self.burst).unwrap() {
            while let Some(packet) = super_packet.next_unfinished() {
                let place = &mut self.datagram[..packet.bytes().len()];
                if self.left_out {
                    packet.emit_partial(place);
                    self.coalescer.push_either(to, place);
                } else {
                    packet.emit(place);
                    self.coalescer.push(to, place);
                }
            }
        }
        self.coalescer.flush(to);
    }

    fn moved(self) -> Moved {
        Moved { read: self.burst.counters(), written: self.coalescer.counters() }
    }
}

/// Ends the moving of packets, also when the client panics.
struct WakeOnDrop<'a>(&'a Waker);

impl Drop for WakeOnDrop<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

fn set_up(device: &Device, [v4, v6]: [&str; 2]) {
    let mut netlink = Netlink::open().unwrap();
    let index = device.index();
    netlink.disable_address_generation(index).unwrap();
    netlink.add_address(index, v4.parse().unwrap(), 24).unwrap();
    netlink.add_address(index, v6.parse().unwrap(), 64).unwrap();
    netlink.set_up(index, true).unwrap();
    assert!(netlink.wait_for_address(v6.parse().unwrap(), PATIENCE).unwrap());
}
