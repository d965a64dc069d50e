//! What a sender offered each link over time, and what that says about an event.

use std::time::Duration;

use crate::cell::{Change, Event};
use crate::emulator::Direction;
use crate::record::{EventRecord, megabits};

/// Over how long a rate is taken: a few readings, less than any dead time.
const WINDOW: Duration = Duration::from_millis(100);
/// Over how long the rate before an event is taken.
const BEFORE: Duration = Duration::from_secs(1);
/// A link with less than this share of its former rate counts as unused; keepalives may continue.
const LEFT: f64 = 0.1;
/// A link that gets this share of its former rate is used again.
const USED: f64 = 0.5;

/// Bytes offered to each link since its start, as read from time to time.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace(Vec<(Duration, Vec<u64>)>);

impl Trace {
    pub(super) fn add(&mut self, at: Duration, offered: Vec<u64>) {
        self.0.push((at, offered));
    }

    /// What each event led to. `events` are in the order of time.
    pub(super) fn records(
        &self,
        events: &[Event],
        name: impl Fn(usize) -> String,
    ) -> Vec<EventRecord> {
        // The rate before the first event of a link is what it is compared with.
        let before = |event: &Event| {
            let first = events.iter().find(|other| other.link == event.link).unwrap_or(event);
            let at = Duration::from_secs_f64(first.at);
            self.rate(event.link, at.saturating_sub(BEFORE), at)
        };
        let record = |event: &Event| {
            let (at, before) = (Duration::from_secs_f64(event.at), before(event));
            let until = events
                .iter()
                .find(|other| other.link == event.link && other.at > event.at)
                .map_or(Duration::MAX, |other| Duration::from_secs_f64(other.at));
            let left = match event.change {
                _ if before <= 0.0 => None,
                // Nothing else happens that would end it, so the first pause counts.
                Change::Roam => self.paused(event.link, at, LEFT * before),
                change if is_bad(change) => self.left(event.link, at, until, LEFT * before),
                Change::CarrierDown
                | Change::CarrierUp
                | Change::Cut(_)
                | Change::Mend
                | Change::Rate(_) => None,
            };
            let since = match event.change {
                // After a move, the link is back when the sender, having left it, uses it again.
                Change::Roam => left.map(|left| at + left),
                change if is_bad(change) => None,
                // Only a link that was left can be used again.
                Change::CarrierDown
                | Change::CarrierUp
                | Change::Cut(_)
                | Change::Mend
                | Change::Rate(_) => self.was_left_before(events, event, before).then_some(at),
            };
            let used = since.and_then(|since| {
                let used = self.used(event.link, since, until, USED * before)?;
                Some(since.saturating_sub(at) + used)
            });
            EventRecord {
                link: name(event.link),
                change: words(event.change),
                at: event.at,
                before_mbps: megabits(before),
                leave_seconds: left.map(|time| time.as_secs_f64()),
                return_seconds: used.map(|time| time.as_secs_f64()),
                settling: None,
            }
        };
        events.iter().map(record).collect()
    }

    /// Whether a link was left alone when something good happened to it.
    fn was_left_before(&self, events: &[Event], event: &Event, before: f64) -> bool {
        let at = Duration::from_secs_f64(event.at);
        let earlier = |other: &&Event| other.link == event.link && other.at < event.at;
        let Some(bad) = events.iter().rfind(|other| earlier(other) && is_bad(other.change)) else {
            return false;
        };
        let from = Duration::from_secs_f64(bad.at);
        before > 0.0 && self.left(event.link, from, at, LEFT * before).is_some()
    }

    /// Bits per second that a link was offered between two times.
    fn rate(&self, link: usize, from: Duration, to: Duration) -> f64 {
        let at = |time| self.0.iter().rfind(|(at, _)| *at <= time);
        let (Some((start, first)), Some((end, last))) = (at(from), at(to)) else { return 0.0 };
        let seconds = end.saturating_sub(*start).as_secs_f64();
        if seconds > 0.0 { (last[link] - first[link]) as f64 * 8.0 / seconds } else { 0.0 }
    }

    /// How long after `at` a link was last offered packets at its former rate, of which `rate` is the share that counts as
    /// unused: the last window in which it was offered as much ended later by the rest of its length. `None` if it still
    /// was when the readings, or the time until the next event, ended.
    fn left(&self, link: usize, at: Duration, until: Duration, rate: f64) -> Option<Duration> {
        let windows = self.windows(link, at, until);
        let last = windows.iter().rposition(|&(_, offered)| offered >= rate);
        match last {
            None if windows.is_empty() => None,
            None => Some(Duration::ZERO),
            Some(last) if last + 1 < windows.len() => {
                Some(windows[last].0.saturating_sub(at + WINDOW.mul_f64(1.0 - LEFT)))
            }
            Some(_) => None,
        }
    }

