//! One path: where it leads, by which socket, and whether this host has what it needs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use mpt_proto::{PathId, SocketId, Surcharge};

use super::connection::{Connection, Path};
use super::numbers::Numbers;
use super::remotes::{no_address, remotes};
use super::socket::{Key, Opened};
use crate::config::{self, Remote};
use crate::netmon::{NetMonitor, Way};
use crate::tunnel::Handle;
use crate::tunnel::mtu::{Kernel, mtu_within};
use crate::tunnel::op::{Place, TunnelOp};
use crate::tunnel::reported::KnownMtu;

/// How soon what could not be had is tried again, and the next address of a name that stands for several: the longest
/// delay from one attempt to the next of RFC 8305, section 5, because here the next one ends the one before.
pub(super) const AGAIN: Duration = Duration::from_secs(2);

/// A path's MTU if no route has one: that of nearly every link.
const ETHERNET: u32 = 1500;

/// What is needed to bring a path in line.
pub(super) struct Setter<'a> {
    pub(super) sockets: &'a mut Opened,
    pub(super) handle: &'a Handle,
    pub(super) offloads: config::Offloads,
    pub(super) netmon: &'a mut NetMonitor,
    pub(super) now: Instant,
    /// When to try again what could not be had.
    pub(super) again: &'a mut Option<Instant>,
}

/// Where a path leads, as far as that is known.
struct Target {
    remote: Option<IpAddr>,
    socket: Option<SocketId>,
    way: Option<Way>,
    absence: Option<String>,
}

