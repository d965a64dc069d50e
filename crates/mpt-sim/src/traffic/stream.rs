//! Numbered packets at a steady rate, and the judge at the other end.

use std::time::Duration;

use mpt_proto::Instant;

use super::packet::{Flow, Kind, Packet};

/// Sends packets of one length in equal intervals.
#[derive(Clone, Debug)]
pub struct Source {
    flow: Flow,
    len: usize,
    interval: Duration,
    next: Instant,
    end: Instant,
    sent: u64,
}

impl Source {
    /// Packets of `len` bytes (at least [`Flow::least_len`]) from `start` (inclusive) to `end`
    /// (exclusive), one every `interval`, which is at least a nanosecond.
    pub fn new(flow: Flow, len: usize, interval: Duration, start: Instant, end: Instant) -> Self {
        let interval = interval.max(Duration::from_nanos(1));
        Self { flow, len, interval, next: start, end, sent: 0 }
    }

    /// The interval at which packets of `len` bytes make `rate` bit/s, of inner packets.
    pub fn interval_for(len: usize, rate: u64) -> Duration {
        Duration::from_nanos(len as u64 * 8 * 1_000_000_000 / rate.max(1))
    }

    /// When the next packet is due; `None` after the last.
    pub fn next_due(&self) -> Option<Instant> {
        (self.next < self.end).then_some(self.next)
    }

    /// The next packet, if it is due. Its stamp is the time it was due.
    pub fn poll(&mut self, now: Instant) -> Option<Vec<u8>> {
        let due = self.next_due().filter(|&due| due <= now)?;
        let packet = Packet {
            flow: self.flow,
            kind: Kind::Datagram,
            number: self.sent,
            stamp: due.as_nanos(),
            range: None,
        };
        self.sent += 1;
        self.next += self.interval;
        Some(packet.emit(self.len))
    }

    /// How many packets were sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The flow it sends.
    pub fn flow(&self) -> Flow {
        self.flow
    }
}

/// What a [`Checker`] has seen. A packet counts once as `received`, or once as `duplicates`, or
/// once as `invalid`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Different packets that arrived unaltered.
    pub received: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that arrived again.
    pub duplicates: u64,
    /// Packets that arrived after one with a higher number: the `received` that were late.
    pub out_of_order: u64,
    /// The farthest that one of these was behind, in numbers.
    pub greatest_displacement: u64,
    /// Packets that are not the stream's, or not as they were sent.
    pub invalid: u64,
    /// The longest time between two arrivals of `received` packets.
    pub longest_gap: Duration,
    /// The longest time from sending to arrival.
    pub greatest_delay: Duration,
    /// When the first packet arrived.
    pub first: Option<Instant>,
    /// When the last new packet arrived.
    pub last: Option<Instant>,
}

impl Verdict {
    /// How many of `sent` packets never arrived.
    pub fn lost(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.received)
    }

    /// Whether all `sent` packets arrived once, unaltered and in order.
    pub fn is_flawless(&self, sent: u64) -> bool {
        self.received == sent && self.duplicates == 0 && self.out_of_order == 0 && self.invalid == 0
    }
}

/// Judges the packets of one flow as they arrive.
#[derive(Clone, Debug)]
pub struct Checker {
    flow: Flow,
    /// How long each packet took, by its number.
    took: Vec<Option<Duration>>,
    highest: Option<u64>,
    verdict: Verdict,
}

impl Checker {
    /// The most packets a stream can have: a number above is invalid. It bounds the memory that
    /// one altered number could cost.
    pub const MAX_PACKETS: u64 = 1 << 24;

    /// A judge of `flow`, that has seen nothing.
    pub fn new(flow: Flow) -> Self {
        Self { flow, took: Vec::new(), highest: None, verdict: Verdict::default() }
    }

    /// Takes an inner packet that was delivered at `now`.
    pub fn on_bytes(&mut self, now: Instant, bytes: &[u8]) {
        match Packet::parse(bytes) {
            Some(packet) => self.on_packet(now, &packet, bytes.len()),
            None => self.verdict.invalid += 1,
        }
    }