    /// How long after `at` the first window ended in which a link was offered less than `rate`.
    fn paused(&self, link: usize, at: Duration, rate: f64) -> Option<Duration> {
        let windows = self.windows(link, at, Duration::MAX);
        let (end, _) = windows.into_iter().find(|&(_, offered)| offered < rate)?;
        Some(end.saturating_sub(at))
    }

    /// How long after `at` the first window began in which a link was offered at least `rate`.
    fn used(&self, link: usize, at: Duration, until: Duration, rate: f64) -> Option<Duration> {
        let windows = self.windows(link, at, until);
        let (end, _) = windows.into_iter().find(|&(_, offered)| offered >= rate)?;
        Some(end.saturating_sub(WINDOW).saturating_sub(at))
    }

    /// The end of every window between two times, and what was offered in it.
    fn windows(&self, link: usize, from: Duration, until: Duration) -> Vec<(Duration, f64)> {
        let ends = self.0.iter().map(|(at, _)| *at);
        let inside = ends.filter(|&end| end >= from + WINDOW && end < until);
        inside.map(|end| (end, self.rate(link, end.saturating_sub(WINDOW), end))).collect()
    }
}

/// A change in words.
fn words(change: Change) -> String {
    match change {
        Change::CarrierDown => "carrier lost".into(),
        Change::CarrierUp => "carrier back".into(),
        Change::Cut(Direction::Both) => "silently cut".into(),
        Change::Cut(Direction::Forward) => "silently cut from left to right".into(),
        Change::Cut(Direction::Backward) => "silently cut from right to left".into(),
        Change::Mend => "mended".into(),
        Change::Rate(share) => format!("rate x {share}"),
        Change::Roam => "new address".into(),
    }
}

/// Whether a change is one to flee from.
fn is_bad(change: Change) -> bool {
    match change {
        Change::CarrierDown | Change::Cut(_) | Change::Roam => true,
        Change::CarrierUp | Change::Mend => false,
        Change::Rate(share) => share < 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUT: Change = Change::Cut(Direction::Both);

    /// One link that is offered 10 Mbit/s but for some tenths of a second.
    fn trace(silent: std::ops::Range<u64>) -> Trace {
        let mut trace = Trace::default();
        let mut bytes = 0;
        for reading in 0..500u64 {
            trace.add(Duration::from_millis(reading * 20), vec![bytes]);
            let is_silent = silent.contains(&(reading * 20 / 100));
            bytes += if is_silent { 100 } else { 25_000 };
        }
        trace
    }

    fn events(change: [Change; 2]) -> Vec<Event> {
        let [bad, good] = change;
        vec![Event { at: 3.0, link: 0, change: bad }, Event { at: 6.0, link: 0, change: good }]
    }

    #[test]
    fn leaving_and_reusing_a_link_are_measured() {
        // It is offered packets for half a second after the cut, and again 0.7 s after it was
        // restored.
        let records = trace(35..67).records(&events([CUT, Change::Mend]), |_| "a".to_owned());
        let [cut, mend] = records.as_slice() else { panic!("{records:?}") };
        assert!((cut.before_mbps - 10.0).abs() < 0.1, "{cut:?}");
        let left = cut.leave_seconds.unwrap();
        assert!((0.48..=0.53).contains(&left), "{left}");
        let used = mend.return_seconds.unwrap();
        assert!((0.6..=0.8).contains(&used), "{used}");
        assert_eq!((cut.return_seconds, mend.leave_seconds), (None, None));
    }

    #[test]
    fn a_link_that_is_never_abandoned_or_reused_has_no_figure() {
        let records = trace(0..0).records(&events([CUT, Change::Mend]), |_| "a".to_owned());
        assert_eq!((records[0].leave_seconds, records[1].return_seconds), (None, None));
        let late = [Event { at: 9.95, link: 0, change: CUT }];
        let records = trace(0..0).records(&late, |_| "a".to_owned());
        assert_eq!(records[0].leave_seconds, None, "nobody looked after that");
        let roam = [Event { at: 3.0, link: 0, change: Change::Roam }];
        let records = trace(35..67).records(&roam, |_| "a".to_owned());
        let (left, back) = (records[0].leave_seconds.unwrap(), records[0].return_seconds.unwrap());
        assert!((0.5..=0.7).contains(&left) && (3.6..=3.8).contains(&back), "{left}, {back}");
        let records = trace(35..100).records(&events([CUT, Change::Mend]), |_| "a".to_owned());
        assert_eq!(records[1].return_seconds, None);
    }
}
