//! Feedback: what arrived here is reported to the peer, and what the peer reports is learned.

use std::time::Duration;

use super::connection::TransmitHalf;
use super::message::{Control, ControlMessage};
use super::path::TransmitPath;
use super::rates::slower_than_fastest;
use crate::id::PathId;
use crate::path::breaker::Act;
use crate::path::feedback::Header;
use crate::path::rate::{Given, Queues};
use crate::path::rtt::RoundTrip;
use crate::time::Instant;
use crate::tx::transmit::TransmitKind;
use crate::wire::extended::Kind;
use crate::wire::extended::feedback::Block;

/// What is known of the way to the peer by one path, by its feedback.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransmitQuality {
    /// Datagrams of this end that have arrived by it, control included.
    pub received: u64,
    /// Datagrams of this end that the path has lost for certain.
    pub lost: u64,
    /// Their share of those sent in the last ten seconds or so, from 0 to 1; `None` if none were.
    pub loss_recent: Option<f64>,
    /// The highest rate at which the peer received by it in the last ten seconds or so, in bytes of UDP payload per
    /// second. No more than was sent, so it is a lower bound of what the path can carry.
    pub rate: Option<u64>,
    /// How much longer datagrams take by this path than by the fastest of the connection.
    pub delay: Option<Duration>,
    /// The mean deviation of the delay.
    pub deviation: Option<Duration>,
    /// What the path is believed to carry, in bytes of IP packets per second, where paths are chosen by that.
    pub capacity: Option<u64>,
    /// The rate at which it is sent on at the most; `None` without a limit.
    pub pace: Option<u64>,
    /// What stands in queues on the way: how much longer datagrams take than at the least.
    pub queue: Duration,
}

/// Arrivals that feedback tells of are no further than that, in microseconds, after the time at which it is written.
const READ_LATER: i32 = 1_000_000;

/// When feedback with these blocks is written, by this end's clock. What arrived while datagrams before it were handled did
/// so after `now`, but before it is told.
fn clock(now: Instant, reports: &[Block]) -> u32 {
    let written = now.micros();
    let after = |block: &Block| block.highest_arrived.wrapping_sub(written).cast_signed();
    let latest = reports.iter().map(after).filter(|&after| after <= READ_LATER).max();
    written.wrapping_add_signed(latest.unwrap_or(0).max(0))
}

impl TransmitHalf {
    /// What arrived on a path is to be reported to the peer.
    pub(super) fn on_report(&mut self, block: Box<Block>, now: Instant) {
        if self.framing.index().is_some() {
            self.reports.push(*block);
            self.reports_at.get_or_insert(now);
        }
    }

    /// The next feedback to be sent, on the path that is fastest there and back.
    pub(super) fn poll_feedback(&mut self, now: Instant) -> Option<Control> {
        self.reports_at?;
        let usable = self.paths.iter().filter(|(_, path)| path.usable());
        let trip = |path: &TransmitPath| path.metrics.round_trip.unwrap_or(Duration::MAX);
        let Some((index, _)) = usable.min_by_key(|(_, path)| (path.left.is_some(), trip(path)))
        else {
            self.reports.clear();
            self.reports_at = None;
            return None;
        };
        let reports = std::mem::take(&mut self.reports);
        self.reports_at = None;
        if self.is_repaired() {
            self.copies.on_sent(now, PathId(index as u8), &reports);
        }
        self.feedback_on(now, index, reports)
    }

    /// Feedback with these blocks on a path; `None` without a session.
    pub(super) fn feedback_on(
        &mut self,
        now: Instant,
        index: usize,
        reports: Vec<Block>,
    ) -> Option<Control> {
        let path = &mut self.paths[index];
        let stamp = self.framing.stamp_control(now, Kind::Feedback, &mut path.wire)?;
        let (number, before) = self.feedback_number;
        self.feedback_number = (number.wrapping_add(1), Some(path.wire.id));
        let clock = clock(now, &reports);
        let message = ControlMessage::Feedback { number, before, clock, reports };
        Some(Control { path: PathId(index as u8), stamp, message, padded: None })
    }

    /// Blocks for which a feedback had no room.
    pub(crate) fn put_reports_back(&mut self, rest: Vec<Block>, now: Instant) {
        if !rest.is_empty() {
            self.reports.extend(rest);
            self.reports_at = Some(now);
        }
    }

