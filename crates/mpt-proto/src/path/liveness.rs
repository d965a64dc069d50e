//! Whether a path is up: keepalives in, dead time over, and the peer's word about it.
//!
//! A side *hears* a path while something that it accepted came over it within the dead time; data
//! counts as much as a keepalive. Hearing is not enough, for a path may be dead in one direction
//! only: each keepalive therefore says whether its sender hears the path. It is up while we hear it
//! and the peer has not said that it is deaf or has switched it off. The original MPT never says
//! anything, so there hearing alone decides.

use std::time::Duration;

use crate::path::{DownCause, PathState, PathStatus};
use crate::time::Instant;
use crate::wire::keepalive::Report;

/// What is known about one path.
#[derive(Debug)]
pub(crate) struct Liveness {
    status: PathStatus,
    dead_time: Option<Duration>,
    heard: Heard,
    peer: Report,
    was_up: bool,
    fits: bool,
    /// Whether this host has what the path needs.
    present: bool,
    /// The peer's report about it by other means than its own keepalives: lost, or down.
    peer_left: Option<DownCause>,
    /// That the peer has lately said by a command that it is down, and what is to be waited for.
    told: Option<Told>,
    /// When it was heard before the operator switched it off and on.
    heard_before: Option<Instant>,
}

/// A peer that says *down* by a command goes on with its keepalives, and takes the path up again without a word: then
/// it sends data on it. So a keepalive alone means little for a while, which grows as it turns out that the peer does
/// not use the path.
#[derive(Clone, Copy, Debug)]
struct Told {
    at: Instant,
    /// Until then keepalives do not count.
    until: Instant,
    patience: Duration,
}

/// How long keepalives do not count at first, and at most.
const PATIENCE: Duration = Duration::from_secs(3);
const MAX_PATIENCE: Duration = Duration::from_secs(60);

/// How long what arrives may have been on its way when the peer said *down*.
const IN_FLIGHT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
enum Heard {
    Never,
    At(Instant),
    TooLongAgo(Instant),
}

impl Liveness {
    pub(crate) fn new(status: PathStatus, dead_time: Option<Duration>) -> Self {
        Self {
            status,
            dead_time,
            heard: Heard::Never,
            peer: Report::default(),
            was_up: false,
            fits: true,
            present: true,
            peer_left: None,
            told: None,
            heard_before: None,
        }
    }

    /// What the path is.
    pub(crate) fn state(&self) -> PathState {
        if self.status == PathStatus::Off {
            PathState::Off
        } else if !self.present {
            PathState::Down(DownCause::Absent)
        } else if !self.fits {
            PathState::UnusableMtu
        } else if self.peer.stops() {
            PathState::Down(DownCause::PeerStopped)
        } else if self.peer.off {
            PathState::Down(DownCause::PeerOff)
        } else if let Some(cause) = self.peer_left {
            PathState::Down(cause)
        } else if !self.hearing() {
            match self.heard {
                Heard::Never => PathState::Probing,
                Heard::At(_) | Heard::TooLongAgo(_) => PathState::Down(DownCause::Silent),
            }
        } else if self.peer.deaf {
            if self.was_up { PathState::Down(DownCause::PeerDeaf) } else { PathState::Probing }
        } else {
            PathState::Up
        }
    }

    /// Whether we hear the path. Without a dead time it is taken on trust.
    pub(crate) fn hearing(&self) -> bool {
        self.status == PathStatus::Available
            && self.present
            && (self.dead_time.is_none() || matches!(self.heard, Heard::At(_)))
    }

    /// Whether the peer may be sending inner packets on this path: it does so while it is up there,
    /// whatever we think of our own direction.
    pub(crate) fn live(&self) -> bool {
        self.hearing() && !self.peer.deaf && !self.is_left()
    }

    /// Whether one side has left the path, or lost it, and said so: what was sent before may still come,
    /// or come again on another.
    pub(crate) fn is_left(&self) -> bool {
        self.status == PathStatus::Off || !self.present || self.peer.off || self.peer_left.is_some()
    }

    /// Whether the peer has said that it does not hear us on this path.
    pub(crate) fn peer_deaf(&self) -> bool {
        self.peer.deaf && !self.peer.stops()
    }

