//! What captures see of a link: packets at its ends, and what the link did to them.

use std::io;
use std::time::Instant;

use mpt_sim::link::{DropReason, Stats};

use super::tap::{Tap, Way};

/// The translator let it not pass.
pub(super) const UNTRANSLATED: &str = "not translated";

/// The captures at the left and the right end, if any.
#[derive(Debug, Default)]
pub(super) struct Taps(Option<[Tap; 2]>);

impl Taps {
    /// Adds these captures; returns false if there are others.
    pub(super) fn set(&mut self, taps: [Tap; 2]) -> bool {
        let free = self.0.is_none();
        self.0.get_or_insert(taps);
        free
    }

    pub(super) fn remove(&mut self) {
        self.0 = None;
    }

    /// Offers a packet that the host at an end has sent or gets. The comment is only created if
    /// there is a capture.
    pub(super) fn show(
        &self,
        end: usize,
        at: Instant,
        way: Way,
        packet: &[u8],
        comment: impl FnOnce() -> String,
    ) {
        if let Some(taps) = &self.0 {
            taps[end].offer(at, way, packet, comment());
        }
    }
}

/// What the link did to a packet that entered it, from its counters before and after; empty if it
/// did nothing but take it.
pub(super) fn of_entry(before: &Stats, after: &Stats) -> String {
    let mut remarks = Vec::new();
    for reason in DropReason::ALL {
        if after.drops(reason).packets > before.drops(reason).packets {
            remarks.push(name(reason));
        }
    }
    for (name, before, after) in [
        ("duplicated", before.duplicated, after.duplicated),
        ("corrupted", before.corrupted, after.corrupted),
        ("sent ahead", before.reordered, after.reordered),
    ] {
        if after.packets > before.packets {
            remarks.push(name);
        }
    }
    remarks.join(", ")
}

/// What the receiving device did with a packet that left the link.
pub(super) fn of_exit(written: &io::Result<()>) -> String {
    match written {
        Ok(()) => String::new(),
        Err(error) => format!("not taken by the host: {error}"),
    }
}

fn name(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Blackout => "black-out",
        DropReason::Loss => "lost",
        DropReason::Queue => "queue full",
        DropReason::TooLong => "too long",
    }
}

#[cfg(test)]
mod tests {
    use mpt_proto::Instant;
    use mpt_sim::link::Link;
    use mpt_sim::loss::Loss;
    use mpt_sim::profile::Profile;

    use super::*;

    /// What is said of the second of two packets, both sent at once.
    fn second(profile: Profile) -> String {
        let mut link = Link::new(profile, 1);
        link.send(Instant::ZERO, vec![0; 1000]);
        let before = *link.stats();
        link.send(Instant::ZERO, vec![0; 1000]);
        of_entry(&before, link.stats())
    }

    #[test]
    fn a_packets_fate_is_its_comment() {
        let perfect = Profile::default;
        assert_eq!(second(perfect()), "");
        assert_eq!(second(Profile { loss: Loss::Random(1.0), ..perfect() }), "lost");
        assert_eq!(second(Profile { largest: Some(999), ..perfect() }), "too long");
        let slow = Profile { rate: Some(1), queue: Some(1000), ..perfect() };
        assert_eq!(second(slow.clone()), "queue full");
        let twice = Profile { duplicate: 1.0, corrupt: 1.0, reorder: 1.0, ..perfect() };
        assert_eq!(second(twice), "duplicated, corrupted, sent ahead");
        let none =
            Profile { blackouts: vec![(Default::default(), std::time::Duration::MAX)], ..slow };
        assert_eq!(second(none), "black-out");
    }
}
