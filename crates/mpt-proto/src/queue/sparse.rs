//! How much a flow sends. With little nothing is gained if it waits: calls, names, key strokes, and the beginning of any
//! other. Much for a while is a transfer in bulk.

use std::time::Duration;

use super::services::{Service, Services};
use crate::time::Instant;
use crate::wire::segment::Segment;

/// What a flow may send at once: ten packets, as many as TCP begins with (RFC 6928).
const BURST: u64 = 15_000;

/// What it may send in the long run, in bytes per second: a call with video.
const RATE: u64 = 64_000;

/// A flow that has sent so much, over such a time, without a pause of that time, is bulk.
const BULK: u64 = 1_000_000;
const BULK_TIME: Duration = Duration::from_secs(1);

/// It is no pause if that is not so many round trips: while BBR measures its least round trip it sends nothing for one, next to nothing
/// for 200 ms, and then begins with little.
const BULK_TRIPS: u32 = 6;

/// A bulk flow of this round trip that pauses for so long is none any more.
fn bulk_pause(trip: Duration) -> Duration {
    BULK_TIME.max(trip * BULK_TRIPS)
}

/// How much a flow sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Volume {
    /// So little that it need not wait.
    Sparse,
    /// More.
    Usual,
    /// It is a TCP connection that has begun lately: its packets are to take no less than others will.
    Early,
    /// Much, for a while.
    Bulk,
}

/// What a packet tells of its flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judged {
    pub(crate) volume: Volume,
    /// Whether it is a TCP connection that was seen from its beginning on and takes the early delay.
    pub(crate) is_known: bool,
    /// Whether it sends more than it may without waiting.
    pub(crate) is_over: bool,
}

/// What a flow has sent of what it may.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowance {
    spent: u64,
    at: Instant,
    /// Since when it has sent more without a long pause, when it did so last, and the bytes.
    over_since: Instant,
    over_at: Instant,
    over: u64,
}

impl Allowance {
    /// The flow, which has this round trip, sends a packet of `len` bytes. All its packets count, so one that keeps sending more than
    /// it may is not sparse until it pauses.
    pub(super) fn take(&mut self, now: Instant, len: usize, trip: Duration) -> Volume {
        let regained = now.since(self.at).as_micros().min(1 << 40) as u64 * RATE / 1_000_000;
        self.at = now;
        self.spent = (self.spent.saturating_sub(regained) + len as u64).min(2 * BURST);
        let is_over = self.spent > BURST;
        if now.since(self.over_at) >= bulk_pause(trip) {
            (self.over_since, self.over) = (now, 0);
        }
        if is_over {
            self.over_at = now;
            self.over = self.over.saturating_add(len as u64);
        }
        if self.over >= BULK && now.since(self.over_since) >= BULK_TIME {
            Volume::Bulk
        } else if is_over {
            Volume::Usual
        } else {
            Volume::Sparse
        }
    }
}

/// A TCP connection counts as beginning for so long, and after that until it pauses for so long; while it is bulk, for [`bulk_pause`]. What
/// follows a pause overtakes nothing.
const BEGINNING: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(200);

/// It is no pause if that is not so many round trips: a flow whose window is used up waits for one, and for what stands in queues.
const TRIPS: u32 = 3;

/// What connections are to take from the first packet on; see `tx/early.rs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Early {
    /// The early delay. It is zero if the fastest paths suffice.
    pub(crate) delay: Duration,
    /// A connection that has begun with at least this goes on to take it: by its first round trip it keeps enough in flight.
    pub(crate) enough: Duration,
    /// Whether a sender that goes by its first round trip would get less without it than by the best path alone.
    pub(crate) is_needed: bool,
}

/// What connections that begin meet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begins {
    pub(super) early: Early,
    /// The round trip.
    pub(super) trip: Duration,
    /// Whether the flow is bulk.
    pub(super) is_bulk: bool,
}

/// The last TCP connection of a queue that has begun.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beginning {
    connection: Option<(u64, Instant)>,
    /// The early delay at its beginning, in milliseconds; `None` if it does not take it.
    early: Option<u16>,
    last: Instant,
    /// Its service, until it is known how much it sends.
    service: Option<Service>,
}

