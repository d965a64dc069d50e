//! The paths of a connection that its peer chooses: made when it asks, moved when it moves, forgotten when it
//! is silent. Each is called after where it leads: `203.0.113.7:4754`.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use mpt_proto::{ConnectionId, MAX_PATHS, PathId, SocketId};

use super::numbers::Numbers;
use super::socket::Opened;
use crate::config;
use crate::netmon::NetMonitor;
use crate::tunnel::Handle;
use crate::tunnel::mtu::{Kernel, mtu_within};
use crate::tunnel::op::{Place, TunnelOp};
use crate::tunnel::reported::KnownMtu;

/// How long a path may stay of which nothing was ever heard but the request, which may be forged; or its dead
/// time, if that is more.
const TRIAL: Duration = Duration::from_secs(10);

/// How often, in the time after which a path is forgotten, it is looked whether it has been heard.
const LOOKS: u32 = 8;

/// The longest time between two looks.
const LONGEST: Duration = Duration::from_millis(2500);

/// So long after a warning no other is given of the paths of that connection that are refused.
const QUIET: Duration = Duration::from_secs(60);

/// A path's MTU if no route has one.
const ETHERNET: u32 = 1500;

/// What changes are made with.
pub(super) struct Means<'a> {
    pub(super) handle: &'a Handle,
    pub(super) sockets: &'a mut Opened,
    pub(super) now: Instant,
}

/// How long ago paths were heard; `None` = never.
pub(super) type Heard = BTreeMap<(ConnectionId, PathId), Option<Duration>>;

/// The paths of a connection.
pub(super) struct Arrived {
    id: ConnectionId,
    /// The silence after which they are forgotten.
    pub(super) forget: Duration,
    numbers: Numbers,
    paths: BTreeMap<SocketAddr, Path>,
    /// When it may be warned of a path that is refused.
    quiet_until: Option<Instant>,
}

/// A connection that learns its paths.
pub(super) struct Learned {
    pub(super) settings: config::Connection,
    /// Where its peer is received: at most one for each IP version.
    pub(super) sockets: Vec<SocketId>,
    pub(super) paths: Arrived,
}

/// A path that the peer chose.
struct Path {
    id: PathId,
    settings: config::Path,
    socket: SocketId,
    since: Instant,
    /// What this host lacks for it, and since when.
    absence: Option<(String, Instant)>,
}

impl Arrived {
    /// None so far.
    pub(super) fn new(id: ConnectionId, forget: Duration) -> Self {
        let numbers = Numbers::below(MAX_PATHS as u16);
        Self { id, forget, numbers, paths: BTreeMap::new(), quiet_until: None }
    }

    /// The connection.
    pub(super) fn id(&self) -> ConnectionId {
        self.id
    }

