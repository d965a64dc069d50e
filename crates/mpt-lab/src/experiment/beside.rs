//! A thin stream beside a greedy flow: what everybody else on the network has of it.
//!
//! Packets at a steady interval, some fifty a second as of a call, go the same way as the flow. Their one-way delay is
//! that of the queues which the flow fills, and of what the tunnel makes them wait for. It counts from the end of the
//! start-up on.

use std::time::Duration;

use anyhow::Result;

use super::load::Route;
use crate::cell::{Beside, Cell, Change, Event, Traffic};
use crate::record::{BesideRecord, milliseconds};
use crate::traffic::media::Ends;
use crate::traffic::spread::Spread;
use crate::traffic::tcp::Transport;
use crate::traffic::udp;

/// For so long after a rate has fallen the largest delay is told apart.
const AFTER_STEP: Duration = Duration::from_secs(2);

/// A stream under way.
pub(super) struct Stream {
    stream: udp::Stream,
    interval: Duration,
}

impl Stream {
    /// Starts it, if the traffic has one. Multipath TCP carries none.
    pub(super) fn start(route: &Route<'_>, traffic: &Traffic) -> Result<Option<Self>> {
        let Some(Beside { interval, size }) = traffic.beside else { return Ok(None) };
        if route.transport == Transport::Mptcp {
            return Ok(None);
        }
        let interval = Duration::from_secs_f64(interval);
        let options = udp::Options { interval, size, length: traffic.length() };
        let Ends { sink, source } = route.stream()?;
        Ok(Some(Self { stream: udp::Stream::start(sink, source, options)?, interval }))
    }

    /// Waits for its end, which is that of the flow.
    pub(super) fn finish(
        self,
        omit: Duration,
        base: Duration,
        cell: &Cell,
    ) -> Result<BesideRecord> {
        let after = AFTER_STEP.mul_f64(cell.scale);
        let steps: Vec<_> = falls(&cell.events).into_iter().map(|at| (at, at + after)).collect();
        Ok(record(&self.stream.finish()?, self.interval, omit, base, &steps))
    }
}

/// When rates fell.
fn falls(events: &[Event]) -> Vec<Duration> {
    let mut shares: Vec<(usize, f64)> = Vec::new();
    let mut falls = Vec::new();
    for event in events {
        let Change::Rate(share) = event.change else { continue };
        let before = shares.iter().rfind(|(link, _)| *link == event.link);
        if share < before.map_or(1.0, |(_, share)| *share) {
            falls.push(Duration::from_secs_f64(event.at));
        }
        shares.push((event.link, share));
    }
    falls
}

/// What became of it: `omit` is not counted, `base` is the delay of the fastest link, and `steps` are the times after
/// rates have fallen.
fn record(
    report: &udp::Report,
    interval: Duration,
    omit: Duration,
    base: Duration,
    steps: &[(Duration, Duration)],
) -> BesideRecord {
    let between = |from: Duration, until: Duration| {
        let sent = |number: u64| interval * u32::try_from(number).unwrap_or(u32::MAX);
        let arrivals = report.arrivals.iter();
        let inside = arrivals.filter(move |arrival| (from..until).contains(&sent(arrival.number)));
        inside.map(|arrival| arrival.delay_ms).collect::<Vec<_>>()
    };
    let delay_ms = Spread::of(&between(omit, Duration::MAX));
    let after = steps.iter().flat_map(|&(at, until)| between(at, until));
    let sent = report.order.sent + report.refused;
    BesideRecord {
        delay_ms,
        over_base_p99_ms: delay_ms.map(|delay| delay.p99 - milliseconds(base)),
        after_step_max_ms: after.reduce(f64::max),
        lost_share: (report.order.lost + report.refused) as f64 / sent.max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::order::Order;
    use crate::traffic::series::Series;
    use crate::traffic::udp::Arrival;

    fn rate(at: f64, link: usize, share: f64) -> Event {
        Event { at, link, change: Change::Rate(share) }
    }

    #[test]
    fn only_rates_that_fall_make_queues() {
        let events = [rate(1.0, 0, 2.0), rate(2.0, 0, 0.5), rate(3.0, 1, 0.5), rate(4.0, 0, 1.0)];
        assert_eq!(falls(&events), [2, 3].map(Duration::from_secs));
        let cut = Event { at: 1.0, link: 0, change: Change::Cut(crate::emulator::Direction::Both) };
        assert!(falls(&[cut]).is_empty());
    }

    #[test]
    fn delays_count_from_the_start_up_on_and_the_largest_after_a_step_is_told() {
        // Ten packets a second: 100 ms at the start, 10 ms then, 70 ms in second 5.
        let delay_ms = |number: u64| match number {
            0..20 => 100.0,
            50..60 => 70.0,
            _ => 10.0,
        };
        let mut order = Order::new(100);
        assert!((0..100).all(|number| order.on_arrival(number)));
        let report = udp::Report {
            series: Series::new(Duration::ZERO),
            order: order.finish(100),
            delay_ms: None,
            jitter_ms: None,
            refused: 25,
            arrivals: (0..100)
                .map(|number| Arrival { number, delay_ms: delay_ms(number) })
                .collect(),
        };
        let [interval, base] = [100, 8].map(Duration::from_millis);
        let step = |at| [(Duration::from_secs(at), Duration::from_secs(at + 2))];
        let of = |at| record(&report, interval, Duration::from_secs(2), base, &step(at));
        let delay = of(4).delay_ms.unwrap();
        assert_eq!((delay.count, delay.median, delay.max), (80, 10.0, 70.0));
        assert_eq!(of(4).over_base_p99_ms, Some(62.0));
        assert_eq!((of(4).after_step_max_ms, of(7).after_step_max_ms), (Some(70.0), Some(10.0)));
        assert_eq!(of(60).after_step_max_ms, None);
        assert_eq!(of(4).lost_share, 0.2, "what was refused is lost");
    }
}
