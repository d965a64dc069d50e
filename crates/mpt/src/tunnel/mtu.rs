//! The interface's MTU, which follows that of the paths.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mpt_io::interface;
use mpt_io::netlink::{Error, Leaving, Netlink};
use mpt_proto::wire::extended;
use mpt_proto::{ConnectionId, Event, Instant, PathId};

use super::interface_mtu::MIN_MTU;
use super::op::ReceiveCommand;
use super::reported::KnownMtu;
use super::table::Table;
use super::transmit::TransmitLoop;
use crate::config::{self, PeerKind};
use crate::mark::MARK;

/// The longest datagram that an original MPT takes, in bytes; the rest of a longer one is lost.
const ORIGINAL_DATAGRAM: usize = 1600;

/// The longest IP packet, in bytes.
const MAX_OUTER: u32 = 65_535;

/// How often a path's MTU is looked up while it refuses datagrams for their size, or is smaller
/// than before: there is no notification of an increase.
const MTU_INTERVAL: Duration = Duration::from_secs(1);

/// So many other paths are looked up each time while the tunnel carries packets, in turn: nobody tells what
/// ICMP messages told the kernel.
const LOOKED_UP: usize = 32;

impl TransmitLoop {
    /// When to look at the MTU of paths again, if of any.
    pub(super) fn mtu_check_due(&self) -> Option<Instant> {
        let carries = self.read.packets != self.mtu.read;
        let due = self.mtu.limited || self.outgoing.any_too_big() || carries;
        let now = self.mtu.all || self.mtu.changed;
        if now { Some(Instant::ZERO) } else { due.then_some(self.mtu.next_check) }
    }

    /// Follows the kernel's idea of the MTU of paths that refuse datagrams or have shrunk, and what was
    /// found out about those that swallow them. What the receive side has to do then goes to `to_rx`.
    pub(super) fn check_mtu(&mut self, now: Instant, mut to_rx: impl FnMut(ReceiveCommand)) {
        while let Some(event) = self.endpoint.poll_event() {
            if let &Event::Proven { connection, path, carries, narrower } = &event {
                self.on_proven(now, connection, path, carries, &mut to_rx);
                if narrower {
                    to_rx(ReceiveCommand::Tell { event });
                }
            } else if self.is_new(now, &event) {
                self.mtu.next_check = now;
                self.mtu.limited = true;
                to_rx(ReceiveCommand::Tell { event });
            }
        }
        if self.mtu_check_due().is_none_or(|due| now < due) {
            return;
        }
        if std::mem::take(&mut self.mtu.changed) {
            self.mtu.limited = self.table.paths().any(|(_, _, path)| path.is_limited());
            self.set_mtu(&mut to_rx);
        }
        if self.mtu_check_due().is_none_or(|due| now < due) {
            return;
        }
        self.mtu.next_check = now + MTU_INTERVAL;
        self.mtu.read = self.read.packets;
        let all = std::mem::take(&mut self.mtu.all);
        self.mtu.limited = false;
        self.outgoing.all_asked();
        let paths = self.table.paths().count();
        let turn = std::mem::take(&mut self.mtu.turn);
        self.mtu.turn = if turn + LOOKED_UP < paths { turn + LOOKED_UP } else { 0 };
        let mut kernel = Kernel::default();
        for (place, (connection, path, info, settings)) in self.table.paths_mut().enumerate() {
            let refused = self.outgoing.take_too_big(connection, path);
            let its_turn = (turn..turn + LOOKED_UP).contains(&place);
            if (all || refused || its_turn || info.is_limited())
                && let Some(known) = kernel.path_mtu(&info.settings, info.remote, settings)
                // It can have gone since.
                && let Some(half) = self.endpoint.find(connection)
            {
                let header = half.header_len();
                let in_session = half.has_session();
                (info.allowed, info.at_first) = (known.allowed, known.at_first());
                let allowed = header + known.allowed as usize;
                self.endpoint.set_local_len(now, connection, path, allowed);
                let carried = self.endpoint.take_carried(connection, path);
                let carried = carried.map(|len| len.saturating_sub(header) as u32);
                let keepalive = info.settings.keepalive;
                let mtu = match in_session {
                    true => info.in_session(),
                    false => info.reported.mtu(now, known, carried, keepalive),
                };
                let mtu = info.narrowed.mtu(now, mtu, carried);
                if let Some(change) = info.set_mtu(connection, path, mtu) {
                    self.endpoint.change(now, &change);
                    to_rx(ReceiveCommand::Change { change, name: None });
                }
                // In a session the core probes paths that can be used.
                let limited = match in_session {
                    true => info.narrowed.is_set(),
                    false => mtu < known.allowed || info.reported.is_open(),
                };
                let unusable = mtu < MIN_MTU;
                if info.probing.is_due(now, limited, unusable) {
                    let probe = if unusable { MIN_MTU.min(known.allowed) } else { known.allowed };
                    self.endpoint.send_probe(connection, path, header + probe as usize);
                }
            }
            self.mtu.limited |= info.is_limited();
        }
        self.send(now);
        self.set_mtu(&mut to_rx);
    }

