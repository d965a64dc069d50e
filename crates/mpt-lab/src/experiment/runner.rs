//! The run that answers an experiment's question, step by step.

use std::mem;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::configuration::inner_address;
use super::follow::follow;
use super::ideal::{self, Ideal};
use super::load::{Load, Route};
use super::pair::{Pair, sides};
use super::plan::{Cut, Experiment, Kind, Outage, Traffic};
use super::stop::Stop;
use super::watch::{Step, Watch};
use crate::lab::Lab;
use crate::record::{
    CutRecord, FlowRecord, OutageRecord, PathRecord, Record, Repetition, megabits,
};
use crate::topology::Topology;

/// The shortest flow that measures a link: start-up and eight seconds of goodput.
const LEAST_LINK_SECONDS: f64 = 10.0;

/// Runs an experiment with the daemon's binary and tells what it found.
///
/// Needs the rights of [`crate::privilege`]. It takes about the sum of the traffic's lengths, and
/// whatever it makes is gone when it returns.
///
/// # Errors
///
/// What could not be set up, with the remedy where one is known; [`super::stop::Interrupted`] if
/// `stop` was set.
pub fn run(
    experiment: &Experiment,
    binary: &Path,
    stop: &Stop,
    watch: &mut dyn Watch,
) -> Result<Record> {
    let mut run = Run { experiment, binary, stop, watch, done: 0, doubts: Vec::new() };
    let repetitions = (0..experiment.repetitions)
        .map(|number| run.repetition(experiment.topology.seed.wrapping_add(number.into())))
        .collect::<Result<Vec<_>>>();
    if repetitions.is_err() {
        // Ctrl-C reaches the daemons too; that they are gone is then not what went wrong.
        stop.check()?;
    }
    Ok(Record::new(experiment, repetitions?))
}

struct Run<'a> {
    experiment: &'a Experiment,
    binary: &'a Path,
    stop: &'a Stop,
    watch: &'a mut dyn Watch,
    /// Steps behind us.
    done: usize,
    /// What the emulator doubts of the steps of this repetition.
    doubts: Vec<String>,
}

