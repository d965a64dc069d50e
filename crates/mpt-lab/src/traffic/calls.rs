//! Many telephone calls at once, each heard at both ends.
//!
//! A call is a voice stream either way, as in [`media`](super::media): fifty packets a second that do not react to
//! the network. The calls speak one after the other, evenly spread over the 20 ms of a packet, so that they send
//! no bursts together. A caller notices what happens in a moment, not on average: so each second has a score of its
//! own, that of the worst call ([`emodel`](super::emodel)), and a caller who hears nothing for [`HANGS_UP`] hangs up.

use std::io;
use std::time::Duration;

use super::media::voice::{self, Hearing, PACKET, Playout};
use super::media::{Ends, StreamReport};
use super::udp;

/// How long a caller listens to silence before the call counts as dropped.
pub const HANGS_UP: Duration = Duration::from_secs(3);

/// Packets of a stream in a second.
pub const PER_SECOND: usize = 50;

/// The sockets of a call.
#[derive(Debug)]
pub struct Call {
    /// The way that is measured.
    pub there: Ends,
    /// The other way.
    pub back: Ends,
}

/// Calls under way.
#[derive(Debug)]
pub struct Calls {
    streams: Vec<[udp::Stream; 2]>,
}

/// What became of all calls, both ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The packets of all of them.
    pub all: StreamReport,
    /// The lowest mean opinion score of a whole call, 1 to 4.5.
    pub mos: f64,
    /// In each second of the run, the lowest score of a call in that second.
    pub seconds_mos: Vec<f64>,
    /// Calls in which one of the two heard nothing for [`HANGS_UP`].
    pub dropped: u64,
}

impl Calls {
    /// Starts all calls.
    ///
    /// # Errors
    ///
    /// The kernel gave no thread.
    pub fn start(calls: Vec<Call>, length: Duration) -> io::Result<Self> {
        let count = u32::try_from(calls.len()).unwrap_or(u32::MAX).max(1);
        let start = |(number, call): (u32, Call)| {
            let timetable = voice::timetable_from(PACKET * number / count, length);
            let stream = |ends: Ends| udp::Stream::start(ends.sink, ends.source, timetable.clone());
            Ok([stream(call.there)?, stream(call.back)?])
        };
        Ok(Self { streams: (0..).zip(calls).map(start).collect::<io::Result<_>>()? })
    }

    /// Payload bytes that have arrived so far.
    pub fn received(&self) -> u64 {
        self.streams.iter().flatten().map(udp::Stream::received).sum()
    }

    /// Waits for the end of the run, which comes by itself.
    ///
    /// # Errors
    ///
    /// A thread failed.
    pub fn finish(self) -> io::Result<Report> {
        // All end at about the same time, so waiting for one costs the others nothing.
        let reports =
            self.streams.into_iter().map(|[there, back]| Ok([there.finish()?, back.finish()?]));
        Ok(Report::of(&reports.collect::<io::Result<Vec<_>>>()?))
    }
}

impl Report {
    /// What these calls' streams say.
    fn of(calls: &[[udp::Report; 2]]) -> Self {
        let streams = || calls.iter().flatten();
        let playouts: Vec<_> = streams().map(Playout::of).collect();
        let of_second = |second, playout: &Option<Playout>| {
            let Some(playout) = playout else { return 1.0 };
            let mut seconds = playout.heard.chunks(PER_SECOND);
            seconds.nth(second).map_or(f64::INFINITY, |heard| playout.mos(heard))
        };
        let second = |second| {
            let scores = playouts.iter().map(|playout| of_second(second, playout));
            scores.fold(f64::INFINITY, f64::min)
        };
        let seconds = playouts.iter().flatten().map(|playout| playout.heard.len() / PER_SECOND);
        let seconds = seconds.max().unwrap_or(0);
        let hearing = |playout: &Option<Playout>| Hearing::of_playout(playout.as_ref()).mos;
        let is_dropped = |call: &&[Option<Playout>]| call.iter().any(hangs_up);
        Self {
            all: StreamReport::of(streams()),
            mos: playouts.iter().map(hearing).fold(f64::INFINITY, f64::min),
            seconds_mos: (0..seconds).map(second).collect(),
            dropped: playouts.chunks(2).filter(is_dropped).count() as u64,
        }
    }
}

