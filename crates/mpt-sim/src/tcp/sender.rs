//! The sending end: what may be sent, what is lost, and what was wrongly taken for lost.
//!
//! Function by function this follows Linux's `tcp_ack` (net/ipv4/tcp_input.c, tcp_recovery.c and
//! tcp_timer.c), whose names stand beside the methods. Left out is what a bulk transfer on a healthy host
//! never meets: the receive window, ECN, pacing, deferred super-packets, compressed acknowledgements.

use std::time::Duration;

use mpt_proto::Instant;

use super::cubic::{Before, Cubic, Growth, Sample};
use super::round_trip::RoundTrip;
use super::scoreboard::{Entry, Scoreboard, Visit};
use super::{Acknowledgement, OLD, Segment};

/// Segments by which reordering is taken for no loss before any was seen (net.ipv4.tcp_reordering).
const REORDERING: u64 = 3;
/// The most reordering that is remembered (net.ipv4.tcp_max_reordering).
const MOST_REORDERING: u64 = 300;
/// Recoveries without a duplicate report after which the reordering window shrinks to its least.
const PERSISTENCE: u32 = 16;
/// What a timer takes at the least: a tick.
const TICK: Duration = Duration::from_millis(4);
/// What a probe waits beyond two round trips where its acknowledgement may be delayed.
const PROBE_ALLOWANCE: Duration = Duration::from_millis(200);

/// The sending end of a transfer without end.
#[derive(Clone, Debug)]
pub struct Sender {
    board: Scoreboard,
    cubic: Cubic,
    round_trip: RoundTrip,
    state: State,
    /// What was outstanding when the present state began ends here.
    high: u64,
    /// Segments delivered so far.
    delivered: u64,
    reordering: u64,
    reordering_seen: bool,
    rack: Rack,
    undo: Option<Undo>,
    /// The newest time stamp of an acknowledgement.
    recent: u64,
    /// Milliseconds at the first repetition of this episode.
    repeated_at: Option<u64>,
    reduction: Reduction,
    /// F-RTO is at work.
    doubt_timeout: bool,
    /// The most segments that the socket's buffer lets be outstanding.
    most_outstanding: u64,
    usage: Usage,
    timeout_at: Option<Instant>,
    probe_at: Option<Instant>,
    probing: bool,
    probe_due: bool,
    reorder_at: Option<Instant>,
    stats: Stats,
}

/// What a sender did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Transmissions of segments that had been sent before.
    pub repetitions: u64,
    /// Times the window was reduced because of loss, timeouts apart.
    pub recoveries: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Reductions that were taken back.
    pub undone: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Recovery,
    Loss,
}

/// RFC 8985.
#[derive(Clone, Copy, Debug)]
struct Rack {
    /// The latest transmission that was delivered: when it was sent, and which.
    sent: Instant,
    end: u64,
    round_trip: Duration,
    steps: u32,
    persist: u32,
    duplicate_seen: bool,
    delivered_at_change: u64,
}

/// What may have to be taken back.
#[derive(Clone, Copy, Debug)]
struct Undo {
    marker: u64,
    before: Before,
    /// Repetitions that nobody has called needless; `None` before the first.
    repetitions: Option<u64>,
}

/// Proportional rate reduction (RFC 6937).
#[derive(Clone, Copy, Debug, Default)]
struct Reduction {
    prior_window: f64,
    delivered: f64,
    sent: f64,
}

/// How much of the window was used of late.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// The window was what held the sender back.
    limited: bool,
    /// The most segments that were outstanding.
    outstanding: u64,
    /// When this segment is acknowledged, another stretch begins.
    ends: u64,
}

/// What one acknowledgement brought.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    delivered_before: u64,
    first_before: u64,
    advanced: bool,
    repeated_acknowledged: bool,
    original_arrived: bool,
    /// When the first and the last segment were sent that are news and were sent once.
    acknowledged_sent: Option<(Instant, Instant)>,
    arrived_sent: Option<(Instant, Instant)>,
    /// How many segments had been delivered when the latest of the news was sent.
    delivered_when_sent: Option<u64>,
    /// The lowest segment that came after a higher one and had been sent once.
    overtaken: Option<u64>,
    losses: u64,
}

// --- from outside ---

