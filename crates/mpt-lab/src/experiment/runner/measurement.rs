//! The measurement of one step: traffic over a link alone, or over a system of all links.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};

use super::Bench;
use super::names::file_name;
use crate::capture::Capture;
use crate::cell::configuration::TUNNEL;
use crate::cell::ideal::{self, Ideal};
use crate::cell::{Cell, Cut, Event, Outage, Traffic};
use crate::daemon::Tracer;
use crate::experiment::beside::Stream;
use crate::experiment::follow::{Action, follow, of_cuts, of_events};
use crate::experiment::load::{Load, Route};
use crate::experiment::outcome::{add_settling, cost, doubts, rate_against};
use crate::experiment::rival;
use crate::experiment::step::{self, Subject};
use crate::experiment::watch::Step;
use crate::lab::Lab;
use crate::processor;
use crate::record::{CutRecord, EventRecord, FlowRecord, OutageRecord, Run};
use crate::system::{Running, System, sides};
use crate::topology::Side;
use crate::traffic::tcp::Transport;

impl Bench<'_> {
    /// Measures a step in this lab.
    pub(super) fn attempt(
        &mut self,
        lab: &Lab,
        cell: &Cell,
        step: &step::Step,
        title: &str,
    ) -> Result<Run> {
        match &step.subject {
            Subject::Alone(link) => self.alone(lab, cell, *link, title, &step.traffic),
            Subject::System(system) => self.system(lab, cell, system, title),
        }
    }

    /// The traffic over one link, without anything between.
    fn alone(
        &mut self,
        lab: &Lab,
        cell: &Cell,
        link: usize,
        title: &str,
        traffic: &Traffic,
    ) -> Result<Run> {
        let (from, to) = sides(traffic.direction);
        let route = Route {
            from: lab.host(from),
            to: lab.host(to),
            address: lab.host(to).address(link),
            device: Some(lab.link(link).name()),
            transport: Transport::Tcp,
            sender: lab.host(from).address(link),
            receivers: vec![lab.host(to).address(link)],
            mptcp: None,
        };
        let mut run = Run::default();
        let (flow, _) = self.step(lab, cell, title, &route, traffic, None, &[], &mut run)?;
        rate_against(&mut run, &flow, Ideal::alone(cell, link));
        run.reasons.extend(doubts(&flow, &[]));
        run.flow = flow;
        Ok(run)
    }

    /// The cell's traffic over a system that uses all links.
    fn system(&mut self, lab: &Lab, cell: &Cell, system: &System, title: &str) -> Result<Run> {
        let running = Running::start(system, lab, cell, self.binary, self.stop)?;
        let (from, to) = sides(cell.traffic.direction);
        let route = Route {
            from: lab.host(from),
            to: lab.host(to),
            address: running.address(to, cell),
            device: None,
            transport: running.transport(),
            sender: running.address(from, cell),
            receivers: running.receivers(lab.host(to), cell),
            mptcp: running.mptcp(),
        };
        let mut run = Run::default();
        let before = running.snapshot()?;
        let links_before = lab.reports();
        let daemons_before = running.processor()?;
        let actions = of_events(&cell.events);
        let tracer = match &self.traces {
            Some(folder) => {
                let name = file_name(lab, &self.experiment, title);
                running.trace(self.binary, &folder.join(format!("{name}.jsonl")))?
            }
            None => None,
        };
        let (flow, events) =
            self.step(lab, cell, title, &route, &cell.traffic, Some(&running), &actions, &mut run)?;
        if let Some(Err(error)) = tracer.map(Tracer::finish) {
            run.reasons.push(format!("the trace is not whole: {error:#}"));
        }
        let daemons_after = running.processor()?;
        (run.paths, run.daemons) = running.since(&before)?;
        run.events = events;
        if let (Some(before), Some(after)) = (daemons_before, daemons_after) {
            let spent = |side: usize| after[side].saturating_sub(before[side]).as_secs_f64();
            run.processor.left += spent(0);
            run.processor.right += spent(1);
            run.processor.total += spent(0) + spent(1);
        }
        if let Some(outage) = cell.outage.as_ref().filter(|outage| outage.is_of(system)) {
            let (record, reasons) = self.outage(lab, cell, outage, &route, title)?;
            run.outage = Some(record);
            run.reasons.extend(reasons);
        }
        run.inner_mtu = running.inner_mtu();
        if let Some(framing) = running.framing() {
            add_settling(&mut run.events, &flow, cell, framing);
        }
        let ideal = running.framing().and_then(|framing| Ideal::of(cell, framing));
        rate_against(&mut run, &flow, ideal);
        run.flow = flow;
        run.reasons.extend(running.remarks());
        run.reasons.extend(running.unused(&run.emulator, &links_before, cell.traffic.direction));
        running.terminate()?;
        run.reasons.extend(doubts(&run.flow, &run.paths));
        Ok(run)
    }

    /// TCP over a system while links fail.
    fn outage(
        &mut self,
        lab: &Lab,
        cell: &Cell,
        outage: &Outage,
        route: &Route<'_>,
        title: &str,
    ) -> Result<(OutageRecord, Vec<String>)> {
        let traffic = outage.traffic(&cell.traffic);
        let title = format!("{title}, while links fail");
        let actions = of_cuts(&outage.cuts);
        let mut run = Run::default();
        let (flow, _) = self.step(lab, cell, &title, route, &traffic, None, &actions, &mut run)?;
        let cut = |cut: &Cut| {
            let name = lab.link(cut.link).name();
            Some(CutRecord::of_series(flow.series.as_ref()?, traffic.omitted(), cut, name))
        };
        run.reasons.extend(doubts(&flow, &[]));
        let cuts = outage.cuts.iter().filter_map(cut).collect();
        Ok((OutageRecord { cuts, flow }, run.reasons))
    }

    /// Runs and monitors traffic; returns the results of it and of every event of the cell.
    #[expect(clippy::too_many_arguments, reason = "everything that a measurement depends on")]
    fn step(
        &mut self,
        lab: &Lab,
        cell: &Cell,
        title: &str,
        route: &Route<'_>,
        traffic: &Traffic,
        running: Option<&Running>,
        actions: &[Action],
        run: &mut Run,
    ) -> Result<(FlowRecord, Vec<EventRecord>)> {
        self.stop.check()?;
        self.watch.on_step(&Step {
            title: title.to_owned(),
            number: self.progress.number(),
            count: self.progress.count(),
            length: traffic.length(),
            remaining: self.progress.remaining(),
            links: lab.links().iter().map(|wire| wire.name().to_owned()).collect(),
            rates: ideal::rates(cell),
        });
        lab.links().iter().for_each(|wire| wire.restart_record());
        let costs = [processor::own()?, processor::emulator()?];
        let began = Instant::now();
        let name = &self.experiment;
        let capture = self.captures.as_ref().map(|folder| capture(folder, lab, name, title));
        let capture = capture.transpose()?;
        let load = Load::start(route, traffic).with_context(|| title.to_owned())?;
        let beside = Stream::start(route, traffic).with_context(|| title.to_owned())?;
        let rival = rival::Flow::start(lab, cell, running, traffic);
        let rival = rival.with_context(|| title.to_owned())?;
        let direction = traffic.direction;
        let trace =
            follow(lab, &load, direction, traffic.length(), actions, self.stop, self.watch)?;
        run.emulator = lab.reports();
        let reasons = run.emulator.iter().flat_map(|report| &report.reasons);
        run.reasons.extend(reasons.cloned());
        let mut flow = load.finish(traffic.omitted())?;
        if traffic.long_seconds.is_some() {
            flow = flow.of_long_run(traffic.omitted(), traffic.measured(), cell.scale);
        }
        let goodput = flow.goodput_mbps;
        flow.rival = rival.and_then(|rival| rival.finish(traffic.omitted(), goodput));
        if let Some(beside) = beside {
            let base = ideal::least_delay(cell);
            flow.beside = Some(beside.finish(traffic.omitted(), base, cell)?);
        }
        if let Some(capture) = capture {
            let summary = capture.finish()?;
            if summary.dropped() > 0 {
                run.reasons.push(format!("{} packets are not in the capture", summary.dropped()));
            }
        }
        let (from, _) = sides(direction);
        run.processor = cost(costs, began.elapsed(), &flow, from == Side::Left)?;
        self.progress.finish(traffic.length());
        self.watch.on_result(flow.goodput_mbps);
        let events: &[Event] = if actions.is_empty() { &[] } else { &cell.events };
        let name = |link: usize| lab.link(link).name().to_owned();
        Ok((flow, trace.records(events, name)))
    }
}

/// Captures everything that passes from here on, in a file named after the step.
fn capture(folder: &Path, lab: &Lab, experiment: &str, title: &str) -> Result<Capture> {
    let file = folder.join(format!("{}.pcapng", file_name(lab, experiment, title)));
    let tuns: &[&str] = if lab.left().run(has_tunnel) { &[TUNNEL] } else { &[] };
    Capture::start(lab, &file, tuns)
}

/// Whether the host of the calling thread has the interface of a tunnel.
fn has_tunnel() -> bool {
    Path::new("/proc/thread-self/net/dev_snmp6").join(TUNNEL).exists()
}
