//! What an acknowledgement says.

use std::time::Duration;

use mpt_proto::Instant;

use super::super::Acknowledgement;
use super::super::cubic::Sample;
use super::super::scoreboard::Entry;
use super::{MOST_REORDERING, PERSISTENCE, Progress, Sender, State, millis};

impl Sender {
    /// The receiver got something twice (`tcp_check_dsack`).
    pub(super) fn on_duplicate(&mut self, acknowledgement: &Acknowledgement) {
        let Some(duplicate) = acknowledgement.duplicate else { return };
        self.rack.duplicate_seen = true;
        self.reordering_seen = true;
        let known = self.board.entry(duplicate).is_none_or(|entry| entry.ever_again);
        if let Some(undo) = &mut self.undo
            && duplicate >= undo.marker
            && known
            && let Some(repetitions) = &mut undo.repetitions
        {
            *repetitions = repetitions.saturating_sub(1);
        }
        self.board.on_needless(duplicate);
    }

    /// What arrived beyond gaps (`tcp_sacktag_write_queue`).
    pub(super) fn on_ranges(
        &mut self,
        now: Instant,
        acknowledgement: &Acknowledgement,
        progress: &mut Progress,
    ) {
        for (start, end) in acknowledgement.ranges.into_iter().flatten() {
            for number in start.max(self.board.first())..end.min(self.board.next()) {
                let highest = self.board.highest_arrived();
                let Some(entry) = self.board.on_arrived(number) else { continue };
                self.delivered += 1;
                progress.delivered_when_sent =
                    progress.delivered_when_sent.max(Some(entry.delivered));
                self.advance_rack(now, number, &entry);
                if !entry.ever_again {
                    if number < highest {
                        progress.overtaken =
                            Some(progress.overtaken.map_or(number, |n| n.min(number)));
                    }
                    progress.original_arrived |= number < self.high;
                    let first = progress.arrived_sent.map_or(entry.sent, |(first, _)| first);
                    progress.arrived_sent = Some((first, entry.sent));
                }
            }
        }
        if self.state != State::Loss || self.undo.is_some() {
            self.note_reordering(progress.overtaken.take());
        }
    }

    /// What arrived in order (`tcp_clean_rtx_queue`).
    pub(super) fn on_next(
        &mut self,
        now: Instant,
        acknowledgement: &Acknowledgement,
        highest_before: u64,
        progress: &mut Progress,
    ) {
        while self.board.first() < acknowledgement.next {
            let number = self.board.first();
            let Some(entry) = self.board.acknowledge_first() else { break };
            progress.advanced = true;
            if entry.ever_again {
                progress.repeated_acknowledged = true;
            } else if !entry.arrived {
                let first = progress.acknowledged_sent.map_or(entry.sent, |(first, _)| first);
                progress.acknowledged_sent = Some((first, entry.sent));
                if number < highest_before {
                    progress.overtaken = Some(progress.overtaken.map_or(number, |n| n.min(number)));
                }
                progress.original_arrived |= number < self.high;
            }
            if !entry.arrived {
                self.delivered += 1;
                progress.delivered_when_sent =
                    progress.delivered_when_sent.max(Some(entry.delivered));
                let spurious = entry.ever_again && acknowledgement.echo < millis(entry.sent);
                if !spurious {
                    self.advance_rack(now, number, &entry);
                }
            }
        }
        self.note_reordering(progress.overtaken.take());
    }

    /// A segment that was sent once came after a higher one (`tcp_check_sack_reordering`).
    pub(super) fn note_reordering(&mut self, overtaken: Option<u64>) {
        let Some(number) = overtaken else { return };
        let distance = self.board.highest_arrived().saturating_sub(number);
        if distance == 0 {
            return;
        }
        self.reordering = self.reordering.max(distance.min(MOST_REORDERING));
        self.reordering_seen = true;
    }

    /// A transmission was delivered (`tcp_rack_advance`).
    pub(super) fn advance_rack(&mut self, now: Instant, number: u64, entry: &Entry) {
        let round_trip = now.since(entry.sent);
        if entry.ever_again && round_trip < self.round_trip.least() {
            // An answer that quick answers an earlier transmission.
            return;
        }
        self.rack.round_trip = round_trip;
        if (entry.sent, number + 1) > (self.rack.sent, self.rack.end) {
            self.rack.sent = entry.sent;
            self.rack.end = number + 1;
        }
    }

    /// `tcp_ack_update_rtt` and `bictcp_acked`.
    pub(super) fn on_round_trip(
        &mut self,
        now: Instant,
        acknowledgement: &Acknowledgement,
        progress: &Progress,
    ) {
        let acknowledged = progress.acknowledged_sent.filter(|_| !progress.repeated_acknowledged);
        let by_stamp = (progress.advanced && acknowledged.is_none()).then(|| {
            let age = millis(now).saturating_sub(acknowledgement.echo).max(1);
            Duration::from_millis(age)
        });
        let first = acknowledged.or(progress.arrived_sent).map(|(first, _)| now.since(first));
        let last = progress.arrived_sent.or(acknowledged).map(|(_, last)| now.since(last));
        if let Some(sample) = first.or(by_stamp) {
            self.round_trip.on_sample(sample);
        } else if progress.advanced {
            self.round_trip.reset_backoff();
        }
        if let Some(delay) = last {
            self.cubic.on_sample(&Sample {
                now,
                delay,
                smoothed: self.round_trip.smoothed(),
                acknowledged: self.board.first(),
                next: self.board.next(),
            });
        }
    }

    /// `tcp_rack_update_reo_wnd`.
    pub(super) fn update_reordering_window(&mut self, progress: &Progress) {
        let Some(delivered_when_sent) = progress.delivered_when_sent else { return };
        // Not more than once per round trip.
        if delivered_when_sent < self.rack.delivered_at_change {
            self.rack.duplicate_seen = false;
        }
        if self.rack.duplicate_seen {
            self.rack.steps = (self.rack.steps + 1).min(255);
            self.rack.duplicate_seen = false;
            self.rack.delivered_at_change = self.delivered;
            self.rack.persist = PERSISTENCE;
        } else if self.rack.persist == 0 {
            self.rack.steps = 1;
        }
    }
}
