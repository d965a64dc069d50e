//! The transmit side: from the interface to a path, from there to the network, and keepalives.
//!
//! It also manages the MTU ([`mtu`](super::mtu)), because it learns when a datagram is too big.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use mpt_io::poll::{Interest, Poll};
use mpt_io::tun::{Burst, Device, Unfinished};
use mpt_io::udp::SendBatch;
use mpt_proto::{
    Change, ConnectionId, Instant, Message, PathId, Taken, Traffic, Transmit, TransmitKind,
};

use super::clamp::Clamp;
use super::command::Command;
use super::dark::Dark;
use super::history::History;
use super::interface_mtu::{MIN_MTU, Mtu};
use super::main_event::{MainEvent, MainEvents};
use super::narrowed::Narrowed;
use super::op::{Place, ReceiveCommand, TunnelOp};
use super::outgoing::Outgoing;
use super::reported::{Probing, Reported};
use super::sockets::Sockets;
use super::table::{ConnectionInfo, PathInfo, Table};
use super::too_big::TooBig;
use super::trace_buffer::TraceBuffer;
use crate::config;

/// The source of events that is the interface.
pub(super) const DEVICE: u64 = 1;

/// Reads from the interface in one wake-up, and the bytes after which there is no further one:
/// enough to fill a send batch for each of a few paths, little enough that received datagrams do not wait
/// for long.
const DEVICE_READS: usize = 64;
const DEVICE_BYTES: u64 = 256 << 10;

/// The detection delay for the loss of an interface that is not polled.
const UNNOTICED: Duration = Duration::from_secs(1);

/// Everything that sending needs.
pub(super) struct TransmitLoop {
    pub(super) settings: Arc<config::Tunnel>,
    pub(super) device: Arc<Device>,
    /// What waits for the device.
    pub(super) poll: Arc<Poll>,
    pub(super) main_events: MainEvents,
    pub(super) sockets: Sockets,
    pub(super) table: Table,
    pub(super) endpoint: mpt_proto::TransmitSide,
    pub(super) outgoing: Outgoing,
    pub(super) burst: Burst,
    /// Inner packets read from the interface.
    pub(super) read: Traffic,
    pub(super) mtu: Mtu,
    pub(super) too_big: TooBig,
    pub(super) dark: Dark,
    /// Datagrams without inner packets that were sent, by connection and path.
    pub(super) control_sent: HashMap<(ConnectionId, PathId), Traffic>,
    pub(super) clamp: Clamp,
    /// When the counters are noted next.
    pub(super) note_at: Instant,
    pub(super) trace: TraceBuffer,
}

impl TransmitLoop {
    /// Has the poll wait for the interface.
    ///
    /// # Errors
    ///
    /// The kernel's refusal.
    pub(super) fn wait_for_device(&self) -> anyhow::Result<()> {
        let added = self.poll.add(&*self.device, DEVICE, Interest::READABLE);
        added.context("cannot wait for the interface")
    }

    /// The interface was deleted. The main thread creates it again ([`TunnelOp::SetDevice`]); until then
    /// there is nothing to read.
    fn on_device_removed(&self) {
        let index = self.device.index();
        // If there is no room for the event, the poll reports the device again.
        if self.main_events.give(MainEvent::InterfaceGone { index }) {
            // It can only fail for a device that is not waited for.
            let _ = self.poll.remove(&*self.device);
        }
    }

    /// Goes on with another interface, which gets the MTU of the one before.
    fn set_device(&mut self, device: &Arc<Device>) {
        self.device = Arc::clone(device);
        if let Err(error) = self.wait_for_device() {
            tracing::error!(tunnel = self.settings.name, "nothing is sent: {error:#}");
        }
        let mtu = std::mem::take(&mut self.mtu.bytes);
        if mtu > 0 {
            self.set_interface_mtu(mtu);
        }
        self.mtu.changed = true;
    }

