//! The interface's MTU, which follows that of the paths.

use std::net::SocketAddr;
use std::time::Duration;

use mpt_io::netlink::Netlink;
use mpt_io::udp;
use mpt_proto::{Change, Event, Instant};

use super::interface_mtu::MIN_MTU;
use super::op::ReceiveCommand;
use super::table::Table;
use super::transmit::TransmitLoop;
use crate::config::{self, PeerKind};
use crate::mark::MARK;

/// The longest datagram that an original MPT takes, in bytes; the rest of a longer one is lost.
const ORIGINAL_DATAGRAM: usize = 1600;

/// How often a path's MTU is looked up while it refuses datagrams for their size, or is smaller than
/// it was: nobody tells when it grows again.
const MTU_INTERVAL: Duration = Duration::from_secs(1);

impl TransmitLoop {
    /// When to look at the MTU of paths again, if of any.
    pub(super) fn mtu_check_due(&self) -> Option<Instant> {
        let due = self.mtu.limited || self.outgoing.any_too_big();
        let now = self.mtu.all || self.mtu.changed;
        if now { Some(Instant::ZERO) } else { due.then_some(self.mtu.next_check) }
    }

    /// Follows the kernel's idea of the MTU of paths that refuse datagrams or have shrunk, and what was
    /// found out about those that swallow them. What the receive side has to do then goes to `order`.
    pub(super) fn check_mtu(&mut self, now: Instant, mut to_rx: impl FnMut(ReceiveCommand)) {
        while let Some(event) = self.endpoint.poll_event() {
            if self.is_news(now, &event) {
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
        let all = std::mem::take(&mut self.mtu.all);
        self.mtu.limited = false;
        self.outgoing.all_asked();
        for (connection, path, info, settings) in self.table.paths_mut() {
            let refused = self.outgoing.take_too_big(connection, path);
            if all || refused || info.is_limited() {
                let kernel = path_mtu(&info.settings, info.remote, settings);
                let mtu = info.narrowed.mtu(now, kernel.unwrap_or(info.mtu));
                if mtu != info.mtu {
                    info.mtu = mtu;
                    info.best_mtu = info.best_mtu.max(mtu);
                    let change = Change::SetFits { connection, path, fits: mtu >= MIN_MTU };
                    self.endpoint.change(now, &change);
                    to_rx(ReceiveCommand::Change { change, name: None });
                }
            }
            self.mtu.limited |= info.is_limited();
        }
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

    /// Takes in what was found out about a path. With an MTU that does not follow it is found out again
    /// and again; then it is no updates.
    fn is_news(&mut self, now: Instant, event: &Event) -> bool {
        let &Event::Narrow { connection, path, carries } = event else { return true };
        // It can have gone since.
        let Some(half) = self.endpoint.find(connection) else { return false };
        let header = half.header_len();
        let Some(info) = self.table.path_mut(connection, path) else { return false };
        info.narrowed.on_found(now, carries.saturating_sub(header) as u32)
    }
}

/// The largest inner packet that fits the kernel's idea of a path's MTU, if there is a route.
pub(super) fn path_mtu(
    path: &config::Path,
    remote: SocketAddr,
    connection: &config::Connection,
) -> Option<u32> {
    let outer = udp::route_mtu(path.local, path.interface.as_deref(), Some(MARK), remote).ok()?;
    Some(mtu_within(outer, remote, connection))
}

/// The largest inner packet that fits an outer packet of `outer` bytes.
pub(super) fn mtu_within(outer: u32, remote: SocketAddr, connection: &config::Connection) -> u32 {
    const UDP_HEADER: usize = 8;
    let ip_header = if remote.is_ipv4() { 20 } else { 40 };
    let config::Policies { key, checksum, sequence, .. } = connection.policies;
    let gre = mpt_proto::wire::gre::options_len(checksum, key.is_some(), sequence);
    let fits = outer.saturating_sub((ip_header + UDP_HEADER + gre) as u32);
    match connection.peer_kind {
        PeerKind::Original => fits.min((ORIGINAL_DATAGRAM - gre) as u32),
        PeerKind::Mpt | PeerKind::Gre => fits,
    }
}

/// What the smallest usable path carries, if there is any.
fn usable_mtu(table: &Table) -> Option<u32> {
    let present = table.paths().filter(|(_, _, path)| path.absence.is_none());
    present.map(|(_, _, path)| path.mtu).filter(|&mtu| mtu >= MIN_MTU).min()
}
