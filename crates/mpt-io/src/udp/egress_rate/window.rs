//! What the looks at a queue over some time amount to.

use std::time::Duration;

use super::MAX_SUPER;

/// Least time between two judgements. The caller's clock is read at the beginning of a wake-up and the
/// queue looked at in the course of it, which makes a hundred microseconds of difference.
const WINDOW: Duration = Duration::from_millis(10);

/// A window in which the queue was empty and that is longer may have a pause in it: what passed says little
/// about what could have.
const LONGEST: Duration = Duration::from_millis(40);

/// How long too little may have left for a judgement before that is given up.
const PATIENCE: Duration = Duration::from_secs(1);

/// Least number of messages of the longest kind that must leave for a sample: a queue egress_rates message by
/// message.
const LEAST_MESSAGES: u64 = 4;

/// What happened since the last judgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    start: Duration,
    /// What was queued then.
    queued: u64,
    /// What sends added to the queue since.
    grown: u64,
    /// Payload of the sends that added something.
    queued_payload: u64,
    /// Payload of all sends.
    sent: u64,
    /// The queue was empty once.
    emptied: bool,
    /// There was a queue once.
    seen: bool,
}

/// What a window shows, in bytes of payload per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The queue drained that fast.
    Drained(u64),
    /// There was a queue, but not always. That much passed.
    AtLeast(u64),
    /// There was no queue, or a pause. That much passed.
    Passed(u64),
    /// Too little happened.
    Nothing,
}

impl Window {
    /// Begins with so much in the queue.
    pub(super) fn new(start: Duration, queued: u64) -> Self {
        let (emptied, seen) = (queued == 0, queued > 0);
        Self { start, queued, grown: 0, queued_payload: 0, sent: 0, emptied, seen }
    }

    /// So much is queued before a send.
    pub(super) fn on_look(&mut self, queued: u64) {
        self.emptied |= queued == 0;
        self.seen |= queued > 0;
    }

    /// So much payload was sent without a look.
    pub(super) fn on_unwatched(&mut self, payload: u64) {
        self.sent += payload;
    }

    /// So much payload was sent, and so much was queued before and after that.
    pub(super) fn on_sent(&mut self, before: u64, after: u64, payload: u64) {
        self.sent += payload;
        self.seen |= after > 0;
        let grown = after.saturating_sub(before);
        // Kernel memory is never less than the payload in it. What another path of the socket sent
        // through a faster interface was not queued.
        if 2 * grown >= payload {
            self.grown += grown;
            self.queued_payload += payload;
        }
    }

    /// What the window shows; `None` if it must stay open. `longest` is the most payload that leaves
    /// in one piece.
    pub(super) fn judge(&self, now: Duration, queued: u64, longest: u64) -> Option<Verdict> {
        let length = now.saturating_sub(self.start);
        if length < WINDOW {
            return None;
        }
        let per_second = |bytes: u64| {
            let rate = u128::from(bytes) * 1_000_000_000 / length.as_nanos();
            u64::try_from(rate).unwrap_or(u64::MAX)
        };
        if self.emptied {
            let passed = self.sent.saturating_sub(queued);
            if passed < 2 * MAX_SUPER as u64 {
                // Too little data gives no estimate of the rate.
                return (length >= PATIENCE).then_some(Verdict::Nothing);
            }
            return Some(match self.seen && length <= LONGEST {
                true => Verdict::AtLeast(per_second(passed)),
                false => Verdict::Passed(per_second(passed)),
            });
        }
        // More than was there: another sender uses the socket.
        let Some(drained) = (self.queued + self.grown).checked_sub(queued) else {
            return Some(Verdict::Nothing);
        };
        let payload = u128::from(drained) * u128::from(self.queued_payload);
        let payload = payload.checked_div(u128::from(self.grown)).unwrap_or(0) as u64;
        (payload >= LEAST_MESSAGES * longest).then(|| Verdict::Drained(per_second(payload)))
    }
}
