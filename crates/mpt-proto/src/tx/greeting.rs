//! Hellos: how a session is asked for and confirmed (sections 8.3 and 10 of `docs/protocol.md`).

use std::time::Duration;

use crate::config::FramingConfig;
use crate::framing::extended::identity::Identity;
use crate::framing::extended::session::Offer;
use crate::id::PathId;
use crate::time::Instant;

/// The time from one hello, or confirm, to the next.
const INTERVALS: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

/// So many hellos without an answer mean that the peer knows only plain framing; so many confirms, that it has
/// restarted since its answer.
const ATTEMPTS: u8 = 6;

/// What is sent to get a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greet {
    Hello,
    Confirm(Offer),
}

/// The hellos of one connection.
#[derive(Debug)]
pub(super) struct Greeting {
    own: Identity,
    stage: Stage,
    /// Whether plain framing takes over where there is no answer.
    falls_back: bool,
    /// Whether nothing is asked for here, because a handshake does it.
    is_silent: bool,
    /// Whether it was said that nobody answers, since somebody last did.
    told: bool,
    /// How often the message of this stage was sent.
    attempts: u8,
    /// When to send it next.
    next: Option<Instant>,
    /// The paths on which it is yet to be sent, one bit each.
    pending: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nobody has answered yet.
    Asking,
    /// An answer is confirmed.
    Confirming(Offer),
    /// There is a session.
    Agreed,
    /// Nobody answers. Asked is on while no path is up, as the peer may start later.
    Unanswered,
}

impl Greeting {
    /// Begins to ask with the first path. `None` if the framing has no sessions.
    pub(super) fn new(framing: FramingConfig, own: Identity) -> Option<Self> {
        (framing != FramingConfig::Plain).then_some(Self {
            own,
            stage: Stage::Asking,
            falls_back: framing == FramingConfig::Auto,
            is_silent: framing == FramingConfig::Sealed,
            told: false,
            attempts: 0,
            next: None,
            pending: 0,
        })
    }

    /// By what this host is known to the peer.
    pub(super) fn own(&self) -> Identity {
        self.own
    }

    /// Whether the peer has left so many hellos without an answer that it is taken to know none.
    pub(super) fn is_unanswered(&self) -> bool {
        self.stage == Stage::Unanswered
    }

    /// Whether that was found out since this was last asked.
    pub(super) fn take_unanswered(&mut self) -> bool {
        self.is_unanswered() && !std::mem::replace(&mut self.told, true)
    }

    /// There is no session, or none any more: asks for one with this identity.
    pub(super) fn ask(&mut self, now: Instant, own: Identity) {
        self.own = own;
        self.restart(now, Stage::Asking);
    }

    /// The peer has answered.
    pub(super) fn confirm(&mut self, now: Instant, offer: Offer) {
        self.restart(now, Stage::Confirming(offer));
    }

    /// There is a session, in which this host has this identity.
    pub(super) fn agree(&mut self, own: Identity) {
        self.own = own;
        (self.stage, self.next, self.pending) = (Stage::Agreed, None, 0);
        self.told = false;
    }

    /// A path is there to be sent on, or has come up: an answer is likelier than before.
    pub(super) fn on_path(&mut self, now: Instant) {
        match self.stage {
            Stage::Asking if self.next.is_none() || self.attempts > 2 => {
                self.restart(now, Stage::Asking);
            }
            Stage::Unanswered => self.restart(now, Stage::Asking),
            Stage::Asking | Stage::Confirming(_) | Stage::Agreed => {}
        }
    }

    /// Every path of a session is down, or one is up. While all are down the peer is asked whether it still has
    /// the session: it may have restarted.
    pub(super) fn on_reachable(&mut self, now: Instant, reachable: bool) {
        let asks = self.next.is_some();
        match self.stage {
            Stage::Agreed | Stage::Unanswered if reachable => (self.next, self.pending) = (None, 0),
            Stage::Agreed if !asks => self.restart(now, Stage::Agreed),
            Stage::Unanswered if !asks => self.next = Some(now + INTERVALS[INTERVALS.len() - 1]),
            Stage::Agreed | Stage::Unanswered | Stage::Asking | Stage::Confirming(_) => {}
        }
    }