impl Run<'_> {
    fn repetition(&mut self, seed: u64) -> Result<Repetition> {
        let topology = Topology { seed, ..self.experiment.topology.clone() };
        let lab = Lab::start(&topology)?;
        let links = (0..topology.links.len()).map(|link| self.link_alone(&lab, link));
        let links = links.collect::<Result<Vec<_>>>()?;

        let pair = Pair::start(&lab, self.experiment, self.binary, self.stop)?;
        let inner_mtu = pair.inner_mtu()?;
        let before = pair.snapshot()?;
        let tunnel = self.tunnel(&lab)?;
        let (paths, daemons) = pair.since(&before)?;
        let emulator = lab.reports();
        let outage = self.experiment.outage.as_ref();
        let outage = outage.map(|outage| self.outage(&lab, outage)).transpose()?;
        pair.terminate()?;

        let mut reasons = mem::take(&mut self.doubts);
        reasons.extend(doubts(&links, &tunnel, &paths));
        let mtu = u32::try_from(inner_mtu).context("the daemon tells an impossible inner MTU")?;
        let ideal = Ideal::of(self.experiment, mtu);
        let ratio = |whole: fn(Ideal) -> f64| {
            Some(tunnel.goodput_mbps? / megabits(whole(ideal?))).filter(|ratio| ratio.is_finite())
        };
        Ok(Repetition {
            seed,
            inner_mtu,
            ideal_mbps: ideal.map(|ideal| megabits(ideal.goodput)),
            bound_mbps: ideal.map(|ideal| megabits(ideal.bound)),
            efficiency: ratio(|ideal| ideal.goodput),
            yields: ratio(|ideal| ideal.link_rates),
            links,
            tunnel,
            paths,
            daemons,
            outage,
            emulator,
            reasons,
        })
    }

    /// Plain TCP over one link, without any tunnel.
    fn link_alone(&mut self, lab: &Lab, link: usize) -> Result<FlowRecord> {
        let (from, to) = sides(self.experiment.traffic.direction);
        let device = lab.link(link).name();
        let route = Route {
            from: lab.host(from),
            to: lab.host(to),
            address: lab.host(to).address(link),
            device: Some(device),
        };
        let traffic = link_traffic(&self.experiment.traffic);
        self.step(lab, &format!("link {device} alone"), &route, &traffic, &[])
    }

    /// The experiment's traffic over the tunnel.
    fn tunnel(&mut self, lab: &Lab) -> Result<FlowRecord> {
        let traffic = self.experiment.traffic.clone();
        let count = lab.links().len();
        let title = if count == 1 { "tunnel".into() } else { format!("tunnel over {count} links") };
        self.step(lab, &title, &self.through_the_tunnel(lab), &traffic, &[])
    }

    /// TCP over the tunnel while links fail.
    fn outage(&mut self, lab: &Lab, outage: &Outage) -> Result<OutageRecord> {
        let traffic = outage_traffic(&self.experiment.traffic, outage);
        let route = self.through_the_tunnel(lab);
        let flow = self.step(lab, "tunnel while links fail", &route, &traffic, &outage.cuts)?;
        let cut = |cut: &Cut| {
            let name = lab.link(cut.link).name();
            Some(CutRecord::of_series(flow.series.as_ref()?, traffic.omitted(), cut, name))
        };
        Ok(OutageRecord { cuts: outage.cuts.iter().filter_map(cut).collect(), flow })
    }

    fn through_the_tunnel<'l>(&self, lab: &'l Lab) -> Route<'l> {
        let (from, to) = sides(self.experiment.traffic.direction);
        Route {
            from: lab.host(from),
            to: lab.host(to),
            address: inner_address(to, self.experiment.tunnel.inner),
            device: None,
        }
    }

    fn step(
        &mut self,
        lab: &Lab,
        title: &str,
        route: &Route<'_>,
        traffic: &Traffic,
        cuts: &[Cut],
    ) -> Result<FlowRecord> {
        self.stop.check()?;
        let lengths = lengths(self.experiment);
        self.watch.on_step(&Step {
            title: title.to_owned(),
            number: self.done + 1,
            count: lengths.len(),
            length: traffic.length(),
            remaining: lengths[self.done..].iter().sum(),
            links: lab.links().iter().map(|wire| wire.name().to_owned()).collect(),
            rates: ideal::rates(self.experiment),
        });
        lab.links().iter().for_each(|wire| wire.restart_record());
        let load = Load::start(route, traffic).with_context(|| title.to_owned())?;
        let direction = traffic.direction;
        follow(lab, &load, direction, traffic.length(), cuts, self.stop, self.watch)?;
        let reports = lab.reports();
        let reasons = reports.iter().flat_map(|report| &report.reasons);
        self.doubts.extend(reasons.map(|reason| format!("{title}: {reason}")));
        let flow = load.finish(traffic.omitted())?;
        self.done += 1;
        self.watch.on_result(flow.goodput_mbps);
        Ok(flow)
    }
}

/// Every link is measured with TCP, whatever goes through the tunnel.
fn link_traffic(traffic: &Traffic) -> Traffic {
    let seconds = traffic.seconds.max(LEAST_LINK_SECONDS);
    Traffic { kind: Kind::Tcp, seconds, ..traffic.clone() }
}

fn outage_traffic(traffic: &Traffic, outage: &Outage) -> Traffic {
    Traffic { kind: Kind::Tcp, seconds: outage.seconds, ..traffic.clone() }
}

/// How long each step of the whole run takes, one after the other.
fn lengths(experiment: &Experiment) -> Vec<Duration> {
    let traffic = &experiment.traffic;
    let mut once = vec![link_traffic(traffic).length(); experiment.topology.links.len()];
    once.push(traffic.length());
    once.extend(experiment.outage.iter().map(|outage| outage_traffic(traffic, outage).length()));
    once.repeat(experiment.repetitions as usize)
}

/// What makes a result doubtful beyond the emulator's own doubts.
fn doubts(links: &[FlowRecord], tunnel: &FlowRecord, paths: &[PathRecord]) -> Vec<String> {
    let failures = links.iter().chain([tunnel]).filter_map(|flow| flow.failure.as_ref());
    let failures = failures.map(|failure| format!("a flow ended early: {failure}"));
    let idle = paths.iter().filter(|path| path.sent_packets == 0);
    let idle = idle.map(|path| format!("path `{}` ({}) carried nothing", path.name, path.state));
    failures.chain(idle).collect()
}
