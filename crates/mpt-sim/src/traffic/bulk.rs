//! A transfer that takes what it can get, as TCP does.
//!
//! The [`Sender`] has endless data and a congestion window that grows as [`cubic`] says, or [`bbr`]. The
//! [`Receiver`] acknowledges each segment at once: cumulatively, and with the identifier of the
//! transmission. This identifier replaces TCP's selective acknowledgements and timestamps: it shows
//! which transmissions arrived although an earlier one did not, and gives an unambiguous round-trip
//! time. A transmission is lost when [`THRESHOLD`] later ones have been answered, or when nothing
//! was for a retransmission timeout (RFC 6298). There is no handshake, no receive window, no
//! delayed acknowledgement, and no pacing but BBR's.

pub mod bbr;
pub mod cubic;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mpt_proto::Instant;

use super::packet::{Flow, Kind, Packet};
use bbr::Bbr;
use cubic::Cubic;

/// How many later transmissions must have been answered for one to be lost (RFC 5681, RFC 9002).
pub const THRESHOLD: u64 = 3;

/// The retransmission timeout before the first round-trip time is known (RFC 6298 section 2.1).
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);

/// The retransmission timeout exceeds the round trip by so much at least: Linux's, far below the second of RFC 6298.
const LEAST_BEYOND: Duration = Duration::from_millis(200);

/// The longest retransmission timeout (RFC 6298 section 2.5).
const GREATEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The sending end.
#[derive(Clone, Debug)]
pub struct Sender {
    flow: Flow,
    len: usize,
    start: Instant,
    end: Instant,
    control: Control,
    /// Segments below this were never sent.
    next_segment: u64,
    next_transmission: u64,
    /// Transmissions that are neither answered nor lost.
    in_flight: BTreeMap<u64, Transmission>,
    /// The last transmission of each segment in flight.
    last_of: BTreeMap<u64, u64>,
    /// Segments to be sent again.
    lost: BTreeSet<u64>,
    /// All losses among transmissions below this belong to one congestion event.
    recovery: u64,
    round_trip: Option<RoundTrip>,
    backoff: u32,
    timeout_from: Instant,
    is_over: bool,
    stats: SenderStats,
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    segment: u64,
    at: Instant,
    sent: Option<bbr::Sent>,
}

/// What decides how much is in flight.
#[derive(Clone, Debug)]
enum Control {
    Cubic(Cubic),
    Bbr(Box<Bbr>),
}

impl Control {
    fn window(&self) -> f64 {
        match self {
            Self::Cubic(cubic) => cubic.window(),
            Self::Bbr(bbr) => bbr.window(),
        }
    }
}

/// The smoothed round-trip time and its variation.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    smoothed: Duration,
    variation: Duration,
}

