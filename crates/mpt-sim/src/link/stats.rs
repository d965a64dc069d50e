//! What a link did with the packets offered to it.

/// A number of packets and the sum of their lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub packets: u64,
    /// How long together, in bytes.
    pub bytes: u64,
}

impl Count {
    pub(super) fn add(&mut self, len: usize) {
        self.packets += 1;
        self.bytes += len as u64;
    }

    pub(super) fn remove(&mut self, len: usize) {
        self.packets -= 1;
        self.bytes -= len as u64;
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |a, b| Self {
            packets: a.packets + b.packets,
            bytes: a.bytes + b.bytes,
        })
    }
}

/// Why a link dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The wire was cut.
    Blackout,
    /// The loss process chose it.
    Loss,
    /// Too many bytes waited for the transmitter, or would have at a policer.
    Queue,
    /// It was longer than what passes.
    TooLong,
}

impl DropReason {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Blackout, Self::Loss, Self::Queue, Self::TooLong];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blackout => "blackout",
            Self::Loss => "loss",
            Self::Queue => "queue",
            Self::TooLong => "too_long",
        }
    }
}

/// Counters of a link. Both in packets and in bytes, `offered + duplicated = delivered + in_flight
/// + dropped()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Given to the link.
    pub offered: Count,
    /// Copies the link made.
    pub duplicated: Count,
    /// Taken by the receiver.
    pub delivered: Count,
    /// On the way: waiting, travelling, or due and not yet taken.
    pub in_flight: Count,
    /// With one bit inverted; whether they then fit into the queue is counted there.
    pub corrupted: Count,
    /// Sent ahead without the delay.
    pub reordered: Count,
    drops: [Count; DropReason::ALL.len()],
}

impl Stats {
    /// Dropped for this reason.
    pub fn drops(&self, reason: DropReason) -> Count {
        self.drops[reason as usize]
    }

    /// Dropped for any reason.
    pub fn dropped(&self) -> Count {
        self.drops.iter().copied().sum()
    }

    /// Whether every packet and byte is accounted for. Anything else is a defect of the link.
    pub fn is_balanced(&self) -> bool {
        let came: Count = [self.offered, self.duplicated].into_iter().sum();
        let went: Count = [self.delivered, self.in_flight, self.dropped()].into_iter().sum();
        came == went
    }

    /// Counts what a link that is not a [`Link`](super::Link) has dropped, such as one of the kernel's.
    pub fn add_drops(&mut self, reason: DropReason, count: Count) {
        let drops = self.drop_mut(reason);
        *drops = [*drops, count].into_iter().sum();
    }

    pub(super) fn drop_mut(&mut self, reason: DropReason) -> &mut Count {
        &mut self.drops[reason as usize]
    }
}
