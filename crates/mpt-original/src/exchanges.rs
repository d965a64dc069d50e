//! The open exchanges of a responder.
//!
//! Round 2 gives an exchange its cookie, and round 3 returns it. The command of a round 3 is executed once; the
//! answer is repeated as often as round 3 is. An exchange is kept for [`LIFE`], and at most [`MAX_OPEN`] are.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mpt_proto::Instant;

use crate::refusal::Refusal;

/// How long an exchange may take. The original sends each of rounds 1 and 3 for 3 s, so its last
/// round 3 comes at most 6 s after its first round 1.
pub(super) const LIFE: Duration = Duration::from_secs(10);

/// Most open exchanges. An initiator needs two, when it begins again before the first has expired; the
/// others are for hosts that interfere. A further one replaces the oldest.
pub(super) const MAX_OPEN: usize = 8;

/// Open exchanges, with the answers to their round 3.
#[derive(Debug)]
pub(super) struct Exchanges<A>(VecDeque<Exchange<A>>);

#[derive(Debug)]
struct Exchange<A> {
    opening: Opening,
    cookie: u32,
    until: Instant,
    /// The round 3 that was answered: the hash of the message, and the answer.
    answered: Option<([u8; 32], A)>,
}

/// What round 1 announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) from: SocketAddr,
    pub(super) initiator: IpAddr,
    pub(super) responder: IpAddr,
    /// The length of the data to come.
    pub(super) size: u32,
    /// Whether its kind of authentication has a cookie.
    pub(super) has_cookie: bool,
    /// Which of several keys authenticates it.
    pub(super) key: usize,
}

/// Whether a round 3 is new.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Third<'e, A> {
    /// It is to be executed. The caller stores the answer with the hash.
    First(&'e mut Option<([u8; 32], A)>, [u8; 32]),
    /// It was executed already, with this answer.
    Again(&'e mut A),
}

/// An exchange that is open.
#[derive(Debug)]
pub(super) struct Found<'e, A>(&'e mut Exchange<A>);

impl<'e, A> Found<'e, A> {
    /// The key of its round 1.
    pub(super) fn key(&self) -> usize {
        self.0.opening.key
    }

    /// Handles its round 3, which is authentic.
    ///
    /// # Errors
    ///
    /// [`Refusal::Cookie`] if its cookie was used for another message.
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
    /// Opens an exchange on round 1. Returns the cookie for round 2: a new one from `chance`, zero if the kind
    /// of authentication has none, or the same as before for a repeated round 1.
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
            // Zero is what an initiator sends that has not read the answer.
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

    /// The exchange of a round 3 with `size` bytes of data. `zero` says that the cookie 0 is valid for every
    /// exchange between these two ends. The data, which may be long, is not read.
    ///
    /// # Errors
    ///
    /// [`Refusal::Order`] if no exchange is open, [`Refusal::Cookie`] if none of these ends has the cookie,
    /// [`Refusal::Size`] if round 1 announced another size.
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
        // Without cookies exchanges cannot be distinguished: take the latest.
        let exchange = self.0.iter_mut().rev().find(is_meant).ok_or(Refusal::Cookie)?;
        if usize::try_from(exchange.opening.size) != Ok(size) {
            return Err(Refusal::Size);
        }
        Ok(Found(exchange))
    }

    /// The answers that are kept.
    pub(super) fn answers(&mut self) -> impl Iterator<Item = &mut A> {
        self.0.iter_mut().filter_map(|exchange| Some(&mut exchange.answered.as_mut()?.1))
    }

    fn forget(&mut self, now: Instant) {
        self.0.retain(|exchange| now < exchange.until);
    }
}
