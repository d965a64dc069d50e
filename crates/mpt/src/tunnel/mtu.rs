//! The interface's MTU, which follows that of the paths.

use std::net::SocketAddr;
use std::time::Duration;

use mpt_io::netlink::Netlink;
use mpt_io::udp;
use mpt_proto::{ConnectionId, Event, Instant, PathId};

use super::Order;
use super::open::{ConnectionInfo, PathInfo};
use super::transmit::TransmitLoop;
use crate::config;

/// The least inner MTU: what every IPv6 link must carry (RFC 8200 section 5).
pub(super) const MIN_MTU: u32 = 1280;

/// How often a path's MTU is looked up while it refuses datagrams for their size, or is smaller than
/// it was: nobody tells when it grows again.
const MTU_INTERVAL: Duration = Duration::from_secs(1);

/// The interface's MTU and when it may change.
pub(super) struct Mtu {
    /// What is in force, in bytes.
    pub(super) bytes: u32,
    /// The largest that the buffers allow.
    pub(super) max: u32,
    pub(super) next_check: Instant,
}

impl TransmitLoop {
    /// When to look at the MTU of paths again, if of any.
    pub(super) fn mtu_check_due(&self) -> Option<Instant> {
        let paths = || self.connections.iter().flat_map(|connection| &connection.paths);
        let due = paths().any(PathInfo::is_limited) || self.outgoing.any_too_big();
        due.then_some(self.mtu.next_check)
    }

    /// Follows the kernel's idea of the MTU of paths that refuse datagrams or have shrunk, and what was
    /// found out about those that swallow them. What the receive side has to do then goes to `order`.
    pub(super) fn check_mtu(&mut self, now: Instant, mut order: impl FnMut(Order)) {
        while let Some(event) = self.endpoint.poll_event() {
            if self.is_news(now, &event) {
                self.mtu.next_check = now;
                order(Order::Tell(event));
            }
        }
        if self.mtu_check_due().is_none_or(|due| now < due) {
            return;
        }
        self.mtu.next_check = now + MTU_INTERVAL;
        for (connection, info) in (0..).map(ConnectionId).zip(&mut self.connections) {
            for (path, path_info) in (0..).map(PathId).zip(&mut info.paths) {
                let refused = self.outgoing.take_too_big(connection, path);
                if !refused && !path_info.is_limited() {
                    continue;
                }
                let kernel = path_mtu(&path_info.settings, path_info.remote, &info.settings);
                path_info.mtu = path_info.narrowed.mtu(now, kernel);
                path_info.best_mtu = path_info.best_mtu.max(path_info.mtu);
                let fits = path_info.mtu >= MIN_MTU;
                order(Order::SetPathFits { connection, path, fits });
            }
        }
        let mtu = inner_mtu(&self.settings, &self.connections).min(self.mtu.max);
        if mtu == self.mtu.bytes {
            return;
        }
        let set = Netlink::open().and_then(|mut link| link.set_mtu(self.device.index(), mtu));
        match set {
            Ok(()) => {
                tracing::info!(tunnel = self.settings.name, mtu, "the MTU changed");
                self.mtu.bytes = mtu;
            }
            Err(error) => tracing::warn!(tunnel = self.settings.name, mtu, "{error}"),
        }
    }

    /// Takes in what was found out about a path. With an MTU that does not follow it is found out again
    /// and again; then it is no news.
    fn is_news(&mut self, now: Instant, event: &Event) -> bool {
        let &Event::Narrow { connection, path, carries } = event else { return true };
        let header = self.endpoint.connection(connection).header_len();
        let info = &mut self.connections[usize::from(connection.0)].paths[usize::from(path.0)];
        info.narrowed.on_found(now, carries.saturating_sub(header) as u32)
    }
}

/// The largest inner packet that fits the kernel's idea of a path's MTU.
pub(super) fn path_mtu(
    path: &config::Path,
    remote: SocketAddr,
    connection: &config::Connection,
) -> u32 {
    /// Taken where there is no route yet: what nearly every link carries.
    const ETHERNET: u32 = 1500;
    const UDP_HEADER: usize = 8;
    let outer = udp::route_mtu(path.local, path.interface.as_deref(), remote);
    let outer = outer.unwrap_or_else(|error| {
        tracing::warn!(path = path.name, %remote, "no route MTU, taking {ETHERNET}: {error}");
        ETHERNET
    });
    let ip_header = if remote.is_ipv4() { 20 } else { 40 };
    let (key, checksum) = (connection.key.is_some(), connection.checksum);
    let gre = mpt_proto::wire::gre::options_len(checksum, key, connection.sequence);
    outer.saturating_sub((ip_header + UDP_HEADER + gre) as u32)
}

/// The interface's MTU: the configured one, or that of the smallest usable path.
pub(super) fn inner_mtu(settings: &config::Tunnel, connections: &[ConnectionInfo]) -> u32 {
    match settings.mtu {
        config::Mtu::Fixed(mtu) => u32::from(mtu),
        config::Mtu::Auto => {
            let paths = connections.iter().flat_map(|connection| &connection.paths);
            let usable = paths.map(|path| path.mtu).filter(|&mtu| mtu >= MIN_MTU);
            usable.min().unwrap_or(MIN_MTU).min(u32::from(config::Mtu::MAX))
        }
    }
}
