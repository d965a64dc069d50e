//! What the original does, but for its threads.
//!
//! It tracks what arrived on each path, and notifies the peer of the resulting state. Its tasks are
//! independent, except for commands: during an exchange no path times out.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use mpt_io::netlink::Netlink;

use super::commands::{Commands, PathUpdates, Then};
use super::cycle::Cycle;
use super::frames::{self, Auth};
use super::interface::{self, Interface};
use super::reorder::Reorder;
use super::settings::{PathSettings, SECOND, Settings};

/// What the status of a path is.
pub(super) const OK: u8 = 0x00;
/// It is silent, or the peer says that it is down.
pub(super) const DOWN: u8 = 0x80;
/// The interface is down. Only a command changes that.
pub(super) const INTERFACE_DOWN: u8 = 0x81;
/// Switched off by a command.
pub(super) const SWITCHED_OFF: u8 = 0x83;

/// The program.
#[derive(Debug)]
pub(super) struct Machine {
    settings: Settings,
    started: Instant,
    interface: Interface,
    netlink: Netlink,
    paths: Vec<Path>,
    cycle: Cycle,
    /// Packets sent, numbered or not.
    sent: u64,
    reorder: Reorder,
    pub(super) commands: Commands,
    /// When the dead timers were looked at last, in seconds since the start.
    looked: Option<u64>,
    /// What came over the paths.
    pub(super) seen: Vec<Seen>,
}

#[derive(Debug)]
pub(super) struct Path {
    socket: UdpSocket,
    /// One of the above.
    pub(super) status: u8,
    /// When a keepalive came last, in seconds since the start.
    heard: u64,
    /// When the next keepalive is due.
    due: Instant,
    /// As if its keepalives were lost.
    pub(super) mute: bool,
    /// Packets sent over it.
    pub(super) carried: u64,
}

/// A datagram as it came from the peer's address.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) path: usize,
    pub(super) from: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

impl Seen {
    pub(super) fn is_keepalive(&self) -> bool {
        matches!(frames::open(&self.bytes), Some((None, [frames::KEEPALIVE, ..])))
    }

    /// Its number, if it has one.
    pub(super) fn number(&self) -> Option<u32> {
        frames::open(&self.bytes)?.0
    }
}

impl Machine {
    /// In the network namespace of the calling thread.
    pub(super) fn start(settings: Settings) -> Self {
        let started = Instant::now();
        let path = |path: &PathSettings| {
            let socket = UdpSocket::bind((path.local, settings.ports[0])).expect("a path's socket");
            socket.set_nonblocking(true).expect("a socket");
            Path { socket, status: OK, heard: 0, due: started, mute: false, carried: 0 }
        };
        let weights: Vec<_> = settings.paths.iter().map(|path| path.weight).collect();
        let mut netlink = Netlink::open().expect("a netlink socket");
        Self {
            interface: Interface::open(&mut netlink, settings.tunnel[0]),
            netlink,
            started,
            paths: settings.paths.iter().map(path).collect(),
            cycle: Cycle::new(&weights),
            sent: 0,
            reorder: Reorder::new(settings.window, settings.delay, weights.len()),
            commands: Commands::open(settings.command_ports[0], settings.auth, settings.tunnel),
            looked: None,
            seen: Vec::new(),
            settings,
        }
    }

    pub(super) fn interface(&self) -> &Interface {
        &self.interface
    }

