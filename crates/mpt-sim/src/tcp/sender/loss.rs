//! What is lost, what was wrongly taken for lost, and the states in between.

use std::time::Duration;

use mpt_proto::Instant;

use super::super::Acknowledgement;
use super::super::scoreboard::Visit;
use super::{Progress, Reduction, Sender, State, TICK, Undo};

impl Sender {
    /// How much later than its successors a segment may come (`tcp_rack_reo_wnd`).
    pub(super) fn reordering_window(&self) -> Duration {
        if !self.reordering_seen
            && (self.state != State::Open || self.board.arrived() >= self.reordering)
        {
            return Duration::ZERO;
        }
        (self.round_trip.least() / 4 * self.rack.steps).min(self.round_trip.smoothed())
    }

    /// Finds what is lost by time (`tcp_rack_mark_lost`).
    pub(super) fn detect(&mut self, now: Instant, progress: &mut Progress) {
        let limit = self.rack.round_trip + self.reordering_window();
        let reach = (self.rack.sent, self.rack.end);
        let mut longest = Duration::ZERO;
        progress.losses += self.board.visit_by_time(|number, entry| {
            if (entry.sent, number + 1) >= reach {
                return Visit::Stop;
            }
            let age = now.since(entry.sent);
            if age >= limit {
                return Visit::Lost;
            }
            longest = longest.max(limit.saturating_sub(age));
            Visit::Next
        });
        self.reorder_at = (!longest.is_zero()).then(|| now + longest + TICK);
    }

    /// `tcp_fastretrans_alert`.
    pub(super) fn change_state(
        &mut self,
        now: Instant,
        acknowledgement: &Acknowledgement,
        progress: &mut Progress,
    ) {
        if self.state == State::Open {
            if self.board.again() == 0 {
                self.repeated_at = None;
            }
        } else if self.state == State::Recovery && self.board.first() >= self.high {
            self.leave_recovery(acknowledgement);
        }
        match self.state {
            State::Recovery => {
                if progress.advanced && self.undo.is_some() && self.is_delayed(acknowledgement) {
                    self.note_reordering(Some(progress.first_before));
                    if self.board.again() > 0 {
                        return;
                    }
                    self.take_back(true);
                    self.state = State::Open;
                } else if self.all_needless() {
                    self.take_back(false);
                    self.state = State::Open;
                }
                self.detect(now, progress);
                if self.state == State::Open && self.board.lost() > 0 {
                    self.enter_recovery();
                }
            }
            State::Loss => {
                self.doubt(acknowledgement, progress);
                self.detect(now, progress);
                if self.state == State::Open && self.board.lost() > 0 {
                    self.enter_recovery();
                }
            }
            State::Open => {
                if self.all_needless() {
                    self.take_back(false);
                }
                self.detect(now, progress);
                if self.board.lost() > 0 {
                    self.enter_recovery();
                }
            }
        }
    }

    /// `tcp_enter_recovery`.
    pub(super) fn enter_recovery(&mut self) {
        self.stats.recoveries += 1;
        self.state = State::Recovery;
        self.high = self.board.next();
        self.probing = false;
        self.probe_at = None;
        let prior_window = self.cubic.window();
        let before = self.cubic.on_congestion();
        let repetitions = Some(self.board.again()).filter(|&again| again > 0);
        self.undo = Some(Undo { marker: self.board.first(), before, repetitions });
        self.reduction = Reduction { prior_window, delivered: 0.0, sent: 0.0 };
    }

    /// Everything that was outstanding when recovery began has arrived.
    pub(super) fn leave_recovery(&mut self, acknowledgement: &Acknowledgement) {
        self.state = State::Open;
        if self.undo.is_some() && (self.all_needless() || self.is_delayed(acknowledgement)) {
            self.take_back(false);
        } else {
            if self.undo.is_some() {
                self.cubic.set_window(self.cubic.slow_start_below());
            }
            self.rack.persist = self.rack.persist.saturating_sub(1);
        }
    }

    /// Whether the echoed time stamp is from before the first repetition (`tcp_packet_delayed`).
    pub(super) fn is_delayed(&self, acknowledgement: &Acknowledgement) -> bool {
        self.repeated_at.is_none_or(|at| acknowledgement.echo < at)
    }

    /// Whether every repetition was reported as a duplicate (`tcp_try_undo_dsack`).
    pub(super) fn all_needless(&self) -> bool {
        self.undo.is_some_and(|undo| undo.repetitions == Some(0))
    }

    /// `tcp_undo_cwnd_reduction`.
    pub(super) fn take_back(&mut self, unmark: bool) {
        if unmark {
            self.board.unmark_all();
        }
        if let Some(undo) = self.undo.take() {
            self.cubic.undo(undo.before);
            self.stats.undone += 1;
        }
    }

    /// After a timeout: was it real? (`tcp_process_loss`)
    pub(super) fn doubt(&mut self, acknowledgement: &Acknowledgement, progress: &Progress) {
        let recovered = self.board.first() >= self.high;
        let delayed = self.undo.is_some() && self.is_delayed(acknowledgement);
        if progress.advanced && (delayed || self.all_needless()) {
            self.take_back(true);
            self.state = State::Open;
            return;
        }
        if self.doubt_timeout {
            if progress.original_arrived {
                self.take_back(true);
                self.state = State::Open;
                return;
            }
            if self.board.next() > self.high {
                if self.delivered > progress.delivered_before {
                    self.doubt_timeout = false;
                }
            } else if progress.advanced && !recovered {
                self.high = self.board.next();
                self.doubt_timeout = false;
            }
        }
        if recovered {
            self.undo = None;
            self.state = State::Open;
        }
    }

    /// `tcp_retransmit_timer` and `tcp_enter_loss`.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        if self.board.outstanding() == 0 {
            self.timeout_at = None;
            return;
        }
        self.stats.timeouts += 1;
        let first_of_episode = self.state != State::Loss;
        if first_of_episode || self.board.first() >= self.high {
            let before = self.cubic.on_timeout();
            let repetitions = Some(self.board.again()).filter(|&again| again > 0);
            self.undo = Some(Undo { marker: self.board.first(), before, repetitions });
        }
        let first = self.board.first();
        let spare = self.rack.round_trip + self.reordering_window();
        for (number, entry) in self.board.missing() {
            if number == first || now.since(entry.sent) >= spare {
                self.board.mark_lost(number);
            }
        }
        self.state = State::Loss;
        self.high = self.board.next();
        self.doubt_timeout = true;
        self.probing = false;
        self.probe_at = None;
        self.reorder_at = None;
        self.cubic.set_window(self.board.in_flight() as f64 + 1.0);
        self.round_trip.on_timeout();
        self.timeout_at = Some(now + self.round_trip.timeout());
    }
}