/// What a sender did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Transmissions, repeated ones included.
    pub transmissions: u64,
    /// Transmissions of segments that had been sent before.
    pub retransmissions: u64,
    /// Reductions of the window because of loss.
    pub congestion_events: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl Sender {
    /// Sends from `start` (inclusive) to `end` (exclusive) in packets of `len` bytes (at least
    /// [`Flow::least_len`]).
    pub fn new(flow: Flow, len: usize, start: Instant, end: Instant) -> Self {
        Self {
            flow,
            len,
            start,
            end,
            control: Control::Cubic(Cubic::default()),
            next_segment: 0,
            next_transmission: 0,
            in_flight: BTreeMap::new(),
            last_of: BTreeMap::new(),
            lost: BTreeSet::new(),
            recovery: 0,
            round_trip: None,
            backoff: 0,
            timeout_from: start,
            is_over: false,
            stats: SenderStats::default(),
        }
    }

    /// The same with HyStart, which ends slow start before a queue is full.
    #[must_use]
    pub fn with_hystart(self) -> Self {
        Self { control: Control::Cubic(Cubic::with_hystart()), ..self }
    }

    /// The same with [`bbr`].
    #[must_use]
    pub fn with_bbr(self) -> Self {
        Self { control: Control::Bbr(Box::default()), ..self }
    }

    /// The flow it sends.
    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// What it did so far.
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// The congestion window in packets.
    pub fn window(&self) -> f64 {
        self.control.window()
    }

    /// The smoothed round-trip time, once one was measured.
    pub fn round_trip(&self) -> Option<Duration> {
        Some(self.round_trip?.smoothed)
    }

    /// When [`Sender::poll`] should be called although nothing arrived.
    pub fn next_due(&self) -> Option<Instant> {
        if self.stats.transmissions == 0 {
            return (self.start < self.end).then_some(self.start);
        }
        let timeout = (!self.in_flight.is_empty()).then(|| self.timeout_from + self.timeout());
        let paced = match &self.control {
            Control::Bbr(bbr) if !self.is_over && (self.in_flight.len() as f64) < bbr.window() => {
                Some(bbr.next())
            }
            Control::Bbr(_) | Control::Cubic(_) => None,
        };
        timeout.into_iter().chain(paced).min()
    }

    /// The next packet that the window allows. To be asked until `None` when it is due and after
    /// each acknowledgement.
    pub fn poll(&mut self, now: Instant) -> Option<Vec<u8>> {
        if now < self.start || now >= self.end {
            // An idle sender must not stay due.
            self.in_flight.clear();
            self.is_over = now >= self.end;
            return None;
        }
        if !self.in_flight.is_empty() && now >= self.timeout_from + self.timeout() {
            self.on_timeout();
        }
        if self.in_flight.len() as f64 >= self.control.window().max(1.0) {
            return None;
        }
        if matches!(&self.control, Control::Bbr(bbr) if now < bbr.next()) {
            return None;
        }
        let again = self.lost.pop_first();
        let segment = again.unwrap_or(self.next_segment);
        if again.is_none() {
            self.next_segment += 1;
        }
        self.stats.retransmissions += u64::from(again.is_some());
        Some(self.transmit(now, segment))
    }

    /// Takes an acknowledgement.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet) {
        if packet.kind != Kind::Acknowledgement || packet.number > self.next_segment {
            return;
        }
        let in_flight = self.in_flight.len();
        let answered = packet.stamp;
        let mut sent = None;
        if let Some(transmission) = self.in_flight.remove(&answered) {
            sent = transmission.sent;
            self.last_of.remove(&transmission.segment);
            let round_trip = now.since(transmission.at);
            self.on_round_trip(round_trip);
            if let Control::Cubic(cubic) = &mut self.control {
                cubic.on_round_trip(answered, self.next_transmission, round_trip);
            }
        }
        let unacknowledged = self.last_of.split_off(&packet.number);
        for transmission in std::mem::replace(&mut self.last_of, unacknowledged).into_values() {
            self.in_flight.remove(&transmission);
        }
        let still_lost = self.lost.split_off(&packet.number);
        let found = std::mem::replace(&mut self.lost, still_lost);
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.on_found(found.len());
        }

        if let Some([from, to]) = packet.range {
            self.on_range(u64::from(from), u64::from(to));
        }
        let left = in_flight - self.in_flight.len();
        if left > 0 {
            self.timeout_from = now;
            self.backoff = 0;
            let round_trip = self.round_trip.map_or(Duration::ZERO, |r| r.smoothed);
            match (&mut self.control, sent) {
                (Control::Cubic(cubic), _) if answered >= self.recovery => {
                    cubic.on_acknowledged(now, left, round_trip);
                }
                (Control::Bbr(bbr), Some(sent)) => {
                    bbr.on_acknowledged(now, left, sent, self.in_flight.len());
                }
                (Control::Bbr(bbr), None) => bbr.on_found(left),
                _ => {}
            }
        }
        self.detect_loss(answered);
    }

    /// Segments of a range have arrived.
    fn on_range(&mut self, from: u64, to: u64) {
        // Those before the last one in flight that is known to have arrived were seen before.
        let arrived: Vec<(u64, u64)> = self
            .last_of
            .range(from..to.max(from))
            .map(|(segment, last)| (*segment, *last))
            .collect();
        for (segment, transmission) in arrived {
            self.last_of.remove(&segment);
            self.in_flight.remove(&transmission);
        }
        let found: Vec<u64> = self.lost.range(from..to.max(from)).copied().collect();
        found.iter().for_each(|segment| {
            self.lost.remove(segment);
        });
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.on_found(found.len());
        }
    }

    fn transmit(&mut self, now: Instant, segment: u64) -> Vec<u8> {
        let number = self.next_transmission;
        self.next_transmission += 1;
        if self.in_flight.is_empty() {
            self.timeout_from = now;
        }
        let sent = match &mut self.control {
            Control::Bbr(bbr) => Some(bbr.on_sent(now, self.in_flight.len())),
            Control::Cubic(_) => None,
        };
        self.in_flight.insert(number, Transmission { segment, at: now, sent });
        self.last_of.insert(segment, number);
        self.stats.transmissions += 1;
        let packet = Packet {
            flow: self.flow,
            kind: Kind::Segment,
            number: segment,
            stamp: number,
            range: None,
        };
        packet.emit(self.len)
    }

    /// Finds the transmissions that were overtaken by too many.
    fn detect_loss(&mut self, answered: u64) {
        while let Some(entry) = self.in_flight.first_entry()
            && entry.key() + THRESHOLD <= answered
        {
            let (number, transmission) = entry.remove_entry();
            self.last_of.remove(&transmission.segment);
            self.lost.insert(transmission.segment);
            if number >= self.recovery {
                self.recovery = self.next_transmission;
                if let Control::Cubic(cubic) = &mut self.control {
                    cubic.on_congestion();
                }
                self.stats.congestion_events += 1;
            }
        }
    }

    /// Nothing was answered for too long: everything is lost, and the window with it.
    fn on_timeout(&mut self) {
        for transmission in std::mem::take(&mut self.in_flight).into_values() {
            self.lost.insert(transmission.segment);
        }
        self.last_of.clear();
        self.recovery = self.next_transmission;
        self.backoff += 1;
        if let Control::Cubic(cubic) = &mut self.control {
            cubic.on_timeout(self.backoff == 1);
        }
        self.stats.timeouts += 1;
    }

    /// RFC 6298 section 2.
    fn on_round_trip(&mut self, sample: Duration) {
        self.round_trip = Some(match self.round_trip {
            None => RoundTrip { smoothed: sample, variation: sample / 2 },
            Some(RoundTrip { smoothed, variation }) => RoundTrip {
                smoothed: smoothed * 7 / 8 + sample / 8,
                variation: variation * 3 / 4 + smoothed.abs_diff(sample) / 4,
            },
        });
    }

    fn timeout(&self) -> Duration {
        let base = self
            .round_trip
            .map_or(FIRST_TIMEOUT, |it| it.smoothed + (4 * it.variation).max(LEAST_BEYOND));
        let factor = 1 << self.backoff.min(6);
        (base * factor).min(GREATEST_TIMEOUT)
    }
}

