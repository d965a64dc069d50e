//! What life does to networks: wires are cut, hosts restart, people send.

use mpt_proto::{Change, ConnectionId, Instant, Origin, PathId, PathStatus};

use super::load::{Bulk, Stream};
use super::{BulkId, Direction, HostId, StreamId, TrunkId, WireId, World};
use crate::nat::Nat;
use crate::profile::Profile;
use crate::traffic::bulk::{Receiver, Sender};
use crate::traffic::stream::{Checker, Source};

impl World {
    /// Cuts or restores one direction of a wire. Packets in flight arrive.
    pub fn cut(&mut self, wire: WireId, direction: Direction, cut: bool) {
        self.wires[wire.0].link_mut(direction).set_blackout(cut);
    }

    /// Cuts or restores both directions of a wire.
    pub fn cut_both(&mut self, wire: WireId, cut: bool) {
        Direction::BOTH.into_iter().for_each(|direction| self.cut(wire, direction, cut));
    }

    /// Changes one direction of a wire.
    pub fn set_profile(&mut self, wire: WireId, direction: Direction, profile: Profile) {
        self.wires[wire.0].link_mut(direction).set_profile(self.now, profile);
    }

    /// Changes a link that wires share.
    pub fn set_trunk(&mut self, trunk: TrunkId, profile: Profile) {
        self.trunks[trunk.0].set_profile(self.now, profile);
    }

    /// Puts a translator before end `a` of a wire, or takes it away.
    pub fn set_nat(&mut self, wire: WireId, nat: Option<Nat>) {
        self.wires[wire.0].nat = nat;
    }

    /// The translator before end `a` of a wire, to have it forget.
    pub fn nat_mut(&mut self, wire: WireId) -> Option<&mut Nat> {
        self.wires[wire.0].nat.as_mut()
    }

    /// Ends a host's core without notification. Packets to the host are lost until it restarts.
    pub fn stop(&mut self, host: HostId) {
        self.hosts[host.0].stop();
    }

    /// Starts a host's core with the settings it was added with, and no memory.
    pub fn start(&mut self, host: HostId) {
        self.hosts[host.0].start(self.now);
        self.flush(host);
    }

    /// Stops a host and starts it again at the same moment.
    pub fn restart(&mut self, host: HostId) {
        self.stop(host);
        self.start(host);
    }

    /// Has a host get no processor until then, as if others were busy on it: datagrams and inner packets wait, timers are
    /// late, and what waits is read in batches. Changes are still carried out at once.
    pub fn pause(&mut self, host: HostId, until: Instant) {
        self.hosts[host.0].pause(until);
    }

    /// Switches a path of a host's connection off or on, as its operator would. A host that is
    /// stopped has none.
    pub fn set_path_status(
        &mut self,
        host: HostId,
        connection: ConnectionId,
        path: PathId,
        status: PathStatus,
    ) {
        self.change(host, &Change::SetStatus { connection, path, status });
    }

    /// Tells a host how long datagrams the interface and the route of a path allow, in bytes of UDP payload.
    pub fn set_local_len(
        &mut self,
        host: HostId,
        connection: ConnectionId,
        path: PathId,
        len: usize,
    ) {
        self.hosts[host.0].set_local_len(self.now, connection, path, len);
        self.flush(host);
    }

    /// Changes something at a host while it runs. A host that is stopped starts with the settings that
    /// it was added with.
    pub fn change(&mut self, host: HostId, change: &Change) {
        self.hosts[host.0].change(self.now, change);
        self.flush(host);
    }

    /// Gives an inner packet to a host's core, as from its tunnel interface.
    pub fn send_inner(&mut self, host: HostId, packet: &[u8]) {
        if let Some((socket, remote, datagram)) = self.hosts[host.0].handle_inner(self.now, packet)
        {
            self.send_datagram(host, socket, remote, &datagram);
        }
        self.flush(host);
    }

    /// Delivers a datagram to one of a host's sockets, with any claimed sender.
    pub fn inject(&mut self, host: HostId, origin: Origin, datagram: &[u8]) {
        self.hosts[host.0].handle_datagram(self.now, origin, datagram);
        self.flush(host);
    }

    /// Has a source at one host send to another, where its packets are judged.
    pub fn add_stream(&mut self, from: HostId, to: HostId, source: Source) -> StreamId {
        let checker = Checker::new(source.flow());
        self.load.streams.push(Stream { from, to, source, checker });
        StreamId(self.load.streams.len() - 1)
    }

    /// Has a transfer run from one host to another.
    pub fn add_bulk(&mut self, from: HostId, to: HostId, sender: Sender) -> BulkId {
        let receiver = Receiver::new(sender.flow());
        self.load.bulks.push(Bulk { from, to, sender, receiver, wire: None });
        BulkId(self.load.bulks.len() - 1)
    }

    /// Has a transfer run from end `a` of a wire to end `b` without a tunnel, as that of somebody else does who shares a
    /// link with one ([`World::add_trunk`]). Nothing else may go over the wire. The flow must not be one of a tunnel
    /// between the same hosts.
    pub fn add_plain_bulk(&mut self, wire: WireId, sender: Sender) -> BulkId {
        let [from, to] = [Direction::Back, Direction::There]
            .map(|direction| self.wires[wire.0].destination(direction));
        let receiver = Receiver::new(sender.flow());
        self.load.bulks.push(Bulk { from, to, sender, receiver, wire: Some(wire.0) });
        BulkId(self.load.bulks.len() - 1)
    }
}
