//! The paths that are found by themselves: which interfaces have one, and which of them is used.
//!
//! An interface gets a path by each IP version for which a route leads from it to the peer. The path stays, with
//! its number, until there was no such route for a while. Of two paths by the same interface, IPv6 carries the
//! packets and IPv4 stands by: they share one link, and with it one weight. Neither waits for the other
//! (RFC 8305); a path on which nothing was ever heard goes while the other one is up.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mpt_proto::MAX_PATHS;

use crate::config::{self, Connection, Found, PathStatus};

/// How long a path stays without a route: longer than an address is renewed or a cable plugged in again.
const LOST: Duration = Duration::from_secs(10);

/// How long a path is tried on which nothing is heard although the other IP version passes by the same
/// interface: twenty keepalives by default.
const TRIAL: Duration = Duration::from_secs(10);

/// The uplinks of all connections.
#[derive(Debug, Default)]
pub(super) struct Uplinks {
    connections: BTreeMap<String, BTreeMap<Key, Uplink>>,
    /// When something is due although nothing changes.
    deadline: Option<Instant>,
}

/// Interface and IP version.
pub(super) type Key = (String, Found);

/// A path.
#[derive(Debug)]
struct Uplink {
    /// Since when it is tried.
    since: Instant,
    /// Since when there is no route.
    lost: Option<Instant>,
    /// Whether the peer was ever heard.
    heard: bool,
    /// Whether the trial was in vain.
    vain: bool,
    /// What was changed by command.
    set: Option<Set>,
}

/// What was changed by command. Weight and priority count until the file has others.
#[derive(Clone, Copy, Debug)]
struct Set {
    of_file: (u16, u8),
    weight: u16,
    priority: u8,
    status: PathStatus,
}

impl Uplinks {
    /// Begins a look at all connections, and forgets those that are not among these.
    pub(super) fn begin(&mut self, connections: &[Connection]) {
        let stays = |name: &String| {
            connections.iter().any(|other| other.name == *name && other.remote.is_some())
        };
        self.connections.retain(|name, _| stays(name));
        self.deadline = None;
    }

    /// The paths that a connection has. `routes` are those that the host has to the peer by now; `up` says
    /// whether the peer is heard on a path.
    pub(super) fn paths(
        &mut self,
        connection: &Connection,
        routes: &[Key],
        up: impl Fn(&str) -> bool,
        now: Instant,
    ) -> Vec<config::Path> {
        let uplinks = self.connections.entry(connection.name.clone()).or_default();
        for key in routes.iter().filter(|(interface, _)| connection.may_use(interface)) {
            if let Some(uplink) = uplinks.get_mut(key) {
                if uplink.lost.take().is_some() {
                    (uplink.since, uplink.vain) = (now, false);
                }
            } else if uplinks.len() < MAX_PATHS {
                uplinks.insert(key.clone(), Uplink::new(now));
            }
        }
        uplinks.retain(|key, uplink| {
            if !routes.contains(key) {
                uplink.lost.get_or_insert(now);
            }
            connection.may_use(&key.0) && uplink.lost.is_none_or(|since| now < since + LOST)
        });
        let mut up_by: BTreeMap<Key, bool> = BTreeMap::new();
        for (key, uplink) in uplinks.iter_mut() {
            let path = connection.found_path(&key.0, key.1);
            let is_up = path.is_some_and(|path| up(&path.name));
            uplink.heard |= is_up;
            up_by.insert(key.clone(), is_up);
        }
        let mut paths = Vec::new();
        for (key, uplink) in uplinks.iter_mut() {
            let other = (key.0.clone(), key.1.other());
            let other_up = up_by.get(&other).copied().unwrap_or(false);
            uplink.judge(other_up, now);
            if uplink.vain {
                continue;
            }
            let Some(mut path) = connection.found_path(&key.0, key.1) else { continue };
            uplink.apply(&mut path);
            // It stands by.
            if key.1 == Found::V4 && other_up {
                path.priority = path.priority.saturating_add(1);
            }
            paths.push(path);
        }
        let due = uplinks.values().flat_map(Uplink::due).filter(|at| *at > now);
        self.deadline = self.deadline.into_iter().chain(due).min();
        paths
    }

    /// When to look again although nothing has changed.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The names of a connection's paths.
    pub(super) fn names(&self, connection: &Connection) -> impl Iterator<Item = String> {
        let uplinks = self.connections.get(&connection.name).into_iter().flatten();
        let uplinks = uplinks.filter(|(_, uplink)| !uplink.vain);
        uplinks.filter_map(|(key, _)| Some(connection.found_path(&key.0, key.1)?.name))
    }