/// Whether somebody hears nothing for too long.
fn hangs_up(playout: &Option<Playout>) -> bool {
    let longest = (HANGS_UP.as_millis() / PACKET.as_millis()) as usize;
    playout.as_ref().is_none_or(|playout| {
        playout.heard.chunk_by(|a, b| a == b).any(|run| !run[0] && run.len() >= longest)
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::traffic::order::Order;
    use crate::traffic::series::Series;
    use crate::traffic::udp::Arrival;

    #[test]
    fn over_loopback_every_call_is_heard_at_both_ends() {
        let ends = || {
            let sink = udp::Sink::bind(Ipv4Addr::LOCALHOST.into()).unwrap();
            let source = udp::Source::connect(sink.address()).unwrap();
            Ends { sink, source }
        };
        let calls = (0..5).map(|_| Call { there: ends(), back: ends() }).collect();
        let report = Calls::start(calls, Duration::from_secs(2)).unwrap().finish().unwrap();
        assert_eq!((report.all.packets, report.all.lost_share), (5 * 2 * 100, 0.0));
        assert_eq!((report.dropped, report.seconds_mos.len()), (0, 2));
    }

    #[test]
    fn a_second_is_as_good_as_its_worst_call() {
        let good = || stream(500, |_| Some(30.0));
        let poor = || stream(500, |number| (number / 50 != 7 || number % 10 != 3).then_some(30.0));
        let report = Report::of(&[[good(), good()], [good(), poor()]]);
        let least = report.seconds_mos.iter().copied().fold(f64::INFINITY, f64::min);
        assert_eq!((report.seconds_mos.len(), report.seconds_mos[7]), (10, least));
        assert!(least < 3.6, "{least}: a tenth is missing");
        assert!(report.seconds_mos.iter().filter(|mos| **mos > 4.3).count() == 9);
        assert!(report.mos > least && report.mos < 4.4, "{report:?}");
        assert_eq!(report.all.lost_share, 5.0 / 2000.0);
    }

    #[test]
    fn who_hears_nothing_for_three_seconds_hangs_up() {
        let good = || stream(500, |_| Some(30.0));
        let silent =
            |packets: u64| stream(500, move |n| (n < 200 || n >= 200 + packets).then_some(30.0));
        let late = || stream(500, |n| Some(if (200..350).contains(&n) { 91.0 } else { 30.0 }));
        let dropped = |back| Report::of(&[[good(), back], [good(), good()]]).dropped;
        assert_eq!([dropped(silent(149)), dropped(silent(150)), dropped(late())], [0, 1, 1]);
        assert_eq!(dropped(stream(500, |_| None)), 1);
    }

    #[test]
    fn calls_take_turns_within_a_packet() {
        let timetable = voice::timetable_from(Duration::from_millis(7), Duration::from_secs(1));
        let first = timetable.departure(0).unwrap();
        assert_eq!((first.due, timetable.packets()), (Duration::from_millis(7), 50));
    }

    /// A stream whose packets arrive with these delays in milliseconds.
    fn stream(sent: u64, delay: impl Fn(u64) -> Option<f64>) -> udp::Report {
        let mut order = Order::new(sent);
        let arrivals: Vec<_> = (0..sent)
            .filter_map(|number| delay(number).map(|delay_ms| Arrival { number, delay_ms }))
            .collect();
        for arrival in &arrivals {
            order.on_arrival(arrival.number);
        }
        udp::Report {
            series: Series::new(Duration::ZERO),
            order: order.finish(sent),
            delay_ms: None,
            jitter_ms: None,
            refused: 0,
            arrivals,
        }
    }
}
