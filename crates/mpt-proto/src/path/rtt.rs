//! The round trip of a path.

use std::time::Duration;

/// How long datagrams take to the peer and back, from echoed times.
///
/// `smoothed` and `variation` are SRTT and RTTVAR of RFC 6298 section 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// The last one measured.
    pub latest: Duration,
    /// The shortest of all.
    pub min: Duration,
    /// The smoothed round trip time.
    pub smoothed: Duration,
    /// The round trip time variation.
    pub variation: Duration,
}

impl RoundTrip {
    /// With one more measured; the first if there was none.
    pub(super) fn after(before: Option<Self>, latest: Duration) -> Self {
        let Some(before) = before else {
            return Self { latest, min: latest, smoothed: latest, variation: latest / 2 };
        };
        let deviation = before.smoothed.abs_diff(latest);
        Self {
            latest,
            min: before.min.min(latest),
            smoothed: (before.smoothed * 7 + latest) / 8,
            variation: (before.variation * 3 + deviation) / 4,
        }
    }

    /// What it may be at the moment, when queues fill: the last one or the smoothed, whichever is longer.
    pub(crate) fn recent(self) -> Duration {
        self.latest.max(self.smoothed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_smoothed_as_rfc_6298_section_2_says() {
        let ms = Duration::from_millis;
        let first = RoundTrip::after(None, ms(80));
        assert_eq!((first.smoothed, first.variation), (ms(80), ms(40)), "rule 2.2");
        let second = RoundTrip::after(Some(first), ms(160));
        // Rule 2.3: RTTVAR = 3/4 * 40 + 1/4 * 80, SRTT = 7/8 * 80 + 1/8 * 160.
        assert_eq!((second.smoothed, second.variation), (ms(90), ms(50)));
        assert_eq!((second.latest, second.min), (ms(160), ms(80)));
    }
}
