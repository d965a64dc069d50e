//! Groups of packets of which parity is sent: what is gathered of them, how many parities they need, and what became of
//! them (section 8.5.2 of `docs/protocol.md`).

use std::collections::VecDeque;
use std::time::Duration;

use crate::id::PathId;
use crate::sequence::Seq;
use crate::time::Instant;
use crate::wire::erasure::{MOST_PACKETS, MOST_PARITIES};
use crate::wire::extended::feedback::Block;
use crate::wire::extended::parity::{COVER_LEN, MOST_SPAN};

/// A group is gathered for no longer than this: so much later than a packet its parity may arrive.
pub(in crate::tx) const GATHERED: Duration = Duration::from_millis(10);

/// No more than this share of the packets is to be missing in the end.
const RESIDUAL: f64 = 2.5e-4;

/// Groups that are smaller than this are not worth their parity: each packet takes two paths instead, which is as much, and
/// delays nothing.
const SMALLEST: f64 = 3.0;

/// So many groups are remembered of which something is to be found out, and so many parities.
const MOST: usize = 128;

/// Losses come in bursts: after so many packets it is looked whether more are missing than were to be, and up to so many
/// times the loss is allowed for.
const WINDOW: u32 = 4096;
const MOST_MARGIN: f64 = 4.0;

/// A group that is gathered of the packets of one path.
#[derive(Debug)]
pub(in crate::tx) struct Group {
    pub(in crate::tx) path: PathId,
    pub(in crate::tx) since: Instant,
    /// The type of service of the last.
    pub(in crate::tx) tos: u8,
    pub(in crate::tx) numbers: Vec<Seq>,
    /// What counts of each, one behind the other, and where they end.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Group {
    /// What counts of each packet.
    pub(in crate::tx) fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[*start..*end])
    }

    /// The bytes of a parity.
    pub(in crate::tx) fn longest(&self) -> usize {
        self.packets().map(<[u8]>::len).max().unwrap_or_default()
    }
}

/// A group whose parities were sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    path: PathId,
    first: Seq,
    last: Seq,
    packets: u32,
    parities: u8,
    lost: u8,
    parities_lost: u8,
    /// Packets of which it is known that they arrived.
    arrived: u32,
}

/// What follows of a packet that is lost and covered by parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Covered {
    /// The peer has brought it back.
    Saved,
    /// More are lost than there are parities, or nothing is known of its group.
    Missing,
}

/// The groups of one connection.
#[derive(Debug)]
pub(crate) struct Groups {
    open: Vec<Group>,
    sent: VecDeque<Sent>,
    /// Parities: path, path sequence, and the first number of the group.
    parities: VecDeque<(PathId, u32, Seq)>,
    /// Packets in the present time of a group, when that began, and how many there are in one.
    count: u32,
    since: Instant,
    usual: f64,
    /// How many times the loss is allowed for, and packets since that was looked at with those that are missing.
    margin: f64,
    seen: (u32, u32),
    /// Parities of groups in which nothing was lost.
    pub(in crate::tx) in_vain: u64,
}

impl Default for Groups {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            sent: VecDeque::new(),
            parities: VecDeque::new(),
            count: 0,
            since: Instant::ZERO,
            usual: 0.0,
            margin: 1.0,
            seen: (0, 0),
            in_vain: 0,
        }
    }
}

impl Groups {
    /// A packet is sent that parity could cover. Returns whether there are so many of them that it should.
    pub(in crate::tx) fn is_worth(&mut self, now: Instant) -> bool {
        let elapsed = now.since(self.since);
        if elapsed >= GATHERED {
            let times = elapsed.as_secs_f64() / GATHERED.as_secs_f64();
            let recent = f64::from(self.count) / times;
            let weight = (times / 16.0).min(1.0);
            self.usual += (recent - self.usual) * weight;
            (self.since, self.count) = (now, 0);
        }
        self.count += 1;
        self.usual >= SMALLEST
    }

    /// A packet of a group leaves by a path. Returns a group that is full with it, or that it does not fit into.
    pub(in crate::tx) fn put(
        &mut self,
        now: Instant,
        path: PathId,
        number: Seq,
        distance: u16,
        tos: u8,
        packet: &[u8],
    ) -> Option<Group> {
        let at = self.open.iter().position(|group| group.path == path);
        let mut full = at.filter(|at| !self.open[*at].takes(number)).map(|at| self.open.remove(at));
        let at = self.open.iter().position(|group| group.path == path).unwrap_or_else(|| {
            let (numbers, bytes, ends) = (Vec::new(), Vec::new(), Vec::new());
            self.open.push(Group { path, since: now, tos, numbers, bytes, ends });
            self.open.len() - 1
        });
        let group = &mut self.open[at];
        group.tos = tos;
        group.numbers.push(number);
        group.bytes.extend_from_slice(&distance.to_be_bytes());
        group.bytes.extend_from_slice(packet);
        group.ends.push(group.bytes.len());
        if group.numbers.len() == MOST_PACKETS && full.is_none() {
            full = Some(self.open.remove(at));
        }
        full
    }

    /// A group that has been gathered for long enough.
    pub(in crate::tx) fn take_due(&mut self, now: Instant) -> Option<Group> {
        let at = self.open.iter().position(|group| group.since + GATHERED <= now)?;
        Some(self.open.remove(at))
    }

    /// When the next one will have been.
    pub(in crate::tx) fn due(&self) -> Option<Instant> {
        self.open.iter().map(|group| group.since + GATHERED).min()
    }

