//! The half of a connection that answers what the peer tells of paths.

use std::net::SocketAddr;
use std::time::Duration;

use mpt_proto::{Instant, TokenBucket};

use crate::auth::AuthKind;
use crate::exchanges::{Exchanges, Opening, Third};
use crate::message::Message;
use crate::refusal::Refusal;
use crate::step::{Command, PathReport, Step};

/// How many rounds 1 and 3 may follow one another at once: an exchange takes two, and twelve at the most,
/// and an interface that goes down begins one for each path of it.
const BURST: u32 = 64;

/// The time for one more. Ten exchanges each second are more than anything that goes up and down should
/// cause; and who guesses cookies, eight of which are good at the most, hits one in ten months on average.
const INTERVAL: Duration = Duration::from_millis(50);

/// Answers rounds 1 and 3 of path status changes on one connection.
#[derive(Debug)]
pub(super) struct Responder {
    exchanges: Exchanges<()>,
    bucket: TokenBucket,
}

/// What becomes of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) cookie: u32,
    pub(super) step: Step<'static>,
    /// What the peer says and has not said before.
    pub(super) report: Option<PathReport>,
}

impl Default for Responder {
    fn default() -> Self {
        Self { exchanges: Exchanges::default(), bucket: TokenBucket::new(BURST, INTERVAL) }
    }
}

impl Responder {
    /// Takes round 1 or 3, which is authentic but for its cookie; `bytes` are all of it.
    ///
    /// # Errors
    ///
    /// Why it is not answered.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        from: SocketAddr,
        message: &Message<'_>,
        bytes: &[u8],
        chance: impl FnOnce() -> u32,
    ) -> Result<Answer, Refusal> {
        let Message { auth, cookie, initiator, responder, step } = *message;
        // Whether it is answered or not, so that cookies are not guessed any faster than that.
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
