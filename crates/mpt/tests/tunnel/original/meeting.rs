//! Our daemon at the left and the original at the right.

use std::net::IpAddr;
use std::time::Duration;

use mpt_lab::topology::Side;
use mpt_lab::traffic::udp;

use super::frames::Auth;
use super::machine::{self, Seen};
use super::peer::Peer;
use super::settings::{PathSettings, Settings};
use crate::site::{self, Machine, PATIENCE, Site, eventually, inner};

/// Data ports, ours and the original's.
pub(super) const PORTS: [u16; 2] = [23456, 23457];
/// Command ports, ours and the original's.
pub(super) const COMMAND_PORTS: [u16; 2] = [65050, 65051];

/// What the two have agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// IP version in the tunnel.
    pub(super) inner: u8,
    /// IP version of the paths.
    pub(super) outer: u8,
    /// Our window and the original's: an end with one sends sequence numbers.
    pub(super) windows: [u32; 2],
    pub(super) auth: Auth,
    /// Of either path, at both ends.
    pub(super) weights: [u64; 2],
    /// The original's `dead_time`, in its seconds; 0 = nothing but a command takes a path down there.
    pub(super) dead: u64,
    /// Further lines of our connection.
    pub(super) more: &'static str,
}

pub(super) const TERMS: Terms = Terms {
    inner: 4,
    outer: 4,
    windows: [900, 900],
    auth: Auth::None,
    weights: [1, 1],
    dead: 5,
    more: "",
};

pub(super) struct Meeting {
    peer: Option<Peer>,
    terms: Terms,
    pub(super) site: Site,
}

impl Meeting {
    /// Both, and both paths in order at both ends.
    pub(super) fn start(terms: Terms) -> Self {
        let mut meeting = Self::without_ours(terms);
        meeting.start_ours();
        meeting.await_all_up();
        meeting
    }

    /// The original alone.
    pub(super) fn without_ours(terms: Terms) -> Self {
        let site = Site::links_only(&site::two_links(terms.outer), "reorder = 1");
        let mut meeting = Self { peer: None, terms, site };
        meeting.start_peer();
        meeting
    }

    pub(super) fn start_ours(&mut self) {
        let config = self.config();
        self.site.start_daemon_with(Side::Left, &config);
    }

    pub(super) fn start_peer(&mut self) {
        self.start_peer_with(|_| {});
    }

    /// The original, its configuration edited.
    pub(super) fn start_peer_with(&mut self, edit: impl FnOnce(&mut Settings)) {
        let mut settings = self.settings();
        edit(&mut settings);
        self.peer = Some(Peer::start(self.site.lab.right(), settings));
    }

    /// Ends the original, without notifying the peer.
    pub(super) fn end_peer(&mut self) {
        self.peer = None;
    }

    pub(super) fn terms(&self) -> Terms {
        self.terms
    }

    pub(super) fn peer(&self) -> &Peer {
        self.peer.as_ref().expect("it runs")
    }

    /// The original's status of a path.
    pub(super) fn status(&self, path: usize) -> u8 {
        self.peer().machine().path(path).status
    }

    pub(super) fn await_status(&self, path: usize, status: u8) {
        eventually(&format!("path {path} has status {status:#x} at the original"), || {
            self.status(path) == status
        });
    }

    /// Waits until our path is in that state.
    pub(super) fn await_ours(&self, path: usize, state: &str) {
        eventually(&format!("path {path} is {state} at our end"), || {
            self.site.path(Side::Left, path).state == state
        });
    }

    pub(super) fn await_all_up(&self) {
        for path in 0..2 {
            self.await_ours(path, "up");
            self.await_status(path, machine::OK);
        }
    }

    /// `mpt path up|down` at the original, which ends when the peer has been notified or does not
    /// answer.
    pub(super) fn switch(&self, path: usize, up: bool) {
        self.await_idle();
        self.peer().machine().switch(path, up);
        self.await_idle();
    }

    /// Waits until the original has no active exchange.
    pub(super) fn await_idle(&self) {
        eventually("the original is idle", || !self.peer().machine().commands.is_busy());
    }

