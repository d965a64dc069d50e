//! What is kept of packets that parity covers: see [`parity`](super::parity).
//!
//! What the peer covers is kept for a moment, in a store with bounds. When as much has come of a group as it has packets, those
//! that are missing are computed.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::sequence::Seq;
use crate::stats::{Drop, ParityStats};
use crate::time::Instant;
use crate::wire::erasure::{add, factor, solve};
use crate::wire::extended::parity::{COVER_LEN, Members, Parity};

/// The most packets that are kept, and the most bytes of them.
const MOST_KEPT: usize = 2048;
const MOST_BYTES: usize = 1 << 20;

/// The most groups of which parities wait, and the most bytes of these.
const MOST_GROUPS: usize = 32;
const MOST_PARITY: usize = 256 << 10;

/// What is older is of no use.
const LONGEST: Duration = Duration::from_millis(500);

/// What is kept for one connection.
#[derive(Debug, Default)]
pub(super) struct Covers {
    /// What counts of each packet, by number.
    kept: BTreeMap<u32, Vec<u8>>,
    /// Their numbers as they came, oldest first.
    order: VecDeque<(u32, Instant)>,
    bytes: usize,
    groups: VecDeque<Group>,
    parity_bytes: usize,
    pub(super) stats: ParityStats,
}

/// A group of which a parity has come.
#[derive(Debug)]
struct Group {
    members: Members,
    since: Instant,
    /// By their numbers; none any more if nothing is missing.
    parities: Vec<(usize, Vec<u8>)>,
    is_over: bool,
}

impl Covers {
    /// Bytes of memory apart from its own size, about.
    pub(super) fn memory(&self) -> usize {
        const NODE: usize = 64;
        self.bytes
            + self.kept.len() * NODE
            + self.parity_bytes
            + self.order.capacity() * size_of::<(u32, Instant)>()
            + self.groups.capacity() * size_of::<Group>()
    }

    /// A packet came that parity covers. Returns packets that are computed by it.
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        number: Seq,
        distance: u16,
        packet: &[u8],
    ) -> Vec<(Seq, Vec<u8>)> {
        let is_old = |since: &Instant| now.since(*since) > LONGEST;
        while let Some(&(oldest, since)) = self.order.front()
            && (is_old(&since)
                || self.order.len() >= MOST_KEPT
                || self.bytes + packet.len() + COVER_LEN > MOST_BYTES)
        {
            self.order.pop_front();
            self.bytes -= self.kept.remove(&oldest).map_or(0, |packet| packet.len());
        }
        if self.kept.contains_key(&number.value()) {
            return Vec::new();
        }
        let mut cover = Vec::with_capacity(COVER_LEN + packet.len());
        cover.extend_from_slice(&distance.to_be_bytes());
        cover.extend_from_slice(packet);
        self.bytes += cover.len();
        self.order.push_back((number.value(), now));
        self.kept.insert(number.value(), cover);
        let waits = |group: &Group| !group.is_over && group.members.contains(number);
        match self.groups.iter().position(waits) {
            Some(at) => self.try_group(at),
            None => Vec::new(),
        }
    }

    /// A parity came. Returns packets that are computed by it.
    ///
    /// # Errors
    ///
    /// [`Drop::ControlLength`] if it does not fit the others of its group; [`Drop::Duplicate`] if it came before.
    pub(super) fn on_parity(
        &mut self,
        now: Instant,
        parity: Parity<'_>,
    ) -> Result<Vec<(Seq, Vec<u8>)>, Drop> {
        self.stats.received += 1;
        let Parity { number, members, bytes, .. } = parity;
        let known = self.groups.iter().position(|group| group.members.first() == members.first());
        let at = known.unwrap_or_else(|| {
            while self.groups.front().is_some_and(|oldest| {
                now.since(oldest.since) > LONGEST
                    || self.groups.len() >= MOST_GROUPS
                    || self.parity_bytes + bytes.len() > MOST_PARITY
            }) {
                self.forget_oldest();
            }
            let (parities, is_over) = (Vec::new(), false);
            self.groups.push_back(Group {
                members: members.clone(),
                since: now,
                parities,
                is_over,
            });
            self.groups.len() - 1
        });
        let group = &mut self.groups[at];
        let is_like = |(_, other): &(usize, Vec<u8>)| other.len() == bytes.len();
        if group.members != members || !group.parities.iter().all(is_like) {
            return Err(Drop::ControlLength);
        }
        if group.parities.iter().any(|(other, _)| *other == number) {
            return Err(Drop::Duplicate);
        }
        if group.is_over {
            self.stats.in_vain += 1;
            return Ok(Vec::new());
        }
        group.parities.push((number, bytes.to_vec()));
        self.parity_bytes += bytes.len();
        Ok(self.try_group(at))
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.groups.pop_front() else { return };
        self.parity_bytes -= oldest.bytes();
        if !oldest.is_over {
            self.stats.failed += 1;
        }
    }

    /// Computes what is missing of a group, if as much has come of it as it has packets.
    fn try_group(&mut self, at: usize) -> Vec<(Seq, Vec<u8>)> {
        let group = &mut self.groups[at];
        let numbers: Vec<Seq> = group.members.iter().collect();
        let is_missing = |number: &Seq| !self.kept.contains_key(&number.value());
        let missing: Vec<usize> =
            (0..numbers.len()).filter(|place| is_missing(&numbers[*place])).collect();
        if missing.len() > group.parities.len() {
            return Vec::new();
        }
        self.parity_bytes -= group.bytes();
        let mut sums = std::mem::take(&mut group.parities);
        group.is_over = true;
        if missing.is_empty() {
            self.stats.in_vain += sums.len() as u64;
            return Vec::new();
        }
        self.stats.in_vain += (sums.len() - missing.len()) as u64;
        sums.truncate(missing.len());
        for (place, number) in numbers.iter().enumerate() {
            let Some(packet) = self.kept.get(&number.value()) else { continue };
            // A group of a packet that is longer than its parity is none.
            if sums.iter().any(|(_, sum)| sum.len() < packet.len()) {
                self.stats.failed += 1;
                return Vec::new();
            }
            sums.iter_mut().for_each(|(parity, sum)| add(sum, packet, factor(*parity, place)));
        }
        let found = solve(&missing, &mut sums).unwrap_or_default();
        missing.iter().map(|place| numbers[*place]).zip(found).collect()
    }
}