    pub(super) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Their names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.paths.values().map(|path| path.settings.name.as_str())
    }

    /// Whether there is one that leads to `remote` by this socket.
    pub(super) fn has(&self, remote: SocketAddr, socket: SocketId) -> bool {
        self.paths.get(&remote).is_some_and(|path| path.socket == socket)
    }

    /// Whether it may be warned of a path that is refused: the peer, or who forges its datagrams, asks again and again.
    pub(super) fn may_warn(&mut self, now: Instant) -> bool {
        let may = self.quiet_until.is_none_or(|until| until <= now);
        if may {
            self.quiet_until = Some(now + QUIET);
        }
        may
    }

    /// Adds a path of `connection` with these settings. Returns its name, unless all numbers are in use.
    pub(super) fn add(
        &mut self,
        connection: &config::Connection,
        remote: SocketAddr,
        settings: config::Path,
        socket: SocketId,
        means: &mut Means<'_>,
    ) -> Option<String> {
        let number = self.numbers.take(means.now)?;
        let name = settings.name.clone();
        let id = PathId(number as u8);
        let path = Path { id, settings, socket, since: means.now, absence: None };
        means.sockets.share(socket);
        let place = path.place(connection, remote);
        means.handle.step(TunnelOp::AddPath { connection: self.id, path: id, place });
        self.paths.insert(remote, path);
        Some(name)
    }

    /// The path with this number leads from `local` to `remote` by this socket from now on. Returns its names
    /// before and after, if there is such a path.
    pub(super) fn relocate(
        &mut self,
        connection: &config::Connection,
        id: PathId,
        remote: SocketAddr,
        local: Option<IpAddr>,
        socket: SocketId,
        means: &mut Means<'_>,
    ) -> Option<(String, String)> {
        let (&before, _) = self.paths.iter().find(|(_, path)| path.id == id)?;
        let mut path = self.paths.remove(&before)?;
        // Whatever led there is taken over.
        self.remove(remote, means);
        means.sockets.share(socket);
        means.sockets.give_back(means.now, path.socket);
        (path.socket, path.since, path.absence) = (socket, means.now, None);
        path.settings.local = local;
        path.settings.remote = config::Remote::Address(remote.ip());
        let name = std::mem::replace(&mut path.settings.name, remote.to_string());
        let place = path.place(connection, remote);
        means.handle.step(TunnelOp::SetPath { connection: self.id, path: id, place });
        self.paths.insert(remote, path);
        Some((name, remote.to_string()))
    }

    /// Removes the path that leads to `remote`, if there is one.
    pub(super) fn remove(&mut self, remote: SocketAddr, means: &mut Means<'_>) {
        let Some(path) = self.paths.remove(&remote) else { return };
        means.handle.step(TunnelOp::RemovePath { connection: self.id, path: path.id });
        means.sockets.give_back(means.now, path.socket);
        self.numbers.give_back(means.now, u16::from(path.id.0));
    }

    /// Removes all paths.
    pub(super) fn clear(&mut self, means: &mut Means<'_>) {
        let all: Vec<SocketAddr> = self.paths.keys().copied().collect();
        all.into_iter().for_each(|remote| self.remove(remote, means));
    }

    /// Has the paths follow changed times of their connection.
    pub(super) fn follow(&mut self, connection: &config::Connection, handle: &Handle) {
        for (remote, path) in &mut self.paths {
            let Some(new) = connection.learned_path(*remote, None) else { continue };
            let times = |of: &config::Path| (of.keepalive, of.dead_time, of.failover);
            if times(&path.settings) != times(&new) {
                let settings = &mut path.settings;
                (settings.keepalive, settings.dead_time, settings.failover) = times(&new);
                let place = path.place(connection, *remote);
                handle.step(TunnelOp::SetPath { connection: self.id, path: path.id, place });
            }
        }
    }

    /// Removes the paths that were not heard for long.
    pub(super) fn forget_silent(&mut self, name: &str, heard: &Heard, means: &mut Means<'_>) {
        let is_silent = |path: &Path| {
            let ago = heard.get(&(self.id, path.id)).copied().flatten();
            path.is_over(ago, self.forget, means.now)
        };
        let paths = self.paths.iter().filter(|(_, path)| is_silent(path));
        let gone: Vec<SocketAddr> = paths.map(|(remote, _)| *remote).collect();
        for remote in gone {
            let path = self.paths.get(&remote).map(|path| path.settings.name.clone());
            tracing::info!(connection = name, path, "forgotten: silent");
            self.remove(remote, means);
        }
    }

    /// Looks at what the paths need of this host.
    pub(super) fn look_at_host(&mut self, netmon: &mut NetMonitor, handle: &Handle, now: Instant) {
        let connection = self.id;
        for (remote, path) in &mut self.paths {
            let absence = netmon.way(&path.settings, remote.ip()).err();
            if absence.as_ref() == path.absence.as_ref().map(|(absence, _)| absence) {
                continue;
            }
            let since = path.absence.take().map_or(now, |(_, since)| since);
            path.absence = absence.clone().map(|absence| (absence, since));
            let well = netmon.last_well();
            handle.step(TunnelOp::SetAbsence { connection, path: path.id, absence, well });
        }
    }

    /// Changes the settings of a path. Returns whether there is one of that name.
    pub(super) fn change(
        &mut self,
        connection: &config::Connection,
        name: &str,
        change: &dyn Fn(&mut config::Path),
        handle: &Handle,
    ) -> bool {
        let mut paths = self.paths.iter_mut();
        let Some((remote, path)) = paths.find(|(_, path)| path.settings.name == name) else {
            return false;
        };
        change(&mut path.settings);
        let place = path.place(connection, *remote);
        handle.step(TunnelOp::SetPath { connection: self.id, path: path.id, place });
        true
    }

    /// The connection goes, and its paths with it.
    pub(super) fn end(self, sockets: &mut Opened, now: Instant) {
        self.paths.into_values().for_each(|path| sockets.give_back(now, path.socket));
    }
}

impl Path {
    /// Whether it is to be forgotten, if the peer was last heard so long `ago`.
    fn is_over(&self, ago: Option<Duration>, forget: Duration, now: Instant) -> bool {
        let since = self.absence.as_ref().map_or(self.since, |(_, since)| *since);
        let silent = now.saturating_duration_since(since);
        match ago {
            _ if self.absence.is_some() => silent >= forget,
            Some(ago) => ago.min(silent) >= forget,
            None => silent >= TRIAL.max(self.settings.dead_time).min(forget),
        }
    }

    fn place(&self, connection: &config::Connection, remote: SocketAddr) -> Place {
        let known = Kernel::default().path_mtu(&self.settings, remote, connection);
        let unknown = || KnownMtu::allowed(mtu_within(ETHERNET, remote, connection));
        Place {
            settings: self.settings.clone(),
            refuses: connection.refuses(&self.settings),
            socket: Some(self.socket),
            remote,
            mtu: known.unwrap_or_else(unknown),
            absence: self.absence.as_ref().map(|(absence, _)| absence.clone()),
        }
    }
}