    /// Pings from one side to the other.
    pub(super) fn ping(&self, from: Side, count: u32) -> u32 {
        let to = if from == Side::Left { Side::Right } else { Side::Left };
        site::ping(self.site.lab.host(from), inner(to, self.terms.inner), count).lost
    }

    /// Numbered packets from one side to the other, one in a millisecond.
    pub(super) fn stream(&self, from: Side, length: Duration) -> udp::Stream {
        let to = if from == Side::Left { Side::Right } else { Side::Left };
        let address = inner(to, self.terms.inner);
        let lab = &self.site.lab;
        let sink = lab.host(to).run(|| udp::Sink::bind(address)).expect("a sink");
        let remote = sink.address();
        let source = lab.host(from).run(|| udp::Source::connect(remote)).expect("a source");
        let options = udp::Options { interval: Duration::from_millis(1), size: 1000, length };
        udp::Stream::start(sink, source, options).expect("a stream")
    }

    /// Asserts that everything arrives at the other side, once and in order.
    pub(super) fn assert_flawless(&self, from: Side) {
        let machine = Machine::watch(&self.site);
        machine.judge(&self.site, self.stream(from, Duration::from_millis(200)));
    }

    /// Our configuration.
    pub(super) fn config(&self) -> String {
        let Terms { inner, windows, auth, weights, more, .. } = self.terms;
        let auth = match auth {
            Auth::None => "{ type = 'none' }".to_owned(),
            Auth::Random => "{ type = 'random' }".to_owned(),
            Auth::Sha256(key) => format!("{{ type = 'sha256', key = '{key}' }}"),
        };
        let address = site::inner(Side::Right, inner);
        let connection = format!(
            "peer = 'mpt-original'\npeer_addresses = ['{address}']\n\
             local_port = {}\nremote_port = {}\ncommand_port = {}\nremote_command_port = {}\n\
             auth = {auth}\nreorder = {{ window = {}, max_delay = 1 }}\n{more}\n",
            PORTS[0], PORTS[1], COMMAND_PORTS[0], COMMAND_PORTS[1], windows[0]
        );
        let config = self.site.config(Side::Left);
        let config = config.replace("peer = ['10.9.0.2', 'fd00:9::2']\nreorder = 1\n", &connection);
        ["one", "two"].into_iter().zip(weights).fold(config, |config, (name, weight)| {
            let name = format!("name = '{name}'\n");
            config.replace(&name, &format!("{name}weight = {weight}\n"))
        })
    }

    /// The original's configuration.
    fn settings(&self) -> Settings {
        let Terms { inner, windows, auth, weights, dead, .. } = self.terms;
        let topology = self.site.lab.topology();
        let path = |(index, weight): (usize, u64)| PathSettings {
            interface: topology.links[index].name.clone(),
            local: topology.address(Side::Right, index),
            remote: topology.address(Side::Left, index),
            weight,
            keepalive: 1,
            dead,
        };
        let swapped = |[ours, theirs]: [u16; 2]| [theirs, ours];
        let tunnel: [IpAddr; 2] = [Side::Right, Side::Left].map(|side| site::inner(side, inner));
        Settings {
            tunnel,
            ports: swapped(PORTS),
            command_ports: swapped(COMMAND_PORTS),
            window: windows[1],
            // A machine that stands still for a while must not look like a network that loses packets.
            delay: PATIENCE / 20,
            auth,
            paths: weights.into_iter().enumerate().map(path).collect(),
        }
    }
}

/// What the original has seen of us.
impl Meeting {
    /// What is no keepalive, in the order in which it came.
    pub(super) fn data(&self) -> Vec<Seen> {
        let machine = self.peer().machine();
        machine.seen.iter().filter(|seen| !seen.is_keepalive()).cloned().collect()
    }

    /// How many packets came over a path.
    pub(super) fn carried(&self, path: usize) -> usize {
        self.data().iter().filter(|seen| seen.path == path).count()
    }

    /// How many keepalives came over a path.
    pub(super) fn keepalives(&self, path: usize) -> usize {
        let machine = self.peer().machine();
        machine.seen.iter().filter(|seen| seen.path == path && seen.is_keepalive()).count()
    }
}
