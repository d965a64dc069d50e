//! The half of a connection that reports path states to the peer.

use std::collections::VecDeque;
use std::time::Duration;

use mpt_proto::Instant;

use crate::event::Outcome;
use crate::refusal::Refusal;
use crate::step::{Command, PathReport, Round, Step};

/// The retransmission interval of a round, as in the original.
const RESEND: Duration = Duration::from_millis(500);

/// How often a round is sent before the exchange ends, as in the original.
const SENDS: u32 = 6;

/// How often round 3 is sent before the exchange begins again, once: a responder that has begun an exchange of its own
/// in the meantime knows nothing of this one any more.
const THIRDS: u32 = 3;

/// Most reports that wait: the last one of each path.
const MAX_QUEUED: usize = mpt_proto::MAX_PATHS;

/// The length of the data of round 3.
const SIZE: u32 = 32;

/// Sends the reports of one connection, one exchange after the other.
#[derive(Debug, Default)]
pub(super) struct Initiator {
    current: Option<Exchange>,
    queue: VecDeque<PathReport>,
}

/// The current exchange.
#[derive(Debug)]
struct Exchange {
    report: PathReport,
    round: Sending,
    /// How often the round has been sent.
    sends: u32,
    /// When it is sent again, or after the last time, when the exchange ends.
    due: Instant,
    /// An answer failed authentication.
    auth_failed: bool,
    /// Whether it has begun again.
    again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    One,
    Three { cookie: u32 },
}

/// A report and how it ended.
pub(super) type Told = (PathReport, Outcome);

impl Initiator {
    /// Queues a report. Returns the one that it replaces: an older one of the same path, or the oldest of a full
    /// queue.
    pub(super) fn tell(&mut self, now: Instant, report: PathReport) -> Option<Told> {
        let path = |report: &PathReport| (report.initiator, report.responder);
        let older = self.queue.iter().position(|queued| path(queued) == path(&report));
        let out = match older {
            Some(place) => self.queue.remove(place),
            None if self.queue.len() == MAX_QUEUED => self.queue.pop_front(),
            None => None,
        };
        self.queue.push_back(report);
        self.begin(now);
        out.map(|report| (report, Outcome::Superseded))
    }

    /// Whether there is no report to send.
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// Handles rounds 2 and 4 of a path status change, which are authentic.
    ///
    /// # Errors
    ///
    /// [`Refusal::Order`] if it does not answer the current round.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        cookie: u32,
        step: &Step<'_>,
    ) -> Result<Option<Told>, Refusal> {
        let exchange = self.current.as_mut().ok_or(Refusal::Order)?;
        let outcome = match (*step, exchange.round) {
            (Step::Proceed { .. }, Sending::One) => {
                exchange.round = Sending::Three { cookie };
                (exchange.sends, exchange.due) = (0, now);
                return Ok(None);
            }
            // A responder may give a repeated round 1 another cookie, and keep only that.
            (Step::Proceed { .. }, Sending::Three { cookie: known }) => {
                if cookie != known {
                    exchange.round = Sending::Three { cookie };
                    if exchange.sends < SENDS {
                        exchange.due = now;
                    }
                }
                return Ok(None);
            }
            (Step::Refused { round: Round::Two, code, .. }, Sending::One)
            | (Step::Refused { round: Round::Four, code, .. }, Sending::Three { .. }) => {
                Outcome::Refused(code)
            }
            (Step::Done { .. }, Sending::Three { .. }) => Outcome::Done,
            _ => return Err(Refusal::Order),
        };
        Ok(self.end(now, outcome))
    }

    /// An answer failed authentication.
    pub(super) fn on_forgery(&mut self) {
        if let Some(exchange) = &mut self.current {
            exchange.auth_failed = true;
        }
    }

    /// Ends the exchange if its round was sent often enough.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<Told> {
        let exchange = self.current.as_mut()?;
        let is_third = matches!(exchange.round, Sending::Three { .. });
        if now >= exchange.due && is_third && exchange.sends >= THIRDS && !exchange.again {
            (exchange.round, exchange.sends, exchange.again) = (Sending::One, 0, true);
        }
        if now < exchange.due || exchange.sends < SENDS {
            return None;
        }
        let outcome = if exchange.auth_failed { Outcome::AuthFailed } else { Outcome::Unanswered };
        self.end(now, outcome)
    }

    /// The cookie, the round to send and its report, if it is time.
    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
    ) -> Option<(u32, Step<'static>, PathReport)> {
        let exchange = self.current.as_mut()?;
        if now < exchange.due || exchange.sends == SENDS {
            return None;
        }
        exchange.sends += 1;
        exchange.due = now + RESEND;
        let report = exchange.report;
        let command = Command::PathStatus;
        Some(match exchange.round {
            Sending::One => (0, Step::Open { command, down: report.down, size: SIZE }, report),
            Sending::Three { cookie } => (cookie, Step::Path(report), report),
        })
    }

    /// When to call [`Self::handle_timeout`] and [`Self::poll_transmit`] next.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        Some(self.current.as_ref()?.due)
    }

    fn begin(&mut self, now: Instant) {
        if self.current.is_none() {
            self.current = self.queue.pop_front().map(|report| Exchange {
                report,
                round: Sending::One,
                sends: 0,
                due: now,
                auth_failed: false,
                again: false,
            });
        }
    }

    fn end(&mut self, now: Instant, outcome: Outcome) -> Option<Told> {
        let ended = self.current.take()?;
        self.begin(now);
        Some((ended.report, outcome))
    }
}
