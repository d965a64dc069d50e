//! The sending end: what may be sent, what is lost, and what was wrongly taken for lost.
//!
//! Function by function this follows Linux's `tcp_ack` (net/ipv4/tcp_input.c, tcp_recovery.c and
//! tcp_timer.c), whose names stand beside the methods. Left out is what a bulk transfer on a healthy host
//! never meets: the receive window, ECN, pacing, deferred super-packets, compressed acknowledgements.
//! What an acknowledgement says is in `acknowledgement`, what follows for the segments in `loss`, and what may be
//! sent then in `room`.

mod acknowledgement;
mod loss;
mod room;

use std::time::Duration;

use mpt_proto::Instant;

use super::cubic::{Before, Cubic, Growth};
use super::round_trip::RoundTrip;
use super::scoreboard::Scoreboard;
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
    /// Retransmissions not reported as duplicates; `None` before the first.
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
struct Progress {
    delivered_before: u64,
    first_before: u64,
    advanced: bool,
    repeated_acknowledged: bool,
    original_arrived: bool,
    /// When the first and the last segment were sent that are new and were sent once.
    acknowledged_sent: Option<(Instant, Instant)>,
    arrived_sent: Option<(Instant, Instant)>,
    /// How many segments had been delivered when the latest of these was sent.
    delivered_when_sent: Option<u64>,
    /// The lowest segment that came after a higher one and had been sent once.
    overtaken: Option<u64>,
    losses: u64,
}

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
        let mut progress = Progress {
            delivered_before: self.delivered,
            first_before: self.board.first(),
            ..Progress::default()
        };
        self.on_duplicate(acknowledgement);
        let highest_before = self.board.highest_arrived();
        self.on_ranges(now, acknowledgement, &mut progress);
        self.on_next(now, acknowledgement, highest_before, &mut progress);
        self.on_round_trip(now, acknowledgement, &progress);
        self.update_reordering_window(&progress);
        if progress.advanced {
            self.probing = false;
            self.restart_timers(now);
        }
        self.change_state(now, acknowledgement, &mut progress);
        self.control_window(now, &progress);
        if self.board.outstanding() == 0 {
            (self.timeout_at, self.probe_at, self.reorder_at) = (None, None, None);
        }
    }

    /// Does what a timer asks for.
    pub fn on_time(&mut self, now: Instant) {
        if self.reorder_at.is_some_and(|at| at <= now) {
            self.reorder_at = None;
            self.detect(now, &mut Progress::default());
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

fn millis(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

#[cfg(test)]
mod tests;
