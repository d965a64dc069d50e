//! When a path is stopped because it goes on to lose much, and when it is tried again: a circuit breaker (RFC 8084; RFC 8085
//! section 3.1.10, RFC 8086 section 2.1).
//!
//! Loss is counted in windows of a second. As long as more than a fifth is lost the rate is halved in each, as no sender should
//! go on like that; when it has come to its floor and as much is lost in the ten seconds after that, the path is stopped. Its
//! keepalives and probes still go: if they arrive it is used again, after half a minute the first time.

use std::time::Duration;

use crate::time::Instant;

/// So much is too much.
const TOO_MUCH: f64 = 0.2;

/// A window is so long, and longer until so many datagrams were sent; one that is longer than this says nothing.
const WINDOW: Duration = Duration::from_secs(1);
const FEWEST: u64 = 10;
const LONGEST: Duration = Duration::from_secs(10);

/// It is stopped after so long at the floor.
const AT_FLOOR: Duration = Duration::from_secs(10);

/// For how long it is stopped the first time, and at the most. It doubles if the path loses too much again within a minute.
const STOPPED: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(480)];
const AGAIN: Duration = Duration::from_secs(60);

/// It is used again only if no more than this share of the probes was lost.
const HEALED: f64 = 0.1;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Act {
    /// Too much was lost for some time: the rate is to be halved, and not to grow.
    Slow,
    /// It is not so any more.
    Free,
    /// Carry nothing by it. So much was lost.
    Stop(f64),
    /// Carry again, little at first.
    Resume,
}

/// What had been received and lost at an instant.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    at: Instant,
    received: u64,
    lost: u64,
}

impl Count {
    /// What was received and lost after it.
    fn until(self, later: Self) -> [u64; 2] {
        [later.received.saturating_sub(self.received), later.lost.saturating_sub(self.lost)]
    }

    /// The share of what was sent after it that was lost, if something was sent.
    fn loss_until(self, later: Self) -> Option<f64> {
        let [received, lost] = self.until(later);
        (received + lost > 0).then(|| lost as f64 / (received + lost) as f64)
    }
}

/// What is known of the loss of a path.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    /// The begin of the present window.
    window: Count,
    /// How many windows in turn have been bad.
    bad: u32,
    state: State,
    /// How often it was stopped.
    stops: u64,
    /// For how long it was stopped last, and when that ended.
    stopped_for: Duration,
    resumed_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Usual,
    /// Windows have been bad although the rate is at its floor, from this one on.
    AtFloor(Count),
    /// Until when, and since when it was not tried again.
    Stopped { until: Instant, since: Count },
}