    /// Takes inner packets from the interface and stages their datagrams.
    ///
    /// # Errors
    ///
    /// If the interface cannot be read, for another reason than that somebody has deleted it.
    pub(super) fn read_device(&mut self, now: Instant) -> anyhow::Result<()> {
        let checksum_partial = self.settings.checksum_partial;
        let limit = self.mtu.limit;
        let budget = self.read.bytes + DEVICE_BYTES;
        for _ in 0..DEVICE_READS {
            if self.read.bytes >= budget {
                break;
            }
            let mut packets = match self.device.read(&mut self.burst) {
                Ok(Some(packets)) => packets,
                Ok(None) => break,
                Err(error) if Device::is_removal(&error) => {
                    self.on_device_removed();
                    break;
                }
                Err(error) => return Err(error).context("cannot read from the interface"),
            };
            // One answer is enough for all segments of a super-packet, as it is for the kernel.
            let mut answered = false;
            while let Some(mut packet) = packets.next_unfinished() {
                let len = packet.bytes().len();
                self.read.packets += 1;
                self.read.bytes += len as u64;
                if len > limit as usize {
                    self.endpoint.drop_too_big();
                    let write = |answer: &[u8]| self.device.write(answer);
                    answered = answered || self.too_big.answer(now, packet.bytes(), limit, write);
                    continue;
                }
                self.clamp.outgoing(&mut packet);
                let Self { endpoint, outgoing, sockets, dark, device, .. } = self;
                let mut staging = Staging { now, endpoint, outgoing, sockets, checksum_partial };
                match staging.endpoint.handle_inner(now, packet.bytes()) {
                    Some(transmit) => staging.stage(&transmit, &packet),
                    None => staging.take_offered(&packet, dark, device),
                }
            }
        }
        Ok(())
    }

    /// The receive side has something to say.
    pub(super) fn handle_message(
        &mut self,
        now: Instant,
        (connection, update): (ConnectionId, Message),
    ) {
        let is_of_path = matches!(update, Message::Update(_));
        self.endpoint.handle_message(now, connection, update);
        if is_of_path {
            self.dark.note(now, connection, self.endpoint.has_usable_path(connection));
        }
    }

    /// Does its part of what other threads ask for; the receive side's part goes to `to_rx`.
    pub(super) fn carry_out(
        &mut self,
        now: Instant,
        command: Command,
        mut to_rx: impl FnMut(ReceiveCommand),
    ) {
        match command {
            Command::Status(reply) => {
                to_rx(ReceiveCommand::Status { status: Box::new(self.report(now)), reply });
            }
            Command::Explain { connection, reply } => {
                let explanations = self.explain(now, connection.as_deref());
                to_rx(ReceiveCommand::Explain { explanations, reply });
            }
            Command::Trace { connection, after, reply } => {
                let (connections, answer) = self.fetch_trace(now, connection.as_deref(), after);
                let answer = Box::new(answer);
                to_rx(ReceiveCommand::Trace { connections, after, answer, reply });
            }
            Command::Sync(reply) => to_rx(ReceiveCommand::Sync { reply }),
            Command::LastHeard(reply) => to_rx(ReceiveCommand::LastHeard { reply }),
            Command::Volumes(reply) => {
                to_rx(ReceiveCommand::Volumes { volumes: self.volumes(), reply });
            }
            Command::TunnelOp(op) => self.apply(now, *op, &mut to_rx),
            Command::Stop => {
                self.endpoint.close(now);
                to_rx(ReceiveCommand::Stop);
            }
        }
    }

