//! What can be seen of a world.

use mpt_proto::{Endpoint, Event, Instant};

use super::{BulkId, Direction, HostId, HostStats, StreamId, TrunkId, WireId, World};
use crate::link::Link;
use crate::traffic::bulk::{Receiver, Sender};
use crate::traffic::stream::{Checker, Source};

impl World {
    /// The seed all chance comes from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A host's core; `None` while it is stopped.
    pub fn endpoint(&self, host: HostId) -> Option<&Endpoint> {
        self.hosts[host.0].endpoint()
    }

    /// What a host lost outside its core.
    pub fn host_stats(&self, host: HostId) -> &HostStats {
        self.hosts[host.0].stats()
    }

    /// Inner packets delivered to a host that belong to no traffic of this world, oldest first;
    /// only the first thousand or so are kept, the others counted.
    pub fn unclaimed(&self, host: HostId) -> &[Vec<u8>] {
        self.hosts[host.0].unclaimed()
    }

    /// How many packets a host keeps for the reorder buffers of its core.
    pub fn held(&self, host: HostId) -> usize {
        self.hosts[host.0].held()
    }

    /// One direction of a wire.
    pub fn link(&self, wire: WireId, direction: Direction) -> &Link {
        self.wires[wire.0].link(direction)
    }

    /// Bytes that wait at a link that wires share.
    pub fn trunk_backlog(&self, trunk: TrunkId) -> u64 {
        self.trunks[trunk.0].backlog(self.now)
    }

    /// How many packets the translator of a wire did not let pass.
    pub fn nat_drops(&self, wire: WireId) -> u64 {
        self.wires[wire.0].nat_drops
    }

    /// Both ends of a stream.
    pub fn stream(&self, stream: StreamId) -> (&Source, &Checker) {
        let stream = &self.load.streams[stream.0];
        (&stream.source, &stream.checker)
    }

    /// Both ends of a transfer.
    pub fn bulk(&self, bulk: BulkId) -> (&Sender, &Receiver) {
        let bulk = &self.load.bulks[bulk.0];
        (&bulk.sender, &bulk.receiver)
    }

    /// The events of the cores, with time and host.
    pub fn events(&self) -> &[(Instant, HostId, Event)] {
        &self.events
    }

    /// A number that two runs share only if the same happened in both: every packet that entered a
    /// wire or was delivered, byte by byte, with its time and place.
    pub fn digest(&self) -> u64 {
        self.digest.value()
    }
}
