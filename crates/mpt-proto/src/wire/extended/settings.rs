//! Settings: what stands behind some path statuses, and says how their sender is set.
//!
//! ```text
//! offset  24     25          26         27       28..30   30..32      32..34   34..36      36      37..40
//!       | form | scheduler | priority | weight | MTU    | dead time | window | max delay | flags | reserved |
//! ```
//!
//! Nothing follows from them but what people are told: whether both ends fit.

use std::num::NonZeroU16;
use std::time::Duration;

use super::fields::{Reader, Writer};
use crate::stats::Drop;
use crate::wire::weight;

/// Their length.
pub const LEN: usize = 16;

/// The form that this module knows.
const FORM: u8 = 1;

const MTU_IS_SET: u8 = 1;
const EVIDENCE: u8 = 2;
const EARLY_RELEASE: u8 = 4;
const LATE_ARE_DROPPED: u8 = 8;

/// How a host picks a path for each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picks {
    /// By weights.
    Weighted,
    /// Flow by flow.
    Flow,
    /// The path by which it arrives first.
    Earliest,
    /// The path with the least delay that has room.
    LowestRtt,
    /// All paths that have room.
    Redundant,
}

/// By their numbers.
const PICKS: [Picks; 5] =
    [Picks::Weighted, Picks::Flow, Picks::Earliest, Picks::LowestRtt, Picks::Redundant];

/// How a host is set, as it tells its peer on one of their paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How it picks paths; `None` in a way that is not known here.
    pub picks: Option<Picks>,
    /// Its priority of the path.
    pub priority: u8,
    /// The weight by which it sends on the path, rounded to five significant bits.
    pub weight: Option<NonZeroU16>,
    /// The MTU of its tunnel; `None` if it does not say.
    pub mtu: Option<NonZeroU16>,
    /// Whether that is configured. Otherwise it follows from the paths.
    pub mtu_is_set: bool,
    /// The silence after which the path is down for it, in milliseconds, at the most 65.535 s; `None` if it never is.
    pub dead_time: Option<Duration>,
    /// Whether it puts packets in order by evidence. Otherwise the four below say how.
    pub evidence: bool,
    /// How many packets it holds at the most.
    pub window: u16,
    /// How long it holds one at the most, in milliseconds, at the most 65.535 s.
    pub max_delay: Duration,
    /// Whether it gives a number up as soon as every live path has delivered a higher one.
    pub early_release: bool,
    /// Whether it drops packets that come after that.
    pub drops_late: bool,
}

impl Settings {
    /// Writes them.
    ///
    /// # Panics
    ///
    /// If `message` is shorter than [`LEN`].
    pub fn emit(&self, message: &mut [u8]) {
        let place = |of| PICKS.iter().position(|other| *other == of);
        let picks = self.picks.and_then(place).map_or(u8::MAX, |place| place as u8);
        let mut to = Writer::new(message);
        to.u8(FORM).u8(picks).u8(self.priority);
        to.u8(self.weight.map_or(0, weight::announcement));
        to.u16(self.mtu.map_or(0, NonZeroU16::get));
        to.u16(self.dead_time.map_or(0, |time| millis(time).max(1)));
        to.u16(self.window).u16(millis(self.max_delay));
        let flags = [
            (self.mtu_is_set, MTU_IS_SET),
            (self.evidence, EVIDENCE),
            (self.early_release, EARLY_RELEASE),
            (self.drops_late, LATE_ARE_DROPPED),
        ];
        to.u8(flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum());
    }

    /// Reads what stands behind a path status; `None` if that is nothing, padding, or another form.
    pub fn parse(message: &[u8]) -> Option<Self> {
        Self::read(Reader::new(message)).ok().flatten()
    }

    fn read(mut from: Reader<'_>) -> Result<Option<Self>, Drop> {
        if from.u8()? != FORM {
            return Ok(None);
        }
        let picks = PICKS.get(usize::from(from.u8()?)).copied();
        let (priority, weight) = (from.u8()?, weight::announced(from.u8()?));
        let (mtu, dead_time) = (NonZeroU16::new(from.u16()?), from.u16()?);
        let (window, max_delay, flags) = (from.u16()?, from.u16()?, from.u8()?);
        from.bytes(3)?;
        let time = |millis: u16| Duration::from_millis(millis.into());
        Ok(Some(Self {
            picks,
            priority,
            weight,
            mtu,
            mtu_is_set: flags & MTU_IS_SET != 0,
            dead_time: (dead_time > 0).then(|| time(dead_time)),
            evidence: flags & EVIDENCE != 0,
            window,
            max_delay: time(max_delay),
            early_release: flags & EARLY_RELEASE != 0,
            drops_late: flags & LATE_ARE_DROPPED != 0,
        }))
    }
}

fn millis(time: Duration) -> u16 {
    u16::try_from(time.as_millis()).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            picks: Some(Picks::Redundant),
            priority: 7,
            weight: NonZeroU16::new(3),
            mtu: NonZeroU16::new(1400),
            mtu_is_set: true,
            dead_time: Some(Duration::from_millis(700)),
            evidence: false,
            window: 4096,
            max_delay: Duration::from_millis(100),
            early_release: true,
            drops_late: true,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let none = Settings { weight: None, mtu: None, dead_time: None, ..settings() };
        let long = Settings { dead_time: Some(Duration::from_secs(900)), ..settings() };
        let most = Settings { dead_time: Some(Duration::from_millis(65_535)), ..settings() };
        for (written, read) in [(settings(), settings()), (none, none), (long, most)] {
            let mut message = [0xff; LEN];
            written.emit(&mut message);
            assert_eq!(Settings::parse(&message), Some(read));
        }
    }

    #[test]
    fn padding_and_other_forms_are_no_settings() {
        let mut message = [0; LEN];
        assert_eq!(Settings::parse(&message), None);
        settings().emit(&mut message);
        assert_eq!(Settings::parse(&message[..LEN - 1]), None);
        message[1] = 9;
        assert_eq!(Settings::parse(&message).unwrap().picks, None, "a scheduler of later");
        message[0] = 2;
        assert_eq!(Settings::parse(&message), None);
    }
}