    /// Gives the interface the MTU that follows from the paths, and has TCP announce no more.
    fn set_mtu(&mut self, to_rx: &mut impl FnMut(ReceiveCommand)) {
        let usable = usable_mtu(&self.table);
        let mtu = match self.settings.mtu {
            config::Mtu::Fixed(mtu) => u32::from(mtu),
            // Without a usable path there is no reason for another than there is.
            config::Mtu::Auto => usable.unwrap_or(self.mtu.bytes.max(MIN_MTU)),
        };
        let mtu = mtu.min(self.mtu.max).min(u32::from(config::Mtu::MAX));
        self.mtu.limit = usable.map_or(mtu, |usable| usable.min(mtu));
        let clamp = self.settings.clamp_mss.then_some(self.mtu.limit);
        if self.clamp.set(clamp) {
            to_rx(ReceiveCommand::ClampMss { mtu: clamp });
        }
        if mtu != self.mtu.bytes {
            self.set_interface_mtu(mtu);
        }
        let told = u16::try_from(self.mtu.bytes).unwrap_or(u16::MAX);
        self.endpoint.set_tunnel_mtu(told, matches!(self.settings.mtu, config::Mtu::Fixed(_)));
    }

    pub(super) fn set_interface_mtu(&mut self, mtu: u32) {
        let set = Netlink::open().and_then(|mut link| link.set_mtu(self.device.index(), mtu));
        match set {
            Ok(()) => {
                tracing::info!(tunnel = self.settings.name, mtu, "the MTU changed");
                self.mtu.bytes = mtu;
            }
            Err(error) => tracing::warn!(
                tunnel = self.settings.name,
                "{error}; the MTU stays {} instead of {mtu} until a path changes",
                self.mtu.bytes
            ),
        }
    }

    /// In a session, probes have found out what a path carries.
    fn on_proven(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        path: PathId,
        carries: usize,
        to_rx: &mut impl FnMut(ReceiveCommand),
    ) {
        // It can have gone since.
        let Some(half) = self.endpoint.find(connection) else { return };
        let inner = carries.saturating_sub(half.header_len()) as u32;
        let Some(info) = self.table.path_mut(connection, path) else { return };
        info.proven = Some(inner);
        let mtu = info.narrowed.mtu(now, info.in_session(), None);
        if let Some(change) = info.set_mtu(connection, path, mtu) {
            self.endpoint.change(now, &change);
            to_rx(ReceiveCommand::Change { change, name: None });
        }
        self.mtu.changed = true;
    }

    /// Tells the core how long datagrams a path may have by its interface and route.
    pub(super) fn set_allowed(
        &mut self,
        now: Instant,
        connection: ConnectionId,
        path: PathId,
        allowed: u32,
    ) {
        if let Some(half) = self.endpoint.find(connection) {
            let len = half.header_len() + allowed as usize;
            self.endpoint.set_local_len(now, connection, path, len);
        }
    }

