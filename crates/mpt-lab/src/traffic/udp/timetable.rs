//! When which packet of a stream is sent.

use std::sync::Arc;
use std::time::Duration;

use super::{HEADER, LARGEST, MOST_PACKETS};

/// Packets of one size at a fixed rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Time between two packets.
    pub interval: Duration,
    /// UDP payload of each packet in bytes, from [`HEADER`] to [`LARGEST`].
    pub size: usize,
    /// How long packets are sent.
    pub length: Duration,
}

impl Options {
    /// Packets of `size` bytes payload at `rate` bit/s of payload for `length`.
    pub fn at_rate(rate: u64, size: usize, length: Duration) -> Self {
        let size = size.clamp(HEADER, LARGEST);
        let interval = Duration::from_secs_f64(size as f64 * 8.0 / rate.max(1) as f64);
        Self { interval, size, length }
    }

    /// How many packets that is, at most [`MOST_PACKETS`].
    pub fn packets(&self) -> u64 {
        let packets = self.length.as_nanos() / self.interval.as_nanos().max(1);
        u64::try_from(packets).unwrap_or(u64::MAX).min(MOST_PACKETS)
    }
}

/// One packet to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When, after the start of the run.
    pub due: Duration,
    /// UDP payload in bytes; less than [`HEADER`] is taken for that.
    pub size: usize,
}

/// All packets of a stream, in the order of sending.
#[derive(Clone, Debug)]
pub struct Timetable {
    kind: Kind,
    length: Duration,
}

#[derive(Clone, Debug)]
enum Kind {
    Listed(Arc<[Departure]>),
    Steady(Options),
}

impl Timetable {
    /// Packets one by one, for a run of `length`. Those due at the same time leave in one burst. What is
    /// beyond [`MOST_PACKETS`] is not sent.
    pub fn listed(mut departures: Vec<Departure>, length: Duration) -> Self {
        departures.truncate(MOST_PACKETS as usize);
        for departure in &mut departures {
            departure.size = departure.size.clamp(HEADER, LARGEST);
        }
        Self { kind: Kind::Listed(departures.into()), length }
    }

    /// How many packets there are.
    pub fn packets(&self) -> u64 {
        match &self.kind {
            Kind::Listed(departures) => departures.len() as u64,
            Kind::Steady(options) => options.packets(),
        }
    }

    /// How long packets are sent.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// The packet of a number, counted from 0; `None` beyond the last.
    pub fn departure(&self, number: u64) -> Option<Departure> {
        match &self.kind {
            Kind::Listed(departures) => departures.get(usize::try_from(number).ok()?).copied(),
            Kind::Steady(options) => (number < options.packets()).then(|| Departure {
                due: options.interval.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX)),
                size: options.size,
            }),
        }
    }

    /// Payload of the largest packet in bytes; 0 if there is none.
    pub(super) fn largest(&self) -> usize {
        match &self.kind {
            Kind::Listed(departures) => {
                departures.iter().map(|departure| departure.size).max().unwrap_or(0)
            }
            Kind::Steady(options) => options.size,
        }
    }
}

impl From<Options> for Timetable {
    fn from(options: Options) -> Self {
        let options = Options { size: options.size.clamp(HEADER, LARGEST), ..options };
        Self { kind: Kind::Steady(options), length: options.length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_payload() {
        let options = Options::at_rate(8_000_000, 1000, Duration::from_secs(3));
        assert_eq!(options.interval, Duration::from_millis(1));
        assert_eq!(options.packets(), 3000);
        assert_eq!(Options::at_rate(1, 1, Duration::ZERO).size, HEADER);
        let flood = Options::at_rate(u64::MAX, HEADER, Duration::from_secs(3600));
        assert_eq!(flood.packets(), MOST_PACKETS);
    }

    #[test]
    fn a_steady_stream_keeps_its_interval_and_ends() {
        let timetable =
            Timetable::from(Options::at_rate(8_000_000, 1000, Duration::from_millis(3)));
        let all: Vec<_> = (0..9).map_while(|number| timetable.departure(number)).collect();
        let due: Vec<_> = all.iter().map(|departure| departure.due.as_millis()).collect();
        assert_eq!((due, timetable.packets()), (vec![0, 1, 2], 3));
    }

    #[test]
    fn listed_packets_are_no_smaller_than_their_header() {
        let departures = [1, 500].map(|size| Departure { due: Duration::ZERO, size });
        let timetable = Timetable::listed(departures.to_vec(), Duration::from_secs(1));
        assert_eq!(timetable.departure(0).unwrap().size, HEADER);
        assert_eq!((timetable.largest(), timetable.packets()), (500, 2));
        assert_eq!(timetable.departure(2), None);
    }
}
