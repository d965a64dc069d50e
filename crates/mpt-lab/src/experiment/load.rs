//! The traffic of an experiment on its way between two hosts.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::plan::{Kind, Traffic};
use crate::lab::Host;
use crate::record::{FlowRecord, milliseconds};
use crate::system::Unavailable;
use crate::traffic::tcp::Transport;
use crate::traffic::{ping, tcp, udp};

/// Where traffic goes.
pub(super) struct Route<'a> {
    /// The sending host.
    pub(super) from: &'a Host,
    /// The receiving host.
    pub(super) to: &'a Host,
    /// The receiving host's address.
    pub(super) address: IpAddr,
    /// The one network device, by its name on either host, that may carry it.
    pub(super) device: Option<&'a str>,
    /// The protocol of streams.
    pub(super) transport: Transport,
}

/// Traffic under way.
pub(super) enum Load {
    Ping(ping::Ping),
    Tcp(Vec<tcp::Flow>),
    Udp(udp::Stream),
}

impl Load {
    /// Makes the sockets and starts to send.
    pub(super) fn start(route: &Route<'_>, traffic: &Traffic) -> Result<Self> {
        match traffic.kind {
            Kind::Ftp | Kind::Media | Kind::Quic => {
                Err(Unavailable("this traffic is not built in".into()).into())
            }
            Kind::Ping => Self::ping(route, traffic),
            Kind::Tcp => Self::tcp(route, traffic),
            Kind::Udp => Self::udp(route, traffic),
        }
    }

    fn ping(route: &Route<'_>, traffic: &Traffic) -> Result<Self> {
        let source = route.from.run(|| ping::Source::connect(route.address));
        let source = source.context("cannot open a raw ICMP socket")?;
        let options = ping::Options {
            count: (traffic.seconds / traffic.interval) as u32,
            interval: Duration::from_secs_f64(traffic.interval),
        };
        Ok(Self::Ping(ping::Ping::start(source, options)?))
    }

    fn tcp(route: &Route<'_>, traffic: &Traffic) -> Result<Self> {
        let flow = |_| {
            let sink =
                route.to.run(|| tcp::Sink::listen(route.transport, route.address, route.device))?;
            let remote = sink.address();
            let source = route.from.run(|| {
                tcp::Source::connect(route.transport, remote, route.device, &traffic.congestion)
            })?;
            tcp::Flow::start(sink, source, traffic.length())
        };
        Ok(Self::Tcp((0..traffic.flows).map(flow).collect::<Result<_, _>>()?))
    }

    fn udp(route: &Route<'_>, traffic: &Traffic) -> Result<Self> {
        let rate = (traffic.rate_mbps * 1e6) as u64;
        let options = udp::Options::at_rate(rate, traffic.size, traffic.length());
        let sink = route.to.run(|| udp::Sink::bind(route.address)).context("no UDP sink")?;
        let remote = sink.address();
        let source = route.from.run(|| udp::Source::connect(remote)).context("no UDP source")?;
        Ok(Self::Udp(udp::Stream::start(sink, source, options)?))
    }

    /// Bytes the receiving application has got so far.
    pub(super) fn received(&self) -> u64 {
        match self {
            Self::Ping(_) => 0,
            Self::Tcp(flows) => flows.iter().map(tcp::Flow::received).sum(),
            Self::Udp(stream) => stream.received(),
        }
    }

    /// Waits for the end, which comes by itself, and tells what became of the traffic.
    pub(super) fn finish(self, omit: Duration) -> Result<FlowRecord> {
        match self {
            Self::Ping(ping) => Ok(ping_record(ping.finish()?)),
            Self::Tcp(flows) => Ok(tcp_record(flows, omit)),
            Self::Udp(stream) => Ok(udp_record(stream.finish()?, omit)),
        }
    }
}

fn ping_record(report: ping::Report) -> FlowRecord {
    FlowRecord {
        rtt_ms: report.rtt_ms,
        jitter_ms: report.jitter_ms,
        pings: Some(report.sent),
        pings_lost: Some(report.lost),
        ..FlowRecord::default()
    }
}

fn tcp_record(flows: Vec<tcp::Flow>, omit: Duration) -> FlowRecord {
    // All flows end at about the same time, so waiting for one costs the others nothing.
    let reports: Vec<_> = flows.into_iter().map(tcp::Flow::finish).collect();
    let mut all = reports.iter().map(|report| &report.series);
    let Some(mut series) = all.next().cloned() else { return FlowRecord::default() };
    all.for_each(|flow| series.merge(flow));
    FlowRecord {
        retransmits: reports.iter().map(|report| report.retransmits).sum(),
        sender_rtt_ms: reports.first().and_then(|report| report.rtt).map(milliseconds),
        failure: reports.iter().find_map(|report| report.failure.clone()),
        ..FlowRecord::of_series(series, omit)
    }
}

fn udp_record(report: udp::Report, omit: Duration) -> FlowRecord {
    FlowRecord {
        order: Some(report.order),
        delay_ms: report.delay_ms,
        jitter_ms: report.jitter_ms,
        ..FlowRecord::of_series(report.series, omit)
    }
}