    fn apply(&mut self, now: Instant, op: TunnelOp, to_rx: &mut impl FnMut(ReceiveCommand)) {
        // Flush first: staged datagrams keep their old route.
        self.flush(now, TransmitKind::Inner);
        match op {
            TunnelOp::OpenSocket { id, socket } => {
                self.sockets.put(id, Arc::clone(&socket));
                self.outgoing.forget_egress_rate(id);
                to_rx(ReceiveCommand::OpenSocket { id, socket });
            }
            TunnelOp::CloseSocket { id } => {
                drop(self.sockets.take(id));
                to_rx(ReceiveCommand::CloseSocket { id });
            }
            TunnelOp::AddConnection { id, settings, accepted_by, core } => {
                let name = Some(settings.name.clone());
                let (accepted_by, template) = accepted_by.unzip();
                let info = ConnectionInfo {
                    settings,
                    accepted_by: template,
                    paths: Vec::new(),
                    history: History::beginning(now),
                };
                self.table.put(id, info);
                let change = Change::AddConnection { connection: id, config: core, accepted_by };
                self.change(now, change, name, to_rx);
            }
            TunnelOp::SetConnection { id, settings, core } => {
                if let Some(info) = self.table.connection_mut(id) {
                    info.settings = settings;
                }
                self.change(
                    now,
                    Change::SetConnection { connection: id, config: core },
                    None,
                    to_rx,
                );
            }
            TunnelOp::RemoveConnection { id } => {
                self.change(now, Change::RemoveConnection { connection: id }, None, to_rx);
                self.table.remove(id);
                self.send(now);
                self.outgoing.remove_all(id);
                self.control_sent.retain(|(owner, _), _| *owner != id);
                self.dark.note(now, id, true);
                self.mtu.changed = true;
            }
            TunnelOp::AddPath { connection, path, place } => {
                let (name, config) = (Some(place.settings.name.clone()), place.core());
                self.outgoing.put(connection, path, place.path_sender());
                let Place { settings, remote, mtu: known, absence, .. } = place;
                let (present, mtu) = (absence.is_none(), known.at_first());
                let history = History::beginning(now);
                let why = absence.clone();
                let info = PathInfo { absence, history, ..PathInfo::new(settings, remote, known) };
                self.table.put_path(connection, path, info);
                self.change(now, Change::AddPath { connection, path, config }, name, to_rx);
                self.set_allowed(now, connection, path, known.allowed);
                let fits = Change::SetFits { connection, path, fits: mtu >= MIN_MTU };
                self.change(now, fits, None, to_rx);
                let unnoticed = Duration::ZERO;
                let change = Change::SetPresent { connection, path, present, unnoticed };
                self.change(now, change, why, to_rx);
                self.mtu.changed = true;
            }
            TunnelOp::SetPath { connection, path, place } => {
                let (config, known) = (place.core(), place.mtu);
                let fits = known.at_first() >= MIN_MTU;
                let path_sender = self.outgoing.path_sender(connection, path);
                if path_sender
                    .is_none_or(|path_sender| !path_sender.leads_to(place.socket(), place.remote))
                {
                    self.outgoing.put(connection, path, place.path_sender());
                }
                if let Some(info) = self.table.path_mut(connection, path) {
                    // Requested by the operator, perhaps because the path has been repaired.
                    info.narrowed = Narrowed::default();
                    (info.reported, info.probing) = (Reported::default(), Probing::default());
                    (info.settings, info.remote, info.mtu) =
                        (place.settings, place.remote, known.at_first());
                    info.best_mtu = info.best_mtu.max(known.allowed);
                    (info.allowed, info.at_first) = (known.allowed, known.at_first());
                    info.proven = None;
                }
                self.change(now, Change::SetPath { connection, path, config }, None, to_rx);
                self.set_allowed(now, connection, path, known.allowed);
                self.change(now, Change::SetFits { connection, path, fits }, None, to_rx);
                self.mtu.changed = true;
            }
            TunnelOp::SetSurcharge { connection, path, surcharge } => {
                let change = Change::SetSurcharge { connection, path, surcharge };
                self.change(now, change, None, to_rx);
            }
            TunnelOp::RemovePath { connection, path } => {
                self.change(now, Change::RemovePath { connection, path }, None, to_rx);
                // From here on the core may have forgotten it, and sending looks at the counters of all that the table has.
                self.table.remove_path(connection, path);
                self.send(now);
                self.outgoing.remove(connection, path);
                self.control_sent.remove(&(connection, path));
                self.mtu.changed = true;
            }
            TunnelOp::SetAbsence { connection, path, absence, well } => {
                let present = absence.is_none();
                if let Some(info) = self.table.path_mut(connection, path) {
                    info.absence = absence;
                }
                // Until this moment, however long this took to arrive here.
                let unnoticed = well.map_or(UNNOTICED, |well| well.elapsed());
                let absence =
                    self.table.path_mut(connection, path).and_then(|it| it.absence.clone());
                let change = Change::SetPresent { connection, path, present, unnoticed };
                self.change(now, change, absence, to_rx);
                self.mtu.changed = true;
            }
            TunnelOp::SetPeerDown { connection, path, down } => {
                self.change(now, Change::SetPeerDown { connection, path, down }, None, to_rx);
            }
            TunnelOp::SetLearns { connection, learns } => {
                to_rx(ReceiveCommand::SetLearns { connection, learns });
            }
            TunnelOp::SetAccepts { accepts } => to_rx(ReceiveCommand::SetAccepts { accepts }),
            TunnelOp::SetKeys { keys } => to_rx(ReceiveCommand::SetKeys { keys }),
            TunnelOp::ChangeClients { add, remove } => {
                to_rx(ReceiveCommand::ChangeClients { add, remove });
            }
            TunnelOp::SetTunnel { settings } => {
                self.settings = settings;
                self.mtu.changed = true;
            }
            TunnelOp::SetDevice { device } => {
                self.set_device(&device);
                to_rx(ReceiveCommand::SetDevice { device });
            }
            TunnelOp::CheckMtu => self.mtu.all = true,
        }
    }

