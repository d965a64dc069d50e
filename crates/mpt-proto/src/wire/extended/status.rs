//! Path status: the keepalive of extended framing. It concerns the path that it is sent on.
//!
//! ```text
//! offset  0        1       2..4      4        5      6..8       8..12  12..16 16..20 20..24
//!       | status | count | longest | weight | lost | interval | sent | echo | held | equalise |
//! ```
//!
//! The time at which it was sent is in the header of the datagram. [`Settings`] may follow.

use std::num::{NonZeroU16, NonZeroU32};

use super::fields::{Reader, Writer};
use super::settings::{self, Settings};
use crate::stats::Drop;
use crate::wire::keepalive::{Activation, Echo, Report, status_byte, status_of};
use crate::wire::weight;

/// The length of the message without settings.
pub const LEN: usize = 24;

/// Its length with settings.
pub const LONG_LEN: usize = LEN + settings::LEN;

/// A path status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// How its sender sees the path.
    pub report: Report,
    /// What its sender uses.
    pub activation: Activation,
    /// How many path statuses its sender has accepted on this path in this session, modulo 256.
    pub count: u8,
    /// The length in bytes of UDP payload of the longest datagram that has recently arrived at its sender on
    /// this path; `None` if it reports none.
    pub longest: Option<NonZeroU16>,
    /// The weight that its sender wants the path to have for what it receives, 1 to
    /// [`MAX_WEIGHT`](crate::MAX_WEIGHT); rounded to five significant bits on its way. `None` if it wants none.
    pub weight: Option<NonZeroU16>,
    /// The path id, 0 to 254, in its sender's numbering, of another path, which its sender has lost.
    pub lost: Option<u8>,
    /// How often its sender sends path statuses on this path if its peer is no slower, in milliseconds; `None` if it does not
    /// say.
    pub interval: Option<NonZeroU16>,
    /// How many datagrams with inner packets its sender has sent on the path in this session, modulo 2^32.
    pub sent: u32,
    /// When the last path status was sent that has arrived at its sender on this path; `None` if none has.
    pub echo: Option<Echo>,
    /// The delay in microseconds to which data with [`Flags::EQUALISE`](super::Flags::EQUALISE) is held.
    pub equalise: Option<NonZeroU32>,
    /// How its sender is set; `None` if it does not say so this time.
    pub settings: Option<Settings>,
}

impl Status {
    /// The length of the message.
    pub const fn wire_len(&self) -> usize {
        if self.settings.is_some() { LONG_LEN } else { LEN }
    }

    /// Writes the message.
    ///
    /// # Panics
    ///
    /// If `message` is shorter than [`wire_len`](Self::wire_len).
    pub fn emit(&self, message: &mut [u8]) {
        let mut to = Writer::new(message);
        to.u8(status_byte(self.report, self.activation)).u8(self.count);
        to.u16(self.longest.map_or(0, NonZeroU16::get));
        to.u8(self.weight.map_or(0, weight::announcement));
        to.u8(self.lost.map_or(0, |path| path.saturating_add(1)));
        to.u16(self.interval.map_or(0, NonZeroU16::get));
        let Echo { time, held } = self.echo.unwrap_or(Echo { time: 0, held: Echo::NONE });
        to.u32(self.sent).u32(time).u32(held);
        to.u32(self.equalise.map_or(0, NonZeroU32::get));
        if let Some(settings) = self.settings {
            settings.emit(&mut message[LEN..]);
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    ///
    /// [`Drop::ControlLength`] if it is shorter than [`LEN`].
    pub fn parse(message: &[u8]) -> Result<Self, Drop> {
        let mut from = Reader::new(message);
        let (report, activation) = status_of(from.u8()?);
        let count = from.u8()?;
        let longest = NonZeroU16::new(from.u16()?);
        let weight = weight::announced(from.u8()?);
        let lost = from.u8()?.checked_sub(1);
        let interval = NonZeroU16::new(from.u16()?);
        let (sent, time, held) = (from.u32()?, from.u32()?, from.u32()?);
        let echo = (held != Echo::NONE).then_some(Echo { time, held });
        let equalise = NonZeroU32::new(from.u32()?);
        let settings = Settings::parse(&message[LEN..]);
        Ok(Self {
            report,
            activation,
            count,
            longest,
            weight,
            lost,
            interval,
            sent,
            echo,
            equalise,
            settings,
        })
    }
}
