//! A connection and its paths, as far as commands are about them or go by them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use mpt_control::PathStatus;
use mpt_original::PathReport;
use mpt_proto::PathId;

use crate::tunnel::reconciler::connection::Path;
use crate::tunnel::reconciler::socket::Key;

/// A connection that has commands.
pub(super) struct Station {
    pub(super) name: String,
    /// The peer's port for commands.
    pub(super) remote_port: u16,
    pub(super) legs: BTreeMap<PathId, Leg>,
}

/// A path of such a connection.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    pub(super) name: String,
    /// As in the settings: what the peer calls it, unless something translates addresses in between.
    pub(super) local: Option<IpAddr>,
    /// What the host's routes choose where the settings say nothing.
    source: Option<IpAddr>,
    pub(super) remote: Option<IpAddr>,
    /// The socket by which commands go that way, if this host has what it needs.
    pub(super) key: Option<Key>,
    /// Whether the path is up.
    up: bool,
    /// Whether the peer is to take it for up, as far as this host has to do with that.
    wanted: bool,
}

impl Station {
    /// The path between these addresses. Behind NAT the peer sees a different local address; then
    /// the remote one decides, if there is only one such path. The local address of another path
    /// has not been translated: then the path is unknown.
    pub(super) fn path(&self, local: IpAddr, remote: IpAddr) -> Option<PathId> {
        let find = |fits: &dyn Fn(&Leg) -> bool| {
            let mut fitting = self.legs.iter().filter(|(_, leg)| fits(leg));
            fitting.next().filter(|_| fitting.next().is_none()).map(|(path, _)| *path)
        };
        if self.legs.values().any(|leg| leg.own_address() == Some(local)) {
            return find(&|leg| leg.is_between(local, remote));
        }
        find(&|leg| leg.remote == Some(remote))
    }

    /// The paths for sending a command about one of them, best first: those that are up, in their
    /// order, and the one concerned last if it is down.
    pub(super) fn ways(&self, about: PathReport) -> impl Iterator<Item = &Leg> {
        let rank = move |leg: &Leg| {
            let concerned = leg.is_between(about.initiator, about.responder);
            (about.down && concerned, !leg.up, concerned)
        };
        let mut legs: Vec<&Leg> = self.legs.values().collect();
        legs.sort_by_key(|leg| rank(leg));
        legs.into_iter()
    }
}

impl Leg {
    /// A path as it is, and where that is not known as it was. Commands come to this port here.
    pub(super) fn new(path: &Path, port: u16, old: Option<&Self>) -> Self {
        let settings = &path.settings;
        let (source, key) = match (path.way(), path.remote) {
            (Some(way), Some(remote)) => {
                let interface = settings.interface.clone().zip(way.bound);
                (way.source(), Some(Key::new(settings.local, remote, port, interface)))
            }
            _ => (None, None),
        };
        let wanted = settings.status == PathStatus::Available && !path.is_absent();
        Self {
            name: settings.name.clone(),
            local: settings.local,
            source: source.or_else(|| old.and_then(|old| old.source)),
            remote: path.remote.or_else(|| old.and_then(|old| old.remote)),
            key,
            up: wanted && !path.silent,
            wanted,
        }
    }

    fn is_between(&self, local: IpAddr, remote: IpAddr) -> bool {
        self.addresses() == Some((local, remote))
    }

    /// The addresses that identify it to the peer: this host's and its own.
    fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        Some((self.own_address()?, self.remote?))
    }

    /// By which address of this host it goes, as far as that is known.
    fn own_address(&self) -> Option<IpAddr> {
        self.local.or(self.source)
    }
}

/// The commands about changed paths. The peer takes a new path for up as soon as it hears it.
pub(super) fn reports(old: &BTreeMap<PathId, Leg>, new: &BTreeMap<PathId, Leg>) -> Vec<PathReport> {
    let changed = old.iter().filter_map(|(path, old)| {
        let leg = new.get(path);
        let wanted = leg.is_some_and(|leg| leg.wanted);
        let (initiator, responder) =
            leg.unwrap_or(old).addresses().filter(|_| wanted != old.wanted)?;
        Some(PathReport { initiator, responder, down: !wanted })
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: u8) -> IpAddr {
        [192, 0, 2, host].into()
    }

    /// A path that is up, from 192.0.2.N to a remote host.
    fn leg(local: u8, remote: u8) -> Leg {
        Leg {
            name: format!("path {local}"),
            local: Some(address(local)),
            source: None,
            remote: Some(address(remote)),
            key: None,
            up: true,
            wanted: true,
        }
    }

    fn legs<const N: usize>(legs: [Leg; N]) -> BTreeMap<PathId, Leg> {
        (0..).map(PathId).zip(legs).collect()
    }

    fn station<const N: usize>(all: [Leg; N]) -> Station {
        Station { name: "server".into(), remote_port: 65050, legs: legs(all) }
    }

    fn report(local: u8, remote: u8, down: bool) -> PathReport {
        PathReport { initiator: address(local), responder: address(remote), down }
    }

    #[test]
    fn lost_paths_are_notified_and_new_ones_are_not() {
        let before = legs([leg(1, 9), leg(2, 9)]);
        assert_eq!(reports(&before, &before), []);
        let off = legs([Leg { wanted: false, ..leg(1, 9) }, leg(2, 9)]);
        assert_eq!(reports(&before, &off), [report(1, 9, true)]);
        assert_eq!(reports(&off, &before), [report(1, 9, false)]);
        assert_eq!(reports(&off, &off), []);
        let gone = legs([leg(1, 9)]);
        assert_eq!(reports(&before, &gone), [report(2, 9, true)]);
        assert_eq!(reports(&gone, &before), []);
        let unknown = legs([Leg { local: None, wanted: false, ..leg(1, 9) }]);
        assert_eq!(reports(&gone, &unknown), [], "nobody knows how the peer calls it");
    }

    #[test]
    fn a_path_is_found_by_both_addresses_or_else_by_the_remote_one_alone() {
        let station = station([leg(1, 9), leg(2, 9), leg(3, 8)]);
        let path = |local, remote| station.path(address(local), address(remote));
        assert_eq!(path(2, 9), Some(PathId(1)));
        assert_eq!(path(77, 8), Some(PathId(2)), "the peer sees a translated address");
        assert_eq!(path(77, 9), None, "it could be either");
        assert_eq!(path(1, 8), None, "another path's own address is not a translated one");
        assert_eq!(path(1, 7), None);
    }

    #[test]
    fn the_peer_is_notified_on_a_path_that_is_up_not_on_the_one_going_down() {
        let down = |leg| Leg { up: false, ..leg };
        let names = |station: &Station, about| -> Vec<String> {
            station.ways(about).map(|leg| leg.name.clone()).collect()
        };
        let all_up = station([leg(1, 9), leg(2, 9), leg(3, 9)]);
        assert_eq!(names(&all_up, report(1, 9, true)), ["path 2", "path 3", "path 1"]);
        assert_eq!(names(&all_up, report(1, 9, false)), ["path 2", "path 3", "path 1"]);
        let some = station([down(leg(1, 9)), leg(2, 9), down(leg(3, 9))]);
        assert_eq!(names(&some, report(2, 9, true)), ["path 1", "path 3", "path 2"]);
        assert_eq!(names(&some, report(2, 9, false)), ["path 2", "path 1", "path 3"]);
    }
}
