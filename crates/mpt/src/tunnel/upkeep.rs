//! When to restore parts that another program removed, and when to leave them alone.
//!
//! Network managers remove foreign objects: systemd-networkd, when it starts, removes every foreign
//! route and rule unless `networkd.conf(5)` forbids it. A single removal is repaired soon, at most
//! once per second. A program that removes the same part repeatedly does so deliberately, or
//! restores something itself: then the part is left alone for a while, and then restored again.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use mpt_io::netlink::IpVersion;

use crate::config::Prefix;

/// Between two checks. The kernel notifies of every route change by any program, and on a router
/// there are many.
const INTERVAL: Duration = Duration::from_secs(1);

/// A part is restored at most this often in a [`SPAN`].
const MOST: usize = 5;

/// The time in which that is counted.
const SPAN: Duration = Duration::from_secs(60);

/// For so long a part is then left alone.
pub(super) const TRUCE: Duration = Duration::from_secs(300);

/// Something that a tunnel has put into the host's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// An address of its interface.
    Address(Prefix),
    /// A route into it.
    Route(Prefix),
    /// The rules of a default route.
    Rules(IpVersion),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(prefix) => write!(f, "the address {prefix}"),
            Self::Route(prefix) => write!(f, "the route to {prefix}"),
            Self::Rules(IpVersion::V4) => write!(f, "a rule of the IPv4 default route"),
            Self::Rules(IpVersion::V6) => write!(f, "a rule of the IPv6 default route"),
        }
    }
}

/// What is due, and what was done of late.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    looked: Option<Instant>,
    look: Option<Instant>,
    put_back: BTreeMap<Part, Vec<Instant>>,
    /// What is left alone, and until when.
    left: BTreeMap<Part, Instant>,
}

impl Upkeep {
    /// Something in the host's tables has changed.
    pub(super) fn on_change(&mut self, now: Instant) {
        let earliest = self.looked.map_or(now, |looked| (looked + INTERVAL).max(now));
        self.look.get_or_insert(earliest);
    }

    /// When [`Upkeep::is_due`] next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.look.into_iter().chain(self.left.values().copied()).min()
    }

    /// Whether to look at once at everything that is not [left alone](Self::is_left); the caller then does so.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let due = self.deadline().is_some_and(|at| at <= now);
        if due {
            (self.looked, self.look) = (Some(now), None);
            self.left.retain(|_, until| now < *until);
            self.put_back.retain(|_, times| {
                times.retain(|time| now < *time + SPAN);
                !times.is_empty()
            });
        }
        due
    }

    /// Whether this is left removed.
    pub(super) fn is_left(&self, part: Part) -> bool {
        self.left.contains_key(&part)
    }

    /// A part was missing and is back. Returns whether that was the last time for a while.
    pub(super) fn on_put_back(&mut self, part: Part, now: Instant) -> bool {
        let times = self.put_back.entry(part).or_default();
        times.push(now);
        let last = times.len() >= MOST;
        if last {
            self.put_back.remove(&part);
            self.leave(part, now);
        }
        last
    }

    /// Does not try this for a while.
    pub(super) fn leave(&mut self, part: Part, now: Instant) {
        self.left.insert(part, now + TRUCE);
    }

    /// Resets all pauses: the operator has requested a reload.
    pub(super) fn reset(&mut self, now: Instant) {
        *self = Self { look: Some(now), ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: Part =
        Part::Route(Prefix { addr: std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), len: 0 });
    const RULES: Part = Part::Rules(IpVersion::V4);

    #[test]
    fn the_first_change_is_handled_at_once_and_many_once_per_second() {
        let start = Instant::now();
        let mut upkeep = Upkeep::default();
        assert!(upkeep.deadline().is_none() && !upkeep.is_due(start), "nothing has happened");
        let mut looks = 0;
        for millisecond in 0..=10_500 {
            let now = start + Duration::from_millis(millisecond);
            upkeep.on_change(now);
            looks += u32::from(upkeep.is_due(now));
        }
        assert_eq!(looks, 11);
        let last = start + Duration::from_secs(11);
        assert_eq!(upkeep.deadline(), Some(last), "the last change is looked at, too");
        assert!(upkeep.is_due(last) && upkeep.deadline().is_none());
    }

    #[test]
    fn repeated_removals_are_left_alone_for_a_while() {
        let mut now = Instant::now();
        let mut upkeep = Upkeep::default();
        for time in 1..=MOST {
            upkeep.on_change(now);
            assert!(upkeep.is_due(now) && !upkeep.is_left(ROUTE));
            assert_eq!(upkeep.on_put_back(ROUTE, now), time == MOST);
            now += INTERVAL;
        }
        assert!(upkeep.is_left(ROUTE) && !upkeep.is_left(RULES));
        // The pause ends without any change.
        let end = upkeep.deadline().unwrap();
        assert_eq!(end, now - INTERVAL + TRUCE);
        assert!(upkeep.is_due(end) && !upkeep.is_left(ROUTE));
        assert!(!upkeep.on_put_back(ROUTE, end), "counted from the beginning again");
    }

    #[test]
    fn rare_removals_are_always_restored() {
        let mut now = Instant::now();
        let mut upkeep = Upkeep::default();
        for _ in 0..10 * MOST {
            upkeep.on_change(now);
            assert!(upkeep.is_due(now));
            assert!(!upkeep.on_put_back(RULES, now));
            now += SPAN / (MOST as u32 - 1);
        }
    }

    #[test]
    fn a_reload_ends_every_pause() {
        let now = Instant::now();
        let mut upkeep = Upkeep::default();
        upkeep.leave(ROUTE, now);
        upkeep.reset(now);
        assert!(upkeep.is_due(now) && !upkeep.is_left(ROUTE));
    }
}