    /// Takes in what was found out about a path. With an MTU that does not follow it is found out again
    /// and again; then it is nothing new.
    fn is_new(&mut self, now: Instant, event: &Event) -> bool {
        let &Event::Narrow { connection, path, carries } = event else { return true };
        // It can have gone since.
        let Some(half) = self.endpoint.find(connection) else { return false };
        let header = half.header_len();
        let Some(info) = self.table.path_mut(connection, path) else { return false };
        info.narrowed.on_found(now, carries.saturating_sub(header) as u32)
    }
}

/// What the kernel knows of MTUs.
#[derive(Default)]
pub(super) struct Kernel {
    netlink: Option<Netlink>,
    /// The interfaces that have been looked up, and how long packets they take.
    interfaces: Vec<(u32, u32)>,
}

impl Kernel {
    /// The largest inner packet that fits a path, if there is a route.
    pub(super) fn path_mtu(
        &mut self,
        path: &config::Path,
        remote: SocketAddr,
        connection: &config::Connection,
    ) -> Option<KnownMtu> {
        let (allowed, learned) = self.outer_mtu(path, remote.ip()).ok()??;
        let inner = |outer| mtu_within(outer, remote, connection);
        let from_below = matches!(
            connection.policies.framing,
            config::Framing::Extended | config::Framing::Sealed
        );
        Some(KnownMtu { allowed: inner(allowed), reported: learned.map(inner), from_below })
    }

    /// How long an outer packet may be by interface and route, and by what ICMP messages told.
    fn outer_mtu(
        &mut self,
        path: &config::Path,
        remote: IpAddr,
    ) -> Result<Option<(u32, Option<u32>)>, Error> {
        let mut netlink = match self.netlink.take() {
            Some(netlink) => netlink,
            None => Netlink::open()?,
        };
        let Some(index) = path.interface.as_deref().map(interface::index).transpose().ok() else {
            return Ok(None);
        };
        let leaving = Leaving { mark: Some(MARK), index, source: path.local };
        let route = netlink.mtu_of(remote, leaving)?;
        let known = self.interfaces.iter().find(|(index, _)| *index == route.index);
        let interface = match known {
            Some(&(_, mtu)) => mtu,
            None => match netlink.link_of(route.index)? {
                Some(link) => link.mtu,
                None => return Ok(None),
            },
        };
        if known.is_none() {
            self.interfaces.push((route.index, interface));
        }
        self.netlink = Some(netlink);
        let allowed = route.route.unwrap_or(interface).min(interface).min(MAX_OUTER);
        Ok(Some((allowed, route.learned)))
    }
}

/// The largest inner packet that fits an outer packet of `outer` bytes.
pub(super) fn mtu_within(outer: u32, remote: SocketAddr, connection: &config::Connection) -> u32 {
    const UDP_HEADER: usize = 8;
    let ip_header = if remote.is_ipv4() { 20 } else { 40 };
    let config::Policies { framing, key, checksum, sequence, .. } = connection.policies;
    let plain = mpt_proto::wire::gre::options_len(checksum, key.is_some(), sequence);
    // Where the framing is negotiated, packets have to fit in both.
    let gre = match framing {
        config::Framing::Plain => plain,
        config::Framing::Auto => plain.max(extended::DATA_LEN),
        config::Framing::Extended => extended::DATA_LEN,
        config::Framing::Sealed => extended::DATA_LEN + extended::sealed::TAG_LEN,
    };
    let fits = outer.saturating_sub((ip_header + UDP_HEADER + gre) as u32);
    match connection.peer_kind {
        PeerKind::Original => fits.min((ORIGINAL_DATAGRAM - gre) as u32),
        PeerKind::Mpt | PeerKind::Gre => fits,
    }
}

/// The MTU of the smallest usable path, if there is any.
fn usable_mtu(table: &Table) -> Option<u32> {
    let present = table.paths().filter(|(_, _, path)| path.absence.is_none());
    present.map(|(_, _, path)| path.mtu).filter(|&mtu| mtu >= MIN_MTU).min()
}