impl Breaker {
    /// Whether the path is stopped.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped_until().is_some()
    }

    /// How often it was stopped in this session.
    pub(crate) fn stops(&self) -> u64 {
        self.stops
    }

    /// When it is tried again, if it is stopped.
    pub(crate) fn stopped_until(&self) -> Option<Instant> {
        let State::Stopped { until, .. } = self.state else { return None };
        Some(until)
    }

    /// Feedback came: datagrams received and lost so far, and whether the rate of the path is at its floor.
    pub(crate) fn on_feedback(
        &mut self,
        now: Instant,
        [received, lost]: [u64; 2],
        at_floor: bool,
    ) -> Option<Act> {
        let count = Count { at: now, received, lost };
        if let State::Stopped { until, since } = self.state {
            return self.probe(until, since, count);
        }
        let elapsed = now.since(self.window.at);
        if self.window.at == Instant::ZERO || elapsed > LONGEST {
            self.window = count;
            return self.forgive();
        }
        let [arrived, missing] = self.window.until(count);
        if elapsed < WINDOW || arrived + missing < FEWEST {
            return None;
        }
        let window = std::mem::replace(&mut self.window, count);
        let floor = if let State::AtFloor(begin) = self.state
            && at_floor
        {
            begin
        } else {
            window
        };
        // At the floor a window has so few datagrams that by chance little is lost of those of a bad path: all of them count.
        let begin = if missing > 0 { floor } else { window };
        let loss = begin.loss_until(count).filter(|loss| *loss > TOO_MUCH);
        let Some(loss) = loss else { return self.forgive() };
        self.bad += 1;
        if !at_floor {
            self.state = State::Usual;
            // One bad window is a path that was cut for a moment, or a start that went too far.
            return (self.bad >= 2).then_some(Act::Slow);
        }
        if now.since(floor.at) < AT_FLOOR {
            self.state = State::AtFloor(floor);
            return Some(Act::Slow);
        }
        let again = self.resumed_at.is_some_and(|at| now.since(at) < AGAIN);
        let longer = if again { self.stopped_for * 2 } else { Duration::ZERO };
        self.stopped_for = longer.clamp(STOPPED[0], STOPPED[1]);
        self.state = State::Stopped { until: now + self.stopped_for, since: count };
        self.stops += 1;
        self.bad = 0;
        Some(Act::Stop(loss))
    }

    /// So little is lost that all is well, or too little was sent to know.
    fn forgive(&mut self) -> Option<Act> {
        self.state = State::Usual;
        (std::mem::take(&mut self.bad) > 0).then_some(Act::Free)
    }

    /// What was sent on a path that is stopped has arrived, or has not.
    fn probe(&mut self, until: Instant, since: Count, count: Count) -> Option<Act> {
        if count.at < until {
            return None;
        }
        if since.loss_until(count).is_some_and(|loss| loss > HEALED) {
            self.stopped_for = (self.stopped_for * 2).min(STOPPED[1]);
            self.state = State::Stopped { until: count.at + self.stopped_for, since: count };
            return None;
        }
        self.state = State::Usual;
        self.resumed_at = Some(count.at);
        self.window = count;
        Some(Act::Resume)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path with feedback each 100 ms about ten datagrams.
    #[derive(Default)]
    struct Path {
        breaker: Breaker,
        at: Duration,
        counted: [u64; 2],
    }

    impl Path {
        /// What comes of so many seconds in which this many of ten are lost, and after how many.
        fn run(&mut self, seconds: u64, lost: u64, at_floor: bool) -> Vec<(f64, Act)> {
            let begin = self.at;
            let mut acts = Vec::new();
            while self.at < begin + Duration::from_secs(seconds) {
                self.at += Duration::from_millis(100);
                self.counted = [self.counted[0] + 10 - lost, self.counted[1] + lost];
                let act = self.breaker.on_feedback(Instant::ZERO + self.at, self.counted, at_floor);
                acts.extend(act.map(|act| ((self.at - begin).as_secs_f64(), act)));
            }
            acts
        }
    }

    #[test]
    fn it_stops_a_path_that_loses_too_much_at_its_floor_only() {
        let mut path = Path::default();
        assert!(path.run(5, 0, false).is_empty());
        let slowed = path.run(30, 3, false);
        assert!(slowed.len() > 25 && slowed.iter().all(|(_, act)| *act == Act::Slow));
        assert!(slowed[0].0 > 1.0, "not after the first window: {slowed:?}");
        let acts = path.run(15, 3, true);
        let (at, act) = acts.last().unwrap();
        assert!(matches!(act, Act::Stop(loss) if (loss - 0.3).abs() < 0.01), "{act:?}");
        assert!((9.0..12.0).contains(at), "{at}");
        assert!(path.breaker.is_stopped());
    }

    #[test]
    fn a_fifth_is_not_too_much_and_a_good_second_begins_anew() {
        let mut path = Path::default();
        assert!(path.run(60, 2, true).is_empty());
        for _ in 0..5 {
            path.run(8, 5, true);
            let acts = path.run(4, 0, true);
            assert_eq!(
                acts.iter().map(|(_, act)| *act).collect::<Vec<_>>().last(),
                Some(&Act::Free)
            );
        }
        assert!(!path.breaker.is_stopped());
    }

    #[test]
    fn at_the_floor_the_loss_of_all_windows_counts_until_one_loses_nothing() {
        let mut path = Path::default();
        path.run(5, 0, false);
        for lost in [4, 1, 4, 1, 4, 1] {
            assert!(!path.breaker.is_stopped());
            path.run(2, lost, true);
        }
        assert!(path.breaker.is_stopped());
    }

    #[test]
    fn it_is_tried_again_on_a_schedule_if_probes_arrive() {
        let mut path = Path::default();
        path.run(14, 5, true);
        assert!(path.breaker.is_stopped());
        // Probes are lost as well: twice as long.
        assert!(path.run(30, 5, true).is_empty());
        let until = path.breaker.stopped_until().unwrap().since(Instant::ZERO + path.at);
        assert!(until > Duration::from_secs(50), "{until:?}");
        let acts = path.run(70, 0, true);
        assert_eq!(acts.len(), 1, "{acts:?}");
        assert_eq!(acts[0].1, Act::Resume);
        // It is no better: as soon as it is known again, for twice as long.
        path.run(14, 5, true);
        let until = path.breaker.stopped_until().unwrap().since(Instant::ZERO + path.at);
        assert!(until > Duration::from_secs(110), "{until:?}");
    }
}