impl Sender {
    /// A connection whose handshake took `round_trip`, and which may have `most_outstanding` segments
    /// outstanding.
    pub fn new(growth: Growth, round_trip: Duration, most_outstanding: u64) -> Self {
        Self {
            board: Scoreboard::default(),
            cubic: Cubic::new(growth),
            round_trip: RoundTrip::new(round_trip),
            state: State::Open,
            high: 0,
            delivered: 0,
            reordering: REORDERING,
            reordering_seen: false,
            rack: Rack {
                sent: Instant::ZERO,
                end: 0,
                round_trip,
                steps: 1,
                persist: 0,
                duplicate_seen: false,
                delivered_at_change: 0,
            },
            undo: None,
            recent: 0,
            repeated_at: None,
            reduction: Reduction::default(),
            doubt_timeout: false,
            most_outstanding: most_outstanding.max(2),
            usage: Usage::default(),
            timeout_at: None,
            probe_at: None,
            probing: false,
            probe_due: false,
            reorder_at: None,
            stats: Stats::default(),
        }
    }

    /// What it did so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The congestion window in segments.
    pub fn window(&self) -> f64 {
        self.cubic.window()
    }

    /// The smoothed round-trip time.
    pub fn round_trip(&self) -> Duration {
        self.round_trip.smoothed()
    }

    /// When [`on_time`](Self::on_time) has something to do.
    pub fn next_due(&self) -> Option<Instant> {
        [self.timeout_at, self.probe_at, self.reorder_at].into_iter().flatten().min()
    }

    /// The next segment that may be sent at `now`. To be asked until `None` at the start, and after each
    /// acknowledgement and timer.
    pub fn poll(&mut self, now: Instant) -> Option<Segment> {
        let room = self.board.in_flight() < self.cubic.window() as u64;
        self.note_usage(!room);
        let probe = std::mem::take(&mut self.probe_due);
        if !room && !probe {
            return None;
        }
        let number = match self.board.next_lost().filter(|_| room) {
            Some(number) => {
                self.repeat(now, number);
                number
            }
            None if self.board.outstanding() < self.most_outstanding => {
                let was_idle = self.board.outstanding() == 0;
                let number = self.board.send(now, self.delivered);
                if was_idle {
                    self.timeout_at = Some(now + self.round_trip.timeout());
                }
                if was_idle || self.probe_at.is_some() {
                    self.restart_probe(now);
                }
                number
            }
            None if probe => {
                let number = self.board.next() - 1;
                self.repeat(now, number);
                number
            }
            None => return None,
        };
        if self.state == State::Recovery {
            self.reduction.sent += 1.0;
        }
        if probe {
            self.timeout_at = Some(now + self.round_trip.timeout());
        }
        Some(Segment { number, stamp: millis(now), echo: self.recent })
    }

    /// Takes an acknowledgement (`tcp_ack`).
    pub fn on_acknowledgement(&mut self, now: Instant, acknowledgement: &Acknowledgement) {
        let is_repetition = acknowledgement.next == self.board.first();
        if acknowledgement.stamp + OLD < self.recent && !is_repetition {
            return;
        }
        self.recent = self.recent.max(acknowledgement.stamp);
        let mut news = News {
            delivered_before: self.delivered,
            first_before: self.board.first(),
            ..News::default()
        };
        self.on_duplicate(acknowledgement);
        let highest_before = self.board.highest_arrived();
        self.on_ranges(now, acknowledgement, &mut news);
        self.on_next(now, acknowledgement, highest_before, &mut news);
        self.on_round_trip(now, acknowledgement, &news);
        self.update_reordering_window(&news);
        if news.advanced {
            self.probing = false;
            self.restart_timers(now);
        }
        self.change_state(now, acknowledgement, &mut news);
        self.control_window(now, &news);
        if self.board.outstanding() == 0 {
            (self.timeout_at, self.probe_at, self.reorder_at) = (None, None, None);
        }
    }

    /// Does what a timer asks for.
    pub fn on_time(&mut self, now: Instant) {
        if self.reorder_at.is_some_and(|at| at <= now) {
            self.reorder_at = None;
            self.detect(now, &mut News::default());
            if self.board.lost() > self.board.again() && self.state == State::Open {
                self.enter_recovery();
            }
            if self.state == State::Recovery {
                self.reduce(0.0, false, true);
            }
        }
        if self.probe_at.is_some_and(|at| at <= now) {
            self.probe_at = None;
            self.probing = true;
            self.probe_due = true;
            self.timeout_at = Some(now + self.round_trip.timeout());
        } else if self.timeout_at.is_some_and(|at| at <= now) {
            self.on_timeout(now);
        }
    }
}

// --- what an acknowledgement says ---