    fn change(
        &mut self,
        now: Instant,
        change: Change,
        name: Option<String>,
        to_rx: &mut impl FnMut(ReceiveCommand),
    ) {
        self.endpoint.change(now, &change);
        to_rx(ReceiveCommand::Change { change, name });
    }

    /// Sends what is staged, then control messages and retransmissions that are due.
    pub(super) fn send(&mut self, now: Instant) {
        // Data first: a keepalive reports the number of datagrams sent before it.
        self.flush(now, TransmitKind::Inner);
        let mut kind = TransmitKind::Control;
        while let Some(transmit) = self.endpoint.poll_transmit(now) {
            if transmit.kind() != kind {
                self.flush(now, kind);
                kind = transmit.kind();
            }
            if kind == TransmitKind::Reply {
                self.send_reply(now, &transmit);
                continue;
            }
            self.outgoing.stage(now, &transmit, &self.sockets, |datagram| {
                let copy = |payload: &[u8], place: &mut [u8]| place.copy_from_slice(payload);
                self.endpoint.emit(now, &transmit, datagram, copy);
            });
        }
        self.flush(now, kind);
        self.note(now);
        self.take_trace(now);
    }

    /// Sends a message to an origin that may have no path. If the kernel refuses it, its receiver asks again.
    fn send_reply(&mut self, now: Instant, transmit: &Transmit<'_>) {
        let (socket, remote, source) = self.endpoint.destination();
        let Some(socket) = self.sockets.get(socket) else { return };
        let mut send_batch = SendBatch::new(remote, source);
        if let Some(datagram) = send_batch.reserve(transmit.size()) {
            let copy = |payload: &[u8], place: &mut [u8]| place.copy_from_slice(payload);
            self.endpoint.emit(now, transmit, datagram, copy);
            send_batch.commit();
            socket.send(&mut send_batch);
        }
    }

    /// Sends what is staged, all of one kind, and has what the kernel took counted.
    fn flush(&mut self, now: Instant, kind: TransmitKind) {
        self.outgoing.flush(now, &self.sockets, |connection, path, taken, refused, egress_rate| {
            self.endpoint.on_sent(connection, path, kind, taken, egress_rate);
            if kind == TransmitKind::Control {
                *self.control_sent.entry((connection, path)).or_default() += taken;
            }
            if refused > 0 {
                self.endpoint.on_refused(connection, path, kind, refused);
            }
        });
    }

    /// When there is something to do although nothing arrives.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let keepalive = self.endpoint.poll_timeout().map(|next| next.at);
        keepalive.into_iter().chain(self.mtu_check_due()).chain(self.trace.due()).min()
    }
}

/// What the datagrams of inner packets are staged with.
struct Staging<'a> {
    now: Instant,
    endpoint: &'a mut mpt_proto::TransmitSide,
    outgoing: &'a mut Outgoing,
    sockets: &'a Sockets,
    /// Checksums stay partial whether or not the framing can say so.
    checksum_partial: bool,
}

impl Staging<'_> {
    /// Appends the datagram of an inner packet to the send batch of its path.
    #[inline(always)]
    fn stage(&mut self, transmit: &Transmit<'_>, packet: &Unfinished<'_>) {
        let Self { now, endpoint, outgoing, sockets, checksum_partial } = self;
        outgoing.stage(*now, transmit, sockets, |datagram| {
            endpoint.emit_either(*now, transmit, datagram, |_, place| {
                if *checksum_partial || transmit.may_be_partial() {
                    return packet.emit_partial(place);
                }
                packet.emit(place);
                false
            });
        });
    }

    /// An inner packet may have to wait, or no path carries it. Apart, so that what is decided on others stays in registers.
    #[inline(never)]
    fn take_offered(&mut self, packet: &Unfinished<'_>, dark: &mut Dark, device: &Device) {
        match self.endpoint.take_offered(packet.bytes()) {
            Some(Taken::Sent(transmit)) => self.stage(&transmit, packet),
            Some(Taken::Waits(waiting)) => {
                let partial = self.checksum_partial || waiting.may_be_partial();
                self.endpoint.keep(&waiting, |_, place| {
                    if partial {
                        return packet.emit_partial(place);
                    }
                    packet.emit(place);
                    false
                });
            }
            None => {
                let packet = packet.bytes();
                if let Some(id) = self.endpoint.without_path(packet) {
                    dark.answer(self.now, id, packet, |answer: &[u8]| device.write(answer));
                }
            }
        }
    }
}
