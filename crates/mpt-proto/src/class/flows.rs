//! The flows that packets were offered of lately, and how they behave.

use std::ops::Range;
use std::time::Duration;

use super::{BuiltIn, Class, Classes, Why};
use crate::time::Instant;
use crate::wire::flow::Flow;

/// Flows that are known at a time, in sets of which each flow has one by its hash. In a set another one takes the place of the one
/// that has been idle for longest: a call sends all the time, and keeps its own.
const SETS: usize = 64;
const IN_A_SET: usize = 8;

/// The hash where no flow is known.
const NONE: u64 = 0;

/// Of packets that are longer than this one in so many is looked at, and counts for all.
const SMALL: usize = 400;
const SAMPLED: u32 = 8;

/// A call: it sends small packets, so many each second, for so long.
const STEADY: std::ops::RangeInclusive<f64> = 12.0..=150.0;
const STEADY_FOR: Duration = Duration::from_secs(2);

/// A flow that has sent more than this is bulk.
const LITTLE: u64 = 100_000;

/// After such a pause a flow begins anew.
const PAUSE: Duration = Duration::from_secs(1);

/// A flow as it is told to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStats {
    /// Its addresses and ports.
    pub flow: Flow,
    /// The name of its class.
    pub class: String,
    /// Why it is of that class.
    pub why: Why,
    /// The bytes that it has sent since its last pause of a second, about.
    pub bytes: u64,
    /// When it sent last, before now.
    pub idle: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    flow: Flow,
    tos: u8,
    began: Instant,
    last: Instant,
    packets: u64,
    bytes: u64,
}

/// The flows of one connection.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    /// The hashes of all sets, and what is known of the flows in the same places.
    hashes: Vec<u64>,
    entries: Vec<Option<Entry>>,
    skipped: u32,
}

/// The places of the set that a flow with this hash has.
fn places(hash: u64) -> Range<usize> {
    let first = hash as usize % SETS * IN_A_SET;
    first..first + IN_A_SET
}

impl Flows {
    /// Bytes of memory apart from its own size.
    pub(crate) fn memory(&self) -> usize {
        self.hashes.capacity() * size_of::<u64>()
            + self.entries.capacity() * size_of::<Option<Entry>>()
    }

    /// Whether a packet of `len` bytes is to be [counted](Self::on_packet).
    #[inline]
    pub(crate) fn samples(&mut self, len: usize) -> bool {
        self.skipped = (self.skipped + 1) % SAMPLED;
        len <= SMALL || self.skipped == 0
    }

    /// A packet of `len` bytes is sent of a flow with this hash.
    pub(crate) fn on_packet(&mut self, now: Instant, hash: u64, flow: &Flow, tos: u8, len: usize) {
        if self.entries.is_empty() {
            self.hashes = vec![NONE; SETS * IN_A_SET];
            self.entries = vec![None; SETS * IN_A_SET];
        }
        let new = Entry { flow: *flow, tos, began: now, last: now, packets: 0, bytes: 0 };
        let place = self.place(hash).unwrap_or_else(|| {
            let idle = |place: &usize| self.entries[*place].map(|entry| entry.last);
            let place = places(hash).min_by_key(idle).unwrap_or(places(hash).start);
            (self.hashes[place], self.entries[place]) = (hash, Some(new));
            place
        });
        let entry = self.entries[place].get_or_insert(new);
        if now.since(entry.last) > PAUSE {
            *entry = new;
        }
        let counts = if len <= SMALL { 1 } else { u64::from(SAMPLED) };
        entry.packets += counts;
        entry.bytes += counts * len as u64;
        (entry.last, entry.tos) = (now, tos);
    }

    /// Where a flow with this hash is known.
    #[inline]
    fn place(&self, hash: u64) -> Option<usize> {
        let set = self.hashes.get(places(hash))?;
        let at = set.iter().position(|known| *known == hash)?;
        Some(places(hash).start + at)
    }

    /// The class of a flow: by what stands in its packets, or by what it has sent.
    pub(crate) fn class(&self, classes: &Classes, hash: u64, flow: &Flow, tos: u8) -> (Class, Why) {
        classes.of(flow, tos).unwrap_or_else(|| {
            let known = self.place(hash).and_then(|place| self.entries[place]);
            let (class, why) = known.map_or((BuiltIn::Interactive, Why::Little), Entry::behaves);
            (Class::BuiltIn(class), why)
        })
    }

    /// The flows that have sent in this time, those that sent most first.
    pub(crate) fn stats(
        &self,
        now: Instant,
        classes: &Classes,
        within: Duration,
        most: usize,
    ) -> Vec<FlowStats> {
        let lately = |entry: &&Entry| now.since(entry.last) <= within;
        let mut entries: Vec<&Entry> = self.entries.iter().flatten().filter(lately).collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.bytes));
        let told = |entry: &Entry| {
            let (class, why) = self.class(classes, entry.flow.hash(), &entry.flow, entry.tos);
            FlowStats {
                flow: entry.flow,
                class: classes.name(class).to_owned(),
                why,
                bytes: entry.bytes,
                idle: now.since(entry.last),
            }
        };
        entries.into_iter().take(most).map(told).collect()
    }
}