/// When to look for what is silent, if the shortest time after which anything is forgotten is `forget`.
pub(super) fn next_look(now: Instant, forget: Duration) -> Instant {
    now + (forget / LOOKS).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Receiver;

    use super::*;
    use crate::tunnel::command::Command;
    use crate::tunnel::reconciler::socket::Key;

    #[test]
    fn a_path_is_over_when_it_was_silent_or_absent_for_long() {
        let seconds = Duration::from_secs;
        let (start, forget) = (Instant::now(), seconds(60));
        let mut path = path(start);
        let over = |path: &Path, ago: Option<u64>, at: u64| {
            path.is_over(ago.map(seconds), forget, start + seconds(at))
        };
        assert!(!over(&path, None, 9) && over(&path, None, 10), "a trial without an answer");
        assert!(!over(&path, Some(59), 1000) && over(&path, Some(60), 1000));
        assert!(!over(&path, Some(100), 59), "it was heard before it came here");
        path.absence = Some(("no route".into(), start + seconds(100)));
        assert!(!over(&path, Some(500), 159) && over(&path, Some(0), 160));
    }

    /// What the threads are told, in short.
    fn told(commands: &Receiver<Command>) -> Vec<String> {
        let told = commands.try_iter().filter_map(|command| {
            let Command::TunnelOp(op) = command else { return None };
            if let TunnelOp::AddPath { path, place, .. } = &*op {
                Some(format!("add {} {} {}", path.0, place.settings.name, place.socket().0))
            } else if let TunnelOp::SetPath { path, place, .. } = &*op {
                Some(format!("set {} {} {}", path.0, place.settings.name, place.socket().0))
            } else if let TunnelOp::RemovePath { path, .. } = &*op {
                Some(format!("remove {}", path.0))
            } else if let TunnelOp::CloseSocket { id } = &*op {
                Some(format!("close {}", id.0))
            } else {
                None
            }
        });
        told.collect()
    }

    #[test]
    fn a_path_moves_with_its_number_and_takes_over_what_led_there() {
        let (handle, commands) = Handle::pretended();
        let mut sockets = Opened::new();
        let now = Instant::now();
        let [first, second] = [1, 2].map(|host| {
            let local = IpAddr::from([127, 0, 0, host]);
            let key = Key::new(Some(local), local, 0, None);
            let opened =
                sockets.take(now, &key, config::Offloads::ALL, &mut |step| handle.step(step));
            opened.expect("a socket")
        });
        let connection = connection();
        let mut arrived = Arrived::new(ConnectionId(0), connection.forget);
        let mut means = Means { handle: &handle, sockets: &mut sockets, now };
        let [one, two, three] = ["192.0.2.1:1", "192.0.2.2:2", "192.0.2.3:3"]
            .map(|at| at.parse::<SocketAddr>().unwrap());
        for remote in [one, two] {
            let settings = connection.learned_path(remote, None).unwrap();
            arrived.add(&connection, remote, settings, first, &mut means).unwrap();
        }
        assert_eq!(told(&commands), ["add 0 192.0.2.1:1 0", "add 1 192.0.2.2:2 0"]);
        assert!(arrived.has(one, first) && !arrived.has(one, second));

        let mut relocate = |arrived: &mut Arrived, path, remote| {
            arrived.relocate(&connection, PathId(path), remote, None, second, &mut means)
        };
        let names = relocate(&mut arrived, 0, three).unwrap();
        assert_eq!(names, ("192.0.2.1:1".into(), "192.0.2.3:3".into()));
        assert_eq!(told(&commands), ["set 0 192.0.2.3:3 1"]);
        relocate(&mut arrived, 0, two).unwrap();
        assert_eq!(told(&commands), ["remove 1", "set 0 192.0.2.2:2 1"]);
        assert!(relocate(&mut arrived, 1, one).is_none(), "it is gone");
        assert_eq!((arrived.len(), told(&commands)), (1, Vec::new()));

        // The first socket is used by nobody but this test any more.
        sockets.give_back(now, first);
        sockets.close_idle(now, &mut |step| handle.step(step));
        assert_eq!(told(&commands), ["close 0"]);
    }

    fn connection() -> config::Connection {
        let text = "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.1/24']\n\
                    [[tunnel.connection]]\nname = 'peer'\npeer = ['10.9.0.2']\n";
        config::judge(text, "test").unwrap().tunnels.remove(0).connections.remove(0)
    }

    fn path(since: Instant) -> Path {
        let settings = connection().learned_path("192.0.2.1:4754".parse().unwrap(), None).unwrap();
        Path { id: PathId(0), settings, socket: SocketId(0), since, absence: None }
    }
}
