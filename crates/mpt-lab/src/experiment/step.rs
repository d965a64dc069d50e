//! What is measured in a cell, and when two measurements are the same.

use std::fs;
use std::time::Duration;

use serde::Serialize;

use super::plan::Experiment;
use crate::cell::{Cell, Kind, Outage, Traffic, Tunnel};
use crate::digest::sha256;
use crate::lab::Backend;
use crate::record::ALONE;
use crate::system::System;
use crate::topology::{Addressing, LinkSpec};

/// The shortest flow that measures a link: start-up and eight seconds of goodput.
const LEAST_LINK_SECONDS: f64 = 10.0;

/// What a step is about.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    /// The link of that number.
    Alone(usize),
    /// A system over all links.
    System(System),
}

/// One measurement of a cell.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) subject: Subject,
    /// The name in records.
    pub(super) name: String,
    /// What is sent.
    pub(super) traffic: Traffic,
    /// Equal for two steps that measure the same.
    pub(super) key: String,
    /// Why it cannot be measured; `None` if it can.
    pub(super) unfit: Option<String>,
    /// How long a flow during an outage takes beside it.
    outage: Duration,
}

/// So many hexadecimal digits of a digest tell all questions apart that anybody will ask.
const DIGITS: usize = 16;

impl Step {
    /// What [`SystemRecord::key`](crate::results::SystemRecord::key) says of it.
    pub(super) fn digest(&self, backend: Backend) -> String {
        let script = match &self.subject {
            Subject::System(System::External(external)) => fs::read(&external.script),
            Subject::System(_) | Subject::Alone(_) => Ok(Vec::new()),
        };
        // A script that is found elsewhere is known by its name alone.
        let script = sha256(&script.unwrap_or_default());
        let mut digest = sha256(format!("{} {script} {}", backend.name(), self.key).as_bytes());
        digest.truncate(DIGITS);
        digest
    }

    /// How long each of its flows takes, set-up not counted: one during an outage is another.
    pub(super) fn lengths(&self) -> impl Iterator<Item = Duration> {
        let outage = (!self.outage.is_zero()).then_some(self.outage);
        [self.traffic.length()].into_iter().chain(outage)
    }
}

/// The steps of a cell: links alone, then systems.
pub(super) fn steps(experiment: &Experiment, cell: &Cell, quick: bool) -> Vec<Step> {
    let links = if experiment.alone { cell.topology.links.len() } else { 0 };
    let alone = (0..links).map(|link| alone(cell, link, quick));
    alone.chain(experiment.systems.iter().map(|system| over_all(cell, system))).collect()
}

fn alone(cell: &Cell, link: usize, quick: bool) -> Step {
    let traffic = alone_traffic(&cell.traffic, quick);
    let key = Key {
        links: &[unnamed(&cell.topology.links[link])],
        addressing: Addressing::PerLink,
        system: None,
        tunnel: None,
        events: &"",
        traffic: &traffic,
        seed: cell.topology.seed,
    };
    Step {
        name: ALONE.into(),
        key: key.text(),
        subject: Subject::Alone(link),
        traffic,
        unfit: None,
        outage: Duration::ZERO,
    }
}

fn over_all(cell: &Cell, system: &System) -> Step {
    let links: Vec<_> = match system {
        System::External(_) => cell.topology.links.clone(),
        System::Adaptive
        | System::AdaptiveExtended
        | System::Classic
        | System::Mpt
        | System::Mptcp
        | System::Oracle => cell.topology.links.iter().map(unnamed).collect(),
    };
    let tunnel = match system {
        // A script gets the weights and the inner version, and the links' names.
        System::External(_) => Some(cell.tunnel.clone()),
        System::Adaptive
        | System::AdaptiveExtended
        | System::Classic
        | System::Mpt
        | System::Mptcp
        | System::Oracle => system.tunnel(cell),
    };
    let key = Key {
        links: &links,
        addressing: cell.topology.addressing,
        system: Some(system),
        tunnel: tunnel.as_ref(),
        events: &(&cell.events, &cell.outage),
        traffic: &cell.traffic,
        seed: cell.topology.seed,
    };
    let outage = cell.outage.as_ref().filter(|outage| outage.is_of(system));
    let outage = outage.map(|outage| outage.traffic(&cell.traffic).length());
    Step {
        name: system.name().to_owned(),
        key: key.text(),
        subject: Subject::System(system.clone()),
        traffic: cell.traffic.clone(),
        unfit: system.unfit(cell),
        outage: outage.unwrap_or_default(),
    }
}

/// The traffic over a link alone: the cell's own traffic if it is greedy or measures delay, or TCP.
fn alone_traffic(traffic: &Traffic, quick: bool) -> Traffic {
    let kind = match traffic.kind {
        Kind::Ping | Kind::Quic | Kind::Tcp => traffic.kind,
        Kind::Calls | Kind::Ftp | Kind::Media | Kind::Udp => Kind::Tcp,
    };
    let least = if quick || kind == Kind::Ping { 0.0 } else { LEAST_LINK_SECONDS };
    Traffic {
        kind,
        seconds: traffic.seconds.max(least),
        // One link has one delay.
        long_seconds: None,
        beside: None,
        rival: None,
        ..traffic.clone()
    }
}

/// A link but for its name, which changes nothing.
fn unnamed(link: &LinkSpec) -> LinkSpec {
    LinkSpec { name: String::new(), ..link.clone() }
}

/// All that a measurement depends on.
#[derive(Serialize)]
struct Key<'a, E: Serialize> {
    links: &'a [LinkSpec],
    addressing: Addressing,
    system: Option<&'a System>,
    tunnel: Option<&'a Tunnel>,
    events: &'a E,
    traffic: &'a Traffic,
    seed: u64,
}

impl<E: Serialize> Key<'_, E> {
    fn text(&self) -> String {
        serde_json::to_string(self).expect("plain data can be written as JSON")
    }
}

impl Outage {
    /// Whether a system has it.
    pub(super) fn is_of(&self, system: &System) -> bool {
        self.systems.is_empty() || self.systems.iter().any(|name| name == system.name())
    }

    /// The concurrent flow.
    pub(super) fn traffic(&self, traffic: &Traffic) -> Traffic {
        Traffic {
            kind: Kind::Tcp,
            seconds: self.seconds,
            long_seconds: None,
            beside: None,
            rival: None,
            ..traffic.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(changes: &str) -> Vec<String> {
        let text = format!(
            "title = 't'\nsystems = ['classic', 'mpt', 'mptcp']\n[[link]]\nname = 'a'\n\
             rate_mbps = 10\n[[link]]\nname = 'b'\nrate_mbps = 10\n{changes}"
        );
        let experiment = Experiment::parse("x", &text).unwrap_or_else(|error| panic!("{error}"));
        let steps = steps(&experiment, &experiment.cells[0], true);
        steps.into_iter().map(|step| step.key).collect()
    }

    #[test]
    fn equal_links_are_merged_and_the_kernel_has_no_window() {
        let plain = keys("");
        assert_eq!(plain[0], plain[1], "two links that differ in their names");
        let window = keys("[tunnel]\nreorder = { window = 9 }\n");
        assert_eq!(plain[0], window[0]);
        assert_ne!(plain[2], window[2], "classic has the experiment's window");
        assert_eq!(plain[3..], window[3..], "MPT with its own defaults, and MPTCP, have not");
        let bbr = keys("[traffic]\ncongestion = 'bbr'\n");
        assert!(plain.iter().zip(&bbr).all(|(a, b)| a != b));
    }
}