    /// Changes the status, weight or priority of a path. Returns whether there is one of that name.
    pub(super) fn change(
        &mut self,
        connection: &Connection,
        name: &str,
        change: &dyn Fn(&mut config::Path),
    ) -> bool {
        let uplinks = self.connections.get_mut(&connection.name).into_iter().flatten();
        for (key, uplink) in uplinks {
            let Some(mut path) = connection.found_path(&key.0, key.1) else { continue };
            if path.name == name {
                let of_file = (path.weight, path.priority);
                uplink.apply(&mut path);
                change(&mut path);
                let config::Path { weight, priority, status, .. } = path;
                uplink.set = Some(Set { of_file, weight, priority, status });
                return true;
            }
        }
        false
    }
}

impl Uplink {
    fn new(now: Instant) -> Self {
        Self { since: now, lost: None, heard: false, vain: false, set: None }
    }

    /// Whether it is to be tried, given whether the other IP version passes.
    fn judge(&mut self, other_up: bool, now: Instant) {
        if self.vain && !other_up {
            (self.since, self.vain) = (now, false);
        } else if other_up && !self.heard && now >= self.since + TRIAL {
            self.vain = true;
        }
    }

    fn apply(&self, path: &mut config::Path) {
        let Some(set) = self.set else { return };
        path.status = set.status;
        if set.of_file == (path.weight, path.priority) {
            (path.weight, path.priority) = (set.weight, set.priority);
        }
    }