    /// The silence after which it is down; `None` if it never is.
    pub(crate) fn dead_time(&self) -> Option<Duration> {
        self.dead_time
    }

    /// When the path was last heard, also if it was before it was switched off and on.
    pub(crate) fn last_heard(&self) -> Option<Instant> {
        match self.heard {
            Heard::Never => self.heard_before,
            Heard::At(at) | Heard::TooLongAgo(at) => Some(at),
        }
    }

    /// When the path goes silent unless it is heard before.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match (self.heard, self.dead_time) {
            (Heard::At(at), Some(dead_time)) => Some(at + dead_time),
            _ => None,
        }
    }

    /// Something acceptable came over the path. A path that is off is not listened to.
    pub(crate) fn on_heard(&mut self, now: Instant) {
        if self.status == PathStatus::Available {
            self.heard = Heard::At(now);
            self.was_up = self.was_up || self.state() == PathState::Up;
        }
    }

    /// A keepalive came over the path, with the peer's word about it.
    pub(crate) fn on_keepalive(&mut self, now: Instant, report: Report) {
        if self.status == PathStatus::Available {
            // Without a dead time it can be up before anything was heard.
            self.was_up |= self.state() == PathState::Up;
            self.peer = report;
            let is_back = matches!(self.heard, Heard::TooLongAgo(_));
            self.told = self.told.filter(|_| !is_back);
            // The peer would not send on a path that it does not have, but for one that says so by command.
            if self.told.is_none_or(|told| told.until <= now) {
                self.peer_left = None;
            }
            self.on_heard(now);
        }
    }

    /// An inner packet came over the path. Returns whether that takes back what the peer has said by a command.
    #[inline(always)]
    pub(crate) fn on_data(&mut self, now: Instant) -> bool {
        let is_back = self.told.is_some_and(|told| told.at + IN_FLIGHT <= now);
        if is_back {
            self.told = None;
            self.peer_left = self.peer_left.filter(|cause| *cause != DownCause::PeerDown);
        }
        self.on_heard(now);
        is_back
    }

    /// Whether the peer has said *down* by a command, and has not used the path since.
    pub(crate) fn is_told(&self) -> bool {
        self.told.is_some()
    }

    /// The peer sends on other paths, and not on this one, of which it has said that it is down.
    pub(crate) fn on_passed_over(&mut self, now: Instant) {
        if let Some(told) = &mut self.told {
            if told.until <= now {
                told.patience = (told.patience * 2).min(MAX_PATIENCE);
            }
            told.until = now + told.patience;
            self.peer_left = Some(DownCause::PeerDown);
        }
    }

    /// The dead time may be over.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if let (Heard::At(at), Some(deadline)) = (self.heard, self.deadline())
            && deadline <= now
        {
            self.heard = Heard::TooLongAgo(at);
        }
    }

    /// The operator wants something else of the path. What was known of it is out of date.
    pub(crate) fn on_status(&mut self, status: PathStatus) {
        if status != self.status {
            let Self { dead_time, fits, present, .. } = *self;
            let heard_before = self.last_heard();
            *self = Self { fits, present, heard_before, ..Self::new(status, dead_time) };
        }
    }

    /// The peer has lost what it needs for the path.
    pub(crate) fn on_peer_lost(&mut self) {
        self.peer_left = Some(DownCause::PeerLost);
    }

    /// The peer has said by a command that the path is down, or that it is not. The latter is as good as a keepalive.
    pub(crate) fn on_peer_down(&mut self, now: Instant, down: bool) {
        if self.status == PathStatus::Available {
            self.peer_left = down.then_some(DownCause::PeerDown);
            self.told = down.then(|| {
                let patience = self.told.map_or(PATIENCE, |told| told.patience);
                Told { at: now, until: now + patience, patience }
            });
            if !down {
                self.on_heard(now);
            }
        }
    }

    /// Another silence than before takes it down.
    pub(crate) fn on_dead_time(&mut self, dead_time: Option<Duration>) {
        self.dead_time = dead_time;
    }

    /// What the path needs of this host is there, or gone.
    ///
    /// When it is gone, what was known of the path is out of date. When it is there again, what was heard since
    /// then counts: where the path is sent on and received on by two threads, the peer's answer to the first
    /// keepalive may be here before this is.
    pub(crate) fn on_present(&mut self, present: bool) {
        if self.present && !present {
            let Self { status, dead_time, heard, fits, .. } = *self;
            let heard = match heard {
                Heard::At(at) => Heard::TooLongAgo(at),
                Heard::Never | Heard::TooLongAgo(_) => heard,
            };
            *self = Self { heard, fits, ..Self::new(status, dead_time) };
        }
        self.present = present;
    }

    /// The path can, or cannot, carry the least inner packet.
    pub(crate) fn on_mtu(&mut self, fits: bool) {
        self.fits = fits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEAD: Duration = Duration::from_millis(1750);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn deaf(deaf: bool) -> Report {
        Report { deaf, off: false }
    }

    #[test]
    fn comes_up_when_both_sides_hear_and_goes_down_in_silence() {
        let mut path = Liveness::new(PathStatus::Available, Some(DEAD));
        assert_eq!(path.state(), PathState::Probing);
        path.on_keepalive(at(0), deaf(true));
        assert_eq!(path.state(), PathState::Probing, "heard, but not yet heard by the peer");
        path.on_keepalive(at(0), deaf(false));
        assert_eq!(path.state(), PathState::Up);
        assert_eq!(path.deadline(), Some(at(1750)));
        path.on_timeout(at(1749));
        assert_eq!(path.state(), PathState::Up);
        path.on_timeout(at(1750));
        assert_eq!(path.state(), PathState::Down(DownCause::Silent));
        assert_eq!(path.deadline(), None);
        path.on_heard(at(9000));
        assert_eq!(path.state(), PathState::Up, "one sign of life is enough");
    }

    #[test]
    fn a_path_that_fails_only_in_our_direction_is_unused() {
        let mut path = Liveness::new(PathStatus::Available, Some(DEAD));
        path.on_heard(at(0));
        assert_eq!(path.state(), PathState::Up);
        path.on_keepalive(at(1), deaf(true));
        assert_eq!(path.state(), PathState::Down(DownCause::PeerDeaf));
    }

    #[test]
    fn either_side_can_switch_it_off() {
        let mut path = Liveness::new(PathStatus::Available, Some(DEAD));
        path.on_heard(at(0));
        path.on_keepalive(at(0), Report { deaf: false, off: true });
        assert_eq!(path.state(), PathState::Down(DownCause::PeerOff));
        path.on_timeout(at(1750));
        assert_eq!(path.state(), PathState::Down(DownCause::PeerOff), "off explains the silence");
        path.on_keepalive(at(1800), Report { deaf: true, off: true });
        assert_eq!(path.state(), PathState::Down(DownCause::PeerStopped));
        assert!(!path.peer_deaf(), "it does not say what it hears");
        path.on_keepalive(at(2000), deaf(false));
        assert_eq!(path.state(), PathState::Up);
        path.on_status(PathStatus::Off);
        path.on_heard(at(2001));
        assert_eq!(path.state(), PathState::Off);
        path.on_status(PathStatus::Available);
        assert_eq!(path.state(), PathState::Probing);
        assert_eq!(path.last_heard(), Some(at(2000)), "but it was heard");
    }

    #[test]
    fn what_was_heard_before_a_path_is_known_to_be_there_again_counts() {
        let mut path = Liveness::new(PathStatus::Available, Some(DEAD));
        path.on_keepalive(at(0), deaf(false));
        path.on_present(false);
        path.on_present(true);
        assert_eq!(
            path.state(),
            PathState::Down(DownCause::Silent),
            "what was heard before does not"
        );
        path.on_present(false);
        path.on_keepalive(at(1000), deaf(false));
        assert_eq!(path.state(), PathState::Down(DownCause::Absent));
        path.on_present(true);
        assert_eq!(path.state(), PathState::Up);
    }

    #[test]
    fn without_a_dead_time_it_is_up_for_ever_unless_it_cannot_carry_packets() {
        let mut path = Liveness::new(PathStatus::Available, None);
        assert_eq!(path.state(), PathState::Up);
        path.on_timeout(at(u64::MAX / 2_000_000));
        assert_eq!(path.state(), PathState::Up);
        path.on_mtu(false);
        assert_eq!(path.state(), PathState::UnusableMtu);
    }
}
