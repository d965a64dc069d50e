//! Arbitrary settings that are valid: whatever a file can say, as far as it fits together.
//!
//! Names and addresses follow from places, so that two of these settings have tunnels, connections
//! and paths in common and differ in what they say about them. The rest follows from a list of
//! numbers, of which smaller and fewer make simpler settings: that is how a failure shrinks.

use std::net::IpAddr;
use std::time::Duration;

use proptest::prelude::*;

use crate::config::commands::Secret;
use crate::config::ports::PortRange;
use crate::config::*;

/// Arbitrary valid settings.
pub(super) fn settings() -> impl Strategy<Value = Settings> {
    prop::collection::vec(any::<u16>(), 0..400)
        .prop_map(|numbers| Choices(numbers.into_iter()).settings())
}

struct Choices(std::vec::IntoIter<u16>);

/// Where the paths of a connection come from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Paths {
    Configured,
    Found,
    Learned,
}

/// Names that a file has to quote with care.
const NAMES: [&str; 4] = ["server", "a \"quoted\" \\ name", "Büro 🦀", "x = [1] # '"];

impl Choices {
    /// A number below `bound`; 0 where no numbers are left.
    fn below(&mut self, bound: u64) -> u64 {
        let numbers = [(); 4].map(|()| u64::from(self.0.next().unwrap_or(0)));
        numbers.iter().fold(0, |number, next| number << 16 | next) % bound
    }

    fn small(&mut self, bound: u16) -> u16 {
        self.0.next().unwrap_or(0) % bound
    }