impl Beginning {
    /// The flow with this hash sends a packet, of which this is known if it is one of TCP. Returns whether it belongs to a
    /// connection that begins and takes the early delay, and is not an acknowledgement only. One that began with less than is enough for
    /// the present one does not: its sender knows a shorter round trip, and keeps less in flight.
    /// Nor does one of a service that seldom sends much, unless that is needed.
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        hash: u64,
        segment: Option<Segment>,
        Begins { early, trip, is_bulk }: Begins,
        service: Option<Service>,
        services: &mut Services,
    ) -> bool {
        match segment {
            // It may be the same again.
            Some(Segment::Syn) if !self.is_of(hash) || now.since(self.last) >= BEGINNING => {
                self.on_judged(services, false);
                let takes = service.is_none_or(|service| services.sends_much(service));
                let takes = takes || early.is_needed;
                self.early = takes.then_some(early.delay.as_millis() as u16);
                (self.connection, self.last) = (Some((hash, now)), now);
                self.service = service;
            }
            Some(Segment::Syn | Segment::Other | Segment::End) => {
                let Some((_, since)) = self.connection.filter(|_| self.is_of(hash)) else {
                    return false;
                };
                let pause = match is_bulk {
                    true => bulk_pause(trip),
                    false => PAUSE.max(trip * TRIPS),
                };
                if now.since(self.last) >= pause && now.since(since) >= BEGINNING {
                    self.connection = None;
                }
                if self.connection.is_none() || segment == Some(Segment::End) {
                    self.on_judged(services, false);
                }
                self.last = now;
            }
            Some(Segment::Ack(_) | Segment::Report | Segment::Marked) | None => return false,
        }
        let is_taken = |taken: u16| early.enough.as_millis() <= u128::from(taken);
        self.connection.is_some() && self.early.is_some_and(is_taken)
    }

    /// Whether it is of the flow with this hash.
    pub(super) fn is_of(&self, hash: u64) -> bool {
        self.connection.is_some_and(|(known, _)| known == hash)
    }

    /// It has sent much, or will not be looked at any more.
    pub(super) fn on_judged(&mut self, services: &mut Services, is_much: bool) {
        if let Some(service) = self.service.take() {
            services.on_judged(service, is_much);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::wire::flow::{Flow, Ports};

    /// An early delay of so many milliseconds, of which half is enough.
    fn early(delay: u64) -> Early {
        let delay = Duration::from_millis(delay);
        Early { delay, enough: delay / 2, is_needed: false }
    }

    /// How many of the packets that a flow sends in 10 s are within its allowance.
    fn share(len: usize, interval: Duration) -> f64 {
        let mut allowance = Allowance::default();
        let (mut now, mut taken, mut sent) = (Instant::ZERO, 0, 0);
        while now < Instant::ZERO + Duration::from_secs(10) {
            taken += u32::from(allowance.take(now, len, Duration::ZERO) == Volume::Sparse);
            sent += 1;
            now += interval;
        }
        f64::from(taken) / f64::from(sent)
    }

    #[test]
    fn a_call_is_sparse_and_a_download_is_not() {
        assert_eq!(share(200, Duration::from_millis(20)), 1.0);
        assert_eq!(share(1200, Duration::from_millis(20)), 1.0);
        assert!(share(1400, Duration::from_millis(10)) < 0.05);
        assert!(share(60, Duration::from_micros(100)) < 0.05);
    }

    #[test]
    fn bulk_is_much_over_a_second_and_remains_so_over_short_pauses() {
        let mut allowance = Allowance::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(5000 + millis);
        let mut send = |from: u64, to: u64| {
            (from..to).map(|millis| allowance.take(at(millis), 3000, Duration::ZERO)).last()
        };
        assert_eq!(send(0, 900), Some(Volume::Usual), "not for long");
        assert_eq!(send(900, 1200), Some(Volume::Bulk));
        assert_eq!(send(1700, 1701), Some(Volume::Bulk), "a pause");
        assert_eq!(send(3000, 3001), Some(Volume::Sparse), "another transfer");
        let mut slow = Allowance::default();
        let volumes: Vec<_> =
            (0..300).map(|count| slow.take(at(count * 10), 1000, Duration::ZERO)).collect();
        assert!(!volumes.contains(&Volume::Bulk), "not much");
    }

    #[test]
    fn over_a_long_round_trip_a_pause_is_longer() {
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(5000 + millis);
        let trip = Duration::from_millis(300);
        for (pause, begins, bulk) in [(800, true, true), (1000, false, true), (1900, false, false)]
        {
            let (mut beginning, mut services) = (Beginning::default(), Services::default());
            let mut allowance = Allowance::default();
            let mut on = |millis, segment| {
                let begins = Begins { early: early(75), trip, ..Begins::default() };
                let segment = Some(segment);
                beginning.on_packet(at(millis), 7, segment, begins, None, &mut services)
            };
            assert!(on(0, Segment::Syn));
            (0..2500).for_each(|millis| assert!(on(millis, Segment::Other)));
            (0..2500).for_each(|millis| _ = allowance.take(at(millis), 3000, trip));
            assert_eq!(on(2499 + pause, Segment::Other), begins, "{pause}");
            let volume = allowance.take(at(2499 + pause), 1400, trip);
            assert_eq!(volume == Volume::Bulk, bulk, "{pause}");
        }
    }

    #[test]
    fn a_tcp_connection_begins_until_it_pauses() {
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(5000 + millis);
        let mut beginning = Beginning::default();
        let mut services = Services::default();
        let mut on = |millis, hash, segment: Option<Segment>| {
            beginning.on_packet(at(millis), hash, segment, Begins::default(), None, &mut services)
        };
        assert!(!on(0, 7, Some(Segment::Other)), "its beginning was not seen");
        assert!(on(1, 7, Some(Segment::Syn)) && on(1500, 7, Some(Segment::Other)), "it is young");
        assert!(!on(1600, 7, Some(Segment::Ack(5))) && !on(1600, 8, Some(Segment::Other)));
        assert!((0..20).all(|count| on(1650 + count * 150, 7, Some(Segment::Other))), "no pause");
        assert!(!on(4800, 7, Some(Segment::Other)) && !on(4801, 7, Some(Segment::Other)));
        assert!(on(5000, 8, Some(Segment::Syn)), "another one");
        assert!(!on(5001, 8, None), "not TCP");
    }

    #[test]
    fn a_bulk_connection_is_known_for_as_long_as_it_is_bulk() {
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(5000 + millis);
        let trip = Duration::from_millis(100);
        // BBR has emptied a queue of 300 ms, and then measures its least round trip.
        for (is_bulk, pause, known) in
            [(false, 290, true), (false, 400, false), (true, 900, true), (true, 1000, false)]
        {
            let (mut beginning, mut services) = (Beginning::default(), Services::default());
            let mut on = |millis, segment| {
                let begins = Begins { trip, is_bulk, ..Begins::default() };
                let segment = Some(segment);
                beginning.on_packet(at(millis), 7, segment, begins, None, &mut services)
            };
            assert!(on(0, Segment::Syn) && on(900, Segment::Other) && on(1800, Segment::Other));
            (1800..2500).for_each(|millis| assert!(on(millis, Segment::Other)));
            assert_eq!(on(2499 + pause, Segment::Other), known, "{is_bulk} {pause}");
        }
    }

    #[test]
    fn a_tcp_connection_that_began_with_less_than_is_enough_for_the_early_delay_does_not_take_it() {
        let now = Instant::ZERO + Duration::from_secs(5);
        for (first, later, takes) in
            [(0, 0, true), (0, 50, false), (20, 50, false), (25, 50, true), (50, 0, true)]
        {
            let mut beginning = Beginning::default();
            let mut services = Services::default();
            let mut on = |segment, delay| {
                let begins = Begins { early: early(delay), ..Begins::default() };
                beginning.on_packet(now, 7, Some(segment), begins, None, &mut services)
            };
            assert!(on(Segment::Syn, first));
            assert_eq!(on(Segment::Other, later), takes, "{first}, {later}");
        }
    }

    #[test]
    fn a_connection_that_is_likely_to_send_little_takes_the_early_delay_only_if_it_is_needed() {
        let ports = Some(Ports { source: 40_000, destination: 443 });
        let [source, destination] = [1, 2].map(|host| IpAddr::from([10, 0, 0, host]));
        let service = Service::of(&Flow { source, destination, protocol: Flow::TCP, ports });
        let now = Instant::ZERO + Duration::from_secs(5);
        for is_needed in [false, true] {
            let (mut beginning, mut services) = (Beginning::default(), Services::default());
            let begins = Begins { early: Early { is_needed, ..early(50) }, ..Begins::default() };
            let syn = Some(Segment::Syn);
            let takes = beginning.on_packet(now, 7, syn, begins, service, &mut services);
            assert_eq!(takes, is_needed);
        }
    }

    #[test]
    fn a_tcp_connection_is_judged_once_when_it_ends_pauses_or_is_followed_by_another() {
        let ports = Some(Ports { source: 40_000, destination: 5201 });
        let [source, destination] = [1, 2].map(|host| IpAddr::from([10, 0, 0, host]));
        let service = Service::of(&Flow { source, destination, protocol: Flow::TCP, ports });
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(5000 + millis);
        let begin = [(0, 7, Segment::Syn), (500, 7, Segment::Syn), (900, 7, Segment::Other)];
        // What makes it end, and how often a connection has been judged by then.
        for (rest, judged) in [
            (&[][..], 0),
            (&[(950, 7, Segment::End), (980, 7, Segment::End)], 1),
            (&[(3000, 7, Segment::Other), (3001, 7, Segment::Other)], 1),
            (&[(1000, 8, Segment::Syn), (1001, 7, Segment::Other)], 1),
            (&[(1000, 8, Segment::Syn), (1001, 8, Segment::End)], 2),
        ] {
            let (mut beginning, mut services) = (Beginning::default(), Services::default());
            assert!(services.sends_much(service.unwrap()));
            for &(millis, hash, segment) in begin.iter().chain(rest) {
                let begins = Begins { early: early(50), ..Begins::default() };
                let segment = Some(segment);
                beginning.on_packet(at(millis), hash, segment, begins, service, &mut services);
            }
            let left = (0..20)
                .take_while(|_| {
                    let has_credit = services.sends_much(service.unwrap());
                    services.on_judged(service.unwrap(), false);
                    has_credit
                })
                .count();
            assert_eq!(left, 8 - judged, "{rest:?}");
        }
    }
}
