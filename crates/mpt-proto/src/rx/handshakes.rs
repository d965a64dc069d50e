//! The handshakes of one connection with sealed framing, at its receiving half.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use crate::framing::extended::identity::At;
use crate::framing::sealed::epoch::Epochs;
use crate::framing::sealed::handshake::{Initiation, Timestamp};
use crate::framing::sealed::hash::MacBytes;
use crate::keys::PeerKeys;
use crate::keys::ciphers::Cipher;
use crate::time::Instant;
use crate::timer::{Deadline, Timer};
use crate::wire::extended::sealed::RESPONSE_LEN;

/// An own initiation is taken to be answered for so long, before that of a peer with a smaller key takes its place.
const YIELD_AFTER: Duration = Duration::from_millis(500);

/// A response goes to no more origins than this.
pub(super) const MOST_COPIES: usize = 8;

/// What an initiation was answered with. The initiator sends the same one on each of its paths, some of which may carry nothing
/// back, so each copy is answered where it came from.
#[derive(Debug)]
struct Answered {
    timestamp: Timestamp,
    /// The index of the initiator.
    key: u32,
    response: [u8; RESPONSE_LEN],
    /// Hashes of where it went, in as many as `copies`. Whose is there already by chance gets none.
    to: [u16; MOST_COPIES],
    copies: u8,
}

impl Answered {
    /// Takes note of where it goes; returns whether it may go there.
    fn goes_to(&mut self, at: At) -> bool {
        let mut hasher = DefaultHasher::new();
        at.hash(&mut hasher);
        let hash = hasher.finish() as u16;
        let copies = usize::from(self.copies);
        if copies == MOST_COPIES || self.to[..copies].contains(&hash) {
            return false;
        }
        self.to[copies] = hash;
        self.copies += 1;
        true
    }
}

/// The handshakes of one connection.
#[derive(Debug)]
pub(super) struct Handshakes {
    pub(super) peer: PeerKeys,
    pub(super) epochs: Epochs,
    /// An own initiation that waits for its response.
    pub(super) waiting: Option<Box<Initiation>>,
    /// The timestamp of the last initiation that was answered.
    newest: Option<Timestamp>,
    /// Its response, until the peer uses what it says.
    answered: Option<Box<Answered>>,
    /// A cookie of the peer, and since when.
    pub(super) cookie: Option<Box<(MacBytes, Instant)>>,
    /// How many indices were chosen.
    pub(super) chosen: u64,
    /// How many initiations of the present series were sent, and when the next one is due.
    pub(super) attempts: u8,
    pub(super) next: Option<Instant>,
    /// Whether all paths of the session are silent.
    pub(super) is_silent: bool,
    /// Whether one of them has been up in the session.
    pub(super) was_up: bool,
}

/// How datagrams of a connection are sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedStatus {
    /// The cipher in use.
    pub cipher: Cipher,
    /// How many epochs have begun.
    pub epoch: u64,
}

impl Handshakes {
    pub(super) fn new(peer: PeerKeys) -> Self {
        Self {
            peer,
            epochs: Epochs::default(),
            waiting: None,
            newest: None,
            answered: None,
            cookie: None,
            chosen: 0,
            attempts: 0,
            next: None,
            is_silent: false,
            was_up: false,
        }
    }

    /// All indices that lead here.
    pub(super) fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        self.epochs.indices().chain(self.waiting.iter().map(|waiting| waiting.hello.index))
    }

    /// Bytes of memory apart from its own size.
    pub(super) fn memory(&self) -> usize {
        let answered = self.answered.as_deref().map_or(0, size_of_val);
        self.epochs.memory() + answered + self.cookie.as_deref().map_or(0, size_of_val)
    }

    /// All epochs end, and with them what was answered.
    pub(super) fn clear(&mut self) {
        self.epochs.clear();
        self.answered = None;
    }

    /// Begins a series of initiations, unless one is under way.
    pub(super) fn begin_series(&mut self, at: Instant) {
        if self.attempts == 0 {
            self.next = Some(self.next.map_or(at, |next| next.min(at)));
        }
    }

    /// A series begins anew: an answer is likelier than before.
    pub(super) fn restart_series(&mut self, at: Instant) {
        (self.attempts, self.next) = (0, Some(at));
    }

    /// An epoch has begun: the next series is to replace it.
    pub(super) fn on_epoch(&mut self) {
        (self.attempts, self.next) = (0, self.epochs.rekey_at());
        self.answered = None;
        self.is_silent = false;
    }

    /// Whether the first own initiation of a series has just been sent and may yet be answered.
    pub(super) fn is_under_way(&self, now: Instant) -> bool {
        let is_recent = |waiting: &Initiation| now.since(waiting.at) < YIELD_AFTER;
        self.attempts == 1 && self.waiting.as_deref().is_some_and(is_recent)
    }

    /// The timestamp of the last initiation that was answered.
    pub(super) fn newest(&self) -> Option<Timestamp> {
        self.newest
    }

    /// A connection of the peer before this one has answered an initiation with this timestamp.
    pub(super) fn set_newest(&mut self, newest: Option<Timestamp>) {
        self.newest = newest;
    }

    /// Takes note of the timestamp of an initiation. Returns whether it is later than those before.
    pub(super) fn is_later(&mut self, timestamp: Timestamp) -> bool {
        let is_later = self.newest.is_none_or(|newest| timestamp > newest);
        if is_later {
            self.newest = Some(timestamp);
        }
        is_later
    }

    /// The initiation with this timestamp, of this index, is answered so to an origin.
    pub(super) fn set_answered(
        &mut self,
        (timestamp, key): (Timestamp, u32),
        response: &[u8; RESPONSE_LEN],
        at: At,
    ) {
        let (to, copies) = ([0; MOST_COPIES], 0);
        let mut answered = Box::new(Answered { timestamp, key, response: *response, to, copies });
        answered.goes_to(at);
        self.answered = Some(answered);
    }

    /// The response to the initiation with this timestamp, with the index that it is for, if it has not been sent to this origin yet.
    pub(super) fn answer_again(
        &mut self,
        timestamp: Timestamp,
        at: At,
    ) -> Option<(u32, [u8; RESPONSE_LEN])> {
        let answered = self.answered.as_mut().filter(|it| it.timestamp == timestamp)?;
        answered.goes_to(at).then_some((answered.key, answered.response))
    }

    /// The peer asks for this cookie.
    pub(super) fn set_cookie(&mut self, now: Instant, cookie: MacBytes) {
        self.cookie = Some(Box::new((cookie, now)));
    }

    pub(super) fn deadline(&self) -> Option<Deadline> {
        let at = [self.next, self.epochs.expires_at(), self.epochs.deadline()];
        let at = at.into_iter().flatten().min()?;
        Some(Deadline { at, timer: Timer::Hello })
    }
}