    pub(super) fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        self.paths.iter().map(|path| &path.socket).chain([self.commands.socket()])
    }

    pub(super) fn path(&mut self, path: usize) -> &mut Path {
        &mut self.paths[path]
    }

    pub(super) fn reorder(&self) -> &Reorder {
        &self.reorder
    }

    /// How long nothing is due, but for what comes.
    pub(super) fn rest(&self) -> Duration {
        if self.reorder.is_empty() { SECOND / 20 } else { Duration::from_millis(1) }
    }

    /// Does all there is to do.
    pub(super) fn turn(&mut self) {
        self.read_interface();
        self.read_paths();
        while let Some(updates) = self.commands.receive(Instant::now()) {
            self.follow(updates);
        }
        let now = Instant::now();
        let updates = self.commands.tick(now);
        self.follow(updates);
        self.send_keepalives(now);
        self.look_for_the_dead(now);
        let mut ready = Vec::new();
        self.reorder.tick(now, &mut ready);
        self.interface.write(&ready);
    }

    /// `mpt path up|down`.
    pub(super) fn switch(&mut self, path: usize, up: bool) {
        self.change(path, if up { OK } else { SWITCHED_OFF });
    }

    /// `mpt create`.
    pub(super) fn create(&mut self, auth: Auth, text: &str) {
        let to = self.settings.paths[0].remote;
        self.commands.create(
            Instant::now(),
            (to, self.settings.command_ports[1]).into(),
            auth,
            text,
        );
    }

    /// From the interface to a path. What is not for the peer goes nowhere.
    fn read_interface(&mut self) {
        while let Some(packet) = self.interface.read() {
            if interface::is_between(&packet, self.settings.tunnel) {
                self.send(&packet);
            }
        }
    }

    fn send(&mut self, packet: &[u8]) {
        let paths = &self.paths;
        let Some((path, place)) = self.cycle.next(|path| paths[path].status == OK) else { return };
        self.look_at_interface(path, place);
        let number = (self.settings.window > 0).then_some(self.sent as u32);
        self.sent += 1;
        let frame =
            [frames::header(frames::version(self.settings.tunnel[0]), number), packet.to_vec()]
                .concat();
        let to = (self.settings.paths[path].remote, self.settings.ports[1]);
        // One that the kernel refuses is lost.
        let _ = self.paths[path].socket.send_to(&frame, to);
        self.paths[path].carried += 1;
    }

    /// A path whose interface is down is left, after this packet. The path that the original then
    /// leaves is the one with the number that this one has in the cycle.
    fn look_at_interface(&mut self, path: usize, place: usize) {
        let name = &self.settings.paths[path].interface;
        let link = self.netlink.link(name).expect("an answer");
        let is_well = link.is_some_and(|link| link.up && link.carrier);
        if !is_well && place < self.paths.len() && !self.commands.is_busy() {
            self.change(place, INTERFACE_DOWN);
        }
    }

    /// From the paths to the interface.
    fn read_paths(&mut self) {
        let mut buffer = [0; frames::LONGEST];
        for path in 0..self.paths.len() {
            while let Ok((length, from)) = self.paths[path].socket.recv_from(&mut buffer) {
                if from.ip() == self.settings.paths[path].remote {
                    self.receive(path, from, &buffer[..length]);
                }
            }
        }
    }

    fn receive(&mut self, path: usize, from: SocketAddr, bytes: &[u8]) {
        self.seen.push(Seen { path, from, bytes: bytes.to_vec() });
        let Some((number, packet)) = frames::open(bytes) else { return };
        if packet.first().is_some_and(|&first| first >= frames::CONTROL) {
            if packet[0] == frames::KEEPALIVE {
                self.paths[path].heard = self.seconds(Instant::now());
                if self.paths[path].status == DOWN {
                    self.paths[path].status = OK;
                }
            }
            return;
        }
        let mut ready = Vec::new();
        match number.filter(|_| self.settings.window > 0) {
            None => ready.push(packet.to_vec()),
            Some(number) => {
                self.reorder.receive(Instant::now(), path, number, packet, &mut ready);
            }
        }
        self.interface.write(&ready);
    }

    /// Each path's at its own pace, from the start on, and as long as it is in order or silent.
    fn send_keepalives(&mut self, now: Instant) {
        let [own, peer] = self.settings.tunnel;
        let frame = frames::keepalive(own, peer);
        for (path, settings) in self.paths.iter_mut().zip(&self.settings.paths) {
            if settings.keepalive == 0 || now < path.due {
                continue;
            }
            path.due += settings.keepalive * SECOND;
            if matches!(path.status, OK | DOWN) && !path.mute {
                let _ = path.socket.send_to(&frame, (settings.remote, self.settings.ports[1]));
            }
        }
    }

    /// Once per second: a silent path goes down. Before that, the peer is notified.
    fn look_for_the_dead(&mut self, now: Instant) {
        let second = self.seconds(now);
        if self.commands.is_busy() || self.looked.is_some_and(|looked| looked >= second) {
            return;
        }
        if self.looked.replace(second).is_none() {
            self.paths.iter_mut().for_each(|path| path.heard = second);
        }
        let dead = self.paths.iter().zip(&self.settings.paths).position(|(path, settings)| {
            path.status == OK && settings.dead > 0 && path.heard + settings.dead < second
        });
        if let Some(path) = dead {
            self.change(path, DOWN);
        }
    }

    /// Notifies the peer over another path that is up, and then sets the status.
    fn change(&mut self, path: usize, status: u8) {
        let is_down = status != OK;
        let mut others = self.paths.iter().enumerate();
        let over = others.find(|(other, it)| it.status == OK && !(is_down && *other == path));
        let to = over.map(|(over, _)| self.settings.paths[over].remote);
        let to = to.map(|to| SocketAddr::from((to, self.settings.command_ports[1])));
        let told = if is_down { DOWN } else { OK };
        let PathSettings { local, remote, .. } = self.settings.paths[path];
        let then = Then::SetStatus { path, status };
        self.commands.tell(Instant::now(), to, told, [local, remote], then);
    }

    fn follow(&mut self, updates: Option<PathUpdates>) {
        match updates {
            None | Some(PathUpdates::Over { then: Then::Nothing }) => {}
            Some(PathUpdates::Over { then: Then::SetStatus { path, status } }) => {
                self.set_status(path, status);
            }
            Some(PathUpdates::Told { status, remote, local }) => {
                for path in 0..self.paths.len() {
                    let PathSettings { local: own, remote: peer, .. } = self.settings.paths[path];
                    let is_it = [frames::wide(own), frames::wide(peer)] == [local, remote];
                    if is_it && self.paths[path].status != status {
                        self.set_status(path, status);
                    }
                }
            }
        }
    }

    fn set_status(&mut self, path: usize, status: u8) {
        self.paths[path].status = status;
        if status == OK {
            self.paths[path].heard = self.seconds(Instant::now());
        }
    }

    fn seconds(&self, now: Instant) -> u64 {
        (now.duration_since(self.started).as_nanos() / SECOND.as_nanos()) as u64
    }
}
