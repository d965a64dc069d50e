//! What follows from how much of a quota is used.

use mpt_proto::Surcharge;

use super::month::{DAY, Month};

/// The most that is added to the price of a path, in milliseconds: above 100 a transfer leaves the path alone, and what
/// has waited for a second can go by no other path.
const MOST: u16 = 1000;

/// Steps of that in milliseconds, so that the core is not told of each packet.
const STEP: u16 = 10;

/// How much of a quota is used, and of which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// The quota in bytes.
    pub(crate) quota: u64,
    /// Bytes that were carried since the month began.
    pub(crate) used: u64,
    /// The month; `None` if the host's clock is not set.
    pub(crate) month: Option<Month>,
    /// The time in seconds since 1970, which counts only with a month.
    pub(crate) now: u64,
}

/// What is worth a warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    #[default]
    Enough,
    /// 80 % are used.
    Little,
    /// All is used.
    Nothing,
}

impl Use {
    /// Whether nothing is left.
    fn is_all(&self) -> bool {
        self.used >= self.quota
    }

    /// What it adds to what the path costs. The share of the month that has passed may be used, and a day's more: that
    /// costs nothing. What is used beyond, as a share of what is to last for the rest of the month, is the share of the
    /// highest price. When nothing is left the path is a last resort.
    pub(crate) fn surcharge(&self) -> Surcharge {
        if self.is_all() {
            return Surcharge { price: MOST, last_resort: true };
        }
        let Some(Month { begin, end }) = self.month else { return Surcharge::default() };
        let length = u128::from(end - begin);
        let passed = u128::from((self.now + DAY).saturating_sub(begin)).min(length);
        let (quota, used) = (u128::from(self.quota), u128::from(self.used));
        // Both sides as bytes and seconds, so that nothing is rounded.
        let beyond = (used * length).saturating_sub(quota * passed);
        let rest = quota * (length - passed);
        let steps = (beyond * u128::from(MOST / STEP)).div_ceil(rest.max(1));
        Surcharge { price: steps as u16 * STEP, last_resort: false }
    }

    pub(super) fn level(&self) -> Level {
        if self.is_all() {
            Level::Nothing
        } else if u128::from(self.used) * 5 >= u128::from(self.quota) * 4 {
            Level::Little
        } else {
            Level::Enough
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The surcharge when so many percent are used after so many days of a month of 30.
    fn after(days: u64, percent: u64) -> Surcharge {
        let month = Some(Month { begin: 100 * DAY, end: 130 * DAY });
        Use { quota: 1000, used: percent * 10, month, now: (100 + days) * DAY }.surcharge()
    }

    fn price(price: u16) -> Surcharge {
        Surcharge { price, last_resort: false }
    }

    #[test]
    fn what_is_used_no_faster_than_the_month_passes_costs_nothing() {
        for (days, percent) in [(0, 0), (0, 3), (14, 50), (29, 99), (20, 10)] {
            assert_eq!(after(days, percent), price(0), "{days} days, {percent} %");
        }
    }

    #[test]
    fn the_faster_it_is_used_the_more_it_costs() {
        // Half may be used by then; 1 % more is 2 % of what is to last.
        for (percent, millis) in [(50, 0), (51, 20), (55, 100), (75, 500), (99, 980)] {
            assert_eq!(after(14, percent), price(millis), "{percent} %");
        }
        assert_eq!(after(0, 4), price(10), "in the first hours");
        let [early, late] = [2, 20].map(|days| after(days, 70).price);
        assert!(
            early > 600 && late < 50,
            "{early} and {late}: it becomes less as the month passes"
        );
    }

    #[test]
    fn when_nothing_is_left_it_is_a_last_resort() {
        let all = Surcharge { price: 1000, last_resort: true };
        assert_eq!([after(1, 100), after(29, 100), after(29, 180)], [all; 3]);
    }

    #[test]
    fn as_long_as_the_clock_is_not_set_only_the_whole_quota_counts() {
        let of = |used| Use { quota: 1000, used, month: None, now: 0 }.surcharge();
        assert_eq!(of(999), price(0));
        assert!(of(1000).last_resort);
    }
}
