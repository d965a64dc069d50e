//! Sets of ports, as settings name them.

use std::fmt;
use std::ops::RangeInclusive;

/// The most ranges of one [`PortRanges`]. Every packet may be compared with every list, so a list
/// stays short; a longer list is better written as its complement.
pub const MAX_PORT_RANGES: usize = 64;

/// A set of ports: ranges in ascending order that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortRanges(Vec<RangeInclusive<u16>>);

/// Why ranges of ports cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortsError {
    /// A range ends before it begins.
    Backwards(RangeInclusive<u16>),
    /// More than [`MAX_PORT_RANGES`] remain after those that overlap or touch were joined.
    TooMany,
}

impl PortRanges {
    /// The set of all ports in `ranges`, in any order; single ports are ranges of one.
    ///
    /// # Errors
    ///
    /// If a range ends before it begins, or too many remain apart.
    pub fn new(ranges: impl IntoIterator<Item = RangeInclusive<u16>>) -> Result<Self, PortsError> {
        let mut sorted: Vec<_> = ranges.into_iter().collect();
        if let Some(backwards) = sorted.iter().find(|range| range.is_empty()) {
            return Err(PortsError::Backwards(backwards.clone()));
        }
        sorted.sort_by_key(|range| *range.start());
        let mut joined: Vec<RangeInclusive<u16>> = Vec::new();
        for range in sorted {
            match joined.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                Some(_) | None => joined.push(range),
            }
        }
        if joined.len() > MAX_PORT_RANGES {
            return Err(PortsError::TooMany);
        }
        Ok(Self(joined))
    }

    /// Whether `port` is in the set.
    #[inline]
    pub fn contains(&self, port: u16) -> bool {
        self.0.iter().any(|range| range.contains(&port))
    }

    /// Whether no port is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges, ascending.
    pub fn ranges(&self) -> &[RangeInclusive<u16>] {
        &self.0
    }
}

/// `22, 5060-5070`; nothing for the empty set.
impl fmt::Display for PortRanges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, range) in self.0.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            match (range.start(), range.end()) {
                (start, end) if start == end => write!(formatter, "{comma}{start}")?,
                (start, end) => write!(formatter, "{comma}{start}-{end}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for PortsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backwards(range) => {
                write!(formatter, "the ports {}-{} run backwards", range.start(), range.end())
            }
            Self::TooMany => write!(formatter, "there are more than {MAX_PORT_RANGES} port ranges"),
        }
    }
}

impl std::error::Error for PortsError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_sorted_joined_and_bounded() {
        let ports = PortRanges::new([5065..=5070, 22..=22, 5060..=5066, 23..=23]).unwrap();
        assert_eq!(ports.ranges(), [22..=23, 5060..=5070]);
        assert_eq!(ports.to_string(), "22-23, 5060-5070");
        assert_eq!(PortRanges::new([65535..=65535, 0..=65535]).unwrap().ranges(), [0..=65535]);
        assert_eq!(PortRanges::default().to_string(), "");
        let backwards = RangeInclusive::new(7, 6);
        let refused = PortRanges::new([1..=2, backwards.clone()]);
        assert_eq!(refused, Err(PortsError::Backwards(backwards)));
        let apart = |count: u16| PortRanges::new((0..count).map(|port| port * 2..=port * 2));
        assert_eq!(apart(64).unwrap().ranges().len(), 64);
        assert_eq!(apart(65), Err(PortsError::TooMany));
        let touching = PortRanges::new((0..1000).map(|port| port..=port)).unwrap();
        assert_eq!(touching.ranges(), [0..=999]);
    }

    proptest! {
        #[test]
        fn joined_ranges_hold_the_same_ports(
            ends in prop::collection::vec((0..300_u16, 0..300_u16), 0..20),
        ) {
            let ranges: Vec<_> = ends.iter().map(|&(a, b)| a.min(b)..=a.max(b)).collect();
            let ports = PortRanges::new(ranges.clone()).unwrap();
            for port in 0..302 {
                let there = ranges.iter().any(|range| range.contains(&port));
                prop_assert_eq!(ports.contains(port), there, "{}", port);
            }
        }
    }
}