impl Sender {
    /// The receiver got something twice (`tcp_check_dsack`).
    fn on_duplicate(&mut self, acknowledgement: &Acknowledgement) {
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
    fn on_ranges(&mut self, now: Instant, acknowledgement: &Acknowledgement, news: &mut News) {
        for (start, end) in acknowledgement.ranges.into_iter().flatten() {
            for number in start.max(self.board.first())..end.min(self.board.next()) {
                let highest = self.board.highest_arrived();
                let Some(entry) = self.board.on_arrived(number) else { continue };
                self.delivered += 1;
                news.delivered_when_sent = news.delivered_when_sent.max(Some(entry.delivered));
                self.advance_rack(now, number, &entry);
                if !entry.ever_again {
                    if number < highest {
                        news.overtaken = Some(news.overtaken.map_or(number, |n| n.min(number)));
                    }
                    news.original_arrived |= number < self.high;
                    let first = news.arrived_sent.map_or(entry.sent, |(first, _)| first);
                    news.arrived_sent = Some((first, entry.sent));
                }
            }
        }
        if self.state != State::Loss || self.undo.is_some() {
            self.note_reordering(news.overtaken.take());
        }
    }

    /// What arrived in order (`tcp_clean_rtx_queue`).
    fn on_next(
        &mut self,
        now: Instant,
        acknowledgement: &Acknowledgement,
        highest_before: u64,
        news: &mut News,
    ) {
        while self.board.first() < acknowledgement.next {
            let number = self.board.first();
            let Some(entry) = self.board.acknowledge_first() else { break };
            news.advanced = true;
            if entry.ever_again {
                news.repeated_acknowledged = true;
            } else if !entry.arrived {
                let first = news.acknowledged_sent.map_or(entry.sent, |(first, _)| first);
                news.acknowledged_sent = Some((first, entry.sent));
                if number < highest_before {
                    news.overtaken = Some(news.overtaken.map_or(number, |n| n.min(number)));
                }
                news.original_arrived |= number < self.high;
            }
            if !entry.arrived {
                self.delivered += 1;
                news.delivered_when_sent = news.delivered_when_sent.max(Some(entry.delivered));
                let spurious = entry.ever_again && acknowledgement.echo < millis(entry.sent);
                if !spurious {
                    self.advance_rack(now, number, &entry);
                }
            }
        }
        self.note_reordering(news.overtaken.take());
    }

    /// A segment that was sent once came after a higher one (`tcp_check_sack_reordering`).
    fn note_reordering(&mut self, overtaken: Option<u64>) {
        let Some(number) = overtaken else { return };
        let distance = self.board.highest_arrived().saturating_sub(number);
        if distance == 0 {
            return;
        }
        self.reordering = self.reordering.max(distance.min(MOST_REORDERING));
        self.reordering_seen = true;
    }

    /// A transmission was delivered (`tcp_rack_advance`).
    fn advance_rack(&mut self, now: Instant, number: u64, entry: &Entry) {
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
    fn on_round_trip(&mut self, now: Instant, acknowledgement: &Acknowledgement, news: &News) {
        let acknowledged = news.acknowledged_sent.filter(|_| !news.repeated_acknowledged);
        let by_stamp = (news.advanced && acknowledged.is_none()).then(|| {
            let age = millis(now).saturating_sub(acknowledgement.echo).max(1);
            Duration::from_millis(age)
        });
        let first = acknowledged.or(news.arrived_sent).map(|(first, _)| now.since(first));
        let last = news.arrived_sent.or(acknowledged).map(|(_, last)| now.since(last));
        if let Some(sample) = first.or(by_stamp) {
            self.round_trip.on_sample(sample);
        } else if news.advanced {
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
    fn update_reordering_window(&mut self, news: &News) {
        let Some(delivered_when_sent) = news.delivered_when_sent else { return };
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

// --- loss, and states ---

impl Sender {
    /// How much later than its successors a segment may come (`tcp_rack_reo_wnd`).
    fn reordering_window(&self) -> Duration {
        if !self.reordering_seen
            && (self.state != State::Open || self.board.arrived() >= self.reordering)
        {
            return Duration::ZERO;
        }
        (self.round_trip.least() / 4 * self.rack.steps).min(self.round_trip.smoothed())
    }

    /// Finds what is lost by time (`tcp_rack_mark_lost`).
    fn detect(&mut self, now: Instant, news: &mut News) {
        let limit = self.rack.round_trip + self.reordering_window();
        let reach = (self.rack.sent, self.rack.end);
        let mut longest = Duration::ZERO;
        news.losses += self.board.visit_by_time(|number, entry| {
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
    fn change_state(&mut self, now: Instant, acknowledgement: &Acknowledgement, news: &mut News) {
        if self.state == State::Open {
            if self.board.again() == 0 {
                self.repeated_at = None;
            }
        } else if self.state == State::Recovery && self.board.first() >= self.high {
            self.leave_recovery(acknowledgement);
        }
        match self.state {
            State::Recovery => {
                if news.advanced && self.undo.is_some() && self.is_delayed(acknowledgement) {
                    self.note_reordering(Some(news.first_before));
                    if self.board.again() > 0 {
                        return;
                    }
                    self.take_back(true);
                    self.state = State::Open;
                } else if self.all_needless() {
                    self.take_back(false);
                    self.state = State::Open;
                }
                self.detect(now, news);
                if self.state == State::Open && self.board.lost() > 0 {
                    self.enter_recovery();
                }
            }
            State::Loss => {
                self.doubt(acknowledgement, news);
                self.detect(now, news);
                if self.state == State::Open && self.board.lost() > 0 {
                    self.enter_recovery();
                }
            }
            State::Open => {
                if self.all_needless() {
                    self.take_back(false);
                }
                self.detect(now, news);
                if self.board.lost() > 0 {
                    self.enter_recovery();
                }
            }
        }
    }

    /// `tcp_enter_recovery`.
    fn enter_recovery(&mut self) {
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
    fn leave_recovery(&mut self, acknowledgement: &Acknowledgement) {
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
    fn is_delayed(&self, acknowledgement: &Acknowledgement) -> bool {
        self.repeated_at.is_none_or(|at| acknowledgement.echo < at)
    }

    /// Whether every repetition was reported as a duplicate (`tcp_try_undo_dsack`).
    fn all_needless(&self) -> bool {
        self.undo.is_some_and(|undo| undo.repetitions == Some(0))
    }

    /// `tcp_undo_cwnd_reduction`.
    fn take_back(&mut self, unmark: bool) {
        if unmark {
            self.board.unmark_all();
        }
        if let Some(undo) = self.undo.take() {
            self.cubic.undo(undo.before);
            self.stats.undone += 1;
        }
    }

    /// After a timeout: was it real? (`tcp_process_loss`)
    fn doubt(&mut self, acknowledgement: &Acknowledgement, news: &News) {
        let recovered = self.board.first() >= self.high;
        let delayed = self.undo.is_some() && self.is_delayed(acknowledgement);
        if news.advanced && (delayed || self.all_needless()) {
            self.take_back(true);
            self.state = State::Open;
            return;
        }
        if self.doubt_timeout {
            if news.original_arrived {
                self.take_back(true);
                self.state = State::Open;
                return;
            }
            if self.board.next() > self.high {
                if self.delivered > news.delivered_before {
                    self.doubt_timeout = false;
                }
            } else if news.advanced && !recovered {
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
    fn on_timeout(&mut self, now: Instant) {
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

// --- what may be sent ---

impl Sender {
    fn repeat(&mut self, now: Instant, number: u64) {
        self.board.send_again(now, number, self.delivered);
        self.repeated_at.get_or_insert(millis(now));
        self.stats.repetitions += 1;
        if let Some(undo) = &mut self.undo {
            undo.repetitions = Some(undo.repetitions.unwrap_or(0) + 1);
        }
    }

    /// `tcp_cwnd_validate`.
    fn note_usage(&mut self, limited: bool) {
        let outstanding = self.board.outstanding();
        let more = !self.usage.limited && outstanding > self.usage.outstanding;
        if self.board.first() >= self.usage.ends || limited || more {
            self.usage = Usage { limited, outstanding, ends: self.board.next() };
        }
    }

    /// `tcp_cong_control`.
    fn control_window(&mut self, now: Instant, news: &News) {
        let delivered = (self.delivered - news.delivered_before) as f64;
        if self.state == State::Recovery {
            if delivered > 0.0 {
                self.reduce(delivered, news.advanced, news.losses > 0);
            }
            return;
        }
        let in_use = self.cubic.window() < 2.0 * self.usage.outstanding as f64;
        let limited = self.usage.limited || self.cubic.is_in_slow_start() && in_use;
        let raises = if self.reordering > REORDERING { delivered > 0.0 } else { news.advanced };
        if raises && limited && delivered > 0.0 {
            self.cubic.on_delivered(now, delivered);
        }
    }

    /// `tcp_cwnd_reduction`.
    fn reduce(&mut self, delivered: f64, advanced: bool, lost: bool) {
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
    fn restart_timers(&mut self, now: Instant) {
        self.timeout_at = Some(now + self.round_trip.timeout());
        self.restart_probe(now);
    }

    /// `tcp_schedule_loss_probe`.
    fn restart_probe(&mut self, now: Instant) {
        let alone = self.board.outstanding() <= 1;
        let allowance = if alone { PROBE_ALLOWANCE } else { TICK };
        let probe = (2 * self.round_trip.smoothed() + allowance).min(self.round_trip.timeout());
        let open = self.state == State::Open && !self.probing;
        self.probe_at = open.then(|| now + probe);
    }
}

fn millis(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

#[cfg(test)]
mod tests;