    /// The peer reports what arrived there on one of this end's paths.
    pub(super) fn on_peer_report(&mut self, header: Header, block: &Block, now: Instant) {
        let found = self.paths.iter().find(|(_, path)| path.wire.id == block.path);
        let Some(index) = found.map(|(index, _)| index) else { return };
        let path = &mut self.paths[index];
        let last = path.wire.next.wrapping_sub(1);
        let of_train = self.paced.is_some() && path.rate.is_of_train(block);
        if path.feedback.on_feedback(now, header, block, last, of_train) {
            let round_trip = path.feedback.round_trip().map(RoundTrip::recent);
            path.metrics.round_trip = round_trip.or(path.metrics.round_trip);
            self.repair.on_report(PathId(index as u8), block);
            if path.feedback.has_progress() {
                self.on_path_progress(now, index, block);
            }
            if block.quiet && !self.paths[index].silence.is_idle() {
                self.doubt(now, index);
            }
            let others = self.queues_beside(index);
            let path = &mut self.paths[index];
            if self.paced.is_some() {
                let number = header.number;
                let (header, least) = (path.wire_len(0) as u64, path.round_trip());
                let latest = path.feedback.round_trip().map_or(least, |trip| trip.latest);
                // No two connections have their tests at the same time, except by chance.
                let phase =
                    Duration::from_millis(u64::from(self.framing.index().unwrap_or(0)) % 2000);
                let competes = self.competes;
                let ahead = path.silence.on_the_way();
                let meant = path.feedback.meant();
                let given = Given {
                    number,
                    header,
                    least,
                    latest,
                    meant,
                    competes,
                    phase,
                    last,
                    others,
                    ahead,
                };
                path.rate.on_feedback(now, block, given);
            }
            let long = path.feedback.has_longer(path.mtu.least());
            if long {
                path.mtu.on_long_arrived(now);
            } else if path.feedback.has_loss() {
                path.mtu.suspect(now);
            }
            self.on_written(now, header.written);
            self.set_rates(now);
            self.check_breaker(now, index);
        } else if self.paced.is_some() && path.feedback.is_overtaken(header, block) {
            path.rate.on_overtaken(header.number, block, path.wire_len(0) as u64);
        }
    }

    /// What stands in the queues of the paths but one.
    fn queues_beside(&self, index: usize) -> Queues {
        let others = self.paths.iter().filter(|(other, path)| *other != index && path.carries());
        let queue = self.paths[index].rate.queue();
        others.map(|(_, path)| path.rate.queues(queue)).max().unwrap_or_default()
    }

    /// Slows a path down, stops it or uses it again, by what it loses.
    fn check_breaker(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        if self.paced.is_none() || (!self.breaks && !path.breaker.is_stopped()) {
            return;
        }
        let counted = [path.feedback.received(), path.feedback.lost()];
        match path.breaker.on_feedback(now, counted, path.rate.is_at_floor()) {
            None => {}
            Some(Act::Slow) => path.rate.slow_down(),
            Some(Act::Free) => path.rate.free(),
            Some(Act::Stop(loss)) => {
                path.rate.stop(now, loss);
                self.stops.push((PathId(index as u8), Some((loss * 100.0) as u8)));
                self.reschedule(now);
            }
            Some(Act::Resume) => {
                let round_trip = path.round_trip();
                path.rate.resume(now, round_trip);
                self.stops.push((PathId(index as u8), None));
                self.reschedule(now);
            }
        }
    }

    /// The kernel refused datagrams on a path. Of control it is not known which had path sequences, and they are few.
    pub(crate) fn on_refused(&mut self, path: PathId, kind: TransmitKind, datagrams: u64) {
        let counts = self.has_session() && kind != TransmitKind::Control;
        if let Some(path) = self.paths.get_mut(path.index()).filter(|_| counts) {
            path.feedback.on_dropped(datagrams);
        }
    }

    /// What is known of the way to the peer by a path; `None` without feedback about it.
    pub fn transmit_quality(&self, now: Instant, path: PathId) -> Option<TransmitQuality> {
        let path = self.paths.get(path.index())?;
        let TransmitPath { feedback, rate, .. } = path;
        let own = feedback.delay()?;
        Some(TransmitQuality {
            received: feedback.received(),
            lost: feedback.lost(),
            loss_recent: feedback.loss_lately(now),
            rate: feedback.delivery_rate(now),
            delay: slower_than_fastest(&self.paths, path),
            deviation: Some(own.deviation),
            capacity: rate.rate(),
            pace: rate.pace(),
            queue: rate.queue(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(highest_arrived: u32) -> Block {
        Block { highest_arrived, ..Block::default() }
    }

    #[test]
    fn feedback_is_no_older_than_what_it_tells_of() {
        let now = Instant::ZERO + Duration::from_millis(500);
        assert_eq!(clock(now, &[]), 500_000);
        assert_eq!(clock(now, &[block(499_000), block(490_000)]), 500_000);
        assert_eq!(clock(now, &[block(500_300), block(499_000)]), 500_300, "read after now");
    }

    #[test]
    fn what_arrived_half_the_range_of_the_clock_ago_is_not_later() {
        let now = Instant::ZERO + Duration::from_secs(3000);
        let long_ago = now.micros().wrapping_sub(u32::MAX / 2 + 10);
        assert_eq!(clock(now, &[block(long_ago)]), now.micros());
        let now = Instant::ZERO + Duration::from_micros(u64::from(u32::MAX));
        assert_eq!(clock(now, &[block(5)]), 5, "the clock begins again");
    }
}
