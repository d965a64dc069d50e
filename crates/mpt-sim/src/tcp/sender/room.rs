//! What may be sent, and which timers watch over it.

use mpt_proto::Instant;

use super::{PROBE_ALLOWANCE, Progress, REORDERING, Sender, State, TICK, Usage, millis};

impl Sender {
    pub(super) fn repeat(&mut self, now: Instant, number: u64) {
        self.board.send_again(now, number, self.delivered);
        self.repeated_at.get_or_insert(millis(now));
        self.stats.repetitions += 1;
        if let Some(undo) = &mut self.undo {
            undo.repetitions = Some(undo.repetitions.unwrap_or(0) + 1);
        }
    }

    /// `tcp_cwnd_validate`.
    pub(super) fn note_usage(&mut self, limited: bool) {
        let outstanding = self.board.outstanding();
        let more = !self.usage.limited && outstanding > self.usage.outstanding;
        if self.board.first() >= self.usage.ends || limited || more {
            self.usage = Usage { limited, outstanding, ends: self.board.next() };
        }
    }

    /// `tcp_cong_control`.
    pub(super) fn control_window(&mut self, now: Instant, progress: &Progress) {
        let delivered = (self.delivered - progress.delivered_before) as f64;
        if self.state == State::Recovery {
            if delivered > 0.0 {
                self.reduce(delivered, progress.advanced, progress.losses > 0);
            }
            return;
        }
        let in_use = self.cubic.window() < 2.0 * self.usage.outstanding as f64;
        let limited = self.usage.limited || self.cubic.is_in_slow_start() && in_use;
        let raises = if self.reordering > REORDERING { delivered > 0.0 } else { progress.advanced };
        if raises && limited && delivered > 0.0 {
            self.cubic.on_delivered(now, delivered);
        }
    }

    /// `tcp_cwnd_reduction`.
    pub(super) fn reduce(&mut self, delivered: f64, advanced: bool, lost: bool) {
        let reduction = &mut self.reduction;
        reduction.delivered += delivered;
        let in_flight = self.board.in_flight() as f64;
        let target = self.cubic.slow_start_below();
        let delta = target - in_flight;
        let mut count = if delta < 0.0 {
            (target * reduction.delivered / reduction.prior_window).ceil() - reduction.sent
        } else {
            let mut count = (reduction.delivered - reduction.sent).max(delivered);
            if advanced && !lost {
                count += 1.0;
            }
            count.min(delta)
        };
        if reduction.sent == 0.0 {
            count = count.max(1.0);
        }
        self.cubic.set_window(in_flight + count.max(0.0));
    }

    /// `tcp_set_xmit_timer`: a probe where it may help, and the timeout.
    pub(super) fn restart_timers(&mut self, now: Instant) {
        self.timeout_at = Some(now + self.round_trip.timeout());
        self.restart_probe(now);
    }

    /// `tcp_schedule_loss_probe`.
    pub(super) fn restart_probe(&mut self, now: Instant) {
        let alone = self.board.outstanding() <= 1;
        let allowance = if alone { PROBE_ALLOWANCE } else { TICK };
        let probe = (2 * self.round_trip.smoothed() + allowance).min(self.round_trip.timeout());
        let open = self.state == State::Open && !self.probing;
        self.probe_at = open.then(|| now + probe);
    }
}