    fn flag(&mut self) -> bool {
        self.small(2) == 1
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| make(self))
    }

    /// Some of the things numbered from 0 to `most`, at least `least`, in any order.
    fn some<T>(&mut self, least: u16, most: u16, make: impl Fn(&mut Self, u16) -> T) -> Vec<T> {
        let mut places: Vec<u16> = (0..most).collect();
        let count = least + self.small(most - least + 1);
        (0..count)
            .map(|_| {
                let place = self.small(places.len() as u16);
                let place = places.remove(usize::from(place));
                make(self, place)
            })
            .collect()
    }

    fn settings(&mut self) -> Settings {
        let sockets = [mpt_control::DEFAULT_SOCKET, "/a \"b\"\\\n\u{7f}/socket"];
        Settings {
            control: Control { socket: sockets[usize::from(self.small(2))].into() },
            daemon: Daemon {
                user: self.maybe(|_| "_mpt-1.x".into()),
                state_dir: ["/var/lib/mpt", "/srv/\"x\""][usize::from(self.small(2))].into(),
            },
            metrics: Metrics {
                listen: self.maybe(|choices| {
                    let port = 1 + choices.small(9999);
                    let ip: IpAddr = if choices.flag() {
                        [127, 0, 0, 1].into()
                    } else {
                        [0, 0, 0, 0, 0, 0, 0, 1].into()
                    };
                    (ip, port).into()
                }),
            },
            web: Web {
                listen: self.maybe(|choices| {
                    if choices.flag() {
                        Listen::Socket("/run/mpt/\"web\"".into())
                    } else {
                        // Never the port of the metrics.
                        Listen::Address(([127, 0, 0, 1], 10_000 + choices.small(9999)).into())
                    }
                }),
            },
            tunnels: self.some(1, 2, Self::tunnel),
        }
    }

    fn tunnel(&mut self, tunnel: u16) -> Tunnel {
        let mut addresses = vec![prefix(&format!("10.{tunnel}.0.1"), 8 + self.small(17) as u8)];
        if self.flag() {
            addresses.push(prefix(&format!("fd00:{tunnel}::1"), 64));
        }
        let ipv6 = addresses.len() == 2;
        let least = self.small(2);
        Tunnel {
            name: format!("mpt{tunnel}"),
            addresses,
            mtu: match self.small(3) {
                0 => Mtu::Auto,
                1 => Mtu::Fixed(Mtu::MIN_IPV6),
                _ => Mtu::Fixed(Mtu::MIN_IPV6 + self.small(Mtu::MAX - Mtu::MIN_IPV6 + 1)),
            },
            private_key_file: Some(format!("/etc/mpt/{tunnel}.key").into()),
            clamp_mss: self.flag(),
            offloads: Offloads {
                vnet: !self.flag(),
                tso: !self.flag(),
                uso: !self.flag(),
                gso: !self.flag(),
                gro: !self.flag(),
            },
            checksum_partial: false,
            threads: if self.flag() { Threads::Two } else { Threads::One },
            connections: self
                .some(1 - least, 4, |choices, place| choices.connection(tunnel, place, ipv6)),
            accepts: self.some(least, 2, |choices, place| choices.accept(tunnel, place, ipv6)),
        }
    }

    /// The first two connections of a tunnel always have the same peer, and others may.
    fn connection(&mut self, tunnel: u16, place: u16, ipv6: bool) -> Connection {
        let number = 4 * tunnel + place;
        let shared = place == 1 || (place > 1 && self.flag());
        let owner = if shared { 0 } else { place };
        let mut peer: Vec<IpAddr> = vec![format!("10.{tunnel}.{owner}.2").parse().unwrap()];
        // One that shares its peer with others carries what they carry.
        let peer_kind = if shared || place == 0 { PeerKind::Mpt } else { self.peer_kind() };
        let ipv6 = ipv6 && peer_kind != PeerKind::Original;
        if ipv6 {
            peer.push(format!("fd00:{tunnel}:{owner}::2").parse().unwrap());
        }
        let mut networks = Vec::new();
        if self.flag() {
            networks.push(prefix(&format!("172.{}.0.0", 16 + number), 16));
        }
        if ipv6 && self.flag() {
            networks.push(prefix(&format!("fd01:{number:x}::"), 32 + self.small(97) as u8));
        }
        if number == 0 && self.flag() {
            networks.push(prefix("0.0.0.0", 0));
        }
        let selector = (shared || self.flag()).then(|| self.selector(place));
        let selector = selector.filter(|_| peer_kind != PeerKind::Original);
        let scheduler = self.scheduler();
        // Paths that differ in interface may be equal in everything else.
        let bound = self.flag();
        let original = peer_kind == PeerKind::Original;
        let reorder = self.reorder(scheduler, peer_kind);
        let mut framing = self.framing(peer_kind);
        let mut public_key = None;
        if framing == Framing::Extended && self.flag() {
            (framing, public_key) =
                (Framing::Sealed, Some(mpt_proto::PublicKey::new([number as u8; 32])));
        }
        let paths = match self.small(4) {
            0 if peer_kind == PeerKind::Mpt => Paths::Found,
            1 if framing != Framing::Plain => Paths::Learned,
            _ => Paths::Configured,
        };
        let configured = paths == Paths::Configured;
        let (keepalive, dead_time) = self.times(80, peer_kind);
        let dead_time = self.maybe(|_| dead_time).filter(|_| !configured);
        let found = |of: bool| of && paths == Paths::Found;
        Connection {
            peer_kind,
            commands: original.then(|| self.commands(number)),
            name: format!("{}{number}", NAMES[usize::from(place)]),
            peer,
            public_key,
            preshared_key_file: public_key.and_then(|_| self.maybe(|_| "/etc/mpt/psk".into())),
            invitation_file: public_key.and_then(|_| self.maybe(|_| "/etc/mpt/invitation".into())),
            networks,
            selector,
            local_port: if number == 0 { Connection::DEFAULT_PORT } else { 10_000 + number },
            remote_port: if self.flag() { 1 + self.small(65535) } else { Connection::DEFAULT_PORT },
            policies: Policies {
                profile: self.profile(framing),
                scheduler,
                thin_acks: !self.flag(),
                equalise: !self.flag(),
                compete: !self.flag(),
                breaker: !self.flag(),
                repair: !self.flag(),
                framing,
                key: self.key().filter(|_| !original),
                checksum: self.flag() && !original,
                sequence: if original { reorder.window > 0 } else { !self.flag() },
                reorder,
            },
            remote: found(true).then(|| Remote::Name(format!("Host{number}.example."))),
            interfaces: match self.flag() {
                listed if found(listed) => Interfaces::Listed(self.patterns(1)),
                _ => Interfaces::Auto,
            },
            exclude: if found(self.flag()) { self.patterns(0) } else { Vec::new() },
            keepalive: self
                .maybe(|_| keepalive)
                .filter(|_| !configured)
                .or(dead_time.map(|_| keepalive)),
            dead_time,
            failover: self.failover().filter(|_| !configured),
            forget: match self.flag() {
                other if other && paths == Paths::Learned => {
                    self.between(Duration::from_secs(301), Duration::from_secs(9999))
                }
                _ => Duration::from_secs(300),
            },
            uplinks: if found(true) { self.uplinks() } else { Vec::new() },
            classes: self.classes(),
            paths: match configured {
                true => self
                    .some(1, 4, |choices, place| choices.path(place, bound, scheduler, peer_kind)),
                false => Vec::new(),
            },
        }
    }

    fn framing(&mut self, peer_kind: PeerKind) -> Framing {
        let of_mpt = [Framing::Auto, Framing::Extended, Framing::Plain][usize::from(self.small(3))];
        if peer_kind == PeerKind::Mpt { of_mpt } else { Framing::Plain }
    }

    fn patterns(&mut self, least: u16) -> Vec<Pattern> {
        self.some(least, 3, |_, place| {
            Pattern::new(["eth\\*", "wwan0", "\"?\""][usize::from(place)])
        })
    }

    /// In the order of their names.
    fn classes(&mut self) -> Vec<Class> {
        self.some(0, 3, |choices, place| Class {
            name: format!("class \"{place}"),
            selector: choices.maybe(|_| Match { protocol: Some(17), ports: vec![1..=9] }),
            dscp: vec![choices.below(64) as u8, 46],
            networks: choices.maybe(|_| prefix("10.1.0.0", 16)).into_iter().collect(),
            paths: Vec::new(),
            deadline: choices.maybe(|choices| 1 + choices.small(1000)),
            repair: Repair::WORDS[choices.below(Repair::WORDS.len() as u64) as usize].1,
        })
    }

    fn uplinks(&mut self) -> Vec<Uplink> {
        let mut uplinks = self.some(0, 3, |choices, place| {
            let (quota, quota_day) = choices.quota();
            Uplink {
                interface: ["eth0.5", "wwan0", "\"x\""][usize::from(place)].into(),
                weight: 1 + choices.small(Path::MAX_WEIGHT),
                priority: choices.small(256) as u8,
                metered: choices.flag(),
                price: choices.flag().then(|| choices.below(10_001) as u16),
                quota,
                quota_day,
                failover: choices.failover(),
            }
        });
        uplinks.sort_by(|one, other| one.interface.cmp(&other.interface));
        uplinks
    }

    /// A quota, and when its month begins.
    fn quota(&mut self) -> (Option<Quota>, u8) {
        let quota = self.maybe(|choices| Quota::of(1_000_000 + choices.below(1_000_000_000_000)));
        (quota, if quota.is_some() { 1 + self.small(28) as u8 } else { 1 })
    }

    fn peer_kind(&mut self) -> PeerKind {
        [PeerKind::Mpt, PeerKind::Original, PeerKind::Gre][usize::from(self.small(3))]
    }

    /// Those of connection `number`, on its own port.
    fn commands(&mut self, number: u16) -> Commands {
        let auth = match self.small(3) {
            0 => Auth::None,
            1 => Auth::Random,
            _ => Auth::Sha256(Secret::new("a\"quoted\"\\key-of-40-characters-in-all").unwrap()),
        };
        Commands {
            port: 40_000 + number,
            remote_port: if self.flag() { Commands::DEFAULT_PORT } else { 40_000 },
            accept_create: matches!(auth, Auth::Sha256(_)) && self.flag(),
            auth,
        }
    }

    /// No two of one tunnel have a port in common.
    fn selector(&mut self, place: u16) -> Match {
        let first = 1 + 1000 * place;
        let mut ports = vec![first..=first];
        if self.flag() {
            ports.push(first + 10..=first + 10 + self.small(900));
        }
        match self.small(3) {
            0 => Match { protocol: None, ports },
            1 => Match { protocol: Some(17), ports },
            _ => Match { protocol: Some(200 + place as u8), ports: Vec::new() },
        }
    }

    fn path(&mut self, place: u16, bound: bool, scheduler: Scheduler, peer_kind: PeerKind) -> Path {
        let remote = match self.small(3) {
            0 => Remote::Address(format!("192.0.2.{}", 1 + place).parse().unwrap()),
            1 if bound => Remote::Address(format!("2001:db8::{}", 1 + place).parse().unwrap()),
            _ => Remote::Name(format!("Host{place}.example.")),
        };
        let local = match &remote {
            Remote::Address(IpAddr::V4(_)) => "198.51.100.7",
            Remote::Address(IpAddr::V6(_)) | Remote::Name(_) => "2001:db8:1::7",
        };
        let (keepalive, dead_time) = match peer_kind {
            PeerKind::Gre => (Duration::ZERO, Duration::ZERO),
            PeerKind::Mpt | PeerKind::Original => self.times(24 * 60 * 60, peer_kind),
        };
        let pins = match scheduler {
            Scheduler::Weighted
            | Scheduler::Earliest
            | Scheduler::LowestRtt
            | Scheduler::Redundant => Pins::default(),
            Scheduler::Flow => Pins {
                tcp_dst: self.pins(place),
                tcp_src: self.pins(place),
                udp_dst: self.pins(place),
                udp_src: self.pins(place),
            },
        };
        let (quota, quota_day) = self.quota();
        Path {
            name: format!("{}{place}", NAMES[3 - usize::from(place)]),
            interface: bound.then(|| format!("\"eth\\{place}")),
            local: if bound { self.maybe(|_| local.parse().unwrap()) } else { None },
            remote,
            weight: 1 + self.small(Path::MAX_WEIGHT),
            weight_from_peer: false,
            rate: None,
            metered: false,
            price: None,
            quota,
            quota_day,
            found: None,
            priority: self.small(256) as u8,
            keepalive,
            dead_time,
            failover: self.failover().filter(|_| peer_kind != PeerKind::Gre),
            status: if self.flag() { PathStatus::Off } else { PathStatus::Available },
            pins,
        }
    }

    /// No two of one connection have a port in common.
    fn pins(&mut self, place: u16) -> Vec<PortRange> {
        let first = 1 + 1000 * place;
        let mut pins = Vec::new();
        if self.flag() {
            pins.push(first..=first + self.small(100));
        }
        if self.flag() {
            pins.push(first + 200..=first + 200);
        }
        pins
    }

    /// A keepalive and a dead time that fits.
    fn times(&mut self, max_seconds: u64, peer_kind: PeerKind) -> (Duration, Duration) {
        let max = Duration::from_secs(max_seconds);
        let keepalive = match self.small(3) {
            0 => Path::default_keepalive(peer_kind),
            1 => Duration::ZERO,
            _ => self.between(Duration::from_millis(10), max),
        };
        let dead_time = match self.small(3) {
            0 => Path::default_dead_time(keepalive),
            1 => Duration::ZERO,
            _ if keepalive == max => Duration::ZERO,
            _ => self.between(keepalive.max(Duration::from_millis(10)) + NANO, max),
        };
        (keepalive, dead_time)
    }

    fn failover(&mut self) -> Option<u16> {
        self.maybe(|choices| 100 + choices.small(59_901))
    }

    fn between(&mut self, min: Duration, max: Duration) -> Duration {
        min + Duration::from_nanos(self.below((max - min).as_nanos() as u64 + 1))
    }

    fn accept(&mut self, tunnel: u16, place: u16, ipv6: bool) -> Accept {
        let mut peers = vec![prefix(&format!("10.{tunnel}.{}.0", 100 + place), 24)];
        if ipv6 && self.flag() {
            peers.push(prefix(&format!("fd00:{tunnel}:{}::", 100 + place), 64));
        }
        let scheduler = self.scheduler();
        let framing = self.framing(PeerKind::Mpt);
        let (keepalive, dead_time) = self.times(100, PeerKind::Mpt);
        let local = self.maybe(|_| "192.0.2.99".parse().unwrap());
        let longer = dead_time + Duration::from_secs(1);
        Accept {
            name: format!("@\"{tunnel}{place}"),
            peers,
            folder: None,
            sources: self.maybe(|_| prefix("203.0.113.0", 24)).into_iter().collect(),
            interface: self.maybe(|_| "eth9".into()),
            local,
            local_port: 20_000 + 2 * tunnel + place,
            max_connections: 1 + self.small(Accept::MAX_CONNECTIONS),
            max_rate: Accept::MIN_RATE + self.below(999_000_001) as f64 / 1e6,
            max_paths: 1 + self.small(64) as u8,
            forget: self.between(longer, longer + Duration::from_secs(1000)),
            policies: Policies {
                profile: self.profile(framing),
                scheduler,
                thin_acks: !self.flag(),
                equalise: !self.flag(),
                compete: !self.flag(),
                breaker: !self.flag(),
                repair: !self.flag(),
                framing,
                key: self.key(),
                checksum: self.flag(),
                sequence: !self.flag(),
                reorder: self.reorder(scheduler, PeerKind::Mpt),
            },
            weight: self.maybe(|choices| 1 + choices.small(Path::MAX_WEIGHT)),
            priority: self.small(256) as u8,
            keepalive,
            dead_time,
            failover: self.failover(),
            classes: self.classes(),
        }
    }

    fn profile(&mut self, framing: Framing) -> Profile {
        match self.small(3) {
            0 => Profile::Classic,
            1 if framing != Framing::Plain => Profile::Adaptive,
            _ => Profile::Auto,
        }
    }

    fn scheduler(&mut self) -> Scheduler {
        [
            Scheduler::Flow,
            Scheduler::Weighted,
            Scheduler::Earliest,
            Scheduler::LowestRtt,
            Scheduler::Redundant,
        ][self.below(5) as usize]
    }

    fn key(&mut self) -> Option<u32> {
        self.maybe(|choices| choices.below(1 << 32) as u32)
    }

    fn reorder(&mut self, scheduler: Scheduler, peer_kind: PeerKind) -> Reorder {
        let default = Reorder::default_for(scheduler, peer_kind);
        if self.flag() {
            return Reorder { configured: self.flag(), ..default };
        }
        Reorder {
            configured: true,
            window: u32::from(self.small(10_001)),
            max_delay: self.between(Duration::ZERO, Reorder::MAX_DELAY),
            early_release: self.flag(),
            late: if self.flag() { Late::Drop } else { Late::Deliver },
        }
    }
}

/// The shortest time there is.
const NANO: Duration = Duration::from_nanos(1);

fn prefix(addr: &str, len: u8) -> Prefix {
    Prefix { addr: addr.parse().unwrap(), len }
}
