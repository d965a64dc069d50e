//! A call and a film beside a download: traffic that people listen to and look at.
//!
//! Three things share the network. A voice stream of fifty packets a second, as a telephone with
//! G.711 sends; a video stream of 5 Mbit/s, whose packets come in a burst per frame; and, if
//! wanted, one greedy TCP flow. The two streams are [`udp`] streams with separate timetables.
//! Neither reacts to the network, so that all systems are measured with the same packets.
//!
//! What counts is when packets arrive and in what order. A call is moreover judged as a listener would,
//! by its score of the E-model ([`emodel`](super::emodel)).

mod video;
pub(super) mod voice;

use std::time::Duration;
use std::{io, iter};

use serde::Serialize;

use super::spread::Spread;
use super::{tcp, udp};
pub use voice::{Hearing, PLAYOUT};

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long.
    pub length: Duration,
    /// Decides the sizes of video frames. The same seed makes the same frames.
    pub seed: u64,
}

/// The two sockets of a stream, each made inside the namespace of its host.
#[derive(Debug)]
pub struct Ends {
    /// Where it arrives.
    pub sink: udp::Sink,
    /// Where it is sent.
    pub source: udp::Source,
}

/// Why media could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The TCP flow beside the streams could not be set up.
    #[error(transparent)]
    Bulk(#[from] tcp::SetupError),
    /// A stream could not be started.
    #[error("cannot start a media stream: {0}")]
    Stream(#[from] io::Error),
}

/// What became of all.
#[derive(Clone, Debug)]
pub struct Report {
    /// The call's packets.
    pub voice: StreamReport,
    /// What was heard of the call.
    pub hearing: Hearing,
    /// The film's packets.
    pub video: StreamReport,
    /// The TCP flow, if there was one.
    pub bulk: Option<tcp::Report>,
}

/// What became of the packets of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StreamReport {
    /// Packets that were due.
    pub packets: u64,
    /// One-way delay in milliseconds; `None` if nothing arrived.
    pub delay_ms: Option<Spread>,
    /// Packets that never arrived, or that the sender's kernel refused, ÷ packets that were due.
    pub lost_share: f64,
    /// Packets that were overtaken ÷ packets received (RFC 4737 section 4.1).
    pub late_share: f64,
    /// The largest reordering extent in packets (RFC 4737 section 4.2).
    pub reordering_extent: u64,
}

/// Media under way.
#[derive(Debug)]
pub struct Media {
    voice: udp::Stream,
    video: udp::Stream,
    bulk: Option<tcp::Flow>,
}

impl Media {
    /// Starts the streams, and the TCP flow between these ends if there are any.
    ///
    /// All begin at once, so a call lives through the flow's search for the rate of the network.
    ///
    /// # Errors
    ///
    /// The TCP connection was not made, or the kernel gave no thread.
    pub fn start(
        voice: Ends,
        video: Ends,
        bulk: Option<(tcp::Sink, tcp::Source)>,
        options: Options,
    ) -> Result<Self, SetupError> {
        let Options { length, seed } = options;
        let bulk = bulk.map(|(sink, source)| tcp::Flow::start(sink, source, length)).transpose()?;
        let video = udp::Stream::start(video.sink, video.source, video::timetable(length, seed))?;
        let voice = udp::Stream::start(voice.sink, voice.source, voice::timetable(length))?;
        Ok(Self { voice, video, bulk })
    }

    /// Payload bytes that have arrived so far, of all three.
    pub fn received(&self) -> u64 {
        let bulk = self.bulk.as_ref().map_or(0, tcp::Flow::received);
        self.voice.received() + self.video.received() + bulk
    }

    /// Waits for the end of the run, which comes by itself.
    ///
    /// # Errors
    ///
    /// A thread failed.
    pub fn finish(self) -> io::Result<Report> {
        // All end at about the same time, so waiting for one costs the others nothing.
        let bulk = self.bulk.map(tcp::Flow::finish);
        let voice = self.voice.finish()?;
        let video = self.video.finish()?;
        Ok(Report {
            voice: StreamReport::of(iter::once(&voice)),
            hearing: Hearing::of(&voice),
            video: StreamReport::of(iter::once(&video)),
            bulk,
        })
    }
}

impl StreamReport {
    /// What became of the packets of these streams, as if they were one.
    pub(super) fn of<'a>(streams: impl Iterator<Item = &'a udp::Report> + Clone) -> Self {
        let arrivals = streams.clone().flat_map(|stream| &stream.arrivals);
        let delays: Vec<_> = arrivals.map(|arrival| arrival.delay_ms).collect();
        let sum = |of: fn(&udp::Report) -> u64| streams.clone().map(of).sum::<u64>();
        let packets = sum(|stream| stream.order.sent + stream.refused);
        let lost = sum(|stream| stream.order.lost + stream.refused);
        let reordered = sum(|stream| stream.order.reordered);
        let share = |count: u64, of: u64| count as f64 / of.max(1) as f64;
        Self {
            packets,
            delay_ms: Spread::of(&delays),
            lost_share: share(lost, packets),
            late_share: share(reordered, sum(|stream| stream.order.received)),
            reordering_extent: streams.map(|it| it.order.reordering_extent).max().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const OPTIONS: Options = Options { length: Duration::from_secs(1), seed: 1 };

    #[test]
    fn over_loopback_all_arrives_and_a_call_is_as_good_as_it_gets() {
        let report = Media::start(ends(), ends(), None, OPTIONS).unwrap().finish().unwrap();
        assert_eq!((report.voice.packets, report.voice.lost_share), (50, 0.0));
        assert_eq!((report.video.lost_share, report.video.late_share), (0.0, 0.0));
        assert!(report.video.packets > 300 && report.video.delay_ms.is_some());
        assert!(report.bulk.is_none());
        assert!(report.hearing.call.delay >= PLAYOUT);
    }

    #[test]
    fn a_tcp_flow_runs_beside_them() {
        let transport = tcp::Transport::Tcp;
        let sink = tcp::Sink::listen(transport, Ipv4Addr::LOCALHOST.into(), None).unwrap();
        let source = tcp::Source::connect(transport, sink.address(), None, tcp::CUBIC).unwrap();
        let media = Media::start(ends(), ends(), Some((sink, source)), OPTIONS).unwrap();
        let report = media.finish().unwrap();
        let bulk = report.bulk.unwrap();
        assert_eq!(bulk.failure, None);
        assert!(bulk.series.goodput(Duration::ZERO) > 1e6);
        assert_eq!(report.voice.packets, 50);
    }

    #[test]
    fn unreceived_packets_are_lost_and_dropped_streams_stop() {
        let voice = ends();
        let elsewhere = udp::Sink::bind(Ipv4Addr::LOCALHOST.into()).unwrap();
        let deaf = Ends { sink: elsewhere, source: voice.source };
        // The voice's own sink stays open, so that its packets meet silence and no refusal.
        let report = Media::start(deaf, ends(), None, OPTIONS).unwrap().finish().unwrap();
        assert_eq!((report.voice.lost_share, report.hearing.mos), (1.0, 1.0));
        drop(voice.sink);
        drop(Media::start(
            ends(),
            ends(),
            None,
            Options { length: Duration::from_secs(600), ..OPTIONS },
        ));
    }

    fn ends() -> Ends {
        let sink = udp::Sink::bind(Ipv4Addr::LOCALHOST.into()).unwrap();
        let source = udp::Source::connect(sink.address()).unwrap();
        Ends { sink, source }
    }
}
