//! A telephone call in one direction, and what is heard of it.
//!
//! The listener's telephone plays each packet at a fixed time after it was spoken: it waits for the
//! median delay and [`PLAYOUT`] more. A packet that has not arrived by then is not heard, whether
//! it is lost or late. A real telephone has to estimate that time during the call; here it is known
//! afterwards, so the comparison does not depend on an estimator.

use std::time::Duration;

use serde::Serialize;

use crate::traffic::emodel::{Call, burst_ratio};
use crate::traffic::spread::median;
use crate::traffic::udp::{self, Departure, Timetable};

/// Speech in one packet. G.711 itself looks no further ahead.
pub(in crate::traffic) const PACKET: Duration = Duration::from_millis(20);

/// UDP payload of a packet: 20 ms of 64 kbit/s, and the header of RTP (RFC 3550 section 5.1).
const SIZE: usize = 160 + 12;

/// How much later than the median a packet may come and still be played: three packets, which is what
/// telephones commonly hold.
pub const PLAYOUT: Duration = Duration::from_millis(60);

/// What was heard of a call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Hearing {
    /// What the network did to it, with the delay of packing and of waiting for playout.
    pub call: Call,
    /// Rating R of the E-model; 0 if nothing was heard.
    pub rating: f64,
    /// Mean opinion score, 1 to 4.5; 1 if nothing was heard.
    pub mos: f64,
}

/// Fifty packets a second.
pub(super) fn timetable(length: Duration) -> Timetable {
    udp::Options { interval: PACKET, size: SIZE, length }.into()
}

/// The same for one of many calls, whose first packet is spoken that much later than the first call's.
pub(in crate::traffic) fn timetable_from(first: Duration, length: Duration) -> Timetable {
    let due = (0..).map(|number: u32| first + PACKET * number).take_while(|due| *due < length);
    Timetable::listed(due.map(|due| Departure { due, size: SIZE }).collect(), length)
}

/// Of each packet that was sent, in this order, whether its speech was heard; and how long after it was spoken.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::traffic) struct Playout {
    /// From mouth to ear.
    delay: Duration,
    /// A packet that never left has no number, and is not among these.
    pub(in crate::traffic) heard: Vec<bool>,
    /// How many never left.
    refused: u64,
}

impl Playout {
    /// `None` if nothing arrived.
    pub(in crate::traffic) fn of(report: &udp::Report) -> Option<Self> {
        let delays: Vec<f64> = report.arrivals.iter().map(|arrival| arrival.delay_ms).collect();
        let wait = Duration::from_secs_f64(median(&delays)? / 1e3) + PLAYOUT;
        let mut heard = vec![false; usize::try_from(report.order.sent).unwrap_or(0)];
        for arrival in &report.arrivals {
            let in_time = arrival.delay_ms <= wait.as_secs_f64() * 1e3;
            if let Some(heard) = usize::try_from(arrival.number).ok().and_then(|n| heard.get_mut(n))
            {
                *heard = in_time;
            }
        }
        Some(Self { delay: PACKET + wait, heard, refused: report.refused })
    }

    /// The score of the whole call.
    fn hearing(&self) -> Hearing {
        self.part(&self.heard, self.refused)
    }

    /// The mean opinion score of a part of the call, 1 to 4.5, as if the rest had been like it.
    pub(in crate::traffic) fn mos(&self, part: &[bool]) -> f64 {
        self.part(part, 0).mos
    }

    fn part(&self, heard: &[bool], refused: u64) -> Hearing {
        let due = heard.len() as u64 + refused;
        let played = heard.iter().filter(|heard| **heard).count();
        let call = Call {
            delay: self.delay,
            unheard: 1.0 - played as f64 / due.max(1) as f64,
            burst_ratio: burst_ratio(heard),
        };
        Hearing { call, rating: call.rating(), mos: call.mos() }
    }
}

impl Hearing {
    /// What was heard of a stream of voice packets.
    pub(super) fn of(report: &udp::Report) -> Self {
        Self::of_playout(Playout::of(report).as_ref())
    }

    /// The same of what is known of that stream already.
    pub(in crate::traffic) fn of_playout(playout: Option<&Playout>) -> Self {
        playout.map_or_else(Self::silence, Playout::hearing)
    }

    fn silence() -> Self {
        let call = Call { delay: PACKET + PLAYOUT, unheard: 1.0, burst_ratio: 1.0 };
        Self { call, rating: 0.0, mos: 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::order::Order;
    use crate::traffic::series::Series;
    use crate::traffic::udp::Arrival;

    #[test]
    fn a_call_is_fifty_packets_a_second_of_64_kbit_and_a_header() {
        let timetable = timetable(Duration::from_secs(10));
        assert_eq!(timetable.packets(), 500);
        let second = timetable.departure(1).unwrap();
        assert_eq!((second.due, second.size), (Duration::from_millis(20), 172));
    }

    #[test]
    fn packing_and_playout_are_part_of_the_delay() {
        let hearing = hearing(100, |_| Some(30.0));
        assert_eq!(hearing.call.delay, Duration::from_millis(20 + 30 + 60));
        assert_eq!((hearing.call.unheard, hearing.call.burst_ratio), (0.0, 1.0));
        assert!(hearing.mos > 4.3, "{hearing:?}");
    }

    #[test]
    fn a_packet_too_late_is_as_bad_as_a_lost_one() {
        let late = hearing(100, |number| Some(if number % 10 == 3 { 90.1 } else { 30.0 }));
        let lost = hearing(100, |number| (number % 10 != 3).then_some(30.0));
        let just = hearing(100, |number| Some(if number % 10 == 3 { 90.0 } else { 30.0 }));
        assert!((late.call.unheard - 0.1).abs() < 1e-9);
        assert_eq!(late, lost);
        assert_eq!(just.call.unheard, 0.0);
        assert!(just.mos > late.mos);
    }

    #[test]
    fn ten_missing_in_a_row_are_worse_than_ten_here_and_there() {
        let row = hearing(100, |number| (!(40..50).contains(&number)).then_some(30.0));
        let scattered = hearing(100, |number| (number % 10 != 3).then_some(30.0));
        assert_eq!(row.call.unheard, scattered.call.unheard);
        assert!((row.call.burst_ratio - 9.0).abs() < 1e-9, "{row:?}");
        assert!(row.mos < scattered.mos);
    }

    #[test]
    fn silence_has_the_lowest_score() {
        assert_eq!((hearing(100, |_| None).mos, hearing(0, |_| None).mos), (1.0, 1.0));
    }

    /// What is heard of packets that arrive with these delays in milliseconds.
    fn hearing(sent: u64, delay: impl Fn(u64) -> Option<f64>) -> Hearing {
        let arrivals = (0..sent)
            .filter_map(|number| delay(number).map(|delay_ms| Arrival { number, delay_ms }));
        Hearing::of(&udp::Report {
            series: Series::new(Duration::ZERO),
            order: Order::new(sent).finish(sent),
            delay_ms: None,
            jitter_ms: None,
            refused: 0,
            arrivals: arrivals.collect(),
        })
    }
}
