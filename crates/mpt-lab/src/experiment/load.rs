//! The traffic of an experiment on its way between two hosts.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::cell::{Kind, Traffic};
use crate::lab::Host;
use crate::lab::mptcp::Mptcp;
use crate::record::{CallsRecord, FlowRecord, StreamRecord, megabits, milliseconds};
use crate::system::Unavailable;
use crate::traffic::series::Series;
use crate::traffic::tcp::Transport;
use crate::traffic::{calls, ftp, media, ping, quic, tcp, udp};

/// Decides the sizes of video frames: every system shows the same film.
const FILM: u64 = 1;
/// Bytes in a megabyte, as files are counted.
const MEGA: u64 = 1_000_000;

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
    /// The sending host's address as the receiving one sees it.
    pub(super) sender: IpAddr,
    /// The receiving host's addresses as the sending one may see them.
    pub(super) receivers: Vec<IpAddr>,
    /// How Multipath TCP was allowed, if it was.
    pub(super) mptcp: Option<&'a Mptcp>,
}

impl Route<'_> {
    /// The sockets of a UDP stream.
    pub(super) fn stream(&self) -> Result<media::Ends> {
        stream_ends(self.from, self.to, self.address)
    }

    /// Those of one in the other direction.
    fn stream_back(&self) -> Result<media::Ends> {
        stream_ends(self.to, self.from, self.sender)
    }
}

fn stream_ends(from: &Host, to: &Host, address: IpAddr) -> Result<media::Ends> {
    let sink = to.run(|| udp::Sink::bind(address)).context("no UDP sink")?;
    let remote = sink.address();
    let source = from.run(|| udp::Source::connect(remote)).context("no UDP source")?;
    Ok(media::Ends { sink, source })
}

