//! The whole way of a packet as the daemon joins it, without system calls: from a super-packet to send batches,
//! and from datagrams to a super-packet.

use mpt_io::tun::Coalescer;
use mpt_io::udp::SendBatch;
use mpt_proto::{Instant, TransmitSide};

use super::arrivals::{self, Arrivals, By};
use super::interface::{self, Protocol, Supply};
use super::nowhere::Nowhere;
use super::{Case, core};

/// TCP, split and sent by some paths, at full speed: more than is kept to be sent again.
pub(super) fn tx<const PATHS: usize>() -> Box<dyn Case> {
    let (mut sender, _) = arrivals::sender(&[1; PATHS]).split();
    core::keep_what_is_allowed(Instant::ZERO, &mut sender);
    Box::new(Tx::new(PATHS, Instant::ZERO, sender))
}

/// The way out.
pub(super) struct Tx {
    now: Instant,
    supply: Supply,
    sender: TransmitSide,
    send_batches: Vec<SendBatch>,
    /// How many were in the send batches after the last round.
    staged: usize,
}

impl Tx {
    /// Sends by so many paths, all at one time.
    pub(super) fn new(paths: usize, now: Instant, sender: TransmitSide) -> Self {
        let remote = "192.0.2.1:4754".parse().expect("an address and a port");
        let send_batches = (0..paths).map(|_| SendBatch::new(remote, None)).collect();
        Self { now, supply: Supply::new(Protocol::Tcp), sender, send_batches, staged: 0 }
    }
}

impl Case for Tx {
    fn packets(&self) -> usize {
        44
    }

    fn prepare(&mut self) {
        self.supply.renew();
        self.send_batches.iter_mut().for_each(SendBatch::clear);
    }

    fn round(&mut self) {
        let mut read = self.supply.read();
        while let Some(packet) = read.next_unfinished() {
            let transmit = self.sender.handle_inner(self.now, packet.bytes());
            let Some(transmit) = transmit else { continue };
            let send_batch = &mut self.send_batches[usize::from(transmit.path.0)];
            send_batch.set_tos(transmit.tos);
            if let Some(place) = send_batch.reserve(transmit.size()) {
                self.sender.emit(self.now, &transmit, place, |_, place| packet.emit(place));
                send_batch.commit();
            }
        }
        self.staged = self.send_batches.iter().map(SendBatch::len).sum();
    }

    fn check(&self) {
        assert_eq!(self.staged, self.packets());
    }
}

/// TCP, received in order and put together again.
pub(super) fn rx_1_path() -> Box<dyn Case> {
    rx(Arrivals::in_order(&interface::packets(Protocol::Tcp), By::Number))
}

/// The same by two paths, so that half of it waits for the other path's send batch.
pub(super) fn rx_2_paths() -> Box<dyn Case> {
    rx(Arrivals::striped(&interface::packets(Protocol::Tcp)))
}

fn rx(arrivals: Arrivals) -> Box<dyn Case> {
    Box::new(Rx { arrivals, coalescer: Coalescer::new() })
}

struct Rx {
    arrivals: Arrivals,
    coalescer: Coalescer,
}

impl Case for Rx {
    fn packets(&self) -> usize {
        self.arrivals.len()
    }

    fn round(&mut self) {
        let mut arrived = 0;
        while arrived < self.arrivals.len() {
            let coalescer = &mut self.coalescer;
            arrived +=
                self.arrivals.arrive_together(&mut |packet| coalescer.push(&Nowhere, packet));
        }
        self.coalescer.flush(&Nowhere);
    }

    fn check(&self) {
        self.arrivals.check();
        interface::check_merged(&self.coalescer);
    }
}