impl Entry {
    /// What it is by what it has sent.
    fn behaves(self) -> (BuiltIn, Why) {
        let time = self.last.since(self.began);
        let rate = self.packets as f64 / time.as_secs_f64().max(1e-3);
        let is_small = self.bytes <= self.packets * SMALL as u64;
        if self.flow.protocol == Flow::UDP
            && is_small
            && time >= STEADY_FOR
            && STEADY.contains(&rate)
        {
            return (BuiltIn::Realtime, Why::Steady);
        }
        match self.bytes > LITTLE {
            true => (BuiltIn::Bulk, Why::Much),
            false => (BuiltIn::Interactive, Why::Little),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::wire::flow::Ports;

    fn flow(protocol: u8, port: u16) -> Flow {
        Flow {
            source: IpAddr::from([10, 9, 0, 1]),
            destination: IpAddr::from([10, 9, 0, 2]),
            protocol,
            ports: Some(Ports { source: port, destination: 40_000 }),
        }
    }

    /// What a flow is that sends packets of a length, one every so many milliseconds, for so many seconds.
    fn behaviour(protocol: u8, len: usize, every: u64, seconds: u64) -> (Class, Why) {
        let (mut flows, flow) = (Flows::default(), flow(protocol, 9));
        for millis in (0..seconds * 1000).step_by(every as usize) {
            let now = Instant::ZERO + Duration::from_millis(10_000 + millis);
            if flows.samples(len) {
                flows.on_packet(now, flow.hash(), &flow, 0, len);
            }
        }
        flows.class(&Classes::default(), flow.hash(), &flow, 0)
    }

    #[test]
    fn calls_key_strokes_and_downloads_are_told_apart() {
        let built_in = |class, why| (Class::BuiltIn(class), why);
        let little = built_in(BuiltIn::Interactive, Why::Little);
        let call = built_in(BuiltIn::Realtime, Why::Steady);
        let much = built_in(BuiltIn::Bulk, Why::Much);
        assert_eq!(behaviour(Flow::UDP, 200, 20, 3), call);
        assert_eq!(behaviour(Flow::UDP, 200, 20, 1), little, "not for long");
        assert_eq!(behaviour(Flow::TCP, 200, 20, 3), little, "a call goes by UDP");
        assert_eq!(behaviour(Flow::UDP, 200, 1, 3), much);
        assert_eq!(behaviour(Flow::UDP, 1400, 20, 3), much);
        assert_eq!(behaviour(Flow::TCP, 100, 300, 10), little);
    }

    /// With one place for each hash, a third of a hundred flows would take each other's all the time, and never be known.
    #[test]
    fn each_of_two_hundred_calls_is_known_beside_names_that_are_looked_up() {
        let mut flows = Flows::default();
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(10_000 + millis);
        let mut packet = |millis: u64, port: u16| {
            let flow = flow(Flow::UDP, port);
            flows.on_packet(at(millis), flow.hash(), &flow, 0, 200);
        };
        for millis in (0..3000).step_by(20) {
            (0..200).for_each(|call| packet(millis, 1000 + call));
            packet(millis + 10, 20_000 + millis as u16);
        }
        let is_call = |call: &u16| {
            let flow = flow(Flow::UDP, 1000 + call);
            let (class, _) = flows.class(&Classes::default(), flow.hash(), &flow, 0);
            class == Class::BuiltIn(BuiltIn::Realtime)
        };
        let known = (0..200).filter(is_call).count();
        assert!(known >= 198, "{known}");
    }

    #[test]
    fn the_flows_of_the_last_seconds_are_told_with_the_largest_first() {
        let mut flows = Flows::default();
        let now = Instant::ZERO + Duration::from_secs(100);
        for (port, len, ago) in [(1, 300, 1), (2, 399, 1), (3, 400, 9)] {
            let flow = flow(Flow::UDP, port);
            flows.on_packet(
                Instant::ZERO + Duration::from_secs(100 - ago),
                flow.hash(),
                &flow,
                0,
                len,
            );
        }
        let told = flows.stats(now, &Classes::default(), Duration::from_secs(5), 8);
        let bytes: Vec<_> = told.iter().map(|flow| (flow.bytes, flow.class.as_str())).collect();
        assert_eq!(bytes, [(399, "interactive"), (300, "interactive")]);
        assert_eq!(flows.stats(now, &Classes::default(), Duration::from_secs(5), 1).len(), 1);
    }
}
