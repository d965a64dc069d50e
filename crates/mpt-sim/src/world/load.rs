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

    /// The next inner packet that some host has to send at `now`.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(HostId, Vec<u8>)> {
        let streams = self.streams.iter_mut();
        let stream =
            streams.filter_map(|stream| Some((stream.from, stream.source.poll(now)?))).next();
        if stream.is_some() {
            return stream;
        }
        let bulks = self.bulks.iter_mut();
        bulks.filter_map(|bulk| Some((bulk.from, bulk.sender.poll(now)?))).next()
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
