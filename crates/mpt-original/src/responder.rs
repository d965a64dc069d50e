//! The half of a connection that answers the peer's reports of path states.

use std::net::SocketAddr;
use std::time::Duration;

use mpt_proto::{Instant, TokenBucket};

use crate::auth::AuthKind;
use crate::exchanges::{Exchanges, Opening, Third};
use crate::message::Message;
use crate::refusal::Refusal;
use crate::step::{Command, PathReport, Step};

/// Most rounds 1 and 3 in a burst: an exchange takes two, and with retransmissions at most twelve, and an
/// interface that goes down begins one for each of its paths.
const BURST: u32 = 64;

/// The time for one more. Ten exchanges per second are more than paths that go up and down cause. An attacker
/// who guesses cookies, of which at most eight are valid, needs ten months on average.
const INTERVAL: Duration = Duration::from_millis(50);

/// Answers rounds 1 and 3 of path status changes on one connection.
#[derive(Debug)]
pub(super) struct Responder {
    exchanges: Exchanges<()>,
    bucket: TokenBucket,
}

/// The answer to a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) cookie: u32,
    pub(super) step: Step<'static>,
    /// The report, if it is new.
    pub(super) report: Option<PathReport>,
}

impl Default for Responder {
    fn default() -> Self {
        Self { exchanges: Exchanges::default(), bucket: TokenBucket::new(BURST, INTERVAL) }
    }
}

impl Responder {
    /// Handles round 1 or 3, which is authentic but for its cookie; `bytes` is the whole message.
    ///
    /// # Errors
    ///
    /// The reason if it is not answered.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        from: SocketAddr,
        message: &Message<'_>,
        bytes: &[u8],
        chance: impl FnOnce() -> u32,
    ) -> Result<Answer, Refusal> {
        let Message { auth, cookie, initiator, responder, step } = *message;
        // Refused messages count too, which limits the rate of guessed cookies.
        if !self.bucket.take(now) {
            return Err(Refusal::Rate);
        }
        match step {
            Step::Open { size, command, .. } => {
                let has_cookie = auth != AuthKind::None;
                let opening = Opening { from, initiator, responder, size, has_cookie, key: 0 };
                let cookie = self.exchanges.open(now, opening, chance);
                Ok(Answer { cookie, step: Step::Proceed { command, size }, report: None })
            }
            Step::Path(report) => {
                let (ends, size) = ((initiator, responder), step.data_len());
                let third = self.exchanges.find(now, (cookie, false), ends, size)?.third(bytes)?;
                let report = match third {
                    Third::First(answered, hash) => {
                        *answered = Some((hash, ()));
                        Some(report)
                    }
                    Third::Again(()) => None,
                };
                let done = Step::Done { command: Command::PathStatus, description: &[] };
                Ok(Answer { cookie, step: done, report })
            }
            Step::Proceed { .. } | Step::Create(_) | Step::Done { .. } | Step::Refused { .. } => {
                Err(Refusal::Order)
            }
        }
    }
}