/// Traffic under way.
pub(super) enum Load {
    Calls(calls::Calls),
    /// The download, and the server it comes from.
    Ftp(ftp::Download, #[expect(dead_code, reason = "it serves until it is dropped")] ftp::Server),
    Media(media::Media),
    Ping(ping::Ping),
    Quic(Vec<quic::Flow>),
    Tcp(Vec<tcp::Flow>),
    Udp(udp::Stream),
}

impl Load {
    /// Makes the sockets and starts to send.
    pub(super) fn start(route: &Route<'_>, traffic: &Traffic) -> Result<Self> {
        match traffic.kind {
            Kind::Calls => Self::calls(route, traffic),
            Kind::Ftp => Self::ftp(route, traffic),
            Kind::Media => Self::media(route, traffic),
            Kind::Quic => Self::quic(route, traffic),
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
        // All connect before any sends, and have one origin: their series are added up.
        let ends = (0..traffic.flows).map(|_| Self::tcp_ends(route, traffic));
        let ends = ends.collect::<Result<Vec<_>>>()?;
        let origin = Instant::now();
        let flows = ends
            .into_iter()
            .map(|(sink, source)| Ok(tcp::Flow::start_at(origin, sink, source, traffic.length())?));
        Ok(Self::Tcp(flows.collect::<Result<_>>()?))
    }

    pub(super) fn tcp_ends(
        route: &Route<'_>,
        traffic: &Traffic,
    ) -> Result<(tcp::Sink, tcp::Source)> {
        let listen = || tcp::Sink::listen(route.transport, route.address, route.device);
        let sink = route.to.run(listen)?;
        let remote = sink.address();
        let connect =
            || tcp::Source::connect(route.transport, remote, route.device, &traffic.congestion);
        Ok((sink, route.from.run(connect)?))
    }

    /// The sending host serves, the receiving one fetches.
    fn ftp(route: &Route<'_>, traffic: &Traffic) -> Result<Self> {
        let mptcp = route.mptcp.cloned();
        // One program for all systems, if there is one that can serve them all.
        let program = ftp::Program::find(true).or_else(|_| ftp::Program::find(mptcp.is_some()));
        let program = program.map_err(|why| Unavailable(format!("{why}; {}", why.remedy())))?;
        ftp::send_with(route.from, &route.receivers, &traffic.congestion)?;
        let address = route.sender;
        let options = ftp::Options { program, address, bytes: traffic.file_mb * MEGA, mptcp };
        let server = match ftp::Server::start(route.from, options) {
            Ok(server) => server,
            Err(ftp::StartError::Unavailable(why)) => {
                return Err(Unavailable(why.to_string()).into());
            }
            Err(ftp::StartError::Failed(error)) => return Err(error),
        };
        let client = route.to.run(|| ftp::Client::connect(&server, route.device))?;
        Ok(Self::Ftp(ftp::Download::start(client, traffic.length())?, server))
    }

    fn calls(route: &Route<'_>, traffic: &Traffic) -> Result<Self> {
        let call = |_| Ok(calls::Call { there: route.stream()?, back: route.stream_back()? });
        let all = (0..traffic.flows).map(call).collect::<Result<_>>()?;
        Ok(Self::Calls(calls::Calls::start(all, traffic.length())?))
    }

    fn media(route: &Route<'_>, traffic: &Traffic) -> Result<Self> {
        let bulk = Self::tcp_ends(route, traffic)?;
        let options = media::Options { length: traffic.length(), seed: FILM };
        Ok(Self::Media(media::Media::start(route.stream()?, route.stream()?, Some(bulk), options)?))
    }

    fn quic(route: &Route<'_>, traffic: &Traffic) -> Result<Self> {
        let congestion: quic::Congestion = traffic.congestion.parse()?;
        let ready = |_| -> Result<quic::Ready> {
            let sink = route.to.run(|| quic::Sink::listen(route.address, route.device))?;
            let remote = sink.address();
            let connect = || quic::Source::connect(remote, route.device, congestion);
            let source = route.from.run(connect)?;
            Ok(quic::Ready::connect(sink, source)?)
        };
        let all = (0..traffic.flows).map(ready).collect::<Result<Vec<_>>>()?;
        let origin = Instant::now();
        let flows = all.into_iter().map(|ready| ready.begin(origin, traffic.length()));
        Ok(Self::Quic(flows.collect()))
    }

    fn udp(route: &Route<'_>, traffic: &Traffic) -> Result<Self> {
        let rate = (traffic.rate_mbps * 1e6) as u64;
        let options = udp::Options::at_rate(rate, traffic.size, traffic.length());
        let media::Ends { sink, source } = route.stream()?;
        Ok(Self::Udp(udp::Stream::start(sink, source, options)?))
    }

    /// Bytes the receiving application has got so far.
    pub(super) fn received(&self) -> u64 {
        match self {
            Self::Calls(calls) => calls.received(),
            Self::Ftp(download, _) => download.received(),
            Self::Media(media) => media.received(),
            Self::Ping(_) => 0,
            Self::Quic(flows) => flows.iter().map(quic::Flow::received).sum(),
            Self::Tcp(flows) => flows.iter().map(tcp::Flow::received).sum(),
            Self::Udp(stream) => stream.received(),
        }
    }

    /// Whether it is over before its time: a file has an end.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Ftp(download, _) => download.is_over(),
            Self::Calls(_)
            | Self::Media(_)
            | Self::Ping(_)
            | Self::Quic(_)
            | Self::Tcp(_)
            | Self::Udp(_) => false,
        }
    }

    /// Waits for the end, which is scheduled, and returns the result of the traffic.
    pub(super) fn finish(self, omit: Duration) -> Result<FlowRecord> {
        match self {
            Self::Calls(calls) => Ok(calls_record(calls.finish()?, omit)),
            Self::Ftp(download, _) => Ok(ftp_record(download.finish(), omit)),
            Self::Media(media) => Ok(media_record(media.finish()?, omit)),
            Self::Ping(ping) => Ok(ping_record(ping.finish()?)),
            Self::Quic(flows) => Ok(quic_record(flows, omit)),
            // All flows end at about the same time, so waiting for one costs the others nothing.
            Self::Tcp(flows) => {
                Ok(tcp_record(flows.into_iter().map(tcp::Flow::finish).collect(), omit))
            }
            Self::Udp(stream) => Ok(udp_record(stream.finish()?, omit)),
        }
    }
}