    /// When it goes for lack of a route, and when its trial ends.
    fn due(&self) -> impl Iterator<Item = Instant> {
        let trial = (!self.heard && !self.vain).then(|| self.since + TRIAL);
        self.lost.map(|since| since + LOST).into_iter().chain(trial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &str = "interfaces = 'auto'";

    fn connection(more: &str) -> Connection {
        let text = format!(
            "[[tunnel]]\nname = 'mpt0'\naddresses = ['10.9.0.1/24']\n\
             [[tunnel.connection]]\nname = 'server'\npeer = ['10.9.0.2']\n\
             remote = 'server.example.org'\n{more}\n"
        );
        let settings = config::judge(&text, "test").unwrap_or_else(|error| panic!("{error}"));
        settings.tunnels.into_iter().next().unwrap().connections.remove(0)
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// The routes in a text such as `eth0/4 eth0/6`.
    fn routes(text: &str) -> Vec<Key> {
        let route = |word: &str| {
            let (interface, version) = word.split_once('/').unwrap();
            (interface.to_owned(), if version == "4" { Found::V4 } else { Found::V6 })
        };
        text.split_whitespace().map(route).collect()
    }

    /// The paths as a text such as `eth0 eth0-v6:1`, the number being a priority other than 0.
    fn shown(paths: &[config::Path]) -> String {
        let path = |path: &config::Path| match path.priority {
            0 => path.name.clone(),
            priority => format!("{}:{priority}", path.name),
        };
        paths.iter().map(path).collect::<Vec<_>>().join(" ")
    }

    struct Test {
        uplinks: Uplinks,
        connection: Connection,
        start: Instant,
    }

    impl Test {
        fn new(more: &str) -> Self {
            let connection = connection(more);
            Self { uplinks: Uplinks::default(), connection, start: Instant::now() }
        }

        fn at(&mut self, second: u64, has: &str, up: &[&str]) -> String {
            let now = self.start + seconds(second);
            self.uplinks.begin(std::slice::from_ref(&self.connection));
            let is_up = |name: &str| up.contains(&name);
            shown(&self.uplinks.paths(&self.connection, &routes(has), is_up, now))
        }

        fn due(&self) -> Option<u64> {
            self.uplinks.deadline().map(|at| (at - self.start).as_secs())
        }
    }

    #[test]
    fn only_interfaces_that_may_be_used_have_paths() {
        let has = "docker0/4 eth0/4 eth1/4 wlan0/4";
        for (more, paths) in [
            (ALL, "docker0 eth0 eth1 wlan0"),
            ("", "docker0 eth0 eth1 wlan0"),
            ("exclude = ['docker*']", "eth0 eth1 wlan0"),
            ("interfaces = ['eth*']", "eth0 eth1"),
            ("interfaces = ['eth?', 'wlan0']\nexclude = ['eth1']", "eth0 wlan0"),
        ] {
            assert_eq!(Test::new(more).at(0, has, &[]), paths, "{more}");
        }
    }

    #[test]
    fn a_path_goes_when_there_was_no_route_for_10_seconds() {
        let mut test = Test::new(ALL);
        assert_eq!(test.at(0, "eth0/4 eth1/4", &[]), "eth0 eth1");
        assert_eq!(test.at(20, "eth0/4", &["eth0", "eth1"]), "eth0 eth1");
        assert_eq!(test.due(), Some(30));
        assert_eq!(test.at(29, "eth0/4", &["eth0"]), "eth0 eth1");
        assert_eq!(test.at(29, "eth0/4 eth1/4", &["eth0"]), "eth0 eth1", "it is back");
        assert_eq!(test.due(), None);
        assert_eq!(test.at(40, "eth0/4", &["eth0"]), "eth0 eth1");
        assert_eq!(test.at(50, "eth0/4", &["eth0"]), "eth0");
        assert_eq!(test.due(), None);
    }

    #[test]
    fn what_must_not_be_used_any_more_goes_at_once() {
        let mut test = Test::new(ALL);
        assert_eq!(test.at(0, "eth0/4 eth1/4", &[]), "eth0 eth1");
        test.connection = connection("exclude = ['eth1']");
        assert_eq!(test.at(0, "eth0/4 eth1/4", &[]), "eth0");
    }

    #[test]
    fn ipv4_stands_by_while_ipv6_passes_by_the_same_interface() {
        let mut test = Test::new(ALL);
        let has = "eth0/4 eth0/6 eth1/4";
        assert_eq!(test.at(0, has, &[]), "eth0 eth0-v6 eth1");
        assert_eq!(test.at(1, has, &["eth0", "eth1"]), "eth0 eth0-v6 eth1");
        assert_eq!(test.at(2, has, &["eth0", "eth0-v6", "eth1"]), "eth0:1 eth0-v6 eth1");
        assert_eq!(test.at(3, has, &["eth0", "eth1"]), "eth0 eth0-v6 eth1");
        assert_eq!(test.at(60, has, &["eth0", "eth1"]), "eth0 eth0-v6 eth1", "it was heard");
    }

    #[test]
    fn a_version_that_was_never_heard_goes_while_the_other_is_up() {
        let mut test = Test::new(ALL);
        let has = "eth0/4 eth0/6";
        assert_eq!(test.at(0, has, &[]), "eth0 eth0-v6");
        assert_eq!(test.due(), Some(10));
        assert_eq!(test.at(9, has, &["eth0"]), "eth0 eth0-v6");
        assert_eq!(test.at(10, has, &["eth0"]), "eth0");
        assert_eq!(test.due(), None);
        assert_eq!(test.at(99, has, &["eth0"]), "eth0");
        assert_eq!(test.at(100, has, &[]), "eth0 eth0-v6", "both are tried again");
        assert_eq!(test.at(109, has, &["eth0"]), "eth0 eth0-v6");
        assert_eq!(test.at(110, has, &["eth0"]), "eth0");
        test.at(120, "eth0/4", &["eth0"]);
        assert_eq!(test.at(121, has, &["eth0"]), "eth0 eth0-v6", "it has another route");
    }

    #[test]
    fn the_table_of_an_interface_and_commands_count() {
        let mut test = Test::new("interface.eth0 = { weight = 7, priority = 2, metered = true }");
        test.at(0, "eth0/4 eth1/4", &[]);
        let set = |test: &mut Test, name: &str, change: &dyn Fn(&mut config::Path)| {
            test.uplinks.change(&test.connection, name, change)
        };
        let of = |test: &mut Test| {
            let has = routes("eth0/4 eth1/4");
            let paths = test.uplinks.paths(&test.connection, &has, |_| false, test.start);
            paths.iter().map(|path| (path.weight, path.priority, path.status)).collect::<Vec<_>>()
        };
        let (available, off) = (PathStatus::Available, PathStatus::Off);
        assert_eq!(of(&mut test), [(7, 2, available), (1, 0, available)]);
        assert!(set(&mut test, "eth0", &|path| path.status = off));
        assert!(set(&mut test, "eth0", &|path| path.weight = 9));
        assert!(set(&mut test, "eth1", &|path| path.priority = 4));
        assert!(!set(&mut test, "eth2", &|path| path.priority = 4));
        assert_eq!(of(&mut test), [(9, 2, off), (1, 4, available)]);
        test.connection = connection("interface.eth0 = { weight = 8 }");
        assert_eq!(of(&mut test), [(8, 0, off), (1, 4, available)], "the file has a new weight");
    }

    #[test]
    fn a_connection_has_at_most_64_paths() {
        let mut test = Test::new(ALL);
        let has: String = (0..70).map(|number| format!("eth{number:02}/4 ")).collect();
        assert_eq!(test.at(0, &has, &[]).split(' ').count(), 64);
        assert!(test.at(0, &has, &[]).ends_with("eth63"));
    }
}