    /// How many parities a group of so many packets needs, whose path loses this share of them, and the paths of its parities
    /// that share.
    pub(in crate::tx) fn parities(&self, packets: usize, loss: f64, others: f64) -> usize {
        let most = packets.min(MOST_PARITIES);
        let of = |loss: f64| (loss * self.margin).min(1.0);
        let is_enough = |count: &usize| {
            let expected = (packets - 1) as f64 * of(loss) + *count as f64 * of(others);
            of(loss) * at_least(*count, expected) <= RESIDUAL
        };
        (0..most).find(is_enough).unwrap_or(most)
    }

    /// The parities of a group were sent, as many as there are path sequences.
    pub(in crate::tx) fn on_sent(&mut self, group: &Group, parities: u8) {
        let (Some(&first), Some(&last)) = (group.numbers.first(), group.numbers.last()) else {
            return;
        };
        if self.sent.len() == MOST
            && let Some(oldest) = self.sent.pop_front()
        {
            self.count_missing(oldest);
        }
        let packets = group.numbers.len() as u32;
        let (path, lost, parities_lost, arrived) = (group.path, 0, 0, 0);
        self.sent.push_back(Sent {
            path,
            first,
            last,
            packets,
            parities,
            lost,
            parities_lost,
            arrived,
        });
    }

    /// A parity of the group with this first number has left.
    pub(in crate::tx) fn on_parity(&mut self, path: PathId, sequence: u32, first: Seq) {
        if self.parities.len() == MOST * MOST_PARITIES {
            self.parities.pop_front();
        }
        self.parities.push_back((path, sequence, first));
    }

    /// The peer tells what arrived by a path: what of it were parities.
    pub(in crate::tx) fn on_report(&mut self, path: PathId, block: &Block) {
        let Self { parities, sent, .. } = self;
        parities.retain(|&(by, sequence, first)| {
            if by != path || sequence.wrapping_sub(block.resolved).cast_signed() >= 0 {
                return true;
            }
            if block.was_received(sequence) == Some(false)
                && let Some(group) = sent.iter_mut().find(|group| group.first == first)
            {
                group.parities_lost += 1;
            }
            false
        });
    }

    /// It is known of a packet with this number whether it arrived by a path.
    pub(in crate::tx) fn on_known(&mut self, path: PathId, number: Seq, arrived: bool) -> Covered {
        let within = |group: &Sent| {
            let behind = number.offset_from(group.first) >= 0;
            group.path == path && behind && number.offset_from(group.last) <= 0
        };
        let open = |group: &Sent| group.arrived + u32::from(group.lost) < group.packets;
        let Some(at) = self.sent.iter().position(|group| within(group) && open(group)) else {
            return Covered::Missing;
        };
        let group = &mut self.sent[at];
        if arrived {
            group.arrived += 1;
        } else {
            group.lost = group.lost.saturating_add(1);
        }
        let saved = group.lost <= group.parities.saturating_sub(group.parities_lost);
        let is_over = !open(group);
        if is_over && let Some(group) = self.sent.remove(at) {
            self.count_missing(group);
        }
        if saved { Covered::Saved } else { Covered::Missing }
    }

    /// Everything is known of a group: how many of its packets are missing in the end.
    fn count_missing(&mut self, group: Sent) {
        let left = group.parities.saturating_sub(group.parities_lost);
        let missing = if group.lost > left { group.lost } else { 0 };
        self.in_vain += if group.lost == 0 { u64::from(group.parities) } else { 0 };
        self.seen.0 += group.packets;
        self.seen.1 += u32::from(missing);
        let (packets, missing) = self.seen;
        if packets >= WINDOW {
            let residual = f64::from(missing) / f64::from(packets);
            if residual > RESIDUAL * 1.5 {
                self.margin = (self.margin * 1.25).min(MOST_MARGIN);
            } else if residual < RESIDUAL / 2.0 {
                self.margin = (self.margin * 0.97).max(1.0);
            }
            self.seen = (0, 0);
        }
    }

    /// Gives back memory. All that is going to be told of what was sent has been told.
    pub(in crate::tx) fn rest(&mut self) {
        while let Some(sent) = self.sent.pop_front() {
            self.count_missing(sent);
        }
        (self.sent, self.parities) = (VecDeque::new(), VecDeque::new());
        self.open.shrink_to_fit();
    }

    /// Bytes of memory apart from its own size.
    pub(in crate::tx) fn memory(&self) -> usize {
        let open: usize = self.open.iter().map(|group| group.bytes.capacity()).sum();
        open + self.open.capacity() * size_of::<Group>()
            + self.sent.capacity() * size_of::<Sent>()
            + self.parities.capacity() * size_of::<(PathId, u32, Seq)>()
    }
}

impl Group {
    /// Whether a number is near enough to the first one.
    fn takes(&self, number: Seq) -> bool {
        let first = self.numbers.first().copied().unwrap_or(number);
        let last = self.numbers.last().copied();
        (0..MOST_SPAN.cast_signed()).contains(&number.offset_from(first))
            && last.is_none_or(|last| number.offset_from(last) > 0)
    }
}

/// How likely it is that at least so many of something come of which so many are expected (Poisson).
fn at_least(count: usize, expected: f64) -> f64 {
    let (mut term, mut below) = ((-expected).exp(), 0.0);
    for at in 0..count {
        below += term;
        term *= expected / (at + 1) as f64;
    }
    (1.0 - below).max(0.0)
}

const _: () = assert!(COVER_LEN == size_of::<u16>());

#[cfg(test)]
mod tests;
