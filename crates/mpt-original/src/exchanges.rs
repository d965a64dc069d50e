//! The exchanges that a responder has let begin.
//!
//! Round 2 gives an exchange its cookie, and round 3 brings it back, once: what it commands is done then
//! and never again, while the answer is given as often as round 3 is repeated. Nothing is remembered for
//! longer than [`LIFE`], nor more than [`MAX_OPEN`] exchanges.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mpt_proto::Instant;

use crate::refusal::Refusal;

/// How long an exchange may take. The original sends each of rounds 1 and 3 for 3 s, so its last
/// round 3 comes 6 s after its first round 1 at the latest.
pub(super) const LIFE: Duration = Duration::from_secs(10);

/// The most exchanges at a time. An initiator has one, and one more that it has begun anew; the others
/// are for somebody who disturbs. When one more begins, the oldest ends.
pub(super) const MAX_OPEN: usize = 8;

/// Exchanges, with what is remembered of the answers to their round 3.
#[derive(Debug)]
pub(super) struct Exchanges<A>(VecDeque<Exchange<A>>);

#[derive(Debug)]
struct Exchange<A> {
    opening: Opening,
    cookie: u32,
    until: Instant,
    /// The round 3 that was answered: the hash of all of it, and the answer.
    answered: Option<([u8; 32], A)>,
}

/// What round 1 says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) from: SocketAddr,
    pub(super) initiator: IpAddr,
    pub(super) responder: IpAddr,
    /// The length of the data to come.
    pub(super) size: u32,
    /// Whether its kind of authentication has a cookie.
    pub(super) has_cookie: bool,
    /// Which of several keys it is authenticated by.
    pub(super) key: usize,
}

/// What a round 3 is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Third<'e, A> {
    /// To be followed, and the answer put here.
    First(&'e mut Option<([u8; 32], A)>, [u8; 32]),
    /// Followed already, with this answer.
    Again(&'e mut A),
}

/// An exchange that is open.
#[derive(Debug)]
pub(super) struct Found<'e, A>(&'e mut Exchange<A>);

impl<'e, A> Found<'e, A> {
    /// Which key it was begun with.
    pub(super) fn key(&self) -> usize {
        self.0.opening.key
    }

    /// Takes its round 3, which is authentic.
    ///
    /// # Errors
    ///
    /// [`Refusal::Cookie`] if something else was said with its cookie.
    pub(super) fn third(self, message: &[u8]) -> Result<Third<'e, A>, Refusal> {
        let hash = hmac_sha256::Hash::hash(message);
        match &mut self.0.answered {
            Some((followed, _)) if *followed != hash => Err(Refusal::Cookie),
            Some((_, answer)) => Ok(Third::Again(answer)),
            answered => Ok(Third::First(answered, hash)),
        }
    }
}

impl<A> Default for Exchanges<A> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<A> Exchanges<A> {
    /// Round 1 came. Returns the cookie for round 2: `chance`, unless there is none, or the one that was
    /// given already because it came before.
    pub(super) fn open(
        &mut self,
        now: Instant,
        opening: Opening,
        chance: impl FnOnce() -> u32,
    ) -> u32 {
        self.forget(now);
        let is_same =
            |exchange: &&Exchange<A>| exchange.answered.is_none() && exchange.opening == opening;
        if let Some(exchange) = self.0.iter().find(is_same) {
            return exchange.cookie;
        }
        let mut cookie = 0;
        if opening.has_cookie {
            cookie = chance();
            // Zero is what those send who have read no answer.
            while cookie == 0 || self.0.iter().any(|exchange| exchange.cookie == cookie) {
                cookie = cookie.wrapping_add(1);
            }
        }
        if self.0.len() == MAX_OPEN {
            self.0.pop_front();
        }
        self.0.push_back(Exchange { opening, cookie, until: now + LIFE, answered: None });
        cookie
    }

    /// The exchange that a round 3 goes on with, whose data has `size` bytes. `zero` says that the cookie 0
    /// is good for every exchange between these two ends. The message itself is not read: it may be long.
    ///
    /// # Errors
    ///
    /// [`Refusal::Order`] if nothing is open, [`Refusal::Cookie`] if it is another exchange's
    /// cookie, [`Refusal::Size`].
    pub(super) fn find(
        &mut self,
        now: Instant,
        (cookie, zero): (u32, bool),
        (initiator, responder): (IpAddr, IpAddr),
        size: usize,
    ) -> Result<Found<'_, A>, Refusal> {
        self.forget(now);
        if self.0.is_empty() {
            return Err(Refusal::Order);
        }
        let is_meant = |exchange: &&mut Exchange<A>| {
            let opening = exchange.opening;
            (opening.initiator, opening.responder) == (initiator, responder)
                && (exchange.cookie == cookie || (zero && cookie == 0))
        };
        // Without cookies one exchange cannot be told from another: the latest is meant.
        let exchange = self.0.iter_mut().rev().find(is_meant).ok_or(Refusal::Cookie)?;
        if usize::try_from(exchange.opening.size) != Ok(size) {
            return Err(Refusal::Size);
        }
        Ok(Found(exchange))
    }

    /// The answers that are remembered.
    pub(super) fn answers(&mut self) -> impl Iterator<Item = &mut A> {
        self.0.iter_mut().filter_map(|exchange| Some(&mut exchange.answered.as_mut()?.1))
    }

    fn forget(&mut self, now: Instant) {
        self.0.retain(|exchange| now < exchange.until);
    }
}