fn calls_record(report: calls::Report, omit: Duration) -> FlowRecord {
    let calls::Report { all, mos, seconds_mos, dropped } = report;
    FlowRecord {
        voice: Some(stream_record(&all, Some(mos))),
        calls: Some(CallsRecord { dropped, omit: omit.as_secs_f64(), seconds_mos }),
        ..FlowRecord::default()
    }
}

fn stream_record(stream: &media::StreamReport, mos: Option<f64>) -> StreamRecord {
    StreamRecord {
        delay_ms: stream.delay_ms,
        lost_share: stream.lost_share,
        late_share: stream.late_share,
        mos,
    }
}

fn ftp_record(report: ftp::Report, omit: Duration) -> FlowRecord {
    let seconds = report.duration.as_secs_f64();
    let whole = report.failure.is_none() && seconds > 0.0;
    let rate = megabits(report.bytes as f64 * 8.0 / seconds);
    FlowRecord {
        goodput_mbps: whole.then_some(rate),
        download_mbps: whole.then_some(rate),
        download_seconds: whole.then_some(seconds),
        failure: report.failure,
        // The server is a separate program, whose time is not counted. The start-up cannot be
        // measured by the end of a file.
        startup_seconds: None,
        ..FlowRecord::of_series(report.series, omit)
    }
}

fn media_record(report: media::Report, omit: Duration) -> FlowRecord {
    FlowRecord {
        voice: Some(stream_record(&report.voice, Some(report.hearing.mos))),
        video: Some(stream_record(&report.video, None)),
        ..report.bulk.map_or_else(FlowRecord::default, |bulk| tcp_record(vec![bulk], omit))
    }
}

fn quic_record(flows: Vec<quic::Flow>, omit: Duration) -> FlowRecord {
    let reports: Vec<_> = flows.into_iter().map(quic::Flow::finish).collect();
    let Some(series) = merged(reports.iter().map(|report| &report.series)) else {
        return FlowRecord::default();
    };
    let seconds = |time: fn(&quic::Report) -> Duration| {
        reports.iter().map(|report| time(report).as_secs_f64()).sum()
    };
    FlowRecord {
        retransmits: Some(reports.iter().map(|report| report.lost_packets).sum()),
        sender_rtt_ms: reports.first().map(|report| milliseconds(report.rtt)),
        sender_seconds: seconds(|report| report.sender_processor),
        receiver_seconds: seconds(|report| report.receiver_processor),
        failure: reports.iter().find_map(|report| report.failure.clone()),
        ..FlowRecord::of_series(series, omit)
    }
}

/// The series of flows that ran together, as one.
fn merged<'a>(mut all: impl Iterator<Item = &'a Series>) -> Option<Series> {
    let mut series = all.next().cloned()?;
    all.for_each(|flow| series.merge(flow));
    Some(series)
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

fn tcp_record(reports: Vec<tcp::Report>, omit: Duration) -> FlowRecord {
    let Some(series) = merged(reports.iter().map(|report| &report.series)) else {
        return FlowRecord::default();
    };
    let seconds = |time: fn(&tcp::Report) -> Duration| {
        reports.iter().map(|report| time(report).as_secs_f64()).sum()
    };
    FlowRecord {
        retransmits: reports.iter().map(|report| report.retransmits).sum(),
        sender_rtt_ms: reports.first().and_then(|report| report.rtt).map(milliseconds),
        sender_seconds: seconds(|report| report.sender_processor),
        receiver_seconds: seconds(|report| report.receiver_processor),
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
