//! The traffic of a world: which host sends what, and who takes what arrives.

use mpt_proto::Instant;

use super::id::HostId;
use crate::traffic::bulk::{Receiver, Sender};
use crate::traffic::packet::{Kind, Packet};
use crate::traffic::stream::{Checker, Source};

#[derive(Debug, Default)]
pub(super) struct Load {
    pub(super) streams: Vec<Stream>,
    pub(super) bulks: Vec<Bulk>,
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) from: HostId,
    pub(super) to: HostId,
    pub(super) source: Source,
    pub(super) checker: Checker,
}

#[derive(Debug)]
pub(super) struct Bulk {
    pub(super) from: HostId,
    pub(super) to: HostId,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// The wire that it goes over without a tunnel.
    pub(super) wire: Option<usize>,
}

/// What takes a packet that is sent.
pub(super) enum By {
    /// The core of a host, as from its tunnel interface.
    Tunnel(HostId),
    /// A wire from its end `a`, as it is.
    Wire(usize),
}

/// Whose packet it was.
pub(super) enum Claim {
    Nobody,
    Taken,
    /// A sender that returns this inner packet.
    Answered(Vec<u8>),
}

impl Load {
    pub(super) fn next_due(&self) -> Option<Instant> {
        let streams = self.streams.iter().filter_map(|stream| stream.source.next_due());
        let bulks = self.bulks.iter().filter_map(|bulk| bulk.sender.next_due());
        streams.chain(bulks).min()
    }

    /// The next packet that some host has to send at `now`.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(By, Vec<u8>)> {
        let streams = self.streams.iter_mut();
        let stream =
            |stream: &mut Stream| Some((By::Tunnel(stream.from), stream.source.poll(now)?));
        if let Some(packet) = streams.filter_map(stream).next() {
            return Some(packet);
        }
        let bulk = |bulk: &mut Bulk| {
            let packet = bulk.sender.poll(now)?;
            Some((bulk.wire.map_or(By::Tunnel(bulk.from), By::Wire), packet))
        };
        self.bulks.iter_mut().filter_map(bulk).next()
    }

    /// Whether a wire carries a transfer without a tunnel, and so nothing else.
    pub(super) fn is_plain(&self, wire: usize) -> bool {
        self.bulks.iter().any(|bulk| bulk.wire == Some(wire))
    }

    /// An unaltered packet of `len` bytes was delivered to a host.
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        host: HostId,
        packet: &Packet,
        len: usize,
    ) -> Claim {
        match packet.kind {
            Kind::Datagram => {
                let mut streams = self.streams.iter_mut();
                let ours =
                    |stream: &&mut Stream| (stream.to, stream.source.flow()) == (host, packet.flow);
                let Some(stream) = streams.find(ours) else { return Claim::Nobody };
                stream.checker.on_packet(now, packet, len);
                Claim::Taken
            }
            Kind::Segment => {
                let mut bulks = self.bulks.iter_mut();
                let ours = |bulk: &&mut Bulk| (bulk.to, bulk.sender.flow()) == (host, packet.flow);
                let bulk = bulks.find(ours);
                let answer = bulk.and_then(|bulk| bulk.receiver.on_packet(packet, len));
                answer.map_or(Claim::Nobody, Claim::Answered)
            }
            Kind::Acknowledgement => {
                let flow = packet.flow.reversed();
                let mut bulks = self.bulks.iter_mut();
                let ours = |bulk: &&mut Bulk| (bulk.from, bulk.sender.flow()) == (host, flow);
                let Some(bulk) = bulks.find(ours) else { return Claim::Nobody };
                bulk.sender.on_packet(now, packet);
                Claim::Taken
            }
        }
    }
}