    /// Takes an inner packet of `len` bytes that was delivered at `now` and has been parsed.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet, len: usize) {
        let ours = packet.flow == self.flow && packet.kind == Kind::Datagram;
        if !ours || packet.number >= Self::MAX_PACKETS {
            self.verdict.invalid += 1;
            return;
        }
        // Below MAX_PACKETS, so it fits.
        let place = packet.number as usize;
        if self.took.len() <= place {
            self.took.resize(place + 1, None);
        }
        if self.took[place].is_some() {
            self.verdict.duplicates += 1;
            return;
        }
        let delay = now.since(Instant::from_nanos(packet.stamp));
        self.took[place] = Some(delay);
        self.on_new(now, packet, len, delay);
    }

    /// What was seen so far.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The numbers below `sent` that never arrived.
    pub fn missing(&self, sent: u64) -> impl Iterator<Item = u64> + '_ {
        (0..sent).filter(move |&number| self.took(number).is_none())
    }

    /// How long the packet of this number took from sending to arrival; `None` if it has not arrived.
    pub fn took(&self, number: u64) -> Option<Duration> {
        self.took.get(number as usize).copied().flatten()
    }

    fn on_new(&mut self, now: Instant, packet: &Packet, len: usize, delay: Duration) {
        let verdict = &mut self.verdict;
        verdict.received += 1;
        verdict.bytes += len as u64;
        match self.highest {
            Some(highest) if packet.number < highest => {
                verdict.out_of_order += 1;
                let behind = highest - packet.number;
                verdict.greatest_displacement = verdict.greatest_displacement.max(behind);
            }
            Some(_) | None => self.highest = Some(packet.number),
        }
        verdict.greatest_delay = verdict.greatest_delay.max(delay);
        let gap = verdict.last.map_or(Duration::ZERO, |last| now.since(last));
        verdict.longest_gap = verdict.longest_gap.max(gap);
        verdict.first.get_or_insert(now);
        verdict.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> Flow {
        Flow {
            source: "10.9.0.1".parse().unwrap(),
            destination: "10.9.0.2".parse().unwrap(),
            port: 7000,
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn source(count: u64) -> Source {
        Source::new(flow(), 100, Duration::from_millis(1), at(0), at(count))
    }

    fn packets(count: u64) -> Vec<Vec<u8>> {
        let mut source = source(count);
        (0..count).map(|i| source.poll(at(i)).unwrap()).collect()
    }

    #[test]
    fn a_source_sends_when_due_and_stops_at_its_end() {
        let mut source = source(3);
        assert_eq!(source.next_due(), Some(at(0)));
        assert!(source.poll(at(0)).is_some());
        assert!(source.poll(at(0)).is_none());
        assert!(source.poll(at(5)).is_some(), "a late poll finds what was due");
        assert!(source.poll(at(5)).is_some());
        assert!(source.poll(at(5)).is_none());
        assert_eq!((source.sent(), source.next_due()), (3, None));
        assert_eq!(Source::interval_for(1250, 10_000_000), Duration::from_millis(1));
    }

    #[test]
    fn a_stream_without_impairments_is_flawless() {
        let mut checker = Checker::new(flow());
        for (i, packet) in packets(5).iter().enumerate() {
            checker.on_bytes(at(10 + i as u64), packet);
        }
        let verdict = checker.verdict();
        assert!(verdict.is_flawless(5));
        assert_eq!((verdict.received, verdict.bytes, verdict.lost(5)), (5, 500, 0));
        assert_eq!(verdict.longest_gap, Duration::from_millis(1));
        assert_eq!(verdict.greatest_delay, Duration::from_millis(10));
        assert_eq!((checker.took(4), checker.took(5)), (Some(Duration::from_millis(10)), None));
        assert_eq!((verdict.first, verdict.last), (Some(at(10)), Some(at(14))));
    }

    #[test]
    fn every_flaw_is_counted_under_its_name() {
        let packets = packets(6);
        let mut altered = packets[5].clone();
        altered[60] ^= 1;
        let mut checker = Checker::new(flow());
        for (ms, packet) in
            [(0, &packets[0]), (1, &packets[3]), (2, &packets[1]), (9, &packets[3]), (20, &altered)]
        {
            checker.on_bytes(at(ms), packet);
        }
        checker.on_bytes(at(21), b"noise");
        let other = Packet {
            flow: flow().reversed(),
            kind: Kind::Datagram,
            number: 0,
            stamp: 0,
            range: None,
        };
        checker.on_bytes(at(22), &other.emit(100));
        let absurd =
            Packet { flow: flow(), kind: Kind::Datagram, number: u64::MAX, stamp: 0, range: None };
        checker.on_bytes(at(23), &absurd.emit(100));
        let verdict = *checker.verdict();
        assert_eq!((verdict.received, verdict.lost(6)), (3, 3));
        assert_eq!((verdict.duplicates, verdict.out_of_order, verdict.invalid), (1, 1, 4));
        assert_eq!(verdict.greatest_displacement, 2);
        assert_eq!(verdict.longest_gap, Duration::from_millis(1));
        assert_eq!(checker.missing(6).collect::<Vec<_>>(), [2, 4, 5]);
        assert!(!verdict.is_flawless(6));
    }
}