/// The receiving end.
#[derive(Clone, Debug)]
pub struct Receiver {
    flow: Flow,
    next: u64,
    early: BTreeMap<u64, usize>,
    /// The ranges that these make: where each begins, and where it ends.
    ranges: BTreeMap<u64, u64>,
    stats: ReceiverStats,
}

/// What a receiver got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Bytes of the segments that have arrived with all before them, in whole inner packets.
    pub bytes: u64,
    /// Segments that came before an earlier one.
    pub early: u64,
    /// Segments that had arrived before.
    pub duplicates: u64,
}

impl Receiver {
    /// The end that `flow` goes to.
    pub fn new(flow: Flow) -> Self {
        Self {
            flow,
            next: 0,
            early: BTreeMap::new(),
            ranges: BTreeMap::new(),
            stats: ReceiverStats::default(),
        }
    }

    /// Takes a segment, which arrived as a packet of `len` bytes; returns the acknowledgement.
    pub fn on_packet(&mut self, packet: &Packet, len: usize) -> Option<Vec<u8>> {
        if packet.kind != Kind::Segment || packet.flow != self.flow {
            return None;
        }
        if packet.number < self.next || self.early.contains_key(&packet.number) {
            self.stats.duplicates += 1;
        } else {
            self.stats.early += u64::from(packet.number > self.next);
            self.early.insert(packet.number, len);
            self.join(packet.number);
        }
        while let Some(len) = self.early.remove(&self.next) {
            self.stats.bytes += len as u64;
            self.next += 1;
        }
        // The first range is delivered, if it was the one that was expected.
        if self.ranges.first_key_value().is_some_and(|(_, end)| *end <= self.next) {
            self.ranges.pop_first();
        }
        let flow = self.flow.reversed();
        let (kind, stamp) = (Kind::Acknowledgement, packet.stamp);
        let range = self.range_of(packet.number);
        Some(Packet { flow, kind, number: self.next, stamp, range }.emit(0))
    }

    /// The segments without a gap around one that is early, as the first block of RFC 2018 has them.
    fn range_of(&self, segment: u64) -> Option<[u32; 2]> {
        let range = self.ranges.range(..=segment).next_back();
        range.filter(|(_, end)| segment < **end).map(|(from, end)| [*from as u32, *end as u32])
    }

    /// Joins an early segment to the ranges.
    fn join(&mut self, segment: u64) {
        let before = self.ranges.range(..segment).next_back().map(|(from, end)| (*from, *end));
        let from = before.filter(|(_, end)| *end == segment).map_or(segment, |(from, _)| from);
        let end = self.ranges.remove(&(segment + 1)).unwrap_or(segment + 1);
        self.ranges.insert(from, end);
    }

    /// What it got so far.
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }
}

#[cfg(test)]
mod tests;