impl Setter<'_> {
    /// Makes a path what its settings and the host have it be, or a new one.
    ///
    /// # Errors
    ///
    /// If its socket cannot be opened. It is there all the same, and shown as absent.
    pub(super) fn reconcile(
        mut self,
        running: &mut Connection,
        connection: &config::Connection,
        settings: &config::Path,
    ) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        let existing = running.paths.get(&settings.name);
        let target =
            self.target(existing, connection, settings).unwrap_or_else(|(target, error)| {
                let path = format!("connection {}: path {}", connection.name, settings.name);
                outcome = Err(error.context(path));
                target
            });
        let doubtful = settings.remote.name().is_some() && existing.is_none_or(|path| path.silent);
        if target.absence.is_some() || doubtful {
            let soon = self.now + AGAIN;
            *self.again = Some(self.again.map_or(soon, |at| at.min(soon)));
        }
        let Connection { id, paths, numbers, .. } = running;
        match paths.get_mut(&settings.name) {
            Some(path) => self.change(*id, path, connection, settings, target),
            None => {
                let path = self.add(*id, numbers, connection, settings, target)?;
                paths.insert(settings.name.clone(), path);
            }
        }
        outcome
    }

    /// Where the path leads. What it has stays as long as there is nothing better.
    fn target(
        &mut self,
        existing: Option<&Path>,
        connection: &config::Connection,
        settings: &config::Path,
    ) -> Result<Target, (Target, anyhow::Error)> {
        let before = Target {
            remote: existing.and_then(|path| path.remote).or(settings.remote.address()),
            socket: existing.and_then(|path| path.socket),
            way: None,
            absence: None,
        };
        let way = self.remotes(existing, settings).and_then(|remotes| {
            let mut missing = None;
            for remote in remotes {
                match self.netmon.way(settings, remote) {
                    Ok(way) => return Ok((remote, way)),
                    Err(absence) => missing = missing.or(Some(absence)),
                }
            }
            Err(missing.unwrap_or_else(|| no_address(settings)))
        });
        let (remote, way) = match way {
            Ok(way) => way,
            Err(absence) => return Ok(Target { absence: Some(absence), ..before }),
        };
        let interface = settings.interface.clone().zip(way.bound);
        let key = Key::new(settings.local, remote, connection.local_port, interface);
        let has = before.socket.filter(|id| self.sockets.key(*id) == Some(&key));
        let handle = self.handle;
        let mut step = |step| handle.step(step);
        let socket = match has {
            Some(socket) => Ok(socket),
            None => self.sockets.take(self.now, &key, self.offloads, &mut step),
        };
        match socket {
            Ok(socket) => Ok(Target {
                remote: Some(remote),
                socket: Some(socket),
                way: Some(way),
                absence: None,
            }),
            Err(error) => {
                let absence = Some(format!("{error:#}"));
                Err((Target { absence, remote: Some(remote), ..before }, error))
            }
        }
    }

    /// The possible addresses of the peer, best first; or why they are unknown.
    fn remotes(
        &mut self,
        existing: Option<&Path>,
        settings: &config::Path,
    ) -> Result<Vec<IpAddr>, String> {
        let name = match &settings.remote {
            Remote::Address(address) => return Ok(vec![*address]),
            Remote::Name(name) => name,
        };
        if existing.is_some_and(|path| path.silent || path.remote.is_none()) {
            self.netmon.names.doubt(name, self.now);
        }
        let current = existing.and_then(|path| path.remote);
        let doubted = existing.is_some_and(|path| path.doubted);
        remotes(settings, self.netmon, self.now, current, doubted)
    }

    fn add(
        &mut self,
        connection: mpt_proto::ConnectionId,
        numbers: &mut Numbers,
        of: &config::Connection,
        settings: &config::Path,
        target: Target,
    ) -> anyhow::Result<Path> {
        let number = numbers.take(self.now).with_context(|| {
            format!(
                "connection {}: path {} is not added: a connection has at most 64 paths, and \
                 recently removed ones still count; try again",
                of.name, settings.name
            )
        })?;
        let id = PathId(number as u8);
        let place = place(of, settings, &target);
        self.handle.step(TunnelOp::AddPath { connection, path: id, place });
        let Target { remote, socket, way, absence } = target;
        let settings = settings.clone();
        let refuses = of.refuses(&settings);
        Ok(Path {
            id,
            settings,
            refuses,
            socket,
            remote,
            way,
            absence,
            silent: true,
            doubted: false,
            surcharge: Surcharge::default(),
        })
    }

    fn change(
        &mut self,
        connection: mpt_proto::ConnectionId,
        path: &mut Path,
        of: &config::Connection,
        settings: &config::Path,
        target: Target,
    ) {
        let moved = (path.socket, path.remote) != (target.socket, target.remote);
        let refuses = of.refuses(settings);
        if moved || path.settings != *settings || path.refuses != refuses {
            let place = place(of, settings, &target);
            self.handle.step(TunnelOp::SetPath { connection, path: path.id, place });
            if path.socket != target.socket
                && let Some(socket) = path.socket
            {
                self.sockets.give_back(self.now, socket);
            }
            path.settings.clone_from(settings);
            path.refuses = refuses;
            (path.socket, path.remote) = (target.socket, target.remote);
            path.doubted = false;
        }
        let told = path.absence != target.absence;
        // That a path comes to lack something, or has it again, is an event of the tunnel. That it lacks something else
        // is none.
        if told
            && path.absence.is_some()
            && let Some(absence) = &target.absence
        {
            tell(of, settings, absence);
        }
        // Whatever is said to be there is tried at once, also if it was there before.
        if told || moved || path.way != target.way {
            let absence = target.absence.clone();
            let well = self.netmon.last_well();
            self.handle.step(TunnelOp::SetAbsence { connection, path: path.id, absence, well });
        }
        (path.way, path.absence) = (target.way, target.absence);
    }
}

fn tell(connection: &config::Connection, path: &config::Path, absence: &str) {
    tracing::warn!(
        connection = connection.name,
        path = path.name,
        "{absence}; it is used when that changes"
    );
}

fn place(connection: &config::Connection, settings: &config::Path, target: &Target) -> Place {
    let remote = target.remote.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
    let remote = SocketAddr::new(remote, connection.remote_port);
    let look_up = || Kernel::default().path_mtu(settings, remote, connection);
    let known = target.absence.is_none().then(look_up).flatten();
    let unknown = || KnownMtu::allowed(mtu_within(ETHERNET, remote, connection));
    Place {
        settings: settings.clone(),
        refuses: connection.refuses(settings),
        socket: target.socket,
        remote,
        mtu: known.unwrap_or_else(unknown),
        absence: target.absence.clone(),
    }
}