    /// When there is something to send.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.next
    }

    /// The next message that is due, on one of the paths that can be sent on, one bit each. `reachable`: a path is up.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        paths: u64,
        reachable: bool,
    ) -> Option<(PathId, Greet)> {
        if self.pending == 0 && self.next.is_some_and(|at| at <= now) {
            self.begin_round(now, paths, reachable);
        }
        self.pending &= paths;
        let path = PathId(self.pending.trailing_zeros() as u8);
        if self.pending == 0 {
            return None;
        }
        self.pending &= self.pending - 1;
        let greet = match self.stage {
            Stage::Confirming(offer) => Greet::Confirm(offer),
            Stage::Asking | Stage::Agreed | Stage::Unanswered => Greet::Hello,
        };
        Some((path, greet))
    }

    fn begin_round(&mut self, now: Instant, paths: u64, reachable: bool) {
        if paths == 0 {
            // Asks when there is a path.
            self.next = None;
            return;
        }
        if self.attempts >= ATTEMPTS {
            match self.stage {
                Stage::Asking if self.falls_back => self.stage = Stage::Unanswered,
                Stage::Confirming(_) => self.restart(now, Stage::Asking),
                Stage::Asking | Stage::Agreed | Stage::Unanswered => {}
            }
        }
        if self.stage == Stage::Unanswered && reachable {
            self.next = None;
            return;
        }
        let interval = INTERVALS[usize::from(self.attempts).min(INTERVALS.len() - 1)];
        self.attempts = self.attempts.saturating_add(1);
        self.next = Some(now + interval);
        self.pending = match self.stage {
            Stage::Confirming(offer) => 1 << offer.path.0,
            Stage::Asking | Stage::Agreed | Stage::Unanswered => paths,
        };
    }

    fn restart(&mut self, now: Instant, stage: Stage) {
        let next = (!self.is_silent).then_some(now);
        (self.stage, self.attempts, self.next, self.pending) = (stage, 0, next, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::extended::session::Peer;

    const OWN: Identity = Identity { session: 1, index: 2 };

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn offer() -> Offer {
        let peer = Peer { session: 3, index: 4, partial: false, repairs: false, parity: false };
        Offer { peer, cookie: 5, path: PathId(1) }
    }

    /// When something is sent, on which paths, until a time.
    fn run(greeting: &mut Greeting, paths: u64, until: Instant) -> Vec<(u64, u8, Greet)> {
        run_while(greeting, paths, until, true)
    }

    /// The same, where a path is up or none is.
    fn run_while(
        greeting: &mut Greeting,
        paths: u64,
        until: Instant,
        reachable: bool,
    ) -> Vec<(u64, u8, Greet)> {
        let mut sent = Vec::new();
        while let Some(now) = greeting.deadline().filter(|at| *at <= until) {
            while let Some((path, greet)) = greeting.poll(now, paths, reachable) {
                sent.push((now.since(Instant::ZERO).as_millis() as u64, path.0, greet));
            }
        }
        sent
    }

    #[test]
    fn six_hellos_on_every_path_and_then_plain_framing() {
        let mut greeting = Greeting::new(FramingConfig::Auto, OWN).expect("it has sessions");
        assert_eq!(greeting.deadline(), None, "there is no path yet");
        greeting.on_path(at(0));
        let sent = run(&mut greeting, 0b101, at(100_000));
        let times: Vec<u64> = sent.iter().filter(|sent| sent.1 == 2).map(|sent| sent.0).collect();
        assert_eq!(times, [0, 500, 1500, 3500, 7500, 15_500]);
        assert_eq!(sent.len(), 12);
        assert!(greeting.is_unanswered());
        greeting.on_path(at(200_000));
        assert_eq!(run(&mut greeting, 1, at(200_000)).len(), 1, "asked again");
    }

    #[test]
    fn while_no_path_is_up_it_asks_on_as_the_peer_may_start_later() {
        let mut greeting = Greeting::new(FramingConfig::Auto, OWN).expect("it has sessions");
        greeting.on_path(at(0));
        let sent = run_while(&mut greeting, 1, at(50_000), false);
        let late: Vec<u64> = sent.iter().map(|sent| sent.0).filter(|at| *at > 15_500).collect();
        assert_eq!(late, [23_500, 31_500, 39_500, 47_500]);
        assert!(greeting.is_unanswered() && greeting.take_unanswered(), "plain framing is used");
        greeting.on_reachable(at(50_000), true);
        assert_eq!(greeting.deadline(), None, "the peer answers in plain framing");
        greeting.on_reachable(at(60_000), false);
        assert_eq!(run_while(&mut greeting, 1, at(68_000), false).len(), 1);
        assert!(!greeting.take_unanswered(), "that is told once");
        greeting.confirm(at(68_020), offer());
        greeting.agree(OWN);
        assert!(!greeting.is_unanswered() && greeting.deadline().is_none());
    }

    #[test]
    fn without_a_fallback_it_asks_for_ever() {
        let mut greeting = Greeting::new(FramingConfig::Extended, OWN).expect("it has sessions");
        greeting.on_path(at(0));
        assert_eq!(run(&mut greeting, 1, at(95_500)).len(), 16);
        assert!(Greeting::new(FramingConfig::Plain, OWN).is_none());
    }

    #[test]
    fn an_answer_is_confirmed_on_its_path_until_there_is_a_session() {
        let mut greeting = Greeting::new(FramingConfig::Auto, OWN).expect("it has sessions");
        greeting.on_path(at(0));
        run(&mut greeting, 0b11, at(0));
        greeting.confirm(at(20), offer());
        let sent = run(&mut greeting, 0b11, at(600));
        assert_eq!(sent, [(20, 1, Greet::Confirm(offer())), (520, 1, Greet::Confirm(offer()))]);
        greeting.agree(OWN);
        assert_eq!(greeting.deadline(), None);
    }

    #[test]
    fn a_confirm_that_leads_to_nothing_ends_in_new_hellos() {
        let mut greeting = Greeting::new(FramingConfig::Extended, OWN).expect("it has sessions");
        greeting.confirm(at(0), offer());
        let sent = run(&mut greeting, 0b11, at(30_000));
        assert!(sent.iter().any(|sent| sent.2 == Greet::Hello), "{sent:?}");
    }

    #[test]
    fn a_session_whose_paths_are_all_down_is_asked_for() {
        let mut greeting = Greeting::new(FramingConfig::Extended, OWN).expect("it has sessions");
        greeting.agree(OWN);
        greeting.on_reachable(at(0), false);
        assert_eq!(run(&mut greeting, 1, at(500)).len(), 2);
        greeting.on_reachable(at(501), true);
        assert_eq!(greeting.deadline(), None);
    }
}