impl Group {
    fn bytes(&self) -> usize {
        self.parities.iter().map(|(_, parity)| parity.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A packet with this number: its own length and bytes.
    fn packet(number: u32) -> Vec<u8> {
        vec![number as u8; 20 + number as usize % 7]
    }

    fn members(numbers: std::ops::Range<u32>) -> Members {
        Members::new(&numbers.map(Seq::new).collect::<Vec<_>>()).expect("a group")
    }

    /// A parity of the packets with these numbers.
    fn parity(numbers: std::ops::Range<u32>, number: usize) -> Vec<u8> {
        let mut sum = vec![0; COVER_LEN + 26];
        for (place, of) in numbers.enumerate() {
            let cover = [&[0, of as u8][..], &packet(of)].concat();
            add(&mut sum, &cover, factor(number, place));
        }
        sum
    }

    fn put(covers: &mut Covers, number: u32) -> Vec<u32> {
        let found = covers.on_packet(at(1), Seq::new(number), number as u16, &packet(number));
        numbers(found)
    }

    /// The numbers of packets, all of which are what they were.
    fn numbers(found: Vec<(Seq, Vec<u8>)>) -> Vec<u32> {
        found
            .into_iter()
            .map(|(number, cover)| {
                let packet = packet(number.value());
                assert_eq!(cover[..COVER_LEN], [0, number.value() as u8]);
                assert_eq!(cover[COVER_LEN..][..packet.len()], packet);
                number.value()
            })
            .collect()
    }

    fn on_parity(covers: &mut Covers, of: std::ops::Range<u32>, number: usize) -> Vec<u32> {
        let (bytes, members) = (parity(of.clone(), number), members(of));
        let parity = Parity { number, count: 2, members, bytes: &bytes };
        numbers(covers.on_parity(at(2), parity).expect("a parity of its group"))
    }

    #[test]
    fn what_is_missing_is_computed_as_soon_as_enough_has_come() {
        let mut covers = Covers::default();
        for number in [10, 12, 13] {
            assert_eq!(put(&mut covers, number), []);
        }
        assert_eq!(on_parity(&mut covers, 10..15, 1), [], "two are missing");
        assert_eq!(on_parity(&mut covers, 10..15, 0), [11, 14]);
        // It comes late, or was on its way.
        assert_eq!(put(&mut covers, 11), []);
        let stats = ParityStats { received: 2, ..ParityStats::default() };
        assert_eq!(covers.stats, stats);
        assert_eq!(covers.parity_bytes, 0);
    }

    #[test]
    fn a_packet_that_comes_after_the_parity_completes_the_group() {
        let mut covers = Covers::default();
        assert_eq!(on_parity(&mut covers, 10..13, 1), []);
        assert_eq!(put(&mut covers, 12), []);
        assert_eq!(put(&mut covers, 10), [11]);
        assert_eq!(on_parity(&mut covers, 10..13, 0), []);
        assert_eq!(covers.stats.in_vain, 1);
    }

    #[test]
    fn parities_that_contradict_each_other_are_dropped() {
        let mut covers = Covers::default();
        on_parity(&mut covers, 10..14, 1);
        let mut other = |numbers, number, bytes: &[u8]| {
            let parity = Parity { number, count: 2, members: members(numbers), bytes };
            covers.on_parity(at(2), parity)
        };
        assert_eq!(other(10..15, 0, &[1; 28]), Err(Drop::ControlLength), "another group");
        assert_eq!(other(10..14, 0, &[1; 27]), Err(Drop::ControlLength), "another length");
        assert_eq!(other(10..14, 1, &[1; 28]), Err(Drop::Duplicate));
        // A packet that is longer than the parity of its group.
        assert_eq!(other(20..22, 0, &[1; 5]), Ok(Vec::new()));
        assert_eq!(put(&mut covers, 20), []);
        assert_eq!(covers.stats.failed, 1);
    }

    #[test]
    fn the_store_is_bounded() {
        let mut covers = Covers::default();
        for number in 0..10_000 {
            covers.on_packet(at(1), Seq::new(number), 0, &[0; 1000]);
            let first = Seq::new(20_000 + 2 * number);
            let members = Members::new(&[first, first.next()]).expect("a group");
            let parity = Parity { number: 0, count: 1, members, bytes: &[0; 9000] };
            covers.on_parity(at(1), parity).expect("a parity");
        }
        assert!(covers.bytes <= MOST_BYTES && covers.kept.len() <= MOST_KEPT);
        assert!(covers.parity_bytes <= MOST_PARITY && covers.groups.len() <= MOST_GROUPS);
        let memory = covers.memory();
        assert!(memory < 2 * (MOST_BYTES + MOST_PARITY), "{memory}");
        covers.on_packet(at(502), Seq::new(77), 0, &[0; 1000]);
        assert_eq!(covers.kept.len(), 1, "what is old is of no use");
    }
}
